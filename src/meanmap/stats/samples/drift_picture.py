"""The plot of a monitor's evidence over time."""

from typing import Any

import numpy as np

from meanmap.core.pictures import new_axes
from meanmap.core.types import Axes

__all__ = ["draw", "others_of"]


def draw(monitor: Any, ax: Axes | None) -> Any:
    """Draw the evidence after each batch, that of single columns and of missing values, the limit and the alarms."""
    ax = new_axes(6, 2.8) if ax is None else ax
    batches = np.arange(1, len(monitor.evidence) + 1)
    ax.plot(batches, monitor.evidence, color="C0", label="evidence since the last alarm")
    ax.axhline(monitor.limit, color="grey", ls="--", lw=1, label="limit")
    highest = monitor.evidence
    for (of, other), colour in zip(others_of(monitor).items(), ("C1", "C2"), strict=False):
        ax.plot(batches, other, color=colour, label=f"evidence of {of}")
        highest = np.maximum(highest, other)
    at = np.array(monitor.alarms, int)
    if len(at):
        ax.plot(at, highest[at - 1], "o", color="C3", label="alarms")
    ax.set(xlabel="batch", ylabel="evidence of drift")
    ax.legend(fontsize="small", loc="upper left")
    return ax


def others_of(monitor: Any) -> dict[str, np.ndarray]:
    """The evidence of missing values and of single columns after each batch; none if there was never any."""
    found = {"missing values": monitor.gaps, "single columns": monitor.persistent}
    return {of: each.evidence for of, each in found.items() if each is not None and each.evidence.any()}
