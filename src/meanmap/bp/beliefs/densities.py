"""Beliefs about a number that are known as densities, with the read-outs of embeddings."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.arrays import as_array, check_finite, parameter, read_levels
from meanmap.core.bisection import bisect
from meanmap.core.errors import ShapeError
from meanmap.core.intervals import Intervals
from meanmap.core.points import slices
from meanmap.core.rng import Rng
from meanmap.core.types import Array, Index, Numbers, Seed
from meanmap.core.values import Value
from meanmap.plots.beliefs import MOST_QUERIES, BeliefPaged, of_number

__all__ = ["Density", "NormalMixture", "pick"]

BISECTIONS = 60
ASCENT_STEPS = 100
# The search for modes starts from at most this many components, the best ones; in a batch, this many pairs at a time.
CLIMBERS, MOST_PAIRS = 20, 10_000_000
# Densities divide by at least this variance: small, but its square root and inverse are far from the ends of floats.
LEAST_VARIANCE = 1e-100


class Density(BeliefPaged, Intervals, Value, ABC):
    """A batch (...) of densities on the line."""

    @property
    @abstractmethod
    def batch(self) -> tuple[int, ...]:
        """The leading axes, one for B queries."""

    @abstractmethod
    def __getitem__(self, index: Index) -> "Density":
        """Select one or several members of the batch."""

    @abstractmethod
    def mean(self) -> Array:
        """E x, (...,)."""

    @abstractmethod
    def var(self) -> Any:
        """The variance, (...,)."""

    @abstractmethod
    def mode(self) -> Array:
        """The point of the largest density, (...,)."""

    @abstractmethod
    def _density(self, x: np.ndarray) -> np.ndarray:
        """At points that broadcast against (..., m)."""

    @abstractmethod
    def _cdf(self, x: np.ndarray) -> np.ndarray:
        """At points that broadcast against (..., m)."""

    @abstractmethod
    def _range(self) -> tuple[np.ndarray, np.ndarray]:
        """An interval, ends (...,), with all of the mass up to rounding error."""

    @abstractmethod
    def _sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draws by the distribution's own method, (..., n)."""

    def _in_numbers(self) -> list[dict[str, Any]]:
        each = [self[at] for at in list(np.ndindex(self.batch))[:MOST_QUERIES]] if self.batch else [self]
        return [of_number(one) for one in each]

    def sd(self) -> Any:
        """The standard deviation, (...,)."""
        return np.sqrt(self.var())

    def density(self, grid: Array) -> Array:
        """The density at each point of `grid`, (..., m)."""
        return self._density(_line(grid, "grid"))

    def cdf(self, grid: Array) -> Array:
        """The probability of values up to each point of `grid`, (..., m)."""
        return self._cdf(_line(grid, "grid"))

    def quantile(self, q: Numbers | Sequence[float]) -> Array:
        """Quantiles, (...,) + the shape of q: bisections of the distribution function."""
        levels = read_levels(q)
        low, high = (np.repeat(end[..., None], levels.size, axis=-1) for end in self._range())
        ends = bisect(lambda x: self._cdf(x) < levels.ravel(), low, high, BISECTIONS)
        return self._between(*ends).reshape((*self.batch, *levels.shape))[()]

    def _between(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """The number in narrow intervals around quantiles, ends (..., m)."""
        return high

    def sample(self, n: int, rng: Seed = None) -> Array:
        """`n` independent draws, (..., n)."""
        n = int(parameter(n, "n", axes=0, integer=True))
        return self._sample(n, Rng.of(rng).generator)


@dataclass(frozen=True, eq=False, repr=False)
class NormalMixture(Density):
    """Σₖ πₖ N(x; mₖ, vₖ).

    Attributes
    ----------
    weights, means, variances : array (..., K)
        π ≥ 0 sums to one; v = 0 where one number has a probability of its own, at which the density is huge.

    Examples
    --------
    >>> belief = NormalMixture(np.array([0.5, 0.5]), np.array([-1.0, 1.0]), np.array([0.1, 0.1]))
    >>> float(belief.mean()), round(float(belief.var()), 3)
    (0.0, 1.1)
    """

    weights: np.ndarray
    means: np.ndarray
    variances: np.ndarray

    @classmethod
    def normal(cls, mean: Array, variance: Array) -> "NormalMixture":
        """Normal distributions: one component for each member of the batch."""
        mean, variance = (np.asarray(value, dtype=float)[..., None] for value in (mean, variance))
        return cls(np.ones(mean.shape), mean, variance)

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes."""
        return self.weights.shape[:-1]

    def __getitem__(self, index: Index) -> "NormalMixture":
        return NormalMixture(self.weights[index], self.means[index], self.variances[index])

    def mean(self) -> Array:
        """Σ πₖ mₖ."""
        return (self.weights * self.means).sum(axis=-1)[()]

    def var(self) -> Any:
        """Σ πₖ (vₖ + (mₖ − m)²)."""
        mean = np.asarray(self.mean())[..., None]
        return (self.weights * (self.variances + (self.means - mean) ** 2)).sum(axis=-1)[()]

    def mode(self) -> Array:
        """The best of the points to which mean shift climbs from components (Carreira-Perpiñán 2000)."""
        at_once = max(MOST_PAIRS // self.means.shape[-1] ** 2, 1)
        if self.batch and len(self.means) > at_once:
            return np.concatenate([np.asarray(self[part].mode()) for part in slices(len(self.means), at_once)])
        x = self.means
        if x.shape[-1] > CLIMBERS:
            best = np.argsort(-self._density(x), axis=-1)[..., :CLIMBERS]
            x = np.take_along_axis(x, best, axis=-1)
        if x.shape[-1] > 1:
            for _ in range(ASCENT_STEPS):
                pull = self._parts(x) / self._spreads
                mass = np.maximum(pull.sum(axis=-1), np.finfo(float).tiny)
                x = (pull * self.means[..., None, :]).sum(axis=-1) / mass
        best = self._density(x).argmax(axis=-1)
        return np.take_along_axis(x, best[..., None], axis=-1)[..., 0][()]

    def _parts(self, x: np.ndarray) -> np.ndarray:
        """πₖ N(x; mₖ, vₖ), (..., m, K)."""
        squares = (x[..., None] - self.means[..., None, :]) ** 2 / self._spreads
        return self.weights[..., None, :] * np.exp(-squares / 2) / np.sqrt(2 * np.pi * self._spreads)

    @property
    def _spreads(self) -> np.ndarray:
        """Variances that one can divide by, (..., 1, K)."""
        return np.maximum(self.variances[..., None, :], LEAST_VARIANCE)

    def _density(self, x: np.ndarray) -> np.ndarray:
        return self._parts(x).sum(axis=-1)

    def _cdf(self, x: np.ndarray) -> np.ndarray:
        from scipy.special import ndtr

        away = x[..., None] - self.means[..., None, :]
        below = np.where(self.variances[..., None, :] > 0, ndtr(away / np.sqrt(self._spreads)), away >= 0)
        return (self.weights[..., None, :] * below).sum(axis=-1)

    def _range(self) -> tuple[np.ndarray, np.ndarray]:
        reach = 10 * np.sqrt(self.variances)
        return (self.means - reach).min(axis=-1), (self.means + reach).max(axis=-1)

    def _between(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """A number with a probability of its own, if there is one in the interval."""
        points = np.where(self.variances > 0, np.inf, self.means)[..., None, :]
        first = np.where(points >= low[..., None], points, np.inf).min(axis=-1)
        return np.where(first <= high, first, high)

    def _sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        chosen = pick(self.weights, n, rng)
        mean, variance = (np.take_along_axis(value, chosen, axis=-1) for value in (self.means, self.variances))
        return mean + np.sqrt(variance) * rng.normal(size=mean.shape)


def pick(weights: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Positions drawn with probabilities (..., K): (..., n)."""
    rising = np.cumsum(weights, axis=-1)
    uniform = rng.random((*weights.shape[:-1], n)) * rising[..., -1:]
    return np.minimum((uniform[..., None] >= rising[..., None, :]).sum(axis=-1), weights.shape[-1] - 1)


def _line(grid: Array, argument: str) -> np.ndarray:
    array = as_array(grid, argument).astype(float)
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if array.ndim != 1:
        raise ShapeError(f"{argument} has shape {array.shape}; expected (m,): one number for each point.")
    check_finite(array, argument)
    return array
