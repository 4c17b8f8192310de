"""Samples as tests use them: one pooled sample, the kernels that compare it, and notes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from meanmap.core.arrays import check_rows, plain, refuse_name
from meanmap.core.containers import is_sparse
from meanmap.core.door import Door
from meanmap.core.errors import InputError, KindError
from meanmap.core.moments import is_column_of_times
from meanmap.core.points import any_sparse, count, in_columns, joined, on_host, rows
from meanmap.core.tables.assigned import clustered_or_left_out
from meanmap.core.tables.chunks import source_of
from meanmap.core.tables.column import robust_scales
from meanmap.core.tables.kinds import family_of
from meanmap.core.tables.matching import aligned
from meanmap.core.tables.schema import Schema, check_alike
from meanmap.core.tables.table import Table, named_columns, values_of
from meanmap.core.types import Data, KernelLike, Points
from meanmap.core.values import as_tuple
from meanmap.features.base import FeatureKernel, Features
from meanmap.kernels.base import Kernel, agree
from meanmap.kernels.manifolds import Rotation
from meanmap.kernels.reading import read_alike
from meanmap.kernels.stationary import RBF
from meanmap.learning.default import at_median, is_default, mixed_kernel, reader_for, strange_kernel
from meanmap.learning.learned import learned_for, learned_multiple
from meanmap.stats.asked import alone
from meanmap.stats.collections import default_collection, fused
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.permutations import Permuted
from meanmap.stats.result import Null
from meanmap.stats.samples.scores import Scores
from meanmap.stats.samples.shuffling import places_of_columns
from meanmap.stats.samples.units import Forms
from meanmap.stats.settings import LEAST_POINTS
from meanmap.stats.texts import refuse_numbers, texts_as_labels

__all__ = ["Outcome", "Samples", "columns_of", "exact_test", "read_reference", "read_samples"]


@dataclass(frozen=True)
class Samples:
    """Two or more samples, one after another, with one or more kernels and notes.

    `names` are the columns of tables, in order, and `widths` the number of coordinates of columns with several, such as
    texts. With default kernels each column is also tested alone, `by_columns`. The `exchange` says which rows are
    exchangeable, if not all of them.
    """

    kernels: tuple[Kernel, ...]
    pooled: Any
    sizes: tuple[int, ...]
    doubts: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    by_columns: bool = False
    widths: Mapping[str, int] = field(default_factory=dict)
    exchange: Exchange | None = None

    def __getitem__(self, index: int) -> Any:
        """The points of one sample."""
        start = sum(self.sizes[:index])
        return rows(self.pooled, slice(start, start + self.sizes[index]))

    @property
    def groups(self) -> np.ndarray:
        """The sample of each point."""
        return np.repeat(np.arange(len(self.sizes), dtype=np.int32), self.sizes)

    def labels(self, n_draws: int, generator: np.random.Generator) -> np.ndarray:
        """The sample of each point, (1 + B, N): in the data, then after permutations."""
        exchange = self.exchange or Exchange.of(sum(self.sizes))
        labels = exchange.labels(exchange.of_units(self.groups), n_draws, generator)
        return labels if exchange.is_free else labels[:, exchange.units]

    @property
    def rate(self) -> float:
        """√(n (n − 1)) for the smallest sample; this times MMD² is of order one under the null hypothesis."""
        smallest = min(self.sizes)
        return float(np.sqrt(smallest * (smallest - 1.0)))

    @cached_property
    def scores(self) -> Scores | None:
        """Scores of the ranks in each of two or more columns."""
        if not self.by_columns or any_sparse(self.pooled):
            return None
        return Scores.of(self.kernels[0].domain, self.pooled, columns_of(self), self.widths)

    def fused(self, columns: bool = True) -> str:
        """The number of kernels over which a statistic is fused, and the number of columns, if any, as a text."""
        kernels = f" fused over {len(self.kernels)} kernels" if len(self.kernels) > 1 else ""
        scores = self.scores if columns else None
        if scores is None:
            return kernels
        return f"{kernels}, combined with tests of ranks in each of {len(scores.names)} columns and in pairs of columns"

    @property
    def kernel(self) -> Any:
        """The kernel, or the tuple of several kernels, as shown in a result."""
        return alone(self.kernels)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a statistic, from which a result is made.

    Attributes
    ----------
    statistic, null : float, Null
        The statistic and its null distribution.
    strongest : int
        The kernel with the largest difference, relative to its size under the null hypothesis.
    column : int
        The column with stronger evidence than all kernels; -1 if there is none.
    difference : Embedding or None
        μ_P − μ_Q, if it was computed.
    alone : mapping
        A corrected p-value of each column by itself, if these come from the same sums.
    """

    statistic: float
    null: Null
    strongest: int = 0
    difference: Any = None
    column: int = -1
    alone: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def exact(cls, found: Permuted, kind: str, strongest: int = 0, column: int = -1) -> "Outcome":
        """An outcome from values, the first for the data, and the others an exact null distribution."""
        null = Null(kind, found.values[1:], exact=True, rounding=found.rounding)
        return cls(float(found.values[0]), null, strongest, column=column)


