"""Labels that do not occur in a reference, which are treated as one additional label."""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from meanmap.core.labels import are_codes, as_whole
from meanmap.core.points import count, joined, rows
from meanmap.core.types import Points
from meanmap.core.values import Value

__all__ = ["KnownLabels"]

# The number of landmarks with an unknown label, for each column of labels.
STANDING = 8
# The two words of the smallest integer, which no label has as its code.
UNKNOWN = np.array([0, -(2**31)], np.int32)


@dataclass(frozen=True, eq=False, repr=False)
class KnownLabels(Value):
    """The labels that occur in some rows. Features are zero for a label that no landmark has, so a batch with only new
    labels would hardly differ from its reference. All new labels are therefore replaced by one, `UNKNOWN`, which some
    landmarks have.

    Attributes
    ----------
    codes : tuple of tuples of int arrays
        For each array of labels among the points, and each of its columns, the codes that are known.
    """

    codes: tuple[tuple[np.ndarray, ...], ...] = ()

    @classmethod
    def of(cls, points: Points) -> "KnownLabels":
        """The labels that occur in points."""
        return cls(tuple(tuple(map(np.unique, as_whole(leaf).T)) for leaf in _labels(points)))

    def __call__(self, points: Points) -> Any:
        """The points with every unknown label replaced by `UNKNOWN`."""
        if not self.codes:
            return points
        leaves, tree = jax.tree.flatten(points)
        known = iter(self.codes)
        return tree.unflatten([self._replaced(leaf, next(known)) if are_codes(leaf) else leaf for leaf in leaves])

    def landmarks(self, points: Points, number: int, generator: np.random.Generator) -> tuple[Any, int]:
        """Points from which landmarks are drawn, and their number; with labels, the landmarks themselves."""
        if not self.codes:
            return points, number
        n = count(points)
        some = rows(points, np.sort(generator.choice(n, min(n, number), replace=False)))
        found = joined(some, self._unknown(some))
        return found, count(found)

    def _unknown(self, points: Points) -> Any:
        """A few of the points for each column of labels, with an unknown label there."""
        leaves, tree = jax.tree.flatten(rows(points, slice(0, STANDING)))
        found = []
        for place, leaf in enumerate(leaves):
            for column in range(leaf.shape[1]) if are_codes(leaf) else ():
                changed = np.array(leaf)
                changed[:, column] = UNKNOWN
                found.append(tree.unflatten([changed if i == place else other for i, other in enumerate(leaves)]))
        return joined(*found)

    @staticmethod
    def _replaced(leaf: object, known: tuple[np.ndarray, ...]) -> np.ndarray:
        found = np.array(leaf)
        for column, (codes, mine) in enumerate(zip(known, as_whole(found).T, strict=True)):
            found[~np.isin(mine, codes), column] = UNKNOWN
        return found


def _labels(points: Points) -> list[Any]:
    return [leaf for leaf in jax.tree.leaves(points) if are_codes(leaf)]
