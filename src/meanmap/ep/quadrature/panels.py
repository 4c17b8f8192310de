"""Panels on the line that are cut until every peak is seen and every sum is settled."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.ep.quadrature.mesh import DEPTH, Grid, Weighed, between_nodes, missed, resolved, rises, unseen

__all__ = ["adapted"]

# Nodes of a panel, both ends included, and how many panels there are at first.
_ORDER = 12
_START = 16

# Panels are cut until their errors, the difference to the rule with every other node, are below this in all; or no more
# fit in; or this many times. A jump is found to a twelfth at a time.
_SETTLED = 1e-8
_ROUNDS = 30

# A panel with an error above this is cut into four.
_LARGE = 1e-4

# Errors of the function leave an error of sums, too; but not above this: more is the rule's own.
_OF_FUNCTION = 5e-5

# A step with more than this share of all rises in its panel is cut out; neighbours have little error if it is below
# this share of that of the panel with the jump.
_MOST, _LITTLE = 0.8, 0.01

# Two sides of a jump are apart by this share of its place.
_SMALL = 1e-15


def adapted(weigh: Callable[[jax.Array], Weighed], window: tuple[Any, Any], panels: int) -> tuple[Grid, jax.Array]:
    """Panels for a function, with the rules of Clenshaw & Curtis (1960), and their error, with the share of peaks that
    may hide between nodes; infinite if an end matters.

    Parameters
    ----------
    weigh : callable
        From points to what is known there.
    window : pair of numbers
        Where to begin; it grows while its ends matter.
    panels : int
        At most this many.
    """
    low, high = window
    first = jnp.linspace(low, high, _START + 1)
    edges = jnp.concatenate([first, jnp.full(panels - _START, high)])
    found = weigh(_panels(edges).points)
    if found.marks is not None:
        edges = _with_known(edges, found)

    def unfinished(carried):
        _, _, settled, rounds = carried
        return ~settled & (rounds < _ROUNDS)

    def improve(carried):
        edges, _, _, rounds = carried
        done, error, better = _cut(edges, weigh(_panels(edges).points))
        better = jnp.where(done, edges, better)
        return better, error, (better == edges).all(), rounds + 1

    start = (edges, jnp.asarray(jnp.inf), jnp.asarray(False), 0)
    edges, error, _, _ = jax.lax.while_loop(unfinished, improve, start)
    return _panels(edges), error


def _with_known(edges: jax.Array, found: Weighed) -> jax.Array:
    """More panels, that end at the highest of the marks that rise above the others between nodes, and of jumps.

    A jump has a panel of next to no width, whose two ends are its sides.
    """
    place, height = found.marks
    height = jnp.where(missed(_panels(edges).points, found), height, -jnp.inf)
    jump, sides = found.jumps.reshape(2, -1, 2)
    close = _SMALL * jnp.maximum(jnp.abs(jump), 1e-3 * (edges[-1] - edges[0]))
    sides = jnp.where(sides.max(1) >= found.height.max() - DEPTH, sides.max(1), -jnp.inf)
    place = jnp.concatenate([place, (jump - close * np.array([1, 0])).ravel()])
    height = jnp.concatenate([height, jnp.repeat(sides, 2)])
    highest, at = jax.lax.top_k(height, (len(edges) - 1 - _START) // 2)
    place = jnp.clip(place[at], edges[0], edges[-1])
    more = jnp.where(highest > -jnp.inf, place, edges[-1])
    return jnp.sort(jnp.concatenate([edges[: _START + 1], more, edges[_START + 1 + len(more) :]]))


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


def _cut(edges: jax.Array, found: Weighed) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Whether these panels do, their error, and better ones: cut where errors are, dropped where nothing is, grown
    where it ends.
    """
    grid, height = _panels(edges), found.height
    strong = found.important(grid.log_weights[0])
    count, half = len(edges) - 1, jnp.diff(edges) / 2
    weighted = half[:, None] * _by_panel(jnp.exp(strong - strong.max()))
    plain = half[:, None] * _by_panel(jnp.exp(height - height.max()))
    total = (weighted * _FINE).sum()
    # Of both: what jumps by itself need not jump times what it is integrated with.
    error, alone = (jnp.abs((each * (_FINE - _ROUGH)).sum(1)) / (each * _FINE).sum() for each in (weighted, plain))
    error = jnp.maximum(error, alone)

    # In each panel, the step that may hide the highest peak, or a jump.
    bound, above = between_nodes(grid.points, height, found.own)
    hidden = unseen(grid.points, height, found.own)
    drop = jnp.abs(jnp.diff(jnp.maximum(height, jnp.finfo(height.dtype).min / 4))) > DEPTH
    obscure = hidden.reshape(count, _ORDER)
    jump = (drop & (bound >= -DEPTH)).reshape(count, _ORDER) | _rises_at_once(weighted) | _rises_at_once(plain)
    jump = jump & (error > _LEVELS[0])[:, None] & ~obscure.any(1, keepdims=True)
    wanted = jnp.where(obscure | jump, bound.reshape(count, _ORDER), -jnp.inf)
    highest = wanted.max(1, keepdims=True)
    peaked = highest[:, 0] > -jnp.inf
    step = (wanted == highest) & (highest > -jnp.inf)
    ends = strong[:: len(strong) - 1] >= strong.max() - DEPTH
    # What is known of a function to an error is integrated no better than that.
    enough = _SETTLED
    if found.error is not None:
        enough = jnp.clip(_spread(found.error, height, grid), _SETTLED, _OF_FUNCTION)
    done = (error.sum() < enough) & ~hidden.any() & ~ends.any()
    # A peak that may hide counts as much as the nodes beside it, times how far it may rise above these.
    around = jnp.maximum(strong[1:], strong[:-1]) - strong.max() + jnp.maximum(above, rises(grid.points, height))
    share = (jnp.where(hidden, jnp.exp(around), 0.0) * jnp.diff(grid.points)).sum() / total
    left = jnp.where(ends.any(), jnp.inf, error.sum() + share)

    # In order: the left edge of a panel, then new ones in it, around its peak or at its quarters; last the right end.
    middle = edges[:-1] + half
    points = grid.points[:-1].reshape(count, _ORDER)
    before = jnp.where(step, points, edges[1:, None]).min(1)
    behind = jnp.where(step, grid.points[1:].reshape(count, _ORDER), edges[:-1, None]).max(1)
    matters = (weighted.max(1) > 1e-18 * total) | peaked | (error > _LEVELS[0])
    beside = matters | jnp.append(False, matters[:-1])
    tiny = resolved(grid.points, jnp.maximum(strong[1:], strong[:-1])).reshape(count, _ORDER).all(1)
    wrong = jnp.where(peaked | tiny | (half <= 8 * jnp.finfo(edges.dtype).eps * jnp.abs(middle)), 0.0, error)

    # All that is wanted if there is room; else without the dead; else for the largest errors only.
    room = count - 1
    used = edges[:-1] < edges[-1]
    cuts = (wrong[:, None] > _LEVELS).sum(0) + 2 * (wrong[:, None] > np.maximum(_LEVELS, _LARGE)).sum(0)
    needed = 2 * peaked.sum() + ends.sum() + cuts
    dead = used.sum() + needed[0] <= room
    old = used & (beside | dead) & ~_moved_on(edges, before, behind, jump.any(1), peaked, error)
    # The highest peaks, as far as there is room for them.
    rank = jnp.argsort(jnp.argsort(-highest[:, 0]))
    peaked = peaked & (2 * (rank + 1) <= room - old.sum() - ends.sum())
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
    return done, left, jnp.concatenate([low[None], jnp.sort(jnp.concatenate(taken))[:room], high[None]])


