"""The rows and means of batches that a monitor keeps, to show which columns moved and by how much."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from meanmap.core.tables.kinds import family_of
from meanmap.core.values import Value
from meanmap.stats.samples.drift_alike import Change, changes_in, is_known
from meanmap.stats.samples.drift_columns import Rows, moved_columns, over_time, share_of, typical, without_numbers
from meanmap.stats.samples.drift_copies import Copies, Copy
from meanmap.stats.samples.drift_frequent import FrequentLabels
from meanmap.stats.samples.drift_gaps import Gaps
from meanmap.stats.samples.drift_observed import columns_of_rows, of_one_number
from meanmap.stats.samples.drift_persistent import Persistent
from meanmap.stats.samples.drift_tally import rows_with
from meanmap.stats.samples.drift_unseen import UNSEEN, rows_alone
from meanmap.stats.samples.drift_words import RARELY, change_in, clear_in, in_one_line
from meanmap.stats.samples.run_length import ALLOWANCE

__all__ = ["MOST_EXPLAINED", "Compared", "Drift", "Record", "by_column"]

# The number of alarms explained column by column: the first and the latest ones.
MOST_EXPLAINED = 5
# The number of rows of a batch that are kept for tables of its columns.
MOST_ROWS = 20_000


@dataclass(frozen=True, eq=False, repr=False)
class Seen(Value):
    """A batch by its number, its rows, the evidence after it (of its values, and of missing values), and the
    probability of each lost label, and of cells far outside of each column, if they raised an alarm that has not ended.
    """

    number: int
    rows: Rows
    evidence: float
    missing: float
    causes: dict[Any, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class Span(Value):
    """The batches since a drift began, from the first to the last by number."""

    first: int
    last: int

    def span(self, names: Sequence[str] = ()) -> str:
        """The batches as a text, by number or by the names of all batches."""
        if names:
            return " to ".join(dict.fromkeys([names[self.first - 1], names[self.last - 1]]))
        return f"batch {self.first}" if self.first == self.last else f"batches {self.first} to {self.last}"


@dataclass(frozen=True, eq=False, repr=False)
class Brief(Span):
    """A drift whose rows are no longer kept: what changed, as a text, in which columns, in which of these surely, and
    whether an earlier drift went on; the clearest change of each column as a text and by its size; all changes of these
    columns, and those that are sure.
    """

    changed: str
    named: tuple[Any, ...] = ()
    surely: tuple[Any, ...] = ()
    goes_on: bool = False
    told: dict[Any, str] = field(default_factory=dict)
    clearest: dict[Any, Change] = field(default_factory=dict)
    moved: tuple[Change, ...] = ()
    sure: tuple[Change, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Drift(Span):
    """A drift with its rows, the reference, the causes of its alarm other than p-values, and whether an earlier drift
    went on.
    """

    rows: Rows
    reference: Rows
    seed: int
    causes: dict[Any, float] = field(default_factory=dict)
    goes_on: bool = False

    @cached_property
    def columns(self) -> list[dict[str, Any]]:
        """The difference of each column from the reference, computed when first needed; these causes come first. Where
        the interval of a mean contains zero, the cause is the column's distribution, unless cells are far outside.
        """
        moved = moved_columns(self.reference, self.rows, self.seed)
        first: dict[int, Any] = {}
        for key in self.causes:
            at = _place(moved, *key)
            first |= {} if at is None else {at: first.get(at, key)}
        causes, told = [row for key in self.causes if (row := self._of_label(moved, *key)) is not None], set[int]()
        for at, key in first.items():
            row, pvalue = moved[at], self.causes[key]
            known = row["clear"] or row["label"] is not None or row["of"] == "missing" or key[1] == "far"
            if known or not any(row["cells"]):
                causes.append({**row, "pvalue": pvalue, "clear": True})
                told.add(at)
            else:
                causes.append(without_numbers(row["column"], f"distribution of {row['column']}", pvalue, True))
        said = {row["what"] for row in causes}
        return [*causes, *(row for at, row in enumerate(moved) if at not in told and row["what"] not in said)]

    def _of_label(
        self, moved: Sequence[Mapping[str, Any]], column: str, what: str, label: str | None
    ) -> dict[str, Any] | None:
        """The row of a label that caused the alarm, if none of those that moved is on it; that of labels of one row."""
        if what == UNSEEN:
            shares = rows_alone(self.reference.observed[column], self.rows.observed[column])
            row = share_of(column, "", *shares) | {"label": None, "of": ""}
            return row | {"what": f"labels of {column} in no other row", "pvalue": self.causes[column, what, label]}
        if what != "share" or not label or _place(moved, column, what, label) is not None:
            return None
        parts = [rows.observed[column] for rows in (self.reference, self.rows)]
        shares = [rows_with(part, label) / len(part) for part in parts]
        named = {} if family_of(parts[0]) != "number" else {"what": f"share of {column} = {float(label):g}"}
        return share_of(column, label, *shares) | named | {"pvalue": self.causes[column, what, label]}

    @property
    def changed(self) -> str:
        """What changed, as a text."""
        return in_one_line(self.columns)

    @property
    def named(self) -> tuple[Any, ...]:
        """The columns that clearly changed by themselves, those of missing values apart."""
        return _keys(clear_in(self.columns))

    @property
    def surely(self) -> tuple[Any, ...]:
        """Those of them whose p-values are small: in a row of alarms others are named by chance now and then."""
        return _keys([row for row in clear_in(self.columns) if row["pvalue"] <= RARELY])

    @property
    def told(self) -> dict[Any, str]:
        """The clearest change of each of the named columns, as a text."""
        return {_key(row): change_in(row) for row in reversed(clear_in(self.columns))}

    @property
    def clearest(self) -> dict[Any, Change]:
        """The clearest change of each of the named columns, by its size."""
        return {_key(row): Change.of(row) for row in reversed(clear_in(self.columns))}

    @property
    def moved(self) -> tuple[Change, ...]:
        """All changes of the named columns."""
        return changes_in([row for row in self.columns if _key(row) in self.named])

    @property
    def sure(self) -> tuple[Change, ...]:
        """Those that are clear, of columns whose p-values are small."""
        return changes_in([row for row in clear_in(self.columns) if row["pvalue"] <= RARELY])


# A drift, and a row for each column, with the values of all batches.
Compared = list[tuple[Drift, list[dict[str, Any]]]]


@dataclass(frozen=True, eq=False, repr=False)
class Record(Value):
    """The reference, the batches since evidence was last zero, and those of the first and the latest four alarms.

    Attributes
    ----------
    reference : Rows
        At most as many rows as the pool can hold.
    copies : Copies
    copied : tuple or None
        If the latest batch is a copy: the number of the earlier batch, or 0 for the reference; the number of rows that
        are also there; the number of all rows; and whether both have exactly these rows.
    batches : tuple of dict
        Means and shares of the columns of each batch.
    since : tuple of Seen
    drifts : tuple of Drift
    earlier : tuple of Brief
        The drifts between the first and the latest four.
    """

    reference: Rows
    copies: Copies
    copied: tuple[int, int, int, bool] | None = None
    batches: tuple[dict[str, Any], ...] = ()
    since: tuple[Seen, ...] = ()
    drifts: tuple[Drift, ...] = ()
    latest: Seen | None = None
    earlier: tuple[Brief, ...] = ()

    @classmethod
    def of(
        cls,
        reference: Any,
        own: Mapping[str, np.ndarray],
        gaps: Gaps | None,
        circles: Mapping[str, str],
        most: int,
        seed: int,
    ) -> "Record | None":
        """The record before the first batch, with at most `most` rows of the reference, and as many values of its `own`
        columns; None without columns. `circles` has the kinds of columns on a circle.
        """
        columns = columns_of_rows(reference)
        if not columns:
            return None
        found = {} if gaps is None else by_column(dict(zip(gaps.names, gaps.pool.T, strict=True)), columns)
        rows = Rows(columns, found, _wider(own, columns), dict(circles))
        return cls(rows.some(most, np.random.default_rng([seed, 2])), Copies.of(_single(columns)))

    def step(self, data: Any, own: Mapping[str, np.ndarray], gaps: Mapping[str, np.ndarray], monitor: Any) -> "Record":
        """The record after the latest batch, from its complete rows, all values of its columns, and what is missing."""
        compared = {} if data is None else columns_of_rows(data)
        there = {name: column for name, column in compared.items() if name not in monitor.apart}
        rows = Rows(there, by_column(gaps, self.reference.columns), _wider(own, there), self.reference.circles)
        columns, number = _single(rows.columns), len(monitor.pvalues)
        copy = self.copies.find(columns)
        lost = 0.0 if monitor.gaps is None else float(monitor.gaps.evidence[-1])
        sources = (monitor.persistent, monitor.labels, monitor.frequent, monitor.far)
        causes = {key: p for each in sources if each is not None for key, p in each.causes.items()}
        some = rows.some(MOST_ROWS, np.random.default_rng([monitor.seed, number, 2]))
        seen = Seen(number, some, float(monitor.evidence[-1]), lost, causes)
        since, drifts = self._kept(seen, monitor.persistent, monitor.frequent), self.drifts
        earlier = self.earlier
        if monitor.alarm:
            values = monitor.exceeded(seen.evidence, monitor.pvalues[-1])
            missing = monitor.gaps is not None and monitor.exceeded(lost, monitor.gaps.pvalues[-1])
            begun = [_since(since, "evidence" if values else "missing")] if values or missing else []
            if monitor.persistent is not None and monitor.persistent.alarm:
                begun.append(tuple(each for each in since if each.number >= monitor.persistent.since))
            if monitor.frequent is not None and monitor.frequent.raised:
                some = tuple(each for each in since if each.number > number - monitor.frequent.since)
                begun.append(_holding(some, monitor.frequent.causes))
            parts = min(begun, key=len, default=(seen,)) or (seen,)
            together = Rows.joined([part.rows for part in parts])
            goes_on = monitor.lasting is not None
            drift = Drift(parts[0].number, number, together, self.reference, monitor.seed, causes, goes_on)
            if len(drifts) == MOST_EXPLAINED:
                first, left, *drifts = drifts
                drifts, earlier = [first, *drifts], (*earlier, _brief(left))
            drifts, since = (*drifts, drift), ()
        return replace(
            self,
            copies=self.copies.step(columns, number),
            copied=None if copy is None else tuple(copy),
            batches=(*self.batches, typical(rows)),
            since=since,
            drifts=drifts,
            latest=seen,
            earlier=earlier,
        )

    def _kept(self, seen: Seen, persistent: Persistent | None, frequent: FrequentLabels | None) -> tuple[Seen, ...]:
        """The batches with which a drift may have begun, to the latest."""
        every = (*self.since, seen)
        if max(seen.evidence, seen.missing) > 0:
            return every
        first = [persistent.since] if persistent is not None and persistent.evidence[-1] else []
        first += [seen.number - frequent.since + 1] if frequent is not None and frequent.since else []
        return tuple(each for each in every if each.number >= min(first)) if first else ()

    def note_on_copy(self) -> tuple[str, ...]:
        """A note if the latest batch is a copy."""
        copy = self.copy
        return () if copy is None else (copy.note(f"batch {copy.source}" if copy.source else "the reference"),)

    @property
    def copy(self) -> Copy | None:
        """The batch or reference that the latest batch copies."""
        return None if self.copied is None else Copy(*self.copied)

    def compared(self, last: bool = False, known: int = 0) -> Compared:
        """The alarms, and for each the differences of columns from the reference in the batches since drift began. If
        there is no alarm, the columns of the last batch with `last`. Alarms up to the batch `known` are left out.
        """
        drifts = [drift for drift in self.drifts if drift.last > known]
        if not drifts and last and self.latest is not None:
            number, rows = self.latest.number, self.latest.rows
            drifts = [Drift(number, number, rows, self.reference, 0, self.latest.causes)]
        return [
            (drift, [{**row, "over time": over_time(row, self.batches)} for row in drift.columns]) for drift in drifts
        ]

    @property
    def every(self) -> tuple[Drift | Brief, ...]:
        """All drifts, one for each alarm, in their order."""
        return tuple(sorted((*self.drifts, *self.earlier), key=lambda drift: drift.last))

    @property
    def repeats(self) -> tuple[int, ...]:
        """The batches of alarms that repeat a drift that went on: all that surely changed did so at an earlier alarm of
        it, in the same direction and by about as much.
        """
        found, known = [], tuple[Change, ...]()
        for drift in self.every:
            if drift.goes_on and is_known(drift.sure, known):
                found.append(drift.last)
            known = (*known, *drift.moved) if drift.goes_on else drift.moved
        return tuple(found)

    def lacks_tables(self, known: int = 0) -> bool:
        """Whether tables of some alarms after the batch `known` are not kept."""
        return bool(self.earlier) and self.earlier[-1].last > known

    def each_alarm(self, known: int = 0, names: Sequence[str] = ()) -> list[tuple[str, str]]:
        """The batches of each alarm after the batch `known`, and what changed in them."""
        return [(drift.span(names), drift.changed) for drift in self.every if drift.last > known]


def _brief(drift: Drift) -> Brief:
    said = drift.changed, drift.named, drift.surely, drift.goes_on, drift.told
    return Brief(drift.first, drift.last, *said, drift.clearest, drift.moved, drift.sure)


def _keys(rows: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(map(_key, rows)))


def _key(row: Mapping[str, Any]) -> tuple[Any, bool]:
    return row["column"], row["of"] == "missing"


def _wider(own: Mapping[str, np.ndarray], columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The columns with more values than there are complete rows."""
    return {name: column for name, column in own.items() if len(column) > len(columns.get(name, column))}


