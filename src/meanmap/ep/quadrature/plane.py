"""A grid over two numbers that follows the mass of an integrand: moved, stretched and sheared until it fits."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.ep.quadrature.mesh import DEPTH, Grid, Spread, Weighed, between_nodes, kinked, rises, unseen

__all__ = ["bent", "followed"]

# The grid fits when it need not shrink by more than this along either axis; it is moved at most so often.
_FITS = 0.7
_ROUNDS = 40

# Nodes are spread, dense about the core and rare far away, along axes of more than this many times the half-width of
# the core, which is what is above 1/e of the peak: a Normal takes 13. Otherwise widths are so large that steps are
# equal.
_LONG, _CORE, _EQUAL = 20.0, 1.0, 1e3

# It has converged when no end moves by more than this share of its width.
_STANDS = 1e-3


class Search(NamedTuple):
    """How a grid is moved: axes that are free, nodes along each, how deep the distribution matters, and how far ends
    move on.

    By default an end that matters moves on by the whole width.
    """

    free: np.ndarray
    nodes: int
    depth: float
    reach: Any


class Box(NamedTuple):
    """Ends along each axis, centre and width of the spread of nodes, and the shear: the second axis measures
    y − slope (x − pivot).
    """

    low: jax.Array
    high: jax.Array
    centre: jax.Array
    width: jax.Array
    slope: jax.Array
    pivot: jax.Array


def followed(
    weigh: Callable[..., Weighed], windows: list[Any], count: int, depth: float = DEPTH, steps: bool = False
) -> tuple[Grid, Weighed, jax.Array, jax.Array]:
    """Points (x, y) where a function of two numbers has its mass, with three rules, what it is there, and what is not.

    Then the share of the distribution that these points may have overlooked, and the largest share of the incoming
    messages on which the function has no value, on any grid on the way.

    Parameters
    ----------
    weigh : callable
        From points x and y to what is known there; where `moving`, roughly.
    windows : list of two
        Where to begin along each axis; None for one that takes the values 0 and 1.
    count : int
        Nodes along each axis; half as many while the grid is moved.
    depth : number
        What is further below the peak of the log of the distribution does not count.
    steps : bool
        Whether ends that matter move on by half of the first width, not by all of the present one.
    """
    free = np.array([one is not None for one in windows])
    ends = [(0.0, 1.0) if one is None else one for one in windows]
    low, high = (jnp.stack([jnp.asarray(one[k]) for one in ends]) for k in (0, 1))
    start = Box(low, high, (low + high) / 2, _EQUAL * (high - low), jnp.zeros(()), jnp.zeros(()))
    search = Search(free, count // 2 - (count // 2 - 1) % 4, depth, (high - low) / 2 if steps else None)

    def unfinished(carried):
        _, fits, stands, rounds, _ = carried
        return ~fits & ~stands & (rounds < _ROUNDS)

    def move(carried):
        box, _, _, rounds, before = carried
        # Of several members some are done, for which a function on the host need not be called: a grid of no numbers.
        box = jax.tree.map(lambda leaf: jnp.where(unfinished(carried), leaf, jnp.nan), box)
        new, fits, undefined = _fitted(weigh, box, search)
        apart = jnp.maximum(jnp.abs(new.low - box.low), jnp.abs(new.high - box.high))
        stands = (apart <= _STANDS * (box.high - box.low)).all() & (new.slope == box.slope)
        return new, fits, stands, rounds + 1, jnp.fmax(before, undefined)

    first = (start, jnp.asarray(False), jnp.asarray(False), 0, jnp.zeros(()))
    box, *_, undefined = jax.lax.while_loop(unfinished, move, first)
    grid, axes = _grid(box, free, count)
    found = weigh(*grid.points)
    # Half as many nodes may have stepped over what all of them show.
    return grid, found, _overlooked(axes, found, grid, search), undefined


def bent(found: Weighed, shape: list[int], log_weights: jax.Array) -> jax.Array:
    """Whether a function on a grid has kinks along an axis."""
    height, bends = found.height.reshape(shape), jnp.asarray(False)
    for axis in (0, 1):
        if shape[axis] > 2:
            # In the parameter of the nodes, where steps are equal.
            marginal = jax.nn.logsumexp(height + log_weights.reshape(shape), 1 - axis)
            error = found.error
            if error is not None:
                error = (jax.nn.softmax(height, 1 - axis) * error.reshape(shape)).sum(1 - axis)
            bends = bends | kinked(marginal, error)
    return bends


def _grid(box: Box, free: np.ndarray, count: int) -> tuple[Grid, list[jax.Array]]:
    """The points of a box with three rules, and its axes."""
    lines = [
        Spread(box.low[k], box.high[k], box.centre[k], box.width[k]).grid(count)
        if free[k]
        else Grid(jnp.array([0.0, 1.0]), jnp.zeros((3, 2)))
        for k in (0, 1)
    ]
    x, y = lines[0].points[:, None], lines[1].points[None, :]
    y = y + box.slope * (x - box.pivot)
    rules = lines[0].log_weights[:, :, None] + lines[1].log_weights[:, None, :]
    points = jnp.stack([jnp.broadcast_to(x, y.shape).ravel(), y.ravel()])
    return Grid(points, rules.reshape(3, -1)), [line.points for line in lines]


def _fitted(weigh: Any, box: Box, search: Search) -> tuple[Box, jax.Array, jax.Array]:
    """A better box, whether this one was good, and the share of the incoming messages without values on it."""
    free = search.free
    grid, axes = _grid(box, free, search.nodes)
    found = weigh(*grid.points, moving=True)
    height = found.height
    shape = (len(axes[0]), len(axes[1]))
    strong = found.important(grid.log_weights[0])
    inside = (strong >= strong.max() - search.depth).reshape(shape)
    strong = strong.reshape(shape)
    span = box.high - box.low

    # Along each axis, the steps from a node to the next that matter: their ends are those of the next box.
    low, high, centre, width = [], [], [], []
    for k in (0, 1):
        profile, nodes = strong.max(1 - k), axes[k]
        middle, half = _core(nodes, profile, height.reshape(shape).max(1 - k))
        centre.append(middle)
        width.append(half)
        bound, _ = between_nodes(nodes, profile)
        kept = bound >= -search.depth
        low.append(jnp.where(kept, nodes[:-1], jnp.inf).min())
        high.append(jnp.where(kept, nodes[1:], -jnp.inf).max())
    seen = ~_hidden(axes, height, free)

    # The shear is the regression of y on x, once the grid resolves both.
    x, y = (jnp.reshape(c, shape) for c in grid.points)
    weights = jax.nn.softmax(strong + grid.log_weights[0].reshape(shape), (0, 1))
    mean_x, mean_y = (weights * x).sum(), (weights * y).sum()
    variance = (weights * (x - mean_x) ** 2).sum()
    slope = (weights * (x - mean_x) * (y - mean_y)).sum() / jnp.where(variance > 0, variance, 1)
    slope = jnp.where(free.all() & seen & (variance > 0), slope, box.slope)
    turned = jnp.abs(slope - box.slope) * span[0] > 0.05 * span[1]
    slope = jnp.where(turned, slope, box.slope)
    pivot = jnp.where(turned, mean_x, box.pivot)
    sheared = y - slope * (x - pivot)
    margin = jnp.diff(axes[1]).max() + jnp.abs(slope - box.slope) * jnp.diff(axes[0]).max()
    low[1] = jnp.where(turned, jnp.where(inside, sheared, jnp.inf).min() - margin, low[1])
    high[1] = jnp.where(turned, jnp.where(inside, sheared, -jnp.inf).max() + margin, high[1])

    new_low, new_high = jnp.stack(low), jnp.stack(high)
    grow = _grows(axes, found, grid, search)
    reach = span if search.reach is None else search.reach
    new_low = jnp.where(free, new_low - jnp.where(grow[:, 0], reach, 0), box.low)
    new_high = jnp.where(free, new_high + jnp.where(grow[:, 1], reach, 0), box.high)
    if found.marks is not None:  # to where the distribution matters at points that were looked at elsewhere
        x, y, there = found.marks
        matters = jnp.isfinite(there) & (there >= jnp.maximum(strong.max(), there.max()) - search.depth)
        for k, (now, at) in enumerate(((x, x), (y - box.slope * (x - box.pivot), y - slope * (x - pivot)))):
            new_low = new_low.at[k].min(jnp.where(matters, at, jnp.inf).min())
            new_high = new_high.at[k].max(jnp.where(matters, at, -jnp.inf).max())
            seen = seen & ~(matters & ((now < box.low[k]) | (now > box.high[k]))).any()
    fits = seen & ~turned & ~grow.any() & ((new_high - new_low > _FITS * span) | ~free).all()
    span, width = new_high - new_low, jnp.stack(width)
    # Sheared, the second axis has another core, which the next grid finds.
    long = (span > _LONG * width) & (width > 0) & ~turned
    middle, width = jnp.where(long, jnp.stack(centre), (new_low + new_high) / 2), jnp.where(long, width, _EQUAL * span)
    fits = fits & (long == (box.width < _EQUAL * (box.high - box.low) / 2)).all()
    return Box(new_low, new_high, middle, width, slope, pivot), fits, found.undefined(grid)


def _core(nodes: jax.Array, *profiles: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Centre and half-width of what is above 1/e of the peak, of the narrowest of several profiles."""
    ends = []
    for profile in profiles:
        core = between_nodes(nodes, profile)[0] >= -_CORE
        ends.append((jnp.where(core, nodes[:-1], jnp.inf).min(), jnp.where(core, nodes[1:], -jnp.inf).max()))
    low, high = (jnp.stack(each) for each in zip(*ends, strict=True))
    narrowest = (high - low).argmin()
    return ((low + high) / 2)[narrowest], ((high - low) / 2)[narrowest]


