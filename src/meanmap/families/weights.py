"""Weights of importance samples: passed as logarithms, normalised without overflow, refused if all are zero."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.door import is_concrete
from meanmap.core.errors import EmptyError, InputError, ShapeError
from meanmap.core.types import Array
from meanmap.families.reading import members

__all__ = ["check_weighted", "normalised_weights"]


def check_weighted(x: Array, log_weights: Array, event_axes: int) -> Any:
    """The log weights with one axis for each axis of x before its event axes, checked if they are not traced."""
    if x.ndim < 1 + event_axes:
        raise ShapeError(f"x has shape {x.shape}; expected draws along the first axis, so at least {1 + event_axes}.")
    if x.shape[0] == 0:
        raise EmptyError("x has no draws; expected at least two.")
    batch = x.shape[: x.ndim - event_axes]
    shared = log_weights.ndim == 1
    if shared:
        log_weights = log_weights.reshape(log_weights.shape + (1,) * (len(batch) - 1))
    fits = log_weights.ndim == len(batch) and log_weights.shape[0] == batch[0]
    if not fits or any(w not in (1, n) for w, n in zip(log_weights.shape, batch, strict=True)):
        raise ShapeError(f"log_weights has shape {log_weights.shape}; expected {batch[:1]} or {batch}, one per draw.")
    if is_concrete(log_weights):
        largest = np.asarray(log_weights, dtype=float).max(0)
        largest = largest.reshape(()) if shared else largest
        if (largest == np.inf).any():
            raise InputError(f"log_weights holds +inf{members(largest == np.inf)}; expected finite numbers or -inf.")
        gone = largest == -np.inf
        if gone.any():
            raise InputError(
                f"all weights are zero{members(gone)}: the proposal misses the factor. Draw from a proposal covering "
                "where the factor is not zero, such as the cavity or a wider distribution."
            )
    return log_weights


def normalised_weights(log_weights: Array) -> Array:
    """Weights that sum to one along the first axis."""
    shifted = jnp.exp(log_weights - jax.lax.stop_gradient(log_weights.max(0)))
    return shifted / shifted.sum(0)
