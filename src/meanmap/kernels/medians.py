"""The median of distances."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.types import Array

__all__ = ["median", "nonzero_median"]


def nonzero_median(distances: Array) -> Any:
    """The median of distances (k,), or of those above zero if it is zero because of ties; NaN if there are none."""
    if isinstance(distances, jax.Array):
        middle = jnp.median(distances)
        return jnp.where(middle > 0, middle, jnp.nanmedian(jnp.where(distances > 0, distances, jnp.nan)))
    middle = median(distances)
    return middle if middle != 0 else median(distances[distances > 0])


def median(values: np.ndarray) -> Any:
    """`np.median` of numbers (k,); NumPy selects one rank several times as fast as two at once."""
    if not len(values) or np.isnan(values.max()):
        return np.float64(np.nan)
    middle = len(values) // 2
    found = np.partition(values, middle)
    return found[middle] if len(values) % 2 else (found[:middle].max() + found[middle]) / 2
