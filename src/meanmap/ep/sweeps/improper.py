"""What to do with an improper message: force, allow, skip or damp it.

A projection may be wider than the incoming message, and their ratio then has a negative precision, shape or rate. That
is often right (the factor takes information away) and sometimes an error of a sampler that is amplified by the
division.
"""

from typing import Any

import jax
import jax.numpy as jnp

from meanmap.core.settings import one_of
from meanmap.ep.sweeps.plan import select
from meanmap.families import Family

__all__ = ["POLICIES", "check_policy", "settle"]

POLICIES = ("force", "allow", "skip", "damp")

# "damp" halves the step at most this many times before it stays where it was.
_HALVINGS = 8


def check_policy(policy: Any) -> str:
    """One of the names of `POLICIES`."""
    one_of(policy, "improper", POLICIES)
    return policy


def settle(policy: str, incoming: Family, old: Family, new: Family) -> tuple[Family, jax.Array]:
    """The message that is sent instead of `new`, and which members were improper.

    Parameters
    ----------
    policy : {"force", "allow", "skip", "damp"}
        "force": the nearest proper limit that keeps the mean of the tilted distribution (as Infer.NET does); "allow":
        the message as it is; "skip": the old message; "damp": as far from old to new as the message stays proper, by
        halves.
    incoming, old, new : Family
        The message into the factor, the one sent before, and the one computed now.
    """
    improper = new._improper()
    if policy == "allow":
        return new, improper
    if policy == "skip":
        return select(improper, old, new), improper
    if policy == "force":
        return select(improper, new._nearest_proper(incoming), new), improper
    step, tried = old, jnp.zeros(improper.shape, bool)
    for halving in range(1, _HALVINGS + 1):
        part = jax.tree.map(lambda a, b, h=halving: a + (b - a) * 0.5**h, old, new)
        fits = ~part._improper() & ~tried
        step, tried = select(fits, part, step), tried | fits
    return select(improper, step, new), improper
