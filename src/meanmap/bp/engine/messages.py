"""Processing of computed messages in every schedule: floor, scale, fix given messages, damp."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import damping_share, parameter
from meanmap.core.errors import ParameterError
from meanmap.core.types import Array, DType, Numbers

__all__ = ["Given", "Settings", "finish", "held", "residual"]


class Settings(eqx.Module):
    """Settings for the processing of messages.

    Attributes
    ----------
    damping : number
        The share of the old message that is kept, 0 for none.
    floor : number or None
        Values below this share of the largest are raised to it. Learned messages may be negative, and on a graph with
        cycles negative values change the signs of all later products. None leaves values unchanged.
    tolerance : number
        Stop when the residual of every message is at most this share of its largest value. The residual is the change
        without damping, because a damped message moves little even far from convergence.
    """

    damping: Any
    floor: Any
    tolerance: Any

    @classmethod
    def of(cls, damping: Numbers, floor: Numbers | None, tolerance: Numbers | None, dtype: DType) -> "Settings":
        """Checked settings in a dtype; by default the tolerance is 1e-6, 1e-4 in single precision."""
        damping = damping_share(damping)
        if floor is not None:
            floor = float(parameter(floor, "floor", positive=False, axes=0, at_least=0.0))
            if floor >= 1:
                raise ParameterError(
                    f"floor is {floor}; expected at least 0 and less than 1, a share of the largest value."
                )
        if tolerance is None:
            tolerance = 1e-6 if dtype == jnp.float64 else 1e-4
        tolerance = float(parameter(tolerance, "tolerance", positive=False, axes=0, at_least=0.0))
        return cls(*(None if v is None else np.asarray(v, dtype) for v in (damping, floor, tolerance)))

    def damped(self, message: jax.Array, old: jax.Array) -> jax.Array:
        """The damped message: a weighted mean of old and new."""
        return message + self.damping * (old - message)


class Given(eqx.Module):
    """Messages that are given, for each row and query: those of observed nodes, and constant ones.

    Attributes
    ----------
    known : array (rows, B) of bool
        Whether the message is given.
    values : array (rows, B, L)
        The given messages; not negative if messages have a floor.
    """

    known: Any
    values: Any

    def at(self, rows: Array) -> "Given":
        """The given messages of some rows."""
        return Given(self.known[rows], self.values[rows])


def finish(message: jax.Array, given: Given | None, settings: Settings) -> jax.Array:
    """A message floored and scaled to largest value 1, or replaced by the given one."""
    if settings.floor is None:
        top = jnp.max(jnp.abs(message), axis=-1, keepdims=True)
        message = message / jnp.where(top > 0, top, 1)
    else:
        top = jnp.max(message, axis=-1, keepdims=True)
        # If rounding or a poor operator leaves no positive value, the message is replaced by an uninformative one.
        message = jnp.where(top > 0, jnp.maximum(message / jnp.where(top > 0, top, 1), settings.floor), 1)
    return held(message, given)


def held(message: jax.Array, given: Given | None) -> jax.Array:
    """A message, or the given one instead."""
    return message if given is None else jnp.where(given.known[..., None], given.values, message)


def residual(new: jax.Array, old: jax.Array) -> jax.Array:
    """The largest change, relative to a message's largest value."""
    return jnp.max(jnp.abs(new - old), initial=0.0)
