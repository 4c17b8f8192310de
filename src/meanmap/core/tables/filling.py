"""Tables with missing values: their original columns, and the table with missing values filled in."""

from collections.abc import Hashable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from meanmap.core.arrays import reader_of, refuse_name
from meanmap.core.containers import is_pandas, is_polars, refuse_unread
from meanmap.core.errors import KindError
from meanmap.core.foreign import absent, unmasked
from meanmap.core.held import counts_as_numbers, holds_floats, holds_labels, holds_numbers, holds_text, holds_times
from meanmap.core.language import a_type
from meanmap.core.numerals import reads_as_number
from meanmap.core.pieces.files import ParquetFiles
from meanmap.core.tables.kinds import categories_of
from meanmap.core.tables.table import Table, named_columns
from meanmap.core.texts import as_labels
from meanmap.core.types import Data

__all__ = ["are_whole", "as_the_others", "columns_of", "filled", "nearest_whole", "step_of"]

# Beyond this, numbers that differ by one are equal.
MOST_WHOLE = 2.0**53
# Numbers are rounded to a step if they are this near to multiples of it apart, as a share of it.
ROUNDED = 1e-6


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
                copy[name] = _pandas(copy[name], *named[str(name)])
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


def as_the_others(values: np.ndarray, others: Sequence[Any]) -> np.ndarray:
    """Values as the other cells of a column: labels as the numbers or truth values that they stand for, times as
    Python's or those of pandas, in their zone.

    Examples
    --------
    >>> as_the_others(np.array(["1", "2"]), [1.0, 3.0]).tolist(), as_the_others(np.array(["1"]), ["1", 2]).tolist()
    ([1.0, 2.0], ['1'])
    """
    found = np.empty(len(values), dtype=object)
    if holds_text(values):
        texts = as_labels(np.array([*others, ""], dtype=object)).tolist()[:-1]
        names = dict(zip(texts, others, strict=True))
        found[:] = [names[word] if word in names else _alike(word, others) for word in values.tolist()]
    elif holds_times(values) and others:
        found[:] = [_moment(value, others[0]) for value in values]
    else:
        found[:] = values.tolist()
    return found


def _alike(word: str, others: Sequence[Any]) -> Any:
    """A label that no other cell has, as what the others are."""
    if others and all(isinstance(other, bool | np.bool_) for other in others):
        return word == "True" if word in ("True", "False") else word
    numbers = bool(others) and all(isinstance(other, int | float | np.number) for other in others)
    return type(others[0])(float(word)) if numbers and reads_as_number(word) else word


def _moment(value: Any, other: Any) -> Any:
    """A time or a duration as another one is."""
    if isinstance(other, np.generic):
        return value.astype(other.dtype)
    plain = value.astype("M8[us]" if isinstance(other, datetime) else "M8[D]" if isinstance(other, date) else "m8[us]")
    found: Any = plain.item()
    if hasattr(other, "to_numpy"):  # of pandas
        made: Any = type(other)
        found = made(plain)
    zone = getattr(other, "tzinfo", None)
    return found if zone is None else found.replace(tzinfo=UTC).astimezone(zone)


def are_whole(values: object) -> bool:
    """Whether all numbers of a column are integers that a float represents exactly.

    Examples
    --------
    >>> are_whole(np.array([0.0, 3.0])), are_whole(np.array([0.0, 2.5]))
    (True, False)
    """
    numbers = np.asarray(values, dtype=float)
    return bool(np.all((numbers == np.rint(numbers)) & (np.abs(numbers) <= MOST_WHOLE)))


def step_of(found: np.ndarray) -> float:
    """The step of a ladder on which all distinct numbers, rising, are, as rounded ones; 0 if there is none.

    Examples
    --------
    >>> step_of(np.array([-1.0, 2.0, 2.5])), step_of(np.array([0.0, 1.0, 2.3]))
    (0.5, 0.0)
    """
    steps = np.diff(found)
    step = float(steps.min(initial=np.inf))
    times = steps / step
    return step if len(found) > 2 and np.all(np.abs(times - np.round(times)) < ROUNDED) else 0.0


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


