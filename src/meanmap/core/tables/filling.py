"""Tables with gaps: their columns as they came, and the table again with values in its gaps."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from meanmap.core.arrays import unmasked
from meanmap.core.errors import KindError
from meanmap.core.pieces.files import ParquetFiles
from meanmap.core.points import refuse_unread
from meanmap.core.tables.table import Table, named_columns
from meanmap.core.types import Data

__all__ = ["columns_of", "filled"]


def columns_of(frame: Data, argument: str = "frame") -> dict[str, Any]:
    """The columns of a table as they came, by name; those of an (n, d) array are called 0 to d − 1.

    Examples
    --------
    >>> columns_of(np.array([[1.0, np.nan]]))
    {'0': array([1.]), '1': array([nan])}
    """
    refuse_unread(frame, argument)
    if named := named_columns(frame, argument):
        return named
    if ParquetFiles.holds(frame):
        raise KindError(
            f"{argument} is Parquet files, whose rows are not in memory: pass polars.read_parquet({argument})."
        )
    array = np.asarray(unmasked(frame))
    if array.ndim != 2:
        raise KindError(
            f"{argument} is a {type(frame).__name__}; expected a table such as a DataFrame, a mapping from names to "
            "columns, or an (n, d) array."
        )
    return {str(j): column for j, column in enumerate(array.T)}


def filled(frame: Any, found: Mapping[Hashable, tuple[np.ndarray, np.ndarray]]) -> Any:
    """A copy of a table in which the rows (m,) of some columns hold the values (m, ...) that were found.

    Examples
    --------
    >>> filled({"a": [1.0, None], "b": ["u", "v"]}, {"a": (np.array([1]), np.array([0.5]))})
    {'a': array([1. , 0.5]), 'b': ['u', 'v']}
    """
    named = {str(name): each for name, each in found.items()}
    if not Table.looks_like_one(frame):
        array = np.array(unmasked(frame), dtype=float)
        for name, (rows, values) in named.items():
            array[rows, int(name)] = values
        return array
    if hasattr(frame, "iloc"):
        copy = frame.copy()
        for name in copy.columns:
            if str(name) in named:
                rows, values = named[str(name)]
                series = copy[name].astype(float) if values.dtype.kind == "f" else copy[name].copy()
                series.iloc[rows] = _in_unit(values, series)
                copy[name] = series
        return copy
    columns = columns_of(frame)
    new = {name: _with(columns[name], *each) for name, each in named.items()}
    if hasattr(frame, "with_columns"):
        return frame.with_columns(*(_polars(frame[name], column) for name, column in new.items()))
    return {
        name: new.get(str(name), column) for name, column in (frame if isinstance(frame, Mapping) else columns).items()
    }


def _in_unit(values: np.ndarray, series: Any) -> Any:
    """Times and durations in the unit and time zone of a column of pandas; others as they are."""
    if values.dtype.kind not in "mM" or series.dtype.kind not in "mM":
        return values
    zone = getattr(series.dtype, "tz", None)
    if zone is None:
        return values.astype(series.dtype)
    return type(series)(values).dt.tz_localize("UTC").dt.tz_convert(zone).astype(series.dtype).array


def _polars(series: Any, column: np.ndarray) -> Any:
    """A column of Polars with these values; times keep their type, which lists of whole numbers would lose."""
    if column.dtype.kind in "mM":
        return type(series)(series.name, column).cast(series.dtype)
    return type(series)(series.name, column.tolist())


def _with(column: Any, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    """A column with some of its values replaced; of missing labels and numbers alike it says None or NaN before."""
    array = np.array(column, dtype=values.dtype if values.dtype.kind in "fmM" else object)
    array[rows] = values
    return array
