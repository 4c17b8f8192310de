"""Reads one numeric array from any container, with readable errors."""

import datetime
from collections.abc import Callable, Mapping, Sized
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.containers import handed_over, is_sparse, refuse_sparse, refuse_unread
from meanmap.core.door import Door, is_concrete
from meanmap.core.errors import EmptyError, KindError, NonFiniteError, ParameterError, ShapeError
from meanmap.core.exact import check_exact
from meanmap.core.foreign import count_missing, is_missing, readable
from meanmap.core.held import counts_as_numbers, holds_times, holds_whole, is_plain
from meanmap.core.language import counted, in_python
from meanmap.core.moments import Zoned, is_zoned, seconds
from meanmap.core.objects import check_cells
from meanmap.core.points import library_of
from meanmap.core.types import Array, Data, Numbers

__all__ = [
    "array_of",
    "as_array",
    "check_finite",
    "check_lengths",
    "check_not_tiny",
    "check_paired",
    "check_rows",
    "check_size",
    "damping_share",
    "is_categorical",
    "is_factor",
    "out_of_range",
    "parameter",
    "plain",
    "read_levels",
    "read_matrix",
    "reader_of",
    "refuse_name",
    "unfilled",
]

# The square of a distance between points within this many times the largest number's root overflows in no sum.
MARGIN = 1e-3

# Advice about values that are not numbers; functions with `missing=` add it where values are missing (`own_words`).
DROP = "Drop those rows or fill them in first."

# Squares of numbers smaller than one over this, and variances of what is multiplied by them, leave the range.
_ROOM = 1e140


def as_array(data: Data, argument: str) -> np.ndarray:
    """`data` as a numeric NumPy array of any shape; text, objects, complex numbers and ragged lists are refused.

    Dates and times become seconds, of dates since 1970.
    """
    refuse_name(data, argument, "numbers, one row per point")
    array = plain(data, argument)
    if is_categorical(data):
        raise KindError(
            f"{argument} holds categories, such as {array.flat[0]}; expected numbers. "
            f"If they are numbers, convert them{in_python(', for example with .astype(float)')}."
        )
    if isinstance(data, np.ma.MaskedArray) and np.ma.is_masked(data):
        raise unfilled(f"{argument} has masked entries.")
    if array.dtype == object:
        missing = count_missing(array)
        if missing:
            raise unfilled(f"{argument} has {counted(missing, 'missing value')}.")
        check_cells(array, argument)
        raise KindError(
            f"{argument} holds Python objects (dtype object), first {array.flat[0]!r}; expected numbers. "
            f"Convert it first, for example with numpy.asarray({argument}, dtype=float)."
            if array.size
            else f"{argument} is empty."
        )
    if holds_times(array):
        array = seconds(array, argument)
    check_numeric(array, argument)
    return array


def _lengths(data: Any) -> str:
    """Which two rows of a ragged list differ, in words."""
    lengths = [len(row) if isinstance(row, Sized) else None for row in data]
    at = next((at for at, length in enumerate(lengths) if length != lengths[0]), 0)
    if at == 0:
        return "lists inside its rows differ in length"
    first, other = (
        "one number" if n is None else f"{n} {'entry' if n == 1 else 'entries'}" for n in (lengths[0], lengths[at])
    )
    return f"row 0 has {first} and row {at} has {other}"


def refuse_name(data: object, argument: str, expected: str = "a table") -> None:
    """Refuse a text or path, which may be meant as the name of a file."""
    if isinstance(data, str | bytes | Path):
        called = str(data) if isinstance(data, Path) else data
        raise KindError(
            f"{argument} is the text {called!r}; expected {expected}. "
            f"To use a file, read it first, for example with {reader_of(data)}."
        )


def reader_of(path: object) -> str:
    """What may read a file of this name into memory."""
    name = path.decode(errors="replace") if isinstance(path, bytes) else str(path)
    return "pandas.read_parquet" if Path(name).is_dir() or name.endswith((".parquet", ".pq")) else "pandas.read_csv"


