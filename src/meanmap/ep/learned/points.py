"""Incoming messages as points: distributions for kernels, rows of numbers for forests and networks, and their range."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from meanmap.core.points import bucket, count, pad, rows
from meanmap.core.types import Data, Points
from meanmap.ep.learned import vectors
from meanmap.families import Family, MultivariateNormal, Normal, PointMass

__all__ = ["Range", "coordinates", "in_bucket", "laws", "thinned", "varying"]

# A message counts as outside if it lies beyond the observed range by more than this share of the range.
_MARGIN = 0.1
# Correlations beyond this are as good as 1.
_TIED = 1 - 1e-12


def in_bucket(function: Callable[[Any], Any], batch: Data) -> np.ndarray:
    """A function of a batch, computed at a size of a short list, so that a new size seldom compiles anything."""
    n = count(batch)
    return jax.tree.map(lambda leaf: np.asarray(leaf)[:n], function(pad(batch, bucket(n))))


def coordinates(incoming: tuple[Any, ...]) -> np.ndarray:
    """Rows of numbers: for each message mean and log variance where it spreads like a Normal, and given values.

    A Gamma and a Dirichlet are described in log x and a Beta in logit x, where spreads over many decades are alike; a
    normal vector by means, log variances and the inverse hyperbolic tangents of its correlations.
    """
    columns = []
    for value in incoming:
        covariance = None
        if not isinstance(value, Family):
            columns.append(np.reshape(value, (len(value), -1)))
            continue
        if isinstance(value, Normal):
            mean, variance = value.precision_mean / value.precision, 1 / value.precision
        elif isinstance(value, MultivariateNormal):
            mean, covariance = vectors.moments(value)
            variance = np.diagonal(covariance, axis1=1, axis2=2)
        else:
            mean, variance = in_bucket(_moments, value)
        columns += [mean.reshape(len(mean), -1), np.log(variance.reshape(len(mean), -1))]
        if covariance is not None:
            rows, others = np.triu_indices(variance.shape[1], 1)
            together = covariance[:, rows, others] / np.sqrt(variance[:, rows] * variance[:, others])
            columns.append(np.arctanh(np.clip(together, -_TIED, _TIED)))
    return np.concatenate(columns, axis=1)


def _moments(law: Family) -> tuple[Any, Any]:
    place = law.coordinates[-1]
    return law.mean_in(place), law.variance_in(place)


def varying(incoming: tuple[Any, ...]) -> tuple[int, ...]:
    """The positions whose messages are not all equal: the others do not distinguish members."""
    found = []
    for at, value in enumerate(incoming):
        leaves = [np.asarray(leaf).reshape(len(leaf), -1) for leaf in jax.tree.leaves(value)]
        if any((leaf != leaf[:1]).any() for leaf in leaves):
            found.append(at)
    return tuple(found)


def laws(
    incoming: tuple[Any, ...],
    positions: tuple[int, ...],
    as_normal: bool = False,
    axes: dict[int, np.ndarray] | None = None,
) -> tuple[Any, ...]:
    """The messages at some positions as distributions with an embedding: a given number is a point mass.

    With `as_normal` every message about a number is replaced by the Normal of its mean and variance, as the authors of
    the paper do. Vectors at the positions of `axes` are turned into these.
    """
    found: list[Any] = []
    for at in positions:
        value = incoming[at]
        if not isinstance(value, Family):
            numbers = np.reshape(value, (len(value), -1))
            found.append(PointMass(numbers[:, 0]) if numbers.shape[1] == 1 else PointMass(numbers, event_axes=1))
        elif isinstance(value, MultivariateNormal):
            found.append(vectors.in_axes(value, axes[at]) if axes else value)
        elif as_normal and not (isinstance(value, Normal) or value.event_shape):
            found.append(Normal(*in_bucket(lambda law: (law.mean(), law.var()), value)))
        else:
            found.append(value)
    return tuple(found)


@dataclass(frozen=True)
class Range:
    """The box of coordinates that messages span, a little widened."""

    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, *batches: tuple[Any, ...]) -> "Range":
        """The range of some batches together."""
        seen = np.concatenate([coordinates(batch) for batch in batches])
        low, high = seen.min(0), seen.max(0)
        margin = _MARGIN * (high - low)
        return cls(low - margin, high + margin)

    def outside(self, incoming: tuple[Any, ...]) -> np.ndarray:
        """Which messages leave it."""
        seen = coordinates(incoming)
        return np.any((seen < self.low) | (seen > self.high), axis=1)


def thinned(points: Points, most: int) -> Any:
    """Evenly spaced points, a power of two of them, so that their number seldom compiles anything."""
    n = count(points)
    keep = min(1 << (n.bit_length() - 1), most)
    return rows(points, np.linspace(0, n - 1, keep).round().astype(int))
