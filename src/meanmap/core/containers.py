"""Containers of other libraries, recognised without importing them; those whose rows are not in memory are refused."""

from typing import Any

from meanmap.core.errors import KindError
from meanmap.core.language import a_type
from meanmap.core.types import Data

__all__ = [
    "columns_of_frame",
    "has_series",
    "is_arrow",
    "is_batches",
    "is_dask",
    "is_dataset",
    "is_frame",
    "is_lazy",
    "is_pandas",
    "is_polars",
    "is_rotations",
    "is_sparse",
    "names_of_frame",
    "no_frame",
    "refuse_sparse",
    "refuse_unread",
]


def is_pandas(value: object) -> bool:
    """Whether rows are taken as in pandas: a frame or a column."""
    return hasattr(value, "iloc")


def is_polars(frame: object) -> bool:
    """Whether columns are replaced as in polars."""
    return hasattr(frame, "with_columns")


def is_arrow(frame: object) -> bool:
    """Whether it is a table of Arrow, whose `columns` are not names."""
    return hasattr(frame, "column_names")


def is_frame(data: Data) -> bool:
    """Whether data are a frame of any of these."""
    # The names of the columns of a lazy frame are costly, as polars warns.
    return not is_lazy(data) and hasattr(data, "columns") and hasattr(data, "__getitem__") and hasattr(data, "shape")


def names_of_frame(frame: Any) -> list[Any]:
    """The names of the columns of a frame, as they are."""
    return list(frame.column_names if is_arrow(frame) else frame.columns)


def columns_of_frame(frame: Any) -> list[Any]:
    """The columns of a frame, in the order of their names, of which two may be the same in pandas."""
    if is_pandas(frame):
        return [frame.iloc[:, i] for i in range(len(frame.columns))]
    return [frame.column(name) if is_arrow(frame) else frame[name] for name in names_of_frame(frame)]


def has_series(value: object) -> bool:
    """Whether a value is a column of a frame, or a frame, which becomes an array of NumPy."""
    return hasattr(value, "to_numpy")


def is_sparse(value: object) -> bool:
    """Whether it is a sparse matrix or array of SciPy."""
    return hasattr(value, "tocsr") and hasattr(value, "nnz")


def is_rotations(value: object) -> bool:
    """Whether it holds rotations of SciPy."""
    return hasattr(value, "as_matrix")


def is_dask(source: Data) -> bool:
    """Whether it is an array, a frame or a column of Dask. What xarray holds has the same methods, also in memory."""
    if type(source).__module__.startswith("xarray."):
        return False
    return hasattr(source, "__dask_graph__") and (hasattr(source, "npartitions") or hasattr(source, "chunks"))


def is_lazy(source: Data) -> bool:
    """Whether it is a lazy frame of polars."""
    return hasattr(source, "collect") and hasattr(source, "with_row_index")


def is_batches(source: Data) -> bool:
    """Whether it is a reader of Arrow's record batches."""
    return hasattr(source, "read_all") and hasattr(source, "read_next_batch")


def is_dataset(source: Data) -> bool:
    """Whether it is a dataset of Arrow, of files or in memory."""
    return hasattr(source, "to_batches") and hasattr(source, "count_rows") and hasattr(source, "to_table")


def no_frame(columns: object, argument: str) -> KindError:
    """The error for columns by name, in a dictionary or an xarray Dataset, where a frame is needed."""
    made = f"{argument}.to_dataframe()" if hasattr(columns, "to_dataframe") else f"pandas.DataFrame({argument})"
    return KindError(f"{argument} is {a_type(columns)}; expected an array or a data frame: pass {made}.")


def refuse_sparse(data: Data, argument: str, why: str = "which is not supported here") -> None:
    """Refuse sparse rows where dense ones are needed."""
    if is_sparse(data):
        raise KindError(f"{argument} is sparse, {why}: pass {argument}.toarray().")


def refuse_unread(source: Data, argument: str) -> None:
    """Refuse rows that are not in memory."""
    what, method = "", ""
    if is_dask(source):
        what, method = ("an array" if hasattr(source, "chunks") else "a frame") + " of Dask", "compute"
    elif is_lazy(source):
        what, method = "a lazy frame", "collect"
    elif is_batches(source):
        what, method = "a reader of record batches", "read_all"
    elif is_dataset(source):
        what, method = "a dataset of Arrow", "to_table"
    if what:
        typed = f"what its {method}() returns" if " " in argument else f"{argument}.{method}()"
        raise KindError(f"{argument} is {what}, whose rows are not in memory: pass {typed}.")
