"""What every schedule does with a message once it is computed: floor, scale, damp, hold what is given."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

__all__ = ["Given", "Settings", "damped", "finish", "residual"]


class Settings(eqx.Module):
    """How messages are treated on the way.

    Attributes
    ----------
    damping : number
        The share of the old message that is kept, 0 for none.
    floor : number or None
        Values below this share of the largest are raised to it. Learned messages dip below zero, and on a graph with
        cycles a product of negative values flips the sign of everything behind it. None keeps values as they are.
    tolerance : number
        Stop when no message changes by more than this share of its largest value.
    """

    damping: Any
    floor: Any
    tolerance: Any


class Given(eqx.Module):
    """Messages that are known beforehand, for each row and query: those of observed nodes, and constant ones.

    Attributes
    ----------
    known : array (rows, B) of bool
        Which.
    values : array (rows, B, L)
        What they are.
    """

    known: Any
    values: Any

    def at(self, rows: Any) -> "Given":
        """Those of some rows."""
        return Given(self.known[rows], self.values[rows])


def finish(message: jax.Array, old: jax.Array | None, given: Given | None, settings: Settings) -> jax.Array:
    """A message floored, scaled to largest value 1, damped towards the old one, or replaced by what is given."""
    if settings.floor is None:
        top = jnp.max(jnp.abs(message), axis=-1, keepdims=True)
        message = message / jnp.where(top > 0, top, 1)
    else:
        top = jnp.max(message, axis=-1, keepdims=True)
        # Nothing positive is left where rounding or a poor operator ate the message: it then says nothing.
        message = jnp.where(top > 0, jnp.maximum(message / jnp.where(top > 0, top, 1), settings.floor), 1)
    return damped(message, old, given, settings)


def damped(message: jax.Array, old: jax.Array | None, given: Given | None, settings: Settings) -> jax.Array:
    """A message drawn towards the old one, or replaced by what is given."""
    if old is not None:
        message = message + settings.damping * (old - message)
    if given is not None:
        message = jnp.where(given.known[..., None], given.values, message)
    return message


def residual(new: jax.Array, old: jax.Array) -> jax.Array:
    """The largest change, in shares of a message's largest value."""
    return jnp.max(jnp.abs(new - old), initial=0.0)
