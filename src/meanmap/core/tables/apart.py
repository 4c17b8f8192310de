"""Columns that only identify or date the rows, which are left out where all columns of a table are compared."""

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from meanmap.core.arrays import is_categorical
from meanmap.core.held import holds_labels, holds_numbers, holds_text
from meanmap.core.language import in_python, with_and
from meanmap.core.moments import is_clock, is_time
from meanmap.core.tables.chunks import tables_of
from meanmap.core.tables.missing import present, take
from meanmap.core.tables.order import LEAST_ROWS, NEARLY_ALL, gives_place, holds_dates, may_be_ids, numbers_rows
from meanmap.core.tables.sample import array_of
from meanmap.core.tables.written import Written

__all__ = [
    "apart_in",
    "columns_named",
    "left_out_of_table",
    "like_ids",
    "not_watched",
    "typed_by_name",
    "values_there",
    "watched",
    "why_apart",
    "why_not_watched",
    "without",
    "without_ids",
]

# Why a column is left out, and a kind to declare so that it stays.
Why = tuple[str, str]
NUMBERED, DATED = "only identifies the rows", "holds dates or times as text"
REPEATED = "identifies the rows, but for {} that repeat one,"
# Texts with more characters are no names of rows.
LONGEST = 1000
# Of fewer whole numbers in twice as large a range each may occur once by chance; of so many more hardly nine in ten are
# different (77% on average), so that some ids may repeat.
MANY_IDS, MANY_MORE_IDS = 50, 200
# Columns with one of these words in their name, and all values different, are ids.
ID_WORDS = {"id", "ids", "uid", "uuid", "guid"}

_named: ContextVar[frozenset[str]] = ContextVar("named", default=frozenset())
_typed: ContextVar[frozenset[str]] = ContextVar("typed", default=frozenset())


@contextmanager
def columns_named(names: Collection[str], typed: Collection[str] | None = None) -> Iterator[None]:
    """A scope in which these columns stay, because the user named them (`typed`, all of them unless given) or because
    ids were left out before.
    """
    before = _named.set(frozenset(names)), _typed.set(frozenset(names if typed is None else typed))
    try:
        yield
    finally:
        _named.reset(before[0])
        _typed.reset(before[1])


def typed_by_name(name: str) -> bool:
    """Whether the user named this column."""
    return name in _typed.get()


def left_out_of_table(name: str, why: str, kind: str) -> str:
    """The note on a column that is left out, and how to use it.

    Examples
    --------
    >>> left_out_of_table("id", NUMBERED, "number")
    "'id' only identifies the rows and is left out; to use it, pass kinds={'id': 'number'}"
    """
    pass_it = in_python(f"kinds={{{name!r}: {kind!r}}}", f"--kinds {shlex.quote(f'{name}={kind}')}")
    return f"{name!r} {why} and is left out; to use it, pass {pass_it}"


def without_ids(
    samples: Sequence[Any], names: Sequence[str], design: Collection[str], kinds: Collection[str] | None = None
) -> tuple[list[Any], tuple[str, ...]]:
    """Tables without the columns that only identify or date their rows, and notes. Columns of the `design` stay, and so
    do those with declared `kinds`. Tables with no other column, and samples that are not tables in memory, stay as they
    are.

    Examples
    --------
    >>> tables = [{"id": range(1, 41, 2), "age": [31] * 20}, {"id": range(2, 41, 2), "age": [47] * 20}]
    >>> without_ids(tables, ["x", "y"], [])[1]
    ("'id' only identifies the rows and is left out; to use it, pass kinds={'id': 'number'}.",)
    >>> without_ids(tables, ["x", "y"], [], ["id"])[0] == tables
    True
    """
    if not (tables := tables_of(samples, names)):
        return list(samples), ()
    found = apart_in(tables, [*design, *map(str, kinds or ())])
    if not found or any(set(table) <= {*found, *design} for table in tables):
        return list(samples), ()
    kept = [{name: column for name, column in table.items() if name not in found} for table in tables]
    return kept, tuple(f"{left_out_of_table(name, *why)}." for name, why in found.items())


def apart_in(tables: Sequence[Mapping[str, Any]], keeps: Collection[str] = ()) -> dict[str, Why]:
    """Columns that number, name or date the rows of one of these tables or, as ids of people in several groups do, of
    all together, but for those in `keeps` and those that the user named. Whole numbers in any order are ids if all (of
    200 rows, nine in ten) are different and they fill half of their range; several columns that do may be ranks. They
    are also ids if nine in ten are different and their name says so.

    Examples
    --------
    >>> apart_in([{"id": range(20), "age": [31] * 20}])
    {'id': ('only identifies the rows', 'number')}
    """
    stays = {*keeps, *_named.get()}
    shared = [name for name in tables[0] if name not in stays and all(name in table for table in tables)]
    columns = {name: [values_there(table[name]) for table in tables] for name in shared}
    reasons = {name: _why(name, each) for name, each in columns.items()}
    shuffled = [name for name in shared if reasons[name] is None and _are_shuffled(columns[name])]
    reasons |= dict.fromkeys(shuffled, (NUMBERED, "number")) if len(shuffled) == 1 else {}
    return {name: _with_repeats(why, columns[name]) for name, why in reasons.items() if why is not None}


