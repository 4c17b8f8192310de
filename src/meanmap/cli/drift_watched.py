"""The batches of `meanmap drift` by name, and the notes on them."""

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from meanmap.cli.drift_state import Kept
from meanmap.stats.samples.drift_words import ended_in, lasts_in

if TYPE_CHECKING:
    from meanmap.core.tables.table import Table

__all__ = ["Watched", "complete"]

# The monitor's note on rows that were left out, which are counted over all batches here.
LEFT_OUT = re.compile(r"\d+ of \d+ rows of batch (was|were) left out")
# Batches that notes number have names here.
SINCE = re.compile(r"since batch (\d+)")


@dataclass
class Watched:
    """The results for each batch, and the notes on all."""

    name: str
    within: list[str]
    batches: list[dict[str, Any]] = field(default_factory=list)
    notes: dict[str, tuple[str, list[str], bool]] = field(default_factory=dict)
    lost: Counter[str] = field(default_factory=Counter)
    unread: dict[str, str] = field(default_factory=dict)
    known: int = 0

    def begin(self, before: "Kept | None") -> None:
        """Continue after the batches of an earlier run."""
        if before is not None:
            self.batches, self.known = list(before.batches), len(before.batches)

    @property
    def new(self) -> list[dict[str, Any]]:
        """The batches of this run."""
        return self.batches[self.known :]

    @property
    def names(self) -> list[str]:
        """The names of all batches, in order."""
        return [each["batch"] for each in self.batches]

    def add(self, name: str, batch: dict[str, Any], monitor: Any) -> None:
        """Add the batch that the monitor has just seen."""
        missing, number = _gaps(batch), len(next(iter(batch.values())))
        missing = {column: gaps for column, gaps in missing.items() if column not in monitor.apart}
        left = int(np.any(list(missing.values()), axis=0).sum())
        self.lost.update({column: int(gaps.sum()) for column, gaps in missing.items() if gaps.any()})
        about: dict[str, Any] = {"batch": name, "rows": number, "left out": left}
        about |= {"pvalue": float(monitor.pvalues[-1]), "evidence": float(monitor.evidence[-1])}
        about |= {"alarm": monitor.alarm}
        if monitor.gaps is not None:
            about |= {"missing pvalue": float(monitor.gaps.pvalues[-1])}
            about |= {"missing evidence": float(monitor.gaps.evidence[-1])}
        if monitor.persistent is not None:
            about |= {"column evidence": float(monitor.persistent.evidence[-1])}
        self.batches.append(about)
        record = monitor.record
        copy, of_copy = (None, ()) if record is None else (record.copy, record.note_on_copy())
        for note in (note for note in monitor.notes if not LEFT_OUT.match(note) and note not in of_copy):
            self.note(SINCE.sub(lambda found: f"since {self.names[int(found[1]) - 1]}", note), name)
        if copy is not None:
            self.note(copy.note(self.names[copy.source - 1] if copy.source else self.name), name)

    def note(self, note: str, name: str) -> None:
        """Store a note on a batch; notes that differ only in numbers are combined, except those on alarms."""
        alike = note if note.startswith("the alarm") else re.sub(r"\d[\d.]*", "#", note)
        first, names, differ = self.notes.get(alike, (note, [], False))
        self.notes[alike] = first, [*names, name], differ or note != first

    @property
    def left_out(self) -> str:
        """A note on rows of the batches of this run that were left out, if any."""
        some = [each for each in self.new if each["left out"]]
        if not some:
            return ""
        gone, rows = sum(each["left out"] for each in some), sum(each["rows"] for each in self.new)
        where = ", ".join(f"{column!r} ({count})" for column, count in self.lost.items())
        return (
            f"{gone} of {rows} rows of {len(self.new)} batch{'es' * (len(self.new) != 1)} were left out: a value is "
            f"missing in {where}; --columns or --exclude leaves out columns instead"
        )

    def compared(self, monitor: Any) -> list[tuple[str, list[dict[str, Any]]]]:
        """The batches since the drift began, for the first and latest alarms, and how their columns differ.

        They are compared with the reference; without an alarm, only the last batch is.
        """
        if monitor.record is None:
            return []
        return [(drift.span(self.names), rows) for drift, rows in monitor.record.compared(True, self.known)]

    def lasts(self, monitor: Any) -> str:
        """Whether a drift lasts, since which of the batches, and what changed, as a sentence; else nothing."""
        if not monitor.lasting:
            return ""
        at = monitor.lasting.since
        since = f"{self.names[at - 1]} (batch {at} of {len(self.names)})"
        return f" {lasts_in(monitor, since, self.names)}"

    def ended(self, monitor: Any) -> str:
        """That a drift has ended in this run, as a sentence; else nothing."""
        now = monitor.ended is not None and monitor.ended.at > self.known
        return f" {ended_in(monitor, (), self.names)}" if now else ""

    def repeats(self, monitor: Any) -> list[str]:
        """The batches of this run whose alarms repeat a known drift, by name."""
        return [self.names[at - 1] for at in monitor.repeats if at > self.known]

    def each_alarm(self, monitor: Any) -> list[tuple[str, str]]:
        """The batches of each alarm of this run, and what changed in them."""
        return [] if monitor.record is None else monitor.record.each_alarm(self.known, self.names)

    def lacks_tables(self, monitor: Any) -> bool:
        """Whether tables of some alarms of this run are not kept."""
        return monitor.record is not None and monitor.record.lacks_tables(self.known)


def _gaps(data: dict[str, Any]) -> dict[str, np.ndarray]:
    """Whether values are missing, by column."""
    from meanmap.core.tables.missing import present

    return {name: ~present(column) for name, column in data.items()}


def complete(data: dict[str, Any]) -> "Table":
    """The rows without a missing value."""
    from meanmap.core.tables.missing import take
    from meanmap.core.tables.table import Table

    kept = np.flatnonzero(~np.any(list(_gaps(data).values()), axis=0))
    if not len(kept):
        return Table({name: np.zeros(0) for name in data})
    return Table.of({name: take(column, kept) for name, column in data.items()})
