"""Notes about data as warnings at the user's line; for calls in parts, each matter once."""

import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock
from types import FrameType
from uuid import uuid4

from meanmap.core.language import in_few_words

__all__ = ["Call", "in_few", "in_rows", "note_lines", "note_table", "part_of", "warn_of"]

# Packages whose frames may lie between the user's line and the warning, because they wrap methods and functions.
BETWEEN = {"meanmap", "equinox", "jax", "sklearn", "contextlib"}

# Notes of which more than this many differ only in names and numbers are one, and this many names are shown.
SHOWN = 3
NAME = re.compile(r"(?<!\w)'[^']*'(?!\w)")
NUMBER = re.compile(r"\d[\d.,]*(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class Call:
    """The user's line that requested a computation which runs later and in parts, in any thread or process."""

    file: str
    line: int
    module: str
    key: str = field(default_factory=lambda: uuid4().hex)

    @classmethod
    def here(cls) -> "Call":
        """The line of the current call."""
        frame, _ = _user()
        return cls(frame.f_code.co_filename, frame.f_lineno, frame.f_globals.get("__name__", "<unknown>"))


_call: ContextVar[Call | None] = ContextVar("call", default=None)
_lock = Lock()


@contextmanager
def part_of(call: Call) -> Iterator[None]:
    """A scope in which notes belong to one call in several parts."""
    before = _call.set(call)
    try:
        yield
    finally:
        _call.reset(before)


def in_few(notes: Iterable[str]) -> list[str]:
    """Notes as people read them: of many that differ only in names and numbers the first, with the names of others.

    Examples
    --------
    >>> print(*in_few([f"column 'x{k}' holds -999 in {k + 1} rows." for k in range(6)]))
    column 'x0' holds -999 in 1 rows. The same is true of 'x1', 'x2', 'x3' and 2 more.
    >>> in_few(["column 'a' is constant.", "column 'b' is constant.", "column 'a' is constant."])
    ["column 'a' is constant.", "column 'b' is constant."]
    """
    alike: dict[str, list[str]] = {}
    for note in dict.fromkeys(notes):
        alike.setdefault(NUMBER.sub("#", NAME.sub("'#'", note)), []).append(note)
    found = []
    for first, *others in alike.values():
        if len(others) < SHOWN:
            found += [first, *others]
            continue
        names = [_own_name(other, first) for other in others]
        which = in_few_words(names, SHOWN) if all(names) else f"{len(names)} more, with other numbers"
        found.append(f"{first.rstrip('.')}. The same is true of {which}.")
    return found


def in_rows(notes: Sequence[Iterable[str]]) -> list[str]:
    """The notes on each row of a table as notes on all: those that differ only in numbers are one, in the words of the
    first row, with the number of rows.

    Examples
    --------
    >>> in_rows([[], ["'dose' is 7, too much."], ["'dose' is 9, too much."]])
    ["in 2 of 3 rows, first in row 1: 'dose' is 7, too much."]
    >>> in_rows([["labels were pooled."], ["labels were pooled."]])
    ['labels were pooled.']
    """
    alike: dict[str, list[tuple[int, str]]] = {}
    for row, told in enumerate(notes):
        for kind, note in {NUMBER.sub("#", note): note for note in told}.items():
            alike.setdefault(kind, []).append((row, note))
    found = []
    for (row, first), *others in alike.values():
        same = all(note == first for _, note in others)
        where = f"in {len(others) + 1} of {len(notes)} rows{'' if same else f', first in row {row}'}: "
        found.append(first if same and len(others) + 1 == len(notes) else where + first)
    return found


def note_lines(notes: Iterable[str]) -> list[str]:
    """Notes `in_few` lines, below the printed result.

    Examples
    --------
    >>> note_lines(["column 'a' is constant."])
    ["  note: column 'a' is constant."]
    """
    return [f"  note: {note}" for note in in_few(notes)]


def note_table(notes: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Notes `in_few` rows of a page, below their header.

    Examples
    --------
    >>> note_table(["column 'a' is constant."])
    (('note',), ("column 'a' is constant.",))
    """
    return (("note",), *((note,) for note in in_few(notes)))


def _own_name(note: str, first: str) -> str:
    """The first name in quotes that another note has otherwise; "" if there is none."""
    pairs = zip(NAME.findall(note), NAME.findall(first), strict=True)
    return next((name for name, other in pairs if name != other), "")


def warn_of(notes: Iterable[str]) -> None:
    """Each note as a warning at the user's line. For a call in parts, a process warns once about each column, with the
    first part's note.
    """
    call = _call.get()
    for note in notes:
        if call is None:
            warnings.warn(note, stacklevel=_user()[1])
        elif _is_new(call, note.partition("] ")[0]):
            warnings.warn_explicit(note, UserWarning, call.file, call.line, call.module)


def _is_new(call: Call, column: str) -> bool:
    """Whether this is the first part of a call that warns about a column in this process."""
    with _lock:
        heard = _heard(call)
        new = column not in heard
        heard.add(column)
    return new


@lru_cache(maxsize=64)
def _heard(_call: Call) -> set[str]:
    """The columns that one of the latest calls has warned about; filled by `_is_new`."""
    return set()


def _user() -> tuple[FrameType, int]:
    """The nearest frame that is the user's, or the outermost, and its level as `warnings.warn` in our caller counts."""
    frame, level = sys._getframe(), 0
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] in BETWEEN:
        frame, level = frame.f_back, level + 1
    return frame, level
