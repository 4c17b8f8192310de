"""Columns that may not be what they seem: numbers that stand for missing values, numbers and dates kept as text."""

from collections.abc import Collection, Sequence
from numbers import Real
from typing import Any

import numpy as np
from jax.core import Tracer

from meanmap.core.arrays import UNITS, count_missing, plain
from meanmap.core.errors import ShapeError
from meanmap.core.pieces.sources import comes_in_pieces
from meanmap.core.points import is_sparse, on_host
from meanmap.core.tables.sentinels import LEAST_OTHERS, THEN, Sentinels
from meanmap.core.tables.table import Table, raw_columns
from meanmap.core.tables.written import Written, words_of
from meanmap.core.types import Data

__all__ = ["doubts"]


def doubts(
    samples: Sequence[Any], names: Sequence[str], told: Collection[str] = (), *, apart: bool = False, then: str = THEN
) -> tuple[str, ...]:
    """What is to be said of columns, in all samples together, that may not be what they seem.

    Some hold numbers that may stand for missing values: the sentence ends with what `then` to do. Others are text that
    looks like numbers or dates. Columns that are `told` to be something are left out. Samples of other things than
    columns have none. Those of several variables are looked at `apart`.

    Examples
    --------
    >>> print(*doubts([{"age": [*range(20, 40), -999]}], ["x"]))
    column 'age' of x holds -999 in 1 of 21 rows (4.8 %), far from all other values, 20 to 39, and it counts as a \
number: if it stands for a missing value, put nan there and pass missing='drop'.
    >>> print(*doubts([{"age": [*map(str, range(20, 40)), "?"]}], ["x"]))
    column 'age' of x is text that looks like numbers (but for '?'), such as '20', and counts as labels: convert it, \
for example with pandas.to_numeric and errors='coerce', which makes the others missing. If labels are meant, make \
categories of it, or say so with kinds={'age': 'label'} or --kinds age=label.
    """
    if apart:
        found = (doubts([sample], [name], told, then=then) for sample, name in zip(samples, names, strict=True))
        return tuple(note for notes in found for note in notes)
    together: dict[Any, list[Any]] = {}
    for sample, argument in zip(samples, names, strict=True):
        for name, column in _columns(sample, argument):
            if name not in told:
                together.setdefault(name, []).append(column)
    notes = []
    for name, columns in together.items():
        where = f"{'' if name is None else f'column {name!r} of '}{' and '.join(names)}"
        numbers = [found for found in map(_numbers, columns) if found is not None]
        alike = len({found.dtype.kind for found in numbers}) == 1  # others are refused where they are compared
        codes = Sentinels.of(np.concatenate(numbers)) if alike else None
        words = words_of(columns)
        written = Written.of(words) if words else None
        if codes is not None:
            notes.append(codes.note(where, then))
        if written is not None and written.many:
            notes.append(written.note(where, name))
    return tuple(notes)


def _columns(sample: Data, argument: str) -> list[tuple[Any, Any]]:
    """Names and columns, of an array numbers and columns, of numbers in a row None and these."""
    if comes_in_pieces(sample) or is_sparse(sample):
        return []
    if Table.looks_like_one(sample):
        return list(zip(*raw_columns(sample, argument), strict=True))
    if (
        isinstance(sample, list | tuple)
        and sample
        and isinstance(sample[0], Real | str | list | tuple | np.ndarray | None)
    ):
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
    """The numbers or times of a column that are there; None of other things."""
    column = column if isinstance(column, Tracer) else on_host(column)
    if isinstance(column, Tracer) or getattr(column, "ndim", 1) > 1:
        return None
    values = np.asarray(column.compressed() if isinstance(column, np.ma.MaskedArray) else column)
    if values.dtype.kind == "O" and not any(isinstance(each, str) for each in values[:LEAST_OTHERS]):
        values = plain(column, "a column")  # Python's dates, and times with a zone
        if values.dtype.kind == "O":
            # Of numbers beside None, as lists and nullable columns have them.
            there = [each for each in values.tolist() if isinstance(each, Real) and each == each]
            values = np.asarray(there) if len(there) + count_missing(values) == len(values) else values
    if values.ndim > 1:
        return None
    if values.dtype.kind == "M":
        return values.astype(UNITS["M"])
    return values.astype(np.float64) if values.dtype.kind in "iuf" else None
