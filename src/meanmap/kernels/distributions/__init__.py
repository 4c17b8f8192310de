"""Kernels on probability distributions, on tuples of messages and on bags of samples."""

from meanmap.kernels.distributions.bags import Bags
from meanmap.kernels.distributions.base import DistributionKernel
from meanmap.kernels.distributions.expected import ExpectedProduct
from meanmap.kernels.distributions.gaussian import EmbeddingGaussian
from meanmap.kernels.distributions.mean_variance import MeanVariance
from meanmap.kernels.distributions.tuples import TupleProduct, TupleSum

__all__ = [
    "Bags",
    "DistributionKernel",
    "EmbeddingGaussian",
    "ExpectedProduct",
    "MeanVariance",
    "TupleProduct",
    "TupleSum",
]
