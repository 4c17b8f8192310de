"""The batches of `meanmap drift`, and how the columns of those that drifted differ from the reference."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from meanmap.cli.drift_state import Kept
from meanmap.core.values import label_text

if TYPE_CHECKING:
    from meanmap.core.tables.table import Table
    from meanmap.stats.samples.by_column import ColumnDifference

__all__ = ["LEVEL", "MOST_EXPLAINED", "Watched", "complete"]

# The spread of a column, and a value that became frequent, are also shown if its p-value is at most this. The spread is
# shown where the mean hardly differs or it differs by so many standard errors itself; a value if chance is this small.
LEVEL, ERRORS, CHANCE = 0.05, 4.0, 1e-4
# So many alarms are explained column by column, the first and the latest ones.
MOST_EXPLAINED = 5
# What the monitor says of rows that were left out: they are counted over all batches here.
LEFT_OUT = re.compile(r"\d+ of \d+ rows of batch (was|were) left out")


class Seen(NamedTuple):
    """A batch, and the evidence after it: of its values, and of missing values."""

    name: str
    rows: dict[str, Any]
    evidence: float
    missing: float


@dataclass
class Watched:
    """The results for each batch, and the rows since drift began."""

    name: str
    data: dict[str, Any]
    within: list[str]
    gaps: bool = False
    batches: list[dict[str, Any]] = field(default_factory=list)
    values: list[dict[str, Any]] = field(default_factory=list)
    notes: dict[str, tuple[str, list[str], bool]] = field(default_factory=dict)
    latest: list[Seen] = field(default_factory=list)
    since: list[Seen] = field(default_factory=list)
    drifted: list[list[Seen]] = field(default_factory=list)
    lost: Counter[str] = field(default_factory=Counter)
    unread: dict[str, str] = field(default_factory=dict)
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
        self.lost.update({column: int(gaps.sum()) for column, gaps in _gaps(batch).items() if gaps.any()})
        about: dict[str, Any] = {"batch": name, "rows": number, "left out": number - len(rows)}
        about |= {"pvalue": float(monitor.pvalues[-1]), "evidence": float(monitor.evidence[-1])}
        about |= {"alarm": monitor.alarm}
        if self.gaps:
            about |= {"missing pvalue": float(monitor.gaps.pvalues[-1])}
            about |= {"missing evidence": float(monitor.gaps.evidence[-1])}
        self.batches.append(about)
        for note in (note for note in monitor.notes if not LEFT_OUT.match(note)):
            self.note(note, name)
        self.latest = [Seen(name, batch, about["evidence"], about.get("missing evidence", 0.0))]
        self.since = [*self.since, *self.latest] if max(self.latest[0][2:]) > 0 else []
        if monitor.alarm:
            self.drifted.append(_since(self.since, "evidence" if about["evidence"] > monitor.limit else "missing"))
            self.since = []

    def note(self, note: str, name: str) -> None:
        """Store a note on a batch; notes that differ only in numbers are combined, except those on alarms."""
        alike = note if note.startswith("the alarm") else re.sub(r"\d[\d.]*", "#", note)
        first, names, differ = self.notes.get(alike, (note, [], False))
        self.notes[alike] = first, [*names, name], differ or note != first

    @property
    def left_out(self) -> str:
        """A note on rows of the batches of this run that were left out, where there are any."""
        some = [each for each in self.new if each["left out"]]
        if not some:
            return ""
        gone, rows = sum(each["left out"] for each in some), sum(each["rows"] for each in self.new)
        where = ", ".join(f"{column!r} ({count})" for column, count in self.lost.items())
        return (
            f"{gone} of {rows} rows of {len(self.new)} batch{'es' * (len(self.new) != 1)} were left out: a value is "
            f"missing in {where}; --columns or --exclude leaves out columns instead"
        )

    def compared(self, kinds: dict[str, Any], seed: int) -> list[tuple[str, list[dict[str, Any]]]]:
        """For the first and the latest alarms the batches since the drift began, and how their columns differ from the
        reference; without an alarm those of the last batch.
        """
        found = []
        for parts in [*self.drifted[:1], *self.drifted[1:][1 - MOST_EXPLAINED :]] or [self.latest]:
            names = [each.name for each in parts]
            span = " to ".join(dict.fromkeys([*names[:1], *names[-1:]]))
            found.append((span, self._columns([each.rows for each in parts], kinds, seed)))
        return found

    def _columns(self, parts: list[dict[str, Any]], kinds: dict[str, Any], seed: int) -> list[dict[str, Any]]:
        """Column by column: the reference, these batches, their difference, and all batches; "cells" are the first
        three in words.
        """
        import meanmap as mm
        from meanmap.stats.samples.comparing import differences

        if self.within or not parts:  # pooled rows would also differ by the shares of strata
            return []
        together = {name: _joined([part[name] for part in parts]) for name in self.data}
        found = self._missing(together)
        reference, rows = complete(self.data), complete(together)
        both = [(reference.columns[name], rows.columns[name]) for name in reference.names] if len(rows) > 1 else []
        if all((one[:1] == part).all() for one, other in both for part in (one, other)):  # constant columns
            return found
        pvalues = mm.two_sample_test(reference, rows, kinds=kinds, rng=seed).column_pvalues(rng=seed)
        compared = differences(reference, rows)
        shown = [(each.column, each.label) for each in compared]
        for each in compared:
            seen = [values["typical"][each.column] for values in self.values if values["typical"]]
            (what, *cells), said = each.cells(), each.to_dict()
            row = {"column": each.column, "what": what, "reference": said["first"], "batches": said["second"]}
            row |= {"difference": {end: said[end] for end in ("estimate", "low", "high")}}
            row |= {"pvalue": pvalues.get(each.column), "clear": each.clear}
            row |= {"over time": _over_time(each, seen)}
            found.append({**row, "cells": cells})
            if each.medians is None or each.without is not None or pvalues.get(each.column, 1.0) > LEVEL:
                continue
            before, here = (np.asarray(t.columns[each.column], float) for t in (reference, rows))
            other = {"difference": None, "over time": []}
            if not each.clear or _spreads_differ(before, here):
                for what, pair in (("sd", (_sd(before), _sd(here))), ("median", each.medians)):
                    cells = [*(f"{number:.4g}" for number in pair), ""]
                    other |= {"what": f"{what} {each.column}", "reference": float(pair[0]), "batches": float(pair[1])}
                    other |= {"clear": _spreads_differ(before, here) if what == "sd" else None}  # medians: no test
                    found.append({**row, **other, "cells": cells})
            if (frequent := _frequent(before, here)) is None:
                continue
            value, *shares = frequent
            if (each.column, label_text(value)) not in shown:
                other |= {"what": f"share of {each.column} = {value:g}", "reference": shares[0], "batches": shares[1]}
                other |= {"clear": True}
                found.append({**row, **other, "cells": [*(f"{100 * share:.3g} %" for share in shares), ""]})
        sizes = {name: _distance(*pair) for name, pair in zip(reference.names, both, strict=True)}
        return sorted(found, key=lambda row: (1.0 if row["pvalue"] is None else row["pvalue"], -_size(row, sizes)))

    def _missing(self, together: dict[str, Any]) -> list[dict[str, Any]]:
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
            row = {"column": name, "what": f"missing {name}", "reference": first, "batches": second}
            row |= {"difference": {"estimate": second - first, "low": None, "high": None}}
            row |= {"pvalue": pvalue if second > first else None, "clear": pvalue <= LEVEL}  # fewer are not drift
            row |= {"over time": [values["missing"].get(name, 0.0) for values in self.values]}
            cells = [f"{100 * first:.3g} %", f"{100 * second:.3g} %", f"{100 * (second - first):.3g} points"]
            found.append({**row, "cells": cells})
        return found


def _over_time(difference: "ColumnDifference", seen: list[Any]) -> list[float]:
    """The mean of each batch, or the share of a label; none of parts of a column of numbers."""
    if seen and not isinstance(seen[0], dict):
        return seen if difference.label is None and difference.without is None else []
    return [shares.get(difference.label, 0.0) for shares in seen]


def _since(seen: list[Seen], raised: str) -> list[Seen]:
    """The batches of a drift: from the first one after evidence was last zero (Page 1954) that added at least a quarter
    as much evidence as any since, so that a clean batch before a sudden change is no part of it.
    """
    quiet = [at for at, each in enumerate(seen) if getattr(each, raised) == 0]
    seen = seen[quiet[-1] + 1 if quiet else 0 :]
    added = np.diff([0.0, *(getattr(each, raised) for each in seen)])
    return seen[int(np.argmax(added >= added.max() / 4)) :]


def _size(row: dict[str, Any], sizes: dict[str, float]) -> float:
    """How far the column of a row has changed by itself, from 0 to 1: of columns with one p-value the first is not one
    that is only related to another.
    """
    if row["what"] == f"missing {row['column']}":
        return abs(row["batches"] - row["reference"])
    return sizes[row["column"]]


def _distance(first: np.ndarray, second: np.ndarray) -> float:
    """Between the distributions of a column: the larger of the greatest differences of distribution functions and of
    shares of one value, or the total variation distance of labels.
    """
    from meanmap.core.tables.kinds import family_of

    values, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    parts = codes[: len(first)], codes[len(first) :]
    change = np.subtract(*(np.bincount(part, minlength=len(values)) / len(part) for part in parts))
    if family_of(first) in ("label", "boolean"):
        return float(np.abs(change).sum() / 2)
    return float(max(np.abs(np.cumsum(change)).max(), np.abs(change).max()))


def _sd(column: np.ndarray) -> float:
    """The standard deviation, without rounding errors where all values are equal."""
    return float(column.std()) if column.min() < column.max() else 0.0


def _spreads_differ(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether standard deviations differ by many standard errors; those of log sd are √((kurtosis − 1) / 4n)."""
    sds = _sd(first), _sd(second)
    if min(sds) == 0.0:
        return max(sds) > 0.0
    kurtoses = (np.mean(((each - each.mean()) / sd) ** 4) for each, sd in zip((first, second), sds, strict=True))
    variance = sum((kurtosis - 1) / (4 * len(each)) for kurtosis, each in zip(kurtoses, (first, second), strict=True))
    return bool(abs(np.log(sds[0] / sds[1])) > ERRORS * np.sqrt(variance))


def _frequent(first: np.ndarray, second: np.ndarray) -> tuple[float, float, float] | None:
    """The most frequent value of `second` and its share in both, if it became more frequent than chance explains."""
    from scipy.stats import hypergeom

    values, counts = np.unique(second, return_counts=True)
    value, here = values[counts.argmax()], int(counts.max())
    before = np.count_nonzero(first == value)
    chance = hypergeom.sf(here - 1, len(first) + len(second), before + here, len(second)) * len(values)
    if here == 1 or chance > CHANCE:
        return None
    return float(value), before / len(first), here / len(second)


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
