"""Tables: named columns from pandas, polars, dictionaries, structured or plain arrays."""

from collections.abc import Iterator, Mapping, Sequence
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
    count_missing,
    in_one_unit,
    is_categorical,
    plain,
    seconds,
)
from meanmap.core.errors import ColumnError, KindError, NonFiniteError, ShapeError
from meanmap.core.points import is_sparse, refuse_unread
from meanmap.core.tables.kinds import advice
from meanmap.core.types import Array, Data

__all__ = ["Table", "raw_columns", "refuse_labels"]

SHOWN = {"U": " [labels]", "b": " [true or false]", "M": " [times]", "m": " [durations]"}


@jax.tree_util.register_pytree_node_class
@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Named columns of equal length, each of numbers (`(n,)` or a block `(n, d)`), labels, truth values, or times.

    Read from anything that looks like a table with [`Table.of`][]; it is what structure learning and graphical models
    take, and what kernels on mixed columns read. What a column is its dtype says: float64, text, bool, datetime64 or
    timedelta64. A pytree that keeps the order of its columns (JAX would sort those of a dictionary).

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
        """What `tree_flatten` took apart."""
        return cls(dict(zip(names, columns, strict=True)))

    @classmethod
    def of(cls, data: Data, argument: str = "table", only: Sequence[str | int] | None = None) -> "Table":
        """Read `data`: a DataFrame (pandas or polars), a mapping of columns, a structured array, or an (n, d) array,
        whose columns are then called x0, x1, ...; (n,) is one column.

        With `only`, names or numbers of columns, the others are not even looked at.
        """
        if isinstance(data, Table):
            return data if only is None else data.select(only, argument)
        names, columns = raw_columns(data, argument)
        if only is not None:
            chosen = [_position(name, names, argument) for name in only]
            names, columns = [names[i] for i in chosen], [columns[i] for i in chosen]
        read = {
            name: _read_column(column, f"{argument}[{name!r}]") for name, column in zip(names, columns, strict=True)
        }
        check_rows(check_lengths({name: len(column) for name, column in read.items()}, argument), argument)
        return cls(read)

    @staticmethod
    def looks_like_one(data: Data) -> bool:
        """Whether `data` has named columns."""
        return isinstance(data, Table | Mapping) or bool(_fields(data)) or _is_frame(data)

    @staticmethod
    def has_names(data: Data) -> bool:
        """Whether columns are known by name, not by position as those of arrays and of frames numbered from 0."""
        if not Table.looks_like_one(data) or isinstance(data, np.ndarray | Mapping):
            return Table.looks_like_one(data)
        names = list(data.names if isinstance(data, Table) else getattr(data, "column_names", data.columns))
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
        """Whether a column holds numbers or times; otherwise labels, as truth values are."""
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
        numbers = [_as_numbers(column) for column in chosen.columns.values()]
        blocks = [column[:, None] if column.ndim == 1 else column for column in numbers]
        followed = any(isinstance(block, jax.Array) for block in blocks)
        return (jnp if followed else np).concatenate(blocks, axis=1)

    def to_pandas(self) -> Any:
        """The columns as a pandas DataFrame; those of a block are called block[0], block[1], ..."""
        import pandas

        return pandas.DataFrame(self._single())

    def to_polars(self) -> Any:
        """The columns as a polars DataFrame; those of a block are called block[0], block[1], ..."""
        import polars

        return polars.DataFrame(self._single())

    def _single(self) -> dict[str, np.ndarray]:
        found = {}
        for name, column in self.columns.items():
            values = np.asarray(column)
            if values.ndim == 1:
                found[name] = values
            else:
                found.update({f"{name}[{j}]": values[:, j] for j in range(values.shape[1])})
        return found

    def __repr__(self) -> str:
        def show(name):
            column = self.columns[name]
            kind = SHOWN.get(column.dtype.kind, "")
            return name + kind + (f" [{column.shape[1]} wide]" if column.ndim > 1 else "")

        return f"Table({len(self)} rows: {', '.join(show(name) for name in self.names)})"


def _position(name: str | int, names: Sequence[str], argument: str) -> int:
    """Where a column is, by name or by number."""
    if isinstance(name, str) and name not in names:
        raise ColumnError(f"{argument} has no column {name!r}; it has {', '.join(map(repr, names))}.")
    position = names.index(name) if isinstance(name, str) else name
    if position >= len(names):
        raise ColumnError(f"{argument} has no column {position}; it has {len(names)}, from 0.")
    return position


def _is_frame(data: Data) -> bool:
    """Whether `data` looks like a pandas or polars DataFrame (told without importing either)."""
    return hasattr(data, "columns") and hasattr(data, "__getitem__") and hasattr(data, "shape")


