"""Beliefs about a number that are known bin by bin."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.bp.beliefs.densities import Density, pick
from meanmap.core.types import Index, Values

__all__ = ["Histogram"]


@dataclass(frozen=True, eq=False, repr=False)
class Histogram(Density):
    """A density that is constant in each bin.

    Attributes
    ----------
    edges : array (k + 1,)
        Ends of the bins, rising.
    weights : array (..., k)
        Probabilities of the bins.
    centres, spreads : array (k,), optional
        Mean and variance within each bin, for the moments; of the uniform density unless given.
    """

    edges: np.ndarray
    weights: np.ndarray
    centres: np.ndarray
    spreads: np.ndarray

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes."""
        return self.weights.shape[:-1]

    def __getitem__(self, index: Index) -> "Histogram":
        return Histogram(self.edges, self.weights[index], self.centres, self.spreads)

    def mean(self) -> Values:
        """Σ wᵢ cᵢ."""
        return (self.weights @ self.centres)[()]

    def var(self) -> Any:
        """Σ wᵢ (vᵢ + (cᵢ − m)²)."""
        mean = np.asarray(self.mean())[..., None]
        return (self.weights * (self.spreads + (self.centres - mean) ** 2)).sum(axis=-1)[()]

    def mode(self) -> Values:
        """The centre of the bin of highest density."""
        return self.centres[(self.weights / np.diff(self.edges)).argmax(axis=-1)]

    def _density(self, x: np.ndarray) -> np.ndarray:
        heights = self.weights / np.diff(self.edges)
        at = np.clip(np.searchsorted(self.edges, x, side="right") - 1, 0, len(self.centres) - 1)
        inside = (x >= self.edges[0]) & (x <= self.edges[-1])
        return np.where(inside, heights[..., at], 0.0)

    def _cdf(self, x: np.ndarray) -> np.ndarray:
        rising = np.concatenate([np.zeros((*self.batch, 1)), np.cumsum(self.weights, axis=-1)], axis=-1)
        at = np.clip(np.searchsorted(self.edges, x, side="right") - 1, 0, len(self.centres) - 1)
        share = np.clip((x - self.edges[at]) / np.diff(self.edges)[at], 0, 1)
        if x.ndim == 1:
            return rising[..., at] + share * self.weights[..., at]
        return np.take_along_axis(rising, at, -1) + share * np.take_along_axis(self.weights, at, -1)

    def _range(self) -> tuple[np.ndarray, np.ndarray]:
        return np.full(self.batch, self.edges[0]), np.full(self.batch, self.edges[-1])

    def _sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        chosen = pick(self.weights, n, rng)
        return self.edges[chosen] + np.diff(self.edges)[chosen] * rng.random(chosen.shape)
