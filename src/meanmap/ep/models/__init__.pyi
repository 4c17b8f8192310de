from .binary import BinaryRegression, logistic_regression, probit_regression
from .classification import GPClassification, gp_classification
from .counts import CountRegression, poisson_regression
from .ordinal import OrdinalRegression, ordinal_regression
from .programs import Program, compound_gamma, simulator
from .ranking import Ranking, ranking
from .regression import Regression
from .robust import RobustRegression, robust_regression
from .summary import Summary

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
