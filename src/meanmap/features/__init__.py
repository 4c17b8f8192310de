"""Features: finite-dimensional coordinates of a kernel, random or chosen from the data."""

from meanmap.features.base import Concatenated, FeatureKernel, Features, TensorProduct
from meanmap.features.fourier import Fourier
from meanmap.features.lowrank import Nystrom, PivotedCholesky
from meanmap.features.mean_fourier import MeanFourier
from meanmap.features.means import mean_features
from meanmap.features.two_stage import SideBySide, TwoStage

__all__ = [
    "Concatenated",
    "FeatureKernel",
    "Features",
    "Fourier",
    "MeanFourier",
    "Nystrom",
    "PivotedCholesky",
    "SideBySide",
    "TensorProduct",
    "TwoStage",
    "mean_features",
]
