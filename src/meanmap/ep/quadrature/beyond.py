"""A density beyond the smallest and largest numbers that a computer holds, where distributions may have their mass.

A Gamma(0.001, 1) has half of its mass below 1e-300. In the coordinate log x, or logit x, this is no problem for the
message; a function of x is called at the last number instead.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.families.line import LARGEST_LOG

__all__ = ["PLACES", "continued", "places"]

# Close to the last numbers of both sides, and half as far out, two places each give the power of x by which the log of
# a density goes on.
_APART = 10.0
_ONE_SIDE = (LARGEST_LOG, LARGEST_LOG - _APART, LARGEST_LOG / 2, LARGEST_LOG / 2 - _APART)
_ENDS = np.outer((-1, 1), _ONE_SIDE)
PLACES = _ENDS.size

# Powers that differ by more are none.
_SAME = 1e-8


def places(coordinate: jax.Array) -> jax.Array:
    """Where a density has to be known, too; places that are known already where no point is so far out."""
    far = jnp.stack([(coordinate < -LARGEST_LOG).any(), (coordinate > LARGEST_LOG).any()])
    return jnp.where(far[:, None], _ENDS, coordinate[0]).ravel()


def continued(coordinate: jax.Array, log_density: jax.Array, at_places: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The log of a density at all points as it goes on, and at which points that is unknown.

    What is a power of x at the last numbers, the same as half as far out, remains that power.
    """
    beyond: Any = jnp.stack([jnp.minimum(coordinate + LARGEST_LOG, 0), jnp.maximum(coordinate - LARGEST_LOG, 0)])
    last, before, half, ahead = at_places.reshape(_ENDS.shape).T
    power = (last - before) / (_APART * jnp.array([-1.0, 1.0]))
    other = (half - ahead) / (_APART * jnp.array([-1.0, 1.0]))
    same = jnp.abs(power - other) <= _SAME
    more = jnp.where(same[:, None], power[:, None] * beyond, 0.0)
    unknown = ~same[:, None] & (beyond != 0)
    return log_density + more.sum(0), unknown.any(0)
