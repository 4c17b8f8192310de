"""Ready models, each a few lines of variables and factors: regressions, Gaussian processes, rankings, programs."""

from meanmap.ep.models.binary import BinaryRegression, logistic_regression, probit_regression
from meanmap.ep.models.classification import GPClassification, gp_classification
from meanmap.ep.models.counts import CountRegression, poisson_regression
from meanmap.ep.models.ordinal import OrdinalRegression, ordinal_regression
from meanmap.ep.models.programs import Program, compound_gamma, simulator
from meanmap.ep.models.ranking import Ranking, ranking
from meanmap.ep.models.regression import Regression
from meanmap.ep.models.robust import RobustRegression, robust_regression
from meanmap.ep.models.summary import Summary

__all__ = [
    "BinaryRegression",
    "CountRegression",
    "GPClassification",
    "OrdinalRegression",
    "Program",
    "Ranking",
    "Regression",
    "RobustRegression",
    "Summary",
    "compound_gamma",
    "gp_classification",
    "logistic_regression",
    "ordinal_regression",
    "poisson_regression",
    "probit_regression",
    "ranking",
    "robust_regression",
    "simulator",
]
