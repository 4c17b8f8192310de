"""Expectation propagation: a model of factors and variables, with messages of one family per variable between them.

A factor is exact, or a plain function whose messages an oracle computes: by quadrature, by sampling, or learned.
"""

from typing import TYPE_CHECKING, Any

from meanmap.ep import extending, learned, models  # noqa: F401  # ep.extending, ep.learned
from meanmap.ep.asking.ask import ask
from meanmap.ep.factors.blackbox import BlackBox, Density, Product
from meanmap.ep.factors.conjugate import Bernoulli, Categorical
from meanmap.ep.factors.gaussian import Dot, Sum
from meanmap.ep.factors.interval import Interval, Ordinal, Probit
from meanmap.ep.factors.links import Logistic, Poisson, Student
from meanmap.ep.factors.precision import Gaussian
from meanmap.ep.factors.table import Table
from meanmap.ep.graph import FactorGraph
from meanmap.ep.inference.infer import infer
from meanmap.ep.inference.posterior import Posterior
from meanmap.ep.instead import of_the_module
from meanmap.ep.learned import Learned
from meanmap.ep.oracles.laplace import Laplace
from meanmap.ep.oracles.mcmc import MCMC
from meanmap.ep.oracles.sampling import ImportanceSampling
from meanmap.ep.oracles.stratified import Stratified
from meanmap.ep.quadrature.quadrature import Quadrature
from meanmap.ep.variables import Variable
from meanmap.families import Beta, Dirichlet, Gamma, MultivariateNormal, Normal

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
    "ask",
    "infer",
    "models",
]


if not TYPE_CHECKING:  # so that type checkers refuse other names

    def __getattr__(name: str) -> Any:
        raise AttributeError(f"module 'meanmap.ep' has no attribute {name!r}{of_the_module(name)}")
