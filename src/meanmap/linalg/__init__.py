"""Linear algebra without kernels: moments that merge, low-rank factors, ridge solves, online regression."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