def exact_test(
    samples: Samples,
    statistics: Iterable[tuple[Permuted, float]],
    rate: float,
    of_columns: Callable[[Scores], tuple[Permuted, Forms]],
    kind: str,
) -> Outcome:
    """The exact test from the statistics of all kernels, each with its size, of pairs of columns, and of columns."""
    found, sizes = zip(*statistics, strict=True)
    result, strongest = fused(found, sizes, rate)
    column, scores = -1, samples.scores
    if scores is not None:
        result, column = scores.judged(result, *of_columns(scores))
    return Outcome.exact(result, kind, strongest, column)


def read_samples(
    samples: Sequence[Any],
    names: Sequence[str],
    kernel: KernelLike,
    rng: np.random.Generator,
    door: Door,
    scale: bool = True,
    must_vary: bool = True,
    fusing: bool = False,
) -> Samples:
    """Read the samples and choose the kernels: given ones, or those for the pooled sample without labels.

    Unless `scale` is false, numbers are divided by the median distance of their column in the pooled sample. If all
    points are equal, there is nothing to compare, which is an error if they `must_vary`. A learned kernel is fused with
    the default ones where possible, as it may detect less.
    """
    given = _given(kernel)
    samples, kinds = _matched([on_host(s) for s in samples], names)
    together = _together(samples, kinds)
    reader = given[0] if given else reader_for(together) or mixed_kernel(together)
    points = read_alike(reader, samples, names, door)
    for sample, name in zip(points, names, strict=True):
        check_rows(count(sample), name, LEAST_POINTS)
    pooled, sizes = joined(*points), tuple(map(count, points))
    doubts = _strangers(samples, names, kinds)
    if given:
        return Samples(given, pooled, sizes, doubts, tuple(kinds), widths=_widths(together))
    dull = _constant(together, pooled)
    if must_vary and dull and all(dull.values()):
        raise InputError(f"all points of {' and '.join(names)} are equal: there is nothing to compare.")
    what = "is constant over all samples and carries no information."
    if not must_vary:  # no note on labels: other labels have their own note
        dull = {name: same and name not in _of_labels(together) for name, same in dull.items()}
        chosen_from = f"all {count(pooled)} rows that kernels are chosen from"
        what = f"has the same value in {chosen_from}: distances from it are in the column's own unit."
    doubts += tuple(f"{name} {what}" for name, same in dull.items() if same)
    doubts += texts_as_labels(samples, names)
    kernels, more = _chosen(together, pooled, kernel, rng, scale)
    by_columns = kernel is None and scale
    if kernel == "learned" and fusing:
        others, _ = _chosen(together, pooled, None, rng, scale)
        kernels, by_columns = (*kernels, *others), scale
    return Samples(kernels, pooled, sizes, doubts + more, tuple(kinds), by_columns, _widths(together))


def _chosen(
    together: Any, pooled: Points, kernel: KernelLike, rng: np.random.Generator, scale: bool
) -> tuple[tuple[Kernel, ...], tuple[str, ...]]:
    """The default, median or learned kernels for a pooled sample, and notes on them. `together` is the sample as given,
    or a part that shows its kind, and `pooled` its points.
    """
    reader, sparse = reader_for(together), is_sparse(pooled)
    # Landmarks are drawn from the pooled sample by position, so that permutations stay exact.
    if reader is None or (kernel == "learned" and sparse):
        found, doubts = learned_for(together, rng) if kernel == "learned" else (mixed_kernel(together), ())
        return (found,), doubts
    if not isinstance(reader, RBF) or sparse:
        return (at_median(reader, pooled, rng) if isinstance(reader, RBF | Rotation) else reader,), ()
    scales = robust_scales(pooled) if scale else np.ones(1)
    units = np.where(scales > 0, scales, 1.0)
    units = units if len(units) > 1 else units[0]
    if kernel is None:
        return default_collection(pooled, units, rng), ()
    if kernel == "learned" and scale:
        found, doubts = learned_for(pooled, rng)
        return (found,), doubts
    if kernel == "learned":
        fit = learned_multiple(pooled, rng)
        return (fit.kernel,), fit.report.notes
    return (at_median(RBF(units), pooled, rng),), ()


def _widths(together: object) -> dict[str, int]:
    """The columns of a table that have several coordinates, and the number of coordinates."""
    columns = together.columns if isinstance(together, Table) else {}
    return {name: column.shape[1] for name, column in columns.items() if column.ndim > 1}