def array_of(data: Data, argument: str) -> Any:
    """A JAX array unchanged, anything else as `as_array` reads it."""
    return data if isinstance(data, jax.Array) else as_array(data, argument)


def plain(data: Any, argument: str) -> np.ndarray:
    """`data` as NumPy reads it, with Python's dates as NumPy's; ragged lists and single values are refused."""
    if is_plain(data):
        return data
    data = handed_over(data)
    refuse_unread(data, argument)
    came = data
    if getattr(getattr(data, "dtype", None), "tz", None) is not None:  # pandas' times with a zone
        data = getattr(data, "dt", data).tz_convert(None)
    data = readable(data, argument)
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise ShapeError(f"{argument} is ragged: {_lengths(data)}. Give every row the same columns.") from error
    if array.dtype == object and array.ndim == 0:
        refuse_name(data, argument, "points: a list, an array or a table")
        came = "None" if data is None else f"of the kind {type(data).__name__}"
        raise KindError(f"{argument} is {came}; expected points: a list, an array or a table.")
    array = _dates(_vectors(array)) if array.dtype == object and array.size else array
    return array.view(Zoned) if array.dtype.kind == "M" and is_zoned(came, argument) else array


def _vectors(array: np.ndarray) -> np.ndarray:
    """A column whose cells are vectors of equal length, such as embeddings, as a block; others unchanged."""
    if array.ndim != 1 or not all(map(_is_vector, array)) or len(set(map(len, array))) > 1:
        return array
    block = np.stack(array.tolist())
    return block if counts_as_numbers(block) else array


def _is_vector(cell: object) -> bool:
    if isinstance(cell, np.ndarray):
        return cell.ndim == 1 and counts_as_numbers(cell)
    return isinstance(cell, list | tuple) and all(isinstance(value, int | float | np.number) for value in cell)


def is_factor(value: object) -> TypeGuard[Numbers]:
    """Whether functions and kernels can be multiplied by a value: a number or an array."""
    return isinstance(value, int | float | np.number | np.ndarray | jax.Array)


def is_categorical(data: Data) -> bool:
    """Whether a column is declared as categorical, whatever its values look like."""
    if isinstance(data, np.ndarray):
        return False  # writing the name of its dtype takes longer than reading a short column
    declared = str(getattr(data, "dtype", "")).lower()
    return "categor" in declared or declared.startswith("enum")


def _dates(array: np.ndarray) -> np.ndarray:
    """An array of Python's dates or durations, and nothing else, as NumPy's."""
    held = [value for value in array.flat if not is_missing(value)]
    kinds: tuple[tuple[type, str], ...] = ((datetime.date, "datetime64[us]"), (datetime.timedelta, "timedelta64[us]"))
    for kind, dtype in kinds:
        if held and all(isinstance(value, kind) for value in held):
            found = np.full(array.shape, np.array("NaT", dtype))
            for at in np.flatnonzero([not is_missing(value) for value in array.flat]):
                found.flat[at] = np.array(_in_utc(array.flat[at]), dtype)
            return found
    return array


def _in_utc(value: Any) -> Any:
    """A time converted to UTC, without its zone."""
    zoned = isinstance(value, datetime.datetime) and value.tzinfo is not None
    return value.astimezone(datetime.UTC).replace(tzinfo=None) if zoned else value


def check_numeric(array: Array, argument: str) -> None:
    """Refuse complex numbers, text and objects: anything that is not real, integer or boolean."""
    kind = getattr(array.dtype, "kind", "?")  # a JAX random key has none
    if kind == "c":
        raise KindError(
            f"{argument} holds complex numbers; expected real ones. Pass real and imaginary parts as columns."
        )
    if kind not in "fiub" and not jnp.issubdtype(array.dtype, jnp.floating):
        raise KindError(
            f"{argument} holds {array.dtype} values; expected numbers. "
            "For text or labels use a kernel for them: mm.kernels.Delta, Hamming or Spectrum."
        )


def check_finite(values: Array, argument: str) -> None:
    """Refuse NaN and infinity, naming the first position."""
    _refuse(values, lambda array, library: ~library.isfinite(array), argument, "not finite")


