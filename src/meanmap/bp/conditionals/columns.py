"""Columns of a table as numbers with gaps: numbers and times standardised, a column of zeros and ones a label."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.arrays import seconds, times_of
from meanmap.core.errors import KindError
from meanmap.core.tables.column import Column
from meanmap.core.tables.missing import present, take
from meanmap.core.types import Data

__all__ = ["CodedColumn"]

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
        return coded, coded.read(values, "data")

    @property
    def width(self) -> int:
        """How many numbers stand for one value."""
        return 1 if self.labels is None else len(self.labels)

    def read(self, values: Data, argument: str) -> np.ndarray:
        """Values of the column as numbers (n, width), NaN where one is missing."""
        there = present(values)
        result = np.full((len(there), self.width), np.nan)
        if there.any():
            seen: Any = self.column.read(take(values, np.flatnonzero(there)), argument)
            if self.labels is None:
                numbers = seconds(seen) if seen.dtype.kind in "mM" else seen
                result[there, 0] = (np.asarray(numbers, dtype=float) - self.centre) / self.scale
            else:
                result[there] = np.asarray(seen)[:, None] == self.labels
        return result

    def back(self, numbers: np.ndarray) -> np.ndarray:
        """Numbers in the unit of the column, times as times."""
        values = self.centre + self.scale * numbers
        return times_of(values, self.column.kind) if self.column.kind in ("time", "duration") else values
