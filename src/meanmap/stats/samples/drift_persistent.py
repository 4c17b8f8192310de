"""Small changes of one column that last: each batch adds to sums, one for every column, moment and beginning."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr

from meanmap.core.language import in_few_words
from meanmap.core.values import Value
from meanmap.stats.samples.drift_cells import ColumnCells, score_of_count, stream_of
from meanmap.stats.samples.drift_counts import smallest_of

__all__ = ["SHARE_OF_PERSISTENT", "Moment", "Persistent"]

# The share of false alarms that lasting changes of one column may raise, and the share of a column's missing values
# among its moments, if these are watched.
SHARE_OF_PERSISTENT, MISSING = 0.2, 0.2
# The standard deviation of the prior of a change, in standard deviations of a score, and the number of latest batches
# with which a change may have begun.
SCALE, BATCHES = 0.3, 100
# Moments with at least this share of all wealth caused an alarm; a note names this many.
CAUSE, MOST_NAMED = 0.1, 3


class Moment(NamedTuple):
    """What is watched of a column: its "mean", "sd", "share" of a label ("" stands for all rare ones), or "missing"."""

    column: str
    what: str
    label: str | None = None

    def said(self, grows: bool) -> str:
        """The change as a text."""
        if self.what == "share":
            of = f"{self.label!r}" if self.label else "rare labels"
            return f"the share of {of} in {self.column!r} is {'higher' if grows else 'lower'}"
        if self.what == "missing":
            return f"more values of {self.column!r} are missing"
        if self.what == "sd":
            return f"the spread of {self.column!r} is {'larger' if grows else 'smaller'}"
        return f"{self.column!r} is {'higher' if grows else 'lower'}"


@dataclass(frozen=True, eq=False, repr=False)
class Persistent(Value):
    """The evidence that a moment of one column has changed and stays so.

    For each batch and moment there is a score, exactly standard normal and independent of those of other batches while
    rows are exchangeable, whatever the size of the reference: the batch is compared with all rows before it. A change
    by δ standard deviations adds δ √(m N / (N + m)) to the score of m rows after N; less later, because rows with the
    change have joined the N. For δ ~ N(0, .09) and each possible beginning the likelihood ratio has mean one without a
    change. Their sum over beginnings, averaged over moments, is the wealth (Shiryaev 1963, Roberts 1966; "e-detector",
    Shin, Ramdas & Rinaldo 2024): wealth minus the number of batches is a martingale, and so without drift an alarm at
    wealth A is raised at most once in A batches.

    Attributes
    ----------
    cells : dict of ColumnCells
        The rows so far in each column.
    gaps : dict of int arrays
        The number of rows, and of those with a missing value, where missing values are watched.
    limit : float
        The logarithm of the wealth that raises an alarm.
    shown : float
        The limit of `evidence`.
    evidence : array (T,)
        0 up to the square root of the limit of wealth, and linear in its logarithm from there.
    scores, inside, before, held : arrays (batches, moments)
        Since the last alarm, the latest 100: scores, the rows of a batch with a value, those before it, and whether the
        batch has a row with the label, or a missing value.
    since : int
        The batch with which the change most likely began: of a label, or of missing values, one that holds some.
    pvalue : float
        Of the latest batch: the smallest p-value of counts beyond cuts of a column, corrected for cuts and columns.
    counted : str
        The column with this p-value, if it raises an alarm.
    causes, directions : dict
        For each moment that caused an alarm of the latest batch its p-value, corrected for moments and beginnings, and
        whether it grew.
    """

    cells: dict[str, ColumnCells]
    gaps: dict[str, np.ndarray]
    limit: float
    shown: float
    evidence: np.ndarray = field(default_factory=lambda: np.zeros(0))
    scores: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    inside: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    before: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    held: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    since: int = 0
    pvalue: float = 1.0
    counted: str = ""
    causes: dict[tuple[str, str, str | None], float] = field(default_factory=dict)
    directions: dict[tuple[str, str, str | None], bool] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        columns: Mapping[str, np.ndarray],
        gaps: Mapping[str, np.ndarray],
        run_length: float,
        shown: float,
        seed: int,
    ) -> "Persistent | None":
        """The state before the first batch, from the observed values of each column of a reference, and which values
        are missing; None without columns.
        """
        cells = {
            name: ColumnCells.of(column, stream_of(seed, 0, name)) for name, column in columns.items() if len(column)
        }
        if not cells:
            return None
        lost = {name: np.array([len(gaps[name]), gaps[name].sum()]) for name in cells if name in gaps}
        found = cls(cells, lost, float(np.log(run_length / SHARE_OF_PERSISTENT)), shown)
        return found._restarted()

    @property
    def moments(self) -> list[tuple[Moment, float]]:
        """All moments, with their shares of the evidence."""
        found = []
        for name, cells in self.cells.items():
            of_missing = MISSING * (name in self.gaps)
            share = (1 - of_missing) / len(cells.moments) / len(self.cells)
            found += [
                (Moment(name, "share", each) if cells.of_labels else Moment(name, each), share)
                for each in cells.moments
            ]
            found += [(Moment(name, "missing"), of_missing / len(self.cells))] * (name in self.gaps)
        return found

    @property
    def alarm(self) -> bool:
        """Whether the latest batch raised an alarm."""
        return bool(self.causes)

    @property
    def latest(self) -> dict[tuple[str, str, str | None], tuple[float, float]]:
        """The score of each moment of the latest batch, weighted by its size, and the variance of this product."""
        m, before = self.inside[-1], self.before[-1]
        variances = m * before / (m + before)
        weighted = np.sqrt(variances) * self.scores[-1]
        return {
            (moment.column, moment.what, moment.label): (float(z), float(v))
            for (moment, _), z, v in zip(self.moments, weighted, variances, strict=True)
        }

    def step(
        self,
        columns: Mapping[str, np.ndarray],
        gaps: Mapping[str, np.ndarray],
        restarted: bool,
        seed: int,
    ) -> "Persistent":
        """The state after one more batch, from its observed values of each column and its gaps. Evidence restarts after
        an alarm.
        """
        start, number = self._restarted() if restarted else self, len(self.evidence) + 1
        cells, lost, rows, pvalues = dict(self.cells), dict(self.gaps), [], {}
        for name, before in self.cells.items():
            generator = stream_of(seed, number, name)
            column = columns.get(name, np.zeros(0))
            counts = before.count(column) if len(column) else np.zeros_like(before.counts)
            judged = before.judged(counts, generator)
            cells[name] = before.joined(counts)
            pvalues[name] = judged.pvalue
            inside = counts.sum() * judged.varies
            held = counts[: len(inside)] if before.of_labels else inside
            rows += [(z, float(m), before.total, k > 0) for z, m, k in zip(judged.scores, inside, held, strict=True)]
            if name in lost:
                here = np.array([len(gaps[name]), gaps[name].sum()]) if name in gaps else np.zeros(2, int)
                rows.append(_of_gaps(lost[name], here, generator))
                lost[name] = lost[name] + here
        new = np.array(rows, float).T
        history = [
            np.concatenate([old, row[None]])[-BATCHES:]
            for old, row in zip((start.scores, start.inside, start.before, start.held), new, strict=True)
        ]
        latest = dict(zip(("scores", "inside", "before", "held"), history, strict=True))
        after = replace(start, cells=cells, gaps=lost, **latest)
        least = min(pvalues, key=pvalues.__getitem__)
        return after._judged(number, smallest_of(pvalues.values()), least)

    def with_rows_of(self, before: "Persistent | None") -> "Persistent":
        """Replace the rows by those of an earlier state: the latest batch does not join them."""
        return self if before is None else replace(self, cells=before.cells, gaps=before.gaps)

    def _judged(self, number: int, pvalue: float, counted: str) -> "Persistent":
        """With the evidence after the batch of this number."""
        logs = self._log_wealth()
        wealth = np.logaddexp.reduce(logs, axis=None)
        evidence = self.shown * max(0.0, 2 * float(wealth) / self.limit - 1)
        begun, most = np.unravel_index(np.argmax(logs), logs.shape)
        sums, variances = (each[begun] for each in self._sums())
        z = sums / np.sqrt(np.maximum(variances, np.finfo(float).tiny))
        if z[most] > 0:  # a batch with none of what grew can be as likely
            begun += np.argmax(self.held[begun:, most])
        causes, directions = {}, {}
        if wealth > self.limit:
            shares = np.exp(np.logaddexp.reduce(logs, axis=0) - wealth)
            for k in np.argsort(-shares, kind="stable")[: np.count_nonzero(shares >= CAUSE)]:
                key = tuple(self.moments[k][0])
                causes[key] = min(1.0, logs.size * 2 * float(ndtr(-abs(z[k]))))
                directions[key] = bool(z[k] > 0)
        return replace(
            self,
            evidence=np.append(self.evidence, evidence),
            since=number - len(logs) + 1 + int(begun),
            pvalue=pvalue,
            counted=counted,
            causes=causes,
            directions=directions,
        )

    def _sums(self) -> tuple[np.ndarray, np.ndarray]:
        """For each beginning and moment the weighted sum of scores, and its variance."""
        weights = np.sqrt(self.inside / (self.before * (self.before + self.inside)))

        def from_here(values: np.ndarray) -> np.ndarray:
            return np.cumsum(values[::-1], axis=0)[::-1]

        return self.before * from_here(weights * self.scores), self.before**2 * from_here(weights**2)

    def _log_wealth(self) -> np.ndarray:
        """The logarithm of the wealth of each beginning and moment, (batches, moments)."""
        moments = self.moments
        sums, variances = self._sums()
        wider = 1 + SCALE**2 * variances
        logs = -np.log(wider) / 2 + SCALE**2 * sums**2 / (2 * wider)
        upwards = np.array([moment.what == "missing" for moment, _ in moments])  # fewer missing values are no drift
        one_sided = np.log(2) + log_ndtr(SCALE * sums / np.sqrt(wider))
        return logs + np.where(upwards, one_sided, 0.0) + np.log([share for _, share in moments])

    def _restarted(self) -> "Persistent":
        none = np.zeros((0, len(self.moments)))
        return replace(self, scores=none, inside=none, before=none, held=none, causes={}, directions={})

    def notes(self, missing_is_said: bool, since: str) -> tuple[str, ...]:
        """What caused an alarm of the latest batch, and since when; without missing values if another note is about
        these.
        """
        changed = [(Moment(*key), grew) for key, grew in self.directions.items()]
        told = [moment.said(grew) for moment, grew in changed if not (missing_is_said and moment.what == "missing")]
        notes = []
        if self.counted:
            notes.append(
                f"the alarm is about counts of all values of {self.counted!r}: more of them than in the reference lie "
                f"beyond some value (p = {self.pvalue:.2g})."
            )
        if told:
            said = in_few_words(told, MOST_NAMED)
            notes.append(f"the alarm is about a change that lasts: {said}{since}.")
        return tuple(notes)


def _of_gaps(before: np.ndarray, here: np.ndarray, generator: np.random.Generator) -> tuple[float, float, float, bool]:
    """The score of the number of missing values, the rows of the batch and before it, and whether it lacks any."""
    (n, missing), m = before + here, int(here[0])
    if not m or missing in (0, n):
        return 0.0, 0.0, float(before[0]), False
    score = float(score_of_count(here[1:], np.array([missing]), m, int(n), generator)[0])
    return score, float(m), float(before[0]), bool(here[1])
