"""Rows whose order matters: serially dependent rows, and columns that only number the rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from meanmap.core.held import holds_floats, holds_text, holds_times
from meanmap.core.moments import is_clock, is_time
from meanmap.core.tables.kinds import is_text
from meanmap.core.tables.sample import seen
from meanmap.core.tables.written import Written
from meanmap.core.texts import text_codes

__all__ = [
    "LEAST",
    "LEAST_ROWS",
    "NEARLY_ALL",
    "alike_in_order",
    "clocks",
    "counters",
    "gives_place",
    "holds_dates",
    "is_sorted",
    "may_be_ids",
    "numbers_rows",
    "series_note",
    "tied_ranks",
]

# Fewer rows say little. Of many rows blocks of consecutive ones are looked at, spread over all: this many, so long.
LEAST_ROWS, BLOCKS, LENGTH = 20, 20, 500
# Of wider tables this many columns, spread over all.
MOST_COLUMNS = 32
# The rate of false notes on tables of independent rows, and the least correlation of neighbours. With a # smaller one
# the standard error of a mean is at most a tenth larger.
CHANCE, LEAST = 0.002, 0.1
# Steps of a grid differ by as much, of the largest, where values were rounded.
ROUNDING = 1e-6
# A column that numbers the rows has this share of different values and of steps up, although rows may be left out.
NEARLY_ALL = 0.9
# Ids of one of several groups fill more than one in this many numbers of their range.
SPARSE = 10
# Groups of rows, each in one place of the table, have this many rows on average.
ROWS_OF_A_GROUP = 5


def alike_in_order(
    samples: Sequence[Any], names: Sequence[str], harm: str = "", *, paired: bool = False
) -> tuple[str, ...]:
    """Notes on samples whose rows are serially dependent, although tests count them as independent. The criterion is
    the rank correlation of neighbouring rows, which is small for independent rows of any distribution; for numbers with
    many values strongly negative ones count too, as of alternating rows. Rows of `paired` variables (or of the columns
    of one table) are those of all together; there two variables must be series, or nothing is wrong.
    Rows of tables that come group by group are compared with those of their group. A column by which rows are sorted
    shows nothing, except that it may number the rows. `harm` is the consequence and the advice, if these are not small
    p-values and blocks of rows. O(columns), however many rows there are.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.normal(size=100)
    >>> alike_in_order([noise], ["x"])
    ()
    >>> print(*alike_in_order([noise.cumsum()], ["x"]))
    consecutive rows of x are alike (they correlate by 0.98) and count as independent: if they are a series, \
p-values are too small. Pass clusters=10 for blocks of rows, or within= with what rows share, or test the residuals \
of structure.prewhiten. Rows that were only sorted do no harm.
    """
    read = [[(name, c.label, c) for c in each.columns] for each, name in zip(seen(samples, names), names, strict=True)]
    if paired:
        whole = [column for columns in read for column in columns]
        read = [[(str(label), label, c) for _, label, c in whole] if len(samples) == 1 else whole]
    series: dict[str, tuple[float, Any]] = {}
    numbering: dict[tuple[Any, str, bool], list[str]] = {}
    rows = 0
    for columns in read:
        found, by, n = _looked_at([(name, label, column.array) for name, label, column in columns])
        series, rows = series | found, max(rows, n)
        for name, label, steps in by:
            numbering.setdefault((label, steps, len(columns) > 1), []).append(name)
    notes = [
        _associated(_placed(" and ".join(each), label, several), steps)
        for (label, steps, several), each in numbering.items()
    ]
    if len(series) < 1 + paired:
        return tuple(notes)
    own = paired and len(samples) == 1  # then names are those of columns
    labels = [label for _, label in series.values()]
    sizes = [f"{r:.2f}" + ("" if label is None or own else f" in {_called(label)}") for r, label in series.values()]
    if not own and len(labels) > 1 and labels[0] is not None and set(labels) == {labels[0]}:  # named once
        sizes = [*(f"{r:.2f}" for r, _ in list(series.values())[:-1]), sizes[-1]]
    return (*notes, series_note(list(series), sizes, [r for r, _ in series.values()], rows, harm))


def clocks(given: object, name: str) -> tuple[str, ...]:
    """Notes on conditioning columns (`given`) with equally spaced values, each once, in any order.

    Examples
    --------
    >>> clocks(np.arange(40) ** 2, "z")
    ()
    >>> print(*clocks(np.arange(40), "z"))
    z holds whole numbers one by one, as a clock or an id does. Regression on it only partly removes what \
