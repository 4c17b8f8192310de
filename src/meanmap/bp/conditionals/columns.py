"""Columns of a table as numbers with gaps: numbers and times standardised, a column of zeros and ones a label."""

import warnings
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from meanmap.bp.beliefs.label_belief import LabelBelief
from meanmap.core.arrays import check_lengths, seconds, times_of
from meanmap.core.door import Door
from meanmap.core.errors import InputError, KindError, ShapeError
from meanmap.core.tables.column import Column
from meanmap.core.tables.filling import columns_of
from meanmap.core.tables.missing import present, take
from meanmap.core.types import Data
from meanmap.kernels.discrete import Delta
from meanmap.kernels.reading import read_points

__all__ = ["CodedColumn", "CodedTable"]

# Labels beyond the most frequent ones are "other" to the other columns.
MOST_LABELS = 50


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """How one column becomes numbers, and numbers the column again.

    Attributes
    ----------
    column : Column
        What was seen of it.
    centre, scale : float
        Of numbers; of times in seconds.
    labels : array, or None
        As they came, the most frequent first, where they are no numbers.
    """

    column: Column
    centre: float
    scale: float
    labels: np.ndarray | None

    @classmethod
    def of(cls, name: Hashable, values: Data) -> tuple["CodedColumn", np.ndarray]:
        """From a column as it came, with its numbers (n, width), NaN in gaps."""
        column = Column.of(name, (values,), ("data",))
        if column.kind in ("vector", "text", "whole object"):
            raise KindError(
                f"data[{name!r}] holds {column.kind}s; expected numbers, labels, truth values or times. Leave it out."
            )
        there = np.flatnonzero(present(values))
        seen = column.read(take(values, there), "data")
        if seen.dtype.kind in "Ub":
            found, counts = np.unique(seen, return_counts=True)
            labels = found[np.argsort(-counts, kind="stable")][:MOST_LABELS]
            coded = cls(column, 0.0, 1.0, labels)
        else:
            numbers = seconds(seen) if seen.dtype.kind in "mM" else seen
            coded = cls(column, float(np.mean(numbers)), float(np.std(numbers)) or 1.0, None)
        for note in column.strange(f"data[{name!r}]"):
            warnings.warn(note, stacklevel=5)
        return coded, coded.read(values, "data")

    @property
    def width(self) -> int:
        """How many numbers stand for one value."""
        return 1 if self.labels is None else len(self.labels)

    def numbers(self, values: Data, argument: str) -> np.ndarray:
        """Values of the column as numbers (n, width) in its own unit, times in seconds, NaN where one is missing."""
        there = present(values)
        result = np.full((len(there), self.width), np.nan)
        if there.any():
            seen: Any = self.column.read(take(values, np.flatnonzero(there)), argument)
            if self.labels is None:
                result[there, 0] = seconds(seen) if seen.dtype.kind in "mM" else seen
            else:
                result[there] = np.asarray(seen)[:, None] == self.labels
        return result

    def label_belief(self, shares: np.ndarray) -> LabelBelief:
        """Probabilities (..., width) of the labels as a belief."""
        labels: Any = self.labels
        with Door() as door:
            points = read_points(Delta(), labels, "labels", door)
        return LabelBelief(Delta(), points, shares, tuple(labels.tolist()))

    def odd(self, values: Data, where: str) -> str:
        """What is odd about values of the column: numbers far outside of what was seen, new labels."""
        there = np.flatnonzero(present(values))
        return self.column.odd(self.column.read(take(values, there), where), where) if len(there) else ""

    def read(self, values: Data, argument: str) -> np.ndarray:
        """Values of the column as standardised numbers (n, width), NaN where one is missing."""
        return (self.numbers(values, argument) - self.centre) / self.scale

    def back(self, numbers: np.ndarray) -> np.ndarray:
        """Standardised numbers as the table has them."""
        return self.given(self.centre + self.scale * numbers)

    def given(self, values: np.ndarray) -> np.ndarray:
        """Numbers in the unit of the column as the table has them: times as times."""
        return times_of(values, self.column.kind) if self.column.kind in ("time", "duration") else values


@dataclass(frozen=True, eq=False)
class CodedTable:
    """The columns of a table side by side as numbers.

    Attributes
    ----------
    columns : dict
        How each is read.
    """

    columns: Mapping[str, CodedColumn]

    @classmethod
    def of(cls, data: Data) -> tuple["CodedTable", np.ndarray]:
        """From a table, with its rows of numbers (n, d), NaN in gaps."""
        raw = columns_of(data, "data")
        check_lengths({name: len(values) for name, values in raw.items()}, "data")
        table = cls({name: CodedColumn.of(name, values)[0] for name, values in raw.items()})
        if len(raw) < 2:
            raise ShapeError(f"data has the one column {next(iter(raw))!r}; expected at least two.")
        return table, table.numbers(data, "data")

    @property
    def blocks(self) -> tuple[range, ...]:
        """The columns of numbers that stand for each variable."""
        ends = np.cumsum([column.width for column in self.columns.values()]).tolist()
        return tuple(range(e - c.width, e) for e, c in zip(ends, self.columns.values(), strict=True))

    @cached_property
    def _units(self) -> np.ndarray:
        return np.array([[c.centre, c.scale] for c in self.columns.values() for _ in range(c.width)]).T

    def standard(self, numbers: np.ndarray) -> np.ndarray:
        """Rows of numbers (n, d), each column in its standard deviation about its mean."""
        return (numbers - self._units[0]) / self._units[1]

    def numbers(self, frame: Data, argument: str, hidden: Collection[str] = ()) -> np.ndarray:
        """Rows of a table as numbers in the units of the columns (n, d), NaN where nothing is known, or hidden."""
        raw = columns_of(frame, argument)
        known = {name: values for name, values in raw.items() if name in self.columns}
        if not known:
            raise InputError(f"{argument} has no column of the model; expected some of {self._shown}.")
        check_lengths({name: len(values) for name, values in known.items()}, argument)
        rows = np.full((len(next(iter(known.values()))), self.blocks[-1].stop), np.nan)
        for (name, column), block in zip(self.columns.items(), self.blocks, strict=True):
            if name in known and name not in hidden:
                rows[:, block] = column.numbers(known[name], argument)
        return rows

    def oddities(self, frame: Data, argument: str, hidden: Collection[str] = ()) -> tuple[str, ...]:
        """What is odd about values of a table, in words: numbers far outside of what was seen, new labels."""
        raw = columns_of(frame, argument)
        told = (
            column.odd(raw[name], f"{argument}[{name!r}]")
            for name, column in self.columns.items()
            if name in raw and name not in hidden
        )
        return tuple(note for note in told if note)

    def place(self, name: Hashable) -> int:
        """The number of a column."""
        if str(name) not in self.columns:
            raise InputError(f"the model has no column {name!r}; it has {self._shown}.")
        return list(self.columns).index(str(name))

    @property
    def _shown(self) -> str:
        return ", ".join(map(repr, list(self.columns)[:10]))
