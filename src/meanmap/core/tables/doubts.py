"""Data that may not be what they seem: codes for missing values, numbers and dates stored as text, copied rows."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from jax.core import Tracer

from meanmap.core.held import holds_floats
from meanmap.core.language import in_few_words
from meanmap.core.points import on_host
from meanmap.core.tables.labels_meant import words_for_missing, written_in_two_ways
from meanmap.core.tables.sample import Seen, seen
from meanmap.core.tables.sentinels import Sentinels
from meanmap.core.tables.written import Written, words_of, written_notes
from meanmap.core.texts import text_codes

__all__ = [
    "are_coarse",
    "copied_columns",
    "copied_rows",
    "doubts",
    "exact_copies",
    "for_clusters",
    "row_digests",
    "same_samples",
]

# Copies are reported if there are at least this many, and at least this share of them are of different rows.
LEAST_COPIES, MANY = 3, 0.1
# Among fewer rows some agree by chance. This many times more pairs of rows must agree than by chance in a measured
# column; of two columns whose ranks correlate by more than this one counts, and only this many columns are examined.
LEAST_ROWS, TIMES, SAME, MOST_MEASURED = 20, 20, 0.99, 16
# This share of values has few digits, or is a fraction, where values may agree by chance.
OWN = 0.9
# Of fewer different values in one column these may be levels of a design; fractions of counts have such denominators,
# and steps of a grid are whole but for so much, and for rounding of at most as much as the last.
LEVELS, DENOMINATORS, ON_GRID, MOST_ERROR = 12, 30, 1e-3, 0.05
# Columns that may show quickly that no row is a copy, and rows that show whether a column has few values.
QUICK, ROWS = 3, 1000
# Columns of a variable that are compared with those of others, different values of each at least, and decimals.
MOST_COMPARED, FEW_VALUES, MOST_DECIMALS = 16, 3, 5


def doubts(
    samples: Sequence[Any], names: Sequence[str], told: Collection[str] = (), *, apart: bool = False, then: str = ""
) -> tuple[str, ...]:
    """Notes on columns, in all samples together, that may not be what they seem. Some hold numbers that may be codes
    for missing values: the sentence ends with advice (`then`), by default to declare these as codes. Others are text
    that looks like numbers or dates, or have labels that may mean missing values or that differ only in spaces or
    capitals. Columns with a declared kind (`told`) are left out. Samples without columns have no notes. Several
    variables are examined `apart`.

    Examples
    --------
    >>> print(*doubts([{"age": [*range(20, 40), -999]}], ["x"]))
    column 'age' of x holds -999 in 1 of 21 rows (4.8%), far from all other values, 20 to 39, and it counts as a \
number here, and as missing in networks: if it stands for a missing value, pass missing=[-999].
    >>> print(*doubts([{"age": [*map(str, range(20, 40)), "?"]}], ["x"]))
    column 'age' of x is text that looks like numbers (but for '?'), such as '20', and counts as labels: convert it, \
