"""Linear predictors as one unknown: a joint Gaussian of all effects, and likelihoods of η = A θ row by row."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
