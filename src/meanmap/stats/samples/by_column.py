"""How samples of a table differ in each column, in the units of the data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, NamedTuple, overload

import numpy as np
from scipy.special import ndtri, stdtrit

from meanmap.core.language import in_python
from meanmap.core.tables.chunks import source_of
from meanmap.core.tables.doubts import columns_in
from meanmap.core.tables.kinds import family_of
from meanmap.core.tables.order import holds_dates
from meanmap.core.tables.table import Table
from meanmap.core.tables.written import MANY
from meanmap.core.types import Data
from meanmap.core.values import Value, frame_of, label_text, plain, says_yes
from meanmap.stats.result import Interval

__all__ = [
    "ColumnDifference",
    "Differences",
    "by_name",
    "differences",
    "differences_of_all",
    "mostly_one_value",
    "said_of",
]

# This many labels of a column are compared, the most frequent of both samples, and as many that one sample lacks.
MOST_LABELS = 3
# So many clear differences of a result are printed at most, and differences of so many columns where fewer are clear.
MOST_SAID, LEAST_SAID = 20, 5
# With more rows, a median is computed from evenly spaced rows.
MOST_SORTED = 200_000
# Of more samples not all pairs are compared, and so none.
MOST_SAMPLES = 20
_BEGINNING = np.datetime64(0, "s")


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
        The mean in each sample, or the share of rows with the label. The mean of times is a `numpy.datetime64`.
    difference : Interval
        Second minus first, with an interval; the intervals of all columns hold together. In days for times.
    medians : tuple of two floats, or None
        The medians of numbers.
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
        if self.medians is None:
            first, second = (str(np.datetime64(mean, "m")) for mean in (self.first, self.second))
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

    Examples
    --------
    >>> found = differences({"age": [30.0, 40.0, 50.0]}, {"age": [31.0, 41.0, 57.0]})
    >>> print(found)
    what      x   y   difference (95 %)
    mean age  40  43  3 (-24.2 to 30.2)
    >>> found.to_frame()[["column", "first", "second", "estimate"]]
      column  first  second  estimate
    0    age   40.0    43.0       3.0
    """

    each: tuple[ColumnDifference, ...] = ()
    confidence: float = 0.95
    comparisons: int = 0

    @property
    def intervals(self) -> str:
        """The level of the intervals, in words."""
        level = f"{100 * self.confidence:g} %"
        return f"{level}, simultaneous for {self.comparisons} comparisons" if self.comparisons > 1 else level

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


def differences(
    first: Data, second: Data, names: tuple[str, str] = ("x", "y"), confidence: float = 0.95
) -> Differences:
    """Differences of means and of shares in the columns of two tables, the clearest first.

    Means have the interval of Welch (1947), shares that of Agresti & Caffo (2000), each widened by Bonferroni's
    correction. A number that more than half of all rows have is also compared by its share, and the others by their
    mean. Columns of texts, of dates or times of day as text, or of several numbers per row, are left out. O(rows) for
    each column.

    Examples
    --------
    >>> before = {"weight": [60.0, 70.0, 80.0, 90.0], "site": ["a", "a", "a", "b"]}
    >>> after = {"weight": [61.0, 71.0, 81.0, 95.0], "site": ["b", "b", "a", "b"]}
    >>> for each in differences(before, after):
    ...     print(each.column, each.label, each.first, each.second, each.clear)
    site b 0.25 0.75 False
    weight None 75.0 77.0 False
    """
    return differences_of_all(dict(zip(names, (first, second), strict=True)), confidence)


def differences_of_all(samples: Mapping[str, Data], confidence: float = 0.95) -> Differences:
    """Of each pair of several tables, at most 20; of more none.

    Examples
    --------
    >>> doses = {"none": [1.0, 2.0, 3.0], "half": [1.0, 2.0, 3.5], "whole": [8.0, 9.0, 10.0]}
    >>> print(differences_of_all({name: {"effect": values} for name, values in doses.items()})[:2])
    what         samples         first  second  difference (95 %, simultaneous for 3 comparisons)
    mean effect  none and whole  2      9       7 (3.77 to 10.2)
    mean effect  half and whole  2.167  9       6.83 (3.05 to 10.6)
    """
    if len(samples) > MOST_SAMPLES:
        return Differences()
    columns = _shared({name: dict(Table.of(sample, name).columns) for name, sample in samples.items()})
    return _estimated([each for name, parts in columns.items() for each in _compared(name, parts)], confidence)


