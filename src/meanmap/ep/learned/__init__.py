"""Messages learned just in time: operators that replace an oracle where they are certain, and ask it elsewhere."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