series share along the rows (a trend, a random walk): if x and y are series, the p-value may be far too small. \
Permutations within pairs of neighbouring rows suffer least from this: \
independence_test(x, y, within=numpy.arange(len(x)) // 2).
    """
    return tuple(
        f"{place} holds {steps}, as a clock or an id does. Regression on it only partly removes what series share "
        f"along the rows (a trend, a random walk): if x and y are series, the p-value may be far too small. "
        f"Permutations within pairs of neighbouring rows suffer least from this: "
        "independence_test(x, y, within=numpy.arange(len(x)) // 2)."
        for place, steps in _stepping(given, name)
    )


def counters(given: object, name: str) -> tuple[str, ...]:
    """Notes on such columns as variables of a table.

    Examples
    --------
    >>> print(*counters(np.arange(40), "z"))
    z holds whole numbers one by one, as a clock or an id does: whatever changes along the rows is associated with it. \
Leave it out if it only gives the position of a row.
    """
    return tuple(_associated(place, steps) for place, steps in _stepping(given, name))


def numbers_rows(column: np.ndarray) -> bool:
    """Whether a column only numbers the rows or gives each its own name: whole numbers that rise (or fall) from row to
    row and fill half of their range, although a few rows may be missing or repeated, or words without spaces of which
    nearly every row has its own.

    Examples
    --------
    >>> rows = np.arange(40)
    >>> numbers_rows(rows), numbers_rows(np.delete(rows, [3, 9])), numbers_rows(rows**2), numbers_rows(rows[::-1] % 9)
    (True, True, False, False)
    """
    if column.ndim != 1 or len(column) < LEAST_ROWS:
        return False
    if holds_text(column):
        words = np.unique(column)
        return is_text(len(words), len(column)) and not any(len(word.split()) > 1 for word in words.tolist())
    return _rises(column) and len(np.unique(column)) > float(np.ptp(column.astype(np.float64))) / 2


def _rises(column: np.ndarray) -> bool:
    """Whether whole numbers are nearly all different and nearly always rise, or fall, from row to row."""
    if column.dtype.kind not in "iuf" or len(column) < 2 or not np.array_equal(column, np.round(column)):
        return False
    steps = np.diff(column.astype(np.float64))
    up = max((steps > 0).mean(), (steps < 0).mean())
    return bool(min(up, len(np.unique(column)) / len(column)) >= NEARLY_ALL)


def may_be_ids(column: np.ndarray) -> bool:
    """Whether whole numbers that rise fill a part of their range, as the ids of one of several groups do."""
    return _rises(column) and len(np.unique(column)) > float(np.ptp(column.astype(np.float64))) / SPARSE


def holds_dates(column: np.ndarray) -> bool:
    """Whether a column of text holds dates in any usual form, or times of day.

    Examples
    --------
    >>> [holds_dates(np.array(words)) for words in (["1/31/26", "2/1/26"], ["7:30", "12:05"], ["7:30 PM"], ["noon"])]
    [True, True, True, False]
    """
    if column.ndim != 1 or not holds_text(column):
        return False
    words = np.unique(column).tolist()
    written = Written.of(words)
    dates = written is not None and written.what.startswith("dates") and not written.others
    return dates or all(map(is_clock, words))


def gives_place(column: np.ndarray) -> bool:
    """Whether a column says only which row it is, or where or when: times, texts of dates or times in any usual form,
    texts of which nearly every row has its own, values in equal steps, or whole numbers that rise from row to row.

    Examples
    --------
    >>> gives_place(np.array(["2026-01-31", "2026-02-01"])), gives_place(np.arange(40)), gives_place(np.arange(40) % 9)
    (True, True, False)
    >>> gives_place(np.array(["31.01.2026", "01.02.2026"])), gives_place(np.array(["Jan 31, 2026", "Feb 1, 2026"]))
    (True, True)
    """
    if holds_text(column):
        words = np.unique(column)
        return holds_dates(column) or is_text(len(words), len(column)) or all(map(is_time, words.tolist()))
    if column.dtype.kind in "iuf" and len(column) >= LEAST_ROWS and np.array_equal(column, np.round(column)):
        steps = np.diff(column.astype(np.float64))
        if (steps > 0).all() or (steps < 0).all():
            return True
    return column.dtype.kind == "M" or numbers_rows(column) or bool(_stepping(column, ""))


def _stepping(given: object, name: str) -> list[tuple[str, str]]:
    """Columns with equally spaced values, each once, and what these are called."""
    (sample,) = seen([given], [name])
    found = []
    for column in sample.columns:
        values = column.array
        if values is None or values.dtype.kind not in "iufmM" or len(values) < LEAST_ROWS:
            continue
        if _in_equal_steps(values):
            steps = _steps_of(values, values.dtype.kind != "M" and np.ptp(values) == len(values) - 1)
            found.append((_placed(name, column.label, len(sample.columns) > 1), steps))
    return found


def _looked_at(
    columns: Sequence[tuple[str, Any, np.ndarray | None]],
) -> tuple[dict[str, tuple[float, Any]], list[tuple[str, Any, str]], int]:
    """Among columns side by side: those with similar neighbours, by name; those that number the rows, and how; and the
    rows.
    """
    listed = [(name, label, column) for name, label, column in columns if column is not None and _is_finite(column)]
    if not listed or len({len(column) for *_, column in listed}) > 1 or len(listed[0][2]) < LEAST_ROWS:
        return {}, [], 0
    rows, next_to = _blocks(len(listed[0][2]))
    listed = [(name, label, column[rows]) for name, label, column in listed[:: -(-len(listed) // MOST_COLUMNS)]]
    by = [each for each in listed if is_sorted(each[2]) or _rises(each[2])]
    if by:
        beside = len(listed) > 1
        numbering = [each for each in by if _is_counter(each[2], next_to) or (beside and may_be_ids(each[2]))]
        return {}, [(name, label, _steps(column, next_to)) for name, label, column in numbering], 0
    from scipy.special import ndtri

    group = _groups([column for *_, column in listed])
    needed = float(ndtri(1 - CHANCE / len(listed)))
    series: dict[str, tuple[float, Any]] = {}
    for name, label, column in listed:
        size, score = _alike(column, group, next_to)
        if size < 0 and not _is_measured(column):
            continue  # labels and levels of a design may alternate
        if abs(size) >= LEAST and abs(score) >= needed and abs(size) > abs(series.get(name, (0.0, None))[0]):
            series[name] = size, label
    return series, [], len(rows)


def _called(label: object) -> str:
    return f"column {label}" if isinstance(label, int) else repr(label)


def series_note(names: Sequence[str], sizes: Sequence[str], by: Sequence[float], n: int, harm: str = "") -> str:
    """The note on variables whose neighbouring rows correlate `by` this much; `sizes` are the values in words."""
    # The variance of a mean is (1 + r) / (1 − r) times that of independent rows; where rows take turns, that of a
    # mean of squares nearly so.
    longest = max(map(abs, by))
    block = int(np.clip(5 * (1 + longest) / (1 - min(longest, 0.99)), 5, max(5, n // 10)))
    ordered = f"Rows that were only {'sorted' if min(by) > 0 else 'put in such an order'} do no harm"
    usual = (
        f"if they are a series, p-values are too small. Pass clusters={block} for blocks of rows, or within= with "
        f"what rows share, or test the residuals of structure.prewhiten. {ordered}."
    )
    alike = "are alike" if min(by) > 0 else "depend on each other"
    return (
        f"consecutive rows of {' and '.join(names)} {alike} (they correlate by {' and '.join(sizes)}) "
        f"and count as independent: {f'if they are a series, {harm}. {ordered}.' if harm else usual}"
    )


def _blocks(n: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows used, and whether each of them, except the last, is followed by its neighbour."""
    if n <= BLOCKS * LENGTH:
        rows = np.arange(n)
    else:
        starts = np.linspace(0, n - LENGTH, BLOCKS).astype(int)
        rows = (starts[:, None] + np.arange(LENGTH)).ravel()
    return rows, np.diff(rows) == 1


def tied_ranks(column: np.ndarray) -> np.ndarray:
    """Ranks, with ties; for labels their positions in sorted order."""
    values = text_codes(column) if column.dtype.kind == "O" else column
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - counts / 2)[places.ravel()]