def _with_repeats(why: Why, columns: Sequence[np.ndarray | None]) -> Why:
    """The reason, with the number of rows that repeat the id of another one."""
    what, kind = why
    repeats = sum(len(column) - len(np.unique(column)) for column in columns if column is not None)
    return (REPEATED.format(repeats) if what == NUMBERED and repeats else what), kind


def _why(name: str, columns: Sequence[np.ndarray | None]) -> Why | None:
    known = [column for column in columns if column is not None]
    if len(known) < len(columns):
        return None
    for why in filter(None, map(why_apart, known)):
        return why
    if all(_is_called_id(name, column) for column in known):
        return NUMBERED, "label" if holds_text(known[0]) else "number"
    several = len(known) > 1 and min(map(len, known)) >= LEAST_ROWS
    return (NUMBERED, "number") if several and all(map(may_be_ids, known)) else None


def why_apart(column: np.ndarray) -> Why | None:
    """Why a column (without missing values, labels as text) is left out of comparisons, unless its kind is declared,
    and a kind to declare; None for other columns.

    Examples
    --------
    >>> why_apart(np.array([f"K-{1000 + k}" for k in range(20)]))
    ('only identifies the rows', 'label')
    >>> why_apart(np.array([f"2026-01-{1 + k:02}" for k in range(20)]))
    ('holds dates or times as text', 'time')
    >>> why_apart(np.array([f"{k},5" for k in range(20)])) is None  # numbers that were not read as such
    True
    """
    words = np.unique(column) if holds_text(column) else column[:0]
    if len(words) and holds_dates(words):
        return DATED, _kind_of_dates(words)
    if numbers_rows(column) and not _written_numbers(words):
        return NUMBERED, "label" if holds_text(column) else "number"
    return None


def _is_called_id(name: str, column: np.ndarray) -> bool:
    """Whether whole numbers or texts are nearly all different, and the name of their column says that they are ids.

    Examples
    --------
    >>> [_is_called_id(name, np.arange(20) ** 2) for name in ("user_id", "userId", "ID", "paid", "humidity")]
    [True, True, True, False, False]
    """
    if not _says_id(name) or len(column) < LEAST_ROWS:
        return False
    values = np.unique(column)
    kept = not _written_numbers(values) if holds_text(column) else _is_whole(column)
    return len(values) >= NEARLY_ALL * len(column) and kept


def _says_id(name: str) -> bool:
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", str(name))
    return not ID_WORDS.isdisjoint(map(str.lower, words))


def _is_whole(column: np.ndarray) -> bool:
    return holds_numbers(column) and bool(np.all(np.isfinite(column)) and np.array_equal(column, np.round(column)))


def like_ids(
    samples: Sequence[Any], names: Sequence[str], kinds: Collection[str] | None = None, told: Collection[str] = ()
) -> tuple[str, ...]:
    """Notes on columns of tables that are compared although they may be ids: several of which one alone would count as
    ids in another order than the rows, as they may be ranks, and whole numbers that repeat, of which only the name says
    that they are ids. Columns with declared `kinds`, named by the user, or noted before (`told`) have no such note.

    Examples
    --------
    >>> one, other = np.arange(60) * 7 % 60, np.arange(60) * 11 % 60
    >>> print(*like_ids([{"first": one, "second": other}], ["x"]))
    'first' and 'second' hold whole numbers, nearly all different, as ranks and ids do, and are compared like the \
others: if they only identify the rows, leave them out.
    >>> print(*like_ids([{"user_id": one // 2}], ["x"]))
    'user_id' is compared as a number: if its values only identify users or the like, leave it out.
    """
    if not (tables := tables_of(samples, names)):
        return ()
    shared = [name for name in tables[0] if all(name in table for table in tables)]
    columns = {name: [values_there(table[name]) for table in tables] for name in shared}
    ranks = [name for name in shared if _are_shuffled(columns[name])]
    notes = []
    if len(ranks) > 1:
        hold = f"{with_and(list(map(repr, ranks)))} hold whole numbers, nearly all different, as ranks and ids do,"
        notes.append(f"{hold} and are compared like the others: if they only identify the rows, {_leave_out(ranks)}.")
    for name in shared:
        if name in (*ranks, *(kinds or ())) or typed_by_name(name) or any(repr(name) in each for each in told):
            continue
        known = [column for column in columns[name] if column is not None and _is_whole(column)]
        if _says_id(name) and len(known) == len(tables) and len(np.unique(np.concatenate(known))) >= LEAST_ROWS:
            only = "if its values only identify users or the like"
            notes.append(f"{name!r} is compared as a number: {only}, {_leave_out([name])}.")
    return tuple(notes)


