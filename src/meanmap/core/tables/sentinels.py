"""Values that may stand for missing ones, such as -999: exact values far away from all others of their column."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from jax.core import Tracer

from meanmap.core.arrays import count_missing, plain
from meanmap.core.errors import ShapeError
from meanmap.core.pieces.sources import comes_in_pieces
from meanmap.core.points import is_sparse, on_host
from meanmap.core.tables.table import Table, raw_columns
from meanmap.core.types import Array, Data

__all__ = ["Sentinels", "sentinel_notes"]

# How far from all other values, in ranges of these, one must lie to be told of. Of 8524 columns of numbers in 964
# tables of packages that people learn from these bounds name nine: seven have nines for "missing" or "ever", and two
# a million for "no limit".
# Nines below zero where nothing else is; nines, and other codes below zero; codes beside few values, which may be a
# scale; and any value that is repeated.
BELOW, CODED, FEW, REPEATED = 0.2, 1.0, 5.0, 10.0
# Others that are needed to know what is usual, and distinct ones from which on they are more than a scale.
LEAST_OTHERS, MANY = 10, 5
# What to do about them where missing values are seen to by the function that was called.
THEN = "put nan there and pass missing='drop'"
# A column has codes for "refused", "not known", "not asked", on one side or both.
MOST = 6


@dataclass(frozen=True)
class Sentinels:
    """Values of a column that lie so far from all others that they may stand for missing ones.

    Attributes
    ----------
    values, counts : tuples
        In order, and how many there are of each.
    number : int
        All values of the column.
    low, high : float
        The least and the largest of the others.
    """

    values: tuple[float, ...]
    counts: tuple[int, ...]
    number: int
    low: float
    high: float

    @classmethod
    def of(cls, column: Array) -> "Sentinels | None":
        """Those of some numbers; None where there are none. O(n).

        Examples
        --------
        >>> ages = np.r_[np.arange(18.0, 78.0), [-999.0] * 4]
        >>> found = Sentinels.of(ages)
        >>> found.values, found.counts, (found.low, found.high)
        ((-999.0,), (4,), (18.0, 77.0))
        >>> Sentinels.of(np.r_[np.arange(18.0, 78.0), 0.0]) is None
        True
        """
        numbers = np.asarray(column, np.float64)
        numbers = rest = numbers[np.isfinite(numbers)]
        peeled: list[float] = []
        far: set[float] = set()
        while len(rest) >= LEAST_OTHERS and len(peeled) < MOST:
            ends = float(rest.max()), float(rest.min())
            found = next((end for end in ends if _digits(end)), None)
            if found is None:
                found = next((end for end in ends if _is_far(rest, end)), None)
                if found is None:
                    break
                far.add(found)
            peeled.append(found)
            rest = rest[rest != found]
        if not peeled or len(rest) < LEAST_OTHERS or rest.min() == rest.max():
            return None
        low, high = float(rest.min()), float(rest.max())
        few = len(np.unique(rest)) < MANY
        kept = sorted(each for each in peeled if each in far or _beyond(each, low, high) >= _reach(each, low, few))
        if not kept:
            return None
        counts = tuple(int((numbers == each).sum()) for each in kept)
        return cls(tuple(kept), counts, len(numbers), low, high)

    def __str__(self) -> str:
        """How many rows hold which."""
        shown = [f"{value:.12g} in {count}" for value, count in zip(self.values, self.counts, strict=True)]
        return f"{' and '.join(shown)} of {self.number} rows ({100 * sum(self.counts) / self.number:.2g} %)"

    def note(self, where: str, then: str = THEN) -> str:
        """What is to be said of the column that is called so, and what `then` to do about it."""
        several = len(self.values) > 1
        number, stand = ("they count as numbers", "they stand") if several else ("it counts as a number", "it stands")
        return (
            f"{where} holds {self}, far from all other values, {self.low:g} to {self.high:g}, and {number}: if {stand} "
            f"for a missing value, {then}."
        )


def sentinel_notes(
    samples: Sequence[Any], names: Sequence[str], told: Collection[str] = (), *, apart: bool = False, then: str = THEN
) -> tuple[str, ...]:
    """What is to be said of columns of numbers, in all samples together, that may hold numbers for "missing".

    Columns that are `told` to be something are left out. Samples of other things than columns of numbers have none.
    Those of several variables are looked at `apart`. The sentence ends with what `then` to do.

    Examples
    --------
    >>> print(*sentinel_notes([{"age": [*range(20, 40), -999]}], ["x"]))
    column 'age' of x holds -999 in 1 of 21 rows (4.8 %), far from all other values, 20 to 39, and it counts as a \
