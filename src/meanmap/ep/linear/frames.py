"""Columns of a frame as a formula needs them: complete, numbers in float64, labels as they are."""

from collections.abc import Collection, Iterable
from importlib import import_module
from numbers import Real
from types import ModuleType
from typing import Any
from unicodedata import normalize

import numpy as np

from meanmap.core.arrays import is_categorical, refuse_name
from meanmap.core.containers import handed_over, refuse_unread
from meanmap.core.errors import ColumnError, InputError, NonFiniteError
from meanmap.core.extras import optional
from meanmap.core.foreign import is_missing
from meanmap.core.held import counts_as_numbers, holds_floats, holds_labels, holds_times
from meanmap.core.language import a_type
from meanmap.core.meant import no_column
from meanmap.core.settings import one_of
from meanmap.core.tables.kinds import categories_of
from meanmap.core.tables.missing import incomplete
from meanmap.core.tables.table import Table

__all__ = ["as_frame", "distinct", "formulae", "holds_truths", "unused_levels"]

MISSING = ("raise", "drop")
# The range of numbers whose squares and inverse squares do not overflow in 64 bits.
_LEAST, _MOST = 1e-140, 1e140


def formulae(module: str = "formulae") -> Any:
    """The package that reads formulas, or one of its modules; if it is missing, an error says how to install it."""
    with optional("reading a formula"):
        return import_module(module)


def as_frame(
    data: Any, wanted: Iterable[str], missing: str, argument: str, spared: Collection[str] = ()
) -> tuple[Any, np.ndarray, np.ndarray]:
    """These columns as a pandas frame without incomplete rows, which rows are left, and which cells were missing.

    Names that are `spared` may be no columns.
    `missing` is "refuse" for new rows, of which a dictionary of single values is one.
    """
    if missing != "refuse":
        one_of(missing, "missing", MISSING)
    data = handed_over(data)
    if missing == "refuse" and isinstance(data, dict) and data and all(np.ndim(value) == 0 for value in data.values()):
        data = {name: [value] for name, value in data.items()}
    refuse_unread(data, argument)
    refuse_name(data, argument)
    if not Table.looks_like_one(data):
        raise InputError(f"{argument} is {a_type(data)}; expected a table whose columns have names.")
    known = Table.names_in(data, argument)
    names = [name for name in wanted if name in known or name not in spared]
    absent = [name for name in names if name not in known]
    if absent:
        spaced = next((each for each in known if " " in each and absent[0] in each.split()), None)
        if spaced is not None:
            raise ColumnError(
                f"{argument} has no column {absent[0]!r}; if {spaced!r} is meant, type `{spaced}` in backticks."
            )
        raise no_column(argument, absent[0], known)
    twice = [name for name in names if known.count(name) > 1]
    if twice:
        raise ColumnError(f"{argument} has {known.count(twice[0])} columns named {twice[0]!r}; expected one.")
    no_text = {str(each) for each in getattr(data, "columns", ()) if np.isscalar(each) and not isinstance(each, str)}
    unnamed = [name for name in names if name in no_text]
    if unnamed:
        raise ColumnError(
            f"the name of column {unnamed[0]} of {argument} is no text; rename it, for example with "
            f"{argument}.rename(columns=str)."
        )
    pandas: Any = import_module("pandas")
    length = len(data[known[0]]) if known else 0
    columns = {name: _column(data[name], pandas) for name in names}
    frame = pandas.DataFrame(columns, index=range(length), copy=False)
    gaps = frame.isna().to_numpy()
    if missing != "drop" and gaps.any():
        counts = ", ".join(f"{name!r} ({int(n)})" for name, n in zip(names, gaps.sum(0), strict=True) if n)
        raise incomplete(argument, counts, "pass missing='drop'" if missing == "raise" else "leave out these rows")
    kept = np.flatnonzero(~gaps.any(axis=1))
    if not len(kept):
        raise InputError(f"{argument} has no rows{' that are complete' * bool(length)}; expected at least one.")
    if len(kept) < length:
        frame = frame.iloc[kept].reset_index(drop=True)
    for name in names:
        values = frame[name].to_numpy()
        largest = float(max(values.max(), -values.min())) if holds_floats(values) else 1.0
        if not np.isfinite(largest):
            raise NonFiniteError(f"column {name!r} of {argument} holds {values[~np.isfinite(values)][0]}.")
        if not (largest == 0 or _LEAST < largest < _MOST):
            raise ColumnError(
                f"the largest number of column {name!r} of {argument} is {largest:.3g}, whose square is not a number "
                "of 64 bits; choose another unit."
            )
        if holds_labels(values) and not is_categorical(frame[name]):
            _check_labels(values, name, argument)
        if holds_times(values):
            raise ColumnError(
                f"column {name!r} of {argument} holds times; expected numbers or labels. For days, subtract a time and "
                "divide by numpy.timedelta64(1, 'D')."
            )
    return frame, kept, gaps


