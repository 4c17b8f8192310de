"""Kinds of columns: what a column of a table is, what it can be turned into, and how it is described in errors."""

import re
from typing import Any

import numpy as np

from meanmap.core.arrays import seconds
from meanmap.core.errors import KindError, ParameterError

__all__ = ["FAMILIES", "advice", "as_kind", "described", "family_of", "wanted_kind"]

# Columns of one family can be compared.
FAMILIES = {
    "number": "number",
    "count": "number",
    "vector": "number",
    "angle": "number",
    "time of day": "number",
    "time of week": "number",
    "time of year": "number",
    "label": "label",
    "text": "label",
    "boolean": "boolean",
    "time": "time",
    "duration": "duration",
}
HELD = {"f": "numbers", "U": "labels", "b": "truth values", "M": "times", "m": "durations"}
DAY = 86_400.0
# A year of the calendar in the mean; the first of January 1970 was a Thursday.
CYCLES = {"time of day": DAY, "time of week": 7 * DAY, "time of year": 365.2425 * DAY}
WANTED = ("number", "label", "time", "angle", *CYCLES)
DECIMAL_COMMA = re.compile(r"\s*[-+]?\d[\d.]*,\d+\s*")


def family_of(column: Any) -> str:
    """Which columns this one can be compared with: "number", "label", "boolean", "time" or "duration"."""
    return {"U": "label", "b": "boolean", "M": "time", "m": "duration"}.get(column.dtype.kind, "number")


def described(column: Any) -> str:
    """What a column holds, with an example."""
    held = HELD.get(column.dtype.kind, "numbers")
    if column.ndim > 1:
        return f"blocks of {column.shape[1]} numbers"
    first = column[0]
    shown = repr(first.item()) if held == "labels" else f"{first:.6g}" if held == "numbers" else str(first)
    return f"{held}, such as {shown}"


def advice(column: Any, where: str) -> str:
    """What may turn a column of text into what another sample holds; empty where nothing is known."""
    words = np.unique(column)[:1000].tolist()
    if set(words) <= {"True", "False", "true", "false"}:
        return f"{where} says true or false: convert it, for example with == 'True'. "
    if all(map(_is_number, words)):
        return f"{where} looks like numbers: convert it, for example with .astype(float). "
    if all(DECIMAL_COMMA.fullmatch(word) for word in words):
        return f"{where} looks like numbers with a decimal comma: read the file with decimal=','. "
    if all(map(_is_date, words)):
        return f"{where} looks like dates: convert it, for example with pandas.to_datetime. "
    return ""


def wanted_kind(kind: Any) -> str:
    """A kind that a column can be told to be."""
    if kind not in WANTED:
        raise ParameterError(f"a kind is {kind!r}; expected one of {', '.join(map(repr, WANTED))}.")
    return kind


def as_kind(column: Any, kind: str, where: str) -> np.ndarray:
    """A column turned into what it was told to be; angles and times of a cycle become points of a circle, (n, 2)."""
    column = np.asarray(column)
    if column.ndim > 1:
        raise KindError(f"{where} is a block of columns, which has no kind of its own.")
    if kind == "label":
        return _as_labels(column)
    if kind == "time":
        return column if column.dtype.kind == "M" else _parsed(column, "datetime64[ns]", where, kind)
    if kind in CYCLES:
        return _circle(2 * np.pi * seconds(as_kind(column, "time", where)) / CYCLES[kind])
    numbers = seconds(column) if column.dtype.kind in "mM" else _parsed(column, float, where, kind)
    return _circle(numbers) if kind == "angle" else numbers


def _as_labels(column: np.ndarray) -> np.ndarray:
    """The same label for 7, 7.0 and "7"."""
    if column.dtype.kind != "f":
        return column.astype(str)
    return np.array([str(int(value)) if value.is_integer() else repr(value) for value in column.tolist()])


def _parsed(column: np.ndarray, dtype: Any, where: str, kind: str) -> np.ndarray:
    if kind == "time" and column.dtype.kind != "U":
        raise KindError(f"{where} holds {described(column)}; expected times, or text such as '2026-01-31'.")
    try:
        return column.astype(dtype)
    except ValueError:
        test = _is_date if kind == "time" else _is_number
        bad = next(word for word in column.tolist() if not test(word))
        raise KindError(f"{where} holds {bad!r}, which cannot be read as a {kind}.") from None


def _circle(angle: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _is_date(word: str) -> bool:
    try:
        np.datetime64(word.strip(), "ns")
    except ValueError:
        return False
    return len(word.strip()) >= len("2026-01")
