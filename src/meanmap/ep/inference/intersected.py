"""Sharp intervals of one number are one interval: what they have in common."""

from typing import TypeGuard

import numpy as np

from meanmap.ep.factor import Factor, replaced
from meanmap.ep.factors.interval import Interval
from meanmap.ep.variables import Given

__all__ = ["intersected"]


def intersected(factors: tuple[Factor, ...]) -> tuple[Factor, ...]:
    """Factors of an equal model, in which the first of the sharp intervals of one number has the ends of their
    intersection, and the others have none.

    A product of indicators is the indicator of the intersection. As one message it is exact, where a message for each
    would be approximate. Every row keeps its place, so that messages have the shapes of the factors as they were given.
    Intervals that have nothing in common stay as they are.
    """
    sharp = [factor for factor in factors if _is_sharp(factor)]
    common = {factor.arguments[0].name: _Common(factor.arguments[0].variable.plate or 1) for factor in sharp}
    for factor in sharp:
        common[factor.arguments[0].name].add(factor)
    if any((each.low >= each.high).any() for each in common.values()):
        return factors
    return tuple(
        common[factor.arguments[0].name].given_to(factor) if _is_sharp(factor) else factor for factor in factors
    )


def _is_sharp(factor: Factor) -> TypeGuard[Interval]:
    return isinstance(factor, Interval) and factor.noise == 0


class _Common:
    """What the sharp intervals of each member of a variable have in common, and how many they are."""

    def __init__(self, members: int):
        self.low, self.high = np.full(members, -np.inf), np.full(members, np.inf)
        self.number, self.given = np.zeros(members, int), np.zeros(members, bool)

    def add(self, factor: Interval) -> None:
        """The ends of one more factor."""
        _, low, high = factor.arguments
        np.maximum.at(self.low, factor.members, low.values)
        np.minimum.at(self.high, factor.members, high.values)
        np.add.at(self.number, factor.members, 1)

    def given_to(self, factor: Interval) -> Interval:
        """The factor with these ends in its first row about a number, unless an earlier factor has them."""
        members = factor.members
        if (self.number[members] == 1).all():
            return factor
        first = np.zeros(len(members), bool)
        first[np.unique(members, return_index=True)[1]] = True
        first &= ~self.given[members]
        self.given[members] = True
        ends = np.where(first, self.low[members], -np.inf), np.where(first, self.high[members], np.inf)
        shape = () if factor.plate is None else (factor.plate,)
        z, *old = factor.arguments
        anew = (Given(end.reshape(shape), each.name) for end, each in zip(ends, old, strict=True))
        return replaced(factor, arguments=(z, *anew))
