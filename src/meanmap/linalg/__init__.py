"""Linear algebra without kernels: moments that merge, low-rank factors, ridge solves, online regression."""

from meanmap.linalg.moments import Moments
from meanmap.linalg.online import OnlineRegression
from meanmap.linalg.pivoted import PivotedCholesky, pivoted_cholesky
from meanmap.linalg.pivoted_fixed import pivoted_cholesky_fixed
from meanmap.linalg.ridge import Ridge
from meanmap.linalg.ridge_path import RidgePath, choose_ridge, choose_ridge_features

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
