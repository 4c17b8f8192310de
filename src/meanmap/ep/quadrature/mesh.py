"""Where to place the nodes of a rule on the line, and whether they resolve the function between them.

A rule knows a function at its nodes alone. What lies between two of them is bounded by extending the secants of their
neighbours until they meet (the hull of adaptive rejection sampling, Gilks & Wild 1992): exact for a kink, and above
the top of every concave peak. Where that meeting point stands out, the peak has not been seen yet.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.types import Array
from meanmap.families import Family

__all__ = [
    "DEPTH",
    "Grid",
    "Spread",
    "Weighed",
    "between_nodes",
    "kinked",
    "located",
    "missed",
    "resolved",
    "rises",
    "trapezium",
    "unseen",
    "unseen_between",
]

# Rules with every node, every second and every fourth.
_STEPS = (1, 2, 4)

# What is below e⁻³⁷ < 1e-16 of the peak does not count.
DEPTH = 37.0

# A peak that may stand out by more than this between two nodes has not been seen: the log of the integrand must not
# bend more, or the rule that leaves out every other node is off too.
_GAP = 0.2

# Nor has a peak that only one node shows, which stands out by half of this on either side: of a Normal, with a
# deviation below the step.
_SHARP = 1.0

# Steps below this share of all may hide a jump, but no slope that matters.
_NARROW = 1e-4

# A jump of the slope over one step, and how far below the peak it may be, that changes a sum by less than 1e-6.
_KINK = 3e-4
_DEPTH_OF_KINKS = 16.0

# Values whose spread is below this share of their mean are one value: squares of what is left are mostly rounding.
_SAME = 1e-10

# Stands for log 0, so that secants and their products are numbers.
_NOTHING = -1e150

# The mass is searched with this many nodes until what matters fills this share of them, and the core, what is above 1/e
# of the peak, is not narrower than a quarter of what it was taken for; this many times at most. A window that covers a
# Normal and its second moment is twelve times as wide as its core.
_SEARCH, _FITS, _TRIES = 97, 0.5, 20
_CORE, _FIRST = 1.0, 1 / 12


class Grid(NamedTuple):
    """Points of a coordinate, and several rules on them, the finest first: logs of weights (rules, points), and with
    which step each goes through the points, if the weights of others are zero.
    """

    points: jax.Array
    log_weights: jax.Array
    steps: tuple[int, ...] = (1, 1, 1)

    def rules(self) -> list[tuple[jax.Array, slice]]:
        """The logs of the weights of each rule, and the points that it needs."""
        return [(own, slice(None, None, step)) for own, step in zip(self.log_weights, self.steps, strict=False)]


class Weighed(NamedTuple):
    """What a factor says at points: the log of the tilted distribution, and what is made of it.

    Attributes
    ----------
    height : array (points,)
        The log of the tilted distribution, in the coordinates.
    own : array (points,)
        The factor's part of it, which may have peaks that the incoming messages hide.
    values : list of arrays (points,)
        Whose second moments are wanted.
    messages : dict
        For each position, the function from log weights of some of the points, and which these are, to the message.
    error : array (points,) or None
        How far heights, or outputs in standard deviations, may be off; None if the factor was evaluated.
    marks : array (2, marks) or (3, marks), or None
        Points where a function of one number is known to be finer than the points can show, or where one of two was
        looked at, and in the last row heights there.
    jumps : array (2, jumps), or None
        Where a function of one number is known to jump, twice each, and heights before and behind.
    log_undefined : array (points,) or None
        The log density of the incoming messages where the factor has no value, −∞ elsewhere; None if it has values
        everywhere.
    unknown : array (points,) of bool or None
        Where a density goes on beyond the numbers at which it can be computed, in a way that is not known.
    unreached : bool
        Whether no output comes near its belief, as if the factor were narrower than the points can show.
    least : list of numbers, or None
        Variances of the values below which they are one value.
    above : callable, or None
        How high `own` may be from each of some points to each of others; None if that is not known.
    """

    height: jax.Array
    own: jax.Array
    values: list[jax.Array]
    messages: dict[int, Callable[[jax.Array, slice], Family]]
    error: Any = None
    marks: Any = None
    jumps: Any = None
    log_undefined: Any = None
    unknown: Any = None
    unreached: Any = np.False_
    least: Any = None
    above: Callable[[jax.Array, jax.Array], jax.Array] | None = None

    def important(self, log_weights: jax.Array) -> jax.Array:
        """The log of the integrand times what it is integrated with: 1 + Σ z² over standardised values.

        Projections need second moments of these values, and their tails reach further than those of the mass alone.
        """
        weights = jax.nn.softmax(self.height + log_weights)
        more = jnp.zeros_like(self.height)
        for value, least in zip(self.values, self.least or [0.0] * len(self.values), strict=True):
            value = jnp.clip(value, -1e100, 1e100)
            mean = (weights * value).sum()
            rounding = (_SAME * mean) ** 2 + 1e-300  # values that are all the same do not count
            variance = (weights * (value - mean) ** 2).sum()
            least = jnp.maximum(rounding, least)
            more = more + jnp.minimum((value - mean) ** 2 / jnp.maximum(variance, least), 1e200)
        return self.height + jnp.log1p(more)

    def guessed(self, grid: Grid) -> jax.Array:
        """The share of the distribution, as its second moments count it, that lies where the density is not known."""
        if self.unknown is None:
            return jnp.zeros(())
        strong = self.important(grid.log_weights[0]) + grid.log_weights[0]
        total = jax.nn.logsumexp(self.height + grid.log_weights[0])
        return jnp.exp(jax.nn.logsumexp(jnp.where(self.unknown, strong, -jnp.inf)) - total)

    def undefined(self, grid: Grid) -> jax.Array:
        """The share of the incoming messages' mass on the points of a grid where the factor has no value."""
        if self.log_undefined is None:
            return jnp.zeros(())
        return jnp.minimum(jnp.exp(jax.nn.logsumexp(self.log_undefined + grid.log_weights[0])), 1.0)


