"""What the columns of a table mean: decided once from all samples together, and checked against what comes later."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.arrays import seconds
from meanmap.core.errors import ColumnError, KindError, ParameterError, ShapeError
from meanmap.core.kinds import FAMILIES, advice, as_kind, described, family_of, wanted_kind
from meanmap.core.missing import read_present
from meanmap.core.table import Table
from meanmap.core.units import robust_scales

__all__ = ["Column", "Schema", "aligned", "check_alike"]

# So many labels are remembered, to tell later ones that were never seen.
MOST_LABELS = 1000
# A number is far outside if it is this many times the range of all numbers seen away from them.
FAR = 10.0
# Labels of this many rows or more of which nearly every row has its own are called text.
LEAST_TEXTS, ALL_DIFFERENT = 20, 0.9
# Labels that are printed.
SHOWN = 5


@dataclass(frozen=True)
class Column:
    """What is known of one column.

    Attributes
    ----------
    name : str
    kind : str
        "number", "count" (whole numbers from 0), "vector" (a block of numbers), "label", "text" (nearly
        every row has its own), "boolean", "time", "duration"; or what it was told to be.
    missing, distinct : int
        Missing values, and distinct ones among the others.
    centre, scale : float
        The median, and the median distance between two rows, of numbers; in seconds, of times. NaN for labels.
    low, high : float
        The least and the largest number.
    labels : tuple of str
        All labels, where they are at most 1000.
    """

    name: str
    kind: str
    missing: int
    distinct: int
    centre: float = np.nan
    scale: float = np.nan
    low: float = np.nan
    high: float = np.nan
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Schema:
    """The columns of a table, in order: their kinds, units, extremes, missing values and labels.

    Made by [`Schema.of`][]. Every test of several samples and every monitor makes one for itself; make your own to look
    at it, or to say that a column means something else.

    Attributes
    ----------
    columns : tuple of Column
    rows : int
        How many rows it was made from.
    named : bool
        Whether the columns have names; those of plain arrays are known by position.
    kinds : tuple of (column, kind)
        What columns were told to be.

    Notes
    -----
    Kinds are those of the data types: numbers are numbers, however few values they take; text, categories and truth
    values are labels; dates and times are their own kind, compared in seconds. Only `kinds=` makes labels of numbers.

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
    kinds: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, *samples: Any, kinds: Mapping[str, str] | None = None, names: Sequence[str] = ()) -> "Schema":
        """Read one table, or several samples of the same columns together.

        Parameters
        ----------
        samples : tables
            DataFrames, mappings of columns, structured arrays or matrices. Columns are matched by name, those of plain
            matrices by position. Missing values are counted.
        kinds : mapping of column to kind, optional
            What a column means where its data type does not say: "number", "label", "time", "angle" (radians), or the
            cycle in which a time recurs, "time of day", "time of week", "time of year".
        names : sequence of str
            What to call the samples in errors; by default "table", or "samples[0]", "samples[1]", ...

        Raises
        ------
        KindError
            Where a column holds numbers in one sample and text in another, say.
        ColumnError
            Where a sample lacks a column.
        """
        if not samples:
            raise ParameterError("Schema.of() has no sample; expected at least one table.")
        names = names or ([f"samples[{i}]" for i in range(len(samples))] if len(samples) > 1 else ["table"])
        chosen = {name: wanted_kind(kind) for name, kind in (kinds or {}).items()}
        read = [read_present(sample, name) for sample, name in zip(samples, names, strict=True)]
        tables, named = aligned([table for table, _ in read], samples, names)
        order = tables[0].names
        unknown = [name for name in chosen if name not in order]
        if unknown:
            raise ColumnError(f"kinds names {unknown[0]!r}; {names[0]} has {', '.join(map(repr, order))}.")
        missing = np.zeros(len(order), int)
        for table, there in read:
            places = [table.names.index(each) for each in order] if named else slice(None)
            missing += (~there).sum(axis=0)[places]
        tables = [_converted(table, chosen, name) for table, name in zip(tables, names, strict=True)]
        columns = []
        for at, name in enumerate(order):
            parts = [table.columns[name] for table in tables]
            check_alike(parts, name, names)
            columns.append(_column(name, parts, int(missing[at]), chosen.get(name)))
        return cls(tuple(columns), sum(len(there) for _, there in read), named, tuple(chosen.items()))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    def __getitem__(self, name: str) -> Column:
        found = [column for column in self.columns if column.name == name]
        if not found:
            raise ColumnError(f"the schema has no column {name!r}; it has {', '.join(map(repr, self.names))}.")
        return found[0]

    def read(self, data: Any, argument: str = "data") -> Table:
        """`data` as a table with these columns in this order; other columns are left out.

        A column that is missing here, or is of another kind, is an error. See [`Schema.notes`][] for what is odd.

        Examples
        --------
        >>> schema = Schema.of({"b": [1.0, 2.0], "a": ["u", "v"]})
        >>> schema.read({"c": [0], "a": ["v"], "b": [5]})
        Table(1 rows: b, a [labels])
        """
        table = Table.of(data, argument)
        if Table.has_names(data) != self.named:
            raise _unnamed(("what was read before", self.names, self.named), (argument, table.names, not self.named))
        table = table.select(self.names, argument) if self.named else _renamed(table, self.names, argument)
        table = _converted(table, dict(self.kinds), argument)
        for column in self.columns:
            part = table.columns[column.name]
            where = f"{argument}[{column.name!r}]"
            block = part.ndim > 1 and column.name not in dict(self.kinds)
            if family_of(part) != FAMILIES[column.kind] or block != (column.kind == "vector"):
                raise KindError(
                    f"{where} holds {described(part)}; expected a {column.kind} column, as before. "
                    f"{advice(part, where) if part.dtype.kind == 'U' else ''}Convert it first."
                )
        return table

    def notes(self, table: Table, argument: str = "data") -> tuple[str, ...]:
        """What is odd about a table that was read: labels never seen, and numbers far outside."""
        found = []
        for column in self.columns:
            values, where = np.asarray(table.columns[column.name]), f"{argument}[{column.name!r}]"
            if column.labels and values.dtype.kind == "U":
                new = sorted(set(np.unique(values).tolist()) - set(column.labels))
                if new:
                    found.append(f"{where} has {_count(len(new), 'label')} never seen before, such as {new[0]!r}.")
            elif values.dtype.kind in "fmM" and values.ndim == 1 and np.isfinite(column.low):
                numbers = values if values.dtype.kind == "f" else seconds(values)
                reach = FAR * (column.high - column.low)
                far = (numbers < column.low - reach) | (numbers > column.high + reach)
                if far.any() and reach > 0:
                    found.append(
                        f"{where} has {_count(int(far.sum()), 'value')} far outside {column.low:g} to "
                        f"{column.high:g}, such as {numbers[far][0]:g}."
                    )
        return tuple(found)

    def __str__(self) -> str:
        wide = max((len(column.name) for column in self.columns), default=0)
        broad = max((len(column.kind) for column in self.columns), default=0)
        lines = [f"  {c.name:<{wide}}  {c.kind:<{broad}}  {_told(c)}".rstrip() for c in self.columns]
        return "\n".join([f"{_count(self.rows, 'row')}, {_count(len(self.columns), 'column')}", *lines])

    __repr__ = __str__


