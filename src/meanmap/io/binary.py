"""Columns of NPY, NPZ and Parquet files. What is no column of numbers or labels is refused by its name."""

from collections.abc import Mapping, Sequence
from glob import has_magic
from pathlib import Path
from typing import Any

import numpy as np

from meanmap.core.errors import ColumnError, InputError, ShapeError
from meanmap.core.pieces.files import ParquetFiles

__all__ = ["read_arrays", "read_parquet"]

BEGINS = {".npy": (b"\x93NUMPY",), ".npz": (b"PK\x03\x04", b"PK\x05\x06")}


def read_arrays(path: Path, kind: str) -> dict[str, Any]:
    """Columns x0, x1, ... of an NPY file, or a column or block for each array of an NPZ file."""
    try:
        with path.open("rb") as file:
            # NumPy takes what begins otherwise for a pickle, and advises to trust it.
            if not file.read(6).startswith(BEGINS[kind]):
                raise ValueError("it does not begin as such a file does")
            file.seek(0)
            found = np.load(file, allow_pickle=False)
            arrays = {name: found[name] for name in found.files} if kind == ".npz" else found
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except Exception as problem:  # NumPy, zipfile and zlib have a dozen kinds for what is damaged
        pickled = "allow_pickle" in str(problem)
        why = "it holds Python objects, and to read them would run them" if pickled else str(problem).rstrip(".")
        raise InputError(f"{path} cannot be read as {kind}: {why or type(problem).__name__}.") from None
    if isinstance(arrays, np.ndarray):
        if arrays.ndim not in (1, 2):
            raise ShapeError(f"{path} has shape {arrays.shape}; expected (rows,) or (rows, columns).")
        arrays = {f"x{i}": column for i, column in enumerate(np.atleast_2d(arrays.T))}
    for name, array in arrays.items():
        dtype = getattr(array, "dtype", None)
        if dtype is None or dtype.kind not in "biufU":
            what = "no array" if dtype is None else f"of {dtype}"
            raise InputError(f"{name!r} of {path} is {what}; expected arrays of numbers or text.")
    _check_lengths(arrays, path)
    return {name: array.astype(float) if array.dtype.kind in "biuf" else array for name, array in arrays.items()}


def _check_lengths(arrays: Mapping[str, np.ndarray], path: Path) -> None:
    shapes = [array.shape for array in arrays.values()]
    if not shapes or len({shape[:1] for shape in shapes}) > 1 or any(len(shape) not in (1, 2) for shape in shapes):
        listed = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ShapeError(f"{path} holds no columns of one length: {listed or 'it is empty'}.")


def read_parquet(path: Path, columns: Sequence[str] | None) -> dict[str, Any]:
    """Columns of a Parquet file, or of several as one table; of the others only the names are read."""
    try:
        import polars
    except ImportError:
        raise InputError(f"{path}: Parquet files need polars: pip install polars.") from None
    if not path.is_file() and not path.is_dir() and not has_magic(str(path)):
        raise FileNotFoundError(2, "No such file or directory", str(path))
    failures = (polars.exceptions.PolarsError, polars.exceptions.PanicException, OSError)
    try:
        # Of a pattern or a folder each file has to have the columns of the first one.
        files = ParquetFiles((path,)) if path.is_file() else ParquetFiles.of(path)
        chosen = [name for name in files.names if columns is None or name in columns] or list(files.names)
        frame = ParquetFiles(files.paths, tuple(chosen)).frame()
    except failures as problem:
        raise InputError(f"{path} cannot be read as Parquet: {str(problem).splitlines()[0]}") from None
    found = {}
    for name in chosen:
        kind = frame[name].dtype
        try:
            if kind.is_numeric():
                found[name] = frame[name].cast(polars.Float64).fill_null(float("nan")).to_numpy()
            elif kind.is_nested() or kind in (polars.Binary, polars.Duration, polars.Object):
                raise polars.exceptions.InvalidOperationError
            else:
                found[name] = frame[name].cast(polars.String).fill_null("").to_numpy().astype(str)
        except failures:
            raise ColumnError(
                f"the column {name!r} of {path} holds {kind}; expected numbers or text. Name the columns to use."
            ) from None
    return found
