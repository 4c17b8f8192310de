"""Differences of samples in the means and shares of their columns, with simultaneous intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from meanmap.core.tables.chunks import source_of
from meanmap.core.tables.kinds import family_of
from meanmap.core.tables.missing import MISSING_LABEL, length
from meanmap.core.tables.sample import Sample
from meanmap.core.tables.table import Table
from meanmap.core.types import Data
from meanmap.core.values import label_text
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.result import Interval
from meanmap.stats.samples.by_column import ColumnDifference
from meanmap.stats.samples.comparisons import Comparison, Pair, comparisons_of, pairs_of
from meanmap.stats.samples.deviations import clear_ratio, deviations_of
from meanmap.stats.samples.differences import Differences
from meanmap.stats.samples.own_rows import Columns, OwnRows, called
from meanmap.stats.samples.relations import Relation, changed_relations
from meanmap.stats.samples.skewed import Law, law_of_means, means_of

__all__ = ["are_tables", "by_name", "differences", "differences_of_all", "mostly_one_value"]

# With more rows, medians and correlations are computed from evenly spaced rows.
MOST_SORTED = 200_000
# Standard errors of shares up to this are rounding errors: all rows are equal.
NO_ERROR = 1e-9
# So are differences of means and their standard errors up to this share of the largest number.
ROUNDING = 16 * float(np.finfo(float).eps)
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
    what    samples       first  second  second minus first (95%, simultaneous for 3 comparisons of 3 pairs of samples)
    mean y  no and all    2      9       7 (3.77 to 10.2)
    mean y  half and all  2.167  9       6.83 (3.05 to 10.6)
    """
    if len(samples) > MOST_SAMPLES:
        return Differences()
    columns = _shared({name: by_name(sample, name) for name, sample in samples.items()})
    if not columns or (len(columns) > MOST_COLUMNS and not are_tables(list(samples.values()))):
        return Differences()
    pairs = pairs_of({name: length(sample) for name, sample in samples.items()}, design)
    wider = {} if own is None else _wider(columns, own.columns)
    compared: list[Comparison] = []
    for name, parts in columns.items():
        if own is None or name not in wider:
            compared += comparisons_of(name, parts, pairs)
            continue
        sizes = {sample: len(part) for sample, part in wider[name].items()}
        among = pairs if own.design is None else pairs_of(sizes, own.design.among(own.there[name]))
        compared += [each._replace(own=True) for each in comparisons_of(name, wider[name], among)]
    compared += [] if own is None else _of_gaps({name: own.gaps[name] for name in columns if name in own.gaps}, own)
    found = _estimated(compared, confidence, "" if design is None else design.told("").strip())
    return found if design is not None or len(samples) != 2 else replace(found, relations=_relations(columns))


def _of_gaps(gaps: Mapping[str, Columns], own: OwnRows) -> list[Comparison]:
    """The comparisons of shares of missing values, of all rows whose design is known."""
    if not gaps:
        return []
    pairs = pairs_of({name: len(part) for name, part in next(iter(gaps.values())).items()}, own.design)
    found = [each for name, parts in gaps.items() for each in comparisons_of(name, parts, pairs)]
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
    what                    x     y     y minus x (95%, simultaneous for 3 comparisons)
    mean value where not 0  4     5     1 (-3.59 to 5.59)
    mean value              1.2   2     0.8 (-2.15 to 3.75)
    value = 0               70%  60%  -10 (-55.5 to 38.8) points
    """
    columns = _both(first, second, names).items()
    parts = [each for name, pair in columns for each in comparisons_of(name, pair, [Pair(names)])]
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
    return {called(column.label): np.asarray(column.came) for column in Sample(sample, argument).columns}


def _estimated(compared: Sequence[Comparison], confidence: float, design: str = "") -> Differences:
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
    each = tuple(replace(found[k][0], unadjusted=compared[k].unadjusted) for k in order)
    numbers = len(distinct), design, len(of_numbers), len({each.names for each in compared})
    return Differences(each, confidence, *numbers, unjudged=bool(few))


def are_tables(samples: Sequence[Any]) -> bool:
    """Whether the columns of all samples have names."""
    return all(source_of(sample).named for sample in samples)


def _of_means(compared: Comparison, level: float, own: float, alone: bool) -> tuple[ColumnDifference, float]:
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
    by, error = (each if abs(each) > ROUNDING else 0.0 for each in (second - first, error))
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


def _of_shares(compared: Comparison, level: float) -> ColumnDifference:
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
