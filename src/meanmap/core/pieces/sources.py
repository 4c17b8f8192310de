"""Where data may come from that need not fit in memory."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from meanmap.core.errors import ColumnError, KindError
from meanmap.core.pieces.files import ParquetFiles, is_lazy, names_files
from meanmap.core.points import is_dask
from meanmap.core.types import Data

__all__ = ["column_names", "columns_of", "comes_in_pieces", "is_file", "is_stream"]


def is_stream(source: Data) -> bool:
    """Whether `source` gives its rows once and in order: an iterator of pieces (a generator, say)."""
    return hasattr(source, "__next__")


def is_file(source: Data) -> bool:
    """Whether `source` is Parquet files (a path, a folder, a pattern, a list of these) or a lazy frame of polars."""
    return isinstance(source, ParquetFiles) or names_files(source) or is_lazy(source)


def comes_in_pieces(source: Data) -> bool:
    """Whether `source` may not fit in memory: an iterator, Parquet files, a collection of Dask or a memory map."""
    return is_stream(source) or is_file(source) or is_dask(source) or isinstance(source, np.memmap)


def column_names(source: Data) -> list[str]:
    """The names of the columns of files, a lazy frame or a frame of Dask."""
    if is_lazy(source):
        return list(source.collect_schema().names())
    if is_file(source):
        return list(ParquetFiles.of(source).names)
    if is_dask(source) and getattr(source, "ndim", 0) == 2 and hasattr(source, "columns"):
        return [str(name) for name in source.columns]
    raise KindError(f"data is a {type(source).__name__}; expected a table with names of columns: files or a frame.")


def columns_of(source: Data, names: Sequence[str]) -> Any:
    """Some columns of files, a lazy frame or a frame of Dask, of which nothing is read yet."""
    there = column_names(source)
    for name in (name for name in names if name not in there):
        raise ColumnError(f"data has no column {name!r}; it has {', '.join(map(repr, there))}.")
    if is_lazy(source):
        return source.select(list(names))
    return ParquetFiles.of(source, names) if is_file(source) else source[list(names)]
