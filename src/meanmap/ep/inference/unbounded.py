"""Whether a model has a posterior at all: densities that outgrow the priors have no integral."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import jax.numpy as jnp
import numpy as np

from meanmap.ep.calling import call, evaluated
from meanmap.ep.factor import Factor
from meanmap.ep.factors.blackbox import Density
from meanmap.ep.lines import log_message, to_nodes
from meanmap.ep.variables import Variable
from meanmap.families import Beta, Gamma, Normal

__all__ = ["is_density", "outgrown"]

# Searches for mass along an unbounded density end far out, where it is enormous, or with messages left out or in doubt.
# Other runs are not looked at, which saves calls of their functions.
_SUSPECT = 1e5
# How far out: in standard deviations of normal priors, and in logs and logits of others, up to what numbers can hold,
# which is closer to 0 than to 1.
_FAR = 10.0 ** np.arange(2, 15, 2)
_LOGS, _BELOW_1 = (np.linspace(end / len(_FAR), end, len(_FAR)) for end in (686.0, 35.0))
# Along these, heights that fall by less do not fall.
_LEVEL = 1e-9
# Limits on the unknowns moved together and on the points evaluated.
_TOGETHER, _POINTS = 3, 5_000_000


def outgrown(factors: Sequence[Factor], log_evidence: float, *, doubted: bool = False) -> str:
    """Which densities rise above the priors as far out as one can look, in words; empty where none is seen to.

    Where messages are `doubted`, less evidence is enough to look: a table of two numbers ends before it is enormous.

    Looked at are numbers with normal, gamma or beta priors of which densities alone say more, along their axes and
    diagonals.
    """
    unknown = np.isnan(log_evidence) and not any(getattr(factor, "host", False) for factor in factors)
    suspect = log_evidence > (0.0 if doubted else _SUSPECT) or unknown
    if not (suspect or doubted):
        return ""
    for unknowns, densities in _components(factors):
        if len(unknowns) > _TOGETHER or not all(map(_is_plain, unknowns)) or not all(map(is_density, densities)):
            continue
        bent = [not isinstance(variable.prior, Normal) for variable in unknowns]
        signs = [each for each in product((-1, 0, 1), repeat=len(unknowns)) if any(each)]
        members = max(factor.plate or 1 for factor in densities)
        if len(signs) * len(_FAR) * members > _POINTS or len({v.plate for v in unknowns}) > 1:
            continue
        if not (suspect or any(bent)):
            continue
        try:
            heights, digits = _heights(unknowns, densities, signs)
        except (ArithmeticError, ValueError):  # of a function that cannot be called so far out
            continue
        # A density that is infinite is refused elsewhere.
        steps = heights[:, 1:] > heights[:, :-1] + digits[:, 1:]
        with np.errstate(invalid="ignore"):
            level = (heights[:, 1:] >= heights[:, :-1] - _LEVEL) & (digits[:, 1:] < _LEVEL)
        logs = [all(b for b, sign in zip(bent, where, strict=True) if sign) for where in signs]
        found = np.flatnonzero((steps.all(axis=1) | level.all(axis=1) & np.array(logs)[:, None]).any(axis=1))
        if len(found):
            return _in_words(unknowns, densities, signs[found[0]])
    return ""


def _in_words(unknowns: list[Variable], densities: list[Any], direction: tuple[int, ...]) -> str:
    """Which densities grow too fast, and where: at an end of what is possible, or as a number grows."""
    named = ", ".join(factor.name for factor in densities)
    edges = [
        f"{variable.name!r} nears {max(sign, 0)}"
        for variable, sign in zip(unknowns, direction, strict=True)
        if sign and (isinstance(variable.prior, Beta) or (sign < 0 and isinstance(variable.prior, Gamma)))
    ]
    if edges:
        return f"{named} grows too fast for an integral as {' and '.join(edges)}"
    names = ", ".join(repr(variable.name) for variable in unknowns)
    return f"{named} grows faster with {names} than the priors fall"


def _components(factors: Sequence[Factor]) -> Iterator[tuple[list[Variable], list[Any]]]:
    """Unknowns that meet in factors, directly or by way of others, and these factors."""
    left = list(factors)
    while left:
        some: list[Any] = [left.pop(0)]
        names: set[str] = set()
        while True:
            names |= {a.variable.name for factor in some for a in factor.arguments if not a.known}
            more = [f for f in left if names & {a.variable.name for a in f.arguments if not a.known}]
            if not more:
                break
            some, left = [*some, *more], [f for f in left if f not in more]
        met = {a.variable.name: a.variable for factor in some for a in factor.arguments if not a.known}
        yield list(met.values()), some


def is_density(factor: Factor) -> bool:
    """Whether it is a density of whole variables."""
    return isinstance(factor, Density) and all(a.known or isinstance(a, Variable) for a in factor.arguments)


def _is_plain(variable: Variable) -> bool:
    """Whether it is a number, or a plate of numbers, with a prior whose tails are known."""
    return isinstance(variable.prior, (Normal, Gamma, Beta)) and bool(np.asarray(variable.prior.is_proper()).all())


def _heights(unknowns: list[Variable], factors: list[Any], signs: Sequence[tuple[int, ...]]) -> tuple[Any, Any]:
    """The log of all densities and priors along these directions, (directions, points, members), and how far rounding
    may move it: the members of a plate of unknowns one by one, those of other plates together.
    """
    parts, where = [], {}
    for at, variable in enumerate(unknowns):
        along = np.repeat([each[at] for each in signs], len(_FAR))
        where[variable.name], height = _far_out(variable.prior, along)
        parts.append(height + np.zeros(unknowns[0].plate or 1))
    points = where[unknowns[0].name]
    for factor in factors:
        members = factor.plate or 1
        values = []
        for argument in factor.arguments:
            value = np.asarray(argument.values, float)[None] if argument.known else where[argument.name]
            event = value.shape[2:]
            shape = (len(points), members, *event)
            values.append(np.broadcast_to(value, shape).reshape(-1, *event))
        if factor.host:
            heights = evaluated(factor, values)
        else:
            heights = call(factor, [jnp.asarray(value) for value in values], tuple(range(len(values))))
        heights = np.asarray(heights, float).reshape(len(points), members)
        heights = np.where(np.isnan(heights), -np.inf, heights)
        own = unknowns[0].plate is not None
        parts.append(heights if own else heights.sum(axis=1, keepdims=True))
    found = np.sum(np.broadcast_arrays(*parts), axis=0)
    largest = np.max([np.abs(np.where(np.isfinite(part), part, 0.0)) for part in np.broadcast_arrays(*parts)], axis=0)
    return tuple(each.reshape(len(signs), len(_FAR), -1) for each in (found, np.spacing(largest)))


def _far_out(prior: Any, along: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places of a number to these sides of its prior, further and further out, and the log of the prior there."""
    repeats = len(along) // len(_FAR)
    if isinstance(prior, Normal):
        steps = (along * np.tile(_FAR, repeats))[:, None]
        return np.asarray(prior.mean()) + np.asarray(prior.var()) ** 0.5 * steps, -np.square(steps) / 2
    upper = _LOGS if isinstance(prior, Gamma) else _BELOW_1
    outwards = np.where(along < 0, -np.tile(_LOGS, repeats), np.tile(upper, repeats))[:, None]
    middle = np.atleast_1d(np.asarray(prior.mean_in(prior.coordinates[-1])))
    nodes = to_nodes(type(prior), jnp.asarray(np.where(along[:, None] == 0, middle, outwards)), jnp.zeros(()))
    return np.asarray(nodes.x), np.asarray(log_message(prior, nodes) + nodes.log_weight)
