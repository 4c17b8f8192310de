"""A joint normal distribution learned from rows with gaps, and what it says about the gaps of others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meanmap.bp.conditionals.products import Products

__all__ = ["JointNormal", "laws_of", "parts_of", "products_of"]

SWEEPS = 25
PARTS = 3
# The covariance is shrunk towards its diagonal as if by this many additional rows per column, up to a maximum.
PRIOR_ROWS, MOST_PRIOR_ROWS = 0.1, 2.0
LEAST_VARIANCE = 1e-6
# Rows are processed in parts whose matrices have about MOST_NUMBERS entries; rows whose numbers of gaps differ by at
# most one in ALIKE are processed together.
MOST_NUMBERS, ALIKE = 2_000_000, 4


@dataclass(frozen=True, eq=False)
class JointNormal:
    """N(mean, covariance) of d numbers, and of products of these that are known where their factors are.

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
    products: Products | None = None

    @classmethod
    def fit(cls, rows: np.ndarray, products: Products | None = None) -> "JointNormal":
        """Fit by the EM algorithm to rows (n, d) with NaN in gaps (Dempster, Laird & Rubin 1977)."""
        rows = rows if products is None else products.beside(rows)
        n = len(rows)
        there = ~np.isnan(rows)
        prior = min(PRIOR_ROWS * rows.shape[1], MOST_PRIOR_ROWS)
        number, whole = np.maximum(there.sum(axis=0), 1), there.all()
        mean = np.where(there, rows, 0).sum(axis=0) / number
        variance = (np.where(there, rows - mean, 0) ** 2).sum(axis=0) / number
        law = cls(mean, np.diag(variance + LEAST_VARIANCE))
        for _ in range(1 if whole else SWEEPS):
            filled, left = (rows, np.zeros_like(law.covariance)) if whole else law._filled(rows)
            mean = filled.mean(axis=0)
            spread = (filled - mean).T @ (filled - mean) + left
            spread += prior / n * np.diag(np.diag(spread))
            law = cls(mean, spread / (n + prior) + LEAST_VARIANCE * np.eye(len(mean)))
        return replace(law, products=products)

    def given(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows with gaps filled by conditional means, (n, d), and standard deviations, zero for known cells."""
        wide, d = rows if self.products is None else self.products.beside(rows), rows.shape[1]
        means, deviations = wide.copy(), np.zeros(wide.shape)
        for here, means_here, covariance, real in self._gaps(wide):
            row, place = here[0][real], here[1][real]
            means[row, place] = means_here[real]
            variance = np.diagonal(covariance, axis1=1, axis2=2)[real]
            deviations[row, place] = np.sqrt(np.maximum(variance, LEAST_VARIANCE))
        return means[:, :d], deviations[:, :d]

    def _filled(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Conditional means, and the sum over rows of conditional covariances."""
        d = rows.shape[1]
        means, left = rows.copy(), np.zeros(d * d)
        for here, means_here, covariance, real in self._gaps(rows):
            means[here[0][real], here[1][real]] = means_here[real]
            places, both = here[1], real[:, :, None] & real[:, None, :]
            pairs = places[:, :, None] * d + places[:, None, :]
            left += np.bincount(pairs[both], covariance[both], d * d)
        return means, left.reshape(d, d)

    def _gaps(self, rows: np.ndarray) -> Iterator[tuple[tuple[np.ndarray, np.ndarray], np.ndarray, np.ndarray, Any]]:
        """Some rows with about as many gaps at a time: the places (b, m) of these, by row and column, conditional means
        (b, m) and covariances (b, m, m) there, and which of the places are gaps.

        The covariance of what is in gaps is the inverse of their part of the precision, one for rows with equal gaps.
        """
        gaps, precision = np.isnan(rows), np.linalg.inv(self.covariance)
        number, pattern = gaps.sum(axis=1), _patterns(gaps)
        order = np.argsort(number, kind="stable")
        sizes, start = number[order], int(np.searchsorted(number[order], 1))
        while start < len(rows):
            most = sizes[start] + sizes[start] // ALIKE
            stop = min(np.searchsorted(sizes, most, side="right"), start + max(MOST_NUMBERS // most**2, 1))
            part, start = order[start:stop], int(stop)
            real = np.arange(min(most, gaps.shape[1])) < number[part, None]
            places = np.zeros(real.shape, dtype=np.int64)
            places[real] = np.nonzero(gaps[part])[1]
            _, first, which = np.unique(pattern[part], return_index=True, return_inverse=True)
            there, kept = places[first], real[first]
            among = precision[there[:, :, None], there[:, None, :]]
            alone = np.where(kept[:, :, None] & kept[:, None, :], among, np.eye(there.shape[1]))
            covariance = np.linalg.inv(alone)[which]
            heard = np.where(gaps[part], 0.0, rows[part] - self.mean) @ precision
            heard = np.where(real, np.take_along_axis(heard, places, axis=1), 0.0)
            means = self.mean[places] - (covariance @ heard[:, :, None])[:, :, 0]
            yield (np.broadcast_to(part[:, None], places.shape), places), means, covariance, real


def _patterns(gaps: np.ndarray) -> np.ndarray:
    """The number of the pattern of gaps of each row (n, d), (n,)."""
    packed = np.ascontiguousarray(np.packbits(gaps, axis=1))
    return np.unique(packed.view(f"S{packed.shape[1]}"), return_inverse=True)[1].ravel()


def parts_of(n: int) -> np.ndarray:
    """The part (n,) of each row, always the same."""
    return np.random.default_rng(0).permutation(n) % PARTS


def laws_of(
    rows: np.ndarray, counts: np.ndarray | None = None, products: Products | None = None
) -> tuple[JointNormal, ...]:
    """A distribution for each part of the rows, learned without it, from rows that count so often (n,), or once."""
    part = parts_of(len(rows))
    often = np.ones(len(rows), dtype=int) if counts is None else counts
    return tuple(
        JointNormal.fit(np.repeat(rows, np.where(part == p, 0, often), axis=0), products) for p in range(PARTS)
    )


def products_of(rows: np.ndarray, laws: Sequence[JointNormal], blocks: Sequence[range]) -> Products:
    """Products on which columns depend beyond what distributions of these rows say, each of rows that it has not
    learned.
    """
    part, filled, left = parts_of(len(rows)), rows.copy(), np.empty(rows.shape)
    for p, law in enumerate(laws):
        filled[part == p] = law.given(rows[part == p])[0]
        # At an observed number, Σ⁻¹(x − μ) with gaps filled in is its difference from the mean given the others, over
        # the variance given the others, whatever is missing.
        left[part == p] = (filled[part == p] - law.mean) @ np.linalg.inv(law.covariance)
    return Products.chosen(rows, filled, left, blocks)
