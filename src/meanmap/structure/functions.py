"""Notes on columns that are functions of one another."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy.special import gammaln

from meanmap.core.held import holds_numbers
from meanmap.core.tables.order import tied_ranks

__all__ = ["functions_of_one", "functions_told"]

# With fewer rows or values there is no note.
LEAST_ROWS, LEAST_VALUES = 20, 5
# At most this many labels have intervals, which random rows would have with at most this probability.
MOST_LABELS, CHANCE = 20, 1e-6
# Squared differences of ranks along another column, relative to a random order: nearly the share of noise. Normal
# columns that correlate by .997 have .005; a³, exp(a), ranks of a and a rounded to a tenth of its spread have less.
NOISE = 0.005


def functions_of_one(columns: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """Pairs (a, b) of columns such that b, a column of numbers, nearly determines a: along b the ranks of numbers a
    hardly jump, and each label has an interval of its own.

    Examples
    --------
    >>> a = np.random.default_rng(0).normal(size=100)
    >>> functions_of_one({"a": a, "cube": a**3, "size": np.abs(a), "noise": a + 0.2 * a[::-1]})
    [('a', 'cube'), ('cube', 'a'), ('size', 'a'), ('size', 'cube')]
    >>> functions_of_one({"spent": np.maximum(a, 0), "bought": np.where(a > 0, "yes", "no")})
    [('bought', 'spent')]
    """
    numbers = {name: found for name, column in columns.items() if (found := _numbers(column)) is not None}
    labels = {name: found for name, column in columns.items() if (found := _labels(column)) is not None}
    pairs = [(a, b) for a in labels for b in numbers if a != b and _in_intervals(labels[a], numbers[b])]
    for a in numbers:
        for b in numbers:
            rows = np.isfinite(numbers[a]) & np.isfinite(numbers[b])
            if a != b and _follows(numbers[a][rows], numbers[b][rows]):
                pairs.append((a, b))
    return pairs


def functions_told(pairs: Iterable[tuple[Any, Any]]) -> tuple[str, ...]:
    """The notes on these pairs, one for each."""
    pairs, notes = list(pairs), []
    for a, b in pairs:
        if (b, a) not in pairs:
            notes.append(
                f"{a} is a function of {b}, or nearly: given {b} it is independent of all others, so edges of {a} "
            )
        elif pairs.index((a, b)) < pairs.index((b, a)):
            notes.append(
                f"{a} and {b} are functions of each other, or nearly: given one the other is independent of all "
                "others, so edges of both "
            )
    return tuple(f"{note}may be missing. Leave one of the two out." for note in notes)


def _numbers(column: object) -> np.ndarray | None:
    """Columns of numbers with more than a few values."""
    array = np.asarray(column)
    if array.ndim != 1 or not holds_numbers(array):
        return None
    return array.astype(float) if len(np.unique(array)) >= LEAST_VALUES else None


def _labels(column: object) -> np.ndarray | None:
    """Columns of a few labels, or of fewer values than those of numbers, as codes."""
    array = np.asarray(column)
    if array.ndim != 1 or _numbers(column) is not None:
        return None
    values, codes = np.unique(array.astype(str), return_inverse=True)
    return codes if 2 <= len(values) <= MOST_LABELS else None


def _in_intervals(labels: np.ndarray, b: np.ndarray) -> bool:
    """Whether each label is found in one interval of b, and that would hardly be by chance."""
    rows = np.isfinite(b)
    b, codes = b[rows], labels[rows]
    if len(b) < LEAST_ROWS:
        return False
    order = np.lexsort((codes, b))
    changes = codes[order][1:] != codes[order][:-1]
    counts = np.bincount(codes)
    k = np.count_nonzero(counts)
    chance = gammaln(k + 1) + gammaln(counts + 1).sum() - gammaln(len(b) + 1)
    torn = changes & (np.diff(b[order]) == 0)  # one value with two labels
    return bool(k > 1 and changes.sum() == k - 1 and not torn.any() and chance < np.log(CHANCE))


def _follows(a: np.ndarray, b: np.ndarray) -> bool:
    if len(a) < LEAST_ROWS:
        return False
    ranks = tied_ranks(a)
    spread = 2 * float(np.sum((ranks - ranks.mean()) ** 2))
    return spread > 0 and float(np.sum(np.diff(ranks[np.argsort(b, kind="stable")]) ** 2)) <= NOISE * spread
