"""A drift that lasts after its alarm: batches are compared with the pools as they were, and none joins them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from meanmap.core.door import Door
from meanmap.core.points import count, joined
from meanmap.core.types import Points
from meanmap.core.values import Value
from meanmap.features.base import transformed
from meanmap.stats.samples.drift_counts import smallest_of, with_counts
from meanmap.stats.samples.drift_pool import at_most, rank_of, scores_of
from meanmap.stats.samples.subsets import among_subsets

if TYPE_CHECKING:
    from meanmap.stats.samples.drift import DriftMonitor

__all__ = ["Ended", "Lasting", "after_alarm"]

# The latest batches that are compared together: this many, and at most this many rows of each.
BATCHES, MOST_ROWS = 3, 2000
# A drift is seen while the p-value of these batches, among this many random subsets, is at most the first number, and
# has ended when that of all of them exceeds the second, and none of them differs by itself.
SEEN, ENDED, DRAWS = 0.05, 0.2, 199


@dataclass(frozen=True, eq=False, repr=False)
class Latest(Value):
    """One of the latest batches: its complete rows, which values of all its rows are missing if that is watched, the
    columns that were left out, and the weighted score of each moment of a column with its variance.
    """

    points: Any
    missing: dict[str, np.ndarray] | None
    apart: tuple[str, ...]
    moments: dict[tuple[str, str, str | None], tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class Lasting(Value):
    """A drift that has not ended.

    Attributes
    ----------
    since : int
        The batch with which it probably began, before its first alarm or with it.
    latest : tuple of Latest
        The latest batches after the alarm.
    pvalue : float
        Of these batches together, compared with the pool before the alarm: the smaller p-value of values and of missing
        values, corrected for both.
    alone : float
        Of the latest of these batches.
    count : int
        The number of batches after the alarm.
    certain : tuple of str
        What lasts for certain: lost labels that have not come back, labels that are too frequent, and cells far
        outside in batch after batch.
    missing : str
        The columns with more missing values, if the p-value is theirs.
    moments : dict
        The moments of columns that raised alarms since, and whether they grew.
    """

    since: int
    latest: tuple[Latest, ...] = ()
    pvalue: float = 0.0
    alone: float = 0.0
    count: int = 0
    certain: tuple[str, ...] = ()
    missing: str = ""
    moments: dict[tuple[str, str, str | None], bool] = field(default_factory=dict)

    def step(
        self,
        before: "DriftMonitor",
        after: "DriftMonitor",
        points: Points | None,
        missing: dict[str, np.ndarray] | None,
    ) -> "Lasting":
        """The drift after one more batch, compared with the pools before it."""
        seed = [before.seed, len(before.pvalues), 5]
        if points is not None:
            points, _ = at_most(MOST_ROWS, points, np.zeros(0, int), seed)
        scores = {} if after.persistent is None else after.persistent.latest
        latest = (*self.latest, Latest(points, missing, before.apart, scores))[-BATCHES:]
        found, said = [], ""
        if points is not None:
            alike = [each.points for each in latest if each.points is not None and each.apart == before.apart]
            found.append(_of_values(before, joined(*alike), np.random.default_rng(seed)))
        if before.gaps is not None:
            lost, said = before.gaps.compared([each.missing for each in latest if each.missing is not None])
            said = said if lost <= min(found, default=1.0) else ""
            found.append(lost)
        if self.moments:
            found.append(_of_moments(self.moments, latest))
        alone = float(after.pvalues[-1])
        if after.gaps is not None:
            alone = smallest_of([alone, float(after.gaps.pvalues[-1])])
        return replace(self, latest=latest, pvalue=smallest_of(found), alone=alone, count=self.count + 1, missing=said)

    @property
    def is_seen(self) -> bool:
        """Whether the latest batches differ from the pools, or something lasts for certain."""
        return self.pvalue <= SEEN or bool(self.certain)

    @property
    def has_ended(self) -> bool:
        """Whether enough batches together look like those before the alarm."""
        return self.count >= BATCHES and self.pvalue > ENDED and not self.certain

    def said(self, since: str = "") -> str:
        """What lasts since a batch, by its name if it has one."""
        number = len(self.latest)
        drift = f"the drift since {since or f'batch {self.since}'}"
        compared = f"p = {self.pvalue:.2g} for {'the latest batch' if number == 1 else f'the latest {number}'}"
        if self.certain:
            return f"{drift} lasts: {self.certain[0]}"
        if not self.is_seen:
            return f"{drift} may have ended ({compared}; it has if that exceeds {ENDED} for {BATCHES})"
        if number > 1 and self.alone > ENDED and not self.missing:
            return f"{drift} may go on ({compared}, {self.alone:.2g} for the latest alone)"
        return f"{drift} lasts" + f": {self.missing}" * bool(self.missing) + f" ({compared})" * bool(number)

    def sentence(self, since: str = "", changed: str = "") -> str:
        """What lasts since a batch, as a sentence, with what changed, then without shares of the latest batches."""
        said = f"{replace(self, missing='').said(since)}: {changed}" if changed else self.said(since)
        return f"{said[:1].upper()}{said[1:]}."

    def note(self) -> str:
        """What lasts, and what to do if it is welcome."""
        return (
            f"{self.said()}, and no batch has joined the pool since. If it is the new normal, start a new monitor with "
            "such rows as its reference."
        )


@dataclass(frozen=True, eq=False, repr=False)
class Ended(Value):
    """A drift that has ended: the batch with which it began, and the last of the batches that look as before."""

    since: int
    at: int

    def sentence(self, changed: str, names: Sequence[str] = ()) -> str:
        """What has ended, by the names of all batches if they have any.

        Examples
        --------
        >>> Ended(4, 11).sentence("mean temp 20 → 22")
        'The drift since batch 4 (mean temp 20 → 22) has ended: batches 9 to 11 look as before it.'
        """
        first = self.at - BATCHES + 1
        since = names[self.since - 1] if names else f"batch {self.since}"
        batches = f"{names[first - 1]} to {names[self.at - 1]}" if names else f"batches {first} to {self.at}"
        what = f" ({changed})" if changed else ""
        return f"The drift since {since}{what} has ended: {batches} look as before it."


def _of_values(monitor: "DriftMonitor", together: Points, generator: np.random.Generator) -> float:
    """The p-value of some rows, compared with the pool of a monitor."""
    with Door():
        both = np.concatenate([monitor.pool, transformed(monitor.features, together)])
    asked = count(together), monitor.mean_squares, DRAWS, generator, scores_of(monitor, together)
    pvalue, _ = rank_of(among_subsets(monitor.features, both, *asked), generator)
    return with_counts(pvalue, monitor.points, together)


def _of_moments(moments: Mapping[tuple[str, str, str | None], bool], latest: Sequence[Latest]) -> float:
    """The p-value of these moments in some batches, each in the direction in which it changed."""
    found = []
    for moment, grew in moments.items():
        scores, variances = np.array([each.moments[moment] for each in latest]).sum(axis=0)
        z = scores / np.sqrt(variances) if variances else 0.0
        found.append(float(ndtr(-z if grew else z)))
    return smallest_of(found)


def after_alarm(
    before: "DriftMonitor", after: "DriftMonitor", points: Points | None, missing: dict[str, np.ndarray] | None
) -> tuple[Lasting | None, bool]:
    """The drift that lasts after a batch, if any, and whether the batch joins the pools. Not looked at with strata."""
    if before.strata is not None:
        return None, not after.alarm
    certain = () if after.labels is None else tuple(f"{label} has not come back" for label in after.labels.gone)
    certain = certain if after.frequent is None else (*certain, *after.frequent.gone_on)
    certain = certain if after.far is None else (*certain, *after.far.gone_on)
    moments = {} if after.persistent is None else after.persistent.directions
    if before.lasting is None:
        if not after.alarm:
            return None, True
        drifts = () if after.record is None else after.record.drifts
        since = drifts[-1].first if drifts else len(after.pvalues)
        return Lasting(since, certain=certain, moments=moments), False
    stepped = before.lasting.step(before, after, points, missing)
    lasting = replace(stepped, certain=certain, moments={**stepped.moments, **moments})
    return (None, True) if lasting.has_ended and _are_quiet(after) else (lasting, False)


def _are_quiet(monitor: "DriftMonitor") -> bool:
    """Whether none of the latest batches raised an alarm or differs by itself."""
    of_gaps = [] if monitor.gaps is None else monitor.gaps.pvalues[-BATCHES:]
    alone = smallest_of([*monitor.pvalues[-BATCHES:], *of_gaps])
    return alone > SEEN and monitor.alarms[-1] <= len(monitor.pvalues) - BATCHES