class Spread(NamedTuple):
    """Nodes at centre + width sinh(t) from low to high, t in equal steps: dense about the core, and rare far away.

    So a narrow core with heavy tails, such as that of Student noise, needs no more nodes than a Normal.
    """

    low: Any
    high: Any
    centre: Any
    width: Any

    def grid(self, count: int) -> Grid:
        """With every node, every second and every fourth; count − 1 is a multiple of 4."""
        first, last = (jnp.arcsinh((end - self.centre) / self.width) for end in (self.low, self.high))
        t = trapezium(first, last, count)
        ahead, behind = self.width / 2 * jnp.exp(t.points), self.width / 2 * jnp.exp(-t.points)
        return t._replace(points=self.centre + (ahead - behind), log_weights=t.log_weights + jnp.log(ahead + behind))


def trapezium(low: jax.Array, high: jax.Array, count: int) -> Grid:
    """Equal steps, with every node, every second and every fourth; count − 1 is a multiple of 4."""
    unit = np.linspace(0.0, 1.0, count)
    index = np.arange(count)
    rules = np.stack([np.where(index % step == 0, np.log(step), -np.inf) for step in _STEPS])
    return Grid(low + (high - low) * unit, jnp.asarray(rules) + jnp.log((high - low) / (count - 1)), _STEPS)


