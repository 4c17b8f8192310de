"""Beliefs about a number that are known bin by bin."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.bp.beliefs.densities import Density, pick
from meanmap.core.arrays import read_levels
from meanmap.core.types import Array, Index, Numbers

__all__ = ["Histogram"]


@dataclass(frozen=True, eq=False, repr=False)
class Histogram(Density):
    """A density that is constant in each bin, with points that have a probability of their own.

    Attributes
    ----------
    edges : array (k + 1,)
        Ends of the bins, rising.
    weights : array (..., k)
        Probabilities of the bins.
    centres, spreads : array (k,), optional
        Mean and variance within each bin, for the moments; of the uniform density unless given.
    points : array (k,) of bool, optional
        The bins whose mass lies at their right end. The density there is that of the bin.

    Examples
    --------
    >>> belief = Histogram.of(np.array([0.0, 0.9, 1.0]), np.array([0.5, 0.5]), np.array([False, True]))
    >>> belief.quantile([0.25, 0.6, 0.9]).tolist(), belief.cdf([0.95, 1.0]).tolist()
    ([0.45, 1.0, 1.0], [0.5, 1.0])
    """

    edges: np.ndarray
    weights: np.ndarray
    centres: np.ndarray
    spreads: np.ndarray
    points: np.ndarray | None = None

    @classmethod
    def of(cls, edges: np.ndarray, weights: np.ndarray, points: np.ndarray) -> "Histogram":
        """A histogram with the moments of uniform bins, and of points."""
        centres = np.where(points, edges[1:], (edges[1:] + edges[:-1]) / 2)
        return cls(edges, weights, centres, np.where(points, 0.0, np.diff(edges) ** 2 / 12), points)

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes."""
        return self.weights.shape[:-1]

    def __getitem__(self, index: Index) -> "Histogram":
        return Histogram(self.edges, self.weights[index], self.centres, self.spreads, self.points)

    def mean(self) -> Array:
        """Σ wᵢ cᵢ."""
        return (self.weights @ self.centres)[()]

    def var(self) -> Any:
        """Σ wᵢ (vᵢ + (cᵢ − m)²)."""
        mean = np.asarray(self.mean())[..., None]
        return (self.weights * (self.spreads + (self.centres - mean) ** 2)).sum(axis=-1)[()]

    def mode(self) -> Array:
        """The centre of the bin of highest density."""
        return self.centres[(self.weights / np.diff(self.edges)).argmax(axis=-1)]

    def quantile(self, q: Numbers | Sequence[float]) -> Array:
        """Quantiles, (...,) + the shape of q: the least x with a probability of at least q up to it."""
        levels = read_levels(q)
        rising = self._rising()
        wanted = levels.ravel() * rising[..., -1:]
        bins = (rising[..., None, 1:] < wanted[..., None]).sum(axis=-1)
        bins = np.minimum(bins, len(self.centres) - 1)
        before, mass = np.take_along_axis(rising, bins, -1), np.take_along_axis(self.weights, bins, -1)
        share = np.clip((wanted - before) / np.where(mass > 0, mass, 1), 0, 1)
        return self._within(bins, share).reshape((*self.batch, *levels.shape))[()]

    def _density(self, x: np.ndarray) -> np.ndarray:
        heights = self.weights / np.diff(self.edges)
        inside = (x >= self.edges[0]) & (x <= self.edges[-1])
        return np.where(inside, heights[..., self._bins(x)], 0.0)

    def _cdf(self, x: np.ndarray) -> np.ndarray:
        rising, at = self._rising(), self._bins(x)
        share = np.clip((x - self.edges[at]) / np.diff(self.edges)[at], 0, 1)
        if self.points is not None:
            share = np.where(self.points[at], x >= self.edges[at + 1], share)
        if x.ndim == 1:
            return rising[..., at] + share * self.weights[..., at]
        return np.take_along_axis(rising, at, -1) + share * np.take_along_axis(self.weights, at, -1)

    def _range(self) -> tuple[np.ndarray, np.ndarray]:
        return np.full(self.batch, self.edges[0]), np.full(self.batch, self.edges[-1])

    def _sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        chosen = pick(self.weights, n, rng)
        return self._within(chosen, rng.random(chosen.shape))

    def _within(self, bins: np.ndarray, share: np.ndarray) -> np.ndarray:
        """Numbers in bins, so far from their left ends; the points themselves."""
        found = self.edges[bins] + np.diff(self.edges)[bins] * share
        return found if self.points is None else np.where(self.points[bins], self.edges[bins + 1], found)

    def _bins(self, x: np.ndarray) -> np.ndarray:
        """Bins hold their right ends, not their left ones."""
        return np.clip(np.searchsorted(self.edges, x, side="left") - 1, 0, len(self.centres) - 1)

    def _rising(self) -> np.ndarray:
        return np.concatenate([np.zeros((*self.batch, 1)), np.cumsum(self.weights, axis=-1)], axis=-1)
