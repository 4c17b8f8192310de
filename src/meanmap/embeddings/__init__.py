"""Elements and operators: distributions and relations between them as vectors and matrices of a Hilbert space."""

from meanmap.embeddings.conditional import condition
from meanmap.embeddings.coordinates import FeatureEmbedding
from meanmap.embeddings.element import Combination, Embedding
from meanmap.embeddings.empirical import embed
from meanmap.embeddings.families import FamilyEmbedding, mean_features
from meanmap.embeddings.operators import Operator, cross_covariance
from meanmap.embeddings.points import PointEmbedding

__all__ = [
    "Combination",
    "Embedding",
    "FamilyEmbedding",
    "FeatureEmbedding",
    "Operator",
    "PointEmbedding",
    "condition",
    "cross_covariance",
    "embed",
    "mean_features",
]
