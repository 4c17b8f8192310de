"""A joint normal law learned from rows with gaps, and what it says about the gaps of others."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from meanmap.core.points import slices

__all__ = ["JointNormal"]

SWEEPS = 25
# The covariance is drawn towards its diagonal as by so many rows more.
PRIOR_ROWS = 2.0
LEAST_VARIANCE = 1e-6
# Rows are worked on so many at a time that their matrices are about this many numbers.
MOST_NUMBERS = 2_000_000


@dataclass(frozen=True, eq=False)
class JointNormal:
    """N(mean, covariance) of d numbers.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(2000, 1)) * [[1.0, 2.0]]
    >>> law = JointNormal.fit(np.where([[False, True]] * 5 + [[False, False]] * 1995, np.nan, x))
    >>> mean, deviation = law.given(np.array([[1.0, np.nan]]))
    >>> mean.round(1).tolist(), bool(deviation[0, 1] < 0.2)
    ([[1.0, 2.0]], True)
    """

    mean: np.ndarray
    covariance: np.ndarray

    @classmethod
    def fit(cls, rows: np.ndarray) -> "JointNormal":
        """By expectation and maximisation from rows (n, d) with NaN in gaps (Dempster, Laird & Rubin 1977)."""
        n = len(rows)
        there = ~np.isnan(rows)
        number, whole = np.maximum(there.sum(axis=0), 1), there.all()
        mean = np.where(there, rows, 0).sum(axis=0) / number
        variance = (np.where(there, rows - mean, 0) ** 2).sum(axis=0) / number
        law = cls(mean, np.diag(variance + LEAST_VARIANCE))
        for _ in range(1 if whole else SWEEPS):
            filled, left = (rows, np.zeros_like(law.covariance)) if whole else law._filled(rows)
            mean = filled.mean(axis=0)
            spread = (filled - mean).T @ (filled - mean) + left
            spread += PRIOR_ROWS / n * np.diag(np.diag(spread))
            law = cls(mean, spread / (n + PRIOR_ROWS) + LEAST_VARIANCE * np.eye(len(mean)))
        return law

    def given(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Each row with its gaps filled by conditional means, (n, d), and standard deviations, zero where seen."""
        means, deviations = np.empty(rows.shape), np.empty(rows.shape)
        for part, there, inverse in self._parts(rows):
            means[part] = self._means(rows[part], there, inverse)
            explained = np.einsum("ij,bjk,ik->bi", self.covariance, inverse, self.covariance, optimize=True)
            variance = np.maximum(np.diag(self.covariance) - explained, LEAST_VARIANCE)
            deviations[part] = np.where(there, 0.0, np.sqrt(variance))
        return means, deviations

    def _filled(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Conditional means, and the sum over rows of conditional covariances."""
        means, left = np.empty(rows.shape), np.zeros_like(self.covariance)
        for part, there, inverse in self._parts(rows):
            means[part] = self._means(rows[part], there, inverse)
            gaps = ~there
            each = self.covariance - self.covariance @ inverse @ self.covariance
            left += np.sum(each * (gaps[:, :, None] & gaps[:, None, :]), axis=0)
        return means, left

    def _parts(self, rows: np.ndarray) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Some rows at a time: which cells are there, and the inverse covariance of these, zero elsewhere."""
        d = rows.shape[1]
        step = max(MOST_NUMBERS // d**2, 1)
        for part in slices(len(rows), step):
            there = ~np.isnan(rows[part])
            seen = there[:, :, None] & there[:, None, :]
            yield part, there, np.linalg.inv(np.where(seen, self.covariance, np.eye(d))) * seen

    def _means(self, rows: np.ndarray, there: np.ndarray, inverse: np.ndarray) -> np.ndarray:
        off = np.where(there, rows - self.mean, 0.0)
        means = self.mean + (inverse @ off[:, :, None])[:, :, 0] @ self.covariance
        return np.where(there, rows, means)
