"""Limiting distributions of quadratic statistics: weighted chi-squares, their gamma fit, and non-central ones."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from meanmap.core.bisection import bisect
from meanmap.core.points import pieces
from meanmap.stats.result import Null

__all__ = ["DistanceLaw", "gamma_null", "limit_null", "spectral_null"]

# Draws of the part orthogonal to the first direction: quantiles of the norm are accurate to a hundredth of its spread.
ACROSS = 4096
# Eigenvalues that are drawn one by one; the sum over all others hardly varies.
DRAWN = 200


def gamma_null(mean: float, variance: float, n_draws: int, generator: np.random.Generator) -> Null:
    """A gamma distribution with the mean and variance of the limit (Gretton et al. 2009, section 2.2).

    It matches two moments only: accurate in the middle, a little off in the far tail. Without variation it is a point
    mass at the mean.
    """
    if not variance > 0 or not mean > 0:
        return Null("gamma approximation", np.full(n_draws, mean), exact=False)
    shape, scale = mean**2 / variance, variance / mean
    return Null("gamma approximation", generator.gamma(shape, scale, n_draws), exact=False)


def spectral_null(eigenvalues: np.ndarray, n_draws: int, generator: np.random.Generator) -> Null:
    """Draws of Σ λᵢ zᵢ² with the eigenvalues of the centred operator (Gretton et al. 2009, theorem 1)."""
    kept = eigenvalues[eigenvalues > 1e-12 * eigenvalues.max(initial=0)]
    draws = np.zeros(n_draws)
    # In blocks: eigenvalues × draws would be the largest array of the whole test.
    for part in pieces(kept, 64):
        draws += generator.chisquare(1, (n_draws, len(part))) @ part
    return Null("weighted chi-squares", draws, exact=False)


def limit_null(kind: str, eigenvalues: np.ndarray, n_draws: int, generator: np.random.Generator) -> Null:
    """The limit with these eigenvalues: for "gamma" a gamma distribution with its moments, else a sum of χ²."""
    if kind == "gamma":
        return gamma_null(float(eigenvalues.sum()), 2 * float(eigenvalues @ eigenvalues), n_draws, generator)
    return spectral_null(eigenvalues, n_draws, generator)


@dataclass(frozen=True)
class DistanceLaw:
    """Inference about the norm of an element of a Hilbert space, which may be zero, from an estimate of the element.

    The estimate is d + e with e normal, mean zero, and a covariance with eigenvalues λ₁ ≥ λ₂ ≥ ...: T = ‖d + e‖² is
    a sum of weighted chi-squares with non-centralities that depend on where d points. Among all d of the same norm,
    those along the first eigenvector make T vary most and give the longest tails on both sides; T is then (‖d‖ + √λ₁
    z₁)² + Σ_j≥2 λ_j z_j² . Tests of ‖d‖ by that distribution keep their level for every direction, and so does the
    interval of all norms that they do not reject: it has at least its nominal coverage both for large distances and at
    zero, where the statistic degenerates and a bootstrap fails.

    Attributes
    ----------
    squared : float
        T.
    spectrum : array
        The eigenvalues λ of the estimate: they shrink as one over the number of rows.
    """

    squared: float
    spectrum: np.ndarray

    @property
    def trace(self) -> float:
        """The expected excess of T over ‖d‖²."""
        return float(self.spectrum.sum())

    @property
    def estimate(self) -> float:
        """The square root of T minus its bias, or zero."""
        return float(np.sqrt(max(self.squared - self.trace, 0.0)))

    @cached_property
    def _first(self) -> float:
        return float(np.sqrt(max(float(self.spectrum.max(initial=0.0)), np.finfo(float).tiny)))

    @cached_property
    def _across(self) -> np.ndarray:
        """Draws of Σ_j≥2 λ_j z_j², always the same."""
        rest = np.sort(np.maximum(self.spectrum, 0.0))[::-1][1:]
        draws = np.full(ACROSS, float(rest[DRAWN:].sum()))
        normals = np.random.default_rng(0).standard_normal((ACROSS, len(rest[:DRAWN])))  # drawn faster than chi-squares
        return draws + normals**2 @ rest[:DRAWN]

    def below(self, distance: float, squared: float | None = None, error: float = 0.0) -> float:
        """The probability of a T no larger than this one (or another) if the norm is `distance`.

        A normal `error` of the distance, given by its standard deviation, adds to the variance along the first
        eigenvector.
        """
        left = (self.squared if squared is None else squared) - self._across
        root = np.sqrt(np.maximum(left, 0.0))
        width = np.hypot(self._first, error)
        within = ndtr((root - distance) / width) - ndtr((-root - distance) / width)
        return float(np.mean(np.where(left > 0, within, 0.0)))

    def above(self, distance: float, error: float = 0.0) -> float:
        """The probability of a T no smaller than this one, accurate down to the smallest p-values."""
        left = self.squared - self._across
        root = np.sqrt(np.maximum(left, 0.0))
        width = np.hypot(self._first, error)
        beyond = ndtr((distance - root) / width) + ndtr((-root - distance) / width)
        return float(np.mean(np.where(left > 0, beyond, 1.0)))

    def interval(self, level: float) -> tuple[float, float]:
        """All norms that are not rejected at (1 − level)/2 on either side."""
        tail = (1 - level) / 2
        # A T smaller than is likely at distance zero is no reason to exclude values near zero.
        typical = max(self.squared, self.trace)
        low = 0.0 if self.above(0.0) > tail else self._crossing(lambda d: tail - self.above(d))
        return low, self._crossing(lambda d: self.below(d, typical) - tail)

    def draws(self, distance: float, generator: np.random.Generator, number: int, error: float = 0.0) -> np.ndarray:
        """Draws of T if the norm is `distance`, in the direction in which it varies most."""
        across = generator.choice(self._across, number)
        return (distance + np.hypot(self._first, error) * generator.standard_normal(number)) ** 2 + across

    def _crossing(self, excess: Callable[[float], float]) -> float:
        """Where a falling function of the distance is zero, by bisection."""
        most = np.sqrt(max(self.squared, 0.0)) + np.sqrt(self.trace) + 10 * self._first
        low, high = bisect(lambda x: np.asarray(excess(float(x)) > 0), np.zeros(()), np.asarray(most), 50)
        return float(low + high) / 2
