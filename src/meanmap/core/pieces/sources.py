"""The sources of data that need not fit in memory: the only place that distinguishes them."""

from typing import Any

import numpy as np

from meanmap.core.pieces.files import LazyFrame, ParquetFiles
from meanmap.core.pieces.partitions import Collection
from meanmap.core.pieces.source import Source, Stream
from meanmap.core.types import Data

__all__ = ["comes_in_pieces", "elsewhere", "lies_elsewhere"]

# What is in memory without any question, and not one of NumPy's subclasses, such as a memory map.
_HERE = (np.ndarray, dict)
_FAR = ((LazyFrame.holds, LazyFrame), (ParquetFiles.holds, ParquetFiles.of), (Collection.holds, Collection))


def elsewhere(data: Any) -> Source | None:
    """The source of rows from an iterator, files or Dask's workers; None for data in memory."""
    if type(data) in _HERE:
        return None
    return next((of(data) for holds, of in ((Stream.holds, Stream), *_FAR) if holds(data)), None)


def lies_elsewhere(data: Data) -> bool:
    """Whether data are files (a path, a folder, a pattern, a list of these), a lazy frame or a collection of Dask."""
    return type(data) not in _HERE and any(holds(data) for holds, _ in _FAR)


def comes_in_pieces(data: Data) -> bool:
    """Whether data may not fit in memory: as `lies_elsewhere`, or an iterator, or a memory map."""
    return lies_elsewhere(data) or Stream.holds(data) or isinstance(data, np.memmap)
