"""Ridge regression on features, of every ridge from one decomposition of their covariance: scores, weights, leverages.

The covariance squares what is small: to eight digits its smallest eigenvalues are those that a ridge of a hundred
millionth of the trace leaves of them. `Spectrum` has all digits, whatever the ridge, at three times the cost.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from meanmap.core.points import slices
from meanmap.linalg.cross_validation import RIDGES

__all__ = ["Rotated"]

# Columns of residuals that are computed at once.
COLUMNS = 32


@dataclass(frozen=True, eq=False)
class Rotated:
    """Features Φ (n, r) in the axes of ΦᵀΦ, whose eigenvalues are `values` (r,).

    Features and targets are residuals of a first regression, whose leverages `taken` (n,) are: a row is left out of
    both.
    """

    axes: np.ndarray
    values: np.ndarray
    features: np.ndarray
    taken: np.ndarray

    @classmethod
    def of(cls, features: np.ndarray, taken: np.ndarray) -> "Rotated":
        """Cost 3 n r² and an eigendecomposition."""
        values, axes = np.linalg.eigh(features.T @ features)
        return cls(axes, np.maximum(values, 0.0), features @ axes, taken)

    @property
    def shifts(self) -> np.ndarray:
        """The grid of shifts n λ of the eigenvalues."""
        return RIDGES * self.values.sum()

    @cached_property
    def _left(self) -> np.ndarray:
        """What leverages leave of one, for each row and shift, (n, 25)."""
        leverages = self.features**2 @ (1 / (self.values[:, None] + self.shifts))
        return np.maximum(1 - self.taken[:, None] - leverages, np.finfo(float).eps)

    def leave_one_out(self, targets: np.ndarray) -> np.ndarray:
        """The mean squared leave-one-out error of targets (n, q) for each shift of the grid."""
        cross, scores = self.features.T @ targets, []
        for part in slices(len(self.shifts), max(COLUMNS // targets.shape[1], 1)):
            inverse, left = 1 / (self.values[:, None] + self.shifts[part]), self._left[:, part]
            weights = (inverse[:, :, None] * cross[:, None]).reshape(len(cross), -1)
            residuals = targets[:, None] - (self.features @ weights).reshape(*left.shape, -1)
            scores.append(np.mean(np.einsum("nsq,nsq->ns", residuals, residuals) / left**2, axis=0))
        return np.concatenate(scores)

    def regression(self, targets: np.ndarray, shift: float) -> tuple[np.ndarray, np.ndarray]:
        """Weights (r, q) of the features as they were, and the leverage (n,) of each row."""
        shrunk = 1 / (self.values + shift)
        return self.axes @ (shrunk[:, None] * (self.features.T @ targets)), self.features**2 @ shrunk
