"""Tables: named columns from pandas, polars, dictionaries, structured or plain arrays."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import (
    as_array,
    check_lengths,
    check_numeric,
    check_rows,
    check_size,
    is_categorical,
    plain,
    unfilled,
)
from meanmap.core.containers import (
    columns_of_frame,
    handed_over,
    is_frame,
    is_rotations,
    is_sparse,
    is_stream,
    names_of_frame,
    refuse_unread,
)
from meanmap.core.errors import ColumnError, KindError, ShapeError
from meanmap.core.exact import MOST_EXACT, check_exact
from meanmap.core.extras import optional
from meanmap.core.foreign import count_missing, in_cells, readable
from meanmap.core.held import holds_labels, holds_truth, holds_whole, is_plain
from meanmap.core.language import a_type, counted, in_python
from meanmap.core.meant import no_column, refuse_doubled, respelled
from meanmap.core.moments import in_one_unit, is_column_of_times, seconds
from meanmap.core.objects import check_cells
from meanmap.core.tables.indices import check_order
from meanmap.core.tables.kinds import advice
from meanmap.core.texts import as_labels
from meanmap.core.types import Array, Data
from meanmap.core.values import Value

__all__ = [
    "Table",
    "as_declared",
    "complete_part",
    "named_columns",
    "raw_columns",
    "read_column",
    "refuse_labels",
    "single_columns",
    "table_in",
    "values_of",
]

SHOWN = {"U": " [labels]", "b": " [true or false]", "M": " [times]", "m": " [durations]"}


@jax.tree_util.register_pytree_node_class
@dataclass(frozen=True, eq=False, repr=False)
class Table(Value):
    """Named columns of equal length, each of numbers (`(n,)` or a block `(n, d)`), labels, truth values, or times.

    `Table.of` reads anything that looks like a table. Structure learning and graphical models work on tables, as do
    kernels on mixed columns. The dtype determines the kind of a column: float64, text, bool, datetime64 or timedelta64;
    integers beyond 2^53, such as long ids, stay integers, and are refused if a kernel needs numbers and digits would be
    lost. A pytree that keeps the order of its columns (JAX would sort those of a dictionary).

    Examples
    --------
    >>> table = Table.of({"height": [1.6, 1.8], "colour": ["red", "blue"]})
    >>> table
    Table(2 rows: height, colour [labels])
    >>> table.matrix(["height"]).tolist()
    [[1.6], [1.8]]
    """

    columns: dict[str, Any]

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        """The columns, and their names in order."""
        return tuple(self.columns.values()), self.names

    @classmethod
    def tree_unflatten(cls, names: tuple[str, ...], columns: tuple[Any, ...]) -> "Table":
        """The inverse of `tree_flatten`."""
        return cls(dict(zip(names, columns, strict=True)))

    @classmethod
    def of(cls, data: Data, argument: str = "table", only: Sequence[str | int] | None = None) -> "Table":
        """Read `data`: a DataFrame (pandas or polars), a mapping of columns, a structured array, or an (n, d) array,
        whose columns are then called x0, x1, ...; (n,) is one column.

        With `only`, names or numbers of columns, the others are not read.
        """
        if isinstance(data, Table):
            return data if only is None else data.select(only, argument)
        columns = raw_columns(data, argument)
        if only is not None:
            names = list(columns)
            columns = {names[i]: columns[names[i]] for i in (_position(name, names, argument) for name in only)}
        read = {name: read_column(column, f"{argument}[{name!r}]") for name, column in columns.items()}
        check_rows(check_lengths({name: len(column) for name, column in read.items()}, argument), argument)
        return cls(read)

    @classmethod
    def with_names(cls, data: Data, names: Sequence[str], argument: str = "table") -> "Table":
        """The columns of these names, or all columns of data without names."""
        return cls.of(data, argument, only=names if Table.looks_like_one(data) else None)

    @staticmethod
    def looks_like_one(data: Data) -> bool:
        """Whether `data` has named columns."""
        if isinstance(data, np.ndarray) or is_sparse(data):  # sparse ones of one format are dictionaries
            return bool(_fields(data))
        return isinstance(data, Table | Mapping) or is_frame(data) or is_stream(data)

    @staticmethod
    def has_names(data: Any) -> bool:
        """Whether columns are identified by name, not by position as in arrays and in frames numbered from 0."""
        if not Table.looks_like_one(data):
            return False
        if isinstance(data, np.ndarray | Mapping) or is_stream(data):
            return True
        names = list(data.names) if isinstance(data, Table) else names_of_frame(data)
        return names != list(range(len(names))) and names != [f"x{i}" for i in range(len(names))]

    @staticmethod
    def names_in(data: Data, argument: str = "table") -> list[str]:
        """The names of the columns in `data`, without reading these."""
        return _split(data, argument)[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(self.columns)

    def is_real(self, name: str) -> bool:
        """Whether a column holds numbers or times, rather than labels or truth values."""
        dtype = self.columns[name].dtype
        return dtype.kind in "fiumM" or jnp.issubdtype(dtype, jnp.floating)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> Any:
        return self.select([name]).columns[name]

    def select(self, names: Sequence[str | int], argument: str = "table") -> "Table":
        """The table with only these columns, by name or number, in this order."""
        chosen = [self.names[_position(name, self.names, argument)] for name in names]
        return Table({name: self.columns[name] for name in chosen})

    def matrix(self, names: Sequence[str] | None = None, argument: str = "table") -> Any:
        """The numeric columns side by side, (n, d); a column of labels is an error that names it.

        Times are seconds, and truth values 0 and 1.
        """
        chosen = self if names is None else self.select(names, argument)
        refuse_labels(chosen, argument, "use mm.default_kernel(table), which handles mixed columns")
        for name, column in chosen.columns.items():
            check_exact(column, f"{argument}[{name!r}]", name)
        numbers = [
            column if isinstance(column, jax.Array) else seconds(column, f"{argument}[{name!r}]")
            for name, column in chosen.columns.items()
        ]
        blocks = [column[:, None] if column.ndim == 1 else column for column in numbers]
        followed = any(isinstance(block, jax.Array) for block in blocks)
        return (jnp if followed else np).concatenate(blocks, axis=1)

    def to_pandas(self) -> Any:
        """The columns as a pandas DataFrame; those of a block are called block[0], block[1], ..."""
        with optional("a pandas frame"):
            import pandas

        return pandas.DataFrame(single_columns(self.columns))

    def to_polars(self) -> Any:
        """The columns as a polars DataFrame; those of a block are called block[0], block[1], ..."""
        with optional("a polars frame"):
            import polars

        return polars.DataFrame(single_columns(self.columns))

    def __repr__(self) -> str:
        def show(name):
            column = self.columns[name]
            kind = SHOWN.get(column.dtype.kind, "")
            return name + kind + (f" [{column.shape[1]} wide]" if column.ndim > 1 else "")

        return f"Table({len(self)} rows: {', '.join(show(name) for name in self.names)})"


def _position(name: str | int, names: Sequence[str], argument: str) -> int:
    """Where a column is, by name or by number."""
    name = respelled(name, names) if isinstance(name, str) else name
    if isinstance(name, str) and name not in names:
        raise no_column(argument, name, names)
    position = names.index(name) if isinstance(name, str) else name
    if position >= len(names):
        raise ColumnError(f"{argument} has no column {position}; it has {len(names)}, from 0.")
    return position


def refuse_labels(table: Table, argument: str, otherwise: str) -> None:
    """Refuse columns of labels where numbers are needed, with advice on what to do, or `otherwise`."""
    labels = [name for name in table.names if table.columns[name].dtype.kind in "SUOT"]
    if labels:
        hints = "".join(advice(table.columns[name], f"{argument}[{name!r}]") for name in labels)
        raise ColumnError(
            f"{argument} has columns that are not numeric: {', '.join(map(repr, labels))}. {hints}Leave them out, or "
            f"{otherwise}."
        )


def single_columns(columns: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Columns of one number or label a row: those of a block are called block[0], block[1], ..."""
    found = {}
    for name, column in columns.items():
        values = np.asarray(column)
        if values.ndim == 1:
            found[name] = values
        elif values.ndim == 2:
            found |= {f"{name}[{j}]": values[:, j] for j in range(values.shape[1])}
    return found


