"""Distributions close to the signed weights of a conditional embedding: their weights, moments and quantiles."""

from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.points import library_of
from meanmap.core.types import Array, Points

__all__ = ["covariance", "law", "quantiles", "variances"]


def law(points: Points, weights: Array) -> Any:
    """Non-negative weights that sum to one, from signed weights that do: those of points on a line by `_increments`,
    others by the projection on the simplex, max(wᵢ − τ, 0).
    """
    if getattr(points, "ndim", 0) == 2 and points.shape[1] == 1 and jnp.issubdtype(points.dtype, jnp.floating):
        return _increments(points[:, 0], weights, library_of(points, weights))
    return _projected(weights, library_of(weights))


def variances(points: Array, weights: Array, library: ModuleType) -> Any:
    """The variance of each column under the distribution function of its quantiles, (..., d)."""
    found = []
    for column in points.T:
        centred = column - column.mean()
        own = _increments(column, weights, library)
        mean = library.matmul(own, centred)
        found.append(library.maximum(library.matmul(own, centred**2) - mean**2, 0))
    return library.stack(found, axis=-1)


def covariance(points: Array, weights: Array, library: ModuleType) -> Any:
    """Correlations under the nearest non-negative weights, with the variances of each column, (..., d, d)."""
    own, centred = _projected(weights, library), points - points.mean(axis=0)
    around = centred - library.matmul(own, centred)[..., None, :]
    second = library.einsum("...i,...ij,...ik->...jk", own, around, around)
    sizes = library.sqrt(library.diagonal(second, axis1=-2, axis2=-1))
    scale = library.sqrt(variances(points, weights, library)) / library.where(sizes > 0, sizes, 1)
    return second * scale[..., :, None] * scale[..., None, :]


def quantiles(column: Array, weights: Array, levels: Array, library: ModuleType) -> Any:
    """The smallest points of a line at which the distribution function of `_rising` reaches each level."""
    order = library.argsort(column)
    distribution = _rising(weights, order, library)
    # The tolerance is the rounding error of the sum; a level of 0 means the first point of positive weight.
    least = library.maximum(levels.reshape(-1)[:, None] * (1 - 1e-12), 1e-12)
    reached = distribution[..., None, :] >= least
    first = library.where(reached.any(axis=-1), library.argmax(reached, axis=-1), column.shape[0] - 1)
    result = column[order][first]
    return result[..., 0] if levels.ndim == 0 else result


def _increments(column: Array, weights: Array, library: ModuleType) -> Any:
    """The weights of points on a line under the distribution function of `_rising`."""
    order = library.argsort(column)
    rising = _rising(weights, order, library)
    steps = library.diff(rising, axis=-1, prepend=library.zeros_like(rising[..., :1]))
    return (steps / rising[..., -1:])[..., library.argsort(order)]


def _rising(weights: Array, order: Array, library: ModuleType) -> Any:
    """A distribution function over points in this order: the mean of the running maximum of the sum of their signed
    weights from the left and of its running minimum from the right.
    """
    sums = library.cumsum(weights[..., order], axis=-1)
    if library is np:
        upper = np.maximum.accumulate(sums, axis=-1)
        lower = np.minimum.accumulate(sums[..., ::-1], axis=-1)[..., ::-1]
    else:
        upper = jax.lax.cummax(sums, axis=sums.ndim - 1)
        lower = jax.lax.cummin(sums, axis=sums.ndim - 1, reverse=True)
    return library.clip((upper + lower) / 2, 0, 1)


def _projected(weights: Array, library: ModuleType) -> Any:
    """The nearest weights on the simplex: max(wᵢ − τ, 0), with the τ for which they sum to one."""
    falling = -library.sort(-weights, axis=-1)
    excess = (library.cumsum(falling, axis=-1) - 1) / library.arange(1, weights.shape[-1] + 1)
    kept = library.sum(falling > excess, axis=-1, keepdims=True)
    kept = library.maximum(weights - library.take_along_axis(excess, kept - 1, axis=-1), 0)
    return kept / library.sum(kept, axis=-1, keepdims=True)