def _rises_at_once(values: jax.Array) -> jax.Array:
    """Which step of each panel has most of all that values rise and fall: a jump, or a slope that looks like one."""
    rise = jnp.abs(jnp.diff(values))
    return rise > _MOST * rise.sum(1, keepdims=True)


def _moved_on(
    edges: jax.Array, before: jax.Array, behind: jax.Array, jumps: jax.Array, peaked: jax.Array, error: jax.Array
) -> jax.Array:
    """Which left edges of panels are dropped: between a panel with a jump, of which a part is known to have none, and a
    wider neighbour without much error, which takes that part. So a jump needs one narrow panel, not a trail of them.
    """
    inner, width = edges[1:-1], jnp.diff(edges)
    left, right = slice(None, -1), slice(1, None)
    grows = (before[right] > inner) & (before[right] - inner <= width[left]) & jumps[right]
    grows = grows & ~peaked[left] & (error[left] <= _LITTLE * error[right])
    back = (behind[left] < inner) & (inner - behind[left] <= width[right]) & jumps[left]
    back = back & ~peaked[right] & (error[right] <= _LITTLE * error[left])
    return jnp.append(False, grows | back)


def _spread(error: jax.Array, height: jax.Array, grid: Grid) -> jax.Array:
    """The root mean square of an error over the mass."""
    weights = jax.nn.softmax(height + grid.log_weights[0])
    return jnp.sqrt(jnp.where(weights > 0, weights * error**2, 0.0).sum())


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
