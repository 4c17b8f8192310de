"""Notes of structure learners on columns that are functions of one another."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from meanmap.core.held import holds_numbers
from meanmap.core.tables.order import tied_ranks

__all__ = ["functions_of_one", "functions_told"]

# With fewer rows or values there is no note.
LEAST_ROWS, LEAST_VALUES = 20, 5
# Squared differences of ranks along another column, relative to a random order: nearly the share of noise. Normal
# columns that correlate by .997 have .005; a³, exp(a), ranks of a and a rounded to a tenth of its spread have less.
NOISE = 0.005


def functions_of_one(columns: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """Pairs (a, b) of columns of numbers such that b nearly determines a: along b the ranks of a hardly jump.

    Examples
    --------
    >>> a = np.random.default_rng(0).normal(size=100)
    >>> functions_of_one({"a": a, "cube": a**3, "size": np.abs(a), "noise": a + 0.2 * a[::-1]})
    [('a', 'cube'), ('cube', 'a'), ('size', 'a'), ('size', 'cube')]
    """
    numbers = {name: found for name, column in columns.items() if (found := _numbers(column)) is not None}
    pairs = []
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
            notes.append(f"{a} is a function of {b}, or nearly: given {b} it is independent of all, and edges of {a} ")
        elif pairs.index((a, b)) < pairs.index((b, a)):
            notes.append(
                f"{a} and {b} are functions of each other, or nearly: given one the other is independent of all, and "
                "edges of both "
            )
    return tuple(f"{note}may be missing. Leave one of the two out." for note in notes)


def _numbers(column: object) -> np.ndarray | None:
    """Columns of numbers with more than a few values."""
    array = np.asarray(column)
    if array.ndim != 1 or not holds_numbers(array):
        return None
    return array.astype(float) if len(np.unique(array)) >= LEAST_VALUES else None


def _follows(a: np.ndarray, b: np.ndarray) -> bool:
    if len(a) < LEAST_ROWS:
        return False
    ranks = tied_ranks(a)
    spread = 2 * float(np.sum((ranks - ranks.mean()) ** 2))
    return spread > 0 and float(np.sum(np.diff(ranks[np.argsort(b, kind="stable")]) ** 2)) <= NOISE * spread
