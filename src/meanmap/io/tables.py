"""Tables from files: text with a delimiter, Parquet, NPY and NPZ.

The rules. The first line of a text names the columns, unless it holds only numbers: they are then called x0, x1, ...
A cell that is empty or says NA, NaN, NULL or None is missing. A column holds numbers if each of its other cells is one
(`meanmap.core.numerals` says what a number is), truth values if each is true or false, in any case, and
labels if none is a number.
"""

import csv
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from meanmap.core.errors import ColumnError, EmptyError, InputError, NonFiniteError, ShapeError
from meanmap.core.foreign import unmasked
from meanmap.core.held import holds_floats, holds_numbers, holds_text, holds_times
from meanmap.core.language import counted, in_few_words
from meanmap.core.meant import composed, no_column, refuse_doubled, respelled
from meanmap.core.numerals import THOUSANDS_MARKS, TYPESET, reads_as_number
from meanmap.core.tables.kinds import as_kind
from meanmap.core.tables.marks import marked, policy_and_marks
from meanmap.core.tables.missing import MISSING_LABEL, left_out
from meanmap.core.tables.selection import selection_notes
from meanmap.core.tables.table import Table
from meanmap.core.values import label_text
from meanmap.io.binary import read_arrays, read_parquet
from meanmap.io.cells import MISSING, Cells, absent_in
from meanmap.io.dots import Dots
from meanmap.io.lines import check_no_json, lines_of

__all__ = ["MISSING", "read_columns", "read_table"]

DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
# The decimal mark where one of the two separates thousands.
OTHER = {",": ".", ".": ","}
NAMES_OF_DELIMITERS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
# Cells are turned into numbers this many rows at a time, so that a million rows never exist as text.
ROWS_AT_ONCE = 20_000


def read_table(
    path: str | Path,
    columns: Sequence[str] | Callable[[list[str]], list[str]] | None = None,
    *,
    delimiter: str | None = None,
    labels: Sequence[str] = (),
    missing: Literal["drop", "category", "raise"] | Sequence[str | float] = "drop",
    decimal: Literal[".", ","] | None = None,
    thousands: Literal[",", ".", "'", " "] | None = None,
    said: Collection[str] = (),
    tell: Callable[[str], object] | None = None,
) -> tuple[Table, int]:
    """Read columns of a file.

    Parameters
    ----------
    path : path
        `.csv`, `.tsv` and other text, `.parquet` (also a folder or a pattern of these), `.npy` (columns x0, x1,
        ...) or `.npz` (a column, or a block, for each array); `-` reads text from standard input.
    columns : names, or a function of all names that returns some, optional
        Only these; all unless given.
    delimiter : str, optional
        Of texts, "\\t" for a tab, " " for runs of spaces: by default a comma for `.csv`, a tab for `.tsv`,
        otherwise the most frequent separator of the first line.
    labels : names
        Columns to read as labels although they look like numbers.
    missing : {"drop", "category", "raise"}, or list of codes
        Drop the rows with a missing value in any of the columns, treat missing labels as a label of their own, or
        refuse them. A list of codes, such as ["?", -999], names codes for missing values, whose
        rows are dropped too.
    decimal : {".", ","}, optional
        The decimal mark of texts. By default a point; if cells are not separated by commas, columns of numbers with a
        decimal comma are read as numbers, and `tell` says so.
    thousands : {",", ".", "'", " "}, optional
        The separator of thousands in numbers, as in 1,174.24; the decimal mark is then the other one of comma and
        point. By default there is none.
    said : names, optional
        Columns whose kind you declare elsewhere, as by `kinds=`: no note asks for it.
    tell : function of a sentence, optional
        Called with notes, such as that the first line held numbers and was read as data.

    Returns
    -------
    table : Table
    dropped : int
        The number of dropped rows.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_text("height,eyes\\n1.7,blue\\n,brown\\n1.8,green\\n")
    ...     read_table(path)
    (Table(2 rows: height, eyes [labels]), 1)
    """
    policy, marks = policy_and_marks(missing)
    cells, tell = _cells(decimal, thousands, marks), tell or (lambda note: None)
    read = _read(path, columns, delimiter, labels, tell, cells, marks, said)
    table, kept = complete_rows(read, path, policy, tell)
    return table, int(np.sum(~kept))


