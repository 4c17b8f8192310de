"""Reads files as samples and variables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from meanmap.cli.options import before_errors, names_in
from meanmap.core.errors import ColumnError, EmptyError, ParameterError
from meanmap.core.meant import no_column
from meanmap.core.numerals import THOUSANDS_MARKS
from meanmap.core.pieces.files import ParquetFiles
from meanmap.core.progress import waiting
from meanmap.core.tables.apart import apart_in, left_out_of_table
from meanmap.core.tables.doubts import copied_rows, exact_copies
from meanmap.core.tables.kinds import OF_TIMES, wanted_kind
from meanmap.core.tables.marks import policy_and_marks
from meanmap.core.tables.missing import present
from meanmap.core.tables.order import numbers_rows
from meanmap.core.tables.schema import admitted, check_alike
from meanmap.core.tables.table import Table
from meanmap.core.tables.zones import check_zones
from meanmap.io.tables import complete_rows, read_columns
from meanmap.stats.designs.groups import split
from meanmap.stats.settings import LEAST_POINTS

# The longest Parquet file, in rows, that is read at once; longer ones, and several files, are read piece by piece.
MOST_HELD = 1_000_000
MISSING = ("drop", "category", "raise")

__all__ = [
    "Reading",
    "groups",
    "long_files",
    "long_variables",
    "numeric",
    "observed",
    "pair",
    "variables",
    "with_all_rows",
]


@dataclass
class Reading:
    """Settings and notes of reading files.

    `said` may declare any column of a file; `kinds` has only those of the columns that were read. Columns in `needs`
    must be in every file that is read as a table. `incomplete` has the columns of files of which rows were left out,
    with these rows, and the notes on them.
    """

    delimiter: str | None
    labels: list[str]
    missing: str
    said: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    by_pairs: bool = False
    decimal: Any = None
    thousands: Any = None
    exclude: list[str] = field(default_factory=list)
    there: dict[str, bool] = field(default_factory=dict)
    header: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    keeps: list[str] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)
    incomplete: dict[str, tuple[dict[str, Any], list[str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in (name for name in self.labels if self.said.get(name, "label") != "label"):
            raise ParameterError(
                f"--labels and --kinds declare {name!r} as a label and as {self.said[name]!r}: use one of them."
            )
        self.said = dict.fromkeys(self.labels, "label") | self.said
        for kind in self.said.values():
            wanted_kind(kind)
        self.labels = [name for name, kind in self.said.items() if kind == "label"]
        self.policy, self.marks = self.missing, ()
        known = (*MISSING, *(("pairwise",) if self.by_pairs else ()))
        if self.missing not in known:
            marks = [mark for mark in names_in(self.missing) if mark]
            if self.missing.isalpha() or not marks:
                more = "drop, category, pairwise" if self.by_pairs else "drop, category"
                expected = f"{more} or raise; or codes for missing values, such as '?,-999' or 'unknown,'"
                raise ParameterError(f"--missing is {self.missing!r}; expected {expected}.")
            self.policy, self.marks = policy_and_marks(marks)
        if self.decimal not in (None, ".", ","):
            raise ParameterError(f"--decimal is {self.decimal!r}; expected . or ,")
        if self.thousands not in (None, *THOUSANDS_MARKS):
            raise ParameterError(f"--thousands is {self.thousands!r}; expected , . ' or a space")

    @property
    def kinds(self) -> dict[str, Any]:
        """The declared kinds of the columns that were read; names that no file has are refused."""
        unknown = [name for name in self.said if name not in self.there]
        if unknown:
            raise no_column("the input", unknown[0], self.there)
        return {name: kind for name, kind in self.said.items() if self.there[name]}

    def seen(self, there: Sequence[str], read: Sequence[str]) -> None:
        """Remember which columns a file has, and which of these are read."""
        self.header = self.header or list(there)
        for name in (*there, *read):
            self.there[name] = self.there.get(name, False) or name in read

    def table(self, path: str, columns: list[str] | Callable[[list[str]], list[str]] | None) -> Table:
        """Columns of a file, named or chosen by a function of all names; a note counts the rows that were left out.

        If all columns are used, ids are left out, except those that the command names (`keeps`, `needs`). They are left
        out before rows are, so that no row is lost for a missing value in an unused column.
        """
        chosen = columns or None
        self.asked_for(self.needs)
        with waiting(f"reading {path}"):
            found = read_columns(path, self.choosing(path, chosen), marks=self.marks, **self._read_so())
        for name in (name for name in self.needs if name not in found):
            raise no_column(path, name, found)
        self.seen(list(found), list(found))
        left = self.without_ids(observed(found), chosen)
        gappy, told = {name: found[name] for name in left}, []
        table, kept = complete_rows(gappy, path, self.policy, told.append)
        self.notes += told
        if not kept.all():
            before_errors(told[-1])
            self.incomplete[path] = gappy, told
            if len(table) < LEAST_POINTS:
                raise EmptyError(f"only {len(table)} rows of {path} are left: {self.notes[-1]}.")
        self._tell_of_copies(path, table, {name: found[name][kept] for name in self.ids if name in found})
        return table

    def all_rows(self, path: str) -> dict[str, Any] | None:
        """The columns of a file of which rows were left out, with these rows, for a test that says so itself; None for
        other files.
        """
        columns, told = self.incomplete.get(path, (None, []))
        self.notes = [note for note in self.notes if note not in told]
        return columns

    def for_pairs(self, path: str, columns: list[str] | None) -> Any:
        """Like `table`, but with all rows for --missing pairwise, since the command leaves rows out pair by pair."""
        if self.policy != "pairwise":
            return self.table(path, columns)
        chosen = columns or None
        with waiting(f"reading {path}"):
            found = read_columns(path, self.choosing(path, chosen), **self._read_so())
        self.seen(list(found), list(found))
        return {name: found[name] for name in self.without_ids(observed(found), chosen)}

    def with_gaps(self, path: str, columns: list[str] | None) -> dict[str, Any]:
        """Columns of a file, including rows with missing values if --missing is drop; otherwise like `table`."""
        if self.policy != "drop":
            return self.table(path, columns).columns
        chosen = columns or None
        with waiting(f"reading {path}"):
            found = read_columns(path, self.choosing(path, chosen), marks=self.marks, **self._read_so())
        self.seen(list(found), list(found))
        return found

    def choosing(self, path: str, chosen: object) -> Callable[[list[str]], list[str]] | None:
        """A function that chooses columns by name and remembers its choice; None for all columns."""
        self.header = []

        def choose(names: list[str]) -> list[str]:
            for name in (name for name in self.exclude if name not in names):
                raise no_column(path, name, names)
            left = [name for name in names if name not in self.exclude]
            found: Any = left if chosen is None else chosen(left) if callable(chosen) else chosen
            self.asked_for(found)
            for name in (name for name in found if name not in names):
                for whole in (each for each in names if name in map(str.strip, each.split(","))):
                    raise ColumnError(f"{path} has no column {name!r}; {whole!r} holds a comma: write '\"{whole}\"'.")
            self.seen(names, [name for name in found if name in names])
            return found

        return None if chosen is None and not self.exclude else choose

    def asked_for(self, names: Sequence[str]) -> None:
        """Refuse columns that are both used by name and excluded."""
        for name in (name for name in names if name in self.exclude):
            raise ColumnError(f"--exclude leaves out {name!r}, which another option uses: remove it from one.")

    def _read_so(self) -> dict[str, Any]:
        return {
            "delimiter": self.delimiter,
            "decimal": self.decimal,
            "thousands": self.thousands,
            "labels": self.labels,
            "said": tuple(self.said),
            "tell": self.notes.append,
        }

    def set_apart(self, names: Sequence[str]) -> None:
        """Register columns that are read but are not part of the samples, so that tests need not know their kinds."""
        self.there |= dict.fromkeys(names, False)

    def of_many_rows(self) -> dict[str, Any]:
        """The options as arguments, for tests that read files themselves."""
        return {"kinds": self.kinds, "missing": self.marks or self.policy}

    def without_ids(self, columns: dict[str, Any], chosen: object) -> list[str]:
        """The columns to use: those that are named, or all but row numbers, row names, and dates and times as text.

        If a function chooses columns, those in `keeps` and `needs` count as named.
        """
        known = [*self.said, *self.keeps, *self.needs] if chosen is None or callable(chosen) else [*columns]
        apart = apart_in([columns], known)
        left = [name for name in columns if name not in apart]
        if not left:
            return list(columns)
        for name, (what, kind) in apart.items():
            if name not in self.ids:
                self.notes.append(left_out_of_table(name, what, kind))
                self.ids.append(name)
        self.set_apart(list(apart))
        return left

    def _tell_of_copies(self, path: str, table: Table, apart: dict[str, Any]) -> None:
        """A note on rows that repeat another one in every column, ids included, so that they are copies."""
        ids = [name for name, column in observed(apart).items() if numbers_rows(column)]
        whole = [np.asarray(column) for column in (*table.columns.values(), *apart.values())]
        copies = exact_copies(whole) if ids else 0
        if copies and not copied_rows([table], [path]):
            self.notes.append(
                f"{copies} of {len(table)} rows of {path} repeat another row in every column, {ids[0]!r} too, "
                "but count as independent: remove these copies"
            )

    def told(self, table: Table, path: str) -> Table:
        """The table with its columns converted to their declared kinds."""
        ours = {name: kind for name, kind in self.kinds.items() if name in table.names}
        return admitted((table,), (path,), "raise", ours)[0][0] if ours else table


def observed(columns: dict[str, Any]) -> dict[str, np.ndarray]:
    """The values of each column that are not missing, as tables hold them."""
    there = {name: column[present(column)] for name, column in columns.items()}
    return {name: np.asarray(Table.of({name: each})[name]) if len(each) else each for name, each in there.items()}


def pair(reading: Reading, first: str, second: str, columns: list[str]) -> dict[str, Table]:
    """Two samples, one from each file, with the same columns."""
    if first == second == "-":
        raise ParameterError("standard input can be only one of the samples.")
    one, other = reading.table(first, columns), reading.table(second, columns)
    one, other = (table.select([name for name in table.names if name not in reading.ids]) for table in (one, other))
    meant = [reading.told(table, path).columns for table, path in ((one, first), (other, second))]
    for name in (name for name in one.names if name in other.names):
        check_alike([columns_of[name] for columns_of in meant], name, (first, second), f"--labels {name}")
    check_zones((one, other), (first, second), [name for name, kind in reading.kinds.items() if kind in OF_TIMES])
    alone = [name for name in (*one.names, *other.names) if (name in one.names) != (name in other.names)]
    if alone:
        where = first if alone[0] in one.names else second
        raise ColumnError(f"only {where} has a column {alone[0]!r}; choose columns that both have, with --columns.")
    _tell_of_shared_files(reading, [[first], [second]])
    names = list(dict.fromkeys([Path(first).name, Path(second).name]))
    names = names if len(names) == 2 else [first, second if second != first else f"{second} (again)"]
    return dict(zip(names, (one, other.select(one.names)), strict=True))


def _tell_of_shared_files(reading: Reading, paths: Sequence[Sequence[str | Path]]) -> None:
    """A note on rows that are in both samples."""
    one, other = ({Path(path).resolve(): str(path) for path in each} for each in paths)
    shared = [name for path, name in one.items() if path in other]
    if shared and one.keys() == other.keys():
        what = f"file {shared[0]}" if len(shared) == 1 else f"same {len(shared)} files"
        reading.notes.append(f"both samples are the {what}: no difference can be found")
    elif shared:
        reading.notes.append(f"the rows of {', '.join(sorted(shared)[:3])} are in both samples and hide differences")


def long_files(reading: Reading, first: str, second: str, columns: list[str]) -> dict[str, Any] | None:
    """Two samples that are read piece by piece, because one is several Parquet files or a long one; otherwise None."""
    if not any(_is_long(path, columns) for path in (first, second)):
        return None
    both = [
        _files(reading, path, columns) if ParquetFiles.holds(path) else reading.table(path, columns)
        for path in (first, second)
    ]
    for one, other, where in ((both[0], both[1], first), (both[1], both[0], second)):
        for name in (name for name in one.names if name not in other.names):
            raise ColumnError(f"only {where} has a column {name!r}; choose columns that both have, with --columns.")
    _tell_of_shared_files(
        reading, [getattr(each, "paths", [path]) for each, path in zip(both, (first, second), strict=True)]
    )
    return dict(zip((first, second if second != first else f"{second} (again)"), both, strict=True))


def _files(reading: Reading, path: str, columns: list[str]) -> ParquetFiles:
    """Parquet files to be read piece by piece."""
    files = ParquetFiles.of(path, columns or None)
    if choose := reading.choosing(path, columns or None):
        files = ParquetFiles.of(path, choose(list(files.shared)))
    reading.seen(files.shared, files.names)
    return files


def _is_long(path: str, columns: list[str]) -> bool:
    """Whether a path names several Parquet files, or one with too many rows to read at once."""
    if not ParquetFiles.holds(path):
        return False
    files = ParquetFiles.of(path, columns or None)
    return len(files.paths) > 1 or Path(path).is_dir() or files.count() > MOST_HELD


def groups(reading: Reading, path: str, by: str, columns: list[str]) -> dict[str, Table]:
    """The samples of one file, one for each value of a column, in the order that --kinds declares."""
    table = reading.table(path, [*columns, by] if columns else None)
    reading.set_apart([by])
    others = [name for name in table.names if name != by]
    if not others:
        raise ColumnError(f"{path} has nothing to compare besides {by!r} of --by: name other columns with --columns.")
    labels, places = np.unique(np.asarray(table.columns[by]), return_inverse=True)
    said = reading.said.get(by)
    declared = said if isinstance(said, tuple) else ()
    return split(table.select(others).columns, by, labels.tolist(), places, declared)


def with_all_rows(
    reading: Reading, samples: Mapping[str, Table], paths: Sequence[str], by: str | None
) -> tuple[list[Any], dict[str, Any]]:
    """Samples of files as arguments of a test, with the rows that have a missing value: the test leaves these out, but
    compares other columns on them.
    """
    found = [reading.all_rows(path) for path in paths]
    if all(columns is None for columns in found):
        return list(samples.values()), {}
    if by is not None:
        said = reading.said.get(by)
        order = {"kinds": reading.kinds | {by: said}} if isinstance(said, tuple) else {}
        return found, {"missing": "drop", "by": by, **order}
    pairs = zip(samples.values(), found, strict=True)
    given = [table if columns is None else {name: columns[name] for name in table.names} for table, columns in pairs]
    return given, {"missing": "drop"}


def variables(reading: Reading, path: str, chosen: list[list[str]]) -> list[Table]:
    """Groups of columns of one file, rows with a missing value in any of them left out."""
    table = reading.table(path, _all_of(chosen))
    return [table.select(names) for names in chosen]


def long_variables(reading: Reading, path: str, chosen: list[list[str]]) -> list[Any] | None:
    """Groups of columns that are read piece by piece, from several Parquet files or a long one; otherwise None."""
    if not _is_long(path, _all_of(chosen)):
        return None
    return [_files(reading, path, names) for names in chosen]


def _all_of(chosen: list[list[str]]) -> list[str]:
    together = [name for names in chosen for name in names]
    doubled = [name for name in together if together.count(name) > 1]
    if doubled:
        raise ColumnError(f"the column {doubled[0]!r} is named twice among the variables.")
    return together


def numeric(table: Table, path: str, option: str) -> Table:
    """The table, if all of its columns are numbers; `option` is the one that leaves out others."""
    labels = [name for name in table.names if not table.is_real(name)]
    if labels:
        are = "is a column of labels" if len(labels) == 1 else "are columns of labels"
        raise ColumnError(
            f"{', '.join(map(repr, labels))} of {path} {are}; expected numbers: name the columns to use with {option}."
        )
    return table
