"""Tables from files: text with a delimiter, Parquet, NPY and NPZ.

The rules. The first line of a text names the columns, unless all of it are numbers: they are then called x0, x1, ...
A cell that is empty or says NA, NaN, NULL, None or ? is missing. A column holds numbers if each of its other cells is
one, and labels if none is.
"""

import csv
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from meanmap.core.errors import ColumnError, EmptyError, InputError, NonFiniteError, ShapeError
from meanmap.core.settings import reads_as_number
from meanmap.core.tables.kinds import as_kind
from meanmap.core.tables.missing import MISSING_LABEL
from meanmap.core.tables.table import Table
from meanmap.io.binary import read_arrays, read_parquet

__all__ = ["MISSING", "read_columns", "read_table"]

MISSING = frozenset(["", "na", "n/a", "nan", "null", "none", "?"])
DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
# What begins like this is no text, whatever its name.
FOREIGN = {
    b"\x1f\x8b": "is compressed by gzip. Unpack it first",
    b"PK\x03\x04": "is an archive, as .xlsx and .npz files are. Save a sheet as CSV, or call arrays .npz",
    b"\xd0\xcf\x11\xe0": "looks like an Excel sheet. Save it as CSV",
    b"PAR1": "looks like Parquet. Call it .parquet",
    b"\x93NUM": "looks like an array of NumPy. Call it .npy",
    b"\xff\xfe": "is not UTF-8 text; it looks like UTF-16. Save it as UTF-8",
    b"\xfe\xff": "is not UTF-8 text; it looks like UTF-16. Save it as UTF-8",
}
NAMES_OF_DELIMITERS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
# Cells are turned into numbers this many rows at a time, so that a million rows never exist as text.
ROWS_AT_ONCE = 20_000


def read_table(
    path: str | Path,
    columns: Sequence[str] | Callable[[list[str]], list[str]] | None = None,
    *,
    delimiter: str | None = None,
    labels: Sequence[str] = (),
    missing: Literal["drop", "category", "raise", "fail"] = "drop",
    tell: Callable[[str], object] | None = None,
) -> tuple[Table, int]:
    """Read columns of a file.

    Parameters
    ----------
    path : path
        ``.csv``, ``.tsv`` and other text, ``.parquet`` (also a folder or a pattern of these), ``.npy`` (columns x0, x1,
        ...) or ``.npz`` (a column, or a block, for each array); ``-`` reads text from standard input.
    columns : names, or a function of all names that returns some, optional
        Only these; all unless given.
    delimiter : str, optional
        Of texts: by default a comma for ``.csv``, a tab for ``.tsv``, otherwise what the first line holds most of.
    labels : names
        Columns that are labels though they look like numbers.
    missing : {"drop", "category", "raise"}
        Leave out the rows with a missing value in any of the columns, make missing labels a label of their own, or
        refuse them ("fail" is the same).
    tell : function of a sentence, optional
        Called with what a careful reader should know, such as that the first line held numbers and was taken for data.

    Returns
    -------
    table : Table
    dropped : int
        The number of rows that were left out.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_text("height,eyes\\n1.7,blue\\n,brown\\n1.8,green\\n")
    ...     read_table(path)
    (Table(2 rows: height, eyes [labels]), 1)
    """
    read = _read(path, columns, delimiter, labels, tell or (lambda note: None))
    return _complete(read, str(path), missing, tell or (lambda note: None))


def read_columns(
    path: str | Path,
    columns: Sequence[str] | None = None,
    *,
    delimiter: str | None = None,
    labels: Sequence[str] = (),
    tell: Callable[[str], object] | None = None,
) -> dict[str, np.ndarray]:
    """Columns of a file as `read_table` reads them, with their missing values: NaN, of labels None."""
    read = _read(path, columns, delimiter, labels, tell or (lambda note: None))
    if not len(next(iter(read.values()), ())):
        raise EmptyError(f"{path} has {'names of columns and no rows' if read else 'no columns'}.")
    for name, values in read.items():
        if values.dtype.kind == "U":
            read[name] = values.astype(object)
            read[name][values == ""] = None
    return read


