"""A sample as it came, looked at once for all guards: its columns, and what numbers each of them holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from jax.core import Tracer

from meanmap.core.arrays import plain
from meanmap.core.containers import has_series, is_sparse
from meanmap.core.errors import KindError, ShapeError
from meanmap.core.foreign import count_missing
from meanmap.core.held import holds_floats
from meanmap.core.moments import UNITS
from meanmap.core.pieces.sources import comes_in_pieces
from meanmap.core.points import on_host
from meanmap.core.tables.table import named_columns
from meanmap.core.types import Data

__all__ = ["Sample", "Seen", "array_of", "seen"]

# What the cells of a list are, if it is a column or rows of columns; this many cells tell whether it holds text.
CELLS, LOOKED_AT = Real | str | list | tuple | np.ndarray | date | timedelta | np.generic | None, 10


@dataclass(frozen=True, eq=False)
class Seen:
    """A column as it came. Its `label` is a name, a number in an array, or None if a sample is one column without name.

    Errors call it `argument`.
    """

    label: Any
    came: Any
    argument: str

    @cached_property
    def numbers(self) -> np.ndarray | None:
        """The numbers or times that are not missing; None for other kinds."""
        return _numbers(self.came, self.argument)

    @cached_property
    def array(self) -> np.ndarray | None:
        """Numbers, times, labels or truth values; None for columns with gaps and other things."""
        return array_of(self.came)


@dataclass(frozen=True, eq=False)
class Sample:
    """What came as a sample, and what it is called in errors."""

    data: Any
    name: str

    @cached_property
    def columns(self) -> tuple[Seen, ...]:
        """The columns in order; none of data in pieces, sparse matrices, and what only a kernel can read."""
        return tuple(Seen(label, column, self.name) for label, column in _columns(self.data, self.name))


def seen(samples: Sequence[Any], names: Sequence[str]) -> list[Sample]:
    """Samples, each to be looked at once by everything that is given the result.

    Examples
    --------
    >>> (sample,) = seen([{"age": [31, None], "town": ["Bonn", "Ulm"]}], ["x"])
    >>> [(column.label, column.numbers) for column in sample.columns]
    [('age', array([31.])), ('town', None)]
    """
    listed = zip(samples, names, strict=True)
    return [sample if isinstance(sample, Sample) else Sample(sample, name) for sample, name in listed]


def _columns(sample: Data, argument: str) -> list[tuple[Any, Any]]:
    if comes_in_pieces(sample) or is_sparse(sample):
        return []
    if named := named_columns(sample, argument):
        return list(named.items())
    if isinstance(sample, list | tuple) and sample and isinstance(sample[0], CELLS):
        try:
            sample = plain(sample, argument)
        except ShapeError:  # bags of different lengths
            return []
    if has_series(sample):
        return [(None, sample)]
    array = None if isinstance(sample, Tracer) else on_host(sample)
    if not isinstance(array, np.ndarray) or array.ndim not in (1, 2):
        return []
    return [(j, array[:, j]) for j in range(array.shape[1])] if array.ndim == 2 else [(None, array)]


def _numbers(column: Any, where: str) -> np.ndarray | None:
    if isinstance(column, Tracer) or getattr(column, "ndim", 1) > 1:
        return None
    column = on_host(column)
    values = np.asarray(column.compressed() if isinstance(column, np.ma.MaskedArray) else column)
    if values.dtype.kind == "O" and not any(isinstance(each, str) for each in values[:LOOKED_AT]):
        values = plain(column, where)  # Python's dates, and times with a zone
        if values.dtype.kind == "O":
            # Numbers mixed with None, as in lists and nullable columns.
            there = [each for each in values.tolist() if isinstance(each, Real) and each == each]
            values = np.asarray(there) if len(there) + count_missing(values) == len(values) else values
    if values.ndim > 1:
        return None
    if values.dtype.kind == "M":
        return values[~np.isnat(values)].astype(UNITS["M"])
    if holds_floats(values):
        values = values[~np.isnan(values)]
    return values.astype(np.float64) if values.dtype.kind in "iuf" else None


def array_of(column: object) -> np.ndarray | None:
    """Numbers, times, labels or truth values of a column without gaps."""
    if isinstance(column, Tracer | np.ma.MaskedArray) or getattr(column, "ndim", 1) != 1:
        return None
    try:
        array = plain(on_host(column), "a column")
    except (KindError, ShapeError):  # of lists of different lengths, structs
        return None
    return array if array.ndim == 1 and array.dtype.kind in "biufmMUSO" else None
