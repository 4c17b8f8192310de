"""Elements and operators: distributions as vectors in a Hilbert space, and relations between them as matrices."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
