"""Numbers of parents beside what regressions on them need: indicators of frequent values, ranks of heavy tails."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from meanmap.bp.conditionals.frequent_values import FrequentValues
from meanmap.bp.frequent import few_values, frequent

__all__ = ["HeavyTails", "ParentColumns"]

# Tails are heavy if the standard deviation is more than so many times that of a normal distribution with the same
# quartiles. It is 1.23 times for exponential numbers; for a t distribution with 3 degrees of freedom it is 1.53, of 400
# rows 1.2 to 1.5.
HEAVY = 1.2
# Half the interquartile range of a standard Normal, and the most places at which a normal score is kept.
QUARTILE, PLACES = 0.6745, 100


@dataclass(frozen=True, eq=False)
class HeavyTails:
    """The normal scores of numbers with heavy tails: a smooth function as wide as their standard deviation, which a few
    rows far out determine, would be a straight line where most rows are. Of money that acts as a logarithm next to
    another parent it left a third of the confounding.

    Attributes
    ----------
    columns : array (H,)
    values, scores : tuples of arrays (P,)
        Values of each column, rising, and their normal scores, between which others are interpolated.

    Examples
    --------
    >>> wide = np.sinh(np.linspace(-4, 4, 101))[:, None]
    >>> found = HeavyTails.of(wide)
    >>> found(np.array([[3.6], [1e9]])).round(1).tolist()
    [[0.7], [2.6]]
    >>> len(HeavyTails.of(np.linspace(-4, 4, 101)[:, None]).columns)
    0
    """

    columns: np.ndarray
    values: tuple[np.ndarray, ...]
    scores: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, rows: np.ndarray) -> "HeavyTails":
        """Those of the columns of rows (n, q) that have heavy tails."""
        columns = [j for j, column in enumerate(rows.T) if not few_values(column) and _is_heavy(column)]
        values, scores = zip(*(_scores(rows[:, j]) for j in columns), strict=True) if columns else ((), ())
        return cls(np.array(columns, dtype=int), values, scores)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """The scores (m, H) of rows (m, q)."""
        each = zip(self.columns, self.values, self.scores, strict=True)
        found = [np.interp(rows[:, j], values, scores) for j, values, scores in each]
        return np.stack(found, axis=1) if found else np.zeros((len(rows), 0))


@dataclass(frozen=True, eq=False)
class ParentColumns:
    """Rows of the parents with columns on their right for frequent values and heavy tails."""

    often: FrequentValues
    tails: HeavyTails

    @classmethod
    def of(cls, rows: np.ndarray) -> "ParentColumns":
        """Those of rows (n, q)."""
        return cls(FrequentValues.of(rows), HeavyTails.of(rows))

    @property
    def added(self) -> int:
        """The number of these columns."""
        return len(self.often.values) + len(self.tails.columns)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Rows (m, q) with these columns."""
        return np.concatenate([self.often(rows), self.tails(rows)], axis=1)


def _is_heavy(column: np.ndarray) -> bool:
    others = column[~np.isin(column, frequent(column))]
    low, high = np.quantile(others, [0.25, 0.75])
    return bool(high > low and 2 * QUARTILE * others.std() > HEAVY * (high - low))


def _scores(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values at evenly spread normal scores, and these."""
    values, counts = np.unique(column, return_counts=True)
    scores = ndtri((np.cumsum(counts) - counts / 2) / len(column))
    places = np.linspace(scores[0], scores[-1], PLACES)
    return np.interp(places, scores, values), places
