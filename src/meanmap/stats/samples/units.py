"""Permutations of units of a few rows instead of rows: the same statistic, as exact, at a fraction of the cost."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from meanmap.core.points import rows
from meanmap.core.types import Points
from meanmap.features.base import Features, transformed, transformed_means

__all__ = ["Forms", "Units"]

# About this many units in all, and at least this many of the smallest sample. Units lose only the pairs of rows within
# one, a share of 1 / units, and the null distribution of this many units is that of rows up to noise.
ENOUGH, LEAST = 1000, 250

# From scores (N, M) to T, the squares of their standardised sums for the data and each draw, (1 + B, M).
Forms = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Units:
    """Random groups of rows of one sample that are permuted together, so the order of rows does not matter.

    All units have the same size: under the null hypothesis they are exchangeable, and permutations of them are as exact
    as those of rows. Rows left over, fewer than a unit in each sample, count in the statistic but are not permuted.

    Attributes
    ----------
    members : int array (U, b)
        The rows of each unit, sample by sample.
    left : tuple of int arrays
        The rows left over of each sample that has some; each stands behind the units as one more that stays.
    labels : int array (U + len(left),)
        Which sample each is of.
    """

    members: np.ndarray
    left: tuple[np.ndarray, ...]
    labels: np.ndarray

    @classmethod
    def of_rows(cls, sizes: Sequence[int]) -> "Units":
        """Each row alone."""
        return cls(np.arange(sum(sizes))[:, None], (), np.repeat(np.arange(len(sizes)), sizes))

    @classmethod
    def of(cls, sizes: Sequence[int], generator: np.random.Generator) -> "Units":
        """Of samples of this many rows, one after the other; of few rows each is a unit, and nothing is drawn."""
        size = max(1, min(sum(sizes) // ENOUGH, min(sizes) // LEAST))
        if size == 1:
            return cls.of_rows(sizes)
        members, left, start = [], [], 0
        for n in sizes:
            order, start = start + generator.permutation(n), start + n
            whole = n // size * size
            members.append(order[:whole].reshape(-1, size))
            left.append(order[whole:])
        of_members = np.repeat(np.arange(len(sizes)), list(map(len, members)))
        some = [g for g, rest in enumerate(left) if len(rest)]
        return cls(np.concatenate(members), tuple(left[g] for g in some), np.r_[of_members, some].astype(int))

    @property
    def size(self) -> int:
        """b, the rows of a unit."""
        return self.members.shape[1]

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many units each sample has, with what is left over."""
        return tuple(np.bincount(self.labels).tolist())

    def exchanged(self, n_draws: int, generator: np.random.Generator) -> np.ndarray:
        """Labels with whole units exchanged at random, (1 + B, units); the first row is the data."""
        found = np.tile(self.labels.astype(np.int8 if self.labels.max() < 128 else np.int64), (n_draws + 1, 1))
        moving = found[1:, : len(self.members)]
        moving[:] = generator.permuted(moving, axis=1)
        return found

    def means(self, values: np.ndarray) -> np.ndarray:
        """Of rows of `values`, less the mean of all: sums over each unit, divided by the size of whole ones.

        Of units of one row `values` as they are.
        """
        if self.size == 1:
            return values
        return self._centred(values[self.members].mean(axis=1), [values[left] for left in self.left])

    def gram(self, gram: np.ndarray) -> np.ndarray:
        """The Gram matrix of the units' means."""
        return gram if self.size == 1 else self.means(self.means(gram).T)

    def forms(self, forms: Forms) -> Forms:
        """Of scores of rows, what `forms` gives of scores of units, again with mean square one."""

        def of_units(scores: np.ndarray) -> np.ndarray:
            found = self.means(scores)
            return forms(found / np.maximum(found.std(axis=0), np.finfo(float).tiny))

        return forms if self.size == 1 else of_units

    def features(self, features: Features, points: Points) -> np.ndarray:
        """Features of points, or the centred means of those of units of points."""
        if self.size == 1:
            return transformed(features, points)
        whole = transformed_means(features, rows(points, self.members.ravel()), self.size)
        return self._centred(whole, [transformed(features, rows(points, left)) for left in self.left])

    def _centred(self, whole: np.ndarray, left: Sequence[np.ndarray]) -> np.ndarray:
        found = np.concatenate([whole, *(values.sum(axis=0, keepdims=True) / self.size for values in left)])
        shares = np.r_[np.ones(len(whole)), [len(values) / self.size for values in left]]
        return found - np.outer(shares, found.sum(axis=0) / shares.sum())