def refuse_labels(table: Table, argument: str, otherwise: str) -> None:
    """Refuse columns of labels where numbers are needed, and say what to do about them, or `otherwise`."""
    labels = [name for name in table.names if table.columns[name].dtype.kind in "SUOT"]
    if labels:
        hints = "".join(advice(table.columns[name], f"{argument}[{name!r}]") for name in labels)
        raise ColumnError(
            f"{argument} has columns that are not numeric: {', '.join(map(repr, labels))}. {hints}Leave them out, or "
            f"{otherwise}."
        )


def raw_columns(data: Data, argument: str) -> tuple[list[str], list[Any]]:
    """Names, each once, and columns as they came, of anything that looks like a table."""
    names, columns = _split(data, argument)
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ColumnError(f"{argument} has more than one column called {doubled[0]!r}. Rename one of them.")
    if not names:
        raise ColumnError(f"{argument} has no columns.")
    return names, columns


def _fields(data: Data) -> tuple[str, ...]:
    """The names of the fields of a structured array; none of anything else."""
    return (data.dtype.names or ()) if isinstance(data, np.ndarray) else ()


def _split(data: Data, argument: str) -> tuple[list[str], list[Any]]:
    refuse_unread(data, argument)
    if isinstance(data, Table | Mapping):
        columns = data.columns if isinstance(data, Table) else data
        return [str(name) for name in columns], list(columns.values())
    if names := _fields(data):
        return list(names), [data[name] for name in names]
    if _is_frame(data):
        frame: Any = data
        if hasattr(frame, "column_names"):  # of Arrow, whose `columns` are not names
            return list(frame.column_names), [np.asarray(frame.column(name)) for name in frame.column_names]
        names = list(frame.columns)
        columns = [frame.iloc[:, i] for i in range(len(names))] if hasattr(frame, "iloc") else [frame[n] for n in names]
        return [str(name) for name in names], columns
    if is_sparse(data):
        raise KindError(f"{argument} is a sparse matrix, which has no named columns: pass it to a kernel directly.")
    array = data if isinstance(data, jax.Array) else _matrix(data, argument)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2:
        raise ShapeError(
            f"{argument} has shape {array.shape}; expected a table: (n, d), a DataFrame or a dict of columns."
        )
    return [f"x{i}" for i in range(array.shape[1])], [array[:, i] for i in range(array.shape[1])]


def _matrix(data: Data, argument: str) -> np.ndarray:
    """A plain array: of numbers, of text, of truth values or of times."""
    words = np.zeros(0) if data is None or isinstance(data, str | bytes) else plain(data, argument)
    words = words.astype(str) if is_categorical(data) else words
    return words if words.dtype.kind in "SUTbmM" else as_array(data, argument)


def _as_numbers(column: Data) -> Any:
    """A column of numbers as it is, times as seconds, truth values as 0 and 1."""
    if isinstance(column, jax.Array):
        return column
    return seconds(column) if column.dtype.kind in "mM" else column.astype(np.float64, copy=False)


def _read_column(column: Data, argument: str) -> Any:
    """One column as numbers (float64, or a JAX array as it is), text, truth values or times."""
    if isinstance(column, Table | Mapping) or _is_frame(column):
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
        raise NonFiniteError(
            f"{argument} has {missing} missing value(s). Drop those rows or fill them in first; tests and monitors "
            "leave them out with missing='drop'."
        )
    declared = str(getattr(column, "dtype", "")).lower()
    own = getattr(getattr(column, "dtype", None), "kind", "O")
    if array.dtype.kind == "O" and own in "fiub":
        array = np.asarray(column, dtype=bool if own == "b" else np.float64)  # pandas' nullable ones
    if array.dtype.kind in "SUOT" or is_categorical(column):
        return _read_labels(array, argument, declared)
    _check_axes(array, argument)
    if array.ndim == 1 and array.dtype.kind in "bmM":
        return array.astype(bool) if array.dtype.kind == "b" else in_one_unit(array, argument)
    array = as_array(array, argument)
    array = array.astype(np.float64)
    check_size(array, argument)
    return array


def _check_axes(array: Array, argument: str) -> None:
    if array.ndim not in (1, 2):
        raise ShapeError(f"{argument} has shape {array.shape}; expected (n,) or a block (n, d).")


def _read_labels(array: np.ndarray, argument: str, declared: str) -> np.ndarray:
    if array.ndim != 1:
        raise ShapeError(f"{argument} has shape {array.shape}; expected one label per row.")
    if array.dtype.kind == "O" and all(isinstance(v, bool | np.bool_) for v in array):
        return array.astype(bool)
    strange = next((v for v in array if not isinstance(v, str | bytes | bool | int | float | np.generic)), None)
    if strange is not None:
        raise KindError(
            f"{argument} holds Python objects such as {strange!r} ({type(strange).__name__}); "
            "expected numbers or labels."
        )
    if array.dtype.kind == "O" and declared in ("", "object") and not any(isinstance(v, str | bytes) for v in array):
        raise KindError(
            f"{argument} holds numbers as Python objects (dtype object). "
            "Convert it first, for example with .astype(float)."
        )
    return array.astype(str)
