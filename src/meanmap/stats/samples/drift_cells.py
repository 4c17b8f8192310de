"""The number of rows of each column in each of its cells: intervals of numbers, or labels."""

import zlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from meanmap.core.moments import seconds
from meanmap.core.tables.kinds import family_of
from meanmap.core.values import Value, label_text
from meanmap.stats.samples.drift_counts import smallest_of_counts
from meanmap.stats.samples.scores import raw_scores

__all__ = ["ColumnCells", "Judged", "pvalue_of", "score_of_count", "stream_of"]

# Numbers are divided at this many quantiles; labels are the most frequent ones, and all others together.
QUANTILES, MOST_LABELS = 20, 16
# Draws that give the distribution of sums of scores, and more of them where the sum of a batch is beyond all. Sums that
# differ by less than this tie.
DRAWS, MORE, TIE = 1000, 20_000, 1e-9
# Cells are chosen by a fifth of the rows, and this many at most.
FIFTH, CHOOSE = 5, 200
# Rows that are counted, at most: draws are exact up to ten times as many.
MOST_COUNTED = 10**8


@dataclass(frozen=True)
class Judged:
    """What a batch says about a column.

    Attributes
    ----------
    scores : array
        For each moment of the column a standard normal number while rows are exchangeable; 0 if nothing varies.
    varies : bool array
    pvalue : float
        The smallest p-value of the number of rows beyond a cut between cells, or in a cell, corrected for their number.
    """

    scores: np.ndarray
    varies: np.ndarray
    pvalue: float


