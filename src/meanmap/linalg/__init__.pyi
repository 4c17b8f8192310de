from .moments import Moments
from .online import OnlineRegression
from .pivoted import PivotedCholesky, pivoted_cholesky
from .pivoted_fixed import pivoted_cholesky_fixed
from .ridge import Ridge
from .ridge_path import RidgePath, choose_ridge, choose_ridge_features

__all__ = [
    "Moments",
    "OnlineRegression",
    "PivotedCholesky",
    "Ridge",
    "RidgePath",
    "choose_ridge",
    "choose_ridge_features",
    "pivoted_cholesky",
    "pivoted_cholesky_fixed",
]
