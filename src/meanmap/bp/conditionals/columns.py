"""Columns of a table as numbers with gaps: standardised numbers and times, and an indicator for each label."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from meanmap.bp.beliefs.label_belief import LabelBelief
from meanmap.bp.variables import Variables, meant
from meanmap.core.door import Door
from meanmap.core.errors import InputError, KindError
from meanmap.core.held import holds_text, holds_truth
from meanmap.core.language import with_article
from meanmap.core.meant import names_none, no_column
from meanmap.core.moments import seconds, times_of
from meanmap.core.tables.column import Column
from meanmap.core.tables.filling import are_whole, nearest_whole, step_of
from meanmap.core.tables.kinds import ON_A_CIRCLE, Kind, nearest_levels, wanted_kind
from meanmap.core.tables.marks import policy_and_marks
from meanmap.core.tables.missing import present, take
from meanmap.core.types import Array, Data
from meanmap.core.values import label_shown
from meanmap.kernels.discrete import Delta
from meanmap.kernels.reading import read_points

__all__ = ["FAR", "CodedColumn", "CodedTable", "limits"]

# The most frequent labels, at most this many, have probabilities of their own given other columns. All others, and
# labels that were never seen, are one label for other columns; they share its probability by their frequencies.
MOST_LABELS = 50
# If wide tables have fewer separate labels, there are at least this many in each column.
LEAST_LABELS = 5
OTHERS = "(others)"
# Values further outside the range than this share of its width are noted, because regressions extrapolate there.
FAR = 0.5
# Standardised and brought back, a number is off by at most the share ROUNDING of it and of the mean. Values are
# frequent if a share FREQUENT of the rows has them, or if there are at most FEW.
ROUNDING, FREQUENT, FEW = 4 * float(np.finfo(float).eps), 0.02, 200
# The contents of a column are judged by up to this many rows, drawn by row number only: the same wherever a table lies.
MOST_LEARNED = 100_000
# The most labels that an error lists.
MOST_TOLD = 10


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """Translates one column to numbers, and numbers back to values of the column.

    Attributes
    ----------
    column : Column
        The column as it was read.
    centre, scale : float
        Of numbers; of times in seconds.
    labels : array (L,), or None
        As they came, the most frequent first, where they are no numbers.
    counts : array (L,), or None
        How often each came.
    own : int
        The number of labels with their own code.
    told : kind, optional
        The kind that was declared.
    whole : bool
        Whether it has whole numbers only, and no kind was declared.
    step : float
        Of whole or rounded numbers, which are multiples of it apart; else 0.
    limits : pair of float
        The limits of its numbers.
    frequent : array (F,)
        Numbers that many rows have, rising.
    """

    column: Column
    centre: float
    scale: float
    labels: np.ndarray | None
    counts: np.ndarray | None = None
    own: int = MOST_LABELS
    told: Kind | None = None
    whole: bool = False
    step: float = 0.0
    limits: tuple[float, float] = (-np.inf, np.inf)
    frequent: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(cls, name: Hashable, values: Data, kind: object = None) -> "CodedColumn":
        """Learn the code from a column, whose kind may be declared."""
        told = None if kind is None else wanted_kind(kind, values)
        if told in ON_A_CIRCLE:
            raise _circular(name, told)
        column = Column.of(name, (values,), ("data",), told)
        if column.kind in ("vector", "text", "whole object"):
            raise KindError(
                f"data[{name!r}] holds {column.kind}s; expected numbers, labels, truth values or times. Leave it out; "
                "mm.KernelGraph(tree) has kernels for it."
            )
        seen = column.read(take(values, np.flatnonzero(present(values))), "data", told)
        if holds_text(seen) or holds_truth(seen):
            found, counts = np.unique(seen, return_counts=True)
            order = np.argsort(-counts, kind="stable")
            return cls(column, 0.0, 1.0, found[order], counts[order], told=told)
        numbers = seconds(seen)
        whole = column.kind in ("number", "count") and told in (None, "count") and are_whole(numbers)
        centre, scale, within = float(np.mean(numbers)), float(np.std(numbers)) or 1.0, limits(numbers, column.kind)
        often, counts = np.unique(numbers, return_counts=True)
        step = step_of(often) if 2 * len(often) <= len(numbers) else 0.0
        often = often[(counts >= FREQUENT * len(numbers)) | (len(often) <= FEW)]
        return cls(
            column,
            centre,
            scale,
            None,
            told=told,
            whole=whole,
            step=step or float(whole),
            limits=within,
            frequent=often,
        )

    def seen(self, values: Data, argument: str) -> Any:
        """Values that are there as what the column holds."""
        return self.column.read(values, argument, self.told)

    @property
    def width(self) -> int:
        """The number of columns for one value: labels are coded as zeros and a one."""
        return 1 if self.labels is None else min(len(self.labels), self.own + 1)

    @property
    def states(self) -> list[Any]:
        """The label that each number stands for."""
        labels: Any = self.labels
        return labels.tolist() if len(labels) == self.width else [*labels[: self.own].tolist(), OTHERS]

    @cached_property
    def _within(self) -> np.ndarray:
        """The share of each label in the probability of its code, (L,)."""
        counts: Any = self.counts
        slots = np.minimum(np.arange(len(counts)), self.own)
        return counts / np.bincount(slots, counts)[slots]

    @cached_property
    def _new(self) -> float:
        """The probability of an unknown label: that of labels that occurred once (Good 1953)."""
        counts: Any = self.counts
        if self.column.kind == "boolean" and len(counts) == 2:
            return 0.0
        return max(int(np.sum(counts == 1)), 1) / (int(counts.sum()) + 1)

    def codes(self, seen: Array) -> np.ndarray:
        """The code of each label, −1 for unseen labels."""
        labels, seen = np.asarray(self.labels), np.asarray(seen)
        order = np.argsort(labels)
        place = order[np.minimum(np.searchsorted(labels, seen, sorter=order), len(labels) - 1)]
        return np.where(labels[place] == seen, place, -1)

    def numbers(self, values: Data, argument: str) -> np.ndarray:
        """Values of the column as numbers (n, width) in its own unit, times in seconds, NaN where one is missing."""
        there = present(values)
        result = np.full((len(there), self.width), np.nan)
        if there.any():
            seen = self.seen(take(values, np.flatnonzero(there)), argument)
            if self.labels is None:
                result[there, 0] = seconds(seen)
            else:
                labels, codes = self.labels, self.codes(seen)
                # If no labels are pooled, a label that was never seen is none of the known ones.
                slots = np.minimum(np.where(codes < 0, len(labels), codes), self.own)
                result[there] = slots[:, None] == np.arange(self.width)
        return result

    def label_belief(self, shares: np.ndarray) -> LabelBelief:
        """Probabilities (..., width) as a belief about all labels."""
        labels: Any = self.labels
        with Door() as door:
            points = read_points(Delta(), labels, "labels", door)
        slots = np.minimum(np.arange(len(labels)), self.own)
        return LabelBelief(Delta(), points, shares[..., slots] * self._within, tuple(labels.tolist()))

    def log_chances(self, values: Data, log_shares: np.ndarray, argument: str) -> np.ndarray:
        """Log probabilities of labels, from those of their codes (n,)."""
        codes = self.codes(self.seen(values, argument))
        with np.errstate(divide="ignore"):
            known, new = log_shares + np.log((1 - self._new) * self._within[codes]), np.log(self._new)
        return np.where(codes < 0, new, known)

    def named(self, numbers: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """The labels of numbers (n, width), any of the others where it is one of these."""
        labels: Any = self.labels
        codes = numbers.argmax(axis=1)
        others = np.flatnonzero(codes == self.own)
        if len(others):
            codes[others] = self.own + random.choice(len(labels) - self.own, len(others), p=self._within[self.own :])
        return labels[codes]

    def drawn(self, numbers: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Numbers (n, width) in its unit as the table has them."""
        return self.given(numbers[:, 0]) if self.labels is None else self.named(numbers, random)

    def seen_in(self, numbers: np.ndarray) -> np.ndarray:
        """Numbers (n, width) in its unit as values of the table; pooled labels as one."""
        if self.labels is None:
            return self.given(numbers[:, 0])
        return np.array([label_shown(each) for each in self.states], dtype=object)[numbers.argmax(axis=1)]

    def settled(self, numbers: np.ndarray) -> np.ndarray:
        """Numbers in its unit as values that it may have: whole ones where it has no others."""
        least: Any = self.column.low
        return nearest_whole(numbers, least) if self.whole else numbers

    def in_cells(self, values: np.ndarray) -> np.ndarray:
        """Values as what gaps of a table are filled with: the levels of an order by name."""
        return nearest_levels(values, self.told) if isinstance(self.told, tuple) else values

    def odd(self, values: Data, argument: str, name: Hashable) -> str:
        """Describe unusual values of the column: numbers far outside the data of the fit, and new labels."""
        there = np.flatnonzero(present(values))
        if not len(there):
            return ""
        return self.column.odd(self.seen(take(values, there), argument), f"{argument}[{name!r}]", far=FAR)

    def check_known(self, values: Data, argument: str, name: Hashable) -> None:
        """Refuse a label that was never seen, and a number beside the only two."""
        if self.labels is None:
            self.check_two(self.numbers(values, argument), f"{argument}[{name!r}]", name)
            return
        if (self.codes(self.seen(values, argument)) >= 0).all():
            return
        shown = sorted(map(str, self.labels))
        listed = ", ".join(map(repr, shown[:MOST_TOLD])) + (", ..." if len(shown) > MOST_TOLD else "")
        counts: Any = self.counts
        raise InputError(
            f"{argument}[{name!r}] has a label that none of the {counts.sum()} rows of the data has; expected one of "
            f"{listed}."
        )

    def check_two(self, numbers: np.ndarray, argument: str, name: Hashable) -> None:
        """Refuse numbers in its unit that are none of the only two, as .5 of 0 and 1."""
        if self.column.kind not in ("number", "count") or self.column.distinct != 2:
            return
        two: Any = (self.column.low, self.column.high)
        other = numbers[~(np.isin(numbers, two) | np.isnan(numbers))]
        if len(other):
            low, high = (f"{each:.15g}" for each in two)
            raise InputError(
                f"{argument} is {other[0]:.15g}; expected {low} or {high}, as {name!r} has no other value."
            )

    def read(self, values: Data, argument: str) -> np.ndarray:
        """Values of the column as standardised numbers (n, width), NaN where one is missing."""
        return (self.numbers(values, argument) - self.centre) / self.scale

    def back(self, numbers: np.ndarray) -> np.ndarray:
        """Standardised numbers as the table has them."""
        return self.given(self.settled(self.in_unit(numbers)))

    def in_unit(self, numbers: np.ndarray) -> np.ndarray:
        """Standardised numbers in the unit of the column, frequent values without rounding errors."""
        found = self.centre + self.scale * numbers
        if not len(self.frequent):
            return found
        middles = (self.frequent[1:] + self.frequent[:-1]) / 2
        nearest = self.frequent[np.searchsorted(middles, found)]
        return np.where(np.abs(found - nearest) <= ROUNDING * (abs(self.centre) + np.abs(nearest)), nearest, found)

    def given(self, values: np.ndarray) -> np.ndarray:
        """Numbers in the unit of the column as the table has them: times as times."""
        return times_of(values, self.column.kind) if self.column.kind in ("time", "duration") else values


