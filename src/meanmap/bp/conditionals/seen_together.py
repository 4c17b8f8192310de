"""Whether rows had such values of two parents together: where hardly any did, what follows is extrapolated."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from meanmap.core.language import in_percent, with_and
from meanmap.core.notes import in_rows
from meanmap.core.points import spread_rows

__all__ = ["SeenTogether", "extrapolated", "unlike_rows"]

# The number of rows whose parents are kept, and of rows times pairs of parents, each with a tree of its own.
MOST_ROWS, MOST_POINTS = 4000, 400_000
# Two values are unlike those of all rows if they are this many times as far from the nearest row as all but this share
# of the rows are from the nearest other, divided by the number of pairs that are compared.
FAR, OUTER = 2.0, 0.01
# A smaller share of draws like this is not noted.
NOTED = 0.05


@dataclass(frozen=True, eq=False)
class SeenTogether:
    """The parents of a variable in some rows, to compare pairs of values with.

    Numbers are compared by their ranks, from 0 to 1; labels that differ are as far apart as the ends of a number.

    Attributes
    ----------
    parents : dict of arrays (m, width)
        Numbers, or zeros and a one for labels; NaN in gaps.
    """

    parents: Mapping[Hashable, np.ndarray]

    @classmethod
    def of(cls, parents: Mapping[Hashable, np.ndarray]) -> "SeenTogether":
        """From rows of at least two parents (n, width); of fewer there is nothing to compare."""
        if len(parents) < 2:
            return cls({})
        pairs = comb(len(parents), 2)
        chosen = spread_rows(len(next(iter(parents.values()))), min(MOST_ROWS, MOST_POINTS // pairs))
        return cls({name: values[chosen] for name, values in parents.items()})

    def unlike(self, known: Hashable, other: Hashable, at: Mapping[Hashable, np.ndarray]) -> np.ndarray:
        """Which pairs of values (k, width) of two parents are unlike those of all rows, (k,) of bool; a number between
        those of the rows counts as the nearest of them.
        """
        asked = [self._coordinates(name, at[name]) for name in (known, other)]
        own = sum(self._tree((name,)).query(each)[0] for name, each in zip((known, other), asked, strict=True))
        both = known, other
        if both not in self._reach:
            away = self._tree(both).query(self._tree(both).data, k=2)[0][:, 1]
            self._reach[both] = FAR * float(np.quantile(away, 1 - OUTER / comb(len(self.parents), 2)))
        return self._tree(both).query(np.concatenate(asked, axis=1))[0] > self._reach[both] + own + np.finfo(float).eps

    def _tree(self, names: tuple[Hashable, ...]) -> Any:
        """The rows in the columns of some parents; kept."""
        from scipy.spatial import KDTree

        if names not in self._trees:
            columns = [self._coordinates(name, self.parents[name]) for name in names]
            points = np.concatenate(columns, axis=1)
            self._trees[names] = KDTree(points[~np.isnan(points).any(axis=1)])
        return self._trees[names]

    @cached_property
    def _trees(self) -> dict[tuple[Hashable, ...], Any]:
        return {}

    @cached_property
    def _reach(self) -> dict[tuple[Hashable, ...], float]:
        """How far pairs of values may be from the nearest row; kept."""
        return {}

    def _coordinates(self, name: Hashable, values: np.ndarray) -> np.ndarray:
        """Of values (k, width), so that distances are at most one."""
        seen = self.parents[name]
        if seen.shape[1] > 1:
            return values / np.sqrt(2)
        found, counts = np.unique(seen[~np.isnan(seen)], return_counts=True)
        return np.interp(values, found, (np.cumsum(counts) - counts / 2) / counts.sum())


def extrapolated(
    seen: Mapping[Hashable, SeenTogether],
    parents: Mapping[Hashable, Sequence[Hashable]],
    known: Mapping[Hashable, np.ndarray],
    names: Iterable[Hashable],
    drawn: Mapping[Hashable, np.ndarray],
    weights: np.ndarray,
) -> tuple[str, ...]:
    """Notes on variables with a known parent, (1, width), which hardly any row has together with the values of another
    parent, known or drawn (n, width) with these weights (n,).
    """
    notes, shares = [], weights / max(weights.sum(), np.finfo(float).tiny)
    for name in names:
        compared, together = set(), seen.get(name, SeenTogether({})).parents
        for one in (parent for parent in parents[name] if parent in known and parent in together):
            compared.add(one)
            for other in (each for each in parents[name] if each not in compared):
                both = other in known
                at = {each: known[each] if both else drawn[each] for each in (one, other)}
                share = float(np.dot([1.0] if both else shares, seen[name].unlike(one, other, at)))
                if share > NOTED:
                    notes.append(_told([name], one, other, None if both else share))
    return tuple(notes)


def unlike_rows(
    seen: SeenTogether, numbers: Mapping[Hashable, np.ndarray], targets: Sequence[Hashable]
) -> tuple[str, ...]:
    """Notes on rows of numbers (m, width), NaN in gaps, in which two columns have values that hardly any row has
    together: the first such pair of each row. Pairs of labels have notes of their own.
    """
    told: dict[int, str] = {}
    for one, other in combinations(seen.parents, 2):
        both = np.flatnonzero(np.isfinite(numbers[one][:, 0] + numbers[other][:, 0]))
        both = both[[row not in told for row in both.tolist()]]
        if len(both) and min(seen.parents[name].shape[1] for name in (one, other)) == 1:
            unlike = seen.unlike(one, other, {name: numbers[name][both] for name in (one, other)})
            told |= dict.fromkeys(both[unlike].tolist(), _told(targets, one, other, None))
    size = len(next(iter(numbers.values()), ()))
    return tuple(in_rows([[told[row]] if row in told else [] for row in range(size)]))


def _told(names: Sequence[Hashable], one: Hashable, other: Hashable, share: float | None) -> str:
    them = f"{with_and([*map(repr, names)])} {'is' if len(names) == 1 else 'are'} extrapolated"
    lacking = f"{them}, without support from the data."
    if share is None:
        return f"hardly any row has such values of {one!r} and {other!r} together: {lacking}"
    return (
        f"in {in_percent(share)}% of draws {other!r} has values that hardly any row has together with that of {one!r}"
        f": there {lacking}"
    )
