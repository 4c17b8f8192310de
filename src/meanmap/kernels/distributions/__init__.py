"""Kernels on probability distributions, on tuples of messages and on bags of samples."""