@dataclass(frozen=True, eq=False)
class CodedTable:
    """The columns of a table side by side as numbers.

    Attributes
    ----------
    columns : dict
        How each is read.
    marks : tuple
        Values that stand for missing ones.
    """

    columns: Mapping[Hashable, CodedColumn]
    marks: tuple[Any, ...] = ()

    @classmethod
    def of(
        cls,
        data: Data,
        names: Sequence[Hashable] | None = None,
        missing: str = "pairwise",
        kinds: Mapping[Any, Any] | None = None,
        widest: int | None = None,
        most: int | None = None,
    ) -> tuple["CodedTable", dict[Hashable, np.ndarray], tuple[str, ...]]:
        """Code some or all columns of a table; also returns each as numbers (n, width) with NaN in gaps, and notes.

        If rows need more than `widest` numbers, rare labels are pooled. At most 100,000 rows are used, or `most`.
        """
        told = {str(name): kind for name, kind in meant(kinds).items()}
        found = Variables.of(data, names, most or MOST_LEARNED, missing, told)
        unknown = next((name for name in told if name not in set(map(str, found.values))), None)
        if unknown is not None:
            raise names_none("kinds", unknown, "the model", found.values)
        columns = {name: CodedColumn.of(name, values, told.get(str(name))) for name, values in found.values.items()}
        own, numbers = MOST_LABELS, {}
        while widest and own > LEAST_LABELS and sum(replace(c, own=own).width for c in columns.values()) > widest:
            own -= 1
        columns = {name: replace(column, own=own) for name, column in columns.items()}
        for name, column in columns.items():
            numbers[name] = np.full((len(found.there[name]), column.width), np.nan)
            numbers[name][found.there[name]] = column.numbers(found.values[name], "data")
        used, notes = len(next(iter(found.there.values()))), found.notes
        if used < found.rows:
            notes = (*notes, f"learned from {used} of {found.rows} rows, drawn at random.")
        return cls(columns, policy_and_marks(missing)[1]), numbers, notes

    @property
    def blocks(self) -> tuple[range, ...]:
        """The columns of numbers that stand for each variable."""
        ends = np.cumsum([column.width for column in self.columns.values()]).tolist()
        return tuple(range(e - c.width, e) for e, c in zip(ends, self.columns.values(), strict=True))

    @cached_property
    def _units(self) -> np.ndarray:
        return np.array([[c.centre, c.scale] for c in self.columns.values() for _ in range(c.width)]).T

    def standard(self, numbers: np.ndarray) -> np.ndarray:
        """Rows of numbers (n, d), each column in its standard deviation about its mean."""
        return (numbers - self._units[0]) / self._units[1]

    def standard_of(self, j: int, values: np.ndarray) -> np.ndarray:
        """Values of one column of numbers."""
        return (values - self._units[0, j]) / self._units[1, j]

    def numbers(self, raw: Mapping[Hashable, Any], size: int, argument: str) -> dict[Hashable, np.ndarray]:
        """The numbers of each variable in its unit, (size, width), with NaN in missing cells."""
        return {
            name: c.numbers(raw[name], argument) if name in raw else np.full((size, c.width), np.nan)
            for name, c in self.columns.items()
        }

    def standardised(self, numbers: Mapping[Hashable, np.ndarray]) -> dict[Hashable, np.ndarray]:
        """Numbers of each variable in its standard deviation about its mean."""
        return {name: (numbers[name] - c.centre) / c.scale for name, c in self.columns.items()}

    def oddities(self, raw: Mapping[Hashable, Any], argument: str) -> tuple[str, ...]:
        """Notes on unusual values of columns: numbers far outside the data of the fit, and new labels."""
        told = (c.odd(raw[name], argument, name) for name, c in self.columns.items() if name in raw)
        return tuple(note for note in told if note)

    @property
    def labels(self) -> dict[Hashable, list[Any]]:
        """The labels of each column of labels that have a code of their own."""
        return {name: column.states[: column.own] for name, column in self.columns.items() if column.labels is not None}

    def codes(self, numbers: Mapping[Hashable, np.ndarray]) -> dict[Hashable, np.ndarray]:
        """The places of labels among these, (n,), from numbers (n, width); −1 of others and in gaps."""
        found = {name: np.nan_to_num(numbers[name][:, : len(labels)]) for name, labels in self.labels.items()}
        return {name: np.where(each.any(axis=1), each.argmax(axis=1), -1) for name, each in found.items()}

    def place(self, name: Hashable) -> int:
        """The number of a column."""
        if str(name) not in self.columns:
            raise no_column("the model", name, self.columns)
        return list(self.columns).index(str(name))

    @property
    def shown(self) -> str:
        """The names of variables, ten at most."""
        return ", ".join(map(repr, list(self.columns)[:10]))


def _circular(name: Hashable, kind: Any) -> KindError:
    """The refusal of a column that is declared as a point on a circle, and what to pass instead."""
    part, words = ON_A_CIRCLE[kind]
    label = f"its {part} as a label" + (f", for example pd.to_datetime(data[{name!r}]).{words}" if words else "")
    return KindError(
        f"data[{name!r}] is declared as {with_article(kind)}, a point on a circle; expected numbers, labels, truth "
        f"values or times. Pass {label}; or its cosine and its sine as two columns, which in a graph both have its "
        "arrows."
    )


def limits(values: np.ndarray, kind: str) -> tuple[float, float]:
    """The range of a column with these values: one sign if all have it, and [0, 1] if all lie there.

    Examples
    --------
    >>> limits(np.array([0.2, 3.0]), "number"), limits(np.array([0.2, 0.9]), "number")
    ((0.0, inf), (0.0, 1.0))
    """
    low, high = float(np.min(values)), float(np.max(values))
    if kind == "time":
        return -np.inf, np.inf
    return 0.0 if low >= 0 else -np.inf, 0.0 if high <= 0 else 1.0 if low >= 0 and high <= 1 else np.inf
