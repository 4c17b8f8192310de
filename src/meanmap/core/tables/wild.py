"""Single cells so far from all others of their column that what is learned should not depend on them."""

from dataclasses import dataclass

import numpy as np

from meanmap.core.moments import seconds
from meanmap.core.points import is_sparse
from meanmap.core.tables.column import middle_units
from meanmap.core.tables.kinds import is_whole
from meanmap.core.tables.missing import present, take
from meanmap.core.tables.table import read_column

__all__ = ["WildCells", "without_wild_cells"]

# Robust standard deviations from the median, and times the distance of all others from it, beyond which a cell is wild.
# Of 400 columns of 500 draws no normal or exponential one had such a cell, 1 % of t with three degrees of freedom, 4 %
# with two, 22 % of Cauchy's, and 8 % of lognormal ones with σ = 2.
FAR, JUMP = 10.0, 5.0
# More of them are no slips but a part of the law: at most so many, and one in so many rows, but one at least.
MOST, ONE_IN = 5, 100
# Others that are needed to know what is usual, and distinct ones from which on they are more than a scale.
LEAST_OTHERS, MANY = 20, 5
# So many are named.
SHOWN = 3


@dataclass(frozen=True, eq=False)
class WildCells:
    """Cells of a column that decide nothing.

    Attributes
    ----------
    rows : array (k,)
        Where they are, the farthest first.
    values : array (k,)
        As the column has them.
    times : array (k,)
        How many robust standard deviations they are from the median.
    """

    rows: np.ndarray
    values: np.ndarray
    times: np.ndarray

    @classmethod
    def of(cls, numbers: np.ndarray) -> "WildCells | None":
        """Of numbers or times without gaps; None where there are none.

        Examples
        --------
        >>> ages = np.r_[np.arange(18.0, 78.0), 1e6]
        >>> WildCells.of(ages).values.tolist()
        [1000000.0]
        >>> WildCells.of(np.r_[np.arange(18.0, 78.0), 120.0]) is None
        True
        """
        line = seconds(numbers)
        apart = np.abs(line - np.median(line)) if len(line) > LEAST_OTHERS else np.zeros(0)
        most = min(MOST, max(len(line) // ONE_IN, 1))
        farthest = np.argsort(-apart, kind="stable")[: most + 1]
        for count in range(len(farthest) - 1, 0, -1):
            nearest, next_ones = apart[farthest[count - 1]], apart[farthest[count]]
            if not nearest > JUMP * next_ones:
                continue
            rest = np.delete(line, farthest[:count])
            around = np.abs(rest - np.median(rest))
            spread = float(np.median(around[around > 0])) if next_ones > 0 else 0.0
            unit = max(1.4826 * spread, float(middle_units(rest[:, None])[0]))
            if unit > 0 and nearest > FAR * unit and len(np.unique(rest)) >= MANY:
                rows = farthest[:count]
                return cls(rows, numbers[rows], apart[rows] / unit)
        return None

    def note(self, where: str) -> str:
        """What they are, in words, of the column that is called so."""
        first = zip(self.values[:SHOWN], self.rows.tolist(), strict=False)
        shown = [f"{_shown(value)} in row {row}" for value, row in first]
        more = f" and {len(self.rows) - SHOWN} more" if len(self.rows) > SHOWN else ""
        several = len(self.rows) > 1
        return (
            f"{where} holds {', '.join(shown)}{more}, {self.times.min():.0e} standard deviations from all others or "
            f"farther: {'these cells count' if several else 'this cell counts'} as missing. If so far is right, learn "
            "from its logarithm or its rank."
        )


def without_wild_cells(column: object, where: str) -> tuple[np.ndarray, str]:
    """Which rows of a column as it came hold a wild cell, and what is to be said of them: empty where none does."""
    there = present(column)
    none = np.zeros(len(there), dtype=bool), ""
    if is_sparse(column) or is_whole(column) or there.sum() <= LEAST_OTHERS:
        return none
    known = np.flatnonzero(there)
    numbers = np.asarray(read_column(column if len(known) == len(there) else take(column, known), where))
    if numbers.ndim == 2 and numbers.shape[1] == 1:
        numbers = numbers[:, 0]
    if numbers.ndim > 1 or numbers.dtype.kind not in "fiumM":
        return none
    found = WildCells.of(numbers)
    if found is None:
        return none
    found = WildCells(known[found.rows], found.values, found.times)
    wild = none[0].copy()
    wild[found.rows] = True
    return wild, found.note(where)


def _shown(value: object) -> str:
    return str(value) if isinstance(value, np.datetime64 | np.timedelta64) else f"{value:.6g}"
