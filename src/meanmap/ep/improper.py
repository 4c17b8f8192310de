"""What to do with a message that is not a law by itself: force, allow, skip or damp it.

A projection may be wider than what came in, and their ratio then has a negative precision, shape or rate. That is often
right (the factor takes information away) and sometimes an error of a sampler that is amplified by the division.
"""

from typing import Any

import jax
import jax.numpy as jnp

from meanmap.core.errors import ParameterError
from meanmap.ep.plan import select
from meanmap.families import Beta, Family, Gamma, MultivariateNormal, Normal

__all__ = ["POLICIES", "check_policy", "is_improper", "settle"]

POLICIES = ("force", "allow", "skip", "damp")

# "damp" halves the step at most this many times before it stays where it was.
_HALVINGS = 8


def check_policy(policy: Any) -> str:
    """One of the names of `POLICIES`."""
    if policy not in POLICIES:
        raise ParameterError(f"improper is {policy!r}; expected one of {', '.join(map(repr, POLICIES))}.")
    return policy


def is_improper(message: Family) -> jax.Array:
    """For each member, whether a message is no limit of laws: a negative precision, a shape at or below zero.

    The flat message is the limit of ever wider laws and is not counted.
    """
    if isinstance(message, Normal):
        return message.precision < 0
    if isinstance(message, MultivariateNormal):
        values = jnp.linalg.eigvalsh(message.precision)
        return values[..., 0] < -1e-10 * jnp.abs(values).max(-1)  # of rounding, an eigenvalue may lie below zero
    if isinstance(message, Gamma):
        return (message.shape_parameter <= 0) | (message.rate < 0)
    if isinstance(message, Beta):
        return (message.a <= 0) | (message.b <= 0)
    return jnp.zeros(message.shape, bool)


def settle(policy: str, incoming: Family, old: Family, new: Family) -> tuple[Family, jax.Array]:
    """The message that is sent instead of `new`, and which members were improper.

    Parameters
    ----------
    policy : {"force", "allow", "skip", "damp"}
        "force": the nearest limit of laws that keeps the mean of the tilted law (as Infer.NET does); "allow": the
        message as it is; "skip": the old message; "damp": as far from old to new as the message stays proper, by
        halves.
    incoming, old, new : Family
        The message into the factor, the one sent before, and the one computed now.
    """
    improper = is_improper(new)
    if policy == "allow":
        return new, improper
    if policy == "skip":
        return select(improper, old, new), improper
    if policy == "force":
        return select(improper, _forced(incoming, new), new), improper
    step, tried = old, jnp.zeros(improper.shape, bool)
    for halving in range(1, _HALVINGS + 1):
        part = jax.tree.map(lambda a, b, h=halving: a + (b - a) * 0.5**h, old, new)
        fits = ~is_improper(part) & ~tried
        step, tried = select(fits, part, step), tried | fits
    return select(improper, step, new), improper


def _forced(incoming: Any, message: Family) -> Family:
    """Precision 0 for a Normal; shape 1 or rate 0 for a Gamma; one of the counts 1 for a Beta; with the tilted mean."""
    tilted = jax.tree.map(jnp.add, incoming, message)
    if isinstance(message, Normal):
        mean = tilted.precision_mean / tilted.precision
        return Normal.from_natural(mean * incoming.precision - incoming.precision_mean, jnp.zeros_like(mean))
    if isinstance(message, Gamma):
        mean, shape, rate = tilted.shape_parameter / tilted.rate, incoming.shape_parameter, incoming.rate
        more = jnp.maximum(mean * rate - shape, 0)  # of the shape, where the mean grows
        return Gamma.from_natural(more, -jnp.maximum(shape / mean - rate, 0))
    if isinstance(message, Beta):
        a, b = incoming.a, incoming.b
        mean = tilted.a / (tilted.a + tilted.b)
        return Beta.from_natural(
            jnp.maximum((mean * (a + b) - a) / (1 - mean), 0), jnp.maximum(((1 - mean) * (a + b) - b) / mean, 0)
        )
    return jax.tree.map(jnp.zeros_like, message)
