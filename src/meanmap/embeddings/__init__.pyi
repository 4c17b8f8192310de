from .conditional import condition
from .coordinates import FeatureEmbedding
from .covariance import cross_covariance
from .element import Combination, Embedding
from .empirical import embed
from .families import FamilyEmbedding, mean_features
from .likelihoods import likelihood
from .operators import Operator
from .points import PointEmbedding
from .posterior import PosteriorDifference, PosteriorEmbedding, posterior_embedding
from .regression_plan import RegressionPlan
from .rules import bayes_rule, chain_rule, sum_rule
from .witness import Region, Witness, posterior_witness

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
