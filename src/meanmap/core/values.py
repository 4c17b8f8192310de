"""Common parts of results: a one-line repr, equality of arrays by entries, plain values, data frames."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import fields
from importlib import import_module
from typing import Any, TypeGuard

import numpy as np

from meanmap.core.extras import optional
from meanmap.core.types import Array

__all__ = [
    "Value",
    "aligned",
    "as_known",
    "as_tuple",
    "entries_of",
    "frame_of",
    "is_sequence",
    "label_shown",
    "label_text",
    "plain",
    "says_yes",
]

# Arrays of up to this many numbers, and sequences of up to this many entries, are written out.
MOST_NUMBERS, MOST_ENTRIES = 4, 3
# Longer representations of other values are replaced by the name of their type.
MOST_CHARACTERS = 80

YES = {"yes", "y", "true", "t", "1", "ja", "j", "oui", "si", "sí", "sim", "da"}


class Value:
    """A dataclass with a `repr` of one short line (`print` may say more) and with `==` that compares arrays by entries.

    Declare it with `@dataclass(frozen=True, eq=False, repr=False)`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, eq=False, repr=False)
    ... class Sample(Value):
    ...     points: np.ndarray
    ...     name: str
    >>> Sample(np.zeros((100, 2)), "first")
    Sample(points=array(100, 2), name='first')
    >>> Sample(np.zeros((100, 2)), "first") == Sample(np.zeros((100, 2)), "first")
    True
    """

    def __repr__(self) -> str:
        shown = [f"{each.name}={_short(getattr(self, each.name))}" for each in fields(self) if each.repr]  # pyright: ignore[reportArgumentType]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        names = [each.name for each in fields(self)]  # pyright: ignore[reportArgumentType]
        return all(_same(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # arrays have none


def as_tuple(value: object) -> tuple[Any, ...]:
    """One value or several as a list: a list or a tuple is several."""
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def entries_of(value: Any) -> dict[Any, Any] | None:
    """The entries of a mapping, or a pandas series, by name; None for data without names."""
    return dict(value.items()) if hasattr(value, "items") else None


def is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether a value is a sequence; a text is not."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def label_text(label: object) -> str:
    """A label as people write it: files hold whole numbers as 1.0, which is 1 here."""
    if isinstance(label, float | np.floating):
        return str(int(label)) if float(label).is_integer() else repr(float(label))
    return str(label)


def label_shown(label: object) -> str:
    """A label in a picture, a table or a sentence, where one without letters would be invisible.

    Examples
    --------
    >>> label_shown(2.0), label_shown("new"), label_shown("")
    ('2', 'new', "''")
    """
    text = label_text(label)
    return text if text.strip() else repr(text)


def says_yes(label: object) -> bool:
    """Whether a label means that something is so: yes, ja, true, 1.

    Examples
    --------
    >>> says_yes("Ja"), says_yes(1.0), says_yes("no")
    (True, True, False)
    """
    return label_text(label).strip().lower() in YES


def as_known(name: object, known: Collection[Any]) -> Any:
    """The known name equal to this one, where 0 and "0" are equal, because tables turn integers into text.

    Examples
    --------
    >>> as_known(0, ("0", "1")), as_known("b", ["a", "b"]), as_known("c", ["a", "b"]) is None
    ('0', 'b', True)
    """
    if isinstance(name, Hashable) and name in known:
        return name
    other = int if isinstance(name, str) else str if isinstance(name, int | np.integer) else ()
    like = [each for each in known if isinstance(each, other) and str(each) == str(name)]
    return like[0] if like else None


def plain(of: object, *names: str) -> dict[str, Any]:
    """Attributes by name as plain Python values, ready for JSON."""
    return {name: _plain(getattr(of, name)) for name in names}


def aligned(rows: Sequence[Sequence[str]], least: int = 0) -> list[str]:
    """Cells as lines: the first of each left-aligned, the others right-aligned with at least this width.

    Examples
    --------
    >>> aligned([("", "mean"), ("slope", "1.5")])
    ['       mean', 'slope   1.5']
    """
    first, *widths = (max(map(len, column)) for column in zip(*rows, strict=True))
    widths = [max(width, least) for width in widths]
    return [
        "  ".join([row[0].ljust(first), *(c.rjust(w) for c, w in zip(row[1:], widths, strict=True))]) for row in rows
    ]


def frame_of(columns: Mapping[str, Any], index: Sequence[Any] | None = None) -> Any:
    """A pandas frame of these columns, indexed by row names or numbers.

    Raises
    ------
    MissingPackageError
        Where pandas is not installed.

    Examples
    --------
    >>> frame_of({"pvalue": [0.2, 0.1]}, ["age", "height"]).pvalue["height"].item()
    0.1
    """
    with optional("a pandas frame"):
        pandas: Any = import_module("pandas")
    # Pairs stay names of single rows.
    return pandas.DataFrame(dict(columns), None if index is None else pandas.Index(list(index), tupleize_cols=False))


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(entry) for entry in value]
    return value.tolist() if hasattr(value, "tolist") else value


def _same(a: Array, b: Array) -> bool:
    """Whether two values are equal, arrays entry by entry; missing numbers equal each other."""
    if hasattr(a, "shape") and hasattr(b, "shape"):
        return np.array_equal(a, b, equal_nan=getattr(a, "dtype", np.dtype(object)).kind == "f")
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_same(value, b[key]) for key, value in a.items())
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(_same, a, b))
    return a is b or bool(a == b)


def _short(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, bool | str) or value is None:
        return _cut(repr(value))
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        few = np.size(value) <= MOST_NUMBERS
        return np.array2string(np.asarray(value), precision=4, separator=", ") if few else f"array{tuple(value.shape)}"
    if isinstance(value, Mapping):
        return f"{{{len(value)} entries}}" if len(value) > MOST_ENTRIES else _cut(repr(dict(value)))
    if isinstance(value, tuple | list):
        shown = [_short(entry) for entry in value[:MOST_ENTRIES]]
        return f"({', '.join(shown)}{f', … {len(value)} in all' if len(value) > MOST_ENTRIES else ''})"
    text = repr(value)
    return text if len(text) <= MOST_CHARACTERS and "\n" not in text else f"{type(value).__name__}(…)"


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"
