"""Expectation propagation: a model of factors and variables, and messages between them, one family a variable.

A factor is exact, or a plain function whose messages an oracle computes: by quadrature, by sampling, or learned.
"""

from meanmap.ep import learned, models
from meanmap.ep.ask import ask
from meanmap.ep.blackbox import BlackBox, Density, Product
from meanmap.ep.conjugate import Bernoulli, Categorical
from meanmap.ep.derivatives import from_log_z_derivatives, log_z_derivatives
from meanmap.ep.factor import Answer, Factor
from meanmap.ep.gaussian import Dot, Sum
from meanmap.ep.graph import FactorGraph
from meanmap.ep.host import HostOracle
from meanmap.ep.infer import infer
from meanmap.ep.interval import Interval, Ordinal, Probit
from meanmap.ep.laplace import Laplace
from meanmap.ep.learned import Learned
from meanmap.ep.links import Logistic, Poisson, Student
from meanmap.ep.mcmc import MCMC
from meanmap.ep.oracle import Oracle
from meanmap.ep.posterior import Posterior
from meanmap.ep.precision import Gaussian, GaussianPrecision
from meanmap.ep.quadrature import Quadrature
from meanmap.ep.questions import Questions
from meanmap.ep.sampling import ImportanceSampling
from meanmap.ep.stratified import Stratified
from meanmap.ep.table import Table
from meanmap.ep.variables import Variable
from meanmap.families import Beta, Dirichlet, Gamma, MultivariateNormal, Normal

__all__ = [
    "MCMC",
    "Answer",
    "Bernoulli",
    "Beta",
    "BlackBox",
    "Categorical",
    "Density",
    "Dirichlet",
    "Dot",
    "Factor",
    "FactorGraph",
    "Gamma",
    "Gaussian",
    "GaussianPrecision",
    "HostOracle",
    "ImportanceSampling",
    "Interval",
    "Laplace",
    "Learned",
    "Logistic",
    "MultivariateNormal",
    "Normal",
    "Oracle",
    "Ordinal",
    "Poisson",
    "Posterior",
    "Probit",
    "Product",
    "Quadrature",
    "Questions",
    "Stratified",
    "Student",
    "Sum",
    "Table",
    "Variable",
    "ask",
    "from_log_z_derivatives",
    "infer",
    "learned",
    "log_z_derivatives",
    "models",
]
