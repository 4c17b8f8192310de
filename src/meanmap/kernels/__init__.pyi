from .algebraic import Cosine, Linear, Polynomial, RandomProjection
from .base import Kernel, Power, Product, Scaled, Sum
from .columns import OnColumns
from .discrete import Delta, Hamming, Precomputed, Spectrum
from .distributions import (
    Bags,
    DistributionKernel,
    EmbeddingGaussian,
    ExpectedProduct,
    MeanVariance,
    TupleProduct,
    TupleSum,
)
from .manifolds import Rotation, Torus
from .smoothed import Smoothed
from .stationary import RBF, Laplace, Matern, RationalQuadratic, Stationary

__all__ = [
    "RBF",
    "Bags",
    "Cosine",
    "Delta",
    "DistributionKernel",
    "EmbeddingGaussian",
    "ExpectedProduct",
    "Hamming",
    "Kernel",
    "Laplace",
    "Linear",
    "Matern",
    "MeanVariance",
    "OnColumns",
    "Polynomial",
    "Power",
    "Precomputed",
    "Product",
    "RandomProjection",
    "RationalQuadratic",
    "Rotation",
    "Scaled",
    "Smoothed",
    "Spectrum",
    "Stationary",
    "Sum",
    "Torus",
    "TupleProduct",
    "TupleSum",
]
