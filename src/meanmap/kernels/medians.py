"""The median of distances."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.types import Array

__all__ = ["median", "nonzero_median"]

# The median of many numbers is searched between two quantiles of a subsample of this size, this many ranks from its
# median.
SOME, RANKS = 10_000, 500


def nonzero_median(distances: Array) -> Any:
    """The median of distances (k,), or of those above zero if it is zero because of ties; NaN if there are none."""
    if isinstance(distances, jax.Array):
        middle = jnp.median(distances)
        return jnp.where(middle > 0, middle, jnp.nanmedian(jnp.where(distances > 0, distances, jnp.nan)))
    middle = median(distances)
    return middle if middle != 0 else median(distances[distances > 0])


def median(values: np.ndarray) -> Any:
    """`np.median` of numbers (k,); NumPy selects one rank several times as fast as two at once.

    That of millions lies between quantiles of a subsample: a copy of all would take longer than the search.
    """
    n = len(values)
    if n > 10 * SOME:
        some = np.sort(values[:: n // SOME])
        low, high = some[[len(some) // 2 - RANKS, len(some) // 2 + RANKS]]
        inside = values[(values >= low) & (values <= high)]
        ranks = np.array([(n - 1) // 2, n // 2]) - np.count_nonzero(values < low)
        found_there = ranks[0] >= 0 and ranks[1] < len(inside)
        return np.partition(inside, ranks)[ranks].mean() if found_there else np.median(values)
    if not n or np.isnan(values.max()):
        return np.float64(np.nan)
    found = np.partition(values, n // 2)
    return found[n // 2] if n % 2 else (found[: n // 2].max() + found[n // 2]) / 2