def _constant(together: object, pooled: object) -> dict[str, bool]:
    """Whether each column is constant; empty if points have no columns."""
    if isinstance(together, Table):
        columns = {f"column {name!r}": np.asarray(column) for name, column in together.columns.items()}
    elif in_columns(pooled):
        columns = {f"column {j}": pooled[:, j] for j in range(pooled.shape[1])}
    else:
        return {}
    return {name: bool((column == column[:1]).all()) for name, column in columns.items()}


def _of_labels(together: object) -> set[str]:
    """The columns of a table that hold labels, with the names used by `_constant`."""
    columns = together.columns if isinstance(together, Table) else {}
    return {f"column {name!r}" for name, column in columns.items() if family_of(column) in ("label", "boolean")}


def _given(kernel: KernelLike) -> tuple[Kernel, ...]:
    """The kernels that were given; none for the default, median or learned ones."""
    if is_default(kernel) and kernel in (None, "median", "learned"):
        return ()
    members = as_tuple(kernel)
    if members and all(isinstance(member, Kernel | Features) for member in members):
        kernels = tuple(FeatureKernel(member) if isinstance(member, Features) else member for member in members)
        for other in kernels[1:]:
            if not agree([kernels[0].domain, other.domain]):
                raise KindError(
                    f"the kernels {kernels[0]!r} and {other!r} read different columns, but those of a list must read "
                    "the same: give kernels of all columns, with one lengthscale for each."
                )
        return kernels
    raise strange_kernel(kernel, also="a list of kernels, ")


def _matched(samples: list[Any], names: Sequence[str]) -> tuple[list[Any], dict[str, str]]:
    """The samples as tables with the same columns in the same order, and the kind of each; arrays unchanged.

    Refuses samples that no kernel can compare: numbers in one and text in another.
    """
    if any(source_of(sample).named for sample in samples):
        tables = [Table.of(data, name) for data, name in zip(samples, names, strict=True)]
        tables, _ = aligned(tables, samples, names)
        for column in tables[0].names:
            check_alike([table.columns[column] for table in tables], column, names)
        return list(tables), {name: family_of(column) for name, column in tables[0].columns.items()}
    arrays = [values_of(data, name) for data, name in zip(samples, names, strict=True)]
    if all(array is not None and array.size for array in arrays):
        check_alike([np.ravel(array) for array in arrays if array is not None], "", names)
    return samples, {}


def columns_of(samples: Samples) -> tuple[str, ...]:
    """The names of the columns, if points are rows of numbers or of a table."""
    if not in_columns(samples.pooled):
        return tuple(places_of_columns(samples.kernels[0].domain, samples.pooled, widths=samples.widths))
    return samples.names or tuple(f"column {j}" for j in range(samples.pooled.shape[1]))


def _together(samples: list[Any], kinds: Mapping[str, str]) -> Any:
    """Tables concatenated; for other data the first sample, since the others are of the same kind."""
    if not kinds:
        return samples[0]
    return Table({name: np.concatenate([table.columns[name] for table in samples]) for name in kinds})


def _strangers(samples: list[Any], names: Sequence[str], kinds: Mapping[str, str]) -> tuple[str, ...]:
    """Notes on columns of labels in which two samples have no label in common, perhaps from different spellings."""
    found = []
    for name in (name for name, kind in kinds.items() if kind == "label"):
        first, *others = [set(table.columns[name].tolist()) for table in samples]
        for other, where in zip(others, names[1:], strict=True):
            if not first & other:
                shown = f"{sorted(first)[0]!r} in {names[0]}, {sorted(other)[0]!r} in {where}"
                common = f"column {name!r} has no label in common between {names[0]} and {where} ({shown})"
                found.append(f"{common}{_repeated(name, [table.columns[name] for table in samples])}.")
    return tuple(found)


def _repeated(name: str, columns: Sequence[Any]) -> str:
    """Advice if each of many labels, such as people, has several rows of one sample."""
    counts = [(len(set(column.tolist())), len(column)) for column in columns]
    if not all(LEAST_POINTS <= labels <= rows / 2 for labels, rows in counts):
        return ""
    return (
        f", and its labels repeat: if rows with the same label depend on each other, as those of one person do, "
        f"p-values are too small: {clustered_or_left_out(name)}"
    )


def read_reference(reference: Data, kinds: Mapping[str, Any] | None, kernel: KernelLike) -> tuple[Any, Schema | None]:
    """The reference as a table with its schema, or unchanged if it has no columns."""
    refuse_name(reference, "reference")
    refuse_numbers([reference], ["reference"], kinds, kernel)
    if kinds or named_columns(reference, "reference"):
        schema = Schema.of(reference, kinds=kinds, names=("reference",))
        return schema.read(reference, "reference"), schema
    values = values_of(reference, "reference")
    if values is None:
        return (reference if is_sparse(reference) else np.atleast_1d(plain(reference, "reference"))), None
    return values, Schema.of(reference if is_column_of_times(reference) else values, names=("reference",))