for example with pandas.to_numeric and errors='coerce', which makes the others missing. If labels are meant, convert \
it to categories, or say so with kinds={'age': 'label'}.
    """
    if apart:
        found = (doubts([sample], [name], told, then=then) for sample, name in zip(samples, names, strict=True))
        return tuple(note for notes in found for note in notes)
    together: dict[Any, list[Seen]] = {}
    for column in (column for sample in seen(samples, names) for column in sample.columns):
        if column.label not in told:
            together.setdefault(column.label, []).append(column)
    notes, texts = [], {}
    spelled: dict[Any, str] = {}
    everywhere = " and ".join(names)
    for name, columns in together.items():
        numbers = [each.numbers for each in columns if each.numbers is not None]
        alike = len({found.dtype.kind for found in numbers}) == 1  # others are refused where they are compared
        joined = np.concatenate(numbers) if alike else np.zeros(0)
        codes = Sentinels.in_column(joined)
        if codes is not None:
            notes.append(codes.note(f"{'' if name is None else f'column {name!r} of '}{everywhere}", then))
        if len(numbers) == len(columns):
            continue
        came = [each.came for each in columns]
        words = words_of(came)
        written = Written.of(words) if words else None
        if written is not None and written.many:
            texts[name] = written
        else:
            where = f"{'' if name is None else f'column {name!r} of '}{everywhere}"
            notes += words_for_missing(words, where, then) if words else ()
            labels = words_of(came, categories=True) if words is None else words
            if found := written_in_two_ways(labels or (), where):
                spelled[name] = found[0]
    return (*notes, *_first_of_all(spelled), *written_notes(texts, everywhere))


def for_clusters(notes: Sequence[str], clustered: bool) -> tuple[str, ...]:
    """Notes without those on rows that count as independent, where rows count by clusters.

    Examples
    --------
    >>> for_clusters(["9 of 60 rows of x repeat another row in every column, but count as independent"], True)
    ()
    """
    return tuple(note for note in notes if not (clustered and "count as independent" in note))


def _first_of_all(notes: Mapping[Any, str]) -> tuple[str, ...]:
    """The note on the first column, with the names of the others, of which the same is true."""
    if len(notes) < 2:
        return tuple(notes.values())
    first, *others = notes
    return (f"{notes[first]} The same is true of labels in {in_few_words(list(map(repr, others)))}.",)


def copied_rows(samples: Sequence[Any], names: Sequence[str], *, paired: bool = False) -> tuple[str, ...]:
    """Notes on rows that are copies of others, although every method counts them as independent. They need at least two
    columns of measurements, not functions of one another, in each of which rows that agree in all other columns agree
    far more often than any two rows; zeros or other values that many rows share do not count. Values of a single column
    are copies if most rows share theirs to the last digit, and they are neither rounded nor on a grid. Rows of `paired`
    samples are those of all variables together. O(n log n) per column that is measured.

    Examples
    --------
    >>> measured = {"width": np.arange(30) + 0.5, "height": np.sqrt(np.arange(30)) * (-1) ** np.arange(30)}
    >>> copied_rows([measured], ["x"])
    ()
    >>> print(*copied_rows([{name: np.repeat(column, 2) for name, column in measured.items()}], ["x"]))
    30 of 60 rows of x repeat another row in every column, but count as independent: if they are copies, remove them.
    """
    if not paired:
        found = (copied_rows([sample], [name], paired=True) for sample, name in zip(samples, names, strict=True))
        return tuple(note for notes in found for note in notes)
    columns = [on_host(column.came) for sample in seen(samples, names) for column in sample.columns]
    if not columns or any(isinstance(column, Tracer) or getattr(column, "ndim", 1) != 1 for column in columns):
        return ()
    arrays = [np.asarray(column) for column in columns]
    n = len(arrays[0])
    if n < LEAST_ROWS or any(len(array) != n or array.dtype.kind not in "biufmMOUST" for array in arrays):
        return ()
    measured = [at for at, a in enumerate(arrays) if holds_floats(a) and np.mean(a != np.round(a)) > 0.5]
    said = " and ".join(names)
    if len(measured) == 1:
        values = _copied_values(arrays[measured[0]], said)
        return values if len(arrays) == 1 or not values else _copied_wholes(arrays, said)
    if len(measured) < 2 or any(n - len(np.unique(arrays[at])) < LEAST_COPIES for at in measured[:QUICK]):
        return ()
    parts = [_digests(array, at) for at, array in enumerate(arrays)]
    whole = np.add.reduce(parts)
    times = _times(whole)
    copies, copied = n - len(times), int(np.sum(times > 1))
    if copies < LEAST_COPIES or copied < MANY * copies:
        return ()
    equal, pairs = _pairs(times), n * (n - 1) / 2
    agreeing: list[int] = []
    for at in measured[:MOST_MEASURED]:
        by_chance = _pairs(_times(whole - parts[at])) * (_pairs(_times(parts[at])) - equal) / pairs
        if TIMES * by_chance <= equal and not any(_say_the_same(arrays, parts, at, other, equal) for other in agreeing):
            agreeing.append(at)
    if len(agreeing) < 2:
        return ()
    return (_repeat(copies, n, said),)


def _repeat(copies: int, n: int, said: str) -> str:
    rows = f"{copies} of {n} rows of {said} repeat another row in every column, but count as independent"
    return f"{rows}: if they are copies, remove them."


def _copied_wholes(arrays: Sequence[np.ndarray], said: str) -> tuple[str, ...]:
    """Notes on rows of which most share their only measurement, if they also share all other columns."""
    times = _times(np.add.reduce([_digests(array, at) for at, array in enumerate(arrays)]))
    n = len(arrays[0])
    return (_repeat(n - len(times), n, said),) if times[times > 1].sum() >= n / 2 else ()


def _copied_values(column: np.ndarray, said: str) -> tuple[str, ...]:
    """Notes on one column in which most rows share their value, with all decimals, and values are not levels."""
    values, times = np.unique(column[np.isfinite(column)], return_counts=True)
    rows = int(times[times > 1].sum())
    if len(values) < LEVELS or rows < len(column) / 2 or are_coarse(values):
        return ()
    note = f"{rows} of {len(column)} rows of {said} have exactly the value of another row"
    if (times == times[0]).all():
        note = f"each value of {said} occurs {times[0]} times"
    return (f"{note}, but rows count as independent: if they are copies, remove them.",)


def are_coarse(values: np.ndarray) -> bool:
    """Whether sorted values may agree by chance: they have few digits or lie on an even grid, perhaps in other units.

    Others are logarithms, roots or reciprocals of values with few digits, fractions with small denominators, and even
    grids of logarithms.
    """
    short = values.dtype.itemsize < 8
    digits, close = (4, 5e-7) if short else (9, 1e-12)
    rounding = 4 * float(np.finfo(values.dtype).eps)
    values = values.astype(np.float64)
    with np.errstate(all="ignore"):
        made = (values, np.exp(values), np.expm1(values), 10.0**values, 2.0**values, values**2, 1 / values)
        for each in made:
            unit = 10.0 ** (np.floor(np.log10(np.abs(each))) + 1 - digits)
            few = np.abs(each - np.round(each / unit) * unit) <= close * np.abs(each)
            if np.mean(few | (each == 0)) >= OWN:
                return True
        whole = np.zeros(len(values), bool)
        for denominator in range(3, DENOMINATORS):
            whole |= np.abs(values * denominator - np.round(values * denominator)) <= close * denominator
        if whole.mean() >= OWN:
            return True
        for each in (values, np.log(values)):
            least = np.diff(each).min()
            steps, error = np.diff(each) / least, rounding * np.abs(each).max() / least
            if np.max(np.abs(steps - np.round(steps))) <= min(ON_GRID + error, MOST_ERROR):
                return True
    return False


def copied_columns(samples: Sequence[Any], names: Sequence[str]) -> tuple[str, ...]:
    """Notes on columns of different variables that are equal, or equal up to rounding.

    Examples
    --------
    >>> length = np.sqrt(np.arange(30))
    >>> print(*copied_columns([length, length.round(1)], ["x", "y"]))
    y is x rounded to 1 decimal: they are dependent because one was computed from the other.
    """
    listed = [
        (k, name if column.label is None else f"column {column.label!r} of {name}", column)
        for k, (sample, name) in enumerate(zip(seen(samples, names), names, strict=True))
        for column in sample.columns[:MOST_COMPARED]
    ]
    found = [(k, said, each) for k, said, column in listed if (each := _measures(column)) is not None]
    notes = []
    for i, (k, said, column) in enumerate(found):
        for other, also, values in found[i + 1 :]:
            if other == k or len(column) != len(values):
                continue
            if np.array_equal(column, values):
                notes.append(f"{also} equals {said}: they are dependent because they are the same.")
            elif (pair := _rounded(column, values)) is not None:
                fine, coarse = (said, also) if pair[0] else (also, said)
                digits = f"{pair[1]} decimal{'s' * (pair[1] != 1)}" if pair[1] else "whole numbers"
                notes.append(
                    f"{coarse} is {fine} rounded to {digits}: they are dependent because one was computed from the "
                    f"other."
                )
    return tuple(notes)


def same_samples(samples: Sequence[Any], names: Sequence[str]) -> tuple[str, ...]:
    """Notes on a sample that equals another one row by row, in columns with more than a few values.

    Examples
    --------
    >>> length = np.sqrt(np.arange(30))
    >>> same_samples([length, length + 1], ["x", "y"])
    ()
    >>> print(*same_samples([length, length], ["x", "y"]))
    y holds exactly the rows of x: a sample does not differ from itself.
    """
    found = [[_measures(column) for column in sample.columns] for sample in seen(samples, names)]
    notes = []
    for i, (one, read) in enumerate(zip(names, found, strict=True)):
        known = [k for k, column in enumerate(read) if column is not None]
        for other, also in zip(names[i + 1 :], found[i + 1 :], strict=True):
            if known and len(also) == len(read) and all(_are_equal(read[k], also[k]) for k in known):
                again = f"{other} holds exactly the rows of {one}"
                notes.append(f"{again}: a sample does not differ from itself.")
    return tuple(notes)


def _are_equal(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    return one is not None and other is not None and np.array_equal(one, other)


def _measures(column: Seen) -> np.ndarray | None:
    """Numbers of a column without missing values, if there are more than a few."""
    numbers = None if getattr(column.came, "ndim", 1) != 1 else column.numbers
    if numbers is None or not holds_floats(numbers) or len(numbers) < LEAST_ROWS or not np.isfinite(numbers).all():
        return None
    return numbers if len(np.unique(numbers[:ROWS])) > FEW_VALUES else None


def _rounded(one: np.ndarray, other: np.ndarray) -> tuple[bool, int] | None:
    """Whether the second is the rounded one, and to how many decimals; None if neither is."""
    for digits in range(MOST_DECIMALS):
        for second, (fine, coarse) in ((True, (one, other)), (False, (other, one))):
            if all(np.array_equal(np.round(fine[part], digits), coarse[part]) for part in (slice(100), slice(None))):
                return second, digits
    return None


def _digests(column: np.ndarray, at: int) -> np.ndarray:
    """64 bits for each value of a column, the same for the same values; sums over columns stand for whole rows."""
    codes = text_codes(column) if column.dtype.kind in "OUST" else column
    bits = (codes.astype(np.float64) + 0.0).view(np.uint64) + np.uint64(at * 0x9E3779B97F4A7C15 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # splitmix64; -0.0 is 0.0
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return bits ^ (bits >> np.uint64(31))


def exact_copies(columns: Sequence[np.ndarray]) -> int:
    """The number of rows that repeat another one in every column, of any kind; 0 for columns of several numbers.

    Examples
    --------
    >>> exact_copies([np.array([1, 2, 1, 1]), np.array(["a", "b", "a", "b"])])
    1
    """
    whole = row_digests(columns)
    return len(whole) - len(np.unique(whole))


def row_digests(columns: Sequence[np.ndarray]) -> np.ndarray:
    """64 bits for each row, the same for rows that are equal in every column; none for columns of several numbers."""
    if any(column.ndim != 1 or column.dtype.kind not in "biufmMOUST" for column in columns):
        return np.zeros(0, np.uint64)
    return np.add.reduce([_digests(column, at) for at, column in enumerate(columns)])


def _say_the_same(
    arrays: Sequence[np.ndarray], parts: Sequence[np.ndarray], one: int, other: int, copies: float
) -> bool:
    """Whether two columns are functions of one another: nearly in order, or as covariates of groups are."""
    ranks = [np.unique(arrays[at], return_inverse=True)[1] for at in (one, other)]
    both = _pairs(_times(parts[one] + parts[other])) - copies
    alone = min(_pairs(_times(parts[at])) for at in (one, other)) - copies
    return abs(np.corrcoef(ranks[0], ranks[1])[0, 1]) > SAME or both > alone / 2 > 0


def _times(values: np.ndarray) -> np.ndarray:
    """The number of occurrences of each distinct value."""
    return np.unique(values, return_counts=True)[1]


def _pairs(times: np.ndarray) -> float:
    """The number of pairs that agree."""
    return float(np.sum(times * (times - 1.0)) / 2)
