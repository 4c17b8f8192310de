"""Regressions for likelihoods: a straight line, and a kernel's part where it is worth it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.bp.edges.coordinates import MOST_FEATURES, TOLERANCE, coordinates, rescaled, transformed
from meanmap.bp.edges.samples import NodeSample
from meanmap.core.points import count, in_columns, rows, spread_rows
from meanmap.core.types import Data, Points
from meanmap.features.lowrank import PivotedCholesky
from meanmap.learning.choice import least
from meanmap.linalg.ridge import Ridge
from meanmap.linalg.ridge_path import choose_ridge_features

__all__ = ["MOST_ROWS", "Regression"]

# Likelihoods are learned from up to so many pairs: one function of two variables needs no more.
MOST_ROWS = 4000
# Multiples of the median distance among which lengthscales are chosen.
LENGTHSCALES = (0.25, 0.5, 1.0, 2.0)
# The least share of a residual that leaving its point out may leave.
LEAST = 1e-3


@dataclass(frozen=True, eq=False)
class Regression:
    """x ↦ a + b·x + φ(x)ᵀ w by least squares: w with a ridge, and a line without where x is a number or vector.

    Whatever error the regression has, all likelihoods share it: the kernel's part, of least leave-one-out error, is
    kept only where it lowers that error of the line by more than two standard errors. Leave-one-out residuals are
    exact, but for the choice of features.
    """

    sample: NodeSample
    line: np.ndarray
    features: PivotedCholesky | None
    weights: np.ndarray | None

    @classmethod
    def fit(cls, sample: NodeSample, targets: np.ndarray) -> tuple["Regression", np.ndarray]:
        """The regression, and its leave-one-out residuals at (up to `MOST_ROWS` of) the points."""
        chosen = spread_rows(len(targets), MOST_ROWS)
        points, values = rows(sample.points, chosen), targets[chosen]
        design = _design(points)
        basis = np.linalg.qr(design)[0]
        line = np.linalg.lstsq(design, values)[0]
        straight = values - design @ line
        free = 1 - np.sum(basis**2, axis=1)
        left = straight / np.maximum(free, LEAST)[:, None]
        scale = np.maximum(values.std(axis=0), np.finfo(float).tiny)

        def score(multiple: float) -> tuple[np.ndarray, Any]:
            features = coordinates(rescaled(sample, multiple), points, TOLERANCE, MOST_FEATURES)
            phi = transformed(features, points)
            beyond = phi - basis @ (basis.T @ phi)  # of the features, what no line is: the line is not shrunk
            path = choose_ridge_features(beyond, straight / scale)
            return np.asarray(path.scores), (features, phi, beyond, float(path.best))

        features, phi, beyond, ridge = least(LENGTHSCALES if sample.searched else (1.0,), score)[2]
        solved = Ridge.factor_features(beyond, ridge=ridge).solve(beyond.T).T / len(phi)
        weights = solved.T @ straight
        curved = (straight - beyond @ weights) / np.maximum(free - np.sum(beyond * solved, axis=1), LEAST)[:, None]
        gain = np.sum((left / scale) ** 2 - (curved / scale) ** 2, axis=1)
        if gain.mean() > 2 * gain.std() / np.sqrt(len(gain)):
            line = np.linalg.lstsq(design, values - phi @ weights)[0]
            return cls(sample, line, features, weights), curved
        return cls(sample, line, None, None), left

    def __call__(self, points: Data) -> np.ndarray:
        """The regression at points that were read, (n, d)."""
        straight = _design(points) @ self.line
        if self.features is None or self.weights is None:
            return straight
        return straight + transformed(self.features, points) @ self.weights


def _design(points: Points) -> np.ndarray:
    """Ones, and the columns of numbers or vectors."""
    ones = np.ones((count(points), 1))
    is_vector = in_columns(points) and points.dtype.kind == "f"
    return np.concatenate([ones, points], axis=1) if is_vector else ones