def _hidden(axes: list[jax.Array], height: jax.Array, free: np.ndarray) -> jax.Array:
    """Whether a peak may stand out between nodes of either axis."""
    height = height.reshape(len(axes[0]), len(axes[1]))
    return jnp.stack([free[k] & unseen(axes[k], height.max(1 - k)).any() for k in (0, 1)]).any()


def _overlooked(axes: list[jax.Array], found: Weighed, grid: Grid, search: Search) -> jax.Array:
    """Which share of the distribution, as its second moments count it, may lie between nodes or beyond ends.

    Where a peak may hide along an axis it counts as much as the nodes beside it, times how far it may rise above these;
    an end that still matters counts as if all further nodes of a grid of the same size were as large; and of a node
    beside one where the function is zero it may be half: what is cut off ends anywhere between them.
    """
    shape = (len(axes[0]), len(axes[1]))
    height, weights = found.height.reshape(shape), grid.log_weights[0].reshape(shape)
    strong = found.important(grid.log_weights[0]).reshape(shape)
    total = jax.nn.logsumexp(found.height + grid.log_weights[0])
    grow, parts = _grows(axes, found, grid, search), [jnp.array([-jnp.inf])]
    for k in np.flatnonzero(search.free).tolist():
        mass, profile = jax.nn.logsumexp(strong + weights, 1 - k) - total, height.max(1 - k)
        beside = jnp.maximum(mass[1:], mass[:-1]) + rises(axes[k], profile)
        parts.append(jnp.where(unseen(axes[k], profile), beside, -jnp.inf))
        parts.append(jnp.where(grow[k], mass[jnp.array([0, -1])] + np.log(shape[k]), -jnp.inf))
        void = height == -jnp.inf
        cut = ~void & (_next_to(void, k, 1) | _next_to(void, k, -1))
        parts.append(jax.nn.logsumexp(jnp.where(cut, strong + weights, -jnp.inf))[None] - total - np.log(2))
    return jnp.exp(jax.nn.logsumexp(jnp.concatenate(parts)))


def _next_to(void: jax.Array, axis: int, step: int) -> jax.Array:
    """Whether the next node along an axis, or the one before, is one of these; none is beyond the ends."""
    moved = jnp.roll(void, step, axis)
    end = 0 if step > 0 else -1
    return moved.at[(end, slice(None)) if axis == 0 else (slice(None), end)].set(False)


def _grows(axes: list[jax.Array], found: Weighed, grid: Grid, search: Search) -> jax.Array:
    """Which ends (axis, end) still matter."""
    strong = found.important(grid.log_weights[0]).reshape(len(axes[0]), len(axes[1]))
    edges = jnp.stack([strong.max(1 - k)[jnp.array([0, -1])] for k in (0, 1)])
    return (edges >= strong.max() - search.depth) & search.free[:, None]