def read_columns(
    path: str | Path,
    columns: Sequence[str] | Callable[[list[str]], list[str]] | None = None,
    *,
    delimiter: str | None = None,
    labels: Sequence[str] = (),
    marks: Sequence[str | float] = (),
    decimal: Literal[".", ","] | None = None,
    thousands: Literal[",", ".", "'", " "] | None = None,
    said: Collection[str] = (),
    tell: Callable[[str], object] | None = None,
) -> dict[str, np.ndarray]:
    """Columns of a file as `read_table` reads them, with their missing values: NaN or masked, of labels None."""
    cells = _cells(decimal, thousands, marks)
    read = _read(path, columns, delimiter, labels, tell or (lambda note: None), cells, marks, said)
    _check_rows(read, path)
    for name, values in read.items():
        if holds_text(values):
            read[name] = values.astype(object)
            read[name][values == ""] = None
    return read


def _read(
    path: str | Path,
    columns: Sequence[str] | Callable[[list[str]], list[str]] | None,
    delimiter: str | None,
    labels: Sequence[str],
    tell: Callable[[str], object],
    cells: Cells,
    marks: Sequence[str | float],
    said: Collection[str],
) -> dict[str, np.ndarray]:
    """The columns that were chosen, "" for missing labels."""

    def choose(names: Sequence[str]) -> list[str]:
        chosen = columns(list(names)) if callable(columns) else list(names if columns is None else columns)
        chosen = [respelled(name, names) for name in chosen]
        _check_names([*chosen, *labels], names, path)
        return chosen

    kind = Path(path).suffix.lower() if str(path) != "-" else ""
    if kind in (".npy", ".npz"):
        arrays = read_arrays(Path(path), kind)
        read = {name: arrays[name] for name in choose(list(arrays))}
    elif kind == ".parquet" or Path(path).is_dir():
        read = read_parquet(Path(path), None if columns is None else choose)
        _check_names(labels if columns is None else (), list(read), path)
    else:
        read = _text(path, kind, choose, delimiter, frozenset(labels), tell, cells, said)
    labels = [respelled(name, read) for name in labels]
    found = {name: _unmarked(each, marks) if marks else each for name, each in read.items()}
    return {name: _as_labels(each, f"{path}[{name!r}]") if name in labels else each for name, each in found.items()}


def _cells(decimal: str | None, thousands: str | None, marks: Sequence[str | float]) -> Cells:
    """How cells of texts are read."""
    if decimal not in (None, ".", ","):
        raise InputError(f"decimal is {decimal!r}; expected '.' or ','.")
    if thousands not in (None, *THOUSANDS_MARKS):
        raise InputError(f"thousands is {thousands!r}; expected one of {', '.join(map(repr, THOUSANDS_MARKS))}.")
    if thousands is not None and thousands == decimal:
        raise InputError(f"decimal and thousands are both {decimal!r}; expected different marks.")
    words = frozenset(label_text(mark) for mark in marks)
    return Cells(decimal or OTHER.get(thousands or ""), words, thousands=thousands)


def _unmarked(values: np.ndarray, marks: Sequence[str | float]) -> np.ndarray:
    """A column that was not read as text, with codes replaced by missing values."""
    gone = marked(np.asarray(values), marks)
    if not gone.any():
        return values
    empty = "" if holds_text(values) else "NaT" if holds_times(values) else np.nan
    if empty == "NaT" or holds_text(values) or holds_floats(values):
        left = values.copy()
        left[gone] = empty
        return left
    return np.ma.MaskedArray(np.asarray(values), gone | absent_in(values))


def _as_labels(values: np.ndarray, where: str) -> np.ndarray:
    """Numbers as labels, "" for missing ones."""
    return np.where(absent_in(values), "", as_kind(np.asarray(values), "label", where))


def _as_words(values: np.ndarray) -> np.ndarray:
    """Labels as text again, "" for missing ones."""
    return np.array(["" if value is None else value for value in values.tolist()])


