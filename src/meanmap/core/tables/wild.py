"""Single cells so far from all others of their column that a fit should not depend on them: gross outliers."""

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meanmap.core.containers import is_sparse
from meanmap.core.held import holds_numbers, holds_times
from meanmap.core.moments import seconds
from meanmap.core.tables.column import middle_units
from meanmap.core.tables.kinds import holds_objects
from meanmap.core.tables.missing import present, take
from meanmap.core.tables.sample import seen
from meanmap.core.tables.sentinels import Sentinels
from meanmap.core.tables.table import read_column

__all__ = ["WildCells", "wild_notes", "without_wild_cells"]

# A cell is wild beyond this many robust standard deviations from the median, and this many times the distance of
# others.
# Of 400 columns of 500 draws no normal or exponential one had such a cell, 1% of t with three degrees of freedom, 4%
# with two, 22% of Cauchy's, and none of lognormal ones with σ = 2.
FAR, JUMP = 10.0, 5.0
# More of them are no slips but a part of the distribution: at most this many, and one in this many rows, but one at
# least.
MOST, ONE_IN = 5, 100
# Amounts of which most are zero have heavy tails: of these, a cell is wild only if its logarithm is this many robust
# standard deviations from the median one, too, or the mean of costs would lack its largest part. Of 2000 columns with
# 30 lognormal amounts (σ from .5 to 2) in 200 rows .05% have such a cell, and 5% had one before.
# So is one of positive numbers, whose standard deviation above the median is that of a normal distribution with the
# same median and 95% quantile of logarithms (QUANTILE is that of a standard normal distribution).
FAR_LOG, QUANTILE = 5.0, 1.6448536269514722
# Others that are needed to know what is usual, and distinct ones from which on they are more than a scale.
LEAST_OTHERS, MANY = 20, 5
# In columns so long, this many cells are looked at first.
LONG, LOOKED_AT = 10_000, 1000
# This many are named, and this many standard deviations are "millions".
SHOWN, MILLIONS = 3, 2e6


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
        Their distances from the median in robust standard deviations.
    means : tuple of float
        For numbers: the mean with these cells, without them, and the standard error of the latter.
    tail : bool
        Whether they may be the tail of amounts of which most are zero: then they count as numbers everywhere.
    """

    rows: np.ndarray
    values: np.ndarray
    times: np.ndarray
    means: tuple[float, float, float] | None = None
    tail: bool = False

    @classmethod
    def of(cls, numbers: np.ndarray) -> "WildCells | None":
        """The wild cells of numbers or times without missing values; None if there are none, or infinite numbers.

        Examples
        --------
        >>> ages = np.r_[np.arange(18.0, 78.0), 1e6]
        >>> WildCells.of(ages).values.tolist()
        [1000000.0]
        >>> WildCells.of(np.r_[np.arange(18.0, 78.0), 120.0]) is None
        True
        """
        line = seconds(numbers) if holds_times(numbers) else numbers.astype(np.float64, copy=False)
        if not np.isfinite(line).all() or _are_surely_none(line):
            return None
        apart = np.abs(line - np.median(line)) if len(line) > LEAST_OTHERS else np.zeros(0)
        most = min(MOST, max(len(line) // ONE_IN, 1))
        near_end = np.partition(apart, len(apart) - most - 1)[len(apart) - most - 1] if len(apart) > most else 0.0
        ends = np.flatnonzero(apart >= near_end)
        farthest = ends[np.argsort(-apart[ends], kind="stable")[: most + 1]]
        for count in range(len(farthest) - 1, 0, -1):
            nearest, next_ones = apart[farthest[count - 1]], apart[farthest[count]]
            if not nearest / JUMP > next_ones:
                continue
            rest = np.delete(line, farthest[:count])
            around = np.abs(rest - np.median(rest))
            spread = float(np.median(around[around > 0])) if next_ones > 0 else 0.0
            unit = max(1.4826 * spread, float(middle_units(rest[:, None])[0]))
            if unit > 0 and nearest / FAR > unit and len(np.unique(rest)) >= MANY:
                rows = farthest[:count]
                if holds_numbers(numbers) and _in_log_tail(line, rows):
                    continue
                error = float(rest.std(ddof=1) / np.sqrt(len(rest)))
                means = (float(line.mean()), float(rest.mean()), error) if holds_numbers(numbers) else None
                with np.errstate(over="ignore"):  # of numbers near the largest
                    return cls(rows, numbers[rows], apart[rows] / unit, means, _in_tail(line, rows))
        return None

    def note(self, where: str, name: Hashable = None) -> str:
        """The note on them; `name` is that of the column in `kinds`."""
        several = len(self.rows) > 1
        if self.tail:
            return self.note_in_tests(where, [f"row {row}" for row in self.rows.tolist()])
        far = (
            f"{self._far(where, [f'row {row}' for row in self.rows.tolist()])} as missing here, and as "
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

    def note_in_tests(self, where: str, rows: Sequence[str], then: str = "") -> str:
        """The note of a function where they count as numbers; `rows` says in which row each is, if that is known. The
        advice (`then`) is by default to declare them as missing.
        """
        several = len(self.rows) > 1
        kind = {"M": "time", "m": "duration"}.get(self.values.dtype.kind, "number")
        marks = [str(value) if kind != "number" else f"{value:.12g}" for value in dict.fromkeys(self.values.tolist())]
        then = then or f"pass missing=[{', '.join(marks)}]"
        why = ", as amounts that are mostly zero have such tails"
        there = why if self.tail else " here, and as missing in networks"
        return (
            f"{self._far(where, rows)} as {f'{kind}s' if several else f'a {kind}'}{there}. "
            f"If {'they are' if several else 'it is'} wrong, correct {'them' if several else 'it'}, or {then}."
        )

    def _far(self, where: str, rows: Sequence[str]) -> str:
        shown = [f"{_shown(value)} in {row}" for value, row in zip(self.values[:SHOWN], rows, strict=False)]
        shown = [f"{shown[0]} (counted from 0)", *shown[1:]] if shown else list(map(_shown, self.values[:SHOWN]))
        more = f" and {len(self.rows) - SHOWN} more" if len(self.rows) > SHOWN else ""
        these = "these cells count" if len(self.rows) > 1 else "this cell counts"
        times = float(f"{self.times.min():.0e}")
        many = f"{times:,.0f}" if times < MILLIONS else "millions of"
        return f"{where} holds {', '.join(shown)}{more}, {many} standard deviations from all others or farther: {these}"


def _are_surely_none(line: np.ndarray) -> bool:
    """Whether more than `MOST` of some cells are farther from the median than the farthest over `JUMP`: then no cell is
    so much farther than others. Takes a small part of the time of a median.
    """
    if len(line) < LONG:
        return False
    some = line[:: len(line) // LOOKED_AT]
    low, high = np.quantile(some, [0.4, 0.6])
    if not np.count_nonzero(line < low) < len(line) / 2 <= np.count_nonzero(line < high):
        return False
    farthest = max(line.max() - low, high - line.min())
    return bool(np.count_nonzero(np.maximum(low - some, some - high) > farthest / JUMP) > MOST)


def _in_tail(numbers: np.ndarray, rows: np.ndarray) -> bool:
    """Whether cells are in the tail of amounts of which most are zero, by their logarithms."""
    if numbers.min() < 0 or 2 * np.count_nonzero(numbers) >= len(numbers):
        return False
    rest = np.delete(numbers, rows)
    others = np.log(rest[rest > 0])
    if len(others) < MANY:
        return False
    middle = np.median(others)
    spread = 1.4826 * float(np.median(np.abs(others - middle)))
    return bool(np.log(numbers[rows].max()) - middle <= FAR_LOG * spread)


def _in_log_tail(numbers: np.ndarray, rows: np.ndarray) -> bool:
    """Whether the nearest of these cells is in the upper tail of positive numbers, by its logarithm."""
    rest, nearest = np.delete(numbers, rows), numbers[rows].min()
    if numbers.min() <= 0 or nearest < np.median(rest):
        return False
    middle, end = np.log(np.quantile(rest, (0.5, 0.95)))
    return bool(np.log(nearest) - middle <= FAR_LOG * (end - middle) / QUANTILE)


def wild_notes(
    samples: Sequence[Any],
    names: Sequence[str],
    told: Collection[str] = (),
    *,
    apart: bool = False,
    rows: np.ndarray | None = None,
    then: str = "",
) -> tuple[str, ...]:
    """Notes of functions where wild cells count as numbers, on columns in all samples together, or of several variables
    `apart`. Columns with a declared kind (`told`), and those with codes for missing values, which have their own note,
    are left out. `rows` are what the user calls the rows: by default their numbers; if there are none, no row is named.
    The sentence ends with advice (`then`), by default to declare them as missing.

    Examples
    --------
    >>> print(*wild_notes([{"age": [*range(18, 78), 1e6]}], ["x"]))
    column 'age' of x holds 1e+06 in row 60 (counted from 0), 40,000 standard deviations from all others or farther: \
