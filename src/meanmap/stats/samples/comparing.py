"""Differences of samples in the means and shares of their columns, with simultaneous intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from meanmap.core.tables.chunks import source_of
from meanmap.core.tables.doubts import columns_in
from meanmap.core.tables.kinds import family_of
from meanmap.core.tables.missing import MISSING_LABEL, length
from meanmap.core.tables.order import holds_dates
from meanmap.core.tables.table import Table
from meanmap.core.tables.written import MANY
from meanmap.core.types import Data
from meanmap.core.values import label_text, says_yes
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.result import Interval
from meanmap.stats.samples.by_column import ColumnDifference, Differences
from meanmap.stats.samples.cells import Cells
from meanmap.stats.samples.deviations import LEAST_UNITS, clear_ratio, deviations_of
from meanmap.stats.samples.own_rows import Columns, OwnRows, called
from meanmap.stats.samples.relations import Relation, changed_relations
from meanmap.stats.samples.skewed import Law, law_of_means, means_of
from meanmap.stats.settings import LEAST_POINTS

__all__ = ["are_tables", "by_name", "differences", "differences_of_all", "mostly_one_value"]

# This many labels of a column, the most frequent in all samples, have a row each, and as many that one sample lacks. So
# many are compared; the others have a row if their interval excludes zero.
MOST_LABELS, MOST_COMPARED = 3, 20
# With more rows, medians and correlations are computed from evenly spaced rows.
MOST_SORTED = 200_000
# Standard errors of shares up to this are rounding errors: all rows are equal.
NO_ERROR = 1e-9
# With more samples than this, no pairs are compared; nor are the single columns of an array with more columns.
MOST_SAMPLES, MOST_COLUMNS = 20, 100
_BEGINNING = np.datetime64(0, "s")


def differences(
    first: Data, second: Data, names: tuple[str, str] = ("x", "y"), confidence: float = 0.95
) -> Differences:
    """Differences of means and of shares in the columns of two tables, the clearest first.

    Means have the interval of Welch (1947), shares that of Agresti & Caffo (2000), each widened by Bonferroni's
    correction. If a column is skewed and one sample much smaller, the quantiles of Welch's statistic are those of
    permutations of all rows, and there is no interval if no arrangement of so few rows could exclude zero. Numbers that
    are 0 or 1 have shares. Standard deviations are given if they are shown to differ, by intervals that are
    simultaneous separately. A number that more than half of all rows have is also compared by its share, and the other
    numbers by their mean. Columns of texts, of dates or times of day as text, or of several numbers per row, are left
    out. The cost is O(rows) for each column.

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


def differences_of_all(
    samples: Mapping[str, Data],
    confidence: float = 0.95,
    design: Exchange | None = None,
    own: OwnRows | None = None,
) -> Differences:
    """The differences of each pair of at most 20 tables or arrays; none for more, or for arrays of more than 100
    columns.

    The `design` of the rows, one sample after another, defines which rows are compared and which are dependent: means
    are then those of `Cells`, with t intervals. There are no differences if the design leaves too few rows or clusters
    for the variance of a mean, or if its class is not one of this library. A column is compared on its `own_rows`, if
    these are given.

    Examples
    --------
    >>> doses = {"no": [1.0, 2.0, 3.0], "half": [1.0, 2.0, 3.5], "all": [8.0, 9.0, 10.0]}
    >>> print(differences_of_all({name: {"y": values} for name, values in doses.items()})[:2])
    what    samples       first  second  second minus first (95 %, simultaneous for 3 comparisons of 3 pairs of samples)
    mean y  no and all    2      9       7 (3.77 to 10.2)
    mean y  half and all  2.167  9       6.83 (3.05 to 10.6)
    """
    if len(samples) > MOST_SAMPLES:
        return Differences()
    columns = _shared({name: by_name(sample, name) for name, sample in samples.items()})
    if not columns or (len(columns) > MOST_COLUMNS and not are_tables(list(samples.values()))):
        return Differences()
    pairs = _pairs({name: length(sample) for name, sample in samples.items()}, design)
    wider = {} if own is None else _wider(columns, own.columns)
    compared: list[_Compared] = []
    for name, parts in columns.items():
        if own is None or name not in wider:
            compared += _compared(name, parts, pairs)
            continue
        sizes = {sample: len(part) for sample, part in wider[name].items()}
        among = pairs if own.design is None else _pairs(sizes, own.design.among(own.there[name]))
        compared += [each._replace(own=True) for each in _compared(name, wider[name], among)]
    compared += [] if own is None else _of_gaps({name: own.gaps[name] for name in columns if name in own.gaps}, own)
    found = _estimated(compared, confidence, "" if design is None else design.told("").strip())
    return found if design is not None or len(samples) != 2 else replace(found, relations=_relations(columns))


