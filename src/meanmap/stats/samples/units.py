"""Permutations of units of a few rows instead of rows: an equally exact test at a fraction of the cost."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from meanmap.core.points import rows
from meanmap.core.types import Points
from meanmap.features.base import Features, transformed, transformed_means

__all__ = ["Forms", "Units"]

# There are this many units in all, and at least this many of the smallest sample. Only the pairs of rows within a unit
# are lost, a share of 1 / units, and the null distribution with this many units is that of rows up to noise.
ENOUGH, LEAST = 1000, 250

# A function from scores (N, M) to T, the squares of their standardised sums for the data and each draw, (1 + B, M).
Forms = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Units:
    """Random groups of rows of one sample that are permuted together, so the order of rows does not matter.

    Units differ by at most one row in size. Under the null hypothesis units of the same size are exchangeable, so
    permutations of units are as exact as those of rows.

    Attributes
    ----------
    members : tuple of int arrays (U_b, b)
        The rows of the units of each size, sample by sample.
    labels : int array (U,)
        The sample of each unit, in the same order.
    """

    members: tuple[np.ndarray, ...]
    labels: np.ndarray

    @classmethod
    def of_rows(cls, sizes: Sequence[int]) -> "Units":
        """Units of one row each."""
        return cls((np.arange(sum(sizes))[:, None],), np.repeat(np.arange(len(sizes)), sizes))

    @classmethod
    def of(cls, sizes: Sequence[int], generator: np.random.Generator) -> "Units":
        """Units for samples with these numbers of rows, one after the other; with few rows each row is a unit, and
        nothing is drawn.
        """
        mean = min(sum(sizes) / ENOUGH, min(sizes) / LEAST)
        if mean <= 1:
            return cls.of_rows(sizes)
        least, start = int(mean), 0
        parts: list[list[np.ndarray]] = [[], []]
        for n in sizes:
            order, start = start + generator.permutation(n), start + n
            number = min(int(np.ceil(n / mean)), n // least)
            ends = least * (number * (least + 1) - n), n  # of units of `least` rows, and of those of one more
            for part, begin, end, rows_of_one in zip(parts, (0, ends[0]), ends, (least, least + 1), strict=True):
                part.append(order[begin:end].reshape(-1, rows_of_one))
        labels = [np.repeat(np.arange(len(sizes)), list(map(len, part))) for part in parts]
        kept = [k for k, part in enumerate(parts) if any(map(len, part))]
        return cls(tuple(np.concatenate(parts[k]) for k in kept), np.concatenate(labels))

    @property
    def alone(self) -> bool:
        """Whether each row is a unit."""
        return len(self.labels) == sum(part.size for part in self.members)

    @property
    def counts(self) -> np.ndarray:
        """The number of rows in each unit."""
        return np.concatenate([np.full(*part.shape) for part in self.members])

    @property
    def size(self) -> float:
        """The mean number of rows of a unit."""
        return sum(part.size for part in self.members) / len(self.labels)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of units in each sample."""
        return tuple(np.bincount(self.labels).tolist())

    def exchanged(self, n_draws: int, generator: np.random.Generator) -> np.ndarray:
        """Labels permuted at random among units of the same size, (1 + B, units); the first row is the data."""
        found = np.tile(self.labels.astype(np.int8 if self.labels.max() < 128 else np.int64), (n_draws + 1, 1))
        start = 0
        for part in self.members:
            moving = found[1:, start : start + len(part)]
            moving[:] = generator.permuted(moving, axis=1)
            start += len(part)
        return found

    def means(self, values: np.ndarray) -> np.ndarray:
        """Rows of `values` minus the overall mean, summed over each unit, divided by the mean number of rows. For units
        of one row, `values` themselves.
        """
        return values if self.alone else self._centred(self._sums(values))

    @property
    def order(self) -> np.ndarray:
        """The rows, unit by unit."""
        return np.concatenate([part.ravel() for part in self.members])

    def gram(self, gram: np.ndarray) -> np.ndarray:
        """The Gram matrix of the units' means, from the Gram matrix of rows in the `order` of units."""
        return gram if self.alone else self._centred(self._centred(self._runs(self._runs(gram).T)).T)

    def forms(self, forms: Forms) -> Forms:
        """The result of `forms` for scores of units, computed from scores of rows and rescaled to mean square one."""

        def of_units(scores: np.ndarray) -> np.ndarray:
            found = self.means(scores)
            return forms(found / np.maximum(found.std(axis=0), np.finfo(float).tiny))

        return forms if self.alone else of_units

    def features(self, features: Features, points: Points) -> np.ndarray:
        """Features of points, or the centred means of features over units of points."""
        if self.alone:
            return transformed(features, points)
        sums = [
            transformed_means(features, rows(points, part.ravel()), part.shape[1]) * part.shape[1]
            for part in self.members
        ]
        return self._centred(np.concatenate(sums))

    def _sums(self, values: np.ndarray) -> np.ndarray:
        """Sums of the rows of `values` over each unit."""
        sums = (sum((values[rows] for rows in part.T[1:]), values[part[:, 0]]) for part in self.members)
        return np.concatenate(list(sums))

    def _runs(self, values: np.ndarray) -> np.ndarray:
        """`_sums` of rows in the `order` of units."""
        found, first, start = np.empty((len(self.labels), values.shape[1])), 0, 0
        for number, size in (part.shape for part in self.members):
            rows = values[start : start + number * size]
            found[first : first + number] = sum((rows[k::size] for k in range(1, size)), start=rows[::size])
            first, start = first + number, start + number * size
        return found

    def _centred(self, sums: np.ndarray) -> np.ndarray:
        """Sums over units of rows minus the overall mean, divided by the mean number of rows."""
        return (sums - np.outer(self.counts / self.counts.sum(), sums.sum(axis=0))) / self.size