def located(weigh: Callable[[jax.Array], Weighed], window: tuple[Any, Any]) -> Spread:
    """Nodes that fit the mass of a function as far as a few nodes can see it: moved, shrunk or grown from a window."""

    def unfinished(carried):
        _, done, rounds = carried
        return ~done & (rounds < _TRIES)

    def closer(carried):
        old, _, rounds = carried
        points, log_weights, _ = old.grid(_SEARCH)
        found = weigh(points)
        strong = found.important(log_weights[0])
        kept = between_nodes(points, strong, found.own)[0] >= -DEPTH
        low, high = _ends(points, kept)
        core_low, core_high = _ends(points, between_nodes(points, found.height)[0] >= -_CORE)
        width = (core_high - core_low) / 2
        grows = (strong[jnp.array([0, -1])] >= strong.max() - DEPTH) & jnp.isfinite(strong.max())
        fits = (kept.mean() > _FITS) & ~grows.any() & (width > old.width / 4)
        more = jnp.where(grows, 2 * (old.high - old.low), 0)
        # As long as it shrinks, it comes closer: from a prior of a hundred digits that takes many rounds.
        shrinks = (high > low) & (high - low <= (old.high - old.low) / 2) & ~grows.any()
        rounds = rounds + ~shrinks
        return Spread(low - more[0], high + more[1], (core_low + core_high) / 2, width), fits, rounds

    start = Spread(*map(jnp.asarray, (*window, (window[0] + window[1]) / 2, (window[1] - window[0]) * _FIRST)))
    return jax.lax.while_loop(unfinished, closer, (start, jnp.asarray(False), 0))[0]


def _ends(points: jax.Array, steps: jax.Array) -> tuple[jax.Array, jax.Array]:
    """From the first to the last of some steps between points, and one step more, of which little may be known."""
    steps = steps | jnp.append(steps[1:], False) | jnp.append(False, steps[:-1])
    return jnp.where(steps, points[:-1], jnp.inf).min(), jnp.where(steps, points[1:], -jnp.inf).max()


def between_nodes(points: jax.Array, height: Array, own: Array | None = None) -> tuple[jax.Array, jax.Array]:
    """How high a function may be between each node and the next, beside the highest node, and by how much that is above
    both.

    A part of it that is its `own` may have a peak on a slope of the rest: this counts too.
    """
    height = _beside_the_highest(height)
    width, rise = jnp.diff(points), jnp.diff(height)
    slope = rise / jnp.where(width > 0, width, 1)
    before, after = jnp.append(0.0, slope[:-1]), jnp.append(slope[1:], 0.0)
    top = jnp.maximum(height[1:], height[:-1])
    peak = (before > 0) & (after < 0) & (width > 0)
    meeting = jnp.clip((rise - after * width) / jnp.where(peak, before - after, 1), 0, width)
    bound = jnp.where(peak, jnp.maximum(height[:-1] + before * meeting, top), top)
    above = bound - top
    if own is None:
        return bound, above
    hidden = between_nodes(points, own)[1]
    return jnp.maximum(bound, top + hidden), jnp.maximum(above, hidden)


def _beside_the_highest(height: Array) -> jax.Array:
    """The logs of a function with 0 at the highest node, which may itself be below any that stands for nothing."""
    top = jnp.max(height, where=jnp.isfinite(height), initial=-jnp.inf)
    known = top > -jnp.inf
    return jnp.maximum(height - jnp.where(known, top, 0.0), jnp.where(known, _NOTHING, 0.0))


def unseen(points: jax.Array, height: jax.Array, own: Array | None = None) -> jax.Array:
    """For each step between nodes, whether a peak may stand out there that matters."""
    bound, above = between_nodes(points, height, own)
    sharp = _is_sharp(points, height)
    sharp = sharp if own is None else sharp | _is_sharp(points, own)
    return ((above > _GAP) | sharp) & ~resolved(points, bound) & (bound >= -DEPTH)


def unseen_between(height: jax.Array, own: jax.Array) -> jax.Array:
    """Whether a peak may stand out in any of equal steps between nodes, as `unseen` says of each.

    Without quotients, and from inner nodes alone, this takes half of the time.
    """
    height = _beside_the_highest(height)
    top = jnp.maximum(height[:-1], height[1:])
    lacks = jnp.maximum(_GAP, -DEPTH - top[1:-1])
    near = jnp.maximum(top[:-1], top[1:]) >= -DEPTH
    found = []
    for part in (height, _beside_the_highest(own)):
        rise = jnp.diff(part)
        # Above both nodes of a step, the secants of its neighbours meet; times the sum of their slopes.
        before, here, after = rise[:-2], rise[1:-1], -rise[2:]
        above = jnp.minimum(after * (before - here), before * (after + here))
        hull = (above > lacks * (before + after)) & (jnp.minimum(before, after) > 0)
        out, falls = jnp.minimum(rise[:-1], -rise[1:]), jnp.maximum(rise[:-1], -rise[1:])
        sharp = (2 * out > _SHARP) | ((out > 0) & (falls > DEPTH))
        found += [hull.any(), (sharp & near).any()]
    return jnp.stack(found).any()


