"""Estimators for pipelines, grid searches and data frames of scikit-learn, which is imported when first used."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
