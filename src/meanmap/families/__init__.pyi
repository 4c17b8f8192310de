from .adapters import from_numpyro, to_numpyro
from .base import Distribution
from .bernoulli import Bernoulli
from .beta import Beta
from .categorical import Categorical
from .dirichlet import Dirichlet
from .family import Family
from .gamma import Gamma
from .laplace import Laplace
from .limits import Flat, PointMass
from .mixture import Mixture
from .multivariate_normal import MultivariateNormal
from .normal import Normal
from .uniform import Uniform

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