def _leave_out(columns: Sequence[str]) -> str:
    them = "them" if len(columns) > 1 else "it"
    return f"leave {them} out" + in_python("", f" with --exclude {','.join(map(shlex.quote, columns))}")


def _are_shuffled(columns: Sequence[np.ndarray | None]) -> bool:
    """Whether whole numbers, nearly all different, fill half of their range, over all samples or in each."""
    known = [column for column in columns if column is not None and _is_whole(column)]
    if len(known) < len(columns):
        return False
    return _fills(np.concatenate(known)) or all(map(_fills, known))


def _fills(whole: np.ndarray) -> bool:
    """Whether many whole numbers fill half of their range, and each occurs once; of very many, nearly each."""
    reach = float(np.ptp(whole.astype(np.float64))) / 2 if len(whole) >= MANY_IDS else np.inf
    if len(whole) <= reach:
        return False
    different = len(np.unique(whole))
    return different > reach and different >= (NEARLY_ALL if len(whole) >= MANY_MORE_IDS else 1.0) * len(whole)


def why_not_watched(column: Any) -> Why | None:
    """Why batches, one after another, are compared without a column; None for other columns. Besides those that are
    left out of other comparisons these are times, which differ in every batch, months, and ids with wide gaps.

    Examples
    --------
    >>> why_not_watched(np.arange(60).astype("datetime64[D]"))
    ('holds times, which differ in every batch,', 'time')
    """
    values = values_there(column)
    if values is None or not len(values):
        return None
    if (why := why_apart(values)) is not None or not gives_place(values):
        return why
    if not holds_text(values):
        times = values.dtype.kind == "M"
        return ("holds times, which differ in every batch,", "time") if times else (NUMBERED, "number")
    words = np.unique(values)
    if all(map(is_time, words.tolist())):
        return DATED, _kind_of_dates(words)
    if _written_numbers(words):
        return None
    return "holds texts that differ in nearly every row", "label"


def watched(reference: Any, within: Collection[str], kinds: Collection[str]) -> tuple[Any, dict[str, str]]:
    """A reference for batches without the columns that are not watched, and a note on each of these. Columns of strata
    (`within`) stay, and so do those with declared `kinds`; samples that `without_ids` leaves as they are do so here.

    Examples
    --------
    >>> watched({"id": range(20), "age": [31] * 20}, [], [])[1]
    {'id': "'id' only identifies the rows and is left out; to use it, pass kinds={'id': 'number'}."}
    """
    if not (tables := tables_of([reference], ["reference"])):
        return reference, {}
    (table,) = tables
    found = not_watched(table, [*within, *map(str, kinds)])
    if set(table) <= {*found, *within}:
        return reference, {}
    notes = {name: f"{left_out_of_table(name, *why)}." for name, why in found.items()}
    return without(reference, notes, "reference"), notes


def not_watched(table: Mapping[str, Any], keeps: Collection[str]) -> dict[str, Why]:
    """The columns without which batches are compared, but for those in `keeps` and those that the user named."""
    stays = {*keeps, *_named.get()}
    reasons = {name: why_not_watched(column) for name, column in table.items() if name not in stays}
    return apart_in([table], keeps) | {name: why for name, why in reasons.items() if why is not None}


def without(data: Any, names: Collection[str], argument: str) -> Any:
    """A table without these columns; as it came if there are none, or if it has no names or is not in memory."""
    tables = tables_of([data], [argument]) if names else []
    return {name: column for name, column in tables[0].items() if name not in names} if tables else data


def _kind_of_dates(words: np.ndarray) -> str:
    kinds = {"time": is_time, "time of day": is_clock}
    return next((kind for kind, holds in kinds.items() if all(map(holds, words.tolist()))), "label")


def _written_numbers(words: np.ndarray) -> bool:
    """Whether words are numbers that were not read as such, as those with a comma or a unit."""
    written = Written.of(words.tolist()) if len(words) else None
    return written is not None and written.what.startswith("numbers")


def values_there(column: Any) -> np.ndarray | None:
    """The values of a column that are there, labels as text; None for categories and for what no column of numbers,
    times or text is.
    """
    if is_categorical(column):
        return None
    there = np.flatnonzero(present(column))
    values = array_of(column if len(there) == len(column) else take(column, there))
    if values is None or holds_text(values) or not holds_labels(values):
        return values
    words = values.tolist()
    if not all(isinstance(word, str) and len(word) <= LONGEST for word in words):
        return None
    return np.array(words, str)
