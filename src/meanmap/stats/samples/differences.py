"""The differences of all columns between samples: which are shown to differ, as a table and as sentences."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np

from meanmap.core.language import in_python, with_and
from meanmap.core.values import Value, frame_of
from meanmap.stats.result import Interval
from meanmap.stats.samples.by_column import ColumnDifference
from meanmap.stats.samples.deviations import LEAST_UNITS
from meanmap.stats.samples.relations import Relation

__all__ = ["Differences"]

# This many columns that differ are named in one sentence.
MOST_NAMED = 3
# At most this many clear differences are printed; if fewer are clear, differences of at least this many columns.
MOST_SAID, LEAST_SAID = 20, 5
# An answer that contradicts the test needs zero this many times as far away as the end of the interval: families of 5%
# then err in 1% of tables, or less with several columns.
SURE = 1.31
ADJUSTED = (
    "values are adjusted to the strata or weights of the two samples compared, and unadjusted are those of all rows"
)
_UNITS = "independent rows, clusters or pairs in a sample"


@dataclass(frozen=True, eq=False, repr=False)
class Differences(Value, Sequence[ColumnDifference]):
    """The differences of all columns, the clearest first, as a sequence that `print` shows as a table.

    With several samples each pair is compared.

    Attributes
    ----------
    each : tuple of ColumnDifference
        The differences.
    confidence : float
        The simultaneous confidence level of all intervals.
    comparisons : int
        The number of differences for which intervals are simultaneous; copies of a column count once.
    ratios : int
        The number of columns for which intervals of ratios of standard deviations are simultaneous.
    pairs : int
        The number of pairs of samples that are compared.
    unjudged : bool
        Whether strata, clusters or weights leave too few independent rows to compare standard deviations.
    relations : tuple of Relation
        The rank correlations of two columns that differ between two samples, the largest difference first.
    design : str
        Which rows are compared: "within strata", "of 40 clusters", "of weighted rows", or "".

    Examples
    --------
    >>> import meanmap as mm
    >>> before, after = {"age": [30.0, 35, 40, 45, 50]}, {"age": [31.0, 36, 41, 46, 61]}
    >>> found = mm.two_sample_test(before, after, rng=0).differences
    >>> print(found)
    what      x   y   y minus x (95%)
    mean age  40  43  3 (-11.7 to 17.7)
    >>> found.to_frame()[["column", "first", "second", "estimate"]]
      column  first  second  estimate
    0    age   40.0    43.0       3.0
    """

    each: tuple[ColumnDifference, ...] = ()
    confidence: float = 0.95
    comparisons: int = 0
    design: str = ""
    ratios: int = 0
    pairs: int = 1
    unjudged: bool = False
    relations: tuple[Relation, ...] = ()

    @property
    def level(self) -> str:
        """The confidence level of the intervals of differences, as a text."""
        said = [f"{100 * self.confidence:g}%"]
        pairs = f" of {self.pairs} pairs of samples" if self.pairs > 1 else ""
        said += [f"simultaneous for {self.comparisons} comparisons{pairs}"] * (self.comparisons > 1)
        return ", ".join([*said, *([self.design] if self.design else [])])

    @property
    def levels(self) -> str:
        """The confidence levels of the intervals of differences and of standard deviations, as a text."""
        apart = self.ratios > 1 and self._spread
        return self.level + (f", and those of standard deviations for {self.ratios}" if apart else "")

    @property
    def intervals(self) -> str:
        """The confidence levels of all intervals, and which rows are compared, as a text."""
        own = any(each.rows is not None and not each.of_gaps for each in self.each)
        gaps = any(each.of_gaps for each in self.each)
        said = ["each column by all rows that have it"] * own + ["shares of missing values by all rows"] * gaps
        told = f"; {', '.join(said)}, all else by complete rows" if said else ""
        told += f"; differences are {self._which}" if self.each else ""
        told += f"; {ADJUSTED}" * self.unlike
        told += "; those of rank correlations are simultaneous for all pairs of columns" * bool(self.relations)
        told += f"; standard deviations are not compared with fewer than {LEAST_UNITS} {_UNITS}" * self.unjudged
        return f"{self.levels}{told}"

    @overload
    def __getitem__(self, at: int) -> ColumnDifference: ...
    @overload
    def __getitem__(self, at: slice) -> "Differences": ...
    def __getitem__(self, at: int | slice) -> "ColumnDifference | Differences":
        return replace(self, each=self.each[at]) if isinstance(at, slice) else self.each[at]

    def __len__(self) -> int:
        return len(self.each)

    def sentences(self) -> tuple[str, ...]:
        """The clearest difference of the values of a column, of missing values, and of a rank correlation, as
        sentences, if there are any.
        """
        clear = [each.sentence() for each in self if each.shown and not each.of_gaps][:1]
        clear += [each.sentence() for each in self if each.shown and each.of_gaps][:1]
        for each in self.relations[:1]:
            what, first, second, by = each.cells()
            one, other = self[0].names
            clear.append(f"The {what} is {first} in {one} and {second} in {other}, a difference of {by}.")
        return tuple(clear)

    def in_all_rows(self) -> str:
        """The beginning of a sentence on columns that are shown to differ in more than the complete rows, or ""."""
        quantities: dict[str, list[str]] = {}
        for each in self:
            if each.rows is not None:
                ratio = each.ratio and Interval(*np.log([each.ratio.estimate, each.ratio.low, each.ratio.high]))
                found = [each.quantity] * _is_sure(each.difference)
                found += ["standard deviation"] * (ratio is not None and _is_sure(ratio))
                quantities.setdefault(each.column, []).extend(found)
        said = [f"{name} ({', '.join(dict.fromkeys(found))})" for name, found in quantities.items() if found]
        more = len(said) - MOST_NAMED
        columns = with_and([*said[:MOST_NAMED], *([f"{more} more"] if more > 0 else [])])
        which = "Columns differ" if len(said) > 1 else "A column differs"
        return f"{which} in all rows, complete or not: {columns}, as intervals show ({self.levels})" if said else ""

    @property
    def all_rows(self) -> int:
        """The number of rows of all samples with those that have missing values; 0 if there are none of these."""
        found: dict[str, int] = {}
        for each in self:
            for name, rows in zip(each.names, each.rows or (0, 0), strict=True):
                found[name] = max(found.get(name, 0), rows)
        return sum(found.values())

    def to_dict(self) -> dict[str, Any]:
        """All differences as plain Python values, ready for JSON; empty if there are none."""
        found = {"differences": [each.to_dict() for each in self]} if self else {}
        relations = [each.to_dict() for each in self.relations]
        return {**found, **({"correlations": relations} if relations else {})}

    def to_frame(self) -> Any:
        """A pandas frame with a row for each difference, in this order, and for each rank correlation that differs.

        Its columns are column, quantity ("mean", "mean where not 0", "share of a", "share of missing values" or "rank
        correlation"), label, first, second (the means, shares or correlations), estimate, low, high and clarity. With
        several samples it also names the two: first_sample, second_sample. Where there are any, it has first_median,
        first_sd, first_unadjusted and first_rows, and the same of the second sample; ratio, ratio_low and ratio_high
        of standard deviations that are shown to differ; and pvalue.
        """
        related = self.relations
        both = (*self, *related)
        found: dict[str, Any] = {"column": [each.column for each in both]}
        found |= {"quantity": [each.quantity for each in self] + ["rank correlation"] * len(related)}
        found |= {"label": [each.label for each in self] + [None] * len(related)}
        ends = ("first", "second")
        found |= {end: [getattr(each, end) for each in both] for end in ends}
        if self._several:
            found |= {f"{end}_sample": [each.names[k] for each in self] for k, end in enumerate(ends)}
        sides = [each.difference for each in self] + [Interval(r.estimate, r.low, r.high) for r in related]
        found |= {end: [getattr(each, end) for each in sides] for end in ("estimate", "low", "high")}
        found |= {"clarity": [each.clarity for each in self] + [np.nan] * len(related)}
        pairs = {"median": "medians", "sd": "deviations", "unadjusted": "unadjusted", "rows": "rows"}
        for what, name in pairs.items():
            values = [getattr(each, name, None) for each in both]
            if any(values):
                beside = [(np.nan, np.nan) if value is None else value for value in values]
                found |= {f"{end}_{what}": [pair[k] for pair in beside] for k, end in enumerate(ends)}
        if self._spread:
            ratios = [getattr(each, "ratio", None) or Interval(np.nan, np.nan, np.nan) for each in both]
            found |= {"ratio": [each.estimate for each in ratios]}
            found |= {f"ratio_{end}": [getattr(each, end) for each in ratios] for end in ("low", "high")}
        pvalues = [getattr(each, "pvalue", None) for each in both]
        return frame_of(found | ({"pvalue": pvalues} if any(p is not None for p in pvalues) else {}))

    @property
    def unlike(self) -> bool:
        """Whether rows have different weights in the comparisons: within strata, or by given weights."""
        return any(each.unadjusted is not None for each in self)

    @property
    def _spread(self) -> bool:
        """Whether standard deviations are shown to differ in a column."""
        return any(each.ratio is not None for each in self)

    @property
    def _which(self) -> str:
        """The two samples of a difference, as a text."""
        return "second minus first" if self._several else f"{self[0].names[1]} minus {self[0].names[0]}"

    @property
    def _several(self) -> bool:
        """Whether more than two samples are compared."""
        return self.pairs > 1

    def rows(self) -> list[tuple[str, ...]]:
        """The differences as rows of texts, after a header."""
        by = f"{self._which} ({self.level})"
        spread = self._spread
        more = [(each.spread,) if spread else () for each in self]
        last = ("standard deviations",) if spread else ()
        if not self._several:
            lines = (each.cells() + spread for each, spread in zip(self, more, strict=True))
            relations = (each.cells() + ("",) * spread for each in self.relations)
            return [("what", *self[0].names, by, *last), *relations, *lines]
        cells = ((each.cells(), " and ".join(each.names)) for each in self)
        lines = ((what, who, *said, *spread) for ((what, *said), who), spread in zip(cells, more, strict=True))
        return [("what", "samples", "first", "second", by, *last), *lines]

    def printed(self) -> list[str]:
        """A line for each clear difference; if these are few, also for the clearest one of other columns, without
        shares of missing values. If most rows of a column have one number, all three of its differences are shown.
        """
        related = []
        for relation in self.relations[:LEAST_SAID]:
            (what, first, second, by), (one, other) = relation.cells(), self[0].names
            related.append(f"{what}: {first} in {one}, {second} in {other}, a difference of {by}")
        said = [each for each in self if each.shown][:MOST_SAID]
        whole = {each.column for each in self if each.without is not None}
        for each in (each for each in self if not each.of_gaps):
            here = {other.column for other in said if not other.of_gaps}
            new = each.column not in here or (each.column in whole and each not in said)
            if len(related) + len(said) < LEAST_SAID and new:
                said.append(each)
        more = len(self) - len(said)
        where = in_python("in result.differences", "on the page of --report")
        return [*related, *map(str, said), *([f"and {more} more {where}"] if more > 0 else [])]

    def tables(self) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """All differences as a table of a page; empty if there are none."""
        if not self:
            return ()
        (head, *rows), unlike = self.rows(), self.unlike
        more = [("",) for _ in self.relations]
        more += [(*((e.as_they_are,) if unlike else ()), f"{e.clarity:.3g}") for e in self]
        names = (*(("unadjusted",) if unlike else ()), "standard errors")
        return (((*head, *names), *((*row, *last) for row, last in zip(rows, more, strict=True))),)

    def __str__(self) -> str:
        if not self:
            return "no columns are compared"
        rows = self.rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)

    __repr__ = __str__


def _is_sure(interval: Interval) -> bool:
    """Whether zero lies far beyond the interval."""
    end = interval.low if interval.estimate > 0 else interval.high
    beyond = abs(interval.estimate) >= SURE * abs(interval.estimate - end)
    return bool(beyond) and not interval.low <= 0 <= interval.high