def mostly_one_value(first: Data, second: Data, names: tuple[str, str], confidence: float) -> Differences:
    """The differences of all columns, also of arrays, if more than half of all rows have one number in one; else none.

    Examples
    --------
    >>> before, after = [0.0] * 7 + [3.0, 4.0, 5.0], [0.0] * 6 + [3.0, 4.0, 5.0, 8.0]
    >>> print(mostly_one_value(before, after, ("x", "y"), 0.95))
    what                    x     y     difference (95 %, simultaneous for 3 comparisons)
    mean value where not 0  4     5     1 (-3.59 to 5.59)
    mean value              1.2   2     0.8 (-2.15 to 3.75)
    value = 0               70 %  60 %  -10 (-55.5 to 38.8) points
    """
    parts = [each for name, pair in _both(first, second, names).items() for each in _compared(name, pair)]
    return _estimated(parts if any(each.without is not None for each in parts) else [], confidence)


def _both(first: Data, second: Data, names: tuple[str, str]) -> dict[str, dict[str, np.ndarray]]:
    """The columns that both samples have."""
    return _shared({name: by_name(sample, name) for sample, name in zip((first, second), names, strict=True)})


def _shared(samples: Mapping[str, dict[str, np.ndarray]]) -> dict[str, dict[str, np.ndarray]]:
    """The columns that all samples have, each by sample."""
    first, *others = samples.values()
    names = [name for name in first if all(name in other for other in others)]
    return {name: {sample: np.asarray(columns[name]) for sample, columns in samples.items()} for name in names}


def by_name(sample: Data, argument: str) -> dict[str, np.ndarray]:
    """The columns of a table or an array."""
    if source_of(sample).named:
        return dict(Table.of(sample, argument).columns)
    columns = columns_in(sample, argument)
    return {"value" if label is None else f"column {label}": np.asarray(column) for label, column in columns}


def _estimated(compared: Sequence["_Compared"], confidence: float) -> Differences:
    """The differences with intervals that hold together, the clearest first."""
    distinct = {(*each[1:3], each.without, each.first.tobytes(), each.second.tobytes()) for each in compared}
    level = (1 - confidence) / max(len(distinct), 1)  # a copy of a column has its intervals
    found = [(_of_means if each.label is None else _of_shares)(each, level) for each in compared]
    return Differences(tuple(sorted(found, key=lambda each: -abs(each.clarity))), confidence, len(distinct))


def are_tables(samples: Sequence[Any]) -> bool:
    """Whether the columns of all samples have names."""
    return all(source_of(sample).named for sample in samples)


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


class _Compared(NamedTuple):
    """A column of two samples, the label or number whose shares are compared, and the number that was left out."""

    name: str
    label: Any
    names: tuple[str, str]
    first: np.ndarray
    second: np.ndarray
    without: float | None = None


def _compared(name: str, samples: Mapping[str, np.ndarray]) -> list[_Compared]:
    """The comparisons for one column, of each pair of samples; none if all rows have one value."""
    parts = list(samples.values())
    family = family_of(parts[0])
    if any(each.ndim > 1 or family_of(each) != family for each in parts) or family == "duration":
        return []
    both = np.concatenate(parts)
    if (both == both[:1]).all():
        return []
    pairs = [((a, b), samples[a], samples[b]) for a, b in combinations(samples, 2)]
    if family in ("label", "boolean"):
        return [_Compared(name, label, *pair) for label in _labels(parts) for pair in pairs]
    means = [_Compared(name, None, *pair) for pair in pairs]
    value = _most_have(parts) if family == "number" else None
    if value is None:
        return means
    rest = [(who, x[x != value], y[y != value]) for who, x, y in pairs]
    others = [_Compared(name, None, who, x, y, value) for who, x, y in rest if min(len(x), len(y)) > 1]
    return [*means, *(_Compared(name, value, *pair) for pair in pairs), *others]


