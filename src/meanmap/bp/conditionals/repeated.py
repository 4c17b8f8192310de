"""Columns beside a graph whose values, such as people, have several rows each and one value of the cause."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from meanmap.core.held import holds_labels, holds_whole

__all__ = ["repeated"]

# Fewer values of a column are no sample of them.
LEAST = 5


def repeated(columns: Mapping[str, Any], of: str, nodes: Collection[str]) -> tuple[str, ...]:
    """Notes: where the cause belongs to the person, rows of one person do not count as many.

    Examples
    --------
    >>> table = {"who": list("aabbccddee"), "drug": [0, 0, 1, 1, 0, 0, 1, 1, 0, 0]}
    >>> repeated(table, "drug", ["drug"])[0].split(":")[0]
    "each of 5 values of 'who' has one value of 'drug', in 2 rows on average"
    """
    _, cause = _coded(np.asarray(columns[of]))
    notes = []
    for name, column in columns.items():
        values = np.asarray(column)
        if name in nodes or values.ndim != 1 or not (holds_whole(values) or holds_labels(values)):
            continue
        number, codes = _coded(values)
        if not LEAST <= number <= len(codes) / 2:
            continue
        if len(np.unique(codes * (cause.max() + 1) + cause)) == number:
            notes.append(
                f"each of {number} values of {name!r} has one value of {of!r}, in {len(codes) / number:.3g} rows on "
                f"average: if rows with the same {name!r} depend on one another, as those of one person do, intervals "
                f"are far too narrow: pass clusters={name!r}."
            )
    return tuple(notes)


def _coded(values: np.ndarray) -> tuple[int, np.ndarray]:
    """The number of distinct values, and the index of each row's value."""
    found, codes = np.unique(values.astype(str) if holds_labels(values) else values, return_inverse=True)
    return len(found), codes.ravel()
