"""Where a function on the host has to be known more accurately, judged by the effect of its error on the messages."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from meanmap.core.types import Array
from meanmap.ep.calling import LINES, remembered
from meanmap.ep.factor import FactorLike
from meanmap.ep.lines import log_message, to_nodes, values
from meanmap.ep.piecewise.memory import FINE
from meanmap.ep.piecewise.pieces import MARKS
from meanmap.ep.quadrature.mesh import DEPTH
from meanmap.families import Family

__all__ = ["is_remembered", "known_well"]

# The log of the tilted law may be off by more further down than at its peak, in proportion, and by no more than this
# wherever it matters, so that no rule takes the ends of pieces for kinks; where little is enough, by ten times that.
_ANYWHERE, _OF_ENOUGH = 1e-4, 10.0

# Where less than the finest is enough, nothing below this matters.
_ROUGH_DEPTH = 14.0

# Over two numbers, where kinks are looked for in sums over a grid, by this much more for each unit of depth from there
# on, up to what hides no peak: most of a plane lies far down.
_MORE, _AT_MOST = 0.5, 0.05

# Each time the function is called, where too little is known, for nodes of one piece in two, or of one in four.
_ROUNDS = 100

# Values whose spread is below this share of their mean are one value.
_SAME = 1e-10


class _Effect(NamedTuple):
    """What errors of a function do at points: to the log of the tilted law or to outputs in standard deviations."""

    size: jax.Array
    depth: jax.Array

    def too_large(self, numbers: int, enough: Any) -> jax.Array:
        """Whether messages of a function of this many numbers may be off because of it, by more than is enough."""
        anywhere = jnp.maximum(_ANYWHERE, _OF_ENOUGH * enough)
        log_allowed = jnp.log(enough) - jnp.minimum(self.depth, 0.0)
        beyond = jnp.maximum(log_allowed - jnp.log(anywhere), 0.0)
        allowed = jnp.exp(log_allowed - (beyond if numbers == 1 else (1 - _MORE) * beyond))
        allowed = jnp.minimum(allowed, anywhere if numbers == 1 else _AT_MOST)
        return (self.size > allowed) & (self.depth >= -jnp.where(enough <= FINE, DEPTH, _ROUGH_DEPTH))


def is_remembered(factor: FactorLike, kinds: list[type[Family]]) -> bool:
    """Whether values of a factor's function are kept for a run: of numbers, on the host, the same in each call."""
    if getattr(factor, "memory", None) is None or factor.random:
        return False
    return all(kind.states is None and kind.coordinates[-1] in LINES for kind in kinds)


def known_well(
    factor: FactorLike,
    incoming: tuple[Any, ...],
    over: tuple[int, ...],
    coordinates: tuple[jax.Array, ...],
    log_cavity: jax.Array,
    power: Array,
) -> tuple[jax.Array, jax.Array, jax.Array | None]:
    """The function at points of one member, as well as messages need it, and what is left of its error there.

    `coordinates` are those of the arguments at positions `over`, and `log_cavity` is the log of the cavity there.

    Returns
    -------
    values : array (points,)
    effects : array (points,)
        How far the log of the tilted law may be off, or outputs in standard deviations.
    marks : array (2, MARKS) or None
        Coordinates where the function is finer than the points can show, and the log of the tilted law there; of one
        number.
    """
    lines = tuple(type(incoming[at]).coordinates[-1] for at in over)
    arguments = list(incoming[: len(incoming) - factor.outputs])
    enough = factor.memory.enough if len(over) == 2 else FINE

    def unfinished(carried):
        *_, sure, rounds = carried
        return ~sure & (rounds < _ROUNDS)

    def better(carried):
        (value, error), effect, marks, moved, _, rounds = carried
        # Once nothing more is needed, or possible, polynomials are checked at values between their nodes; where little
        # is enough, they will be later.
        wanted = effect.too_large(len(over), enough)
        settled = (rounds > 0) & ~(wanted.any() & moved)
        checked = settled & (enough <= FINE)
        laws = jnp.where(checked, log_cavity, jnp.nan), jnp.where(checked, effect.depth, jnp.nan)
        places = coordinates
        if len(over) == 2:  # members that are done are not looked up again
            places = tuple(jnp.where(unfinished(carried), each, jnp.nan) for each in coordinates)
        asked = remembered(factor, lines, places, arguments, over, wanted, laws)
        exact = error == 0  # from a call at this very point
        known = jnp.where(exact, value, asked[0]), jnp.where(exact, error, asked[1])
        same = (known[0] == value) | (jnp.isnan(known[0]) & jnp.isnan(value))
        lost = jnp.isinf(known[1]) & (wanted | (rounds == 0))
        moved = ~same.all() | (known[1] != error).any() | lost.any()
        judged = _effect(lambda found: _judged(factor, found, incoming, power), *known, log_cavity)
        sure = settled & ~moved
        if len(over) == 2:
            sure = sure | (enough > FINE) & ~judged.too_large(2, enough).any()
        return known, judged, jnp.where(settled, asked[2], marks), moved, sure, rounds + 1

    # At first without new calls: what is known already.
    nothing = jnp.zeros_like(log_cavity)
    known = nothing, jnp.full_like(log_cavity, jnp.inf)
    none = jnp.full((MARKS, 2), jnp.nan)
    start = known, _Effect(nothing, nothing), none, jnp.asarray(True), jnp.asarray(False), 0
    (value, _), effect, marks, *_ = jax.lax.while_loop(unfinished, better, start)
    stated = jnp.where(effect.depth >= -DEPTH, effect.size, 0.0)
    first, *others = over
    if others:
        return value, stated, None
    message = incoming[first]
    nodes = to_nodes(type(message), jnp.nan_to_num(marks[:, 0]), jnp.zeros(()))
    log_factor, _ = _judged(factor, marks[:, 1], incoming, power)
    height = log_message(message, nodes) + nodes.log_weight + log_factor
    height = jnp.where(jnp.isnan(marks[:, 0]) | jnp.isnan(height), -jnp.inf, height)
    return value, stated, jnp.stack([marks[:, 0], height])


def _judged(factor: FactorLike, found: jax.Array, incoming: tuple[Any, ...], power: Array) -> tuple:
    """The log factor where a function has these values, and what outputs have moments of."""
    log_factor, outputs = factor.judge(found, incoming, power)
    return log_factor, [value for at, nodes in outputs.items() for value in values(type(incoming[at]), nodes)]


def _effect(judge: Callable[[jax.Array], tuple], value: jax.Array, error: jax.Array, log_cavity: jax.Array) -> _Effect:
    exact = error == 0
    # Between both ends of an error the factor may be higher than at these: as high as for the best value that is known.
    alone, _ = judge(value)
    best = value[jnp.argmax(jnp.where(jnp.isnan(alone), -jnp.inf, alone))]
    likely = jnp.clip(best, value - error, value + error)
    log_factors, outputs = jax.vmap(judge)(jnp.stack([value, value - error, value + error, likely]))
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


def _apart(values: jax.Array, exact: jax.Array) -> jax.Array:
    """How far what follows from other values within an error is from what follows from its middle."""
    found = jnp.abs(values[1:] - values[0]).max(0)
    return jnp.where(exact, 0.0, jnp.where(jnp.isnan(found), jnp.inf, found))
