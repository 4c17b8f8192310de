"""A drift that lasts after its alarm: batches are compared with the pool as it was, and none of them joins it."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from meanmap.core.points import count, joined, rows
from meanmap.core.types import Points
from meanmap.core.values import Value
from meanmap.features.base import transformed
from meanmap.stats.samples.drift_pool import at_most, rank_of, scores_of
from meanmap.stats.samples.subsets import among_subsets

if TYPE_CHECKING:
    from meanmap.stats.samples.drift import DriftMonitor
    from meanmap.stats.samples.drift_lost import LostLabels

__all__ = ["Lasting", "after_alarm"]

# The latest batches that are compared together: at most so many, and so many rows.
MOST_BATCHES, MOST_ROWS = 5, 5000
# A drift lasts while the p-value of these batches, among so many random subsets, is at most this, unless the latest two
# each have a larger p-value than the second number.
LASTS, USUAL, DRAWS = 0.05, 0.2, 199


@dataclass(frozen=True, eq=False, repr=False)
class Lasting(Value):
    """A drift that has not ended.

    Attributes
    ----------
    since : int
        The batch of its first alarm.
    points : points or None
        The latest batches after the alarm; None if there is none yet.
    sizes : tuple of int
        Their numbers of rows.
    pvalue : float
        Of these batches together, compared with the pool before the alarm.
    """

    since: int
    points: Any = None
    sizes: tuple[int, ...] = ()
    pvalue: float = 0.0

    def step(self, monitor: "DriftMonitor", points: Points) -> "Lasting":
        """The drift after one more batch."""
        seed = [monitor.seed, len(monitor.pvalues), 5]
        points, _ = at_most(MOST_ROWS, points, np.zeros(0, int), seed)
        sizes = [*self.sizes, count(points)]
        together = points if self.points is None else joined(self.points, points)
        while len(sizes) > MOST_BATCHES or sum(sizes) > MOST_ROWS:
            together = rows(together, slice(sizes.pop(0), None))
        generator = np.random.default_rng(seed)
        both = np.concatenate([monitor.pool, transformed(monitor.features, together)])
        asked = sum(sizes), monitor.mean_squares, DRAWS, generator, scores_of(monitor, together)
        pvalue = rank_of(among_subsets(monitor.features, both, *asked), generator)[0]
        return replace(self, points=together, sizes=tuple(sizes), pvalue=pvalue)

    def said(self, lost: "LostLabels | None", since: str = "") -> str:
        """What lasts since a batch, by its name if it has one."""
        which = "the latest batch differs" if len(self.sizes) == 1 else f"the latest {len(self.sizes)} differ"
        why = f": {which} from the pool before it (p = {self.pvalue:.2g})" if self.sizes else ""
        if lost is not None and lost.gone:
            why = f": {lost.gone[0]} has not come back"
        return f"the drift since {since or f'batch {self.since}'} lasts{why}"

    def note(self, lost: "LostLabels | None") -> str:
        """What lasts, and what to do if it is welcome."""
        return (
            f"{self.said(lost)}, and no batch has joined the pool since. If it is the new normal, start a new monitor "
            "with such rows as its reference."
        )


def after_alarm(before: "DriftMonitor", after: "DriftMonitor", points: Points) -> tuple[Lasting | None, bool]:
    """The drift that lasts after a batch, if any, and whether the batch joins the pool. Not looked at with strata, nor
    in batches of which columns are left out.
    """
    if before.strata is not None or before.apart:
        return before.lasting, not after.alarm
    if before.lasting is None:
        return (Lasting(len(after.pvalues)) if after.alarm else None), not after.alarm
    lasting = before.lasting.step(before, points)
    latest = after.pvalues[max(lasting.since, len(after.pvalues) - 2) :]
    usual = len(latest) == 2 and bool(np.all(latest > USUAL))
    gone = after.labels is not None and bool(after.labels.gone)
    ended = (lasting.pvalue > LASTS or usual) and not (after.alarm or gone)
    return (None, True) if ended else (lasting, False)
