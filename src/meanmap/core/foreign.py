"""Columns and cells of other libraries that NumPy cannot represent, and which of them are missing."""

from decimal import Decimal
from typing import Any

import numpy as np

from meanmap.core.errors import KindError
from meanmap.core.exact import MOST_EXACT
from meanmap.core.held import holds_floats
from meanmap.core.moments import Zoned
from meanmap.core.objects import texts_of_categories
from meanmap.core.texts import check_memory
from meanmap.core.types import Data

__all__ = ["absent", "count_missing", "in_cells", "is_missing", "readable", "unmasked"]

LISTS = (list, tuple, np.ndarray)
# Shorter texts cannot fill the memory.
LONG = 1000


def readable(column: Any, argument: str) -> Any:
    """A column as NumPy can hold it: of Arrow, texts of NumPy's new kind, decimals and some of polars become others.

    So do pandas' categories that are objects. Structs, and whole numbers of more than 64 bits, are refused.
    """
    if isinstance(column, list | tuple):
        if column and isinstance(column[0], str):
            check_memory(column, argument)
        return _without_decimals(column)
    if type(column).__module__.startswith("pyarrow"):
        return _without_decimals(_of_arrow(column))
    kind = getattr(column, "dtype", None)
    if getattr(kind, "kind", "") == "T":
        words = [None if is_missing(word) else word for word in np.asarray(column).ravel().tolist()]
        return np.array(words, dtype=object if None in words else str).reshape(column.shape)
    if type(kind).__name__ == "CategoricalDtype":
        return texts_of_categories(column)
    if getattr(kind, "kind", "") == "O":
        return _without_decimals(column)
    if type(kind).__module__.startswith("polars"):
        return _of_polars(column, type(kind).__name__, argument)
    return column


def in_cells(column: object) -> Any:
    """A column of lists of different lengths as an array with a list in each cell, which NumPy refuses to make."""
    if not isinstance(column, list | tuple) or not column or not isinstance(column[0], LISTS):
        return column
    try:
        np.asarray(column)
    except ValueError:
        cells = np.empty(len(column), dtype=object)
        cells[:] = [tuple(cell) if isinstance(cell, list) else cell for cell in column]
        return cells
    return column


def _of_polars(column: Any, name: str, argument: str) -> Any:
    if name == "Struct":
        raise KindError(
            f"{argument} holds structs; expected one value per row: split them, for example with frame.unnest."
        )
    if name == "Array":
        return column.to_numpy()
    if name == "String" and (column.str.len_chars().max() or 0) > LONG:
        check_memory(column.to_list(), argument)
    if name == "Decimal":
        return _without_decimals(column.to_list())
    if name in ("Int128", "UInt128"):
        import polars

        try:
            return column.cast(polars.Int64)
        except polars.exceptions.PolarsError:
            raise KindError(
                f"{argument} holds whole numbers of more than 64 bits; expected shorter ones. If they are labels, "
                f"convert them to text: .cast(polars.String)."
            ) from None
    return column


def _of_arrow(column: Any) -> Any:
    """An Arrow column, whose missing integers NumPy would turn into floats, missing labels of a dictionary into its
    last one, and whose time zones it would drop.
    """
    import pyarrow

    if pyarrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind, absent = column.type, np.asarray(column.is_null())
    if pyarrow.types.is_timestamp(kind) and kind.tz is not None:
        return np.asarray(column.cast(pyarrow.timestamp(kind.unit))).view(Zoned)
    if pyarrow.types.is_integer(kind) and absent.any():
        return np.ma.MaskedArray(np.asarray(column.fill_null(0)), absent)
    return np.asarray(column)


def _without_decimals(column: Any) -> Any:
    """A column of Python's decimals as numbers, integers exactly; anything else unchanged."""
    if getattr(column, "ndim", 1) != 1 or not isinstance(next(filter(_is_there, column), None), Decimal):
        return column
    values = np.asarray(column, dtype=object)
    absent = np.array([is_missing(value) for value in values.tolist()])
    there = values[~absent].tolist()
    if not all(isinstance(value, Decimal | int) for value in there):
        return column
    if all(value == int(value) for value in there if value.is_finite()) and max(map(abs, there)) >= 2**53:
        whole = np.array([0 if gone else int(value) for value, gone in zip(values, absent, strict=True)])
        return np.ma.MaskedArray(whole, absent) if absent.any() else whole
    return np.array([np.nan if gone else float(value) for value, gone in zip(values, absent, strict=True)])


def _is_there(value: object) -> bool:
    return not is_missing(value)


def is_missing(value: object) -> bool:
    """Whether one value is missing: None, NaN, NA or NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # of pandas, recognised without importing it
        return True
    return isinstance(value, float | Decimal | np.generic) and bool(value != value)


def absent(data: Any) -> np.ndarray:
    """Which entries are missing, in the shape of the data: null, None, NaN, NaT or NA, or masked."""
    if hasattr(data, "isna"):
        missing = np.asarray(data.isna())
        if getattr(getattr(data, "dtype", None), "kind", "") == "f":  # nullable ones of pandas tell NaN from NA
            missing = missing | np.isnan(data.to_numpy(np.float64, na_value=np.nan))
        return missing
    if hasattr(data, "is_null"):
        array = np.asarray(data)  # polars tells NaN from null
        return np.asarray(data.is_null()) | (np.isnan(array) if holds_floats(array) else False)
    array = np.asarray(unmasked(data))
    if array.dtype.kind in "fmM":
        missing = np.isnan(array) if holds_floats(array) else np.isnat(array)
    elif array.dtype.kind == "O":
        missing = np.array([_is_absent(value) for value in array.ravel()], bool).reshape(array.shape)
    elif array.dtype.kind == "U" and isinstance(data, list | tuple) and array.ndim == 1:
        missing = np.array([is_missing(value) for value in data], bool)  # NaN among texts would be a text
    else:
        missing = np.zeros(array.shape, bool)
    return missing | np.ma.getmaskarray(data) if isinstance(data, np.ma.MaskedArray) else missing


def _is_absent(cell: object) -> bool:
    """Whether a cell is missing, or a part of one that is a list."""
    return any(map(_is_absent, cell)) if isinstance(cell, list | tuple) else is_missing(cell)


def count_missing(data: Any) -> int:
    """The number of missing entries of a column or array, except NaN among plain floats, which is reported later."""
    if hasattr(data, "is_null"):
        return int(data.is_null().sum())
    told = hasattr(data, "isna") or isinstance(data, np.ma.MaskedArray)
    return int(absent(data).sum()) if told or not holds_floats(np.asarray(data)) else 0


def unmasked(data: Data) -> Any:
    """A masked array with NaN, NaT or None where it is masked, because NumPy silently drops masks; anything else
    unchanged. Integers that float64 cannot represent stay masked.
    """
    if isinstance(data, np.ndarray) and data.dtype.kind == "T":
        return readable(data, "the column")
    if not isinstance(data, np.ma.MaskedArray) or data.dtype.names:
        return data
    if not np.ma.is_masked(data):
        return data.data
    kind, there = data.dtype.kind, data.compressed()
    if kind in "iu" and (np.abs(there.astype(np.float64)) >= MOST_EXACT).any():
        return data  # floats would lose digits
    missing = np.nan if kind in "fiu" else "NaT" if kind in "mM" else None
    found = np.array(data.data, np.float64 if kind in "fiu" else data.dtype if kind in "mM" else object)
    found[np.ma.getmaskarray(data)] = missing
    return found
