"""Ridge regression on features: scores, weights and leverages for every ridge from one decomposition.

The covariance squares the condition number: with a ridge of 10⁻⁸ of its trace, eight digits are correct. `Spectrum` is
accurate for any ridge, at three times the cost.
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

    Features and targets are residuals of a first regression with leverages `taken` (n,); each row is left out of both.
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
        """One minus the leverages, for each row and shift, (n, 25)."""
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
        """Weights (r, q) of the original features, and the leverage (n,) of each row."""
        shrunk = 1 / (self.values + shift)
        return self.axes @ (shrunk[:, None] * (self.features.T @ targets)), self.features**2 @ shrunk
