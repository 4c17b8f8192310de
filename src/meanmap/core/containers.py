"""Containers of other libraries, recognised without importing these, and read through protocols or refused."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from meanmap.core.errors import KindError
from meanmap.core.extras import optional
from meanmap.core.language import a_type
from meanmap.core.types import Data

__all__ = [
    "columns_of_frame",
    "given_back",
    "handed_over",
    "hands_over",
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
    "is_stream",
    "names_of_frame",
    "no_frame",
    "refuse_sparse",
    "refuse_unread",
]

# Their frames are read column by column, and their readers of batches piece by piece.
READ = {"pandas", "polars", "pyarrow", "jax", "jaxlib", "numpy", "meanmap", "builtins"}
# Lists and dictionaries of more entries hold rows or numbers, not samples or columns.
MOST_ENTRIES = 1000


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


def hands_over(value: object) -> bool:
    """Whether a value is a table or array of another library that is read through a protocol.

    Examples
    --------
    >>> import polars
    >>> hands_over(polars.DataFrame({"a": [1.0]})), hands_over([1.0])
    (False, False)
    """
    kind = type(value)
    if kind.__module__.split(".")[0] in READ:
        return False
    if is_sparse(value):
        return getattr(value, "format", "csr") != "csr"
    if kind.__module__.startswith("narwhals."):
        return hasattr(kind, "to_native")
    if _is_dataset(kind) or _is_labelled_array(kind):
        return True
    if any(base.__module__.split(".")[0] in READ - {"builtins", "numpy"} for base in kind.__mro__):
        return False
    return (hasattr(kind, "__arrow_c_stream__") and not hasattr(kind, "iloc")) or (
        hasattr(kind, "__dlpack__") and not hasattr(kind, "__array__")
    )


def is_stream(value: object) -> bool:
    """Whether a value is a table of another library that is read as an Arrow stream."""
    kind = type(value)
    return (
        hands_over(value)
        and hasattr(value, "__arrow_c_stream__")
        and not _is_dataset(kind)
        and not _is_labelled_array(kind)
    )


def handed_over(value: Any) -> Any:
    """A table or array of another library converted once to one that can be read; anything else unchanged.

    Objects with `__arrow_c_stream__`, such as a DuckDB relation or an ADBC result, become a polars frame, or an Arrow
    table if polars is not installed. Narwhals frames are unwrapped, and xarray data sets become their variables, and
    its arrays their values. Sparse matrices are read by rows (CSR): those of other formats have no rows to take, or are
    dictionaries.
    Samples in a list and columns in a dictionary are converted, too.

    Raises
    ------
    KindError
        If neither polars nor pyarrow is installed.

    Examples
    --------
    >>> import narwhals, polars
    >>> type(handed_over(narwhals.from_native(polars.DataFrame({"a": [1.0]})))).__module__
    'polars.dataframe.frame'
    """
    if type(value) in (list, tuple, dict) and len(value) <= MOST_ENTRIES:
        entries = value.values() if isinstance(value, dict) else value
        if not any(map(hands_over, entries)):
            return value
        found = [handed_over(entry) for entry in entries]
        return dict(zip(value, found, strict=True)) if isinstance(value, dict) else type(value)(found)
    if not hands_over(value):
        return value
    if is_sparse(value):
        return value.tocsr()
    if hasattr(value, "to_native"):
        return handed_over(value.to_native())
    if _is_labelled_array(type(value)):
        return np.asarray(value.values)
    if _is_dataset(type(value)):
        return {str(name): variable.values for name, variable in value.items()}
    return _of_stream(value) if hasattr(value, "__arrow_c_stream__") else np.from_dlpack(value)


def given_back(came: Any, found: Any) -> Any:
    """The resulting frame: wrapped by narwhals, with the labels of xarray, or as a relation of DuckDB's own connection
    (which reads Arrow with pyarrow) if the input `came` so.
    """
    kind = type(came)
    if _is_labelled_array(kind):
        return came.copy(data=found)
    if _is_dataset(kind):
        return came.assign({name: (came[name].dims, found[str(name)]) for name in came})
    if kind.__name__ == "DuckDBPyRelation" and find_spec("pyarrow"):
        return import_module("duckdb").from_arrow(found)
    if not kind.__module__.startswith("narwhals."):
        return found
    import narwhals

    return narwhals.from_native(found)


def _is_dataset(kind: type) -> bool:
    return kind.__module__.startswith("xarray.") and kind.__name__ == "Dataset"


def _is_labelled_array(kind: type) -> bool:
    """Whether it is an array of xarray, whose stream of Arrow would be its values one below the other."""
    return kind.__module__.startswith("xarray.") and kind.__name__ in ("DataArray", "Variable")


def _of_stream(value: Any) -> Any:
    """All batches of a stream as a single frame."""
    called = a_type(value)
    try:
        if find_spec("pyarrow") and not find_spec("polars"):
            import pyarrow

            return pyarrow.table(value)
        with optional(f"{called}, read as a stream of Arrow,"):
            import polars
        return polars.DataFrame(value)
    except (TypeError, ValueError) as error:
        raise KindError(f"{called} has an Arrow stream that is not a table: {error}") from error