def _of_gaps(gaps: Mapping[str, Columns], own: OwnRows) -> list["_Compared"]:
    """The comparisons of shares of missing values, of all rows whose design is known."""
    if not gaps:
        return []
    pairs = _pairs({name: len(part) for name, part in next(iter(gaps.values())).items()}, own.design)
    found = [each for name, parts in gaps.items() for each in _compared(name, parts, pairs)]
    return [each._replace(own=True, gaps=True) for each in found]


def _relations(columns: Mapping[str, Mapping[str, np.ndarray]]) -> tuple[Relation, ...]:
    """The rank correlations that differ between two samples of at most 100 columns."""
    if not 1 < len(columns) <= MOST_COLUMNS:
        return ()
    step = -(-max(len(part) for part in next(iter(columns.values())).values()) // MOST_SORTED)
    first, second = ({name: list(parts.values())[k][::step] for name, parts in columns.items()} for k in range(2))
    return tuple(changed_relations(first, second, list(columns)))


def _wider(
    columns: Mapping[str, Mapping[str, np.ndarray]], own: Mapping[str, Columns]
) -> dict[str, dict[str, np.ndarray]]:
    """The samples of each column that is observed in more than the complete rows, if these are of the same kind."""
    found = {}
    for name, parts in columns.items():
        rows = {sample: own.get(sample, {}).get(name) for sample in parts}
        more = {sample: column for sample, column in rows.items() if column is not None}
        alike = all(family_of(column) == family_of(parts[sample]) for sample, column in more.items())
        if len(more) == len(parts) and alike and any(len(more[sample]) > len(parts[sample]) for sample in parts):
            found[name] = more
    return found


def mostly_one_value(first: Data, second: Data, names: tuple[str, str], confidence: float) -> Differences:
    """The differences of all columns, also of arrays, if more than half of all rows have one number in one; else none.

    Examples
    --------
    >>> before, after = [0.0] * 7 + [3.0, 4.0, 5.0], [0.0] * 6 + [3.0, 4.0, 5.0, 8.0]
    >>> print(mostly_one_value(before, after, ("x", "y"), 0.95))
    what                    x     y     y minus x (95 %, simultaneous for 3 comparisons)
    mean value where not 0  4     5     1 (-3.59 to 5.59)
    mean value              1.2   2     0.8 (-2.15 to 3.75)
    value = 0               70 %  60 %  -10 (-55.5 to 38.8) points
    """
    columns = _both(first, second, names).items()
    parts = [each for name, pair in columns for each in _compared(name, pair, [_Pair(names)])]
    return _estimated(parts if any(each.without is not None for each in parts) else [], confidence)


def _both(first: Data, second: Data, names: tuple[str, str]) -> dict[str, dict[str, np.ndarray]]:
    """The columns that both samples have."""
    return _shared({name: by_name(sample, name) for sample, name in zip((first, second), names, strict=True)})


def _shared(samples: Mapping[str, dict[str, np.ndarray]]) -> dict[str, dict[str, np.ndarray]]:
    """The columns that all samples have, each by sample, without those that the test will refuse later."""
    first, *others = samples.values()
    names = [name for name in first if all(name in other for other in others)]
    found = {name: {sample: np.asarray(columns[name]) for sample, columns in samples.items()} for name in names}
    return {name: parts for name, parts in found.items() if all(map(_plain, parts.values()))}


def _plain(column: np.ndarray) -> bool:
    """Whether a column holds finite numbers, labels, truth values or times, in more than one row."""
    if len(column) < 2:
        return False
    if family_of(column) != "number" or np.issubdtype(column.dtype, np.integer):
        return True
    return np.issubdtype(column.dtype, np.floating) and bool(np.isfinite(column).all())


def by_name(sample: Data, argument: str) -> dict[str, np.ndarray]:
    """The columns of a table or an array."""
    if source_of(sample).named:
        return dict(Table.of(sample, argument).columns)
    columns = columns_in(sample, argument)
    return {called(label): np.asarray(column) for label, column in columns}


def _estimated(compared: Sequence["_Compared"], confidence: float, design: str = "") -> Differences:
    """The differences with simultaneous intervals, the clearest first."""
    distinct = {(*each[1:3], each.without, each.first.tobytes(), each.second.tobytes()) for each in compared}
    level = (1 - confidence) / max(len(distinct), 1)  # copies of a column count once
    few = [each for each in compared if each.spreads and each.has_few_units]
    compared = [each._replace(spreads=each.spreads and not each.has_few_units) for each in compared]
    of_numbers = {(*each[1:3], each.first.tobytes(), each.second.tobytes()) for each in compared if each.spreads}
    own = (1 - confidence) / max(len(of_numbers), 1)
    alone = len({(each.name, each.names) for each in compared}) == 1
    found = [
        _of_means(each, level, own, alone) if each.label is None else (_of_shares(each, level), 0.0)
        for each in compared
    ]
    clarities = [max(abs(one.clarity), abs(by)) for one, by in found]
    # Of equally clear differences, such as of "revenue = 0" and of "bought", a plain column comes first.
    order = sorted(range(len(found)), key=lambda k: (-round(clarities[k], 9), compared[k].is_of_one_number))
    order = [k for k in order if found[k][0].clear or not compared[k].rare]
    each = tuple(replace(found[k][0], unadjusted=compared[k].unadjusted) for k in order)
    numbers = len(distinct), design, len(of_numbers), len({each.names for each in compared})
    return Differences(each, confidence, *numbers, unjudged=bool(few))


def are_tables(samples: Sequence[Any]) -> bool:
    """Whether the columns of all samples have names."""
    return all(source_of(sample).named for sample in samples)


class _Pair(NamedTuple):
    """Two samples by name, and the cells of their design, if there is one."""

    names: tuple[str, str]
    cells: Cells | None = None


def _pairs(sizes: Mapping[str, int], design: Exchange | None) -> list[_Pair]:
    """Each pair of samples whose means can be compared."""
    pairs = list(combinations(sizes, 2))
    if design is None:
        return [_Pair(pair) for pair in pairs]
    if type(design) is not Exchange:  # the units of a user's own design need not be independent
        return []
    owner = np.repeat(list(sizes), list(sizes.values()))
    parts = ((pair, design.among(np.isin(owner, pair))) for pair in pairs)
    found = [_Pair(pair, _known((sizes[pair[0]], sizes[pair[1]]), part)) for pair, part in parts]
    return [each for each in found if each.cells is not None]


def _known(sizes: tuple[int, int], design: Exchange) -> Cells | None:
    """The cells, if there are enough independent rows, clusters or pairs for the variance of a mean; else None."""
    found = Cells.where_known(sizes, design)
    compares = found is not None and found.contrasts.any() and min(found.effective(sizes)) >= LEAST_POINTS
    return found if compares else None


class _Compared(NamedTuple):
    """A column of two samples; the label or number whose shares are compared; the number that was left out; whether
    standard deviations are compared; whether rows are all in which the column is observed, not only complete ones;
    whether the label is shown only if its shares differ; and whether values are missing where the column is true.
    """

    name: str
    label: Any
    names: tuple[str, str]
    first: np.ndarray
    second: np.ndarray
    without: float | None = None
    cells: Cells | None = None
    spreads: bool = False
    own: bool = False
    rare: bool = False
    gaps: bool = False

    @property
    def unadjusted(self) -> tuple[float, float] | None:
        """The means or shares of all rows with equal weights, if rows have different weights in the comparison."""
        if self.cells is None or self.cells.design.is_alike or family_of(self.first) == "time":
            return None
        first, second = (each if self.label is None else each == self.label for each in (self.first, self.second))
        return float(np.mean(first, dtype=float)), float(np.mean(second, dtype=float))

    @property
    def is_of_one_number(self) -> bool:
        """Whether shares of rows with one number of several are compared."""
        return self.label is not None and family_of(self.first) == "number" and self.label != 1.0

    @property
    def has_few_units(self) -> bool:
        """Whether the design leaves too few independent rows, clusters or pairs to compare standard deviations."""
        sizes = len(self.first), len(self.second)
        return self.cells is not None and min(self.cells.effective(sizes)) < LEAST_UNITS

    @property
    def rows(self) -> tuple[int, int] | None:
        """The numbers of rows of both samples, if these are not the complete rows."""
        return (len(self.first), len(self.second)) if self.own and self.without is None else None


def _compared(name: str, samples: Mapping[str, np.ndarray], pairs: Sequence[_Pair]) -> list[_Compared]:
    """The comparisons of pairs of samples in one column; none if all rows have one value."""
    parts = list(samples.values())
    family = family_of(parts[0])
    if any(each.ndim > 1 or family_of(each) != family for each in parts) or family == "duration":
        return []
    both = np.concatenate(parts)
    if (both == both[:1]).all():
        return []

    def of(pair: _Pair, label: Any = None) -> _Compared:
        first, second = (samples[each] for each in pair.names)
        return _Compared(name, label, pair.names, first, second, cells=pair.cells)

    if family in ("label", "boolean"):
        labels, shown = _labels(parts)
        return [of(pair, label)._replace(rare=at >= shown) for at, label in enumerate(labels) for pair in pairs]
    if family == "number" and np.isin(both, (0, 1)).all():  # their means are shares
        return [of(pair, 1.0) for pair in pairs]
    means = [of(pair) for pair in pairs]
    value = _most_have(parts) if family == "number" else None
    if value is None:
        return [each._replace(spreads=family == "number") for each in means]
    rest = (_without(each, value) for each in means)
    return [*means, *(of(pair, value) for pair in pairs), *(each for each in rest if each is not None)]


def _without(means: _Compared, value: float) -> _Compared | None:
    """The comparison of the rows that do not have this number, if there are enough."""
    x, y = (column[column != value] for column in (means.first, means.second))
    found = means._replace(first=x, second=y, without=value)
    if min(len(x), len(y)) < 2:
        return None
    if means.cells is None:
        return found
    some = np.concatenate([means.first, means.second]) != value
    cells = _known((len(x), len(y)), means.cells.design.among(some))
    return None if cells is None else found._replace(cells=cells)


def _most_have(parts: Sequence[np.ndarray]) -> float | None:
    """The number that more than half of all rows have, if there are several others."""
    both = np.concatenate(parts)
    middle = np.partition(both, len(both) // 2)[len(both) // 2]
    others = both[both != middle]
    several = 0 < len(others) < len(both) / 2 and others.min() < others.max()
    return float(middle) if several else None


def _labels(parts: Sequence[np.ndarray]) -> tuple[list[Any], int]:
    """The labels to compare, and how many of these have a row in any case: of two labels the one that means yes, or
    else the rarer one; of more the most frequent ones in all samples, and those that a sample lacks.
    """
    labels, codes = np.unique(np.concatenate(parts), return_inverse=True)
    if len(labels) == 2:
        said = [label for label in labels if says_yes(label)]
        return (said if len(said) == 1 else [labels[int(2 * codes.sum() <= len(codes))]]), 1
    if 2 * len(labels) > len(codes) or (len(labels) >= MANY and holds_dates(labels)):  # texts, names of rows, dates
        return [], 0
    ends = np.cumsum([len(part) for part in parts])[:-1]
    counts = np.stack([np.bincount(part, minlength=len(labels)) for part in np.split(codes, ends)])
    order = np.argsort(-counts.sum(axis=0), kind="stable")
    alone = [at for at in order if not counts[:, at].all()]
    shown = list(dict.fromkeys([*order[:MOST_LABELS], *alone[:MOST_LABELS]]))
    rest = [at for at in order if at not in shown][: MOST_COMPARED - len(shown)]
    return [labels[at] for at in [*shown, *rest]], len(shown)


def _of_means(compared: _Compared, level: float, own: float, alone: bool) -> tuple[ColumnDifference, float]:
    """The difference of means at `level`, and that of log standard deviations at level `own`, in standard errors; with
    a p-value of the means of all rows if no other column is compared.
    """
    x, y = compared.first, compared.second
    times = family_of(x) == "time"
    if times:
        x, y = ((column - _BEGINNING) / np.timedelta64(1, "D") for column in (x, y))
    x, y = np.asarray(x, float), np.asarray(y, float)
    alike = compared.cells is None or compared.cells.design.is_alike
    medians = (_median(x), _median(y)) if alike and not times else None
    size = float(np.ldexp(0.5, np.frexp(max(np.abs(x).max(), np.abs(y).max()))[1]))  # squares of huge numbers overflow
    first, second, error, freedom = means_of(x / size, y / size, compared.cells)
    by = second - first
    clarity = by / error if error > 0 else float(np.copysign(np.inf, by)) if by else 0.0
    low, high, pvalue = 0.0, 0.0, None
    if error > 0:
        law = Law(freedom) if compared.cells is not None else law_of_means(x / size, y / size, freedom, level)
        low, high = law.quantiles(level)
        pvalue = law.pvalue(clarity) if alone and compared.without is None and not times else None
    means: list[Any] = [size * first, size * second]
    if times:
        means = [_BEGINNING + np.timedelta64(round(86400 * mean), "s") for mean in means]
    without = None if compared.without is None else label_text(compared.without)
    ends = means[0], means[1], Interval(size * by, size * (by - high * error), size * (by - low * error))
    more = medians, clarity, compared.names, without
    found = ColumnDifference(compared.name, None, *ends, *more, rows=compared.rows, pvalue=pvalue)
    ratio = clear_ratio(x / size, y / size, own, compared.cells) if compared.spreads else None
    if ratio is None:
        return found, 0.0
    deviations = [size * each for each in deviations_of(x / size, y / size, compared.cells)]
    return replace(found, deviations=(deviations[0], deviations[1]), ratio=ratio[0]), ratio[1]


def _median(column: np.ndarray) -> float:
    return float(np.median(column[:: -(-len(column) // MOST_SORTED)]))


def _of_shares(compared: _Compared, level: float) -> ColumnDifference:
    x, y = compared.first == compared.label, compared.second == compared.label
    if compared.cells is None:
        shares = float(x.mean()), float(y.mean())
        p, q = ((column.sum() + 1) / (len(column) + 2) for column in (x, y))
        error = float(np.sqrt(p * (1 - p) / (len(x) + 2) + q * (1 - q) / (len(y) + 2)))
        half = error * float(ndtri(1 - level / 2))
    else:
        p, q, error, freedom = compared.cells.compared(np.concatenate([x, y]).astype(float))
        shares = p, q
        if {0.0, 1.0} & {p, q} or error <= NO_ERROR:  # rows that are all alike, or alike in each stratum
            sizes = compared.cells.effective((len(x), len(y)))
            p, q = ((size * share + 1) / (size + 2) for size, share in zip(sizes, shares, strict=True))
            least = [each * (1 - each) / (size + 2) for size, each in zip(sizes, (p, q), strict=True)]
            error = max(error, float(np.sqrt(sum(least))))
        half = error * float(stdtrit(freedom, 1 - level / 2))
    size = shares[1] - shares[0]
    # The interval is for the difference of p and q, extended to contain the observed difference.
    by = Interval(size, max(min(q - p - half, size), -1.0), min(max(q - p + half, size), 1.0))
    more = (q - p) / error, compared.names
    label = MISSING_LABEL if compared.gaps else label_text(compared.label)
    return ColumnDifference(compared.name, label, *shares, by, None, *more, rows=compared.rows)