def _pandas(series: Any, rows: np.ndarray, values: np.ndarray) -> Any:
    """A column of pandas with some of its values replaced, of its type if that can hold them."""
    categories, _ = categories_of(series)
    if holds_text(values) or (holds_times(values) and holds_labels(series)):
        others = categories or series.dropna().unique().tolist()
        values = as_the_others(values, others or ([series.dtype.type()] if counts_as_numbers(series) else []))
    plain = holds_floats(values) or (values.dtype.kind == "i" and not _holds_whole(series))
    text = any(isinstance(value, str) for value in values.tolist())
    if categories is not None and set(values.tolist()) <= set(categories):
        series = series.copy()
    elif categories is not None or (text and counts_as_numbers(series)):
        series = series.astype(float if plain else object)
    else:
        series = series.astype(float) if plain and not holds_floats(series) else series.copy()
    series.iloc[rows] = values.tolist() if values.dtype == object else _in_unit(values, series)
    return series


def _in_unit(values: np.ndarray, series: Any) -> Any:
    """Times and durations in the unit and zone of a pandas column, numbers within its type; others unchanged."""
    if values.dtype.kind == "i" and _holds_whole(series):
        ends = np.iinfo(series.dtype.numpy_dtype)
        return np.clip(values, max(ends.min, -(2**63)), min(ends.max, 2**63 - 1)).astype(series.dtype.numpy_dtype)
    if holds_floats(values) and isinstance(series.dtype, np.dtype) and holds_floats(series):
        return values.astype(series.dtype)
    if not holds_times(values) or not holds_times(series):
        return values
    if isinstance(series.dtype, np.dtype):
        return values.astype(series.dtype)
    held = getattr(series.dtype, "pyarrow_dtype", series.dtype)  # of Arrow, in which dates have no unit
    found = type(series)(values.astype(f"{values.dtype.kind}8[{getattr(held, 'unit', 'D')}]"))
    if getattr(held, "tz", None) is not None:
        found = found.dt.tz_localize("UTC").dt.tz_convert(held.tz)
    return found.astype(series.dtype).array


def _polars(series: Any, column: np.ndarray) -> Any:
    """A column of Polars with these values; times, whole numbers, floats and labels keep their type."""
    whole, float_ = column.dtype.kind == "i", holds_floats(column)
    if holds_times(column) or (whole and series.dtype.is_integer()) or (float_ and series.dtype.is_float()):
        return type(series)(series.name, column).cast(series.dtype)
    found = type(series)(series.name, column.tolist())
    if whole or float_:
        return found
    labels = found.cast(series.dtype, strict=False)
    return found if labels.null_count() > found.null_count() else labels  # an Enum lacks labels of the model


def _arrow(column: Any, values: np.ndarray) -> Any:
    """An Arrow column with these values, of its previous type if that can hold them."""
    import pyarrow

    if holds_times(values):
        return pyarrow.array(values).cast(column.type, safe=False)
    if pyarrow.types.is_dictionary(column.type):
        labels = [each for part in column.unify_dictionaries().chunks[:1] for each in part.dictionary.to_pylist()]
        labels += [each for each in dict.fromkeys(values.tolist()) if each not in labels]
        codes = pyarrow.array([labels.index(each) for each in values.tolist()], column.type.index_type)
        known = pyarrow.array(labels, column.type.value_type)
        return pyarrow.DictionaryArray.from_arrays(codes, known, ordered=column.type.ordered)
    wanted = None if holds_floats(values) and not pyarrow.types.is_floating(column.type) else column.type
    return pyarrow.array(values if values.dtype.kind in "fi" else values.tolist(), type=wanted)


def _with(column: Any, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    """A column with some of its missing values, None or NaN, replaced."""
    there = getattr(column, "dtype", None)
    objects = there is not None and getattr(there, "kind", "") == "O"
    if isinstance(there, np.dtype) and there.kind in "fmM" and there.kind == values.dtype.kind:
        array = np.array(column)
        array[rows] = values.astype(there)
        return array
    if holds_times(values) and not isinstance(column, list | tuple) and not objects:
        array = np.array(column, dtype=values.dtype)
        array[rows] = values
        return array
    cells = np.empty(len(column), dtype=object)
    cells[:] = list(column)
    numbers = holds_numbers(values)
    gaps = np.zeros(len(cells), bool)
    gaps[rows] = True
    gaps |= absent(column)
    cells[rows] = values if numbers else as_the_others(values, cells[~gaps].tolist())
    gaps[rows] = False
    if numbers:
        cells[gaps] = np.nan
        exact = values.dtype.kind == "i" and all(
            isinstance(value, int | np.integer) and not isinstance(value, bool) for value in cells
        )
        return cells.astype(np.int64 if exact else float)
    if objects or gaps.any() or any(isinstance(value, str | date | timedelta) for value in cells):
        return cells
    return np.array(cells.tolist(), dtype=there if isinstance(there, np.dtype) else None)
