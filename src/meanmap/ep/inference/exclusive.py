"""Whether two densities, each of which is possible, exclude one another."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.ep.calling import call
from meanmap.ep.calls import user_errors
from meanmap.ep.factor import Factor
from meanmap.ep.inference.ranges import MEMBERS, all_over
from meanmap.ep.inference.unbounded import is_density
from meanmap.ep.sweeps.plan import fetched

__all__ = ["exclusive"]

# Between points where one density is above 0 and the closest ones where another is, along this many lines, the end of
# each is searched for, with this many points a round; calls of a function on the host may be dear.
_LINES, _POINTS, _LINES_ON_HOST, _POINTS_ON_HOST = 32, 15, 2, 1
# What is left of a line in the end, as a power of 2: the digits of a number.
_DIGITS = 52


class _Member(NamedTuple):
    """One member of a density: where it is above 0."""

    name: str
    factor: Any
    row: int

    def possible(self, places: dict[str, np.ndarray]) -> np.ndarray:
        """At which of these points, given by variable along the first axis, it is not 0."""
        over = tuple(at for at, argument in enumerate(self.factor.arguments) if not argument.known)
        values = [
            jnp.asarray(places[a.name]) if not a.known else jnp.asarray(_of_row(a.values, self.row))
            for a in self.factor.arguments
        ]
        with user_errors():
            heights = np.asarray(call(self.factor, values, over), float)
        return heights > -np.inf  # which NaN is not


def exclusive(factors: Sequence[Factor]) -> str:
    """Which two densities of the same unknowns are never both above 0, in words; empty where none are seen to."""
    for unknowns, members in _groups(factors):
        try:
            said = _apart(unknowns, members)
        except (ArithmeticError, ValueError):  # of a function that cannot be called so far out
            continue
        if said:
            return said
    return ""


def _apart(unknowns: list[tuple[str, Any]], members: list[_Member]) -> str:
    """Which two of these members are never both above 0, in words; empty where none are seen to."""
    host = any(member.factor.host for member in members)
    priors = [prior for _, prior in unknowns]
    points, _ = all_over(priors, host)
    places = {name: np.asarray(each, float) for (name, _), each in zip(unknowns, points, strict=True)}
    above = [member.possible(places) for member in members]
    labels = any(prior.states is not None for prior in priors)
    for one, other in combinations(range(len(members)), 2):
        first, second = ((members[at], above[at]) for at in (one, other))
        if (above[one] & above[other]).any() or not (above[one].any() and above[other].any()):
            continue
        if labels or not (_meet(places, first, second, host) or _meet(places, second, first, host)):
            names = ", ".join(repr(name) for name, _ in unknowns)
            where = "" if labels else ", near and far, or between these"
            return (
                f"{members[one].name} and {members[other].name} exclude one another: at none of "
                f"{len(above[one]):,} values of {names}{where} are both above 0"
            )
    return ""


def _groups(factors: Sequence[Factor]) -> Iterator[tuple[list[tuple[str, Any]], list[_Member]]]:
    """Unknowns with their priors, and the members of the densities that all of these share."""
    found: dict[tuple[str, ...], list[Any]] = defaultdict(list)
    for factor in factors:
        if is_density(factor) and not getattr(factor, "random", False):
            found[tuple(sorted(a.name for a in factor.arguments if not a.known))].append(factor)
    for names, some in found.items():
        variables = {a.name: a.variable for a in some[0].arguments if not a.known}
        chosen = [variables[name] for name in names]
        plates = {variable.plate for variable in chosen}
        if len(plates) > 1 or any(v.prior is None or not fetched(v.prior.is_proper()).all() for v in chosen):
            continue
        plate = plates.pop()
        for member in range(min(plate or 1, MEMBERS)):
            priors = [v.prior if plate is None else _member_of(v.prior, member) for v in chosen]
            rows = [
                _Member(f.name if f.plate is None else f"{f.name} at [{row}]", f, row)
                for f in some
                for row in ([member] if plate is not None else range(min(f.plate or 1, MEMBERS)))
            ]
            if len(rows) > 1:
                yield list(zip(names, priors, strict=True)), rows


def _member_of(prior: Any, member: int) -> Any:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[member], prior) if prior.shape else prior


def _of_row(values: Any, row: int) -> np.ndarray:
    """The given numbers of one member; those that are given once are everyone's."""
    values = np.asarray(values, float)
    return values[row if len(values) > 1 else 0] if values.ndim else values


def _meet(
    places: dict[str, np.ndarray], one: tuple[_Member, np.ndarray], other: tuple[_Member, np.ndarray], host: bool
) -> bool:
    """Whether both are above 0 somewhere on lines from where the first is, at the last point before it ends."""
    (first, mine), (second, theirs) = one, other
    lines, points = (_LINES_ON_HOST, _POINTS_ON_HOST) if host else (_LINES, _POINTS)
    flat = np.concatenate([each.reshape(len(mine), -1) for each in places.values()], 1)
    flat = flat / np.maximum(np.median(np.abs(flat - np.median(flat, 0)), 0), np.finfo(float).tiny)
    here, there = np.flatnonzero(mine), np.flatnonzero(theirs)
    nearest, gap = np.zeros(len(here), int), np.zeros(len(here))
    for k, at in enumerate(here):
        squares = ((flat[there] - flat[at]) ** 2).sum(1)
        nearest[k], gap[k] = there[squares.argmin()], squares.min()
    chosen = np.argsort(gap, kind="stable")[:lines]
    starts, ends = here[chosen], nearest[chosen]
    steps = np.arange(1, points + 1) / (points + 1)
    low, width = np.zeros(len(starts)), np.ones(len(starts))

    def along(share: np.ndarray) -> dict[str, np.ndarray]:
        """The points at these shares of the lines."""
        found = {}
        for name, each in places.items():
            weight = share.reshape(*share.shape, *(1,) * (each.ndim - 1))
            begin, end = (
                each[which].reshape(len(starts), *(1,) * (share.ndim - 1), *each.shape[1:]) for which in (starts, ends)
            )
            found[name] = begin * (1 - weight) + end * weight
        return {name: each.reshape(-1, *places[name].shape[1:]) for name, each in found.items()}

    for _ in range(int(np.ceil(_DIGITS / np.log2(points + 1)))):
        shares = low[:, None] + width[:, None] * steps
        inside = first.possible(along(shares)).reshape(shares.shape)
        until = np.where(inside.all(1), points, inside.argmin(1))
        low, width = low + width * until / (points + 1), width / (points + 1)
    return bool((first.possible(along(low)) & second.possible(along(low))).any())