def _column(values: Any, pandas: ModuleType) -> Any:
    """Numbers in float64, truth values as 0 and 1, categories in their order, other labels as text.

    Letters with accents are the same however they are composed.
    """
    levels = _levels(values)
    if levels is not None:
        categories = list(dict.fromkeys(map(_composed, levels)))
        return pandas.Categorical(list(map(_composed, values)), categories=categories, ordered=True)
    listed = _entries(values) if _kind(values) == "" else []
    others = [value for value in listed if type(value) is not str]
    if len(others) < len(listed) and all(map(is_missing, others)):
        codes, texts = pandas.factorize(np.array(listed, dtype=object))
        # A missing value has the last place, -1.
        return pandas.Series(np.array([*map(_composed, texts), None], dtype=object)[codes], dtype=object)
    read = pandas.Series(_listed(values) if _kind(values) == "" else np.asarray(values))
    if counts_as_numbers(read) or all(isinstance(value, bool) for value in read.dropna()):
        return read.astype("float64")
    return read if holds_times(read) else read.astype("object").map(_composed).astype("object")


def distinct(frame: Any, keys: list[str]) -> tuple[np.ndarray, list[Any]]:
    """For each row which of the values of a column it has, and these in order of appearance; tuples of several
    columns.
    """
    pandas: Any = import_module("pandas")
    found, values = pandas.factorize(frame[keys[0]].to_numpy())
    values = values.tolist() if len(keys) == 1 else [(value,) for value in values.tolist()]
    for key in keys[1:]:
        codes, own = pandas.factorize(frame[key].to_numpy())
        own = own.tolist()
        found, pairs = pandas.factorize(found * len(own) + codes)
        values = [(*values[pair // len(own)], own[pair % len(own)]) for pair in pairs.tolist()]
    return found, values


def _listed(values: Any) -> list[Any]:
    """The values, with None for whatever stands for a missing one."""
    return [None if is_missing(value) else value for value in _entries(values)]


def _entries(values: Any) -> list[Any]:
    return values.to_list() if hasattr(values, "to_list") else list(np.asarray(values))


def _kind(values: Any) -> str:
    """NumPy's kind code if the array has a numeric type, so that entries need no check one by one; otherwise ""."""
    dtype = getattr(values, "dtype", None)
    return dtype.kind if isinstance(dtype, np.dtype) and dtype.kind in "fiu" else ""


def _check_labels(values: np.ndarray, name: str, argument: str) -> None:
    """Labels are text, or numbers or truth values."""
    if all(issubclass(each, str) for each in set(map(type, values))):
        return
    strange = [value for value in values if not isinstance(value, str | Real | np.bool_)]
    if strange:
        raise ColumnError(
            f"column {name!r} of {argument} holds {strange[0]!r}, of type {type(strange[0]).__name__}; expected "
            "numbers or labels. For labels type .astype(str), for numbers .astype(float)."
        )
    texts = [isinstance(value, str) for value in values]
    if any(texts) and not all(texts):
        raise ColumnError(
            f"column {name!r} of {argument} holds text, such as {values[texts.index(True)]!r}, and numbers, such as "
            f"{values[texts.index(False)]!r}; expected one of the two. For labels type .astype(str), for numbers "
            f"pandas.to_numeric({argument}[{name!r}], errors='coerce'), which makes text a missing value."
        )


def _composed(value: object) -> Any:
    return normalize("NFC", value) if isinstance(value, str) else value


def holds_truths(values: Any) -> bool:
    """Whether a column holds truth values, which become 0 and 1."""
    if _kind(values):
        return False
    found = False
    for value in _entries(values):
        if not is_missing(value):
            if not isinstance(value, bool | np.bool_):
                return False
            found = True
    return found


def unused_levels(values: Any) -> list[Any]:
    """Levels of ordered categories that occur in no row."""
    known, ordered = categories_of(values)
    occurring = set(values) if ordered else ()
    return [level for level in known or () if ordered and level not in occurring]


def _levels(values: Any) -> list[Any] | None:
    """The levels that occur in a column of categories, in their order; None for other columns."""
    known, _ = categories_of(values)
    if known is None:
        return None
    occurring = set(values)
    return [level for level in known if level in occurring]
