"""One sweep: a model as compiled plates, every factor in turn, and what becomes of improper messages."""
