"""Elements and operators: distributions and relations between them as vectors and matrices of a Hilbert space."""

from meanmap.embeddings.conditional import condition
from meanmap.embeddings.coordinates import FeatureEmbedding
from meanmap.embeddings.covariance import cross_covariance
from meanmap.embeddings.element import Combination, Embedding
from meanmap.embeddings.empirical import embed
from meanmap.embeddings.families import FamilyEmbedding, mean_features
from meanmap.embeddings.likelihood import likelihood
from meanmap.embeddings.operators import Operator
from meanmap.embeddings.points import PointEmbedding
from meanmap.embeddings.posterior import PosteriorDifference, PosteriorEmbedding, posterior_embedding
from meanmap.embeddings.regression_plan import RegressionPlan
from meanmap.embeddings.rules import bayes_rule, chain_rule, sum_rule
from meanmap.embeddings.witness import Region, Witness, posterior_witness

__all__ = [
    "Combination",
    "Embedding",
    "FamilyEmbedding",
    "FeatureEmbedding",
    "Operator",
    "PointEmbedding",
    "PosteriorDifference",
    "PosteriorEmbedding",
    "Region",
    "RegressionPlan",
    "Witness",
    "bayes_rule",
    "chain_rule",
    "condition",
    "cross_covariance",
    "embed",
    "likelihood",
    "mean_features",
    "posterior_embedding",
    "posterior_witness",
    "sum_rule",
]
