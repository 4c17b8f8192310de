"""Which values are missing, in columns of any library."""

from typing import Any

import numpy as np

from meanmap.core.exact import MOST_EXACT
from meanmap.core.foreign import is_missing, readable
from meanmap.core.held import holds_floats
from meanmap.core.types import Data

__all__ = ["absent", "count_missing", "unmasked"]


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
