"""Rows with an index, as in pandas: rows are paired by position, and the index may contradict this."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from meanmap.core.errors import ColumnError

__all__ = ["check_order", "check_order_beside"]


def check_order(parts: Sequence[Any], names: Sequence[str]) -> None:
    """Refuse pandas columns or tables whose rows have other labels, or the same in another order: pairs may be wrong.

    An index that only numbers the rows from 0 says nothing beside labels that are not numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> x = pd.Series([1.0, 2.0, 3.0])
    >>> check_order([x, x.sort_values(ascending=False)], ["x", "y"])
    Traceback (most recent call last):
    meanmap.core.errors.ColumnError: the rows of y have the labels of those of x (its index) in another order, but \
rows are paired by position. Pass y.loc[x.index], or y.to_numpy() if the positions are right.
    >>> check_order([x[:-1], x[1:]], ["x", "y"])
    Traceback (most recent call last):
    meanmap.core.errors.ColumnError: the rows of y have other labels than those of x (its index; first 1 beside 0), \
but rows are paired by position. Join both by label first, or pass y.to_numpy() if the positions are right.
    """
    beside = [(_index_of(part), name) for part, name in zip(parts, names, strict=True)]
    found = [(index, name) for index, name in beside if index is not None]
    for (first, name), (other, called) in combinations(found, 2):
        _refuse_others(first, other, name, called)


def check_order_beside(samples: Sequence[Any], names: Sequence[str], **beside: object) -> None:
    """Refuse a value for each row of all samples, one after another, whose labels are others or in another order.

    If samples share labels, as where each numbers its own rows, only another order is refused.

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
        if other is not None:
            _refuse_others(first, other, name, called, only_order=not first.is_unique)


def _refuse_others(first: Any, other: Any, name: str, called: str, only_order: bool = False) -> None:
    """Refuse an index of as many rows that has other labels than the first one, or the same in another order."""
    if first is other or len(first) != len(other) or first.equals(other):
        return
    labels, others = first.tolist(), other.tolist()  # `isin` fails between some kinds of labels
    one, two = set(labels), set(others)
    apart = next(((a, b) for a, b in zip(labels, others, strict=True) if a != b), None)
    if apart is None or (only_order and one != two):
        return
    if one == two:
        how = f"{called}.loc[{name}.index]" if first.is_unique and other.is_unique else f"{called}.sort_index()"
        both = f" and {name}.sort_index()" if how.endswith("sort_index()") else ""
        said, remedy = f"the labels of those of {name} (its index) in another order", f"Pass {how}{both}, or"
    elif one.isdisjoint(two) and (_counts_beside(first, other) or _counts_beside(other, first)):
        return
    else:
        said = f"other labels than those of {name} (its index; first {apart[1]!s} beside {apart[0]!s})"
        remedy = "Pass" if one.isdisjoint(two) else "Join both by label first, or pass"
    raise ColumnError(
        f"the rows of {called} have {said}, but rows are paired by position. {remedy} {called}.to_numpy() if the "
        f"positions are right."
    )


def _index_of(part: Any) -> Any:
    """The index of a pandas column or table, or of the first pandas column of a mapping; None for other data."""
    columns = part.values() if isinstance(part, Mapping) else (part,)
    found = (getattr(column, "index", None) for column in columns)
    return next((index for index in found if type(index).__module__.startswith("pandas")), None)


def _counts_beside(index: Any, other: Any) -> bool:
    """Whether an index only numbers the rows from 0, beside one whose labels are not whole numbers."""
    counts = type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1
    return counts and other.inferred_type != "integer"
