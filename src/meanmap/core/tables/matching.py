"""Columns of several samples, matched by name, or by position if there are no names."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from meanmap.core.errors import ColumnError, ShapeError
from meanmap.core.meant import did_you_mean, listed, no_column, respelled
from meanmap.core.tables.column import counted
from meanmap.core.tables.table import Table

__all__ = ["aligned", "matched", "renamed", "selected"]


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
