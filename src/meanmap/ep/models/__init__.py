"""Ready models, each a few lines of variables and factors: regressions, Gaussian processes, rankings, programs."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
