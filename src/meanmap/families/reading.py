"""Reads parameters and values, and runs formulas on them, compiled once per class and shape."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.anew import compiled_anew
from meanmap.core.arrays import array_of, check_numeric
from meanmap.core.door import Door, all_concrete, is_concrete
from meanmap.core.errors import KindError, NonFiniteError, ParameterError, ShapeError
from meanmap.core.language import in_few_words
from meanmap.core.types import Array, Data, Numbers

__all__ = ["as_fields", "by_scipy", "check_members", "members", "read_numbers", "read_parameters", "run", "to_jax"]


def as_fields(*values: Numbers) -> list[Any]:
    """`values` as arrays to store: NumPy's arithmetic on single numbers gives scalars, and fields stay arrays."""
    return [value if isinstance(value, jax.Array) else np.asarray(value) for value in values]


def members(mask: object) -> str:
    """The batch indices at which `mask` is True, as text: ' at [3], [5]', or '' if there is no batch."""
    mask = np.asarray(mask)
    if mask.ndim == 0:
        return ""
    found = [str(index.tolist()) for index in np.argwhere(mask)]
    return f" at {in_few_words(found, 5)}"


def check_members(values: Numbers, valid: object, name: str, expected: str) -> None:
    """Refuse concrete `values` where `valid` does not hold, naming the batch indices."""
    if not is_concrete(values) or not is_concrete(valid):
        return
    bad = ~np.asarray(valid)
    if bad.any():
        values = np.asarray(values)
        first = values[tuple(np.argwhere(bad)[0])] if values.ndim >= bad.ndim and bad.ndim else values
        shown = np.array2string(np.asarray(first, dtype=float), precision=6, threshold=20)
        raise ParameterError(f"{name} is {shown}{members(bad)}; expected {expected}.")


def read_numbers(data: Data, name: str, door: Door) -> Array:
    """`data` as an array of the door's dtype, of any shape: NumPy, or JAX where the door follows it. NaN is refused."""
    array = array_of(data, name)
    check_numeric(array, name)
    if is_concrete(array):
        missing = np.isnan(np.asarray(array, dtype=float))
        if missing.any():
            raise NonFiniteError(f"{name} holds NaN{members(missing)}; expected numbers.")
    array = array.astype(door.dtype)
    return jnp.asarray(array) if door.follows else array


def read_parameters(door: Door, axes: tuple[int, ...] | None = None, **values: object) -> list[Any]:
    """Finite parameters by name, their batch axes broadcast together; `axes` counts each one's own trailing axes."""
    axes = (0,) * len(values) if axes is None else axes
    arrays = [read_numbers(value, name, door) for name, value in values.items()]
    batches = []
    for array, name, own in zip(arrays, values, axes, strict=True):
        if array.ndim < own:
            raise ShapeError(f"{name} has shape {array.shape}; expected at least {own} axes, the batch axes first.")
        if is_concrete(array) and not np.isfinite(np.asarray(array, dtype=float)).all():
            raise NonFiniteError(f"{name} holds infinity; expected finite numbers.")
        batches.append(array.shape[: array.ndim - own])
    try:
        batch = np.broadcast_shapes(*batches)
    except ValueError as error:
        listed = ", ".join(f"{name} {shape}" for name, shape in zip(values, batches, strict=True))
        raise ShapeError(
            f"the batch axes do not fit together: {listed}. Pass equal shapes, or single values."
        ) from error
    library = jnp if door.follows else np
    return [
        library.broadcast_to(array, (*batch, *array.shape[array.ndim - own :]))
        for array, own in zip(arrays, axes, strict=True)
    ]


def to_jax(tree: object, dtype: np.dtype) -> Any:
    """`tree` with JAX leaves; NumPy floats get the scope's dtype, so that nothing is promoted."""

    def convert(leaf):
        if isinstance(leaf, jax.Array):
            return leaf
        leaf = np.asarray(leaf)
        return jnp.asarray(leaf, dtype) if np.issubdtype(leaf.dtype, np.floating) else jnp.asarray(leaf)

    return jax.tree.map(convert, tree)


def run(function: Callable[..., Any], *arguments: object, **settings: object) -> Any:
    """Call a pure function of distributions and arrays, compiled; numbers are returned as NumPy scalars.

    `function` and `settings` are part of the compiled program, so they must be hashable and take few values.
    """
    with Door(arguments) as door:
        arguments = to_jax(arguments, door.dtype) if door.follows else arguments
        result = door.leave(_compiled(arguments, function, tuple(sorted(settings.items()))))
    if door.follows:
        return result
    return jax.tree.map(lambda leaf: leaf[()] if isinstance(leaf, np.ndarray) and leaf.ndim == 0 else leaf, result)


def by_scipy(distribution: Any, p: Array, inverse: Callable[[np.ndarray], np.ndarray]) -> Any:
    """Quantiles by an inverse that SciPy has and JAX has not: on the host, so neither under `jit` nor `grad`."""
    if not all_concrete((distribution, p)):
        name = type(distribution).__name__
        raise KindError(f"{name} quantiles are computed by SciPy on the host: call quantile outside jit and grad.")
    with Door(distribution, p) as door:
        values = inverse(np.asarray(p, float))
        return jnp.asarray(values, door.dtype) if door.follows else values


@compiled_anew
@partial(jax.jit, static_argnames=("function", "settings"))
def _compiled(arguments: tuple, function: Callable[..., Any], settings: tuple) -> Any:
    return function(*arguments, **dict(settings))
