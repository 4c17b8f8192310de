"""How samples of a table differ in each column, in the units of the data."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

import numpy as np

from meanmap.core.language import in_python
from meanmap.core.values import Value, frame_of, plain
from meanmap.stats.result import Interval

__all__ = ["ColumnDifference", "Differences", "said_of"]

# So many clear differences of a result are printed at most, and differences of so many columns where fewer are clear.
MOST_SAID, LEAST_SAID = 20, 5


@dataclass(frozen=True, eq=False, repr=False)
class ColumnDifference(Value):
    """How one column differs between two samples.

    `result.differences` of `two_sample_test` holds one for each column of numbers, and one for each frequent label; for
    numbers of which more than half are one value, such as zero, also one for the share of this value and one for the
    mean of the others. `print(difference)` says it in a line, `print(result.differences)` shows all in a table, and
    `result.differences.to_frame()` is a frame of pandas.

    Attributes
    ----------
    column : str
        Its name.
    label : str or None
        The label or number whose shares of rows are compared; None where means are.
    first, second : float
        The mean in each sample, or the share of rows with the label. The mean of times is a `numpy.datetime64`. Within
        strata they are means over strata, each of which has one weight in both samples.
    difference : Interval
        Second minus first, with an interval; the intervals of all columns hold together. In days for times.
    medians : tuple of two floats, or None
        The medians of numbers; None within strata and of weighted rows.
    clarity : float
        The difference in units of its standard error.
    names : tuple of two str
        What the samples are called.
    without : str or None
        The number that most rows have, where the means are those of the other rows.
    """

    column: str
    label: str | None
    first: Any
    second: Any
    difference: Interval
    medians: tuple[float, float] | None = None
    clarity: float = field(default=0.0, repr=False)
    names: tuple[str, str] = field(default=("x", "y"), repr=False)
    without: str | None = None

    @property
    def clear(self) -> bool:
        """Whether the interval excludes zero."""
        return not self.difference.low <= 0 <= self.difference.high

    def to_dict(self) -> dict[str, Any]:
        """The difference as plain Python values, ready for JSON."""
        ends = plain(self.difference, "estimate", "low", "high")
        first, second = (str(end) if isinstance(end, np.datetime64) else end for end in (self.first, self.second))
        what = plain(self, "column", "label", "without")
        ends = {"first": first, "second": second, **ends}
        return {**what, "samples": list(self.names), **ends, **plain(self, "medians")}

    def cells(self) -> tuple[str, str, str, str]:
        """What is compared, its value in both samples, and the difference with its interval, in words."""
        by = self.difference
        if self.label is not None:
            low, size, high = (f"{100 * end:.3g}" for end in (by.low, by.estimate, by.high))
            first, second = (f"{100 * share:.3g} %" for share in (self.first, self.second))
            return f"{self.column} = {self.label}", first, second, f"{size} ({low} to {high}) points"
        if isinstance(self.first, np.datetime64):
            first, second = (str(mean.astype("datetime64[m]")) for mean in (self.first, self.second))
            return f"mean {self.column}", first, second, f"{by} days"
        where = "" if self.without is None else f" where not {self.without}"
        return f"mean {self.column}{where}", *_apart(self.first, self.second), str(by)

    def __str__(self) -> str:
        what, first, second, by = self.cells()
        more = "" if self.medians is None else "; medians {} and {}".format(*_apart(*self.medians))
        return f"{what}: {first} in {self.names[0]}, {second} in {self.names[1]}, a difference of {by}{more}"


@dataclass(frozen=True, eq=False, repr=False)
class Differences(Value, Sequence[ColumnDifference]):
    """The differences of all columns, the clearest first: a sequence that `print` shows as a table.

    Of several samples each pair is compared.

    Attributes
    ----------
    each : tuple of ColumnDifference
        What it holds.
    confidence : float
        That of all intervals together, which are simultaneous.
    comparisons : int
        For how many differences they hold together; those of copies of a column count once.
    design : str
        Which rows are compared: "within strata", "of 40 clusters", "of weighted rows", or "".

    Examples
    --------
    >>> import meanmap as mm
    >>> before, after = {"age": [30.0, 35, 40, 45, 50]}, {"age": [31.0, 36, 41, 46, 61]}
    >>> found = mm.two_sample_test(before, after, rng=0).differences
    >>> print(found)
    what      x   y   difference (95 %)
    mean age  40  43  3 (-11.7 to 17.7)
    >>> found.to_frame()[["column", "first", "second", "estimate"]]
      column  first  second  estimate
    0    age   40.0    43.0       3.0
    """

    each: tuple[ColumnDifference, ...] = ()
    confidence: float = 0.95
    comparisons: int = 0
    design: str = ""

    @property
    def intervals(self) -> str:
        """The level of the intervals, and which rows are compared, in words."""
        said = [f"{100 * self.confidence:g} %"]
        said += [f"simultaneous for {self.comparisons} comparisons"] * (self.comparisons > 1)
        return ", ".join([*said, *([self.design] if self.design else [])])

    @overload
    def __getitem__(self, at: int) -> ColumnDifference: ...
    @overload
    def __getitem__(self, at: slice) -> "Differences": ...
    def __getitem__(self, at: int | slice) -> "ColumnDifference | Differences":
        return replace(self, each=self.each[at]) if isinstance(at, slice) else self.each[at]

    def __len__(self) -> int:
        return len(self.each)

    def to_frame(self) -> Any:
        """A pandas frame with a row for each difference: column, label, first, second (the means or shares), estimate,
        low, high, clarity; of several samples also which two: first_sample, second_sample.
        """
        names = ("column", "label", "first", "second")
        found = {name: [getattr(each, name) for each in self] for name in names}
        if self._several:
            found |= {f"{end}_sample": [each.names[k] for each in self] for k, end in enumerate(("first", "second"))}
        found |= {end: [getattr(each.difference, end) for each in self] for end in ("estimate", "low", "high")}
        return frame_of(found | {"clarity": [each.clarity for each in self]})

    @property
    def _several(self) -> bool:
        """Whether more than two samples are compared."""
        return len({each.names for each in self.each}) > 1

    def rows(self) -> list[tuple[str, ...]]:
        """The differences in words, after a header."""
        by = f"difference ({self.intervals})"
        if not self._several:
            return [("what", *self[0].names, by), *(each.cells() for each in self)]
        cells = ((each.cells(), " and ".join(each.names)) for each in self)
        return [("what", "samples", "first", "second", by), *((what, who, *said) for (what, *said), who in cells)]

    def __str__(self) -> str:
        if not self:
            return "no columns are compared"
        rows = self.rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)

    __repr__ = __str__


def _apart(first: float, second: float) -> tuple[str, str]:
    """Two numbers with enough digits to distinguish them, at least four."""
    shown = [(f"{first:.{digits}g}", f"{second:.{digits}g}") for digits in range(4, 18)]
    return next((pair for pair in shown if pair[0] != pair[1]), shown[0])


def said_of(found: Sequence[ColumnDifference]) -> list[str]:
    """The clear differences, a line each; where there are few also the clearest of other columns, and all three of a
    column of which most rows have one number.
    """
    said = [each for each in found if each.clear][:MOST_SAID]
    whole = {each.column for each in found if each.without is not None}
    for each in found:
        new = each.column not in {other.column for other in said} or (each.column in whole and each not in said)
        if len(said) < LEAST_SAID and new:
            said.append(each)
    more = len(found) - len(said)
    where = in_python("in result.differences", "on the page of --report")
    return [*map(str, said), *([f"and {more} more {where}"] if more > 0 else [])]
