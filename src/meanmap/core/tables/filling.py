"""Tables with missing values: their original columns, and the table with missing values filled in."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from meanmap.core.absent import unmasked
from meanmap.core.arrays import is_categorical, reader_of, refuse_name
from meanmap.core.containers import is_pandas, is_polars, refuse_unread
from meanmap.core.errors import KindError
from meanmap.core.held import holds_floats, holds_times
from meanmap.core.language import a_type
from meanmap.core.pieces.files import ParquetFiles
from meanmap.core.tables.table import Table, named_columns
from meanmap.core.types import Data

__all__ = ["are_whole", "columns_of", "filled", "nearest_whole"]

# Beyond this, numbers that differ by one are equal.
MOST_WHOLE = 2.0**53


def columns_of(frame: Data, argument: str = "frame") -> dict[str, Any]:
    """The original columns of a table, by name; those of an (n, d) array are called 0 to d − 1.

    Examples
    --------
    >>> columns_of(np.array([[1.0, np.nan]]))
    {'0': array([1.]), '1': array([nan])}
    """
    refuse_unread(frame, argument)
    if named := named_columns(frame, argument):
        return named
    if ParquetFiles.holds(frame) and reader_of(frame) == "pandas.read_parquet":
        raise KindError(
            f"{argument} is Parquet files, whose rows are not in memory: pass polars.read_parquet({argument})."
        )
    refuse_name(frame, argument)
    array = np.asarray(unmasked(frame))
    if array.ndim != 2:
        raise KindError(
            f"{argument} is {a_type(frame)}; expected a table such as a DataFrame, a mapping from names to "
            "columns, or an (n, d) array."
        )
    return {str(j): column for j, column in enumerate(array.T)}


def filled(frame: Any, found: Mapping[Hashable, tuple[np.ndarray, np.ndarray]]) -> Any:
    """A copy of a table in which given rows (m,) of some columns hold new values (m, ...).

    Examples
    --------
    >>> filled({"a": [1.0, None], "b": ["u", "v"]}, {"a": (np.array([1]), np.array([0.5]))})
    {'a': array([1. , 0.5]), 'b': ['u', 'v']}
    """
    named = {str(name): each for name, each in found.items()}
    if not Table.looks_like_one(frame):
        array = np.asarray(unmasked(frame))
        array = np.array(array, dtype=array.dtype if holds_floats(array) else float)
        for name, (rows, values) in named.items():
            array[rows, int(name)] = values
        return array
    if is_pandas(frame):
        copy = frame.copy()
        for name in copy.columns:
            if str(name) in named:
                rows, values = named[str(name)]
                series = copy[name]
                plain = holds_floats(values) or (values.dtype.kind == "i" and not _holds_whole(series))
                if is_categorical(series) and not set(values.tolist()) <= set(series.cat.categories):
                    series = series.astype(object)
                series = series.astype(float) if plain and not holds_floats(series) else series.copy()
                series.iloc[rows] = _in_unit(values, series)
                copy[name] = series
        return copy
    columns = columns_of(frame)
    new = {name: _with(columns[name], *each) for name, each in named.items()}
    if is_polars(frame):
        return frame.with_columns(*(_polars(frame[name], column) for name, column in new.items()))
    if hasattr(frame, "set_column"):
        for name, column in new.items():
            frame = frame.set_column(frame.column_names.index(name), name, _arrow(frame[name], column))
        return frame
    return {
        name: new.get(str(name), column) for name, column in (frame if isinstance(frame, Mapping) else columns).items()
    }


def are_whole(values: object) -> bool:
    """Whether all numbers of a column are integers that a float represents exactly.

    Examples
    --------
    >>> are_whole(np.array([0.0, 3.0])), are_whole(np.array([0.0, 2.5]))
    (True, False)
    """
    numbers = np.asarray(values, dtype=float)
    return bool(np.all((numbers == np.rint(numbers)) & (np.abs(numbers) <= MOST_WHOLE)))


def nearest_whole(values: np.ndarray, least: float) -> np.ndarray:
    """The nearest integer to each, not negative if no observed value was.

    Examples
    --------
    >>> nearest_whole(np.array([-0.7, 2.6]), 0.0).tolist(), nearest_whole(np.array([-0.7]), -3.0).tolist()
    ([0, 3], [-1])
    """
    found = np.clip(np.rint(values), -MOST_WHOLE, MOST_WHOLE)
    return (np.maximum(found, 0) if least >= 0 else found).astype(np.int64)


def _holds_whole(series: Any) -> bool:
    """Whether a column of pandas has a type of whole numbers that may be missing."""
    return getattr(series.dtype, "kind", "") in "iu" and not isinstance(series.dtype, np.dtype)


def _in_unit(values: np.ndarray, series: Any) -> Any:
    """Times and durations in the unit and zone of a pandas column, numbers within its type; others unchanged."""
    if values.dtype.kind == "i" and _holds_whole(series):
        ends = np.iinfo(series.dtype.numpy_dtype)
        return np.clip(values, max(ends.min, -(2**63)), min(ends.max, 2**63 - 1)).astype(series.dtype.numpy_dtype)
    if holds_floats(values) and isinstance(series.dtype, np.dtype) and holds_floats(series):
        return values.astype(series.dtype)
    if not holds_times(values) or not holds_times(series):
        return values
    zone = getattr(series.dtype, "tz", None)
    if zone is None:
        return values.astype(series.dtype)
    return type(series)(values).dt.tz_localize("UTC").dt.tz_convert(zone).astype(series.dtype).array


def _polars(series: Any, column: np.ndarray) -> Any:
    """A column of Polars with these values; times, whole numbers, floats and labels keep their type."""
    whole, float_ = column.dtype.kind == "i", holds_floats(column)
    if holds_times(column) or (whole and series.dtype.is_integer()) or (float_ and series.dtype.is_float()):
        return type(series)(series.name, column).cast(series.dtype)
    found = type(series)(series.name, column.tolist())
    if not is_categorical(series):
        return found
    labels = found.cast(series.dtype, strict=False)
    return found if labels.null_count() > found.null_count() else labels  # an Enum lacks labels of the model


def _arrow(column: Any, values: np.ndarray) -> Any:
    """An Arrow column with these values, of its previous type if that can hold them."""
    import pyarrow

    wanted = None if holds_floats(values) and not pyarrow.types.is_floating(column.type) else column.type
    return pyarrow.array(values if values.dtype.kind in "fimM" else values.tolist(), type=wanted)


def _with(column: Any, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    """A column with some of its missing values, None or NaN, replaced."""
    if values.dtype.kind == "i":
        array = np.empty(len(column), dtype=object)
        array[:] = column.to_pylist() if hasattr(column, "to_pylist") else list(column)
        array[rows] = values
        exact = all(isinstance(value, int | np.integer) and not isinstance(value, bool) for value in array)
        return array.astype(np.int64 if exact else float)
    there = getattr(column, "dtype", values.dtype)
    floats = holds_floats(values) and isinstance(there, np.dtype) and there.kind == "f"
    array = np.array(column, dtype=there if floats else values.dtype if values.dtype.kind in "fmM" else object)
    array[rows] = values
    return array