def check_alike(parts: Sequence[Any], column: str, names: Sequence[str], option: str = "") -> None:
    """Refuse a column that holds numbers in one sample and text in another, say: nothing in them could be equal.

    `option` is what makes labels of both, where that is not a call of Python's.
    """
    where = [f"{name}[{column!r}]" if column else name for name in names]
    for part, here in zip(parts[1:], where[1:], strict=True):
        if family_of(parts[0]) == family_of(part) and parts[0].shape[1:] == part.shape[1:]:
            continue
        text = [(p, w) for p, w in ((parts[0], where[0]), (part, here)) if p.dtype.kind == "U"]
        override = f"schema = mm.Schema.of({names[0]}, {names[1]}, kinds={{{column!r}: 'label'}})"
        override = option or (f"{override}, and pass schema.read({names[0]}) and so on" if column else "text in both")
        raise KindError(
            f"{where[0]} holds {described(parts[0])}, and {here} holds {described(part)}: they cannot be compared. "
            f"{advice(*text[0]) if text else ''}If these are labels in both, say so: {override}."
        )


def aligned(tables: Sequence[Table], samples: Sequence[Any], names: Sequence[str]) -> tuple[list[Table], bool]:
    """Tables read from `samples` with the columns of the first, in its order, and whether these have names."""
    order, named = tables[0].names, Table.has_names(samples[0])
    found = [tables[0]]
    for table, sample, name in zip(tables[1:], samples[1:], names[1:], strict=True):
        if Table.has_names(sample) != named:
            raise _unnamed((names[0], order, named), (name, table.names, not named))
        alone = [each for each in (*order, *table.names) if (each in order) != (each in table.names)]
        if named and alone:
            has, lacks, other = (names[0], name, table.names) if alone[0] in order else (name, names[0], order)
            raise ColumnError(
                f"{lacks} has no column {alone[0]!r}, which {has} has; it has {', '.join(map(repr, other))}."
            )
        found.append(table.select(order, name) if named else _renamed(table, order, name))
    return found, named


