"""Functions of single rows on Dask collections: the result is a collection, computed on request."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from inspect import signature
from typing import Any, TypeVar

import numpy as np

from meanmap.core.containers import is_dask
from meanmap.core.errors import KindError
from meanmap.core.notes import Call, part_of
from meanmap.core.pieces.partitions import Collection, delayed
from meanmap.core.types import Data

__all__ = ["filled_by_partition", "number_by_partition", "numbers_by_partition", "refuse_beliefs", "refuse_frames"]

Method = TypeVar("Method", bound=Callable[..., Any])


def numbers_by_partition(shape: Callable[..., tuple[int, ...]]) -> Callable[[Method], Method]:
    """For methods that give an array for each row: for a Dask collection, a Dask array with the same partitions.

    The shape of each row's array is `shape(self, *arguments)`, known before any row is read.
    """

    def by_partition(method: Method) -> Method:
        first = list(signature(method).parameters)[1]

        @wraps(method)
        def call(self: Any, *arguments: Any, **named: object) -> Any:
            if first in named and not arguments:
                arguments = (named.pop(first),)
            if not arguments or not is_dask(arguments[0]):
                return method(self, *arguments, **named)
            from dask.array import concatenate, from_delayed

            rows, arguments = arguments[0], arguments[1:]
            there, parts, each = delayed(self), Collection(rows).parts("rows"), shape(self, *arguments, **named)
            sizes = rows.chunks[0] if hasattr(rows, "chunks") else [np.nan] * len(parts)
            asked = Task(method.__name__, Call.here(), arguments, named)
            tasks = [delayed(_numbers)(part, there, asked, each) for part in parts]
            shapes = [(size, *each) for size in sizes]
            return concatenate([from_delayed(task, size, float) for task, size in zip(tasks, shapes, strict=True)])

        return call  # pyright: ignore[reportReturnType]

    return by_partition


def number_by_partition(method: Method) -> Method:
    """For methods that give a number for each row: a Dask array for a Dask collection."""
    return numbers_by_partition(lambda *_, **__: ())(method)


def filled_by_partition(method: Method) -> Method:
    """For methods that give a table of the same columns: a Dask frame for a Dask frame, an array for an array."""

    @wraps(method)
    def call(self: Any, frame: Any, *arguments: object, **named: object) -> Any:
        if not is_dask(frame):
            return method(self, frame, *arguments, **named)
        if named.get("draws") is not None:
            raise KindError("frame is a collection of Dask; expected one in memory for draws: frame.compute().")
        asked = Task(method.__name__, Call.here(), arguments, named)
        if not hasattr(frame, "map_partitions"):
            each = frame.rechunk({1: -1})
            return each.map_blocks(partial(_filled, model=self, asked=asked), dtype=float, meta=np.zeros((0, 0)))
        return frame.map_partitions(_filled, self, asked, meta=frame._meta)

    return call  # pyright: ignore[reportReturnType]


def refuse_beliefs(frame: Data) -> None:
    """Beliefs about the rows of a Dask collection are not a collection: the error says what to type instead."""
    if is_dask(frame):
        raise KindError(
            "frame is a collection of Dask, for which beliefs cannot be returned. Apply the model to its partitions: "
            "frame.map_partitions(lambda part: model.predict(part, ['a'])['a'].mean(), meta=('a', float)); "
            "or fill in missing cells, model.impute(frame)."
        )


def refuse_frames(X: Data, kind: str) -> None:
    """Features of the rows of a collection are a collection, and no frame of this kind."""
    if is_dask(X):
        raise KindError(
            f"X is a collection of Dask, whose features are an array of Dask, and set_output asks for {kind}, in "
            "memory: pass X.compute(), or set_output(transform='default')."
        )


@dataclass(frozen=True)
class Task:
    """The task for every partition: a method, its arguments, and the calling line."""

    method: str
    call: Call
    arguments: tuple
    named: dict

    def of(self, model: object, part: object) -> Any:
        """The result of the model's method for one partition."""
        with part_of(self.call):
            return getattr(model, self.method)(part, *self.arguments, **self.named)


def _numbers(part: Any, model: Any, asked: Task, shape: tuple[int, ...]) -> np.ndarray:
    return np.asarray(asked.of(model, part), float) if len(part) else np.zeros((0, *shape))


def _filled(part: Any, model: Any, asked: Task) -> Any:
    return asked.of(model, part) if len(part) else part