def check_not_tiny(values: np.ndarray, argument: str) -> None:
    """Refuse columns of numbers so small that their squares are zero: their information would be lost silently."""
    largest = np.abs(values).max(0, initial=0.0)
    tiny = np.flatnonzero((largest > 0) & (largest < 1 / _ROOM))
    if len(tiny):
        raise ParameterError(
            f"column {tiny[0]} of {argument} holds no number larger than {largest[tiny[0]]:.2g}, whose square "
            f"underflows; expected another unit: multiply the column, for example by {1 / largest[tiny[0]]:.0e}."
        )


def check_size(values: Array, argument: str) -> None:
    """Refuse NaN, infinity, and numbers so large that squares of their distances would overflow."""
    check_finite(values, argument)
    if not jnp.issubdtype(values.dtype, jnp.floating):
        return  # integers are never that large
    most = MARGIN * float(jnp.finfo(values.dtype).max) ** 0.5
    what = f"too large for distances (at most {most:.1g} in {values.dtype})"
    remedy = "Use another unit: divide the whole column by a constant."
    _refuse(values, lambda array, library: library.abs(array) > most, argument, what, remedy)


def _refuse(values: Array, wrong: Callable[[Any, Any], Any], argument: str, what: str, remedy: str = "") -> None:
    library = library_of(values)
    if library is jnp and not is_concrete(values):
        return
    # Known numbers are checked now, also inside an enclosing `jit`.
    with nullcontext() if library is np else jax.ensure_compile_time_eval():
        found = np.asarray(wrong(values, library))
    if not found.any():
        return
    first = tuple(int(i) for i in np.argwhere(found)[0])
    value = np.asarray(values)[first]
    if not first:
        raise NonFiniteError(f"{argument} is {value}, which is {what}; expected a number that is.")
    where = f"row {first[0]}" + (f", column {first[1]}" if len(first) > 1 else "")
    number = int(found.sum())
    those = f"that is {what}: {value}" if number == 1 else f"that are {what}, the first ({value})"
    said = f"{argument} holds {counted(number, 'value')} {those} at {where}."
    if not remedy and value != value:
        raise unfilled(said)
    raise NonFiniteError(f"{said} {remedy or DROP}")


def unfilled(said: str) -> NonFiniteError:
    """The error for missing values."""
    error = NonFiniteError(f"{said} {DROP}")
    error.droppable = True
    return error


def check_rows(n: int, argument: str, least: int = 1) -> None:
    """Refuse a sample of fewer than `least` points."""
    if n == 0:
        raise EmptyError(f"{argument} is empty; expected at least {least} point{'s' if least > 1 else ''}.")
    if n < least:
        raise EmptyError(f"{argument} has {n} point{'s' if n > 1 else ''}; expected at least {least}.")


def check_lengths(lengths: Mapping[Any, int], argument: str) -> int:
    """The common length of columns; different lengths are refused."""
    if len(set(lengths.values())) > 1:
        raise ShapeError(f"the columns of {argument} differ in length: {lengths}.")
    return next(iter(lengths.values()))


def check_paired(n: int, m: int, x: str = "x", y: str = "y") -> None:
    """Refuse two variables with different numbers of points."""
    if n != m:
        raise ShapeError(f"{x} has {n} points and {y} has {m}; expected pairs, one {y} for each {x}.")


