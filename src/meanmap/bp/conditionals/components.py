"""Components of a column of numbers: frequent values, such as the zeros of costs, and separate peaks."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from meanmap.bp.frequent import LEAST_OTHERS, MOST, OFTEN, few_values, frequent

__all__ = ["ColumnComponents"]

# A valley has at most a share DEEP of the values on either side, with a p-value of at most BY_CHANCE. It is sought in
# intervals of WIDTHS widths, each half the one before, at PLACES positions.
DEEP, BY_CHANCE, WIDTHS, PLACES = 0.1, 0.001, 5, 200


@dataclass(frozen=True, eq=False)
class ColumnComponents:
    """Values that have a probability of their own, and ranges of all others, in this order.

    Attributes
    ----------
    points : array (A,)
        Rising.
    cuts : array (C,)
        Between ranges, rising.

    Examples
    --------
    >>> cost = np.append(np.zeros(40), np.arange(1.0, 41.0))
    >>> found = ColumnComponents.of(cost)
    >>> found.points.tolist(), found.hits(np.array([0.0, 7.0, np.nan])).tolist()
    ([0.0], [[1.0, 0.0], [0.0, 1.0], [nan, nan]])
    >>> ColumnComponents.of(np.append(cost[40:], cost[40:] + 100)).cuts.tolist()
    [70.5]
    """

    points: np.ndarray
    cuts: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray) -> "ColumnComponents":
        """Find the components of the values (n,) of a column; none if there are few values."""
        if few_values(values):
            return cls(np.zeros(0), np.zeros(0))
        points, found = frequent(values), np.unique(values)
        others = found[~np.isin(found, points)]
        return cls(points, np.sort(list(_valleys(others, max(OFTEN * len(others), LEAST_OTHERS), MOST - 1))))

    @classmethod
    def points_alone(cls, values: np.ndarray) -> "ColumnComponents":
        """Without cuts between peaks, which take longer to find."""
        return cls(np.zeros(0) if few_values(values) else frequent(values), np.zeros(0))

    def __len__(self) -> int:
        return len(self.points) + len(self.cuts) + 1

    def hits(self, values: np.ndarray) -> np.ndarray:
        """Zeros and a one (n, components), NaN where a value is missing."""
        among = values[:, None] == self.points
        ranges = self.ranges(values)[:, None] == np.arange(len(self.cuts) + 1)
        found = np.column_stack([among, ranges & ~among.any(axis=1, keepdims=True)]).astype(float)
        return np.where(np.isnan(values)[:, None], np.nan, found)

    def ranges(self, values: np.ndarray) -> np.ndarray:
        """The number of the range of each value (n,) that is not a point."""
        return np.searchsorted(self.cuts, values)

    def limits(self, values: np.ndarray, within: tuple[float, float]) -> tuple[float, float]:
        """The range of values outside points: a point that is the smallest or largest value is a limit, as for costs
        from zero and for censored values.
        """
        low, high = float(values.min()), float(values.max())
        return low if low in self.points else within[0], high if high in self.points else within[1]

    def others(self, values: np.ndarray) -> np.ndarray:
        """Values (n,) with NaN instead of the points."""
        return np.where(np.isin(values, self.points), np.nan, values)


def _valleys(values: np.ndarray, least: float, most: int) -> Iterator[float]:
    """Valleys where sorted distinct values (n,) are cut: at most `most`, with at least `least` values on each side.

    If a density has one peak, each interval has at least the density of one of its neighbours. If both neighbours of
    the same width have many more values, there is a valley.
    """
    from scipy.stats import binom

    if most < 1 or len(values) < 2 * least:
        return
    reach, best = values[-1] - values[0], (BY_CHANCE / (WIDTHS * len(values)), 0.0, 0.0)
    for width in reach / 2.0 ** np.arange(1, WIDTHS + 1):
        ends = np.linspace(values[0], values[-1] - width, PLACES) + width * np.arange(-1, 3)[:, None]
        left, inside, right = np.diff(np.searchsorted(values, ends), axis=0)
        fewer = np.minimum(left, right)
        chance = np.where(inside <= DEEP * fewer, binom.cdf(inside, inside + fewer, 0.5), 1.0)
        k = int(np.argmin(chance))
        if chance[k] < best[0]:
            best = (float(chance[k]), float(ends[1, k]), float(ends[2, k]))
    first, last = np.searchsorted(values, best[1:])
    around = values[max(first - 1, 0) : last + 1]
    if best[2] == best[1] or len(around) < 2:
        return
    widest = int(np.argmax(np.diff(around)))
    cut = float(around[widest] + around[widest + 1]) / 2
    sides = values[values < cut], values[values > cut]
    if min(map(len, sides)) < least:
        return
    yield cut
    for side in sides:
        yield from _valleys(side, least, most // 2)
