import meanmap.families

from . import extending as extending
from . import learned as learned
from . import models as models
from .factors.blackbox import BlackBox, Density, Product
from .factors.conjugate import Bernoulli, Categorical
from .factors.gaussian import Dot, Sum
from .factors.interval import Interval, Ordinal, Probit
from .factors.links import Logistic, Poisson, Student
from .factors.precision import Gaussian
from .factors.table import Table
from .graph import FactorGraph
from .inference.infer import infer
from .inference.posterior import Posterior
from .learned import Learned
from .oracles.laplace import Laplace
from .oracles.mcmc import MCMC
from .oracles.sampling import ImportanceSampling
from .oracles.stratified import Stratified
from .quadrature.quadrature import Quadrature
from .variables import Variable

Beta = meanmap.families.Beta
Dirichlet = meanmap.families.Dirichlet
Gamma = meanmap.families.Gamma
MultivariateNormal = meanmap.families.MultivariateNormal
Normal = meanmap.families.Normal

__all__ = [
    "MCMC",
    "Bernoulli",
    "Beta",
    "BlackBox",
    "Categorical",
    "Density",
    "Dirichlet",
    "Dot",
    "FactorGraph",
    "Gamma",
    "Gaussian",
    "ImportanceSampling",
    "Interval",
    "Laplace",
    "Learned",
    "Logistic",
    "MultivariateNormal",
    "Normal",
    "Ordinal",
    "Poisson",
    "Posterior",
    "Probit",
    "Product",
    "Quadrature",
    "Stratified",
    "Student",
    "Sum",
    "Table",
    "Variable",
    "extending",
    "infer",
    "learned",
    "models",
]