this cell counts as a number here, and as missing in networks. If it is wrong, correct it, or pass missing=[1000000].
    """
    if apart:
        each = (
            wild_notes([sample], [name], told, rows=rows, then=then)
            for sample, name in zip(samples, names, strict=True)
        )
        return tuple(note for notes in each for note in notes)
    together: dict[Any, list[tuple[str, np.ndarray, np.ndarray]]] = {}
    for column in (column for sample in seen(samples, names) for column in sample.columns):
        numbers = None if column.label in told else column.numbers
        if numbers is None:
            continue
        known = np.flatnonzero(present(column.came))
        if len(numbers) == len(known):
            together.setdefault(column.label, []).append((column.argument, numbers, known))
    notes = []
    for name, parts in together.items():
        numbers = np.concatenate([numbers for _, numbers, _ in parts]) if _alike(parts) else np.zeros(0)
        found = WildCells.of(numbers)
        if found is None or Sentinels.of(numbers) is not None:
            continue
        where = " and ".join(argument for argument, _, _ in parts)
        where = where if name is None else f"column {name!r} of {where}"
        places = [(argument, row) for argument, _, known in parts for row in known]
        named = rows is None or len(rows) > 0
        called = [_row(places[i], rows, len(parts)) for i in found.rows] if named else []
        notes.append(found.note_in_tests(where, called, then))
    return tuple(notes)


def _row(place: tuple[str, int], rows: np.ndarray | None, samples: int) -> str:
    argument, row = place
    called = row if rows is None else rows[row]
    return f"row {called} of {argument}" if samples > 1 else f"row {called}"


def _alike(parts: Sequence[tuple[str, np.ndarray, np.ndarray]]) -> bool:
    return len({numbers.dtype.kind for _, numbers, _ in parts}) == 1


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
    wild[found.rows] = not found.tail
    return wild, found.note(where, name)


def _shown(value: object) -> str:
    return str(value) if isinstance(value, np.datetime64 | np.timedelta64) else f"{value:.6g}"