def _is_finite(column: np.ndarray) -> bool:
    """Whether numbers are finite; others are refused later, in words."""
    return not holds_floats(column) or bool(np.isfinite(column).all())


def is_sorted(column: np.ndarray) -> bool:
    """Whether rows are sorted by a column of numbers or times with many values."""
    if column.dtype.kind not in "iufmM":
        return False
    steps = np.diff(column.astype(np.float64))
    many = np.count_nonzero(steps) >= len(column) / ROWS_OF_A_GROUP
    return bool(many and ((steps >= 0).all() or (steps <= 0).all()))


def _is_measured(column: np.ndarray) -> bool:
    """Whether a column holds numbers or times of which most are different."""
    return column.dtype.kind in "iufmM" and len(np.unique(column)) > len(column) / 2


def _is_counter(column: np.ndarray, next_to: np.ndarray) -> bool:
    """Whether a column rises by one from row to row, as an id does, or is times in equal steps."""
    if holds_times(column):
        steps = np.diff(column.astype(np.int64))[next_to]
        return bool((steps == steps[0]).all())
    return bool((np.abs(np.diff(column.astype(np.float64))[next_to]) == 1).all())


def _in_equal_steps(column: np.ndarray) -> bool:
    """Whether numbers or times are all different and equally spaced, up to rounding."""
    values = np.sort(column.astype(np.int64) if holds_times(column) else column)
    if not np.isfinite(values).all():
        return False
    steps = np.diff(values).astype(float)
    return bool(steps.min() > 0 and np.ptp(steps) <= ROUNDING * steps.max())


