"""Columns that only number the rows, which are left out where all columns of a table are compared."""

import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from meanmap.core.language import in_python
from meanmap.core.pieces.sources import comes_in_pieces
from meanmap.core.tables.chunks import source_of
from meanmap.core.tables.missing import present, take
from meanmap.core.tables.order import LEAST_ROWS, array_of, may_be_ids, numbers_rows
from meanmap.core.tables.table import raw_columns

__all__ = ["NUMBERED", "left_out_of_table", "row_numbers", "without_row_numbers"]

NUMBERED = "only numbers or names the rows"


def left_out_of_table(name: str, why: str, kind: str) -> str:
    """The note on a column that is left out, and how to use it.

    Examples
    --------
    >>> left_out_of_table("id", NUMBERED, "number")
    "'id' only numbers or names the rows and is left out; to use it, pass kinds={'id': 'number'}"
    """
    pass_it = in_python(f"kinds={{{name!r}: {kind!r}}}", f"--kinds {shlex.quote(f'{name}={kind}')}")
    return f"{name!r} {why} and is left out; to use it, pass {pass_it}"


def without_row_numbers(
    samples: Sequence[Any], names: Sequence[str], keeps: Collection[str]
) -> tuple[list[Any], tuple[str, ...]]:
    """Tables without the columns that number their rows, as ids do, but for those in `keeps`, and notes. Tables with no
    other column, and samples that are not tables in memory, stay as they are.

    Examples
    --------
    >>> tables = [{"id": range(1, 41, 2), "age": [31] * 20}, {"id": range(2, 41, 2), "age": [47] * 20}]
    >>> without_row_numbers(tables, ["x", "y"], [])[1]
    ("'id' only numbers or names the rows and is left out; to use it, pass kinds={'id': 'number'}.",)
    >>> without_row_numbers(tables, ["x", "y"], ["id"])[0] == tables
    True
    """
    if any(comes_in_pieces(sample) or not source_of(sample).named for sample in samples):
        return list(samples), ()
    tables = [raw_columns(sample, name) for sample, name in zip(samples, names, strict=True)]
    found = row_numbers(tables, keeps)
    if not found or any(set(table) <= {*found, *keeps} for table in tables):
        return list(samples), ()
    kept = [{name: column for name, column in table.items() if name not in found} for table in tables]
    return kept, tuple(f"{left_out_of_table(name, NUMBERED, 'number')}." for name in found)


def row_numbers(tables: Sequence[Mapping[str, Any]], keeps: Collection[str] = ()) -> list[str]:
    """Columns that number the rows of one of these tables or, as ids of people in several groups do, of all together.

    Examples
    --------
    >>> row_numbers([{"id": range(20), "age": [31] * 20}])
    ['id']
    """
    shared = [name for name in tables[0] if name not in keeps and all(name in table for table in tables)]
    return [name for name in shared if _number_rows([_whole(table[name]) for table in tables])]


def _number_rows(columns: Sequence[np.ndarray | None]) -> bool:
    known = [column for column in columns if column is not None]
    if len(known) < len(columns) or min(map(len, known)) < LEAST_ROWS:
        return False
    return any(map(numbers_rows, known)) or (len(known) > 1 and all(map(may_be_ids, known)))


def _whole(column: Any) -> np.ndarray | None:
    """The numbers of a column that are there; None for other columns."""
    there = np.flatnonzero(present(column))
    values = array_of(column if len(there) == len(column) else take(column, there))
    return values if values is not None and values.dtype.kind in "iuf" else None
