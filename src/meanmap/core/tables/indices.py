"""Rows with an index, as in pandas: rows are paired by position, and the index may contradict this."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from meanmap.core.errors import ColumnError

__all__ = ["check_order", "places_differ"]


def check_order(parts: Sequence[Any], names: Sequence[str]) -> None:
    """Refuse pandas columns or tables whose rows have the same labels in another order: pairs would be wrong.

    Examples
    --------
    >>> import pandas as pd
    >>> x = pd.Series([1.0, 2.0, 3.0])
    >>> check_order([x, x.sort_values(ascending=False)], ["x", "y"])
    Traceback (most recent call last):
    meanmap.core.errors.ColumnError: the rows of y have the labels of those of x (its index) in another order, but \
rows are paired by position. Pass y.loc[x.index], or y.to_numpy() if the positions are right.
    """
    for first, other, name, called in _pairs(parts, names):
        if len(first) == len(other) and first.isin(other).all() and other.isin(first).all():
            how = f"{called}.loc[{name}.index]" if first.is_unique and other.is_unique else f"{called}.sort_index()"
            both = f" and {name}.sort_index()" if how.endswith("sort_index()") else ""
            raise ColumnError(
                f"the rows of {called} have the labels of those of {name} (its index) in another order, but rows are "
                f"paired by position. Pass {how}{both}, or {called}.to_numpy() if the positions are right."
            )


def places_differ(parts: Sequence[Any], names: Sequence[str]) -> tuple[str, ...]:
    """Notes on paired variables in which the same row label is at different positions. Indices that only number the
    rows are ignored, as are those without common labels.
    """
    notes = []
    for first, other, name, called in _pairs(parts, names):
        if _counts(first) or _counts(other) or len(first) != len(other):
            continue
        shared = int((first.isin(other) & (first != other)).sum())
        if shared:
            notes.append(
                f"{shared} labels of rows (the index) are at different positions in {called} and {name}, but rows are "
                f"paired by position: join both by label first, if labels identify the rows."
            )
    return tuple(notes)


def _pairs(parts: Sequence[Any], names: Sequence[str]) -> list[tuple[Any, Any, str, str]]:
    """The indices of each pair of pandas columns or tables that differ, with their names."""
    beside: list[tuple[Any, str]] = [
        (getattr(part, "index", None), name) for part, name in zip(parts, names, strict=True)
    ]
    found = [(index, name) for index, name in beside if type(index).__module__.startswith("pandas")]
    return [(a, b, name, called) for (a, name), (b, called) in combinations(found, 2) if not (a is b or a.equals(b))]


def _counts(index: Any) -> bool:
    """Whether an index only numbers the rows from 0."""
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1
