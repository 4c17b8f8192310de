"""Answers by quadrature rules, with their doubt: few nodes for all members, better rules for doubtful ones."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.ep import doubt
from meanmap.ep.factor import Answer
from meanmap.ep.oracles.oracle import in_parts, spread
from meanmap.ep.quadrature.mesh import DEPTH, Grid, Weighed, kinked, located, missed, trapezium, unseen, unseen_between
from meanmap.ep.quadrature.panels import adapted

__all__ = ["NODES", "RULES", "answered", "conclude", "spread_out"]

# Of the grid that follows the mass; there is room for as many panels.
NODES = 257

# Of the rule over all that comes in. With every other one its error for a Normal is 1e-16.
_FEW = 65

# How far below the peak ends have to be, where moments are not looked at.
_DEPTH_OF_ENDS = DEPTH + 3

# Where no more panels fit in, their error is stated as it is, if it is below this. Panels with more show less and less
# of what the integrand is like: a hundred times as much is a standard deviation.
_LARGE, _TOO_LARGE = 1e-4, 1e-2

# This many members get nodes, a grid, or panels, of their own at once, so that memory is bounded.
_AT_ONCE = (2048, 256, 32)

# A number whose mass is all but this share at one node has not been resolved.
_ALONE = 1e-3

# Bounds between nodes are of this many parts of each step, and above what the nodes show by less than this, in logs,
# where nothing is hidden.
_CUTS, _DOUBLED, _ROOM = 8, 20, np.log(1.5)

# At a kink errors fall with the square of the step, in the mean: the second of two differences between three rules is
# then this many times the error of the first rule.
_OF_KINKS = 12.0


def over_window(weigh: Callable[[jax.Array], Weighed], incoming: tuple[Any, ...], window: Any, count: int) -> Answer:
    """By few nodes where the incoming messages have their mass; possible failures have a doubt of one or more.

    That is enough for a factor that is not much narrower than the incoming messages, and costs a tenth of a search for
    the mass.
    """
    low, high = window
    grid = trapezium(low, high, min(count, _FEW))
    found = weigh(grid.points)
    if found.error is not None:  # of a function that is kept: differences do not say how fast rules improve
        grid = grid._replace(log_weights=grid.log_weights[:2])
    ends = found.height[jnp.array([0, -1])].max() >= found.height.max() - _DEPTH_OF_ENDS
    hidden = unseen_between(found.height, found.own) | kinked(found.height, found.error)
    hidden = hidden | _stepped_over(grid, found)
    return conclude(incoming, found, grid, ~ends & ~hidden & spread_out(found, grid))


def on_grid(weigh: Callable[[jax.Array], Weighed], incoming: tuple[Any, ...], window: Any, count: int) -> Answer:
    """By the trapezium rule where the mass is; possible failures have a doubt of one or more."""
    grid = located(weigh, window).grid(count)
    found = weigh(grid.points)
    strong = found.important(grid.log_weights[0])
    ends = strong[jnp.array([0, -1])].max() >= strong.max() - DEPTH
    # In the parameter of the nodes, where steps are equal.
    kinks = kinked(found.height + grid.log_weights[0], found.error)
    hidden = unseen(grid.points, found.height, found.own).any() | kinks | _stepped_over(grid, found)
    return conclude(incoming, found, grid, ~ends & ~hidden & spread_out(found, grid))


def on_panels(weigh: Callable[[jax.Array], Weighed], incoming: tuple[Any, ...], window: Any, count: int) -> Answer:
    """By panels that are cut until nothing is left unseen, from a window that grows."""
    grid, error = adapted(weigh, window, count)
    found, settled = weigh(grid.points), error < _TOO_LARGE
    found = found._replace(unreached=found.unreached & ~_nothing_between(grid, found))
    seen = settled & ~_stepped_over(grid, found) & spread_out(found, grid)
    return conclude(incoming, found, grid, seen, jnp.where(settled, error * jnp.maximum(1, error / _LARGE), 0.0))


def spread_out(found: Weighed, grid: Grid) -> jax.Array:
    """Whether more than one node has mass: a peak between two nodes of which nothing is seen looks like one."""
    return jax.nn.softmax(found.height + grid.log_weights[0]).max() < 1 - _ALONE


def _stepped_over(grid: Grid, found: Weighed) -> Any:
    """Whether something stands out between the nodes, as is known of the function from elsewhere."""
    return np.False_ if found.marks is None else missed(grid.points, found).any()


def _nothing_between(grid: Grid, found: Weighed) -> Any:
    """Whether bounds between the nodes leave no room for mass of which the nodes show nothing."""
    if found.above is None:
        return np.False_
    points, rest = grid.points, found.height - found.own
    # Beyond both ends the incoming messages fall at least as fast as there, over steps that double.
    span = points[-1] - points[0]
    close = jnp.interp(jnp.stack([points[0] + 1e-3 * span, points[-1] - 1e-3 * span]), points, rest)
    falls = (rest[jnp.array([0, -1])] - close) / (1e-3 * span)
    far = span * (2.0 ** np.arange(1, _DOUBLED) - 1)
    inner = points[:-1, None] + jnp.diff(points)[:, None] * (np.arange(_CUTS) / _CUTS)
    edges = jnp.concatenate([points[0] - far[::-1], inner.ravel(), points[-1] + far])
    rest = jnp.interp(edges, points, rest)
    rest = rest - falls[0] * jnp.minimum(edges - points[0], 0) + falls[1] * jnp.maximum(edges - points[-1], 0)
    above = jnp.maximum(rest[1:], rest[:-1]) + found.above(edges[:-1], edges[1:]) + jnp.log(jnp.diff(edges))
    return jax.nn.logsumexp(above) < jax.nn.logsumexp(found.height + grid.log_weights[0]) + _ROOM


# From the one that costs least to the one that finds all; each has its number as the level of a quadrature.
RULES = (over_window, on_grid, on_panels)


def answered(
    rules: range, parts: int, first: Answer, ask: Callable[[Any, tuple[Any, ...]], Answer], incoming: tuple
) -> Answer:
    """The first answers, replaced by those of finer rules for members that the rules before leave in doubt.

    `ask` computes the answer of a rule for the incoming messages of one member. If the plate is on several devices,
    doubtful members are gathered separately in each of this many equal parts.
    """
    for at in rules:
        careful, at_once = partial(ask, RULES[at]), _AT_ONCE[at]
        if parts == 1:
            first = where_doubtful(first, careful, incoming, at_once)
            continue
        both = first, spread(incoming, len(first.doubt))
        first = in_parts(lambda b, few, c=careful: where_doubtful(b[0], c, b[1], few), parts, both, at_once)
    return first


def conclude(
    incoming: tuple[Any, ...],
    found: Weighed,
    grid: Grid,
    settled: Any,
    overlooked: Any = 0.0,
    undefined: Any = 0.0,
    cautious: Any = False,
) -> Answer:
    """The messages by the first of several rules, with errors estimated from the others.

    Two rules give the error of the second; a third shows how fast they converge: if the differences are d and d', the
    next is d d/d'. With `cautious`, as near kinks, neither is trusted, because errors decrease slowly there, and d may
    be small by chance. The doubt includes the share of the mass that may have been `overlooked`; a member that is not
    `settled` may have overlooked any share. The factor was `undefined` on this share of the incoming messages at least.
    """
    messages: list[Any] = [None] * len(incoming)
    errors: list[Any] = [None] * len(incoming)
    doubts = []
    for at, message in found.messages.items():
        told = [message((found.height + own)[some], some) for own, some in grid.rules()]
        beliefs = [jax.tree.map(jnp.add, one, incoming[at]) for one in told]
        first, *more = (doubt.between(a, b) for a, b in pairwise(beliefs))
        faster = jnp.where(more[0] > first, first / more[0], 1.0) if more else 1.0
        slowly = jnp.maximum(first, more[0] / _OF_KINKS) if more else first
        doubts.append(jnp.where(cautious, slowly, first * faster))
        messages[at] = told[0]
        errors[at] = jax.tree.map(lambda a, b, faster=faster: jnp.abs(a - b) * faster, told[0], told[1])
    worst = jnp.stack(doubts).max() + overlooked + found.guessed(grid)
    if found.error is not None:
        # What is off by δ in its logarithm is √(E δ²) away, to first order.
        weights = jax.nn.softmax(found.height + grid.log_weights[0])
        worst = worst + jnp.sqrt(jnp.where(weights > 0, weights * found.error**2, 0.0).sum())
    worst = jnp.where(settled & ~found.unreached, worst, jnp.maximum(worst, 1.0))
    total = jax.nn.logsumexp(found.height + grid.log_weights[0])
    undefined = jnp.maximum(undefined, found.undefined(grid))
    return Answer(tuple(messages), total, tuple(errors), doubt=worst, undefined=undefined)


def where_doubtful(
    plain: Answer, careful: Callable[[tuple[Any, ...]], Answer], incoming: tuple[Any, ...], at_once: int
) -> Answer:
    """The answers of all members, with better ones for doubtful members, a few at a time: easy members cost no more.

    `careful` computes the better answer for the incoming messages of one member.
    """
    if not plain.doubt.ndim:
        one = jax.tree.map(lambda leaf: leaf[None], (plain, incoming))
        return where_doubtful(one[0], careful, one[1], at_once)[0]
    size = plain.doubt.shape[0]
    questions = spread(incoming, size)

    def improve(carried):
        answer, waiting = carried
        chosen = jnp.nonzero(waiting, size=min(size, at_once), fill_value=jnp.argmax(waiting))[0]
        better = jax.vmap(careful)(jax.tree.map(lambda leaf: leaf[chosen], questions))
        put = jax.tree.map(lambda leaf, new: leaf.at[chosen].set(new), answer, better)
        # A grid that follows the mass may have left what the first one saw.
        put = replace(put, undefined=jnp.maximum(put.undefined, answer.undefined))
        return put, waiting.at[chosen].set(False)

    waiting = ~(plain.doubt <= doubt.ENOUGH)
    return jax.lax.while_loop(lambda carried: carried[1].any(), improve, (plain, waiting))[0]
