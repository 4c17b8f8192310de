"""The kinds of a table's columns, determined once from all samples together and checked in later data."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np

from meanmap.core.arrays import check_lengths
from meanmap.core.errors import ColumnError, ParameterError
from meanmap.core.foreign import unmasked
from meanmap.core.language import counted
from meanmap.core.meant import names_none, no_column, respelled
from meanmap.core.moments import is_column_of_times
from meanmap.core.notes import warn_of
from meanmap.core.pieces.sources import comes_in_pieces
from meanmap.core.settings import by_name
from meanmap.core.tables.column import Column, check_alike
from meanmap.core.tables.doubts import copied_columns, copied_rows, doubts, same_samples
from meanmap.core.tables.indices import check_order
from meanmap.core.tables.kinds import HELD_BY, OF_TIMES, Kind, as_kind, wanted_kind
from meanmap.core.tables.matching import Places, has_names, matched, renamed, selected
from meanmap.core.tables.missing import as_found, length, rows_called, settle
from meanmap.core.tables.sample import seen
from meanmap.core.tables.selection import notes_on_gaps
from meanmap.core.tables.table import Table, named_columns, raw_columns
from meanmap.core.tables.wild import wild_notes
from meanmap.core.tables.zones import check_zones, one_zone
from meanmap.core.types import Array, Data

__all__ = [
    "Column",
    "Schema",
    "admitted",
    "check_alike",
    "check_same_columns",
    "few_columns",
    "later",
    "opened",
    "varying",
]

# What errors call the tables of two elements that are combined.
ELEMENTS = ("the first element", "the second element")


@dataclass(frozen=True)
class Schema:
    """The columns of a table, in order: their kinds, units, extremes, missing values and labels.

    `schema = mm.Schema.of(table)` reads a table; `print(schema)` shows the kind that the library assigns to each
    column.

    Made by `Schema.of`. Models fitted to a table keep its schema, `fitted.schema`, and read later data by it;
    create one yourself to inspect a table, or to declare another kind for a column.

    Attributes
    ----------
    columns : tuple of Column
    rows : int
        The number of rows it was made from.
    named : bool
        Whether the columns have names; those of plain arrays are identified by position.
    kinds : tuple of (column, kind)
        The declared kinds.
    places : Places or None
        For an array about which nothing else is stored.

    Notes
    -----
    Kinds are those of the data types: numbers are numbers, however few values they take; text, categories and truth
    values are labels; dates and times are their own kind, compared in seconds. Ordered categories are ordered labels;
    kernels only use whether they are equal. Only `kinds=` turns numbers into labels, or ordered levels into numbers.

    Examples
    --------
    >>> people = {"age": [31.5, 47.0, 19.0], "zip": [10115, 80331, 10115], "member": [True, False, True]}
    >>> print(Schema.of(people, kinds={"zip": "label"}))
    3 rows, 3 columns
      age     number   19 to 47, median 31.5, scale 15.5
      zip     label    2 values: 10115, 80331
      member  boolean  2 values: False, True
    """

    columns: tuple[Column, ...]
    rows: int
    named: bool = True
    kinds: tuple[tuple[Any, Kind], ...] = ()
    places: Places | None = None

    @classmethod
    def of(cls, *samples: Data, kinds: Mapping[str, Any] | None = None, names: Sequence[str] = ()) -> "Schema":
        """Read one table, or several samples of the same columns together.

        Parameters
        ----------
        samples : tables
            DataFrames, mappings of columns, structured arrays or matrices. Columns are matched by name, those of plain
            matrices by position. Missing values are counted.
        kinds : mapping of column to kind, optional
            The kind of a column whose data type does not show it: "number", "label", "time", "angle" (radians), or the
            cycle in which a time recurs, "time of day", "time of week", "time of year". Levels in order, such as
            ("low", "middle", "high"), or "rank" for ordered categories, turn labels into numbers.
        names : sequence of str
            What to call the samples in errors; by default "table", or "samples[0]", "samples[1]", ...

        Raises
        ------
        KindError
            If a column holds, say, numbers in one sample and text in another.
        ColumnError
            If a sample lacks a column.
        """
        if not samples:
            raise ParameterError("Schema.of() has no sample; expected at least one table.")
        names = names or ([f"samples[{i}]" for i in range(len(samples))] if len(samples) > 1 else ["table"])
        split = list(map(raw_columns, samples, names))
        together, named = matched(split, samples, names)
        first = together[0]
        chosen = chosen_kinds(kinds, first, names[0])
        rows = 0
        for columns, name in zip(together, names, strict=True):
            rows += check_lengths({each: length(column) for each, column in columns.items()}, name)
        found = [Column.of(name, [each[name] for each in together], names, chosen.get(name)) for name in first]
        return cls(tuple(found), rows, named, tuple(chosen.items()))

    @classmethod
    def of_points(cls, data: Data, argument: str, *, brief: bool = False) -> "Schema | None":
        """The schema of a sample of columns; None for other samples, which only their kernel can read.

        A `brief` schema of an array holds only its `places`: it costs nothing, however many columns there are.
        """
        if comes_in_pieces(data):
            return None
        data = unmasked(data)
        if is_column_of_times(data):
            return cls.of(data, names=(argument,))
        places = Places.of(data)
        if brief and places is not None:
            return cls((), length(data), False, places=places)
        if columns := named_columns(data, argument):
            known = not any(isinstance(column, jax.Array) for column in columns.values())
            return cls.of(data, names=(argument,)) if known else None
        return None if places is None else cls.of(np.asarray(data), names=(argument,))

    @classmethod
    def joined(cls, parts: "Sequence[Schema | None]") -> "Schema | None":
        """The schema of a model of several columns, each with its own schema; None if one of them has none."""
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        columns = tuple(column for part in known for column in part.columns)
        kinds = tuple(kind for part in known for kind in part.kinds)
        return cls(columns, max(part.rows for part in known), True, kinds)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        if self.places is not None:
            return tuple(f"x{j}" for j in range(self.places.number))
        return tuple(str(column.name) for column in self.columns)

    @cached_property
    def _told(self) -> dict[Any, Kind]:
        return dict(self.kinds)

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {str(column.name): column for column in reversed(self.columns)}

    def __getitem__(self, name: str) -> Column:
        if str(name) not in self._by_name:
            raise no_column("the schema", name, self.names)
        return self._by_name[str(name)]

    def read(self, data: Data, argument: str = "data") -> Table:
        """`data` as a table with these columns in this order; other columns are left out.

        A missing column, or one of another kind, is an error. See `Schema.notes` for unusual values.

        Examples
        --------
        >>> schema = Schema.of({"b": [1.0, 2.0], "a": ["u", "v"]})
        >>> schema.read({"c": [0], "a": ["v"], "b": [5]})
        Table(1 rows: b, a [labels])
        """
        if len(self.columns) == 1 and is_column_of_times(data):
            self.columns[0].check_zone(data, argument)
        columns = raw_columns(data, argument)
        if Table.has_names(data) and not self.named:
            raise has_names(data, argument, len(self.names))
        if self.named and not Table.has_names(data):
            known = ", ".join(map(repr, self.names))
            raise ColumnError(
                f"{argument} is an array, whose columns have no names; expected a table with the columns {known}."
            )
        found = (
            selected(columns, self.names, argument) if self.named else renamed(columns, self.names, argument, "before")
        )
        return Table.of({name: self.read_column(name, part, argument) for name, part in found.items()}, argument)

    def read_column(self, name: str, values: Array, argument: str = "data") -> Any:
        """Later values of one column, as `read` reads them."""
        return self[name].read(values, argument, self._told.get(name))

    def later(self, data: Data, argument: str) -> Any:
        """New points for a fitted object, as a kernel reads them: tables with these columns in this order.

        Unusual values cause a warning, as there is no result to hold a note.
        """
        known = Table.looks_like_one(data) or isinstance(data, list | tuple | np.ndarray) or is_column_of_times(data)
        if isinstance(data, jax.Array) or not known:
            return data
        if self.places is not None:
            self.places.check(data, argument)
            return data
        table = self.read(data, argument)
        warn_of(self.notes(table, argument))
        return table if self.kinds or Table.looks_like_one(data) else data

    def notes(self, table: Table | Mapping[str, Any], argument: str = "data") -> tuple[str, ...]:
        """Notes on columns that were read: labels never seen before, and numbers far outside the range."""
        columns = table.columns if isinstance(table, Table) else table
        found = [self[name].odd(values, f"{argument}[{name!r}]") for name, values in columns.items()]
        return tuple(note for note in found if note)

    def __str__(self) -> str:
        wide = max((len(str(column.name)) for column in self.columns), default=0)
        broad = max((len(column.kind) for column in self.columns), default=0)
        lines = [f"  {c.name!s:<{wide}}  {c.kind:<{broad}}  {c}".rstrip() for c in self.columns]
        number = counted(len(self.names), "column") + (f" of {HELD_BY[self.places.family]}" if self.places else "")
        return "\n".join([f"{counted(self.rows, 'row')}, {number}", *lines])

    __repr__ = __str__


def chosen_kinds(kinds: Mapping[str, Any] | None, columns: Mapping[str, Any], argument: str) -> dict[str, Kind]:
    """The kinds that are declared, checked."""
    told = {respelled(name, columns): kind for name, kind in by_name(kinds, "kinds", '{"zip": "label"}').items()}
    unknown = [name for name in told if name not in columns]
    if unknown:
        raise names_none("kinds", unknown[0], argument, columns)
    return {name: wanted_kind(kind, columns[name]) for name, kind in told.items()}


def admitted(
    samples: Sequence[Any],
    names: Sequence[str],
    missing: str = "raise",
    kinds: Mapping[str, Any] | None = None,
    *,
    paired: bool = False,
    least: int = 1,
    wild: bool = True,
    told: Collection[str] = (),
) -> tuple[list[Any], tuple[str, ...]]:
    """Samples as functions take them: missing values handled by `settle`, columns converted to `kinds`.

    Notes name columns that may not be what they seem, rows that are copies and, unless samples are paired, `wild`
    cells. The kind of columns in `told` is declared, and they are converted later.

    Examples
    --------
    >>> samples, notes = admitted([{"zip": [10115, None]}], ["x"], "drop", {"zip": "label"})
    >>> samples[0].columns["zip"].tolist(), notes
    (['10115'], ("1 of 2 rows of x was left out: a value is missing in 'zip' (1).",))
    """
    kinds = by_name(kinds, "kinds", '{"zip": "label"}')
    if missing != "raise" or kinds:
        _in_memory(samples, missing)
    if paired:
        check_order(samples, names)
    came, (samples, notes) = samples, settle(samples, names, missing, paired, least)
    notes += notes_on_gaps(came, names, missing, kinds, paired) if notes else ()
    left = seen(samples, names)
    # A gap in one column says nothing about the cells beside it, which unpaired samples' columns are compared with.
    found = left if paired or missing == "raise" else seen(as_found(came, names, missing), names)
    known = {*(kinds or ()), *told}
    notes += (*doubts(found, names, known, apart=paired), *copied_rows(left, names, paired=paired))
    notes += (copied_columns if paired else same_samples)(left, names)
    notes += wild_notes(found, names, known) if wild and not paired else ()
    if not kinds:
        return samples, notes
    split = list(map(raw_columns, samples, names))
    columns_of_all = {name: column for columns in reversed(split) for name, column in columns.items()}
    chosen = chosen_kinds(kinds, columns_of_all, " and ".join(names))
    if not paired:
        check_zones(samples, names, [name for name, kind in chosen.items() if kind in OF_TIMES])
    found = []
    for sample, columns, name in zip(samples, split, names, strict=True):
        ours = {each: kind for each, kind in chosen.items() if each in columns}
        table = Table.of(sample, name) if ours else sample
        told = {each: as_kind(table.columns[each], kind, f"{name}[{each!r}]") for each, kind in ours.items()}
        found.append(Table({**table.columns, **told}) if ours else sample)
    return found, notes


def opened(
    samples: Sequence[Any],
    names: Sequence[str],
    missing: str = "raise",
    kinds: Mapping[str, Any] | None = None,
    *,
    paired: bool = False,
    least: int = 1,
    brief: bool = False,
    wild: bool = False,
) -> tuple[list[Any], "tuple[Schema | None, ...]", tuple[str, ...]]:
    """Samples as returned by `admitted`, and the schemas for reading later rows. They are None for data that only their
    kernel can read, and `brief` for arrays, except for the first sample. Notes name `wild` cells where no other rule
    of the function does.
    """
    left, notes = settle(samples, names, missing, paired, least)
    notes += notes_on_gaps(samples, names, missing, kinds, paired) if notes else ()
    found, more = admitted(left, names, "raise", kinds, paired=paired, wild=False)
    notes += more
    if wild:
        notes += wild_notes(left, names, kinds or (), apart=True, rows=rows_called(samples, left, names, missing))
    schemas = []
    for i, (sample, read, name) in enumerate(zip(left, found, names, strict=True)):
        if read is sample:
            schemas.append(Schema.of_points(sample, name, brief=brief or i > 0))
        else:
            ours = {column: kind for column, kind in (kinds or {}).items() if column in raw_columns(sample, name)}
            schemas.append(Schema.of(sample, kinds=ours, names=[name]))
    return found, tuple(schemas), notes


def later(schema: "Schema | None", data: Data, argument: str) -> Any:
    """`data` read by `schema`, as `Schema.later` does, where there is one."""
    return data if schema is None else schema.later(data, argument)


def check_same_columns(first: "Schema | None", second: "Schema | None", what: str) -> None:
    """Refuse to combine elements of tables whose columns differ by name or order, or of which one has a time zone."""
    if first is None or second is None:
        return
    for one, other in zip(first.columns, second.columns, strict=False):
        if {one.zoned, other.zoned} == {True, False}:
            raise one_zone(*(ELEMENTS if one.zoned else ELEMENTS[::-1]))
    if first.names == second.names or not (first.named and second.named):
        return
    names = (", ".join(map(repr, each.names)) for each in (first, second))
    raise ColumnError(
        f"{what} needs two elements of the same columns, and one has the columns {next(names)} and the other "
        f"{next(names)}: give both tables the same columns in the same order."
    )


def varying(table: Data, schema: Schema) -> tuple[Any, tuple[str, ...]]:
    """The columns of a table that vary, and notes on constant ones, which were left out because nothing can depend on
    them.

    Examples
    --------
    >>> table = {"a": [1.0, 2.0], "b": ["u", "u"]}
    >>> varying(table, Schema.of(table))
    ({'a': [1.0, 2.0]}, ("column 'b' is constant: nothing depends on it, and it is left out.",))
    """
    dull = [name for name, column in zip(schema.names, schema.columns, strict=True) if column.distinct == 1]
    if not dull:
        return table, ()
    kept = {name: column for name, column in raw_columns(table, "table").items() if name not in dull}
    return kept, tuple(f"column {name!r} is constant: nothing depends on it, and it is left out." for name in dull)


def few_columns(schema: Schema, dull: Sequence[str]) -> str:
    """The error for fewer than two remaining columns."""
    why = "".join(f" {note[:-1]};" for note in dull)
    number = len(schema.columns) - len(dull)
    return f"table has {'one column' if number == 1 else 'no column'} to join;{why} expected at least two variables."


def _in_memory(samples: Sequence[Any], missing: str) -> None:
    if any(map(comes_in_pieces, samples)):
        option = "kinds=" if missing == "raise" else f"missing={missing!r}"
        raise ParameterError(
            f"{option} is for samples in memory: handle it while you read the pieces, or pass all rows, such as "
            "reader.read_all(), lazy.collect() or collection.compute()."
        )
