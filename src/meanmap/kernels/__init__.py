"""Kernels on points: how alike two points are, and so what a mean embedding can tell apart."""

from meanmap.kernels.algebraic import Cosine, Linear, Polynomial, RandomProjection
from meanmap.kernels.base import Kernel, OnColumns, Power, Product, Scaled, Sum
from meanmap.kernels.discrete import Delta, Hamming, Precomputed, Spectrum
from meanmap.kernels.manifolds import Rotation, Torus
from meanmap.kernels.stationary import RBF, Laplace, Matern, RationalQuadratic, Stationary

__all__ = [
    "RBF",
    "Cosine",
    "Delta",
    "Hamming",
    "Kernel",
    "Laplace",
    "Linear",
    "Matern",
    "OnColumns",
    "Polynomial",
    "Power",
    "Precomputed",
    "Product",
    "RandomProjection",
    "RationalQuadratic",
    "Rotation",
    "Scaled",
    "Spectrum",
    "Stationary",
    "Sum",
    "Torus",
]
