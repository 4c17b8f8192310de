"""Rows with an index, as in pandas: rows are paired by position, and the index may contradict this."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from meanmap.core.errors import ColumnError

__all__ = ["check_order", "check_order_beside", "places_differ"]


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
        _refuse_reordered(first, other, name, called)


def check_order_beside(samples: Sequence[Any], names: Sequence[str], **beside: object) -> None:
    """Refuse a value for each row of all samples, one after another, whose labels are theirs in another order.

    Examples
    --------
    >>> import pandas as pd
    >>> x, y = pd.Series([1.0, 2.0]), pd.Series([3.0], index=[2])
    >>> check_order_beside([x, y], ["x", "y"], weights=pd.Series([1, 2, 3], index=[2, 1, 0]))
    Traceback (most recent call last):
    meanmap.core.errors.ColumnError: the rows of weights have the labels of those of pandas.concat([x, y]) (its index) \
in another order, but rows are paired by position. Pass weights.loc[pandas.concat([x, y]).index], or \
weights.to_numpy() if the positions are right.
    """
    indices = [_index_of(sample) for sample in samples]
    if any(index is None for index in indices):
        return
    first, name = indices[0].append(indices[1:]), f"pandas.concat([{', '.join(names)}])"
    for called, part in beside.items():
        other = _index_of(part)
        if other is not None and not first.equals(other):
            _refuse_reordered(first, other, name, called)


def _refuse_reordered(first: Any, other: Any, name: str, called: str) -> None:
    """Refuse an index that has the labels of the first one in another order."""
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
    beside = [(_index_of(part), name) for part, name in zip(parts, names, strict=True)]
    found = [(index, name) for index, name in beside if index is not None]
    return [(a, b, name, called) for (a, name), (b, called) in combinations(found, 2) if not (a is b or a.equals(b))]


def _index_of(part: Any) -> Any:
    """The index of a pandas column or table, or of the first pandas column of a mapping; None for other data."""
    columns = part.values() if isinstance(part, Mapping) else (part,)
    found = (getattr(column, "index", None) for column in columns)
    return next((index for index in found if type(index).__module__.startswith("pandas")), None)


def _counts(index: Any) -> bool:
    """Whether an index only numbers the rows from 0."""
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1
