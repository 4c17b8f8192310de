"""Experiments: the demo, and the figures of the papers."""
