from .base import Concatenated, FeatureKernel, Features, TensorProduct
from .fourier import Fourier
from .lowrank import Nystrom, PivotedCholesky
from .mean_fourier import MeanFourier
from .means import mean_features
from .two_stage import SideBySide, TwoStage

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
