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

# The latest batches that are compared together: so many, and at most so many rows.
BATCHES, MOST_ROWS = 3, 5000
# A drift is seen while the p-value of these batches, among so many random subsets, is at most the first number, and has
# ended when that of all of them exceeds the second.
SEEN, ENDED, DRAWS = 0.05, 0.2, 199


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
    count : int
        The number of batches after the alarm.
    """

    since: int
    points: Any = None
    sizes: tuple[int, ...] = ()
    pvalue: float = 0.0
    count: int = 0

    def step(self, monitor: "DriftMonitor", points: Points) -> "Lasting":
        """The drift after one more batch."""
        seed = [monitor.seed, len(monitor.pvalues), 5]
        points, _ = at_most(MOST_ROWS, points, np.zeros(0, int), seed)
        sizes = [*self.sizes, count(points)]
        together = points if self.points is None else joined(self.points, points)
        while len(sizes) > BATCHES or (sum(sizes) > MOST_ROWS and len(sizes) > 1):
            together = rows(together, slice(sizes.pop(0), None))
        generator = np.random.default_rng(seed)
        both = np.concatenate([monitor.pool, transformed(monitor.features, together)])
        asked = sum(sizes), monitor.mean_squares, DRAWS, generator, scores_of(monitor, together)
        pvalue = rank_of(among_subsets(monitor.features, both, *asked), generator)[0]
        return replace(self, points=together, sizes=tuple(sizes), pvalue=pvalue, count=self.count + 1)

    def is_seen(self, lost: "LostLabels | None") -> bool:
        """Whether the latest batches differ from the pool, or a label is lost."""
        return self.pvalue <= SEEN or bool(lost is not None and lost.gone)

    def said(self, lost: "LostLabels | None", since: str = "") -> str:
        """What lasts since a batch, by its name if it has one."""
        since, number = since or f"batch {self.since}", len(self.sizes)
        if lost is not None and lost.gone:
            return f"the drift since {since} lasts: {lost.gone[0]} has not come back"
        compared = f"p = {self.pvalue:.2g} for {'the latest batch' if number == 1 else f'the latest {number}'}"
        if self.is_seen(lost):
            return f"the drift since {since} lasts" + f" ({compared})" * bool(number)
        return f"the drift since {since} may have ended ({compared}; it has if that exceeds {ENDED} for {BATCHES})"

    def sentence(self, lost: "LostLabels | None", since: str = "") -> str:
        """What lasts since a batch, as a sentence."""
        said = self.said(lost, since)
        return f"{said[:1].upper()}{said[1:]}."

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
    gone = after.labels is not None and bool(after.labels.gone)
    enough = lasting.count >= BATCHES
    ended = enough and lasting.pvalue > ENDED and not (after.alarm or gone)
    return (None, True) if ended else (lasting, False)
