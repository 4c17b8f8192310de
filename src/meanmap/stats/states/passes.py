"""One pass over data of any size, wherever they lie, and the sample of rows that comes before."""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Protocol, TypeVar

import numpy as np

from meanmap.core.pieces.partitions import computed, delayed, is_dask, lengths, partitions, reduced, rows_at
from meanmap.core.tables.chunks import count_rows, in_memory, take_rows
from meanmap.core.types import Data

__all__ = ["SAMPLE", "State", "drawn", "one_pass"]

# Rows of each sample that a plan is made from: landmarks, units and the range of distances.
SAMPLE = 8192


class State(Protocol):
    """What a pass adds up."""

    def merge(self, other: Any) -> Any:
        """That of both parts together."""
        ...


Found = TypeVar("Found", bound=State)


def drawn(source: Data, generator: np.random.Generator, name: str) -> Any:
    """At most 8192 rows of a source that is not an iterator, chosen by their numbers alone, in their order.

    So they are the same rows wherever the data lie and however they are divided.
    """
    parts = lengths(source, name) if is_dask(source) else []
    n = sum(parts) if is_dask(source) else count_rows(source) or 0
    if n <= SAMPLE:
        return in_memory(source)
    index = np.sort(generator.choice(n, SAMPLE, replace=False))
    return rows_at(source, index, parts, name) if is_dask(source) else take_rows(source, index)


def one_pass(
    plan: Any, step: Callable[[Any, Any, str], Found], sources: Sequence[Any], names: Sequence[str]
) -> list[Found]:
    """`step(plan, part, name)` for each part of each source, merged; `step` is a function that can be imported.

    Collections of Dask are computed together, by the scheduler that the user chose; nothing comes back but states.
    """
    found: dict[int, Any] = {}
    tasks = {}
    for i, (source, name) in enumerate(zip(sources, names, strict=True)):
        if is_dask(source):
            there = delayed(plan)
            parts = partitions(source, name)
            tasks[i] = reduced([delayed(step)(there, part, name) for part in parts], _merged)
        else:
            found[i] = step(plan, source, name)
    found |= dict(zip(tasks, computed(list(tasks.values())), strict=True)) if tasks else {}
    return [found[i] for i in range(len(sources))]


def _merged(states: list[Any]) -> Any:
    return reduce(lambda first, second: first.merge(second), states)