number: if it stands for a missing value, put nan there and pass missing='drop'.
    """
    if apart:
        found = (sentinel_notes([sample], [name], told, then=then) for sample, name in zip(samples, names, strict=True))
        return tuple(note for notes in found for note in notes)
    together: dict[str, list[np.ndarray]] = {}
    for sample, argument in zip(samples, names, strict=True):
        for name, column in _columns(sample, argument):
            numbers = None if name in told else _numbers(column)
            if numbers is not None:
                together.setdefault(f"column {name!r} of " if name is not None else "", []).append(numbers)
    found = {where: Sentinels.of(np.concatenate(parts)) for where, parts in together.items()}
    return tuple(
        codes.note(f"{where}{' and '.join(names)}", then) for where, codes in found.items() if codes is not None
    )


def _columns(sample: Data, argument: str) -> list[tuple[Any, Any]]:
    """Names and columns, of an array numbers and columns, of numbers in a row None and these."""
    if comes_in_pieces(sample) or is_sparse(sample):
        return []
    if Table.looks_like_one(sample):
        return list(zip(*raw_columns(sample, argument), strict=True))
    if isinstance(sample, list | tuple) and sample and isinstance(sample[0], Real | list | tuple | np.ndarray | None):
        try:
            sample = plain(sample, argument)
        except ShapeError:  # bags of different lengths
            return []
    if hasattr(sample, "to_numpy"):
        return [(None, sample)]
    array = sample if isinstance(sample, Tracer) else on_host(sample)
    if not isinstance(array, np.ndarray) or array.ndim not in (1, 2):
        return []
    return [(j, array[:, j]) for j in range(array.shape[1])] if array.ndim == 2 else [(None, array)]


def _numbers(column: Data) -> np.ndarray | None:
    """The numbers of a column that are there; None of other things."""
    column = column if isinstance(column, Tracer) else on_host(column)
    if isinstance(column, Tracer) or getattr(column, "ndim", 1) > 1:
        return None
    values = np.asarray(column.compressed() if isinstance(column, np.ma.MaskedArray) else column)
    if values.dtype.kind == "O" and not any(isinstance(each, str) for each in values[:LEAST_OTHERS]):
        # Of numbers beside None, as lists and nullable columns have them.
        there = [each for each in values.tolist() if isinstance(each, Real) and each == each]
        values = np.asarray(there) if len(there) + count_missing(values) == len(values) else values
    return values.astype(np.float64) if values.dtype.kind in "iuf" else None


def _digits(number: float) -> int:
    """How many digits a code for "missing" has, 0 of other numbers.

    All are nines, of whole numbers the last may be 7 or 8; or it is -1, -7, -8 or -9.
    """
    digits = f"{abs(number):.12g}"
    if len(digits) == 1:
        return int(number < 0 and digits in "1789")
    whole = digits.isdigit()
    nines = set(digits[:-1].replace(".", "")) == {"9"} and digits[-1] in ("789" if whole else "9")
    return len(digits) if nines and (whole or len(digits) > 3) else 0


def _is_far(rest: np.ndarray, end: float) -> bool:
    """Whether the least or the largest value is repeated, and far from all others, which are no scale."""
    others = rest[rest != end]
    if not 2 <= len(rest) - len(others) <= len(others):
        return False
    low, high = float(others.min()), float(others.max())
    return low < high and _beyond(end, low, high) >= REPEATED and len(np.unique(others)) >= MANY


def _beyond(value: float, low: float, high: float) -> float:
    """How far outside a value is, in ranges of the others."""
    return max(low - value, value - high) / (high - low)


def _reach(code: float, low: float, few: bool) -> float:
    """How far outside a code must be."""
    if few:
        return FEW
    return BELOW if code < 0 <= low and _digits(code) > 1 else CODED
