"""Where to lay the nodes of a rule on the line: panels that are cut until every peak is seen and every sum is settled.

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

__all__ = ["DEPTH", "Grid", "adapted", "between_nodes", "important", "kinked", "trapezium", "unseen"]

# What is below e⁻³⁷ < 1e-16 of the peak does not count.
DEPTH = 37.0

# A peak that may stand out by more than this between two nodes has not been seen: the log of the integrand must not
# bend more, or the rule that leaves out every other node is off too.
_GAP = 0.2

# Nodes of a panel, both ends included, and how many panels there are at first.
_ORDER = 12
_START = 16

# Panels are cut until their errors, the difference to the rule with every other node, are below this in all; or no more
# fit in; or so many times. A jump is found to a twelfth at a time.
_SETTLED = 1e-8
_ROUNDS = 30

# A panel with an error above this is cut into four.
_LARGE = 1e-4

# A jump of the slope over one step, and how far below the peak it may be, that changes a sum by less than 1e-6.
_KINK = 3e-4
_DEPTH_OF_KINKS = 16.0

# Values whose spread is below this share of their mean are one value: squares of what is left are mostly rounding.
_SAME = 1e-10

# Stands for log 0, so that secants are numbers.
_NOTHING = -1e200


class Grid(NamedTuple):
    """Points of a coordinate, and several rules on them: logs of weights (rules, points), the finest rule first."""

    points: jax.Array
    log_weights: jax.Array


def trapezium(low: Array, high: Array, count: int) -> Grid:
    """Equal steps, with every node, every second and every fourth; count − 1 is a multiple of 4."""
    unit = np.linspace(0.0, 1.0, count)
    index = np.arange(count)
    rules = np.stack([np.where(index % step == 0, np.log(step), -np.inf) for step in (1, 2, 4)])
    return Grid(low + (high - low) * unit, jnp.asarray(rules) + jnp.log((high - low) / (count - 1)))


def between_nodes(points: jax.Array, height: jax.Array) -> tuple[jax.Array, jax.Array]:
    """How high a function may be between each node and the next, and by how much that is above both."""
    height = jnp.maximum(height, _NOTHING)
    width, rise = jnp.diff(points), jnp.diff(height)
    slope = rise / jnp.where(width > 0, width, 1)
    before, after = jnp.append(0.0, slope[:-1]), jnp.append(slope[1:], 0.0)
    top = jnp.maximum(height[1:], height[:-1])
    peak = (before > 0) & (after < 0) & (width > 0)
    meeting = jnp.clip((rise - after * width) / jnp.where(peak, before - after, 1), 0, width)
    bound = jnp.where(peak, jnp.maximum(height[:-1] + before * meeting, top), top)
    return bound, bound - top


def important(height: jax.Array, log_weights: jax.Array, values: list[jax.Array]) -> jax.Array:
    """The log of the integrand times what it is integrated with: 1 + Σ z² over standardised values.

    Projections need second moments of these values, and their tails reach further than those of the mass alone.
    """
    weights = jax.nn.softmax(height + log_weights)
    more = jnp.zeros_like(height)
    for value in values:
        value = jnp.clip(value, -1e100, 1e100)
        mean = (weights * value).sum()
        rounding = (_SAME * mean) ** 2 + 1e-300  # values that are all the same do not count
        variance = (weights * (value - mean) ** 2).sum()
        more = more + jnp.minimum((value - mean) ** 2 / jnp.maximum(variance, rounding), 1e200)
    return height + jnp.log1p(more)


def unseen(points: jax.Array, height: jax.Array) -> jax.Array:
    """Whether somewhere between two nodes a peak may stand out that matters."""
    bound, above = between_nodes(points, height)
    return (_hidden(points, above) & (bound >= height.max() - DEPTH)).any()


def _hidden(points: jax.Array, above: jax.Array) -> jax.Array:
    return (above > _GAP) & (jnp.diff(points) > 8 * jnp.finfo(points.dtype).eps * jnp.abs(points[1:]))


def kinked(points: jax.Array, height: jax.Array) -> jax.Array:
    """Whether the slope jumps at some node that matters: more than four times as much as close by on either side.

    Between a kink and equal steps the error depends on where it falls, and two rules may agree by luck.
    """
    width = points[1] - points[0]
    bend = jnp.abs(jnp.diff(jnp.maximum(height, _NOTHING), n=2))  # of the log over one step, at all inner nodes
    around = jnp.maximum(jnp.maximum(bend[:-6], bend[1:-5]), jnp.maximum(bend[5:-1], bend[6:]))
    matters = height[4:-4] > height.max() - _DEPTH_OF_KINKS
    return ((bend[3:-3] > _KINK + 4 * around) & matters & (width > 0)).any()


def adapted(
    integrand: Callable[[jax.Array], tuple[jax.Array, list[jax.Array]]],
    window: tuple[Any, Any],
    panels: int,
) -> tuple[Grid, jax.Array]:
    """Panels for an integrand, with the rules of Clenshaw & Curtis (1960), and whether nothing was left unseen.

    Parameters
    ----------
    integrand : callable
        From points to the log of the function there, and the values whose second moments are wanted.
    window : pair of numbers
        Where to begin; it grows while its ends matter.
    panels : int
        At most so many.
    """
    low, high = window
    first = jnp.linspace(low, high, _START + 1)
    edges = jnp.concatenate([first, jnp.full(panels - _START, high)])

    def unfinished(carried):
        _, done, stuck, rounds = carried
        return ~done & ~stuck & (rounds < _ROUNDS)

    def improve(carried):
        edges, _, _, rounds = carried
        done, better = _cut(edges, *integrand(_panels(edges).points))
        better = jnp.where(done, edges, better)
        return better, done, (better == edges).all(), rounds + 1

    start = (edges, jnp.asarray(False), jnp.asarray(False), 0)
    edges, done, _, _ = jax.lax.while_loop(unfinished, improve, start)
    return _panels(edges), done


def _panels(edges: jax.Array) -> Grid:
    """The points of all panels, ends shared, with all of them and with every other one."""
    middle, half = (edges[1:] + edges[:-1]) / 2, jnp.diff(edges) / 2
    inside = middle[:, None] + half[:, None] * _POINTS[1:-1]
    points = jnp.append(jnp.concatenate([edges[:-1, None], inside], 1).ravel(), edges[-1])
    rules = []
    for rule in (_FINE, _ROUGH):
        weights = half[:, None] * rule
        total = jnp.append(weights[:, :-1].ravel(), 0.0).at[_ORDER::_ORDER].add(weights[:, -1])
        rules.append(jnp.log(total))
    return Grid(points, jnp.stack(rules))


def _cut(edges: jax.Array, height: jax.Array, values: list[jax.Array]) -> tuple[jax.Array, jax.Array]:
    """Whether these panels do, and better ones: cut where errors are, dropped where nothing is, grown where it ends."""
    grid = _panels(edges)
    strong = important(height, grid.log_weights[0], values)
    count, half = len(edges) - 1, jnp.diff(edges) / 2
    weighted = half[:, None] * _by_panel(jnp.exp(strong - strong.max()))
    plain = half[:, None] * _by_panel(jnp.exp(height - height.max()))
    total = (weighted * _FINE).sum()
    # Of both: what jumps by itself need not jump times what it is integrated with.
    error, alone = (jnp.abs((each * (_FINE - _ROUGH)).sum(1)) / (each * _FINE).sum() for each in (weighted, plain))
    error = jnp.maximum(error, alone)

    # In each panel, the step that may hide the highest peak, or a jump.
    bound, above = between_nodes(grid.points, height)
    counts = bound >= height.max() - DEPTH
    hidden = _hidden(grid.points, above) & counts
    drop = jnp.abs(jnp.diff(jnp.maximum(height, _NOTHING))) > DEPTH
    jump = drop & counts & jnp.repeat(error > _LEVELS[0], _ORDER)
    wanted = jnp.where(hidden | jump, bound, -jnp.inf).reshape(count, _ORDER)
    highest = wanted.max(1, keepdims=True)
    peaked = highest[:, 0] > -jnp.inf
    step = (wanted == highest) & (highest > -jnp.inf)
    ends = strong[:: len(strong) - 1] >= strong.max() - DEPTH
    done = (error.sum() < _SETTLED) & ~hidden.any() & ~ends.any()

    # In order: the left edge of a panel, then new ones in it, around its peak or at its quarters; last the right end.
    middle = edges[:-1] + half
    points = grid.points[:-1].reshape(count, _ORDER)
    before = jnp.where(step, points, edges[1:, None]).min(1)
    behind = jnp.where(step, grid.points[1:].reshape(count, _ORDER), edges[:-1, None]).max(1)
    matters = (weighted.max(1) > 1e-18 * total) | peaked | (error > _LEVELS[0])
    beside = matters | jnp.append(False, matters[:-1])
    wrong = jnp.where(peaked | (half <= 8 * jnp.finfo(edges.dtype).eps * jnp.abs(middle)), 0.0, error)

    # All that is wanted if there is room; else without the dead; else for the largest errors only.
    room = count - 1
    used = edges[:-1] < edges[-1]
    cuts = (wrong[:, None] > _LEVELS).sum(0) + 2 * (wrong[:, None] > np.maximum(_LEVELS, _LARGE)).sum(0)
    needed = 2 * peaked.sum() + ends.sum() + cuts
    dead = used.sum() + needed[0] <= room
    old = used & (beside | dead)
    fits = old.sum() + needed <= room
    least = jnp.where(fits, _LEVELS, jnp.inf).min()
    cut, finely = wrong > least, wrong > jnp.maximum(least, _LARGE)

    # What is not taken goes to the right end, beyond the room if there is enough of it.
    spans = jnp.where(ends, edges[-1] - edges[0], 0)
    low, high = edges[0] - spans[0], edges[-1] + spans[1]
    taken = [
        jnp.where(old, edges[:-1], high).at[0].set(jnp.where(ends[0], edges[0], high)),
        jnp.where(peaked & (before > edges[:-1]), before, high),
        jnp.where(peaked & (behind < edges[1:]), behind, high),
        jnp.where(cut, middle, high),
        jnp.where(finely, middle - half / 2, high),
        jnp.where(finely, middle + half / 2, high),
        jnp.where(ends[1], edges[-1:], high),
    ]
    return done, jnp.concatenate([low[None], jnp.sort(jnp.concatenate(taken))[:room], high[None]])


def _by_panel(nodes: jax.Array) -> jax.Array:
    """Values at all points by panel, ends included."""
    rows = nodes[:-1].reshape(-1, _ORDER)
    return jnp.concatenate([rows, jnp.append(rows[1:, 0], nodes[-1])[:, None]], 1)


def _clenshaw_curtis(order: int) -> np.ndarray:
    """Weights on [−1, 1] at the points −cos(π k / order)."""
    angle = np.pi * np.arange(order + 1) / order
    k = np.arange(1, order // 2 + 1)
    coefficient = np.where(2 * k == order, 1, 2) / (4 * k**2 - 1)
    weights = 2 / order * (1 - np.cos(2 * np.outer(angle, k)) @ coefficient)
    weights[[0, -1]] /= 2
    return weights


_POINTS = -np.cos(np.pi * np.arange(_ORDER + 1) / _ORDER)
_FINE = _clenshaw_curtis(_ORDER)
_LEVELS = _SETTLED / 64 * 10.0 ** np.arange(0, 14, 2)
_ROUGH = np.zeros(_ORDER + 1)
_ROUGH[::2] = _clenshaw_curtis(_ORDER // 2)