def _read(
    path: str | Path,
    columns: Sequence[str] | Callable[[list[str]], list[str]] | None,
    delimiter: str | None,
    labels: Sequence[str],
    tell: Callable[[str], object],
) -> dict[str, np.ndarray]:
    """The columns that were chosen, "" for missing labels."""
    named = None if callable(columns) else columns
    kind = Path(path).suffix.lower() if str(path) != "-" else ""
    if kind in (".npy", ".npz"):
        read = read_arrays(Path(path), kind)
    elif kind == ".parquet" or Path(path).is_dir():
        read = read_parquet(Path(path), named)
    else:
        read = _text(path, kind, named, delimiter, frozenset(labels), tell)
    chosen = columns(list(read)) if callable(columns) else list(read) if columns is None else list(columns)
    _check_names([*chosen, *labels], list(read), path)
    return {name: _as_labels(read[name], f"{path}[{name!r}]") if name in labels else read[name] for name in chosen}


def _as_labels(values: np.ndarray, where: str) -> np.ndarray:
    """Numbers as labels, "" where one is missing."""
    found = as_kind(values, "label", where)
    return np.where(np.isnan(values), "", found) if values.dtype.kind == "f" else found


def _complete(columns: dict[str, Any], path: str, missing: str, tell: Callable[[str], object]) -> tuple[Table, int]:
    gone = np.zeros(len(next(iter(columns.values()), ())), bool)
    counts = {}
    if not len(gone):
        raise EmptyError(f"{path} has {'names of columns and no rows' if columns else 'no columns'}.")
    for name, values in columns.items():
        absent = np.isnan(values) if values.dtype.kind == "f" else values == "" if values.dtype.kind == "U" else None
        if absent is None:
            continue
        absent = absent.reshape(len(gone), -1).any(axis=1)
        number = missing == "category" and values.dtype.kind == "f"
        if (number or missing in ("fail", "raise")) and absent.any():
            row = int(np.flatnonzero(absent)[0]) + 1
            why = " of numbers, and 'category' is for labels" if number else ""
            raise NonFiniteError(
                f"{path} has {absent.sum()} missing values in the column {name!r}{why}, first in row {row}."
            )
        if missing == "category":
            columns[name] = np.where(absent, MISSING_LABEL, values)
            continue
        gone |= absent
        counts |= {name: int(absent.sum())} if absent.any() else {}
    where = ", ".join(f"{name!r} ({count})" for name, count in counts.items())
    if gone.all():
        raise EmptyError(f"{path} has no row without a missing value: one is missing in {where}.")
    if counts:
        tell(f"{gone.sum()} of {len(gone)} rows of {path} were left out: a value is missing in {where}")
    return Table.of({name: values[~gone] for name, values in columns.items()}), int(gone.sum())


def _text(
    path: str | Path,
    kind: str,
    columns: Sequence[str] | None,
    delimiter: str | None,
    labels: frozenset[str],
    tell: Callable[[str], object],
) -> dict[str, Any]:
    lines = _lines(path)
    first = next(lines, "")
    if not first.strip():
        raise EmptyError(f"{path} is empty.")
    mark = _delimiter(first, kind, delimiter, path)
    rows = _rows(chain([first], lines), mark, path)
    names = [cell.strip() for cell in next(rows)]
    if all(reads_as_number(name) for name in names):
        rows = chain([names], rows)
        names = [f"x{i}" for i in range(len(names))]
        tell(
            f"the first line of {path} holds numbers only and was taken for data; its columns are called "
            f"{names[0]}{' to ' + names[-1] if names[1:] else ''}"
        )
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ColumnError(f"{path} has more than one column called {doubled[0]!r}. Rename one of them.")
    _check_names(columns or (), names, path)
    used = range(len(names)) if columns is None else [i for i, name in enumerate(names) if name in columns]
    parts: dict[int, list[Any]] = {i: [] for i in used}
    done = 0
    while block := list(islice((row for row in rows if row), ROWS_AT_ONCE)):
        for number, row in enumerate(block):
            if len(row) != len(names):
                raise ShapeError(f"{path} has {len(row)} cells in row {done + number + 1}, and {len(names)} columns.")
        for i, made in parts.items():
            made.append(_cells([row[i] for row in block], names[i] in labels))
        done += len(block)
    if not done:
        raise EmptyError(f"{path} has names of columns and no rows.")
    return {names[i]: _joined(made, names[i], names[i] in labels, path) for i, made in parts.items()}


