"""Estimators for scikit-learn's pipelines, grid searches and data frame output. scikit-learn is imported when one is
first used.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
