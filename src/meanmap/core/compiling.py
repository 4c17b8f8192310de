"""Programs that compile in less time, for calls that run them a few times."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import equinox as eqx
import jax
import numpy as np

from meanmap.core.door import is_concrete, is_enclosed

__all__ = ["compiled_quickly", "compiled_values"]

# XLA's emitters of fused loops take up to half of the time of compiling for a CPU, and programs that are mostly
# products of matrices run no faster for them: a first learned kernel took 3.9 s with them and 2.4 s without, a second
# one 0.21 s with and without.
WITHOUT_EMITTERS = {"xla_cpu_use_fusion_emitters": False}
# JAX 0.12 has no such option. What it says is remembered, so that one program alone is traced in vain.
NO_OPTION = "No such compile option"
_refused: list[str] = []


def compiled_quickly(*static: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`jax.jit` for programs of which compiling takes most; `static` are the names of static arguments.

    JAX takes options for whole programs alone: inside of another program, under `grad` and `vmap` this is `jax.jit`.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        return _quickly(function, static_argnames=static)

    return decorate


def compiled_values(function: Callable[..., Any]) -> Callable[..., Any]:
    """`jax.jit` for functions of values, quick to compile: arrays in arguments are traced, all else is static."""

    def combined(traced: Any, static: tuple[Any, ...], structure: Any) -> Any:
        return function(*eqx.combine(traced, jax.tree.unflatten(structure, static)))

    combined.__name__ = function.__name__  # of the program
    compiled = _quickly(combined, static_argnums=(1, 2))

    @wraps(function)
    def call(*arguments: Any) -> Any:
        traced, static = eqx.partition(arguments, lambda leaf: isinstance(leaf, jax.Array | np.ndarray | np.generic))
        leaves, structure = jax.tree.flatten(static)
        return compiled(traced, tuple(leaves), structure)

    return call


def _quickly(function: Callable[..., Any], **settings: Any) -> Callable[..., Any]:
    whole = jax.jit(function, compiler_options=WITHOUT_EMITTERS, **settings)
    part = jax.jit(function, **settings)

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        if _refused or is_enclosed() or not all(map(is_concrete, jax.tree.leaves((arguments, named)))):
            return part(*arguments, **named)
        try:
            return whole(*arguments, **named)
        except ValueError as error:  # a function among the arguments may hold a number that is traced
            if "compiler_options" not in str(error):
                raise
        except jax.errors.JaxRuntimeError as error:
            if NO_OPTION not in str(error):
                raise
            _refused.append(str(error))
        return part(*arguments, **named)

    return call