def read_matrix(data: Any, argument: str, door: Door, sparse: bool = True) -> Any:
    """`data` as an (n, d) array in the door's dtype; one axis means n points in one dimension.

    SciPy sparse input stays sparse (CSR) where `sparse` allows it.
    """
    if is_sparse(data):
        if not sparse:
            refuse_sparse(data, argument)
        if len(data.shape) != 2:
            raise ShapeError(f"{argument} has shape {data.shape}; expected (n, d): one row per point.")
        matrix = data.tocsr()
        check_numeric(matrix, argument)
        check_exact(matrix.data, argument)
        matrix = matrix.astype(np.float64)
        check_rows(matrix.shape[0], argument)
        check_size(matrix.data, f"{argument} (stored entries)")
        return matrix
    array = array_of(data, argument)
    check_numeric(array, argument)
    if array.ndim == 0:
        raise ShapeError(f"{argument} is a single number; expected points, one per row: pass [{argument}].")
    if array.ndim > 2:
        raise ShapeError(f"{argument} has shape {array.shape}; expected (n, d) or (n,): one row per point.")
    check_rows(array.shape[0], argument)
    matrix = array[:, None] if array.ndim == 1 else array
    if matrix.shape[1] == 0:
        raise EmptyError(f"{argument} has {matrix.shape[0]} rows but no columns.")
    if holds_whole(matrix):
        check_exact(matrix, argument)
    matrix = matrix.astype(door.dtype)
    check_size(matrix, argument)
    return jnp.asarray(matrix) if door.follows else matrix


def parameter(
    value: object,
    name: str,
    *,
    positive: bool = True,
    axes: int = 1,
    at_least: float | None = None,
    integer: bool = False,
) -> Any:
    """A hyperparameter as a float64 NumPy array (JAX arrays stay as they are), checked while its value is known.

    Parameters
    ----------
    value : number or array
        What the user gave.
    name : str
        The argument's name, for messages.
    positive : bool
        Whether every entry must be above zero.
    axes : int
        The largest number of axes allowed: 0 for one number, 1 for one number or one per column.
    at_least : float, optional
        A lower bound that is allowed itself.
    integer : bool
        Whether entries must be whole numbers.
    """
    expected = "one number" if axes == 0 else "one number, or one per column"
    try:
        array = value if isinstance(value, jax.Array) else np.asarray(value)
    except ValueError as error:
        raise ShapeError(f"{name} is ragged: {_lengths(value)}; expected {expected}.") from error
    if getattr(array.dtype, "kind", "?") not in "fiub" and not jnp.issubdtype(array.dtype, jnp.floating):
        raise KindError(f"{name} is {value!r}; expected {expected}.")
    if not isinstance(array, jax.Array):
        array = array.astype(np.float64)  # a copy: later changes to the caller's array must not change a kernel
    if array.ndim > axes:
        raise ShapeError(f"{name} has shape {array.shape}; expected {expected}.")
    if array.size == 0:
        raise EmptyError(f"{name} is empty; expected at least one number.")
    if is_concrete(array):
        _check_range(np.asarray(array), name, positive, at_least, integer)
    return array


def damping_share(value: object) -> float:
    """A damping, the share of each old message that is kept: at least 0, which is none, and less than 1."""
    damping = float(parameter(value, "damping", positive=False, axes=0, at_least=0.0))
    if damping < 1:
        return damping
    raise ParameterError(
        f"damping is {damping}; expected at least 0 and less than 1: with 1 messages would never change."
    )


def read_levels(q: object, axes: int = 1) -> Any:
    """The levels of quantiles: a probability, or several."""
    levels = parameter(q, "q", positive=False, axes=axes, at_least=0.0)
    if is_concrete(levels) and (np.asarray(levels) > 1).any():
        raise ParameterError(f"q is {np.asarray(levels).tolist()}; expected probabilities from 0 to 1.")
    return levels


def _check_range(values: np.ndarray, name: str, positive: bool, at_least: float | None, integer: bool) -> None:
    shown = values.tolist()
    if not np.isfinite(values).all():
        raise ParameterError(f"{name} is {shown}; expected finite numbers.")
    if positive and not (values > 0).all():
        raise ParameterError(f"{name} is {shown}; expected values above 0.")
    if at_least is not None and not (values >= at_least).all():
        raise ParameterError(f"{name} is {shown}; expected values of at least {at_least:g}.")
    if integer and not (values == np.round(values)).all():
        raise ParameterError(f"{name} is {shown}; expected whole numbers.")


def out_of_range(what: str) -> NonFiniteError:
    """The error for data whose result is not finite."""
    return NonFiniteError(
        f"{what}: numbers in the data are too large or too small to be multiplied. Leave out codes for missing "
        "values, such as 1.8e308, or divide each column by its typical size."
    )