def _most_have(parts: Sequence[np.ndarray]) -> float | None:
    """The number that more than half of all rows have, beside several others."""
    both = np.concatenate(parts)
    middle = np.partition(both, len(both) // 2)[len(both) // 2]
    others = both[both != middle]
    several = 0 < len(others) < len(both) / 2 and others.min() < others.max()
    return float(middle) if several else None


def _labels(parts: Sequence[np.ndarray]) -> list[Any]:
    """Labels to compare: of two, the one that means yes, or the rarer; otherwise the most frequent ones in all
    samples, and those that a sample lacks.
    """
    labels, codes = np.unique(np.concatenate(parts), return_inverse=True)
    if len(labels) == 2:
        said = [label for label in labels if says_yes(label)]
        return said if len(said) == 1 else [labels[int(2 * codes.sum() <= len(codes))]]
    if 2 * len(labels) > len(codes) or (len(labels) >= MANY and holds_dates(labels)):  # texts, names of rows, dates
        return []
    ends = np.cumsum([len(part) for part in parts])[:-1]
    counts = np.stack([np.bincount(part, minlength=len(labels)) for part in np.split(codes, ends)])
    order = np.argsort(-counts.sum(axis=0), kind="stable")
    alone = [at for at in order if not counts[:, at].all()]
    return [labels[at] for at in dict.fromkeys([*order[:MOST_LABELS], *alone[:MOST_LABELS]])]


def _of_means(compared: _Compared, level: float) -> ColumnDifference:
    names, x, y = compared.names, compared.first, compared.second
    times = family_of(x) == "time"
    if times:
        x, y = ((column - _BEGINNING) / np.timedelta64(1, "D") for column in (x, y))
    x, y = np.asarray(x, float), np.asarray(y, float)
    means, medians = (float(x.mean()), float(y.mean())), (_median(x), _median(y))
    size = float(max(np.abs(x).max(), np.abs(y).max())) or 1.0  # squares of wild numbers overflow
    x, y = x / size, y / size
    shares = np.array([column.var(ddof=1) / len(column) for column in (x, y)])
    error, by = float(np.sqrt(shares.sum())), float(y.mean() - x.mean())
    clarity = by / error if error > 0 else float(np.copysign(np.inf, by)) if by else 0.0
    half = 0.0
    if error > 0:
        freedom = 1 / np.sum((shares / shares.sum()) ** 2 / [len(x) - 1, len(y) - 1])
        half = error * float(stdtrit(freedom, 1 - level / 2))
    difference = Interval(size * by, size * (by - half), size * (by + half))
    if times:
        first, second = (_BEGINNING + np.timedelta64(round(86400 * mean), "s") for mean in means)
        return ColumnDifference(compared.name, None, first, second, difference, None, clarity, names)
    without = None if compared.without is None else label_text(compared.without)
    return ColumnDifference(compared.name, None, *means, difference, medians, clarity, names, without)


def _median(column: np.ndarray) -> float:
    return float(np.median(column[:: -(-len(column) // MOST_SORTED)]))


def _of_shares(compared: _Compared, level: float) -> ColumnDifference:
    x, y = compared.first == compared.label, compared.second == compared.label
    shares = float(x.mean()), float(y.mean())
    p, q = ((column.sum() + 1) / (len(column) + 2) for column in (x, y))
    error = float(np.sqrt(p * (1 - p) / (len(x) + 2) + q * (1 - q) / (len(y) + 2)))
    half, size = error * float(ndtri(1 - level / 2)), shares[1] - shares[0]
    # The interval is for the difference of p and q, and contains the observed one.
    by = Interval(size, max(min(q - p - half, size), -1.0), min(max(q - p + half, size), 1.0))
    return ColumnDifference(
        compared.name, label_text(compared.label), *shares, by, None, (q - p) / error, compared.names
    )
