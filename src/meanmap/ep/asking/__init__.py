"""Asking for the messages of one black box: which oracle computes them, and what it answers."""