def _rows(lines: Iterator[str], mark: str, path: str | Path) -> Iterator[list[str]]:
    """The cells of each row. A quote that is never closed is refused: it would take all that follows into one cell."""
    rows = csv.reader(lines, delimiter=mark, strict=True)
    begun = 1
    try:
        for row in rows:
            yield row
            begun = rows.line_num + 1
    except csv.Error as problem:
        why = {"unexpected end of data": "a quote is opened and never closed"}.get(str(problem), str(problem))
        raise InputError(
            f"{path} cannot be read from line {begun} on: {why}. A cell that begins with a quote ends with one, "
            'and a quote in it is doubled: "5"" pipe".'
        ) from None


def _check_names(wanted: Sequence[str], names: Sequence[str], path: str | Path) -> None:
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise ColumnError(f"{path} has no column {unknown[0]!r}; it has {', '.join(map(repr, names))}.")


def _cells(cells: list[str], as_labels: bool) -> np.ndarray:
    """Numbers with NaN where one is missing; otherwise text, "" where it is missing."""
    if not as_labels:
        try:
            return np.array(cells, dtype=float)
        except ValueError:
            pass
    text = np.array([cell.strip() for cell in cells])
    absent = np.array([cell.lower() in MISSING for cell in text.tolist()])
    text[absent] = ""
    if as_labels:
        return text
    try:
        return np.where(absent, "nan", text).astype(float)
    except ValueError:
        return text


def _joined(parts: list[np.ndarray], name: str, as_labels: bool, path: str | Path) -> np.ndarray:
    """One column from its parts: numbers, or labels; a mixture of the two is refused."""
    if as_labels or all(part.dtype.kind == "f" for part in parts):
        return np.concatenate(parts)
    row, number, word = 0, None, None
    for part in parts:
        for value in part.tolist() if number is None or word is None else ():
            row += 1
            if value != value or value == "":
                continue
            if reads_as_number(value):
                number = value
            elif word is None:
                word = f"in row {row} {value!r}"
    if number is not None and word is not None:
        raise ColumnError(
            f"the column {name!r} of {path} holds numbers, such as {number}, and {word}. Mend it, or read it as "
            f"labels: labels=[{name!r}], or --labels {name}."
        )
    return np.concatenate([np.full(len(part), "") if part.dtype.kind == "f" else part for part in parts])


def _lines(path: str | Path) -> Iterator[str]:
    """The lines of a UTF-8 text, its byte order mark left out."""
    with io.BytesIO(sys.stdin.buffer.read()) if str(path) == "-" else Path(path).open("rb") as file:
        start = file.read(4)
        for begin, what in FOREIGN.items():
            if start.startswith(begin):
                raise InputError(f"{path} {what}.")
        if b"\0" in start:
            raise InputError(f"{path} is not UTF-8 text; it looks like UTF-16. Save it as UTF-8.")
        file.seek(0)
        try:
            with io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
                yield from text
        except UnicodeDecodeError as problem:
            raise InputError(f"{path} is not UTF-8 text ({problem.reason} at byte {problem.start}).") from None


def _delimiter(first: str, kind: str, delimiter: str | None, path: str | Path) -> str:
    counts = {mark: first.count(mark) for mark in NAMES_OF_DELIMITERS}
    most = max(counts, key=counts.__getitem__)
    if delimiter is not None:
        if len(delimiter) != 1:
            raise InputError(f"delimiter is {delimiter!r}; expected one character.")
        return delimiter
    expected = DELIMITERS.get(kind)
    if expected is None:
        return most
    if counts[expected] == 0 and counts[most] > 0:
        raise InputError(
            f"{path} is separated by {NAMES_OF_DELIMITERS[most]}, not by {NAMES_OF_DELIMITERS[expected]}: "
            f"pass --delimiter {most!r}."
        )
    return expected
