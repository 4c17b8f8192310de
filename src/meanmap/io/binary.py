"""Columns of NPY, NPZ and Parquet files. Anything that is not a column of numbers or labels is refused, by name."""

from collections.abc import Callable, Mapping, Sequence
from glob import has_magic
from pathlib import Path
from typing import Any

import numpy as np

from meanmap.core.arrays import plain
from meanmap.core.errors import ColumnError, InputError, KindError, ShapeError
from meanmap.core.exact import MOST_EXACT
from meanmap.core.extras import optional
from meanmap.core.foreign import readable
from meanmap.core.held import counts_as_numbers, holds_text, holds_times, holds_truth
from meanmap.core.meant import composed
from meanmap.core.moments import in_one_unit
from meanmap.core.pieces.files import ParquetFiles
from meanmap.core.tables.table import as_declared

__all__ = ["read_arrays", "read_parquet"]

BEGINS = {".npy": (b"\x93NUMPY",), ".npz": (b"PK\x03\x04", b"PK\x05\x06")}


def read_arrays(path: Path, kind: str) -> dict[str, Any]:
    """Columns x0, x1, ... of an NPY file, or a column or block for each array of an NPZ file."""
    try:
        with path.open("rb") as file:
            # NumPy takes any other beginning for a pickle, and suggests trusting it.
            if not file.read(6).startswith(BEGINS[kind]):
                raise ValueError("it does not begin like such a file")
            file.seek(0)
            found = np.load(file, allow_pickle=False)
            arrays = {composed(name): found[name] for name in found.files} if kind == ".npz" else found
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except Exception as problem:  # NumPy, zipfile and zlib raise a dozen kinds of errors for damaged files
        pickled = "allow_pickle" in str(problem)
        why = "it holds Python objects, and reading them would execute code" if pickled else str(problem).rstrip(".")
        raise InputError(f"{path} cannot be read as {kind}: {why or type(problem).__name__}.") from None
    if isinstance(arrays, np.ndarray):
        if arrays.ndim not in (1, 2):
            raise ShapeError(f"{path} has shape {arrays.shape}; expected (rows,) or (rows, columns).")
        arrays = {f"x{i}": column for i, column in enumerate(np.atleast_2d(arrays.T))}
    for name, array in arrays.items():
        is_array = isinstance(array, np.ndarray)
        if not is_array or not (counts_as_numbers(array) or holds_text(array) or holds_times(array)):
            what = f"of {array.dtype}" if is_array else "not an array"
            raise InputError(f"{name!r} of {path} is {what}; expected arrays of numbers, times or text.")
    _check_lengths(arrays, path)
    return {name: _as_read(array, f"{name!r} of {path}") for name, array in arrays.items()}


def _as_read(array: np.ndarray, called: str) -> np.ndarray:
    """Numbers as float64 if that is exact, times and durations in one unit; text and truth values unchanged."""
    if holds_times(array):
        return in_one_unit(array, called)
    return array if holds_text(array) or (holds_truth(array) and array.ndim == 1) else as_declared(array)


def _check_lengths(arrays: Mapping[str, np.ndarray], path: Path) -> None:
    shapes = [array.shape for array in arrays.values()]
    if not shapes or len({shape[:1] for shape in shapes}) > 1 or any(len(shape) not in (1, 2) for shape in shapes):
        listed = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ShapeError(f"{path} holds no columns of one length: {listed or 'it is empty'}.")


def read_parquet(path: Path, choose: Callable[[Sequence[str]], list[str]] | None) -> dict[str, Any]:
    """Columns of a Parquet file, or of several as one table, chosen from those that all files have; None for all. Only
    the names of other columns are read.
    """
    with optional(f"{path}: reading Parquet"):
        import polars  # noqa: F401  # before the file is looked at
    if not path.exists() and not has_magic(str(path)):
        raise FileNotFoundError(2, "No such file or directory", str(path))
    try:
        # If all columns are read, each file of a pattern or a folder must have those of the first.
        files = _files(path, () if choose else None)
        chosen = choose(files.shared) if choose else list(files.names)
        # An empty choice reads nothing: without columns polars has no rows either.
        frame = _files(path, chosen).whole() if chosen else {}
    except KindError as problem:
        raise InputError(str(problem)) from None
    return {name: _column(frame[name], f"the column {name!r} of {path}") for name in chosen}


def _files(path: Path, columns: Sequence[str] | None) -> ParquetFiles:
    """The file at this path, whatever its name, or those of a folder or a pattern, checked for these columns."""
    chosen = None if columns is None else tuple(columns)
    return ParquetFiles((path,), chosen) if path.is_file() else ParquetFiles.of(path, chosen)


def _column(values: Any, called: str) -> np.ndarray:
    """A column of its declared kind: numbers, integers too long for float64, truth values, times, or text."""
    import polars

    kind = values.dtype
    if kind.is_integer():
        return _whole(values, called)
    if kind.is_decimal():
        return np.asanyarray(readable(values, called))
    if kind.is_numeric():
        return values.cast(polars.Float64).fill_null(float("nan")).to_numpy()
    if kind == polars.Boolean:
        return _masked(values.fill_null(False).to_numpy(), values)
    if kind == polars.Date or isinstance(kind, polars.Datetime | polars.Duration):
        return in_one_unit(plain(values, called), called)
    try:
        if kind.is_nested() or kind in (polars.Binary, polars.Time, polars.Object):
            raise polars.exceptions.InvalidOperationError
        return values.cast(polars.String).fill_null("").to_numpy().astype(str)
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException):
        raise ColumnError(f"{called} holds {kind}; expected numbers, times or text. Name the columns to use.") from None


def _masked(found: np.ndarray, values: Any) -> np.ndarray:
    return np.ma.MaskedArray(found, values.is_null().to_numpy()) if values.null_count() else found


def _whole(values: Any, called: str) -> np.ndarray:
    """Integers as float64 if that is exact, with NaN for missing ones; longer ones unchanged."""
    import polars

    floats = values.cast(polars.Float64).fill_null(float("nan")).to_numpy()
    if not (np.abs(floats) >= MOST_EXACT).any():
        return floats
    try:
        exact = (
            values.fill_null(0).to_numpy()
            if str(values.dtype) == "UInt64"
            else values.fill_null(0).cast(polars.Int64).to_numpy()
        )
    except polars.exceptions.PolarsError:
        raise ColumnError(
            f"{called} holds {values.dtype} beyond 64 bits; expected shorter numbers. If they are labels, save "
            "them as text."
        ) from None
    return _masked(exact, values)
