"""Collections of Dask: arrays and frames whose partitions are worked on where they lie, by the user's own scheduler.

Dask is never imported unless one of its collections came in.
"""

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from meanmap.core.errors import ColumnError, KindError, ShapeError

__all__ = ["computed", "delayed", "lengths", "partitions", "reduced", "rows_at", "whole"]

# States of so many partitions are merged by one task: the tree stays flat, and no task waits for long.
FAN_IN = 8
# The lengths of partitions by the identity of their collection, as long as that is there.
_counted: dict[int, list[int]] = {}


def partitions(source: Any, argument: str) -> list[Any]:
    """The parts of a collection as tasks that nobody has computed yet, each all the columns of some rows."""
    if hasattr(source, "npartitions") and hasattr(source, "divisions"):
        return list(source.to_delayed())
    if not hasattr(source, "chunks") or not hasattr(source, "to_delayed"):
        raise KindError(f"{argument} is a {type(source).__name__} of Dask; expected an array or a frame.")
    if source.ndim not in (1, 2):
        raise ShapeError(f"{argument} is a Dask array of shape {source.shape}; expected (n,) or (n, d).")
    if source.ndim == 2 and len(source.chunks[1]) > 1:
        if any(np.isnan(source.chunks[1])):
            raise ShapeError(f"{argument} has columns whose number Dask does not know: call compute_chunk_sizes().")
        source = source.rechunk({1: -1})
    return list(source.to_delayed().ravel())


def lengths(source: Any, argument: str) -> list[int]:
    """How many rows each partition has, counted by the workers where Dask does not know, once for a collection."""
    if hasattr(source, "chunks") and not np.isnan(source.chunks[0]).any():
        return [int(rows) for rows in source.chunks[0]]
    if id(source) not in _counted:
        # Of frames one column is enough, which readers of files then leave the others out for.
        is_table = getattr(source, "ndim", 0) == 2 and hasattr(source, "columns")
        narrow = source[list(source.columns[:1])] if is_table else source
        _counted[id(source)] = [int(rows) for rows in computed([delayed(len)(p) for p in partitions(narrow, argument)])]
        weakref.finalize(source, _counted.pop, id(source), None)
    return _counted[id(source)]


def rows_at(source: Any, index: np.ndarray, parts: Sequence[int], argument: str) -> Any:
    """The rows at these numbers, counted through partitions of these lengths, in order; nothing else comes here."""
    ends = np.cumsum(parts)
    tasks = []
    for part, end, size in zip(partitions(source, argument), ends, parts, strict=True):
        here = index[(index >= end - size) & (index < end)] - (end - size)
        if len(here):
            tasks.append(delayed(_rows)(part, here))
    return _joined(computed(tasks), source, argument)


def whole(source: Any, argument: str) -> Any:
    """All rows, here."""
    return _joined(computed(partitions(source, argument)), source, argument)


def _joined(parts: list[Any], source: Any, argument: str) -> Any:
    """Partitions one after another; frames with other columns than the collection's, which would miss values, are
    refused.
    """
    if not hasattr(parts[0], "iloc"):
        return np.concatenate(parts)
    import pandas

    names = set(getattr(source, "columns", ()))
    other = next((list(part.columns) for part in parts if part.ndim == 2 and set(part.columns) != names), None)
    if other is not None:
        raise ColumnError(
            f"{argument} has a partition with the columns {', '.join(map(repr, other))}; expected "
            f"{', '.join(map(repr, source.columns))} in each, as the collection says."
        )
    return pandas.concat(parts)


def reduced(tasks: list[Any], merge: Callable[[list[Any]], Any]) -> Any:
    """A task for what all tasks give merged, in a tree, so that no worker holds more than a few of them."""
    while len(tasks) > 1:
        tasks = [delayed(merge)(tasks[start : start + FAN_IN]) for start in range(0, len(tasks), FAN_IN)]
    return tasks[0]


def computed(tasks: list[Any]) -> list[Any]:
    """What tasks give, by the scheduler that the user chose: an active client, or the one that Dask is set to."""
    from dask.base import compute

    return list(compute(*tasks))


def delayed(value: Any) -> Any:
    """A function for tasks to call, or a value that is sent to a worker once."""
    from dask.delayed import delayed

    return delayed(value, traverse=False)


def _rows(part: Any, index: np.ndarray) -> Any:
    return part.iloc[index] if hasattr(part, "iloc") else part[index]
