"""The sources of data that need not fit in memory: the only place that distinguishes them."""

from typing import Any

import numpy as np

from meanmap.core.pieces.files import LazyFrame, ParquetFiles
from meanmap.core.pieces.partitions import Collection
from meanmap.core.pieces.source import Source, Stream
from meanmap.core.types import Data

__all__ = ["comes_in_pieces", "elsewhere", "lies_elsewhere"]

_FAR = ((LazyFrame.holds, LazyFrame), (ParquetFiles.holds, ParquetFiles.of), (Collection.holds, Collection))


def elsewhere(data: Any) -> Source | None:
    """The source of rows from an iterator, files or Dask's workers; None for data in memory."""
    if _is_here(data):
        return None
    return next((of(data) for holds, of in ((Stream.holds, Stream), *_FAR) if holds(data)), None)


def lies_elsewhere(data: Data) -> bool:
    """Whether data are files (a path, a folder, a pattern, a list of these), a lazy frame or a collection of Dask."""
    return not _is_here(data) and any(holds(data) for holds, _ in _FAR)


def comes_in_pieces(data: Data) -> bool:
    """Whether data may not fit in memory: as `lies_elsewhere`, or an iterator, or a memory map."""
    return not _is_here(data) and (lies_elsewhere(data) or Stream.holds(data) or isinstance(data, np.memmap))


def _is_here(data: object) -> bool:
    """Whether data are in memory without any question: not, for example, a memory map, a subclass of NumPy's arrays."""
    kind = type(data)
    frame = kind.__name__ in ("DataFrame", "Series") and kind.__module__.split(".")[0] == "pandas"
    return frame or kind in (np.ndarray, dict)