def resolved(points: jax.Array, bound: jax.Array) -> jax.Array:
    """Which steps between nodes are too narrow to be looked into, by rounding or because no mass fits in.

    `bound` is how high the log of the density may be in each of them.
    """
    width = jnp.diff(points)
    mass = bound + jnp.log(width)
    rounded = width <= 8 * jnp.finfo(points.dtype).eps * jnp.abs(points[1:])
    return rounded | (mass <= jax.nn.logsumexp(mass) - DEPTH)


def rises(points: jax.Array, height: jax.Array) -> jax.Array:
    """For each step between nodes, how far a peak there may rise above both, as the hull or one node alone shows it.

    A parabola through a node that stands out and its neighbours rises above it by an eighth of its bend at most.
    """
    return jnp.maximum(between_nodes(points, height)[1], _bends(points, height) / 8)


def missed(points: jax.Array, found: Weighed) -> Array:
    """Which marks stand out above the function as its points show it, where that matters."""
    place, height = found.marks
    shown = jnp.interp(place, points, jnp.maximum(found.height, _NOTHING), left=_NOTHING, right=_NOTHING)
    return (height > shown + _GAP) & (height > found.height.max() - _DEPTH_OF_KINKS)


def _is_sharp(points: jax.Array, height: Array) -> jax.Array:
    """Which steps lead to or from a peak that only one node shows, or from the end of a level part down to nothing: a
    jump if the step is narrow, and else a slope that is not resolved yet.
    """
    falls = jnp.abs(jnp.diff(_beside_the_highest(height))) > DEPTH
    wide = jnp.diff(points) > _NARROW * (points[-1] - points[0])
    return (_stands_out(height) > _SHARP) | (falls & wide & (_bends(points, height) > _SHARP))


def _stands_out(height: Array) -> jax.Array:
    """For each step that leads to or from a node above both its neighbours, how far that stands out of both together.

    The hull does not see what becomes steeper towards its top, such as the peak of a Cauchy. A node beside a jump does
    not stand out of the neighbour on its own side.
    """
    rise = jnp.diff(_beside_the_highest(height))
    out = 2 * jnp.maximum(jnp.minimum(rise[:-1], -rise[1:]), 0.0)
    return jnp.maximum(jnp.append(out, 0.0), jnp.append(0.0, out))


def _bends(points: jax.Array, height: Array) -> jax.Array:
    """For each step that leads to or from a node above both its neighbours, how much the slope changes there, over the
    shorter of both steps; 0 elsewhere.
    """
    width = jnp.diff(points)
    slope = jnp.diff(_beside_the_highest(height)) / jnp.where(width > 0, width, 1)
    bend = (slope[:-1] - slope[1:]) * jnp.minimum(width[:-1], width[1:])
    out = jnp.where((slope[:-1] > 0) & (slope[1:] < 0), bend, 0.0)
    return jnp.maximum(jnp.append(out, 0.0), jnp.append(0.0, out))


def kinked(height: jax.Array, error: Array | None = None) -> jax.Array:
    """Whether the slope jumps at some node that matters: more than four times as much as close by on either side.

    With equal steps the error at a kink depends on its position, and two rules may agree by chance. Bends that may be
    due to the `error` of the height do not count.
    """
    bend = jnp.abs(jnp.diff(_beside_the_highest(height), n=2))  # of the log over one step, at all inner nodes
    around = jnp.maximum(jnp.maximum(bend[:-6], bend[1:-5]), jnp.maximum(bend[5:-1], bend[6:]))
    matters = height[4:-4] > height.max() - _DEPTH_OF_KINKS
    slack = 0.0 if error is None else 4 * error[4:-4]
    return ((bend[3:-3] > _KINK + 4 * around + slack) & matters).any()
