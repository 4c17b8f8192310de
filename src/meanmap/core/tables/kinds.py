"""Kinds of columns: how they are determined, converted, and described in errors."""

from typing import Any

import numpy as np

from meanmap.core.containers import is_rotations, is_sparse
from meanmap.core.errors import KindError, ParameterError
from meanmap.core.exact import check_exact, check_exact_words
from meanmap.core.held import holds_text, holds_times
from meanmap.core.language import in_python, with_article
from meanmap.core.meant import did_you_mean
from meanmap.core.moments import clocks_in, is_clock, is_time, seconds, times_in
from meanmap.core.tables.written import Written, is_number
from meanmap.core.texts import as_labels
from meanmap.core.types import Data
from meanmap.core.values import is_sequence, label_text

__all__ = [
    "DAY",
    "FAMILIES",
    "HELD_BY",
    "OF_TIMES",
    "ON_A_CIRCLE",
    "Kind",
    "advice",
    "as_kind",
    "categories_of",
    "described",
    "family_of",
    "holds_objects",
    "is_text",
    "kind_of",
    "levels_of",
    "nearest_levels",
    "wanted_kind",
]

# The declared kind of a column: a kind, or the levels of an order, from the lowest.
Kind = str | tuple[str, ...]

# Columns of one family can be compared.
FAMILIES = {
    "number": "number",
    "count": "number",
    "vector": "number",
    "angle": "number",
    "time of day": "number",
    "time of week": "number",
    "time of year": "number",
    "rank": "number",
    "label": "label",
    "ordered label": "label",
    "text": "label",
    "boolean": "boolean",
    "time": "time",
    "duration": "duration",
}
HELD = {"f": "numbers", "U": "labels", "b": "truth values", "M": "times", "m": "durations"}
HELD_BY = {"number": "numbers", "label": "labels", "boolean": "truth values", "time": "times", "duration": "durations"}
DAY = 86_400.0
# A year of the calendar in the mean; the first of January 1970 was a Thursday.
CYCLES = {"time of day": DAY, "time of week": 7 * DAY, "time of year": 365.2425 * DAY}
WANTED = ("number", "label", "rank", "time", "angle", *CYCLES)
# Kinds that become points on a circle, and what may stand for each as a label, with its words in pandas.
ON_A_CIRCLE = {
    "angle": ("sector", ""),
    "time of day": ("hour", "dt.hour.astype(str)"),
    "time of week": ("weekday", "dt.day_name()"),
    "time of year": ("month", "dt.month_name()"),
}
# Kinds that times, and text with times, can be converted to.
OF_TIMES = ("time", *CYCLES)

# Labels of this many rows or more are called text if nearly all are different.
LEAST_TEXTS, ALL_DIFFERENT = 20, 0.9


def kind_of(values: np.ndarray, distinct: int | None = None) -> str:
    """The kind of a column without missing values that was read, unless it is declared otherwise; labels have no order
    here.

    `distinct` is the number of different values where it is known.

    Examples
    --------
    >>> kind_of(np.array(["a", "b", "a"])), kind_of(np.array([0, 1])), kind_of(np.array([0.5])), kind_of(np.eye(2))
    ('label', 'count', 'number', 'vector')
    """
    if values.ndim > 1:
        return "vector"
    family = family_of(values)
    if family == "label":
        return "text" if is_text(len(np.unique(values)) if distinct is None else distinct, len(values)) else "label"
    if family == "number":
        return "count" if (values >= 0).all() and (values == np.round(values)).all() else "number"
    return family


def is_text(distinct: int, rows: int) -> bool:
    """Whether labels are texts: there are enough rows, and nearly all are different."""
    return rows >= LEAST_TEXTS and distinct > ALL_DIFFERENT * rows


def family_of(column: np.ndarray) -> str:
    """Which columns this one can be compared with: "number", "label", "boolean", "time" or "duration"."""
    return {"U": "label", "b": "boolean", "M": "time", "m": "duration"}.get(column.dtype.kind, "number")


def described(column: np.ndarray) -> str:
    """What a column holds, with an example."""
    held = HELD.get(column.dtype.kind, "numbers")
    if column.ndim > 1:
        return f"blocks of {column.shape[1]} numbers"
    first = column[0]
    shown = repr(first.item()) if held == "labels" else f"{first:.6g}" if held == "numbers" else str(first)
    return f"{held}, such as {shown}"


def advice(column: np.ndarray, where: str) -> str:
    """How to convert a column of text to the kind of another sample; empty if unknown."""
    words = set(np.unique(column).tolist())
    if words <= {"True", "False", "true", "false"}:
        how = in_python(", for example with == 'True'")
        return f"{where} holds true and false as text: convert it{how}. "
    written = Written.of(words)
    return f"{where} looks like {written}: {written.advice}. " if written else ""


