"""One sweep: a model as compiled plates, every factor in turn, and the handling of improper messages."""
