"""Calling a user's function at many points: compiled if JAX can trace it, else point by point on the host."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.errors import KindError, ShapeError
from meanmap.ep.variables import Given, Selection

__all__ = ["call", "is_host_function"]

_NOT_TRACEABLE = (
    jax.errors.TracerArrayConversionError,
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerBoolConversionError,
    jax.errors.TracerIntegerConversionError,
)


def is_host_function(function: Any, arguments: tuple[Any, ...], name: str, random: bool = False) -> bool:
    """Whether a function has to be called on the host; raises if it does not map one value of each argument to one."""
    with jax.enable_x64(True):
        examples = [jax.ShapeDtypeStruct(_event(argument), np.float64) for argument in arguments]
        key = (jax.eval_shape(lambda: jax.random.key(0)),) if random else ()
        try:
            out = jax.eval_shape(function, *key, *examples)
        except _NOT_TRACEABLE:
            return True
        except Exception as error:
            if random:  # a sampler that expects NumPy's generator fails in its own way
                return True
            raise KindError(
                f"the function of {name} failed for one value of each of its {len(examples)} arguments: {error}"
            ) from error
    shape = getattr(out, "shape", None)
    if shape != ():
        raise ShapeError(
            f"the function of {name} returned {'shape ' + str(shape) if shape is not None else type(out).__name__} "
            "for one value of each argument; expected one number."
        )
    return False


def call(function: Any, arguments: list[Any], mapped: tuple[int, ...], host: bool, key: Any = None) -> jax.Array:
    """The function at every point: arguments at the positions `mapped` have a leading axis of points."""
    count = arguments[mapped[0]].shape[0]
    keys = () if key is None else (jax.random.split(key, count),)
    if not host:
        axes = [0 if at in mapped else None for at in range(len(arguments))]
        return jax.vmap(function, in_axes=(*(0 for _ in keys), *axes))(*keys, *arguments)
    spread = [
        value if at in mapped else jnp.broadcast_to(value, (count, *jnp.shape(value)))
        for at, value in enumerate(arguments)
    ]
    words = tuple(jax.random.key_data(k) for k in keys)
    # Doubles travel as pairs of words: the thread of a callback is outside the 64-bit scope, and would shorten them.
    pairs = [jax.lax.bitcast_convert_type(value.astype(jnp.float64), jnp.uint32) for value in spread]
    shape = jax.ShapeDtypeStruct((count, 2), jnp.uint32)
    found = jax.pure_callback(_Host(function, bool(keys)), shape, *words, *pairs, vmap_method="broadcast_all")
    return jax.lax.bitcast_convert_type(found, jnp.float64)


class _Host:
    """A Python function of single points, as a function of arrays."""

    def __init__(self, function: Any, random: bool):
        self.function, self.random = function, random

    def __call__(self, *arrays: Any) -> np.ndarray:
        values = [np.ascontiguousarray(array) for array in arrays]
        first = 1 if self.random else 0
        values[first:] = [value.view(np.float64)[..., 0] for value in values[first:]]
        batch = values[0].shape[:-1] if self.random else _batch(values)
        flat = [value.reshape(-1, *value.shape[len(batch) :]) for value in values]
        out = np.empty(flat[0].shape[0])
        for at in range(len(out)):
            row = [_plain(value[at]) for value in flat]
            if self.random:
                row[0] = np.random.default_rng(row[0])
            out[at] = self.function(*row)
        return out.view(np.uint32).reshape(*batch, 2)


def _batch(values: list[np.ndarray]) -> tuple[int, ...]:
    return min((value.shape for value in values), key=len)


def _plain(value: np.ndarray) -> Any:
    return value.item() if value.ndim == 0 else value


def _event(argument: Any) -> tuple[int, ...]:
    if isinstance(argument, Given):
        return argument.values.shape[1:]
    variable = argument.variable if isinstance(argument, Selection) else argument
    return () if variable.dimension is None else (variable.dimension,)