def table_in(data: Data, argument: str = "table") -> Table | None:
    """The table in data whose columns have names; None if they have none."""
    return Table.of(data, argument) if Table.looks_like_one(data) else None


def complete_part(data: Data, argument: str = "table") -> Table | None:
    """Of a table whose columns have names those without missing values; None if there are none."""
    if not Table.looks_like_one(data):
        return None
    complete = [at for at, column in enumerate(raw_columns(data, argument).values()) if not count_missing(column)]
    return Table.of(data, argument, only=complete) if complete else None


def values_of(data: Data, name: str) -> np.ndarray | None:
    """A sample of numbers, text, truth values or times as an array; None for other things."""
    if is_sparse(data) or is_rotations(data) or not hasattr(data, "__len__"):
        return None
    try:
        array = plain(data, name)
    except ShapeError:  # bags of different lengths, say
        return None
    array = as_labels(array, name) if is_categorical(data) else array
    return array if array.ndim in (1, 2) and array.dtype.kind in "fiubSUTmM" else None


def named_columns(data: Data, argument: str) -> dict[str, Any]:
    """The original columns of a table by name; empty if they have no names."""
    return raw_columns(data, argument) if Table.looks_like_one(data) else {}


def raw_columns(data: Data, argument: str) -> dict[str, Any]:
    """The original columns of anything that looks like a table, by unique name."""
    names, columns = _split(data, argument)
    refuse_doubled(names, argument)
    if not names:
        raise ColumnError(f"{argument} has no columns.")
    return dict(zip(names, columns, strict=True))


