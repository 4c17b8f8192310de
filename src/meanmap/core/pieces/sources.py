"""Where data may come from that need not fit in memory."""

import numpy as np

from meanmap.core.pieces.files import ParquetFiles, is_lazy, names_files
from meanmap.core.points import is_dask
from meanmap.core.types import Data

__all__ = ["comes_in_pieces", "is_file", "is_stream"]


def is_stream(source: Data) -> bool:
    """Whether `source` gives its rows once and in order: an iterator of pieces (a generator, say)."""
    return hasattr(source, "__next__")


def is_file(source: Data) -> bool:
    """Whether `source` is Parquet files (a path, a folder, a pattern, a list of these) or a lazy frame of polars."""
    return isinstance(source, ParquetFiles) or names_files(source) or is_lazy(source)


def comes_in_pieces(source: Data) -> bool:
    """Whether `source` may not fit in memory: an iterator, Parquet files, a collection of Dask or a memory map."""
    return is_stream(source) or is_file(source) or is_dask(source) or isinstance(source, np.memmap)
