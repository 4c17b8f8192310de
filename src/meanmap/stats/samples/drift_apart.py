"""Columns of which a batch lacks all or nearly all values, and comparisons of the other columns."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from meanmap.core.arrays import check_rows
from meanmap.core.containers import refuse_unread
from meanmap.core.door import Door
from meanmap.core.language import in_few_words
from meanmap.core.points import on_host
from meanmap.core.tables.missing import gaps_in
from meanmap.core.tables.table import named_columns
from meanmap.core.types import Data, Points
from meanmap.core.values import Value
from meanmap.features.base import transformed
from meanmap.stats.samples.drift_columns import Rows
from meanmap.stats.samples.drift_gaps import Gaps
from meanmap.stats.samples.drift_record import by_column

if TYPE_CHECKING:
    from meanmap.stats.samples.drift import DriftMonitor

__all__ = ["Unused", "with_gaps"]

# Columns are left out if complete rows are fewer than this share of their usual number, and fewer than chance explains
# with this probability.
FEW, CHANCE = 0.5, 0.001
# Pools for this many sets of columns are kept.
MOST_POOLS = 8
# At most this many columns are named in a note.
MOST_NAMED = 5


@dataclass(frozen=True, eq=False, repr=False)
class Unused(Value):
    """The pool of a stream other than that of the latest batch, for another set of left-out columns, and its evidence.

    Each set has its own pool and evidence, because p-values from two pools with common rows are not independent.
    Batches of one set then form a separate stream, and alarms of all streams together are as rare as promised.
    """

    apart: tuple[str, ...]
    points: Points
    evidence: float


def set_apart(found: Mapping[str, np.ndarray], usual: Mapping[str, np.ndarray]) -> tuple[str, ...]:
    """The columns to leave out, from the missing values of a batch and of the reference. Columns whose share of missing
    values exceeds the usual share by most are left out one by one, until enough rows are complete in the others. The
    last column stays.

    Examples
    --------
    >>> usual = {"a": np.zeros(100, bool), "b": np.arange(100) < 40}
    >>> set_apart({"a": np.arange(50) < 2, "b": np.arange(50) < 22}, usual)
    ()
    >>> set_apart({"a": np.arange(50) < 48, "b": np.arange(50) < 22}, usual)
    ('a',)
    """
    from scipy.stats import binom

    kept = [name for name in found if name in usual]
    excess = {name: float(found[name].mean() - usual[name].mean()) for name in kept}
    n = len(next(iter(found.values()), ()))
    while len(kept) > 1:
        complete = n - np.count_nonzero(np.any([found[name] for name in kept], axis=0))
        share = 1 - np.any([usual[name] for name in kept], axis=0).mean()
        if complete >= 2 and (complete >= FEW * share * n or binom.cdf(complete, n, share) > CHANCE):
            break
        kept.remove(max(kept, key=lambda name: excess[name]))
    return tuple(name for name in usual if name not in kept)


def note_on(apart: tuple[str, ...], found: Mapping[str, np.ndarray]) -> tuple[str, ...]:
    """A note on the columns that are left out."""
    if not apart:
        return ()
    named = in_few_words([f"{name!r} ({100 * found[name].mean():.3g}%)" for name in apart], MOST_NAMED)
    without = "this column" if len(apart) == 1 else "these columns"
    return (f"so many values are missing in {named} that rows are compared without {without}.",)


def with_fixed(batch: Data, values: Mapping[str, object]) -> Any:
    """A table or an array with one value throughout each of these columns."""
    if not values:
        return batch
    if columns := named_columns(batch, "batch"):
        n = len(next(iter(columns.values())))
        return {name: np.full(n, values[name]) if name in values else column for name, column in columns.items()}
    changed = np.array(batch, float)
    for name, value in values.items():
        changed[:, int(name.removeprefix("column "))] = value
    return changed


def with_gaps(
    monitor: "DriftMonitor", gaps: Gaps, batch: Data, notes: tuple[str, ...]
) -> tuple["DriftMonitor", Data | None, dict[str, np.ndarray], np.ndarray | None, tuple[str, ...]]:
    """Handle the missing values of a batch. Returns the monitor for its columns; the batch with one value in each
    column that is left out, or None if fewer than two rows are complete in the others; which values are missing; the
    evidence of the latest batch with the same columns, if that is not the latest of all; and notes.
    """
    refuse_unread(batch, "batch")
    found = gaps_in(batch, "batch", monitor.missing)
    n = len(next(iter(found.values()), ()))
    check_rows(n, "batch", 2)
    usual = _reference(monitor).gaps
    named = by_column(found, usual)
    apart = set_apart(named, usual) if set(usual) <= set(named) else ()
    lost = [key for key, name in zip(found, named, strict=True) if name in apart or found[key].all()]
    generator = np.random.default_rng([monitor.seed, len(monitor.pvalues), 1])
    gaps = gaps.step(found, monitor.alarm, generator, lost, monitor.exceeded)
    whole = n - np.count_nonzero(np.any([missing for name, missing in named.items() if name not in apart], axis=0))
    if whole < 2:
        said = f"{whole} rows of batch have no missing value: only missing values are compared."
        return replace(monitor, gaps=gaps), None, found, None, (said, *notes)
    after, before = in_use(monitor, apart)
    batch = with_fixed(batch, fixed_values(monitor, apart))
    return replace(after, gaps=gaps), batch, found, before, (*note_on(apart, named), *notes)


def in_use(monitor: "DriftMonitor", apart: tuple[str, ...]) -> tuple["DriftMonitor", np.ndarray | None]:
    """The monitor with the pool for batches without these columns, and the evidence of the latest such batch, if that
    is not the latest of all. A new pool has the complete rows, with one value in these columns.
    """
    if apart == monitor.apart:
        return monitor, None
    evidence = 0.0 if monitor.alarm or not len(monitor.evidence) else float(monitor.evidence[-1])
    pools = {each.apart: each for each in (*monitor.unused, Unused(monitor.apart, monitor.points, evidence))}
    chosen = pools.pop(apart, None) or Unused(apart, _fixed(monitor, pools[()].points, apart), 0.0)
    first = [pools.pop(())] if apart else []
    unused = (*first, *[*pools.values()][-MOST_POOLS:])
    with Door():
        pool = transformed(monitor.features, chosen.points)
    return replace(monitor, apart=apart, unused=unused, points=chosen.points, pool=pool), np.array([chosen.evidence])


def _middle(column: np.ndarray) -> Any:
    """The median, as one of the values; for labels, the median in sorted order."""
    return np.sort(column)[len(column) // 2]


def _reference(monitor: "DriftMonitor") -> Rows:
    return Rows() if monitor.record is None else monitor.record.reference


def fixed_values(monitor: "DriftMonitor", apart: tuple[str, ...]) -> dict[str, Any]:
    """The constant that replaces the values of each column."""
    return {name: _middle(_reference(monitor).columns[name]) for name in apart}


def _fixed(monitor: "DriftMonitor", points: Points, apart: tuple[str, ...]) -> Any:
    """Points with one value in these columns. A row is read with two different values to find the numbers and codes of
    points that depend on these columns.
    """
    columns, values = _reference(monitor).columns, fixed_values(monitor, apart)
    others = {name: np.concatenate([columns[name][columns[name] != values[name]], [values[name]]])[0] for name in apart}
    one = {name: column[:1] for name, column in columns.items()}
    first, second = (
        _read(monitor, with_fixed(one if monitor.names else np.column_stack(list(one.values())), each))
        for each in (values, others)
    )

    def changed(leaf: np.ndarray, here: np.ndarray, there: np.ndarray) -> Any:
        differs = here[0] != there[0]
        if differs.ndim > 1:  # the words of a code
            differs = differs.any(axis=-1, keepdims=True)
        return np.where(differs, here[0], leaf)

    return jax.tree.map(changed, points, first, second)


def _read(monitor: "DriftMonitor", row: Data) -> Any:
    data, _ = monitor.complete(row)
    with Door() as door:
        return jax.tree.map(on_host, monitor.known(monitor.features.read(data, "batch", door)))
