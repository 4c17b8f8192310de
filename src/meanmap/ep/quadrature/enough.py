"""Where a function on the host has to be known better, judged by what its error does to the messages."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from meanmap.core.types import Array
from meanmap.ep.calling import LINES, remembered
from meanmap.ep.factor import FactorLike
from meanmap.ep.lines import values
from meanmap.ep.quadrature.mesh import DEPTH

__all__ = ["is_remembered", "known_well"]

# The log of the tilted law may be off by this at its peak, by more further down in proportion, and by no more than the
# second wherever it matters, so that no rule takes the ends of pieces for kinks.
_AT_PEAK, _ANYWHERE = 1e-7, 1e-4

# Each time the function is called, where too little is known, for nodes of one piece in two, or of one in four.
_ROUNDS = 100

# Values whose spread is below this share of their mean are one value.
_SAME = 1e-10


class _Effect(NamedTuple):
    """What errors of a function do at points: to the log of the tilted law or to outputs in standard deviations."""

    size: jax.Array
    depth: jax.Array

    @property
    def too_large(self) -> jax.Array:
        """Whether messages may be off because of it."""
        allowed = jnp.minimum(_AT_PEAK * jnp.exp(-jnp.minimum(self.depth, 0.0)), _ANYWHERE)
        return (self.size > allowed) & (self.depth >= -DEPTH)


def is_remembered(factor: FactorLike, incoming: tuple[Any, ...], over: tuple[int, ...]) -> bool:
    """Whether values of a factor's function are kept for a run: of one number, on the host, the same in each call."""
    if getattr(factor, "memory", None) is None or factor.random or len(over) != 1:
        return False
    kind = type(incoming[over[0]])
    return kind.states is None and kind.coordinates[-1] in LINES


def known_well(
    factor: FactorLike, incoming: tuple[Any, ...], at: int, coordinates: jax.Array, log_cavity: jax.Array, power: Array
) -> tuple[jax.Array, jax.Array]:
    """The function at points of one member, as well as messages need it, and what is left of its error there.

    `coordinates` are those of the argument at position `at`, and `log_cavity` is the log of what comes in from it.

    Returns
    -------
    values : array (points,)
    effects : array (points,)
        How far the log of the tilted law may be off, or outputs in standard deviations.
    """
    line = type(incoming[at]).coordinates[-1]
    arguments = list(incoming[: len(incoming) - factor.outputs])

    def unfinished(carried):
        _, effect, moved, rounds = carried
        return (rounds == 0) | (effect.too_large.any() & moved & (rounds < _ROUNDS))

    def better(carried):
        (value, error), effect, _, rounds = carried
        asked = remembered(factor, line, coordinates, arguments, at, effect.too_large)
        exact = error == 0  # from a call at this very point
        known = jnp.where(exact, value, asked[0]), jnp.where(exact, error, asked[1])
        same = (known[0] == value) | (jnp.isnan(known[0]) & jnp.isnan(value))
        moved = ~same.all() | (known[1] != error).any() | jnp.isinf(known[1]).any()
        judged = _effect(lambda found: _judged(factor, found, incoming, power), *known, log_cavity)
        return known, judged, moved, rounds + 1

    # At first nothing is wanted: this is what is known already.
    nothing = jnp.zeros_like(log_cavity)
    start = (nothing, jnp.full_like(log_cavity, jnp.inf)), _Effect(nothing, nothing), jnp.asarray(True), 0
    (value, _), effect, *_ = jax.lax.while_loop(unfinished, better, start)
    return value, jnp.where(effect.depth >= -DEPTH, effect.size, 0.0)


def _judged(factor: FactorLike, found: jax.Array, incoming: tuple[Any, ...], power: Array) -> tuple:
    """The log factor where a function has these values, and what outputs have moments of."""
    log_factor, outputs = factor.judge(found, incoming, power)
    return log_factor, [value for at, nodes in outputs.items() for value in values(type(incoming[at]), nodes)]


def _effect(judge: Callable[[jax.Array], tuple], value: jax.Array, error: jax.Array, log_cavity: jax.Array) -> _Effect:
    exact = error == 0
    log_factors, outputs = jax.vmap(judge)(jnp.stack([value, value - error, value + error]))
    middle = jnp.where(jnp.isnan(log_factors[0]), -jnp.inf, log_factors[0])
    size = _apart(log_factors, exact)
    # Where nothing is known, the factor may be as large as anywhere.
    unknown = jnp.isinf(error)
    highest = jnp.max(middle, where=jnp.isfinite(middle), initial=-jnp.inf)
    upper = jnp.where(jnp.isnan(log_factors), -jnp.inf, log_factors).max(0)
    upper = log_cavity + jnp.where(unknown, jnp.maximum(upper, highest), upper)
    lower = log_cavity + jnp.where(jnp.isnan(log_factors) | unknown, -jnp.inf, log_factors).min(0)
    top = jnp.max(lower, where=jnp.isfinite(lower), initial=-jnp.inf)
    weights = jax.nn.softmax(jnp.where(jnp.isfinite(middle), log_cavity + middle, -jnp.inf))
    for output in outputs:
        mean = jnp.where(weights > 0, weights * output[0], 0.0).sum()
        variance = jnp.where(weights > 0, weights * (output[0] - mean) ** 2, 0.0).sum()
        size = jnp.maximum(size, _apart(output, exact) / jnp.sqrt(jnp.maximum(variance, (_SAME * mean) ** 2 + 1e-300)))
    return _Effect(size, jnp.where(jnp.isfinite(top), upper - top, jnp.inf))


def _apart(three: jax.Array, exact: jax.Array) -> jax.Array:
    """How far what follows from the ends of an error is from what follows from its middle."""
    found = jnp.abs(three[1:] - three[0]).max(0)
    return jnp.where(exact, 0.0, jnp.where(jnp.isnan(found), jnp.inf, found))