def _check_rows(columns: Mapping[str, Any], path: str | Path) -> None:
    if not len(next(iter(columns.values()), ())):
        raise EmptyError(f"{path} has {'no rows' if columns else 'no columns'}.")


def complete_rows(
    columns: dict[str, Any], path: str | Path, missing: str, tell: Callable[[str], object]
) -> tuple[Table, np.ndarray]:
    """Columns as `read_columns` reads them, with missing values handled, and which rows were kept."""
    _check_rows(columns, path)
    columns = {name: _as_words(values) if values.dtype == object else values for name, values in columns.items()}
    gone = np.zeros(len(next(iter(columns.values()))), bool)
    counts, there = {}, {}
    for name, values in columns.items():
        absent = absent_in(values).reshape(len(gone), -1).any(axis=1)
        number = missing == "category" and (holds_numbers(values) or holds_times(values))
        if (number or missing == "raise") and absent.any():
            row = int(np.flatnonzero(absent)[0]) + 1
            why = " of numbers, and 'category' is for labels" if number else ""
            raise NonFiniteError(
                f"{path} has {absent.sum()} missing values in the column {name!r}{why}, first in row {row} (counted "
                "from 1)."
            )
        if missing == "category":
            if absent.any():
                columns[name] = np.where(absent, MISSING_LABEL, values)
                tell(left_out(str(path), len(gone), len(gone), f"{name!r} ({absent.sum()})").removesuffix("."))
            continue
        gone |= absent
        there[name] = ~absent
        counts |= {name: int(absent.sum())} if absent.any() else {}
    where = ", ".join(f"{name!r} ({count})" for name, count in counts.items())
    if gone.all():
        raise EmptyError(f"{path} has no row without a missing value: one is missing in {where}.{_ends(counts)}")
    if counts:
        said = left_out(str(path), len(gone), int(np.sum(~gone)), where, beside=len(columns) > 1)
        for note in (*selection_notes(columns, there), said):  # errors about the rows that are left repeat the last one
            tell(note.removesuffix("."))
    return Table.of({name: unmasked(values[~gone]) for name, values in columns.items()}), ~gone


def _text(
    path: str | Path,
    kind: str,
    choose: Callable[[Sequence[str]], list[str]],
    delimiter: str | None,
    labels: frozenset[str],
    tell: Callable[[str], object],
    cells: Cells,
    said: Collection[str],
) -> dict[str, Any]:
    lines = lines_of(path)
    blank, first = 0, next(lines, "")
    while first and not first.strip(" \r\n"):
        blank, first = blank + 1, next(lines, "")
    if not first.strip():
        raise EmptyError(f"{path} is empty.")
    check_no_json(first, path)
    mark = _delimiter(first, kind, delimiter, path, tell)
    reader = replace(cells, commas=mark == ",")
    rows = _rows(chain([first], lines), mark, path, blank)
    names = [composed(cell.strip()) for cell in next(rows)]
    if all(reads_as_number(name) for name in names):
        rows = chain([names], rows)
        names = [f"x{i}" for i in range(len(names))]
        tell(
            f"the first line of {path} holds numbers only and was taken for data; its columns are called "
            f"{names[0]}{' to ' + names[-1] if names[1:] else ''}"
        )
    refuse_doubled(names, path)
    places = {name: i for i, name in enumerate(names)}
    used = [places[name] for name in choose(names)]
    parts: dict[int, list[Any]] = {i: [] for i in used}
    unclear = reader.decimal is None and reader.thousands is None and not reader.commas
    dots = {i: Dots(reader.marks) for i in used if unclear and names[i] not in (*labels, *said)}
    done = 0
    while block := list(islice((row for row in rows if row), ROWS_AT_ONCE)):
        for number, row in enumerate(block):
            if len(row) != len(names):
                raise ShapeError(
                    f"{path} has {counted(len(row), 'cell')} in row {done + number + 1}, and "
                    f"{counted(len(names), 'column')}.{_ends(row)} Row "
                    "1 is the first below the header."
                )
        if not done and len(names) == 1 and names[0] not in labels:
            _refuse_spaces(names[0], block, path)
        for i, made in parts.items():
            made.append(reader.read(column := [row[i] for row in block], names[i] in labels))
            if i in dots:
                dots[i].look(column)
        done += len(block)
    if not done:
        raise EmptyError(f"{path} has a header and no rows.")
    inferred: list[str] = []

    @cache
    def comma() -> tuple[str, str] | None:
        """The first column, and a cell of it, that shows that commas are decimal marks."""
        shown = ((names[i], reader.decimal_comma(made)) for i, made in parts.items() if names[i] not in labels)
        return next(((name, word) for name, word in shown if word), None)

    def evidence() -> str:
        found = comma()
        return f" (likely, as {found[0]!r} holds {found[1]!r})" if found else ""

    for i, seen in dots.items():
        if seen.possible and seen.dotted and (seen.short or comma()):
            beside = f" beside {seen.short!r}" if seen.short else ""
            raise ColumnError(
                f"the column {names[i]!r} of {path} holds {seen.dotted!r}{beside}: if dots separate thousands"
                f"{evidence()}, say thousands='.'; if they are decimal points, kinds={{{names[i]!r}: 'number'}}."
            )
    found = {
        names[i]: reader.joined(made, names[i], names[i] in labels, path, tell, inferred, names[i] in said, evidence)
        for i, made in parts.items()
    }
    if inferred:
        shown = in_few_words([*map(repr, inferred)], 5)
        tell(f"read with a decimal comma in {path}: {shown}; decimal='.' reads them as text")
    return found


