"""Features: finite coordinates of a kernel, random or chosen from the data."""

from meanmap.features.base import Concatenated, FeatureKernel, Features, TensorProduct
from meanmap.features.fourier import Fourier
from meanmap.features.lowrank import Nystrom, PivotedCholesky

__all__ = ["Concatenated", "FeatureKernel", "Features", "Fourier", "Nystrom", "PivotedCholesky", "TensorProduct"]
