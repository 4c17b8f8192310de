"""Kernels on points. They measure similarity, and determine which differences a mean embedding can detect."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
