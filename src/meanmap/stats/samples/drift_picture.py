"""The plot of a monitor's evidence over time."""

from typing import Any

import numpy as np

from meanmap.core.pictures import new_axes
from meanmap.core.types import Axes

__all__ = ["draw", "of_missing"]


def draw(monitor: Any, ax: Axes | None) -> Any:
    """Draw the evidence after each batch, that of missing values, the limit and the alarms."""
    ax = new_axes(6, 2.8) if ax is None else ax
    batches = np.arange(1, len(monitor.evidence) + 1)
    ax.plot(batches, monitor.evidence, color="C0", label="evidence since the last alarm")
    ax.axhline(monitor.limit, color="grey", ls="--", lw=1, label="limit")
    highest = monitor.evidence
    if (lost := of_missing(monitor)) is not None:
        ax.plot(batches, lost, color="C1", label="evidence of missing values")
        highest = np.maximum(highest, lost)
    at = np.array(monitor.alarms, int)
    if len(at):
        ax.plot(at, highest[at - 1], "o", color="C3", label="alarms")
    ax.set(xlabel="batch", ylabel="evidence of drift")
    ax.legend(fontsize="small", loc="upper left")
    return ax


def of_missing(monitor: Any) -> np.ndarray | None:
    """The evidence of missing values after each batch; None if there was never any."""
    return monitor.gaps.evidence if monitor.gaps is not None and monitor.gaps.evidence.any() else None
