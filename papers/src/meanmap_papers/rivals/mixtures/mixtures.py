"""Batches of Gaussian mixtures, each with one bandwidth for all its components."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from meanmap.core.errors import InputError, NonFiniteError, ParameterError, ShapeError
from meanmap.core.rng import Rng
from meanmap.core.types import Array, Index, Seed

__all__ = ["Mixtures", "categorical"]


@dataclass(frozen=True, eq=False)
class Mixtures:
    """Σₖ wₖ N(μₖ, diag σ²), many of them at once.

    Attributes
    ----------
    weights : array (..., K)
        Not negative, with a positive sum; they are scaled to sum to one. Zero fills up rows of unequal length.
    means : array (..., K, d)
        μ.
    variance : array (..., d)
        σ² of each mixture. Infinity is an uninformative message.

    Examples
    --------
    >>> two = Mixtures.of([0.5, 0.5], [[-1.0], [1.0]], [0.25])
    >>> two.mean().tolist(), two.var().tolist()
    ([0.0], [1.25])
    """

    weights: np.ndarray
    means: np.ndarray
    variance: np.ndarray

    @classmethod
    def of(cls, weights: Array, means: Array, variance: Array) -> "Mixtures":
        """Checked and scaled."""
        w, m, v = (np.asarray(a, dtype=np.float64) for a in (weights, means, variance))
        if m.ndim < 2 or w.shape != m.shape[:-1] or v.shape != (*m.shape[:-2], m.shape[-1]):
            raise ShapeError(
                f"weights, means and variance have shapes {w.shape}, {m.shape} and {v.shape}; expected (..., K), "
                "(..., K, d) and (..., d)."
            )
        if not (np.isfinite(w).all() and np.isfinite(m).all()) or np.isnan(v).any():
            raise NonFiniteError("a mixture has weights, means or variances that are not finite numbers.")
        if (w < 0).any():
            raise InputError(f"a mixture has the negative weight {w.min():.3g}.")
        if (v <= 0).any():
            raise ParameterError(f"a mixture has the variance {v.min():.3g}; expected a positive one.")
        total = w.sum(axis=-1, keepdims=True)
        if not (total > 0).all():
            raise InputError("all weights of a mixture are zero: it is no distribution.")
        return cls(w / total, m, v)

    @property
    def precision(self) -> np.ndarray:
        """1 / σ², (..., d)."""
        return 1 / self.variance

    def mean(self) -> np.ndarray:
        """E x, (..., d)."""
        return np.einsum("...k,...kd->...d", self.weights, self.means)

    def var(self) -> np.ndarray:
        """The variance of each column, (..., d)."""
        centred = self.means - self.mean()[..., None, :]
        return self.variance + np.einsum("...k,...kd->...d", self.weights, centred**2)

    def log_density(self, x: np.ndarray) -> np.ndarray:
        """log p at points (..., n, d), each batch at its own or all at the same (n, d): (..., n). Cost O(n K d)."""
        squares: Any = 0.0
        for i in range(self.means.shape[-1]):
            gaps = x[..., :, None, i] - self.means[..., None, :, i]
            squares = squares + gaps**2 / self.variance[..., i, None, None]
        scale = np.log(2 * np.pi * self.variance).sum(axis=-1)[..., None] / 2
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights)
        return logsumexp(logs[..., None, :] - squares / 2, axis=-1) - scale

    def sample(self, size: int, rng: Seed = None) -> np.ndarray:
        """Draws (..., size, d), in O(K + size log K) time for each mixture of K components."""
        generator = Rng.of(rng).generator
        sums = np.cumsum(self.weights, axis=-1)
        levels = generator.random((*sums.shape[:-1], size)) * sums[..., -1:]
        each = zip(sums.reshape(-1, sums.shape[-1]), levels.reshape(-1, size), strict=True)
        chosen = np.array([np.searchsorted(*row, side="right") for row in each], dtype=int).reshape(levels.shape)
        chosen = np.minimum(chosen, sums.shape[-1] - 1)  # where rounding has put a level at the total
        means = np.take_along_axis(self.means, chosen[..., None], axis=-2)
        return means + np.sqrt(self.variance)[..., None, :] * generator.normal(size=means.shape)

    def times(self, linear: np.ndarray, precision: np.ndarray) -> "Mixtures":
        """The mixtures times exp(linearᵀ x − ½ precisionᵀ x²), arrays (..., d): mixtures again.

        A negative precision divides by a Gaussian; it must be less than that of the mixture.
        """
        own = self.precision
        both = own + precision
        if not (both > 0).all():
            raise ParameterError("a mixture is divided by a Gaussian that is narrower than its components.")
        natural = own[..., None, :] * self.means + linear[..., None, :]
        means = natural / both[..., None, :]
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights)
        logs = logs + np.sum(natural * means - own[..., None, :] * self.means**2, axis=-1) / 2
        weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
        return Mixtures(weights / weights.sum(axis=-1, keepdims=True), means, 1 / both)

    def __getitem__(self, index: Index) -> "Mixtures":
        """Some of the batch."""
        return Mixtures(self.weights[index], self.means[index], self.variance[index])


def categorical(weights: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """One draw from each row of weights (..., K), which need not sum to one."""
    sums = np.cumsum(weights, axis=-1)
    levels = generator.random((*weights.shape[:-1], 1)) * sums[..., -1:]
    # The last comparison guards against a level that rounding has put at the total.
    return np.minimum(np.sum(sums <= levels, axis=-1), weights.shape[-1] - 1)
