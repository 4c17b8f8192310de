"""Tables and arrays of other libraries read through a protocol: Arrow streams, narwhals frames, DLPack."""

from importlib.util import find_spec
from typing import Any

import numpy as np

from meanmap.core.errors import KindError
from meanmap.core.extras import optional

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
    if kind.__module__.startswith("narwhals."):
        return hasattr(kind, "to_native")
    if _is_dataset(kind):
        return True
    if any(base.__module__.split(".")[0] in READ - {"builtins", "numpy"} for base in kind.__mro__):
        return False
    return (hasattr(kind, "__arrow_c_stream__") and not hasattr(kind, "iloc")) or (
        hasattr(kind, "__dlpack__") and not hasattr(kind, "__array__")
    )


def is_stream(value: object) -> bool:
    """Whether a value is a table of another library that is read as an Arrow stream."""
    return hands_over(value) and hasattr(value, "__arrow_c_stream__")


def handed_over(value: Any) -> Any:
    """A table or array of another library converted once to one that can be read; anything else unchanged.

    Objects with `__arrow_c_stream__`, such as a DuckDB relation or an ADBC result, become a polars frame, or an Arrow
    table if polars is not installed. Narwhals frames are unwrapped, and xarray data sets become their variables.
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
    if hasattr(value, "to_native"):
        return handed_over(value.to_native())
    if _is_dataset(type(value)):
        return {str(name): variable.values for name, variable in value.items()}
    return _of_stream(value) if hasattr(value, "__arrow_c_stream__") else np.from_dlpack(value)


def given_back(came: object, found: Any) -> Any:
    """The resulting frame, wrapped by narwhals if the input `came` wrapped."""
    if not type(came).__module__.startswith("narwhals."):
        return found
    import narwhals

    return narwhals.from_native(found)


def _is_dataset(kind: type) -> bool:
    return kind.__module__.startswith("xarray.") and kind.__name__ == "Dataset"


def _of_stream(value: Any) -> Any:
    """All batches of a stream as a single frame."""
    called = type(value).__name__
    try:
        if find_spec("pyarrow") and not find_spec("polars"):
            import pyarrow

            return pyarrow.table(value)
        with optional(f"a {called}, read as a stream of Arrow,"):
            import polars
        return polars.DataFrame(value)
    except (TypeError, ValueError) as error:
        raise KindError(f"a {called} has an Arrow stream that is no table: {error}") from error
