from .bags import Bags
from .base import DistributionKernel
from .expected import ExpectedProduct
from .gaussian import EmbeddingGaussian
from .mean_variance import MeanVariance
from .tuples import TupleProduct, TupleSum

__all__ = [
    "Bags",
    "DistributionKernel",
    "EmbeddingGaussian",
    "ExpectedProduct",
    "MeanVariance",
    "TupleProduct",
    "TupleSum",
]
