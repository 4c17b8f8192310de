"""One pass over data of any size, wherever they are stored, after reading a sample of rows."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from meanmap.core.errors import KindError, ParameterError
from meanmap.core.pieces.partitions import computed, cut_alike, delayed, reduced
from meanmap.core.rng import Rng
from meanmap.core.tables.chunks import source_of
from meanmap.core.types import Data
from meanmap.core.values import Value
from meanmap.linalg.exact import ExactSums

__all__ = ["SAMPLE", "SampleState", "known_seed", "one_pass", "parts_of"]

# Rows of each sample used for a plan: landmarks, units and the range of distances.
SAMPLE = 8192


@dataclass(frozen=True, eq=False, repr=False)
class SampleState(Value):
    """The state of some rows: sums of their features, which `merge` adds exactly.

    Made by the `state` of a plan, such as `TwoSamplePlan`.

    Attributes
    ----------
    sums : ExactSums
    rows : int
        The number of rows read.
    gaps : dict
        The number of missing values in each column.
    """

    sums: ExactSums
    rows: int
    gaps: dict[str, int]

    @property
    def n(self) -> int:
        """The number of rows used: those without missing values, unless missing is a label."""
        return self.sums.n

    def merge(self, other: "SampleState") -> "SampleState":
        """The state of both parts together: identical bit for bit, whatever the order and grouping of merges."""
        gaps = Counter(self.gaps) + Counter(other.gaps)
        return SampleState(self.sums.merge(other.sums), self.rows + other.rows, dict(sorted(gaps.items())))


def known_seed(random: Rng) -> int:
    """The seed that a plan stores; an error if there is none."""
    if random.seed is None:
        raise ParameterError("a plan needs a known seed: create it outside jit.")
    return random.seed


def one_pass(
    plan: object, step: Callable[[Any, Any, str], SampleState], sources: Sequence[Any], names: Sequence[str]
) -> list[SampleState]:
    """`step(plan, part, name)` for each part of each source, merged; `step` is a function that can be imported.

    The members of a tuple are read side by side. Dask collections are computed together, by the scheduler that the user
    chose; only states are returned.
    """
    found: dict[int, Any] = {}
    tasks = {}
    for i, (source, name) in enumerate(zip(sources, names, strict=True)):
        parts = parts_of(source, name)
        if parts is None:
            found[i] = step(plan, source, name)
        else:
            there = delayed(_for_workers(plan))
            tasks[i] = reduced([delayed(step)(there, part, name) for part in parts], _merged)
    found |= dict(zip(tasks, computed(list(tasks.values())), strict=True)) if tasks else {}
    return [found[i] for i in range(len(sources))]


def _for_workers(plan: Any) -> Any:
    """A plan without the parts that only its result needs, because Dask sends it to every worker."""
    features: Any = getattr(plan, "features", None)
    return replace(plan, features=features.for_sums) if hasattr(features, "for_sums") else plan


def parts_of(source: Data, name: str) -> list[Any] | None:
    """The partitions of a Dask collection, or of several side by side; None for data that are computed here."""
    if not isinstance(source, tuple):
        return source_of(source).parts(name)
    here = [source_of(member).parts(name) is None for member in source]
    if all(here):
        return None
    if any(here):
        raise KindError(
            f"some of {name} are Dask collections and others are in memory: pass columns of one collection."
        )
    return cut_alike(source, name)


def _merged(states: list[Any]) -> Any:
    return reduce(lambda first, second: first.merge(second), states)
