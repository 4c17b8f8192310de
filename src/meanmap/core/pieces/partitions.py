"""Dask collections: arrays and frames whose partitions are processed where they are stored, by the user's own
scheduler. Dask is imported only if one of its collections is passed.
"""

import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.containers import is_dask, is_pandas, refuse_unread
from meanmap.core.errors import ColumnError, KindError, ShapeError
from meanmap.core.language import a_type
from meanmap.core.pieces.source import Source, unnamed
from meanmap.core.types import Data

__all__ = ["Collection", "computed", "cut_alike", "delayed", "reduced"]

# States of this many partitions are merged by one task: the tree stays flat, and no task waits for long.
FAN_IN = 8


@dataclass
class Frozen:
    """The partitions of a collection as Dask first planned them, and the number of rows of each once counted. Dask
    plans again at each request, and divides the same rows differently when fewer columns are read.
    """

    token: str
    parts: list[Any]
    lengths: list[int] | None = None


# By the identity of the collection, as long as it is there and holds what it held.
_frozen: dict[int, Frozen] = {}


@dataclass(frozen=True, eq=False)
class Collection(Source):
    """An array, a frame or a column of Dask."""

    data: Any

    @staticmethod
    def holds(data: Data) -> bool:
        """Whether data are one."""
        return is_dask(data)

    @property
    def named(self) -> bool:
        """Those of frames have names."""
        return getattr(self.data, "ndim", 0) == 2 and hasattr(self.data, "columns")

    @property
    def names(self) -> Sequence[str]:
        """The names of the columns of a frame."""
        if not self.named:
            raise unnamed(self)
        return [str(name) for name in self.data.columns]

    def count(self, argument: str = "the collection") -> int:
        """Counted by the workers where Dask does not know."""
        return sum(self.lengths(argument))

    def chosen(self, names: Sequence[str]) -> Any:
        """A frame of Dask again."""
        return self.data[list(names)]

    def take(self, index: np.ndarray, argument: str = "the collection") -> Any:
        """Nothing else is passed here."""
        sizes, tasks = self.lengths(argument), []
        for part, end, size in zip(self.parts(argument), np.cumsum(sizes), sizes, strict=True):
            here = index[(index >= end - size) & (index < end)] - (end - size)
            if len(here):
                tasks.append(delayed(_rows)(part, here))
        return _joined(computed(tasks), self.data, argument)

    def pieces(self, rows: int, argument: str = "the collection") -> Iterator[Any]:
        """Not used: partitions are processed where they are stored."""
        refuse_unread(self.data, argument)
        yield from ()

    def whole(self, argument: str = "the collection") -> Any:
        """A frame of pandas, or an array."""
        return _joined(computed(self.parts(argument)), self.data, argument)

    def parts(self, argument: str = "the collection") -> list[Any]:
        """Its partitions, each all the columns of some rows: the same ones for as long as the collection is there."""
        return _found(self.data, argument).parts

    def lengths(self, argument: str = "the collection") -> list[int]:
        """The number of rows of each partition, counted once for a collection."""
        found = _found(self.data, argument)
        if found.lengths is None:
            found.lengths = [int(rows) for rows in computed([delayed(len)(part) for part in found.parts])]
        return found.lengths


def _found(source: Any, argument: str) -> Frozen:
    from dask.base import tokenize

    token = tokenize(source)  # `frame["new"] = ...` makes another table of the same object
    if id(source) not in _frozen or _frozen[id(source)].token != token:
        known = hasattr(source, "chunks") and not np.isnan(source.chunks[0]).any()
        parts = _planned(source, argument)
        if id(source) not in _frozen:
            weakref.finalize(source, _frozen.pop, id(source), None)
        _frozen[id(source)] = Frozen(token, parts, [int(rows) for rows in source.chunks[0]] if known else None)
    return _frozen[id(source)]


def _planned(source: Any, argument: str) -> list[Any]:
    if hasattr(source, "npartitions") and hasattr(source, "divisions"):
        return list(source.to_delayed())
    if not hasattr(source, "chunks") or not hasattr(source, "to_delayed"):
        raise KindError(f"{argument} is {a_type(source)} of Dask; expected an array or a frame.")
    if source.ndim not in (1, 2):
        raise ShapeError(f"{argument} is a Dask array of shape {source.shape}; expected (n,) or (n, d).")
    if source.ndim == 2 and len(source.chunks[1]) > 1:
        if any(np.isnan(source.chunks[1])):
            raise ShapeError(f"{argument} has a number of columns that Dask does not know: call compute_chunk_sizes().")
        source = source.rechunk({1: -1})
    return list(source.to_delayed().ravel())


def cut_alike(sources: Sequence[Any], argument: str) -> list[tuple[Any, ...]]:
    """The partitions of collections that lie side by side, cut alike: as those of the first one.

    Columns of one file may have different partitions, because Dask joins small ones.
    """
    cut = [Collection(source) for source in sources]
    sizes = [each.lengths(argument) for each in cut]
    counts = [sum(each) for each in sizes]
    if len(set(counts)) > 1:
        raise ShapeError(f"{argument} have {' and '.join(map(str, counts))} rows; expected the same number of each.")
    alike = [each.parts(argument) for each in cut]
    alike = [p if each == sizes[0] else _cut_as(p, each, sizes[0]) for p, each in zip(alike, sizes, strict=True)]
    return list(zip(*alike, strict=True))


def _cut_as(parts: list[Any], sizes: Sequence[int], wanted: Sequence[int]) -> list[Any]:
    """Tasks that redistribute rows from partitions of these sizes to partitions of other sizes."""
    ends = np.cumsum(sizes)
    found, start = [], 0
    for size in wanted:
        stop = start + size
        there = [i for i in range(len(parts)) if ends[i] - sizes[i] < stop and ends[i] > start] or [0]
        begin = start - int(ends[there[0]] - sizes[there[0]]) if size else 0
        found.append(delayed(_run)([parts[i] for i in there], begin, begin + size))
        start = stop
    return found


def _joined(parts: list[Any], source: Any, argument: str) -> Any:
    """Partitions one after another; frames with other columns than the collection's, which would miss values, are
    refused.
    """
    if not is_pandas(parts[0]):
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
    """A task that merges the results of all tasks in a tree, so that no worker holds more than a few of them."""
    while len(tasks) > 1:
        tasks = [delayed(merge)(tasks[start : start + FAN_IN]) for start in range(0, len(tasks), FAN_IN)]
    return tasks[0]


def computed(tasks: list[Any]) -> list[Any]:
    """The results of tasks, computed by the user's scheduler: an active client, or Dask's configured one."""
    from dask.base import compute

    return list(compute(*tasks))


def delayed(value: object) -> Any:
    """A function for tasks to call, or a value that is sent to a worker once."""
    from dask.delayed import delayed

    return delayed(value, traverse=False)


def _rows(part: Any, index: np.ndarray) -> Any:
    return part.iloc[index] if is_pandas(part) else part[index]


def _run(parts: list[Any], start: int, stop: int) -> Any:
    """Rows that follow one another in partitions that follow one another."""
    if is_pandas(parts[0]):
        import pandas

        return (parts[0] if len(parts) == 1 else pandas.concat(parts)).iloc[start:stop]
    return np.concatenate(parts)[start:stop]
