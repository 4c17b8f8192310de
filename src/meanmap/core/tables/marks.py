"""Codes for missing values, such as "?" or -999: `missing=["?"]` names them, in Python and in files."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np

from meanmap.core.arrays import is_categorical, plain
from meanmap.core.containers import is_rotations, is_sparse
from meanmap.core.errors import ParameterError
from meanmap.core.exact import check_exact
from meanmap.core.foreign import is_missing, unmasked
from meanmap.core.held import holds_numbers
from meanmap.core.moments import is_time, times_in
from meanmap.core.numerals import is_name, reads_as_number
from meanmap.core.settings import is_number
from meanmap.core.tables.table import named_columns
from meanmap.core.types import Data
from meanmap.core.values import label_text

__all__ = ["columns_without_marks", "marked", "policy_and_marks", "without_marks"]


def policy_and_marks(missing: object) -> tuple[Any, tuple[Any, ...]]:
    """The policy for missing values, and the codes for them: with a list of codes, rows with these are dropped.

    Examples
    --------
    >>> policy_and_marks("raise"), policy_and_marks(["?", -999])
    (('raise', ()), ('drop', ('?', -999)))
    """
    if not isinstance(missing, list | tuple | set | frozenset):
        return missing, ()
    odd = [mark for mark in missing if not isinstance(mark, str) and not is_number(mark)]
    if odd or not missing:
        what = f"holds {odd[0]!r}" if odd else "is empty"
        raise ParameterError(f"missing {what}; expected codes for missing values, such as ['?', -999].")
    return "drop", tuple(missing)


def marked(column: np.ndarray, marks: Sequence[Any]) -> np.ndarray:
    """Which values of a column are codes."""
    kind = column.dtype.kind
    if kind in "fiu":
        return np.isin(column, [float(mark) for mark in marks if reads_as_number(mark)])
    if kind == "M":
        times = [times_in(np.array([mark]), "missing")[0] for mark in marks if isinstance(mark, str) and is_time(mark)]
        return np.any([column == time for time in times], axis=0) if times else np.zeros(column.shape, bool)
    if kind not in "OUST":
        return np.zeros(column.shape, bool)
    words = {label_text(mark).strip() for mark in marks}
    found = [
        isinstance(value, str) | is_number(value) and label_text(value).strip() in words for value in column.ravel()
    ]
    return np.array(found, bool).reshape(column.shape)


def without_marks(sample: Data, argument: str, marks: Sequence[Any]) -> Any:
    """A sample with codes replaced by missing values; a column of text whose other cells are numbers becomes numeric.

    Examples
    --------
    >>> without_marks({"age": ["31", "?", "47"], "town": ["a", "b", "?"]}, "x", ["?"])
    {'age': array([31., nan, 47.]), 'town': array(['a', 'b', None], dtype=object)}
    """
    if is_sparse(sample) or is_rotations(sample):
        return sample
    if columns := named_columns(sample, argument):
        found = {name: _unmarked(column, marks) for name, column in columns.items()}
        return found if any(found[name] is not columns[name] for name in found) else sample
    return _unmarked(sample, marks)


def columns_without_marks(columns: Mapping[Any, Any], argument: str, marks: Sequence[Any]) -> Mapping[Any, Any]:
    """Columns, under any names, with codes replaced by missing values."""
    if not marks or not columns:
        return columns
    found = without_marks({str(name): values for name, values in columns.items()}, argument, marks)
    return {name: found[str(name)] for name in columns}


def _unmarked(column: Any, marks: Sequence[Any]) -> Any:
    values = np.asarray(unmasked(column))
    if values.dtype.kind == "O" and isinstance(next((v for v in values.flat if not is_missing(v)), None), date):
        values = plain(column, "a column")  # Python's dates, and times with a zone
    gone = marked(values, marks)
    if not gone.any():
        return column
    if isinstance(unmasked(column), np.ma.MaskedArray):
        return np.ma.MaskedArray(values, gone | np.ma.getmaskarray(column))
    if holds_numbers(values):
        check_exact(values[~gone], "a column with codes for missing values")
        return np.where(gone, np.nan, values.astype(np.float64))
    if values.dtype.kind == "M":
        left = values.copy()  # with its zone, if it has one
        left[gone] = np.array("NaT", values.dtype)
        return left
    left = values.astype(object)
    left[gone] = None
    words = [value for value in left.ravel().tolist() if not is_missing(value)]
    if is_categorical(column) or not all(reads_as_number(word) and not is_name(str(word)) for word in words):
        return left
    numbers = np.full(values.shape, np.nan)
    numbers.flat[[i for i, value in enumerate(left.flat) if not is_missing(value)]] = [float(word) for word in words]
    return numbers
