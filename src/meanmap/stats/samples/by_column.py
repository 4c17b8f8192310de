"""How one column differs between two samples, in the units of the data."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from meanmap.core.tables.missing import MISSING_LABEL
from meanmap.core.values import Value, label_shown, plain
from meanmap.stats.result import Interval

__all__ = ["ColumnDifference"]


@dataclass(frozen=True, eq=False, repr=False)
class ColumnDifference(Value):
    """How one column differs between two samples.

    `result.differences` of `two_sample_test` holds one for each column of numbers, one for each of the 20 most frequent
    labels or for the share of ones if numbers are 0 or 1; and if rows with missing values are dropped, one for the
    share of missing values of each column that has any. The test itself does not compare these. If more than half of
    the numbers are one value, such as zero, two more compare the share of this value and the mean of the others.
    Standard deviations are given if they are shown to differ. `print(difference)` shows one line,
    `print(result.differences)` a table of all, and `result.differences.to_frame()` is a pandas frame.

    Attributes
    ----------
    column : str
        The name of the column.
    label : str or None
        The label or number whose shares of rows are compared, "(missing)" for missing values; None if means are.
    first, second : float
        The mean in each sample, or the share of rows with the label. The mean of times is a `numpy.datetime64`. With
        strata they are means over strata, whose weights are the same in both samples.
    difference : Interval
        Second minus first, in days for times, with an interval; the intervals of all columns are simultaneous. The
        interval is infinite if there are too few values of a skewed column for any.
    medians : tuple of two floats, or None
        The medians of numbers; None within strata and of weighted rows.
    clarity : float
        The difference in units of its standard error.
    names : tuple of two str
        The names of the samples.
    without : str or None
        The number that most rows have, if the means are those of the other rows.
    deviations : tuple of two floats, or None
        The standard deviations of numbers if they are shown to differ, else None. With strata, rows have the same
        weights as for the means.
    ratio : Interval or None
        The second standard deviation over the first, with an interval that excludes one. These intervals are
        simultaneous for all columns, separately from the intervals of means and shares.
    unadjusted : tuple of two floats, or None
        The means or shares of all rows without strata or weights, if the compared ones have any; else None, and for
        times.
    rows : tuple of two int, or None
        The number of rows of each sample that are compared, if rows with missing values were dropped and complete rows
        are fewer: those in which the column is observed or, for its missing values, all.
    pvalue : float or None
        The p-value of the hypothesis of equal means, by the distribution that the interval uses, if a column of numbers
        is the only one that is compared, in two samples.
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
    deviations: tuple[float, float] | None = None
    ratio: Interval | None = None
    rows: tuple[int, int] | None = None
    unadjusted: tuple[float, float] | None = None
    pvalue: float | None = None

    @property
    def clear(self) -> bool:
        """Whether the interval of the difference excludes zero."""
        return not self.difference.low <= 0 <= self.difference.high

    @property
    def of_gaps(self) -> bool:
        """Whether shares of missing values are compared, which the test itself does not compare."""
        return self.label == MISSING_LABEL and self.rows is not None

    @property
    def has_interval(self) -> bool:
        """Whether there are enough values for an interval."""
        return bool(np.isfinite(self.difference.low) and np.isfinite(self.difference.high))

    @property
    def shown(self) -> bool:
        """Whether means, shares or standard deviations are shown to differ."""
        return self.clear or self.ratio is not None

    @property
    def quantity(self) -> str:
        """What of the column is compared: the mean, that of a part of the rows, or the share of a label."""
        if self.label is None:
            return "mean" if self.without is None else f"mean where not {self.without}"
        return "share of missing values" if self.label == MISSING_LABEL else f"share of {label_shown(self.label)}"

    def to_dict(self) -> dict[str, Any]:
        """The difference as plain Python values, ready for JSON."""
        ends = plain(self.difference, "estimate", "low", "high")
        ends |= {} if self.has_interval else {"low": None, "high": None}  # JSON has no infinity
        first, second = (str(end) if isinstance(end, np.datetime64) else end for end in (self.first, self.second))
        what = plain(self, "column", "quantity", "label", "without")
        ends = {"first": first, "second": second, **ends}
        ratio = None if self.ratio is None else plain(self.ratio, "estimate", "low", "high")
        own = [name for name in ("unadjusted", "pvalue") if getattr(self, name) is not None]
        more = {**plain(self, "medians", "deviations", "rows", *own), "ratio of deviations": ratio}
        return {**what, "samples": list(self.names), **ends, **more}

    def cells(self) -> tuple[str, str, str, str]:
        """The compared quantity, its value in both samples, and the difference with its interval, as texts."""
        by = self.difference
        if self.label is not None:
            low, size, high = (f"{100 * end:.3g}" for end in (by.low, by.estimate, by.high))
            first, second = (f"{100 * share:.3g}%" for share in (self.first, self.second))
            missing = self.label == MISSING_LABEL
            what = f"missing {self.column}" if missing else f"{self.column} = {label_shown(self.label)}"
            return what, first, second, f"{size} ({low} to {high}) points"
        if isinstance(self.first, np.datetime64):
            first, second = (str(mean.astype("datetime64[m]")) for mean in (self.first, self.second))
            return f"mean {self.column}", first, second, f"{by} days"
        where = "" if self.without is None else f" where not {self.without}"
        told = str(by) if self.has_interval else f"{by.estimate:.3g} (too few values for an interval)"
        return f"mean {self.column}{where}", *_apart(self.first, self.second), told

    @property
    def spread(self) -> str:
        """The standard deviations and their ratio, as a text, if they are shown to differ."""
        if self.deviations is None or self.ratio is None:
            return ""
        low, times, high = (f"{end:.3g}" for end in (self.ratio.low, self.ratio.estimate, self.ratio.high))
        return "{} and {}, {} times ({} to {})".format(*_apart(*self.deviations), times, low, high)

    @property
    def as_they_are(self) -> str:
        """The means or shares of all rows without adjustment, as a text, if the compared ones are adjusted."""
        if self.unadjusted is None:
            return ""
        if self.label is not None:
            return "{:.3g}% and {:.3g}%".format(*(100 * share for share in self.unadjusted))
        return "{} and {}".format(*_apart(*self.unadjusted))

    def sentence(self) -> str:
        """The difference as a sentence; of standard deviations if only these are shown to differ."""
        one, other = self.names
        if self.ratio is not None and self.deviations is not None and not self.clear:
            first, second = _apart(*self.deviations)
            what, by = f"standard deviation of {self.column}", f"a ratio of {self.ratio}"
        else:
            _, first, second, difference = self.cells()
            where = "" if self.without is None else f" where it is not {self.without}"
            label = "" if self.label is None else f" = {label_shown(self.label)}"
            share = f"with {self.column}{label}" if self.label != MISSING_LABEL else f"where {self.column} is missing"
            what = f"share of rows {share}" if label else f"mean of {self.column}{where}"
            by = f"a difference of {difference}"
        return f"The {what} is {first} in {one} and {second} in {other}, {by}."

    def __str__(self) -> str:
        what, first, second, by = self.cells()
        more = "" if self.medians is None else "; medians {} and {}".format(*_apart(*self.medians))
        more += "" if self.ratio is None else f"; standard deviations {self.spread}"
        more += "" if self.unadjusted is None else f"; unadjusted {self.as_they_are}"
        more += "" if self.rows is None else "; {} and {} rows".format(*self.rows)
        return f"{what}: {first} in {self.names[0]}, {second} in {self.names[1]}, a difference of {by}{more}"


def _apart(first: float, second: float) -> tuple[str, str]:
    """Two numbers with enough digits to distinguish them, at least four; rounding errors do not count. If four are too
    few, enough to show the difference up to a tenth.

    Examples
    --------
    >>> _apart(1013250.2, 1013255.4)
    ('1013250', '1013255')
    """
    shown = [(f"{first:.{digits}g}", f"{second:.{digits}g}") for digits in range(4, 15)]
    apart = [pair for pair in shown if pair[0] != pair[1]]
    if not apart or apart[0] == shown[0]:
        return shown[0]
    change = second - first
    near = (pair for pair in apart if abs(float(pair[1]) - float(pair[0]) - change) <= abs(change) / 10)
    return next(near, apart[0])
