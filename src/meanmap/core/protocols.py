"""Tables and arrays of other libraries read through a protocol: Arrow streams, narwhals frames, DLPack."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from meanmap.core.containers import is_sparse
from meanmap.core.errors import KindError
from meanmap.core.extras import optional
from meanmap.core.language import a_type

__all__ = ["given_back", "handed_over", "hands_over", "is_stream"]

# Their frames are read column by column, and their readers of batches piece by piece.
READ = {"pandas", "polars", "pyarrow", "jax", "jaxlib", "numpy", "meanmap", "builtins"}
# Lists and dictionaries of more entries hold rows or numbers, not samples or columns.
MOST_ENTRIES = 1000


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
