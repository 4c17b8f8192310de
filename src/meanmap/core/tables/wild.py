"""Single cells so far from all others of their column that a fit should not depend on them: gross outliers."""

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np

from meanmap.core.containers import is_sparse
from meanmap.core.held import holds_numbers
from meanmap.core.moments import seconds
from meanmap.core.tables.column import middle_units
from meanmap.core.tables.kinds import holds_objects
from meanmap.core.tables.missing import present, take
from meanmap.core.tables.table import read_column

__all__ = ["WildCells", "without_wild_cells"]

# A cell is wild beyond this many robust standard deviations from the median, and this many times the distance of
# others.
# Of 400 columns of 500 draws no normal or exponential one had such a cell, 1 % of t with three degrees of freedom, 4 %
# with two, 22 % of Cauchy's, and 8 % of lognormal ones with σ = 2.
FAR, JUMP = 10.0, 5.0
# More of them are no slips but a part of the distribution: at most this many, and one in this many rows, but one at
# least.
MOST, ONE_IN = 5, 100
# Others that are needed to know what is usual, and distinct ones from which on they are more than a scale.
LEAST_OTHERS, MANY = 20, 5
# This many are named.
SHOWN = 3


@dataclass(frozen=True, eq=False)
class WildCells:
    """Cells of a column that are treated as missing.

    Attributes
    ----------
    rows : array (k,)
        Their rows, the farthest first.
    values : array (k,)
        Their values in the column.
    times : array (k,)
        How many robust standard deviations they are from the median.
    means : tuple of float
        For numbers: the mean with these cells, without them, and the standard error of the latter.
    """

    rows: np.ndarray
    values: np.ndarray
    times: np.ndarray
    means: tuple[float, float, float] | None = None

    @classmethod
    def of(cls, numbers: np.ndarray) -> "WildCells | None":
        """The wild cells of numbers or times without missing values; None if there are none.

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
                error = float(rest.std(ddof=1) / np.sqrt(len(rest)))
                means = (float(line.mean()), float(rest.mean()), error) if holds_numbers(numbers) else None
                return cls(rows, numbers[rows], apart[rows] / unit, means)
        return None

    def note(self, where: str, name: Hashable = None) -> str:
        """The note on them; `name` is that of the column in `kinds`."""
        first = zip(self.values[:SHOWN], self.rows.tolist(), strict=False)
        shown = [f"{_shown(value)} in row {row}" for value, row in first]
        shown[0] += " (counted from 0)"
        more = f" and {len(self.rows) - SHOWN} more" if len(self.rows) > SHOWN else ""
        several = len(self.rows) > 1
        far = (
            f"{where} holds {', '.join(shown)}{more}, {self.times.min():.0e} standard deviations from all others or "
            f"farther: {'these cells count' if several else 'this cell counts'} as missing here, and as "
            f"{'numbers' if several else 'a number'} in tests."
        )
        them = "them" if several else "it"
        if self.means is not None and abs(self.means[0] - self.means[1]) > self.means[2]:
            mean, without, error = (f"{each:.3g}" for each in self.means)
            far += f" The mean is {mean} with {them} and {without} without (standard error {error})."
        if name is None:
            return f"{far} If such values are right, learn from its logarithm or its rank."
        kind = {"M": "time", "m": "duration"}.get(self.values.dtype.kind, "number")
        return (
            f"{far} To keep {them}, pass kinds={{{str(name)!r}: {kind!r}}}. A logarithm or rank would keep {them} too, "
            "but its mean answers another question."
        )


def without_wild_cells(column: object, where: str, name: Hashable = None) -> tuple[np.ndarray, str]:
    """Which rows of an original column hold a wild cell, and the note on them: empty if none does. `name` is that of
    the column if kinds= can declare that such numbers are right.
    """
    there = present(column)
    none = np.zeros(len(there), dtype=bool), ""
    if is_sparse(column) or holds_objects(column) or there.sum() <= LEAST_OTHERS:
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
    found = replace(found, rows=known[found.rows])
    wild = none[0].copy()
    wild[found.rows] = True
    return wild, found.note(where, name)


def _shown(value: object) -> str:
    return str(value) if isinstance(value, np.datetime64 | np.timedelta64) else f"{value:.6g}"
