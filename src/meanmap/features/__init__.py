"""Features: finite-dimensional coordinates of a kernel, random or chosen from the data."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