def _renamed(table: Table, order: Sequence[str], argument: str) -> Table:
    """Columns without names, matched by position."""
    if len(table.names) != len(order):
        raise ShapeError(f"{argument} has {len(table.names)} columns; expected {len(order)}, as in the first sample.")
    return Table(dict(zip(order, table.columns.values(), strict=True)))


def _unnamed(*sides: tuple[str, Sequence[str], bool]) -> ColumnError:
    """Columns with names cannot be matched to columns without."""
    (with_names, columns, _), (without, _, _) = sorted(sides, key=lambda side: not side[2])
    return ColumnError(
        f"{with_names} has columns with names ({', '.join(map(repr, columns))}) and {without} is an array, whose "
        f"columns have none: pass a table with the same names as {without}, or {with_names}.to_numpy()."
    )


def _converted(table: Table, kinds: Mapping[str, str], argument: str) -> Table:
    return Table(
        {
            name: as_kind(column, kinds[name], f"{argument}[{name!r}]") if name in kinds else column
            for name, column in table.columns.items()
        }
    )


def _column(name: str, parts: Sequence[Any], missing: int, told: str | None) -> Column:
    """What is known of a column from its values in all samples, the missing ones left out."""
    values = np.concatenate([np.asarray(part) for part in parts])
    if values.ndim > 1:
        return Column(name, told or "vector", missing, len(np.unique(values, axis=0)))
    distinct = np.unique(values)
    if values.dtype.kind in "Ub":
        kind = "boolean" if values.dtype.kind == "b" else "text" if _is_text(len(distinct), len(values)) else "label"
        labels = tuple(map(str, distinct.tolist())) if len(distinct) <= MOST_LABELS else ()
        return Column(name, told or kind, missing, len(distinct), labels=labels)
    numbers = seconds(values) if values.dtype.kind in "mM" else np.asarray(values, np.float64)
    kind = {"M": "time", "m": "duration"}.get(values.dtype.kind, "")
    kind = kind or ("count" if (numbers >= 0).all() and (numbers == np.round(numbers)).all() else "number")
    scale = float(robust_scales(numbers[:, None])[0])
    low, centre, high = (float(value) for value in (numbers.min(), np.median(numbers), numbers.max()))
    return Column(name, told or kind, missing, len(distinct), centre, scale, low, high)


def _is_text(distinct: int, rows: int) -> bool:
    return rows >= LEAST_TEXTS and distinct > ALL_DIFFERENT * rows


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _told(column: Column) -> str:
    """One line about a column's values."""
    absent = f", {column.missing} missing" if column.missing else ""
    if np.isfinite(column.low):
        show = _moment if column.kind == "time" else "{:.6g}".format
        unit = " s" if column.kind in ("time", "duration") else ""
        span = f"{show(column.low)} to {show(column.high)}, median {show(column.centre)}"
        return f"{span}, scale {column.scale:.6g}{unit}{absent}"
    some = ", ".join(column.labels[:SHOWN]) + (", ..." if len(column.labels) > SHOWN else "")
    return f"{_count(column.distinct, 'value')}{': ' if some else ''}{some}{absent}"


def _moment(second: float) -> str:
    return str(np.datetime64(round(second), "s"))