def _fields(data: Data) -> tuple[str, ...]:
    """The names of the fields of a structured array; none for anything else."""
    return (data.dtype.names or ()) if isinstance(data, np.ndarray) else ()


def _split(data: Any, argument: str) -> tuple[list[str], list[Any]]:
    data = handed_over(data)
    refuse_unread(data, argument)
    if isinstance(data, Table):
        return list(data.columns), list(data.columns.values())
    if isinstance(data, Mapping):
        _refuse_nested(data, argument)
        check_order(list(data.values()), [f"{argument}[{name!r}]" for name in data])
        return _readable([str(name) for name in data], list(data.values()), argument)
    if names := _fields(data):
        return list(names), [data[name] for name in names]
    if is_frame(data):
        return _readable([str(name) for name in names_of_frame(data)], columns_of_frame(data), argument)
    if is_sparse(data):
        raise KindError(f"{argument} is a sparse matrix, which has no named columns: pass it to a kernel directly.")
    if is_column_of_times(data):
        return _readable(["x0"], [data], argument)
    array = data if isinstance(data, jax.Array) else _matrix(data, argument)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2:
        expected = "a table: (n, d), a DataFrame or a dict of columns"
        raise ShapeError(f"{argument} has shape {array.shape}; expected {expected}.")
    return [f"x{i}" for i in range(array.shape[1])], [array[:, i] for i in range(array.shape[1])]


def _refuse_nested(columns: Mapping[Any, Any], argument: str) -> None:
    """Refuse a dict or a set in place of a column, as in JSON by columns and rows, or in a dict of tables."""
    for name, column in columns.items():
        if not isinstance(column, Mapping | Set) or is_sparse(column):
            continue
        whole = "data" if " " in argument else argument
        where, first = f"{whole}[{name!r}]", next(iter(column.values()), 0) if isinstance(column, Mapping) else 0
        if isinstance(column, Set):
            typed = f"list({where}), if the order of rows does not matter"
        elif hasattr(first, "__len__") and not isinstance(first, str | bytes):
            typed = f"{where}, if that is the table"
        else:
            typed = f"pandas.DataFrame({whole})"
        raise KindError(
            f"{argument}[{name!r}] is {a_type(column)}; expected one column, as a list or an array: pass {typed}."
        )


