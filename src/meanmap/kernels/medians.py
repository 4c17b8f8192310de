"""The median of distances."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.types import Array

__all__ = ["nonzero_median"]

# The median of many numbers is searched between two quantiles of a subsample of this size, this many ranks from its
# median.
SOME, RANKS = 10_000, 500


def nonzero_median(distances: Array) -> Any:
    """The median of distances (k,), or of those above zero if it is zero because of ties; NaN if there are none."""
    if isinstance(distances, jax.Array):
        median = jnp.median(distances)
        return jnp.where(median > 0, median, jnp.nanmedian(jnp.where(distances > 0, distances, jnp.nan)))
    median = _median(distances)
    above = distances[distances > 0] if median == 0 else distances
    return median if median != 0 else np.median(above) if len(above) else np.float64(np.nan)


def _median(values: np.ndarray) -> Any:
    """`np.median`, in a third of the time for millions of numbers: it lies between quantiles of a subsample."""
    n = len(values)
    if n <= 10 * SOME:
        return np.median(values)
    some = np.sort(values[:: n // SOME])
    low, high = some[[len(some) // 2 - RANKS, len(some) // 2 + RANKS]]
    inside = values[(values >= low) & (values <= high)]
    ranks = np.array([(n - 1) // 2, n // 2]) - np.count_nonzero(values < low)
    if ranks[0] < 0 or ranks[1] >= len(inside):
        return np.median(values)
    return np.partition(inside, ranks)[ranks].mean()