def _steps_of(column: np.ndarray, whole: bool = True) -> str:
    """The description of equally spaced values."""
    if holds_times(column):
        return "times in equal steps"
    return "whole numbers one by one" if whole else "numbers in equal steps"


def _placed(name: str, label: object, several: bool) -> str:
    """A variable, or one of several of its columns, or a column that is called as it is."""
    if label is None or not several:
        return name
    return f"column {label!r}" if name == str(label) else f"column {label!r} of {name}"


def _steps(column: np.ndarray, next_to: np.ndarray) -> str:
    """The description of a column that numbers the rows."""
    return _steps_of(column) if _is_counter(column, next_to) else "whole numbers that rise from row to row"


def _associated(place: str, steps: str) -> str:
    return (
        f"{place} holds {steps}, as a clock or an id does: whatever changes along the rows is associated with it. "
        f"Leave it out if it only gives the position of a row."
    )


def _groups(columns: Sequence[np.ndarray]) -> np.ndarray:
    """For each row the number of its group, if columns hold values that each occur in consecutive rows only."""
    group = np.zeros(len(columns[0]), int)
    for column in columns:
        codes = tied_ranks(column)
        runs = 1 + np.count_nonzero(np.diff(codes))
        if runs <= len(codes) / ROWS_OF_A_GROUP and runs == len(np.unique(codes)):
            group = group + np.concatenate([[0], np.cumsum(np.diff(codes) != 0)])
    return np.concatenate([[0], np.cumsum(np.diff(group) != 0)])


def _alike(column: np.ndarray, group: np.ndarray, next_to: np.ndarray) -> tuple[float, float]:
    """The rank correlation of neighbours within groups, and its z-score."""
    ranks, sizes = tied_ranks(column), np.bincount(group)
    left = ranks - (np.bincount(group, ranks) / sizes)[group]
    variance = np.bincount(group, left**2) / sizes
    pairs = next_to & (np.diff(group) == 0)
    products = (left[:-1] * left[1:])[pairs]
    total = float(np.sum(variance[group[:-1]][pairs]))
    spread = float(np.sqrt(np.sum(products**2)))
    if not total > 0 or not spread > 0:
        return 0.0, 0.0
    # Centred ranks are negatively correlated: −variance / (rows − 1) per pair.
    expected = -float(np.sum((variance / np.maximum(sizes - 1, 1))[group[:-1]][pairs]))
    excess = float(products.sum()) - expected
    return excess / total, excess / spread
