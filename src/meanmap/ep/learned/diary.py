"""What a run of learned messages did: questions, audits, settings chosen anew, and the time that went where."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from meanmap.core.language import in_digits
from meanmap.ep.doubt import Lean

__all__ = ["Diary"]


class Diary:
    """The record of one factor in one run."""

    def __init__(self, before: "Diary | None" = None) -> None:
        self.asked = self.predicted = self.audited = self.strays = self.outside = 0
        self.caution = 1.0
        # Of the log evidence, for what was predicted, and how many were asked to know it; NaN before it was computed.
        self.evidence_error, self.sampled = np.nan, 0
        # What errors that predictions share add up to, and how often it was too much, in samples, in whole plates, and
        # beyond doubt in whole plates.
        self.lean: Lean | None = None
        self.looks = self.whole_looks = self.clear_looks = 0
        # Why predictions are not used any more; empty while they are.
        self.gave_up = ""
        self.of_values = ""  # what is known of values of the function, in words
        self.reasons: list[str] = []
        # Of each sweep: asked, all, and the median novelty before any was asked.
        self.sweeps: list[tuple[int, int, float]] = []
        self.scores: list[np.ndarray] = []
        self._since = 0
        self.seconds = {"asking": 0.0, "predicting": 0.0, "learning": 0.0}
        # Of the quickest batch so far, for each message: the others may have been compiled first, or have been small.
        self.asking = np.inf if before is None else before.asking

    @contextmanager
    def clock(self, what: str, messages: int = 0) -> Iterator[None]:
        """Add the time of a part to its total."""
        start = time.perf_counter()
        yield
        spent = time.perf_counter() - start
        self.seconds[what] += spent
        if messages and what == "asking":
            self.asking = min(self.asking, spent / messages)

    def add(self, asked: int, predicted: int, audited: int, novelty: float) -> None:
        """One sweep more."""
        self.sweeps.append((asked + audited, asked + predicted, novelty))
        self.asked, self.predicted, self.audited = (
            self.asked + asked,
            self.predicted + predicted,
            self.audited + audited,
        )

    def refreshed(self, reason: str) -> None:
        """Settings were chosen anew: audits and strays are counted from here."""
        self.reasons.append(reason)
        self.strays, self._since = 0, len(self.scores)

    def compare(self, scores: np.ndarray) -> None:
        """Audits: z of each number."""
        self.scores += list(scores)

    def recent_audits(self) -> int:
        """Audits since the last refresh."""
        return len(self.scores) - self._since

    def recent_score(self) -> float:
        """The largest root mean square of z since the last refresh."""
        return float(_rms(self.scores[self._since :]).max())

    @property
    def z(self) -> np.ndarray:
        """Root mean square of z of all audits, by number."""
        return _rms(self.scores)

    def counts(self) -> dict[str, int]:
        """Whole numbers for a report."""
        return {
            "asked of the oracle": self.asked + self.audited,
            **({"asked outside the range that was learned": self.outside} if self.outside else {}),
            "predicted": self.predicted,
            "audited": self.audited,
            "settings re-chosen": len(self.reasons),
        }

    @property
    def doubtful(self) -> bool:
        """Whether predictions were further off in audits than they said."""
        return bool(self.scores) and not self.z.max() <= 2

    def notes(self) -> tuple[str, ...]:
        """Sentences for a report."""
        notes = [self.of_values] if self.of_values else []
        if self.gave_up:
            notes.append(f"{self.gave_up}: from then on the oracle answered all messages")
        elif self.lean is not None:
            notes.append(
                f"the common bias of predictions moves beliefs by {self.lean.most:.2g} standard deviations, "
                f"as {self.sampled} answers show"
            )
        if self.evidence_error > 0:
            notes.append(
                f"log evidence: predictions were corrected by {self.sampled} answers, which leaves a standard error of "
                f"{self.evidence_error:.2g}"
            )
        if self.scores:
            z = ", ".join(f"{value:.2g}" for value in self.z)
            notes.append(
                f"{len(self.scores)} audits: errors were {z} times the stated ones (root mean square, of each number "
                f"that is learned){'; do not trust the stated ones' if self.doubtful else ''}"
            )
        if not self.pays():
            spent = in_digits(self.seconds["predicting"] + self.seconds["learning"])
            notes.append(
                f"learning did not pay: the oracle takes {in_digits(1e3 * self.asking)} ms per message, and "
                f"{self.predicted} predictions took {spent} s, learning included. Leave messages= out, or "
                "give the oracle itself."
            )
        return tuple(notes)

    def pays(self) -> bool:
        """Whether predicting, and learning for it, took less time than the oracle would have; True if not known."""
        if not self.predicted or not np.isfinite(self.asking):
            return True
        return self.predicted * self.asking > self.seconds["predicting"] + self.seconds["learning"]


def _rms(scores: list[np.ndarray]) -> np.ndarray:
    if not scores:
        return np.zeros(1)
    table = np.stack(scores)
    known = np.isfinite(table)
    return np.sqrt(np.where(known, table, 0.0).__pow__(2).sum(0) / np.maximum(known.sum(0), 1))
