"""Baselines for learned trees: the methods that a reader would otherwise use."""
