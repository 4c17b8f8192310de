"""Kernels on probability distributions, on tuples of messages and on bags of samples."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