def _readable(names: Sequence[str], columns: Sequence[Any], argument: str) -> tuple[list[str], list[Any]]:
    for name, each in zip(names, columns, strict=True):
        refuse_unread(each, f"{argument}[{name!r}]")
    pairs = zip(names, columns, strict=True)
    return list(names), [c if is_plain(c) else in_cells(readable(c, f"{argument}[{name!r}]")) for name, c in pairs]


def _matrix(data: Data, argument: str) -> np.ndarray:
    """A plain array: of numbers, of text, of truth values or of times."""
    words = np.zeros(0) if data is None or isinstance(data, str | bytes) else plain(data, argument)
    words = as_labels(words, argument) if is_categorical(data) else words
    return words if words.dtype.kind in "SUTbmM" else as_array(data, argument)


def read_column(column: Data, argument: str) -> Any:
    """One column as numbers (float64, or a JAX array unchanged), text, truth values or times."""
    if isinstance(column, Table | Mapping) or is_frame(column):
        raise KindError(
            f"{argument} is a table; expected one column, or an array (n, d) for a vector, whose columns have no "
            "names: pass its to_numpy()."
        )
    if isinstance(column, jax.Array):
        check_numeric(column, argument)
        check_size(column, argument)
        _check_axes(column, argument)
        return column
    array = plain(column, argument)
    missing = count_missing(column)
    if missing:
        raise unfilled(f"{argument} has {counted(missing, 'missing value')}.")
    own = getattr(getattr(column, "dtype", None), "kind", "O")
    if array.dtype.kind == "O" and own in "fiub":
        array = np.asarray(column, dtype={"b": bool, "i": np.int64, "u": np.uint64}.get(own, np.float64))  # of pandas
    if holds_labels(array) or is_categorical(column):
        return _read_labels(array, argument, str(getattr(column, "dtype", "")).lower())
    _check_axes(array, argument)
    if array.ndim == 1 and array.dtype.kind in "bmM":
        return array.astype(bool) if holds_truth(array) else in_one_unit(array, argument)
    array = as_array(array, argument)
    check_size(array, argument)
    return as_declared(array)


def as_declared(array: np.ndarray) -> np.ndarray:
    """Numbers as float64, but integers that it cannot represent, such as long ids, unchanged."""
    floats = array.astype(np.float64)
    return array if holds_whole(array) and (np.abs(floats) >= MOST_EXACT).any() else floats


def _check_axes(array: Array, argument: str) -> None:
    if array.ndim not in (1, 2):
        raise ShapeError(f"{argument} has shape {array.shape}; expected (n,) or a block (n, d).")


def _read_labels(array: np.ndarray, argument: str, declared: str) -> np.ndarray:
    if array.ndim != 1:
        raise ShapeError(f"{argument} has shape {array.shape}; expected one label per row.")
    if array.dtype.kind == "O":
        if all(isinstance(v, bool | np.bool_) for v in array):
            return array.astype(bool)
        _check_labels(array, argument, declared)
    return as_labels(array, argument)


def _check_labels(array: np.ndarray, argument: str, declared: str) -> None:
    """Refuse objects that are no labels: lists and other things, and numbers unless they were declared as labels."""
    strange = next((v for v in array if not isinstance(v, str | bytes | bool | int | float | np.generic)), None)
    if isinstance(strange, list | tuple | np.ndarray):
        raise ShapeError(
            f"{argument} is ragged: its cells are lists, such as {np.asarray(strange).tolist()}; expected one value in "
            "each row, or vectors of numbers of one length."
        )
    check_cells(array, argument)
    if declared in ("", "object") and not any(isinstance(v, str | bytes) for v in array):
        # Long ids would become equal as floats.
        whole = all(isinstance(v, int | np.integer) for v in array)
        kind = "int" if whole and any(abs(int(v)) >= MOST_EXACT for v in array) else "float"
        raise KindError(
            f"{argument} holds numbers as Python objects (dtype object). "
            f"Convert it first{in_python(f', for example with .astype({kind})')}."
        )
