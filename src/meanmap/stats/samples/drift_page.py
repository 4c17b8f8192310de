"""The page of a monitor: its evidence after each batch, and all batches."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from meanmap.core.values import plain
from meanmap.plots.facts import Axis, Chart, Mark, Page, Panel, Section
from meanmap.stats.samples.drift_picture import of_missing

__all__ = ["in_words", "monitor_page"]


def in_words(monitor: Any) -> str:
    """A monitor in a line, and its notes."""
    more = f" and {len(monitor.alarms) - 5} more" if len(monitor.alarms) > 5 else ""
    told = (", ".join(map(str, monitor.alarms[:5])) or "none") + more
    latest = f", the latest p-value {monitor.pvalues[-1]:.3g}" if len(monitor.pvalues) else ""
    batches = f"{len(monitor.pvalues)} batch{'es' * (len(monitor.pvalues) != 1)}"
    said = f"DriftMonitor after {batches}{latest}; alarms at: {told}"
    return "\n".join([said, *(f"  note: {note}" for note in _notes(monitor))])


def _notes(monitor: Any) -> list[str]:
    """On columns that are not watched, always, and on the latest batch; each once."""
    return list(dict.fromkeys((*monitor.left_out.values(), *monitor.notes)))


def monitor_page(monitor: Any, brief: bool, names: Sequence[str] = ()) -> Page:
    """The evidence, also that of missing values where there is any, with its alarms; brief: without all batches.
    Batches are numbered where they have no names.
    """
    evidence, pvalues, lost = monitor.evidence, monitor.pvalues, of_missing(monitor)
    batches, at = np.arange(1, len(evidence) + 1), np.array(monitor.alarms, int)
    highest = evidence if lost is None else np.maximum(evidence, lost)
    said = [f"evidence {e:.3g}, p = {p:.3g}" for e, p in zip(evidence, pvalues, strict=True)]
    marks = [Mark("line", {"x": batches, "y": evidence}, "evidence since the last alarm", said)]
    if lost is not None:
        missing = [
            f"missing values: evidence {e:.3g}, p = {p:.3g}" for e, p in zip(lost, monitor.gaps.pvalues, strict=True)
        ]
        marks.append(Mark("line", {"x": batches, "y": lost}, "evidence of missing values", missing, colour=2))
    called = list(names) or [f"batch {k}" for k in batches]
    marks += [
        Mark("dots", {"x": at, "y": highest[at - 1]}, "alarms", [called[k - 1] for k in at], colour=1),
        Mark("rules", {"y": [monitor.limit]}, f"one false alarm in {monitor.run_length:g} batches", (), 6, dashed=True),
    ]
    across = Axis("batch", tuple(zip(map(float, batches), names, strict=True)) if names else ())
    chart = Chart("Evidence of drift after each batch", (Panel(across, Axis("evidence"), tuple(marks)),))
    alarms = set(monitor.alarms)
    rows = [
        (str(k), f"{p:.3g}", f"{e:.3g}", *([] if lost is None else [f"{lost[k - 1]:.3g}"]), "alarm" * (k in alarms))
        for k, p, e in zip(batches.tolist(), pvalues, evidence, strict=True)
    ]
    notes = (("note",), *((note,) for note in _notes(monitor)))
    section = Section("The answer", str(monitor).splitlines()[0], charts=(chart,) if rows else (), tables=(notes,))
    listed = Section(
        "All batches",
        "",
        tables=((("batch", "p-value", "evidence", *([] if lost is None else ["missing values"]), "alarm"), *rows),),
    )
    facts = plain(monitor, "run_length", "limit", "seed", "pvalues", "evidence", "alarms", "notes")
    return Page("Monitor of drift", "", (section,) if brief or not rows else (section, listed), facts)
