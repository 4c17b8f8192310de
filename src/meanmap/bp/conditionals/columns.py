"""Columns of a table as numbers with gaps: numbers and times standardised, a column of zeros and ones a label."""

import warnings
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from meanmap.bp.beliefs.label_belief import LabelBelief
from meanmap.core.arrays import check_lengths, seconds, times_of
from meanmap.core.door import Door
from meanmap.core.errors import InputError, KindError, ShapeError
from meanmap.core.pieces.sources import columns_of as unread_columns
from meanmap.core.pieces.sources import is_file
from meanmap.core.points import is_dask, spread_rows
from meanmap.core.tables.chunks import sampled
from meanmap.core.tables.column import Column
from meanmap.core.tables.filling import columns_of
from meanmap.core.tables.missing import present, take
from meanmap.core.types import Array, Data
from meanmap.kernels.discrete import Delta
from meanmap.kernels.reading import read_points

__all__ = ["CodedColumn", "CodedTable", "learned_columns", "oddities"]

# So many labels, the most frequent ones, have a probability of their own given other columns; what is left is shared by
# the others as often as they came, and to other columns they are one label, together with those that never came.
MOST_LABELS = 50
# In tables that would take more numbers than this for a row, fewer labels are on their own, but these at least.
MOST_WIDTH, LEAST_LABELS = 150, 5
OTHERS = "(others)"
# What is so many times the range outside of it is told: a regression goes on there on its own.
_FAR = 0.5
# What a column holds is said by up to so many rows, drawn by their numbers alone: the same wherever a table lies.
MOST_LEARNED = 100_000


