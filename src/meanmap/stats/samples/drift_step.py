"""The monitor after one more batch: its evidence, its alarms, and whether the batch joins the rows before."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from meanmap.core.types import Data, Points
from meanmap.stats.samples.drift_counts import SHARE_OF_COUNTS
from meanmap.stats.samples.drift_lasting import Ended, after_alarm
from meanmap.stats.samples.drift_observed import columns_of_rows, observed, of_one_number
from meanmap.stats.samples.drift_persistent import Persistent
from meanmap.stats.samples.drift_record import Record, by_column
from meanmap.stats.samples.drift_start import MOST_KEPT
from meanmap.stats.samples.run_length import accumulated
from meanmap.stats.settings import LEAST_PVALUE

if TYPE_CHECKING:
    from meanmap.stats.samples.drift import DriftMonitor

__all__ = ["after_pvalue", "judged_by_column", "observed_in", "with_batch"]


def observed_in(monitor: "DriftMonitor", came: Data, data: Any) -> dict[str, np.ndarray]:
    """The values of each column of a batch in all rows that have it, where columns are compared one by one."""
    if monitor.strata is not None or monitor.margin is not None:
        return {}
    complete = {} if data is None else of_one_number(columns_of_rows(data))
    there = {name: column for name, column in complete.items() if name not in monitor.apart}  # others are constants
    return observed(came, there, monitor.missing, monitor.schema)


def judged_by_column(
    monitor: "DriftMonitor", pvalue: float, own: dict[str, np.ndarray], found: Any
) -> tuple["DriftMonitor", float]:
    """The monitor with the evidence of single columns, each in all rows that have it, and the p-value of a batch,
    combined with that of counts in single columns unless all their values were compared: some are missing, or only some
    rows of a long batch were drawn.
    """
    if monitor.persistent is None:
        return monitor, pvalue
    told = () if monitor.gaps is None else monitor.gaps.reported
    gaps = by_column({name: missing for name, missing in (found or {}).items() if name not in told}, own)
    persistent = monitor.persistent.step(own, gaps, monitor.alarm, monitor.seed)
    of_all, of_counts = pvalue / (1 - SHARE_OF_COUNTS), persistent.pvalue / SHARE_OF_COUNTS
    drawn = any(len(column) > MOST_KEPT for column in own.values())
    counts = drawn or any(missing for _, missing in persistent.gaps.values())
    if not (counts and of_counts <= monitor.pvalue_limit < of_all):
        persistent = replace(persistent, counted="")
    pvalue = min(of_all, of_counts, 1.0) if counts else pvalue
    return replace(monitor, persistent=persistent), pvalue


def with_batch(
    before: "DriftMonitor",
    compared: "DriftMonitor",
    after: "DriftMonitor",
    points: Points | None,
    found: Any,
    pool: dict[str, Any],
) -> "DriftMonitor":
    """The monitor after a batch that was `compared` with a pool and joins it, unless there is drift."""
    lasting, joins = after_alarm(replace(compared, gaps=before.gaps), after, points, found)
    if before.lasting is not None and lasting is None:
        after = replace(after, ended=Ended(before.lasting.since, len(after.pvalues)))
    if joins:
        return replace(after, lasting=lasting, **pool)
    gaps = after.gaps if before.gaps is None or after.gaps is None else replace(after.gaps, pool=before.gaps.pool)
    persistent = after.persistent and after.persistent.with_rows_of(before.persistent)
    return replace(after, lasting=lasting, gaps=gaps, persistent=persistent)


def after_pvalue(
    monitor: "DriftMonitor",
    pvalue: float,
    notes: tuple[str, ...],
    data: Any = None,
    own: Any = None,
    found: Any = None,
    before: np.ndarray | None = None,
) -> "DriftMonitor":
    """The monitor after one more p-value, from the evidence `before` if that is not the latest."""
    pvalue = max(pvalue, LEAST_PVALUE)
    evidence = accumulated(monitor.evidence if before is None else before, pvalue, monitor.alarm and before is None)
    alarm, lost = monitor.exceeded(evidence, pvalue), False
    if monitor.gaps is not None:
        lost = monitor.exceeded(monitor.gaps.evidence[-1], monitor.gaps.pvalues[-1])
        alarm, notes = alarm or lost, (*notes, *monitor.gaps.notes(lost))
    labels, frequent, far = monitor.labels, monitor.frequent, monitor.far
    persistent, gone = monitor.persistent, ()
    by_itself = persistent is not None and bool(persistent.counted or persistent.alarm)
    if labels is not None and data is not None:
        labels, lost_labels = labels.step(data, monitor.apart)
        gone = (*gone, *lost_labels)
    if frequent is not None and data is not None:
        known = {} if monitor.lasting is None else monitor.lasting.moments
        known = known if persistent is None else known | persistent.directions
        frequent, new_labels = frequent.step(data, monitor.apart, known)
        gone = (*gone, *new_labels)
    if far is not None and data is not None:
        far, slips = far.step(data, monitor.apart)
        gone = (*gone, *slips)
    after = replace(
        monitor,
        pvalues=np.append(monitor.pvalues, pvalue),
        evidence=np.append(monitor.evidence, evidence),
        alarms=(*monitor.alarms, len(monitor.pvalues) + 1) if alarm or by_itself or gone else monitor.alarms,
        notes=(*notes, *gone),
        labels=labels,
        frequent=frequent,
        far=far,
    )
    if monitor.record is None:
        return after
    record = monitor.record.step(data, own or {}, found or {}, after)
    if persistent is not None:
        gone = (*persistent.notes(lost, _begin(monitor, persistent, record)), *gone)
    return replace(after, record=record, notes=(*notes, *gone, *record.note_on_copy()))


def _begin(monitor: "DriftMonitor", persistent: Persistent, record: Record) -> str:
    """Since when changes last, as the drift of the alarm says; nothing if all of them are of a known drift."""
    known = {} if monitor.lasting is None else monitor.lasting.moments
    return f", since batch {record.drifts[-1].first}" if persistent.directions.keys() - known.keys() else ""
