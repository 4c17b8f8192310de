"""Columns of several samples, or of later data, matched by name, or by position if there are no names."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.errors import ColumnError, KindError, ShapeError
from meanmap.core.language import counted
from meanmap.core.meant import did_you_mean, listed, no_column, respelled
from meanmap.core.tables.kinds import HELD_BY, described, family_of, holds_objects
from meanmap.core.tables.table import Table
from meanmap.core.types import Data

__all__ = ["Places", "aligned", "has_names", "matched", "renamed", "selected"]

# Data types that say what a column holds.
KNOWN = "fiubmMU"


@dataclass(frozen=True)
class Places:
    """What elements and features store about the array they were made from, at no cost for any number of columns."""

    number: int
    family: str

    @classmethod
    def of(cls, data: Data) -> "Places | None":
        """From an array or list of columns; None for tables, and for others, which only their kernel can read."""
        if not isinstance(data, list | tuple | np.ndarray) or Table.looks_like_one(data) or holds_objects(data):
            return None
        array = np.asarray(data)
        if array.ndim not in (1, 2) or array.dtype.kind not in KNOWN:
            return None
        return cls(array.shape[1] if array.ndim > 1 else 1, family_of(array))

    def check(self, data: Data, argument: str) -> None:
        """Refuse tables with names, and data of another kind than the array; kernels check the number of columns."""
        if Table.has_names(data):
            raise has_names(data, argument, self.number)
        if not isinstance(data, list | tuple | np.ndarray) or Table.looks_like_one(data) or holds_objects(data):
            return
        array = np.asarray(data)
        if array.size and array.dtype.kind in KNOWN and family_of(array) != self.family:
            raise KindError(
                f"{argument} holds {described(array.ravel())}; expected {HELD_BY[self.family]}, as before. Convert it "
                "first."
            )


def has_names(data: Data, argument: str, number: int) -> ColumnError:
    """The error for a table passed to something made from an array."""
    names = ", ".join(map(repr, Table.names_in(data, argument)))
    return ColumnError(
        f"{argument} has columns with names ({names}); expected {number} columns without, as before: pass "
        f"{argument}.to_numpy()."
    )


def aligned(tables: Sequence[Table], samples: Sequence[Any], names: Sequence[str]) -> tuple[list[Table], bool]:
    """Tables read from `samples` with the columns of the first, in its order, and whether these have names."""
    found, named = matched([table.columns for table in tables], samples, names)
    return [Table(columns) for columns in found], named


def matched(
    split: Sequence[Mapping[str, Any]], samples: Sequence[Any], names: Sequence[str]
) -> tuple[list[dict[str, Any]], bool]:
    """The columns of each sample by the names of the first, in its order."""
    order, named = split[0], Table.has_names(samples[0])
    found = [dict(split[0])]
    for columns, sample, name in zip(split[1:], samples[1:], names[1:], strict=True):
        if Table.has_names(sample) != named:
            raise _unnamed((names[0], order, named), (name, (*columns,), not named))
        columns = {respelled(each, order): column for each, column in columns.items()}
        alone = [each for each in (*order, *columns) if (each in order) != (each in columns)]
        if named and alone:
            has, lacks, other = (names[0], name, columns) if alone[0] in order else (name, names[0], order)
            meant = did_you_mean(alone[0], other)
            raise ColumnError(f"{lacks} has no column {alone[0]!r}{meant}, which {has} has; it has {listed(other)}.")
        found.append(selected(columns, order, name) if named else renamed(columns, order, name))
    return found, named


def selected(columns: Mapping[str, Any], order: Collection[str], argument: str) -> dict[str, Any]:
    """Columns with names, in this order."""
    theirs = {name: respelled(name, columns) for name in order}
    lacking = [name for name in order if theirs[name] not in columns]
    if lacking:
        raise no_column(argument, lacking[0], columns)
    return {name: columns[theirs[name]] for name in order}


def renamed(
    columns: Mapping[str, Any], order: Collection[str], argument: str, where: str = "in the first sample"
) -> dict[str, Any]:
    """Columns without names, matched by position."""
    if len(columns) != len(order):
        raise ShapeError(f"{argument} has {counted(len(columns), 'column')}; expected {len(order)}, as {where}.")
    return dict(zip(order, columns.values(), strict=True))


def _unnamed(*sides: tuple[str, Collection[str], bool]) -> ColumnError:
    """Columns with names cannot be matched to columns without."""
    (with_names, columns, _), (without, _, _) = sorted(sides, key=lambda side: not side[2])
    return ColumnError(
        f"{with_names} has columns with names ({', '.join(map(repr, columns))}) and {without} is an array, whose "
        f"columns have none: pass a table with the same names as {without}, or {with_names}.to_numpy()."
    )
