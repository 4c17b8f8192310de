"""The page of a monitor: its evidence after each batch, and all batches."""

from typing import Any

import numpy as np

from meanmap.core.values import plain
from meanmap.plots.facts import Axis, Chart, Mark, Page, Panel, Section

__all__ = ["monitor_page"]


def monitor_page(monitor: Any, brief: bool) -> Page:
    """The trajectory with its alarms; brief: without the table of all batches."""
    evidence, pvalues = monitor.evidence, monitor.pvalues
    batches, at = np.arange(1, len(evidence) + 1), np.array(monitor.alarms, int)
    said = [f"evidence {e:.3g}, p = {p:.3g}" for e, p in zip(evidence, pvalues, strict=True)]
    marks = (
        Mark("line", {"x": batches, "y": evidence}, "evidence since the last alarm", said),
        Mark("dots", {"x": at, "y": evidence[at - 1]}, "alarms", [f"batch {k}" for k in at], colour=1),
        Mark("rules", {"y": [monitor.limit]}, f"one false alarm in {monitor.run_length:g} batches", (), 6, dashed=True),
    )
    chart = Chart("Evidence of drift after each batch", (Panel(Axis("batch"), Axis("evidence"), marks),))
    alarms = set(monitor.alarms)
    rows = [
        (str(k), f"{p:.3g}", f"{e:.3g}", "alarm" if k in alarms else "")
        for k, p, e in zip(batches.tolist(), pvalues, evidence, strict=True)
    ]
    notes = (("note",), *((note,) for note in monitor.notes))
    section = Section("The answer", str(monitor).splitlines()[0], charts=(chart,) if rows else (), tables=(notes,))
    listed = Section("All batches", "", tables=((("batch", "p-value", "evidence", "alarm"), *rows),))
    facts = plain(monitor, "run_length", "limit", "seed", "pvalues", "evidence", "alarms", "notes")
    return Page("Monitor of drift", "", (section,) if brief or not rows else (section, listed), facts)
