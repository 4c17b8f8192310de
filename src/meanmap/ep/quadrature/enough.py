"""Where a function on the host has to be known more accurately, judged by the effect of its error on the messages."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from meanmap.core.types import Array
from meanmap.ep.calling import LINES, remembered
from meanmap.ep.factor import FactorLike
from meanmap.ep.lines import log_message, nodes_of_cavity, to_nodes, values
from meanmap.ep.piecewise.memory import FINE, SHOWN
from meanmap.ep.quadrature.mesh import DEPTH
from meanmap.families import Family

__all__ = ["DEPTH_OF_TWO", "is_remembered", "known_well"]

# The log of the tilted distribution may be off by more further down than at its peak, in proportion, and by no more
# than this wherever it matters, so that no rule takes the ends of pieces for kinks; where little is enough, by ten
# times that.
_ANYWHERE, _OF_ENOUGH = 1e-4, 10.0

# Over two numbers what is below e⁻²⁰ of the peak does not count, as values are not better known either; where less than
# the finest is enough, what is below this.
DEPTH_OF_TWO, _ROUGH_DEPTH = 20.0, 14.0

# A function of two numbers is evaluated in this many cells along each axis, of equal mass of the root of the cavity.
_CELLS = 8

# Over two numbers, where kinks are looked for in sums over a grid, by this much more for each unit of depth from there
# on, up to what hides no peak: most of a plane lies far down.
_MORE, _AT_MOST = 0.5, 0.05

# While a grid over two numbers is moved to where the mass is, errors may be as large as the first at the peak, and at
# most as large as the second elsewhere.
_MOVING, _MOVING_AT_MOST = 1e-2, 0.5

# Each time the function is called, where too little is known, for nodes of one piece in two, or of one in four.
_ROUNDS = 100

# Values whose spread is below this share of their mean are one value.
_SAME = 1e-10


class _Effect(NamedTuple):
    """What errors of a function do at points: to the log of the tilted distribution or to outputs in standard
    deviations.
    """

    size: jax.Array
    depth: jax.Array

    def too_large(self, numbers: int, enough: Any, narrows: Any, moving: bool) -> jax.Array:
        """Whether messages of a function of this many numbers may be off because of it, by more than is enough.

        While beliefs still narrow, only what is near the peak counts; `moving` grids need to know where that is.
        """
        anywhere = jnp.maximum(_ANYWHERE, _OF_ENOUGH * enough)
        log_allowed = jnp.log(enough) - jnp.minimum(self.depth, 0.0)
        beyond = jnp.maximum(log_allowed - jnp.log(anywhere), 0.0)
        allowed = jnp.exp(log_allowed - (beyond if numbers == 1 else (1 - _MORE) * beyond))
        allowed = jnp.minimum(allowed, anywhere if numbers == 1 else _MOVING_AT_MOST if moving else _AT_MOST)
        deepest = DEPTH if numbers == 1 else DEPTH_OF_TWO
        matters = self.depth >= -jnp.where(narrows, _ROUGH_DEPTH, deepest)
        return (self.size > allowed) & matters & jnp.isfinite(enough)


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
    moving: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The function at points of one member, as well as messages need it, and what is left of its error there.

    `coordinates` are those of the arguments at positions `over`, and `log_cavity` is the log of the cavity there.

    Returns
    -------
    values : array (points,)
    effects : array (points,)
        How far the log of the tilted distribution may be off, or outputs in standard deviations.
    marks : array
        Points as columns, each with the log of the tilted density in the last row: where a function of one number has
        finer structure than these points can show, and then both sides of each of its jumps; and where one of two was
        evaluated, over the whole cavity.
    """
    lines = tuple(type(incoming[at]).coordinates[-1] for at in over)
    arguments = list(incoming[: len(incoming) - factor.outputs])
    two = len(over) == 2
    narrows = (factor.memory.enough > FINE) if two else jnp.asarray(False)
    enough = jnp.maximum(factor.memory.enough, _MOVING if moving else FINE) if two else FINE
    look = jnp.stack([_levels(incoming[at]) for at in over]) if two else jnp.zeros((1, 1))

    def unfinished(carried):
        *_, sure, rounds = carried
        return ~sure & (rounds < _ROUNDS)

    def better(carried):
        (value, error), effect, marks, moved, _, rounds = carried
        # Once nothing more is needed, or possible, polynomials are checked at values between their nodes; where little
        # is enough, they will be later.
        wanted = effect.too_large(len(over), enough, narrows, moving)
        settled = (rounds > 0) & ~(wanted.any() & moved)
        checked = settled & ~narrows
        laws = jnp.where(checked, log_cavity, jnp.nan), jnp.where(checked, effect.depth, jnp.nan)
        places = coordinates
        if two:  # members that are done are not looked up again
            places = tuple(jnp.where(unfinished(carried), each, jnp.nan) for each in coordinates)
        asked = remembered(factor, lines, places, arguments, over, wanted, laws, look)
        exact = error == 0  # from a call at this very point
        known = jnp.where(exact, value, asked[0]), jnp.where(exact, error, asked[1])
        same = (known[0] == value) | (jnp.isnan(known[0]) & jnp.isnan(value))
        lost = jnp.isinf(known[1]) & (wanted | (rounds == 0))
        moved = ~same.all() | (known[1] != error).any() | lost.any()
        judged = _effect(lambda found: _judged(factor, found, incoming, power), *known, log_cavity)
        sure = settled & ~moved
        sure = sure | narrows & ~judged.too_large(len(over), enough, narrows, moving).any()
        return known, judged, jnp.where(settled, asked[2], marks), moved, sure, rounds + 1

    # At first without new calls: what is known already.
    nothing = jnp.zeros_like(log_cavity)
    known = nothing, jnp.full_like(log_cavity, jnp.inf)
    none = jnp.full((SHOWN, 2), jnp.nan)
    start = known, _Effect(nothing, nothing), none, jnp.asarray(True), jnp.asarray(False), 0
    (value, _), effect, marks, *_ = jax.lax.while_loop(unfinished, better, start)
    stated = jnp.where(effect.depth >= -(DEPTH_OF_TWO if two else DEPTH), effect.size, 0.0)
    columns = len(over) + 1
    places = marks.ravel()[: marks.size // columns * columns].reshape(-1, columns)
    log_factor, _ = _judged(factor, places[:, -1], incoming, power)
    height = log_factor
    for at, coordinate in zip(over, places.T, strict=False):
        nodes = to_nodes(type(incoming[at]), jnp.nan_to_num(coordinate), jnp.zeros(()))
        height = height + log_message(incoming[at], nodes) + nodes.log_weight
    height = jnp.where(jnp.isnan(places[:, 0]) | jnp.isnan(height), -jnp.inf, height)
    return value, stated, jnp.concatenate([places[:, :-1].T, height[None]])


def _levels(message: Family) -> jax.Array:
    """Centres of cells of equal mass of the root of a distribution, and the ends between them by turns."""
    nodes = nodes_of_cavity(message, 513)
    height = (log_message(message, nodes) + nodes.log_weight) / 2
    mass = jnp.cumsum(jnp.exp(height - height.max()))
    return jnp.interp(
        jnp.arange(1, 2 * _CELLS) / (2 * _CELLS), (mass - mass[0]) / (mass[-1] - mass[0]), nodes.coordinate
    )


def _judged(factor: FactorLike, found: jax.Array, incoming: tuple[Any, ...], power: Array) -> tuple:
    """The log factor where a function has these values, and what outputs have moments of."""
    log_factor, outputs, _ = factor.judge(found, incoming, power)
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
