"""Probability distributions as immutable batches: messages of expectation propagation, elements with exact embeddings.

Exponential families hold natural parameters, so a product is a sum and a ratio a difference, proper or not. Every
distribution has a characteristic function, which is its mean embedding in Fourier form.
"""

from meanmap.families.adapters import from_numpyro, to_numpyro
from meanmap.families.base import Distribution
from meanmap.families.bernoulli import Bernoulli
from meanmap.families.beta import Beta
from meanmap.families.categorical import Categorical
from meanmap.families.dirichlet import Dirichlet
from meanmap.families.family import Family
from meanmap.families.gamma import Gamma
from meanmap.families.laplace import Laplace
from meanmap.families.limits import Flat, PointMass
from meanmap.families.mixture import Mixture
from meanmap.families.multivariate_normal import MultivariateNormal
from meanmap.families.normal import Normal
from meanmap.families.uniform import Uniform

__all__ = [
    "Bernoulli",
    "Beta",
    "Categorical",
    "Dirichlet",
    "Distribution",
    "Family",
    "Flat",
    "Gamma",
    "Laplace",
    "Mixture",
    "MultivariateNormal",
    "Normal",
    "PointMass",
    "Uniform",
    "from_numpyro",
    "to_numpyro",
]