def _rows(lines: Iterator[str], mark: str, path: str | Path, before: int) -> Iterator[list[str]]:
    """The cells of each row.

    A quote that is never closed is refused, because the rest of the file would become one cell.
    """
    if mark == " ":  # any number of spaces counts as one
        lines = (f"{line.strip()}\n" for line in lines)
    rows = csv.reader(lines, delimiter=mark, strict=True, skipinitialspace=mark == " ")
    begun = before + 1
    try:
        for row in rows:
            yield row
            begun = before + rows.line_num + 1
    except csv.Error as problem:
        why = {"unexpected end of data": "a quote is opened and never closed"}.get(str(problem), str(problem))
        raise InputError(
            f"{path} cannot be read from line {begun} on: {why}. A cell that begins with a quote ends with one, "
            'and a quote in it is doubled: "5"" pipe".'
        ) from None


def _ends(names: Collection[str]) -> str:
    """The likely reason for a last cell, or a column's name, that is empty."""
    return " The last cell is empty: does each line end with a delimiter?" if [*names][-1] == "" else ""


def _refuse_spaces(name: str, rows: Sequence[Sequence[str]], path: str | Path) -> None:
    """Refuse one column whose cells are several numbers each: spaces separate the cells of this file."""
    words = [cell.split() for (cell,) in rows]
    several = {len(name.split()), *map(len, words)}
    numbers = len(several) == 1 and several != {1} and all(reads_as_number(word) for row in words for word in row)
    if numbers and not all(TYPESET.fullmatch(cell) for (cell,) in rows):
        raise InputError(
            f"the lines of {path} are several numbers with spaces between them, such as {rows[0][0]!r}: say "
            f"delimiter=' ', or labels=[{name!r}] if each line is one label."
        )


def _check_names(wanted: Sequence[str], names: Sequence[str], path: str | Path) -> None:
    there = frozenset(names)
    unknown = [name for name in wanted if name not in there]
    if unknown:
        raise no_column(path, unknown[0], names)


def _delimiter(first: str, kind: str, delimiter: str | None, path: str | Path, tell: Callable[[str], object]) -> str:
    counts = {mark: first.count(mark) for mark in NAMES_OF_DELIMITERS}
    most = max(counts, key=counts.__getitem__)
    if delimiter is not None:
        delimiter = "\t" if delimiter == "\\t" else delimiter  # as a shell hands it on
        if len(delimiter) != 1:
            raise InputError(f"delimiter is {delimiter!r}; expected one character.")
        return delimiter
    expected = DELIMITERS.get(kind)
    if expected is None:
        return most
    if counts[expected] == 0 and counts[most] > 0:
        names = NAMES_OF_DELIMITERS
        tell(f"{path} is separated by {names[most]}, not by {names[expected]}, and was read so")
        return most
    return expected
