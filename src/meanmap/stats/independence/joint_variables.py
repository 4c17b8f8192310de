"""The variables of a test of joint independence: the columns of one table or a sequence of data, in memory or not."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from meanmap.core.arrays import check_rows
from meanmap.core.containers import refuse_unread
from meanmap.core.errors import InputError, KindError, ShapeError
from meanmap.core.language import counted
from meanmap.core.pieces.sources import lies_elsewhere
from meanmap.core.points import on_host
from meanmap.core.tables.chunks import count_rows, source_of
from meanmap.core.tables.table import table_in, values_of
from meanmap.core.values import is_sequence
from meanmap.stats.settings import LEAST_POINTS

__all__ = ["alone", "common_length", "listed", "varying"]


def listed(variables: object) -> tuple[list[str], list[Any]]:
    """The variables and their names; each column of a table, of files or of Dask becomes a table of one column."""
    source = source_of(variables, "variables")
    if source.once:
        refuse_unread(variables, "variables")
        raise KindError(
            "variables is an iterator, which can be read only once: make mm.stats.plan('joint independence', ...) "
            "from some of its rows, and pass it to plan.state."
        )
    if source.named:
        names, columns = list(source.names), [source.select([name]) for name in source.names]
    elif is_sequence(variables):
        columns = [on_host(data) for data in variables]
        names = [f"variables[{k}]" for k in range(len(columns))]
    else:
        names, columns = _of_array(variables if lies_elsewhere(variables) else np.asanyarray(variables))
    if len(names) < 2:
        raise InputError(f"variables holds {counted(len(names), 'variable')}; expected at least 2.")
    return names, columns


def common_length(names: Sequence[str], columns: Sequence[Any]) -> int:
    """The number of points that all variables have; an error if numbers differ, are unknown, or are too small."""
    lengths = [count_rows(column) for column in columns]
    for name, n, column in zip(names, lengths, columns, strict=True):
        if n is None:
            refuse_unread(column, name)
            raise KindError(f"{name} is an iterator; expected variables whose rows can be counted.")
    if len(set(lengths)) > 1:
        told = ", ".join(f"{name} has {n}" for name, n in zip(names, lengths, strict=True))
        raise ShapeError(f"{told} points; expected the same number of each, row by row.")
    check_rows(lengths[0] or 0, names[0], LEAST_POINTS)
    return lengths[0] or 0


def alone(variable: object, name: str) -> Any:
    """The column of a table that has only one, which kernels read like an array; any other data unchanged."""
    table = table_in(variable, name)
    return variable if table is None else table.columns[table.names[0]] if len(table.names) == 1 else table


def varying(names: list[str], columns: list[Any]) -> tuple[list[int], tuple[str, ...]]:
    """The variables that vary, at least two, and a note on each constant one."""
    dull = [name for name, column in zip(names, columns, strict=True) if _is_constant(column)]
    if len(names) - len(dull) < 2:
        return list(range(len(names))), ()
    told = tuple(f"{name} is constant: nothing depends on it, and it is left out." for name in dull)
    return [k for k, name in enumerate(names) if name not in dull], told


def _of_array(array: Any) -> tuple[list[str], list[Any]]:
    if array.ndim != 2:
        raise ShapeError(f"variables has shape {array.shape}; expected a list of variables, or a table of columns.")
    return [f"variables[:, {k}]" for k in range(array.shape[1])], [array[:, k] for k in range(array.shape[1])]


def _is_constant(column: object) -> bool:
    if table := table_in(column, "a variable"):
        column = np.stack([np.asarray(each) for each in table.columns.values()], axis=1)
    array = values_of(column, "a variable")
    return array is not None and len(array) > 1 and bool((array == array[:1]).all())