def _single(columns: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    return list(of_one_number(columns).values())


def _place(moved: Sequence[Mapping[str, Any]], column: str, what: str, label: str | None) -> int | None:
    """The place of the row on the moment of a column, of its mean if that has none; None if there is neither."""
    of_column = [at for at, row in enumerate(moved) if row["column"] == column and row["label"] == label]
    values = [at for at in of_column if (moved[at]["of"] == "missing") == (what == "missing")]
    exact = [at for at in values if moved[at]["what"].startswith("mean" if what == "far" else what)]
    return next(iter([*exact, *values]), None)


def by_column(gaps: Mapping[str, np.ndarray], columns: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Missing values by the plain name of their column, without the quotes of notes."""
    names = {repr(name): name for name in columns} | {"it": "value"}
    return {names.get(name, name): missing for name, missing in gaps.items()}


def _holding(seen: tuple[Seen, ...], causes: Mapping[tuple[str, str, str], float]) -> tuple[Seen, ...]:
    """The batches from the first one that has a row with one of these values."""
    held = [
        any(rows_with(each.rows.observed[name], value) for name, _, value in causes if name in each.rows.observed)
        for each in seen
    ]
    return seen[held.index(True) :] if any(held) else seen


def _since(seen: tuple[Seen, ...], raised: str) -> tuple[Seen, ...]:
    """The batches of a drift: of those after evidence was last zero (Page 1954) the latest ones whose normal scores
    have the largest sum relative to its standard deviation, the most likely beginning of a shift of these scores.
    """
    quiet = [at for at, each in enumerate(seen) if getattr(each, raised) == 0]
    seen = seen[quiet[-1] + 1 if quiet else 0 :]
    scores = np.diff([0.0, *(getattr(each, raised) for each in seen)]) + ALLOWANCE
    sums = np.cumsum(scores[::-1])[::-1] / np.sqrt(np.arange(len(seen), 0, -1))
    return seen[int(np.argmax(sums)) :]
