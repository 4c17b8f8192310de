"""Kernels on points. They measure similarity, and determine which differences a mean embedding can detect."""

from meanmap.kernels.algebraic import Cosine, Linear, Polynomial, RandomProjection
from meanmap.kernels.base import Kernel, Power, Product, Scaled, Sum
from meanmap.kernels.columns import OnColumns
from meanmap.kernels.discrete import Delta, Hamming, Precomputed, Spectrum
from meanmap.kernels.distributions import (
    Bags,
    DistributionKernel,
    EmbeddingGaussian,
    ExpectedProduct,
    MeanVariance,
    TupleProduct,
    TupleSum,
)
from meanmap.kernels.manifolds import Rotation, Torus
from meanmap.kernels.smoothed import Smoothed
from meanmap.kernels.stationary import RBF, Laplace, Matern, RationalQuadratic, Stationary

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