def learned_columns(data: Data, only: Sequence[str] | None = None) -> dict[str, Any]:
    """The columns of a table as they came, on up to `MOST_LEARNED` rows, of files and collections perhaps only some."""
    if is_file(data) or is_dask(data):
        wanted = data if only is None or hasattr(data, "chunks") else unread_columns(data, only)
        (data,) = sampled([wanted], np.random.default_rng(0), ["data"], MOST_LEARNED)
    raw = columns_of(data, "data")
    n = check_lengths({name: len(values) for name, values in raw.items()}, "data")
    if n <= MOST_LEARNED:
        return raw
    some = np.sort(np.random.default_rng(0).choice(n, MOST_LEARNED, replace=False))
    return {name: take(values, some) for name, values in raw.items()}


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """How one column becomes numbers, and numbers the column again.

    Attributes
    ----------
    column : Column
        What was seen of it.
    centre, scale : float
        Of numbers; of times in seconds.
    labels : array (L,), or None
        As they came, the most frequent first, where they are no numbers.
    counts : array (L,), or None
        How often each came.
    own : int
        So many labels have a number of their own.
    """

    column: Column
    centre: float
    scale: float
    labels: np.ndarray | None
    counts: np.ndarray | None = None
    own: int = MOST_LABELS

    @classmethod
    def of(cls, name: Hashable, values: Data) -> "CodedColumn":
        """From a column as it came."""
        column = Column.of(name, (values,), ("data",))
        if column.kind in ("vector", "text", "whole object"):
            raise KindError(
                f"data[{name!r}] holds {column.kind}s; expected numbers, labels, truth values or times. Leave it out; "
                "mm.KernelGraph(tree) has kernels for it."
            )
        there = np.flatnonzero(present(values))
        seen = column.read(take(values, there), "data")
        if seen.dtype.kind in "Ub":
            found, counts = np.unique(seen, return_counts=True)
            order = np.argsort(-counts, kind="stable")
            coded = cls(column, 0.0, 1.0, found[order], counts[order])
        else:
            numbers = seconds(seen) if seen.dtype.kind in "mM" else seen
            coded = cls(column, float(np.mean(numbers)), float(np.std(numbers)) or 1.0, None)
        for note in column.strange(f"data[{name!r}]"):
            warnings.warn(note, stacklevel=5)
        return coded

    @property
    def width(self) -> int:
        """How many numbers stand for one value: of labels zeros and a one."""
        return 1 if self.labels is None else min(len(self.labels), self.own + 1)

    @property
    def states(self) -> list[Any]:
        """The label that each number stands for."""
        labels: Any = self.labels
        return labels.tolist() if len(labels) == self.width else [*labels[: self.own].tolist(), OTHERS]

    @cached_property
    def _within(self) -> np.ndarray:
        """What each label has of the probability of its number, (L,)."""
        counts: Any = self.counts
        slots = np.minimum(np.arange(len(counts)), self.own)
        return counts / np.bincount(slots, counts)[slots]

    @cached_property
    def _new(self) -> float:
        """How probable a label is that never came: as probable as those that came once have been (Good 1953)."""
        counts: Any = self.counts
        if self.column.kind == "boolean" and len(counts) == 2:
            return 0.0
        return max(int(np.sum(counts == 1)), 1) / (int(counts.sum()) + 1)

    def codes(self, seen: Array) -> np.ndarray:
        """The number of each label that was read, −1 where it never came."""
        labels, seen = np.asarray(self.labels), np.asarray(seen)
        order = np.argsort(labels)
        place = order[np.minimum(np.searchsorted(labels, seen, sorter=order), len(labels) - 1)]
        return np.where(labels[place] == seen, place, -1)

    def numbers(self, values: Data, argument: str) -> np.ndarray:
        """Values of the column as numbers (n, width) in its own unit, times in seconds, NaN where one is missing."""
        there = present(values)
        result = np.full((len(there), self.width), np.nan)
        if there.any():
            seen: Any = self.column.read(take(values, np.flatnonzero(there)), argument)
            if self.labels is None:
                result[there, 0] = seconds(seen) if seen.dtype.kind in "mM" else seen
            else:
                labels, codes = self.labels, self.codes(seen)
                # Without others, a label that never came is none of those that did.
                slots = np.minimum(np.where(codes < 0, len(labels), codes), self.own)
                result[there] = slots[:, None] == np.arange(self.width)
        return result

    def label_belief(self, shares: np.ndarray) -> LabelBelief:
        """Probabilities (..., width) as a belief about all labels."""
        labels: Any = self.labels
        with Door() as door:
            points = read_points(Delta(), labels, "labels", door)
        slots = np.minimum(np.arange(len(labels)), self.own)
        return LabelBelief(Delta(), points, shares[..., slots] * self._within, tuple(labels.tolist()))

    def log_chances(self, values: Data, log_shares: np.ndarray, argument: str) -> np.ndarray:
        """Of labels the logarithm of their probability, from that of their number (n,)."""
        codes = self.codes(self.column.read(values, argument))
        with np.errstate(divide="ignore"):
            known, new = log_shares + np.log((1 - self._new) * self._within[codes]), np.log(self._new)
        return np.where(codes < 0, new, known)

    def named(self, numbers: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """The labels of numbers (n, width), any of the others where it is one of these."""
        labels: Any = self.labels
        codes = numbers.argmax(axis=1)
        others = np.flatnonzero(codes == self.own)
        if len(others):
            codes[others] = self.own + random.choice(len(labels) - self.own, len(others), p=self._within[self.own :])
        return labels[codes]

    def odd(self, values: Data, where: str) -> str:
        """What is odd about values of the column: numbers far outside of what was seen, new labels."""
        there = np.flatnonzero(present(values))
        if not len(there):
            return ""
        return self.column.odd(self.column.read(take(values, there), where), where, far=_FAR)

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
    def of(cls, data: Data, most_rows: int) -> tuple["CodedTable", np.ndarray]:
        """From a table, with at most so many of its rows, evenly spread, as numbers (n, d), NaN in gaps."""
        raw = learned_columns(data)
        if len(raw) < 2:
            raise ShapeError(f"data has the one column {next(iter(raw))!r}; expected at least two.")
        columns, own = {name: CodedColumn.of(name, values) for name, values in raw.items()}, MOST_LABELS
        while own > LEAST_LABELS and sum(replace(each, own=own).width for each in columns.values()) > MOST_WIDTH:
            own -= 1
        table = cls({name: replace(column, own=own) for name, column in columns.items()})
        chosen = spread_rows(len(next(iter(raw.values()))), most_rows)
        return table, table.numbers({name: take(values, chosen) for name, values in raw.items()}, "data")

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
        return oddities(self.columns, columns_of(frame, argument), argument, hidden)

    def place(self, name: Hashable) -> int:
        """The number of a column."""
        if str(name) not in self.columns:
            raise InputError(f"the model has no column {name!r}; it has {self._shown}.")
        return list(self.columns).index(str(name))

    @property
    def _shown(self) -> str:
        return ", ".join(map(repr, list(self.columns)[:10]))


def oddities(
    columns: Mapping[Any, CodedColumn], raw: Mapping[str, Any], argument: str, hidden: Collection[Hashable] = ()
) -> tuple[str, ...]:
    """What is odd about columns of a table as they came, those that are hidden left out."""
    told = (
        column.odd(raw[str(name)], f"{argument}[{name!r}]")
        for name, column in columns.items()
        if str(name) in raw and name not in hidden
    )
    return tuple(note for note in told if note)