def holds_objects(column: Any) -> bool:
    """Whether a column is of objects that only their kernel can read: rotations, sparse rows, pictures, bags."""
    if is_rotations(column) or is_sparse(column):
        return True
    try:
        array = column if hasattr(column, "shape") and hasattr(column, "dtype") else np.asarray(column)
    except ValueError:  # of different lengths
        return True
    if len(array.shape) == 1 and array.dtype == object and array.shape[0]:
        return isinstance(np.asarray(array)[0], np.ndarray | list | tuple)
    return len(array.shape) > 2 or (len(array.shape) == 2 and getattr(array.dtype, "kind", "?") in "SUT")


def categories_of(column: Any) -> tuple[list[Any] | None, bool]:
    """The categories that a column declares, as pandas' categories and polars' Enum do, and whether their order counts;
    None for other columns. An Enum has an order, by which polars compares its values.
    """
    kind: Any = getattr(column, "dtype", None)
    if type(kind).__name__ == "Enum":
        return kind.categories.to_list(), True
    return (list(kind.categories), bool(kind.ordered)) if type(kind).__name__ == "CategoricalDtype" else (None, False)


def levels_of(column: object) -> tuple[str, ...]:
    """The levels of a column of ordered categories, from the lowest; empty for others."""
    categories, ordered = categories_of(column)
    return tuple(map(label_text, categories)) if categories and ordered else ()


def wanted_kind(kind: Any, column: Data = None) -> Kind:
    """A kind that a column can be declared as; for "rank" the levels of its ordered categories."""
    if kind == "rank" and column is not None:
        levels = levels_of(column)
        if not levels:
            raise ParameterError(
                "a kind is 'rank', but the column is not ordered; expected the levels in order, such as "
                "('low', 'middle', 'high'), or ordered categories."
            )
        return levels
    if is_sequence(kind):
        levels = tuple(map(label_text, kind))
        if len(levels) < 2 or len(set(levels)) < len(levels):
            raise ParameterError(f"the levels {kind!r} are not an order; expected two or more, each once.")
        return levels
    if kind not in WANTED:
        raise ParameterError(
            f"a kind is {kind!r}{did_you_mean(kind, WANTED)}; expected one of {', '.join(map(repr, WANTED))}, or "
            "levels in increasing order."
        )
    return kind


def as_kind(column: Data, kind: Kind, where: str) -> np.ndarray:
    """A column converted to its declared kind. Angles and cyclic times become points on a circle, (n, 2), and levels of
    an order their rank, from 0.
    """
    column = np.asanyarray(column)
    if column.ndim > 1:
        raise KindError(f"{where} is a block of columns, which cannot be given a kind.")
    if isinstance(kind, tuple):
        return _ranks(as_labels(column, where), kind, where)
    if kind == "label":
        return _without_zeros(as_labels(column, where)) if column.dtype.kind == "M" else as_labels(column, where)
    if kind == "time":
        return column if column.dtype.kind == "M" else _parsed(column, where, kind)
    if kind == "time of day" and holds_text(column) and all(map(is_clock, np.unique(column).tolist())):
        return _circle(2 * np.pi * clocks_in(column) / DAY)
    if kind in CYCLES:
        return _circle(2 * np.pi * seconds(as_kind(column, "time", where), where) / CYCLES[kind])
    numbers = seconds(column, where) if holds_times(column) else _parsed(column, where, kind)
    return _circle(numbers) if kind == "angle" else numbers


def nearest_levels(ranks: np.ndarray, levels: tuple[str, ...]) -> np.ndarray:
    """The levels of an order at numbers that count from 0, the nearest to each.

    Examples
    --------
    >>> nearest_levels(np.array([0.6, -3.0]), ("low", "high")).tolist()
    ['high', 'low']
    """
    return np.array(levels)[np.clip(np.rint(ranks), 0, len(levels) - 1).astype(int)]


def _ranks(labels: np.ndarray, levels: tuple[str, ...], where: str) -> np.ndarray:
    number = {level: float(i) for i, level in enumerate(levels)}
    other = next((label for label in labels.tolist() if label not in number), None)
    if other is not None:
        raise KindError(f"{where} holds {other!r}, which is not a level of {' < '.join(levels)}.")
    return np.array([number[label] for label in labels.tolist()])


def _without_zeros(words: np.ndarray) -> np.ndarray:
    """Times as text, in microseconds if that is exact."""
    nanoseconds = len("2026-01-31T12:30:00.000000000")
    return np.array([word[:-3] if len(word) >= nanoseconds and word.endswith("000") else word for word in words])


def _parsed(column: np.ndarray, where: str, kind: str) -> np.ndarray:
    if kind == "time" and not holds_text(column):
        raise KindError(f"{where} holds {described(column)}; expected times, or text such as '2026-01-31'.")
    if holds_text(column):
        test = is_time if kind == "time" else is_number
        if kind != "time":
            check_exact_words(np.unique(column).tolist(), where)
        for bad in (word for word in dict.fromkeys(column.tolist()) if not test(word)):
            written = Written.of(set(column.tolist())) if kind != "time" else None
            how = "" if written is None else written.refusal
            raise KindError(f"{where} holds {bad!r}, which cannot be read as {with_article(kind)}{how}.")
    check_exact(column, where)
    return times_in(column, where) if kind == "time" else np.asarray(column).astype(float)


def _circle(angle: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)
