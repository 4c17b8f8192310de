"""Estimators for scikit-learn: in pipelines, grid searches and with its data frames out."""

from meanmap.estimators.bags import BagRegressor
from meanmap.estimators.density import ConditionalDensity
from meanmap.estimators.features import FourierFeatures, LowRankFeatures
from meanmap.estimators.regression import ConditionalMeanRegressor

__all__ = ["BagRegressor", "ConditionalDensity", "ConditionalMeanRegressor", "FourierFeatures", "LowRankFeatures"]
