"""Draws that go together from the priors to the posterior of a few numbers, weighted, repeated and moved."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from meanmap.ep.inference.few_numbers import FewNumbers
from meanmap.ep.inference.mixture import root_of, spread_of, systematic

__all__ = ["Members", "all_moved", "joined", "of_priors", "tempered"]

# The number of moves at each temperature, of four kinds in turn: steps as wide as all other members; as wide as the
# nearest of these, this share of them; from one of them to another; and along one number.
_MOVES, _KINDS, _NEAR = 6, 4, 1 / 64
# At the next temperature members are worth half of their number; the run gives up after this many temperatures.
_WORTH, _STAGES = 0.5, 60


class Members(NamedTuple):
    """Draws in coordinates, with the logs of their prior density and of all else."""

    x: np.ndarray
    before: np.ndarray
    rest: np.ndarray

    def at(self, rows: np.ndarray) -> "Members":
        """Some of them."""
        return Members(self.x[rows], self.before[rows], self.rest[rows])

    def moved(
        self, others: np.ndarray, model: FewNumbers, power: float, times: int, generator: np.random.Generator
    ) -> "Members | None":
        """After this many steps, proposed by members that are independent of these, which leave the prior times a power
        of the rest as it is; None if it is no number.
        """
        here, wide, near = self, root_of(others), _Near.of(others)
        for time in range(times):
            # Steps of many sizes: those that are large for one mode are small for the way between two.
            scale = 2.4 / np.sqrt(here.x.shape[1]) * 10 ** -generator.uniform(0, 2, size=(len(here.x), 1))
            noise = generator.normal(size=here.x.shape)
            if time % _KINDS == 0:
                there, rise = here.x + scale * (noise @ wide.T), 0.0
            elif time % _KINDS == 1:
                there, rise = near.stepped(here.x, scale**0.5 * noise, scale**0.5)
            elif time % _KINDS == 2:
                there, rise = near.carried(here.x, generator.integers(len(near.centres), size=len(scale)))
            else:
                one = generator.integers(noise.shape[1], size=(len(scale), 1)) == np.arange(noise.shape[1])
                there, rise = here.x + scale * one * noise * others.std(0), 0.0
            before, rest, _ = model.logs(there)
            if np.isnan(rest).any():
                return None
            rise = rise + before - here.before + power * (np.maximum(rest, -1e300) - here.rest)
            taken = np.log(generator.random(len(rise))) < rise
            here = Members(
                np.where(taken[:, None], there, here.x),
                np.where(taken, before, here.before),
                np.where(taken, rest, here.rest),
            )
        return here


class _Near(NamedTuple):
    """Moves that follow curved ridges: steps whose covariance at a point is that of the members around the one that is
    nearest, and from one of these to another. Each gives the log of the density of the way back over that of the way.
    """

    tree: Any
    root: np.ndarray
    centres: np.ndarray
    roots: np.ndarray
    inverses: np.ndarray
    logs: np.ndarray

    @classmethod
    def of(cls, x: np.ndarray) -> "_Near":
        from scipy.spatial import KDTree

        root = root_of(x)
        units = np.linalg.solve(root, np.unique(x, axis=0).T).T
        roots = spread_of(units, units, _NEAR)
        logs = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(1)
        return cls(KDTree(units), root, units, roots, np.linalg.inv(roots), logs)

    def stepped(self, x: np.ndarray, noise: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """After steps of this noise, whose standard deviations are the scale."""
        units = np.linalg.solve(self.root, x.T).T
        at = self.tree.query(units)[1]
        step = np.einsum("nij,nj->ni", self.roots[at], noise)
        to = self.tree.query(units + step)[1]
        back = np.einsum("nij,nj->ni", self.inverses[to], step)
        change = (((noise**2).sum(1) - (back**2).sum(1)) / scale[:, 0] ** 2) / 2
        return (units + step) @ self.root.T, self.logs[at] - self.logs[to] + change

    def carried(self, x: np.ndarray, to: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As far from these members as they were from the nearest ones, in units of the covariances."""
        units = np.linalg.solve(self.root, x.T).T
        at = self.tree.query(units)[1]
        away = np.einsum("nij,nj->ni", self.inverses[at], units - self.centres[at])
        there = self.centres[to] + np.einsum("nij,nj->ni", self.roots[to], away)
        same = self.tree.query(there)[1] == to
        return there @ self.root.T, np.where(same, self.logs[to] - self.logs[at], -np.inf)


def joined(populations: Iterable[Members]) -> Members:
    """The members of all populations as one."""
    return Members(*map(np.concatenate, zip(*populations, strict=True)))


def all_moved(
    populations: list[Members], model: FewNumbers, power: float, times: int, generator: np.random.Generator
) -> list[Members] | None:
    """Populations, each moved by steps that the one before it proposes, and the first by those of the last.

    Of two, each would soon have been where the other led it: standard deviations were 3% too small.
    """
    found: list[Members] = []
    for each in populations:
        moved = each.moved((found or populations)[-1].x, model, power, times, generator)
        if moved is None:
            return None
        found.append(moved)
    return found


def tempered(
    model: FewNumbers, generator: np.random.Generator, count: int, populations: int
) -> tuple[list[Members], int] | None:
    """Populations of `count` draws from nearly the posterior, and the number of temperatures; None if they do
    not get there, or if the density is no number.

    Temperatures are those of the first.
    """
    power, all_of = 0.0, []
    for _ in range(populations):
        x = of_priors(model, generator, count)
        before, rest, _ = model.logs(x)
        if np.isnan(rest).any() or not np.isfinite(x).all():
            return None
        all_of.append(Members(x, before, rest))
    for stage in range(1, _STAGES + 1):
        if not all(np.isfinite(each.rest).any() for each in all_of):
            return None
        step, chosen = _next(all_of[0].rest, power), []
        for each in all_of:
            weights = np.exp(step * (each.rest - each.rest.max()))
            chosen.append(each.at(systematic(weights / weights.sum(), count, generator)))
        power += step
        moved = all_moved(chosen, model, power, _MOVES, generator)
        if moved is None:
            return None
        all_of = moved
        if power >= 1:
            return all_of, stage
    return None


def of_priors(model: FewNumbers, generator: np.random.Generator, count: int) -> np.ndarray:
    """Draws from the priors, in coordinates."""
    columns = []
    for prior in model.priors.values():
        own = prior.coordinates[-1]
        x = np.asarray(prior.sample(count, int(generator.integers(2**31))), float)
        columns.append({"x": lambda x: x, "log": np.log, "logit": lambda x: np.log(x) - np.log1p(-x)}[own](x))
    return np.column_stack(columns)


def _next(rest: np.ndarray, power: float) -> float:
    """By how much the power rises: until draws are worth a share of what they are."""

    def worth(step: float) -> float:
        weights = np.exp(step * (rest - rest.max()))
        return float(weights.sum() ** 2 / (weights**2).sum() / len(rest))

    low, high = 0.0, 1.0 - power
    if worth(high) >= _WORTH:
        return high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if worth(middle) >= _WORTH else (low, middle)
    return max(low, 1e-12)
