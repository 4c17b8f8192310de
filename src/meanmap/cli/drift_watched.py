"""The batches of `meanmap drift`, and how the columns of those that drifted differ from the reference."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from meanmap.cli.drift_state import Kept
from meanmap.core.values import label_text

if TYPE_CHECKING:
    from meanmap.core.tables.table import Table

__all__ = ["Watched", "complete"]

# The spread of a column is also shown if its p-value is at most this and its mean hardly differs.
LEVEL = 0.05


@dataclass
class Watched:
    """The results for each batch, and the rows since drift began."""

    name: str
    data: dict[str, Any]
    within: list[str]
    gaps: bool
    batches: list[dict[str, Any]] = field(default_factory=list)
    values: list[dict[str, Any]] = field(default_factory=list)
    notes: dict[str, tuple[str, list[str], bool]] = field(default_factory=dict)
    latest: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    since: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    drifted: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    known: int = 0

    def begin(self, before: "Kept | None") -> None:
        """Continue after the batches of an earlier run."""
        if before is not None:
            self.batches, self.values, self.known = list(before.batches), list(before.values), len(before.batches)

    @property
    def new(self) -> list[dict[str, Any]]:
        """The batches of this run."""
        return self.batches[self.known :]

    def add(self, name: str, batch: dict[str, Any], monitor: Any) -> None:
        """Add the batch that the monitor has just seen."""
        rows = complete(batch)
        typical = {column: _typical(rows.columns[column]) for column in batch} if len(rows) else {}
        gone = {column: float(gaps.mean()) for column, gaps in _gaps(batch).items()} if self.gaps else {}
        self.values.append({"typical": typical, "missing": gone})
        number = len(next(iter(batch.values())))
        about: dict[str, Any] = {"batch": name, "rows": number, "pvalue": float(monitor.pvalues[-1])}
        about |= {"evidence": float(monitor.evidence[-1]), "alarm": monitor.alarm}
        if self.gaps:
            about |= {"missing pvalue": float(monitor.gaps.pvalues[-1])}
            about |= {"missing evidence": float(monitor.gaps.evidence[-1])}
        self.batches.append(about)
        for note in monitor.notes:
            self.note(note, name)
        # The estimated start of the drift is the batch after the evidence was last zero (Page 1954).
        begun = about["evidence"] > 0 or about.get("missing evidence", 0.0) > 0
        self.latest = [(name, batch)]
        self.since = [*self.since, (name, batch)] if begun else []
        if monitor.alarm:
            self.drifted, self.since = self.since, []

    def note(self, note: str, name: str) -> None:
        """Store a note on a batch; notes that differ only in numbers are combined, except those on alarms."""
        alike = note if note.startswith("the alarm") else re.sub(r"\d[\d.]*", "#", note)
        first, names, differ = self.notes.get(alike, (note, [], False))
        self.notes[alike] = first, [*names, name], differ or note != first

    @property
    def span(self) -> str:
        """The batches that are compared with the reference column by column."""
        names = [name for name, _ in self.drifted or self.latest]
        return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"

    def columns(self, kinds: dict[str, Any], seed: int) -> list[dict[str, Any]]:
        """Column by column: the reference, the batches that drifted (or the last), the difference, and all batches."""
        import meanmap as mm
        from meanmap.stats.samples.by_column import differences

        parts = [batch for _, batch in self.drifted or self.latest]
        if self.within or not parts:  # pooled rows would also differ by the shares of strata
            return []
        together = {name: _joined([part[name] for part in parts]) for name in self.data}
        found = self._lost(together)
        reference, rows = complete(self.data), complete(together)
        both = [(reference.columns[name], rows.columns[name]) for name in reference.names] if len(rows) > 1 else []
        if all((one[:1] == part).all() for one, other in both for part in (one, other)):  # constant columns
            return found
        pvalues = mm.two_sample_test(reference, rows, kinds=kinds, rng=seed).column_pvalues(rng=seed)
        for each in differences(reference, rows):
            what, first, second, by = each.cells()
            seen = [values["typical"][each.column] for values in self.values if values["typical"]]
            over_time = seen if each.label is None else [shares.get(each.label, 0.0) for shares in seen]
            facts = {"column": each.column, "what": what, "reference": first, "batches": second, "difference": by}
            found.append(facts | {"pvalue": pvalues.get(each.column), "clear": each.clear, "over time": over_time})
            if each.medians is not None and pvalues.get(each.column, 1.0) <= LEVEL and not each.clear:
                sds = (float(np.std(np.asarray(t.columns[each.column], float))) for t in (reference, rows))
                first, second = (f"{sd:.4g}" for sd in sds)
                found.append(found[-1] | {"what": f"sd {each.column}", "reference": first, "batches": second})
                found[-1] |= {"difference": "", "over time": []}
        return sorted(found, key=lambda each: 1.0 if each["pvalue"] is None else each["pvalue"])

    def _lost(self, together: dict[str, Any]) -> list[dict[str, Any]]:
        """Columns with missing values, in the reference and in these rows."""
        if not self.gaps:
            return []
        from meanmap.stats.samples.drift_gaps import Gaps

        before, here = _gaps(self.data), _gaps(together)
        compared = Gaps(tuple(before), np.stack(list(before.values()), axis=1))
        compared = compared.step(here, False, np.random.default_rng(0))
        found = []
        for name, pvalue in compared.columns.items():
            first, second = compared.shares[name]
            facts = {"column": name, "what": f"missing {name}", "reference": f"{100 * first:.3g} %"}
            facts |= {"batches": f"{100 * second:.3g} %", "difference": f"{100 * (second - first):.3g} points"}
            over_time = [values["missing"].get(name, 0.0) for values in self.values]
            more = pvalue if second > first else None  # fewer missing values are not drift
            found.append(facts | {"pvalue": more, "clear": pvalue <= LEVEL, "over time": over_time})
        return found


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


def _joined(parts: Sequence[Any]) -> Any:
    """One column of several batches, end to end."""
    return (np.ma if any(map(np.ma.isMaskedArray, parts)) else np).concatenate(parts)


def _typical(column: np.ndarray) -> Any:
    """The mean of numbers or times (in seconds), or the share of rows that each label has."""
    from meanmap.core.moments import seconds
    from meanmap.core.tables.kinds import family_of

    family = family_of(column)
    if family in ("label", "boolean"):
        labels, counts = np.unique(column, return_counts=True)
        return {label_text(label): count / len(column) for label, count in zip(labels, counts.tolist(), strict=True)}
    return float(np.mean(column if family == "number" else seconds(column, "batch")))