@dataclass(frozen=True, eq=False, repr=False)
class ColumnCells(Value):
    """The rows of a column so far, counted in cells.

    Cells are chosen by rows that are not counted, so that all counted rows are exchangeable without drift. Given the
    counts of a batch and of all rows before it together, those of the batch are multivariate hypergeometric.

    Attributes
    ----------
    edges, repeated : arrays
        Of numbers: cells are the intervals between edges, and edges that are repeated values themselves.
    labels : tuple of str
        Of labels: a cell for each, and one for all others.
    counts : int array
    """

    edges: np.ndarray
    repeated: np.ndarray
    labels: tuple[str, ...]
    counts: np.ndarray

    @classmethod
    def of(cls, column: np.ndarray, generator: np.random.Generator) -> "ColumnCells":
        """Cells from a fifth of the values of a column, 200 at most, with the counts of the others."""
        order, size = generator.permutation(len(column)), max(1, min(CHOOSE, len(column) // FIFTH))
        chosen, counted = column[order[:size]], column[order[size:]]
        if family_of(chosen) in ("label", "boolean"):
            labels, numbers = np.unique(chosen, return_counts=True)
            often = np.argsort(-numbers, kind="stable")[:MOST_LABELS]
            none = np.zeros(0)
            empty = cls(none, none, tuple(label_text(labels[k]) for k in often), np.zeros(len(often) + 1, int))
        else:
            values = np.sort(seconds(chosen))
            at = np.linspace(0, len(values) - 1, min(QUANTILES + 1, len(values))).round().astype(int)
            edges = np.unique(values[at])
            repeated = edges[[np.count_nonzero(values == edge) > 1 for edge in edges]]
            empty = cls(edges, repeated, (), np.zeros(len(edges) + len(repeated) + 1, int))
        return empty.joined(empty.count(counted))

    @property
    def of_labels(self) -> bool:
        """Whether cells are labels."""
        return bool(self.labels)

    @property
    def moments(self) -> tuple[str, ...]:
        """What is compared: the mean and the sd of numbers, in normal scores, or the share of each label; "" stands for
        all others.
        """
        if not self.of_labels:
            return ("mean", "sd")
        return (*self.labels, "") if len(self.labels) != 1 else self.labels

    @property
    def total(self) -> int:
        """The rows with a value."""
        return int(self.counts.sum())

    def count(self, values: np.ndarray) -> np.ndarray:
        """The rows in each cell."""
        if self.of_labels:
            found = dict(zip(*np.unique(values, return_counts=True), strict=True))
            here = {label_text(label): int(number) for label, number in found.items()}
            known = [here.get(label, 0) for label in self.labels]
            return np.array([*known, len(values) - sum(known)])
        numbers = seconds(values)
        cells = np.searchsorted(self.edges, numbers) + np.searchsorted(self.repeated, numbers, side="right")
        return np.bincount(cells, minlength=len(self.counts))

    def joined(self, counts: np.ndarray) -> "ColumnCells":
        """With the rows of a batch, unless more rows are counted than change anything."""
        return replace(self, counts=self.counts + counts) if self.total < MOST_COUNTED else self

    def judged(self, counts: np.ndarray, generator: np.random.Generator) -> Judged:
        """What the counts of a batch say."""
        total, m = self.counts + counts, int(counts.sum())
        if not m or not self.total:
            none = np.zeros(len(self.moments))
            return Judged(none, none > 0, 1.0)
        if self.of_labels:
            return self._of_labels(total, counts, m, generator)
        cuts = np.concatenate([np.cumsum(each)[:-1] for each in (counts, counts[::-1])])
        below = np.concatenate([np.cumsum(each)[:-1] for each in (total, total[::-1])])
        full = total > 0
        below_and_here = total[full].cumsum() - total[full] / 2
        scores = raw_scores(below_and_here / total.sum(), ndtri(below_and_here / total.sum()), np)[:, :2]
        sums, scale = counts[full] @ scores, m * np.abs(scores).max(axis=0)

        def places(draws: int) -> np.ndarray:
            drawn = generator.multivariate_hypergeometric(total[full], m, size=draws, method="marginals") @ scores
            less = (drawn < sums - TIE * scale).sum(axis=0)
            tied = (np.abs(drawn - sums) <= TIE * scale).sum(axis=0)
            return (less + (1 - generator.random(2)) * (1 + tied)) / (1 + draws)

        place, end = places(DRAWS), 1 / (1 + DRAWS)
        if ((place < end) | (place > 1 - end)).any():
            # Places beyond these ends need both draws, so they are no more frequent than by the second alone.
            again = places(MORE)
            place = np.where(place < end, np.minimum(again, end), place)
            place = np.where(place > 1 - end, np.maximum(again, 1 - end), place)
        found = ndtri(np.clip(place, 1e-9, 1 - 1e-9))
        weights = total[full] / total.sum()
        varies = weights @ scores**2 - (weights @ scores) ** 2 > TIE
        return Judged(np.where(varies, found, 0.0), varies, smallest_of_counts(cuts, below, m, int(total.sum())))

    def _of_labels(self, total: np.ndarray, counts: np.ndarray, m: int, generator: np.random.Generator) -> Judged:
        n, number = int(total.sum()), len(self.moments)
        varies = (total[:number] > 0) & (total[:number] < n)
        scores = score_of_count(counts[:number], total[:number], m, n, generator)
        both = np.concatenate([counts, m - counts]), np.concatenate([total, n - total])
        return Judged(np.where(varies, scores, 0.0), varies, smallest_of_counts(*both, m, n))


def score_of_count(counts: np.ndarray, total: np.ndarray, m: int, n: int, generator: np.random.Generator) -> np.ndarray:
    """Normal scores of counts among the m rows of a batch, of totals among all n: exactly standard normal while these
    are exchangeable, because the discrete p-value is drawn uniformly between that of more and that of as many.
    """
    from scipy.stats import hypergeom

    law: Any = hypergeom(n, total, m)
    uniform, as_many = generator.random(len(counts)), law.pmf(counts)
    least, most = law.cdf(counts - 1) + uniform * as_many, law.sf(counts) + (1 - uniform) * as_many
    tiny = np.finfo(float).tiny
    return np.where(least < most, ndtri(np.maximum(least, tiny)), -ndtri(np.maximum(most, tiny)))


def stream_of(seed: int, number: int, name: str) -> np.random.Generator:
    """The random numbers of a column for a batch, whatever the order of columns."""
    return np.random.default_rng([seed, number, 7, zlib.crc32(name.encode())])


def pvalue_of(before: np.ndarray, here: np.ndarray, seed: int, name: str) -> float:
    """The p-value of some values of a column, compared with others, corrected for its moments and cuts."""
    generator = stream_of(seed, 0, name)
    cells = ColumnCells.of(before, generator)
    judged = cells.judged(cells.count(here), generator)
    moments = 2 * float(ndtr(-np.abs(judged.scores).max())) * len(judged.scores)
    return min(2 * judged.pvalue, 2 * moments, 1.0)
