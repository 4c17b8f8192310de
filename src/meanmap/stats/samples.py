"""From what users pass as samples to one pooled sample and the kernels to compare it with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from meanmap.core.arrays import check_rows
from meanmap.core.door import Door
from meanmap.core.errors import KindError
from meanmap.core.points import count, is_sparse, joined, rows
from meanmap.core.table import Table
from meanmap.features.base import FeatureKernel, Features
from meanmap.kernels.base import Kernel, OnColumns, Product
from meanmap.kernels.manifolds import Rotation
from meanmap.kernels.reading import read_alike
from meanmap.kernels.stationary import RBF
from meanmap.learning.default import default_kernel, reader_for
from meanmap.learning.learned import learned_for
from meanmap.learning.median import at_median
from meanmap.stats.collections import default_collection
from meanmap.stats.result import Null
from meanmap.stats.settings import LEAST_POINTS

__all__ = ["Outcome", "Samples", "read_samples"]


@dataclass(frozen=True)
class Samples:
    """Two or more samples, one after another, one or more kernels on them, and what is doubtful about these."""

    kernels: tuple[Kernel, ...]
    pooled: Any
    sizes: tuple[int, ...]
    doubts: tuple[str, ...] = ()

    def __getitem__(self, index: int) -> Any:
        """The points of one sample."""
        start = sum(self.sizes[:index])
        return rows(self.pooled, slice(start, start + self.sizes[index]))

    @property
    def rate(self) -> float:
        """√(n (n − 1)) of the smallest sample, by which MMD² is of order one under the hypothesis."""
        smallest = min(self.sizes)
        return float(np.sqrt(smallest * (smallest - 1.0)))

    @property
    def kernel(self) -> Any:
        """The kernel, or the tuple of several: what a result shows."""
        return self.kernels[0] if len(self.kernels) == 1 else self.kernels


@dataclass(frozen=True)
class Outcome:
    """What a statistic found in samples, before it is told.

    Attributes
    ----------
    statistic, null : float, Null
        The statistic and its null distribution.
    strongest : int
        Which of several kernels saw the largest difference, for its size under the hypothesis.
    difference : Embedding or None
        μ_P − μ_Q, where it came about on the way.
    sizes : tuple of int
        Sample sizes, where they were not known before.
    """

    statistic: float
    null: Null
    strongest: int = 0
    difference: Any = None
    sizes: tuple[int, ...] = ()


def read_samples(samples: Sequence[Any], names: Sequence[str], kernel: Any, rng: Any, door: Door) -> Samples:
    """Read the samples and choose the kernels: those given, or by the pooled sample, which knows no labels."""
    samples = [np.asarray(data) if isinstance(data, jax.Array) else data for data in samples]
    given, doubts = _given(kernel), ()
    # What reads the points tells numbers from labels and tables; the kernel is chosen by the pooled sample alone.
    together = None if given else _together(samples, names)
    reader = given[0] if given else reader_for(together) or default_kernel(together, rng)
    points = read_alike(reader, samples, names, door)
    for sample, name in zip(points, names, strict=True):
        check_rows(count(sample), name, LEAST_POINTS)
    pooled = joined(*points)
    numbers, mixed = isinstance(reader, RBF), isinstance(reader, Product | OnColumns)
    if given:
        kernels = given
    elif kernel == "learned" and (numbers or mixed):
        # Landmarks are drawn from the pooled sample by position, so that permutations stay exact.
        learned, doubts = learned_for(pooled if numbers else together, rng)
        kernels = (learned,)
    elif kernel is None and numbers and not is_sparse(pooled):
        kernels = default_collection(pooled, rng)
    else:
        kernels = (at_median(reader, pooled, rng) if isinstance(reader, RBF | Rotation) else reader,)
    return Samples(kernels, pooled, tuple(map(count, points)), doubts)


def _given(kernel: Any) -> tuple[Kernel, ...]:
    """The kernels that were named, none for the default, the median or a learned one."""
    if kernel is None or (isinstance(kernel, str) and kernel in ("median", "learned")):
        return ()
    members: tuple[Any, ...] = tuple(kernel) if isinstance(kernel, list | tuple) else (kernel,)
    if members and all(isinstance(member, Kernel | Features) for member in members):
        return tuple(FeatureKernel(member) if isinstance(member, Features) else member for member in members)
    raise KindError(f"kernel is {kernel!r}; expected a kernel, a list of kernels, 'median', 'learned' or None.")


def _together(samples: list[Any], names: Sequence[str]) -> Any:
    """Tables and arrays as one sample; of other data the first one, which is of the same kind."""
    first = samples[0]
    if Table.looks_like_one(first):
        tables = [Table.of(data, name) for data, name in zip(samples, names, strict=True)]
        columns = tables[0].names
        tables = [table.select(columns, name) for table, name in zip(tables, names, strict=True)]
        return Table({column: np.concatenate([table[column] for table in tables]) for column in columns})
    if is_sparse(first) or hasattr(first, "as_matrix"):
        return first
    arrays = [np.asarray(data) for data in samples]
    return np.concatenate(arrays) if len({array.shape[1:] for array in arrays}) == 1 else first
