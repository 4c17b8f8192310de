"""Whether a model has a posterior at all: densities that outgrow the priors have no integral."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import jax.numpy as jnp
import numpy as np

from meanmap.ep.calling import call, evaluated
from meanmap.ep.factor import Factor
from meanmap.ep.factors.blackbox import Density
from meanmap.ep.variables import Variable
from meanmap.families import Normal

__all__ = ["is_density", "outgrown"]

# Searches for mass along an unbounded density end far out, where it is enormous, or with messages left out or in doubt.
# Other runs are not looked at, which saves calls of their functions.
_SUSPECT = 1e5
# How far out, in standard deviations of the priors.
_FAR = 10.0 ** np.arange(2, 15, 2)
# At most so many unknowns are moved together, and so many points looked at.
_TOGETHER, _POINTS = 3, 5_000_000


def outgrown(factors: Sequence[Factor], log_evidence: float, *, doubted: bool = False) -> str:
    """Which densities rise above the priors as far out as one can look, in words; empty where none is seen to.

    Where messages are `doubted`, less evidence is enough to look: a table of two numbers ends before it is enormous.

    Looked at are numbers with normal priors of which densities alone say more, along their axes and diagonals.
    """
    unknown = np.isnan(log_evidence) and not any(getattr(factor, "host", False) for factor in factors)
    if not (log_evidence > (0.0 if doubted else _SUSPECT) or unknown):
        return ""
    for unknowns, densities in _components(factors):
        if len(unknowns) > _TOGETHER or not all(map(_is_plain, unknowns)) or not all(map(is_density, densities)):
            continue
        signs = [each for each in product((-1, 0, 1), repeat=len(unknowns)) if any(each)]
        points = np.concatenate([np.outer(_FAR, each) for each in signs])
        members = max(factor.plate or 1 for factor in densities)
        if len(points) * members > _POINTS or len({v.plate for v in unknowns}) > 1:
            continue
        try:
            heights = _heights(unknowns, densities, points)
        except (ArithmeticError, ValueError):  # of a function that cannot be called so far out
            continue
        heights = heights.reshape(len(signs), len(_FAR), -1)
        if (heights[:, 1:] > heights[:, :-1]).all(axis=1).any():  # not of a density that is infinite, which is refused
            names = ", ".join(repr(variable.name) for variable in unknowns)
            return f"{', '.join(f.name for f in densities)} grows faster with {names} than the priors fall"
    return ""


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
    """Whether it is a number, or a plate of numbers, with a normal prior."""
    return isinstance(variable.prior, Normal) and bool(np.asarray(variable.prior.is_proper()).all())


def _heights(unknowns: list[Variable], factors: list[Any], points: np.ndarray) -> np.ndarray:
    """The log of all densities and priors at points in standard deviations of the priors, (points, members): the
    members of a plate of unknowns one by one, those of other plates together.
    """
    found = -np.square(points).sum(axis=1)[:, None] / 2 * np.ones(unknowns[0].plate or 1)
    where = {
        variable.name: np.asarray(variable.prior.mean()) + np.asarray(variable.prior.var()) ** 0.5 * at[:, None]
        for variable, at in zip(unknowns, points.T, strict=True)
    }
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
        found = found + (heights if own else heights.sum(axis=1, keepdims=True))
    return found
