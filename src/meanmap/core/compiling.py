"""Programs that compile in less time, for calls that run them a few times."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import jax

__all__ = ["compiled_quickly"]

# XLA's emitters of fused loops take up to half of the time of compiling for a CPU, and programs that are mostly
# products of matrices run no faster for them: a first learned kernel took 3.9 s with them and 2.4 s without, a second
# one 0.21 s with and without.
WITHOUT_EMITTERS = {"xla_cpu_use_fusion_emitters": False}


def compiled_quickly(*static: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`jax.jit` for programs of which compiling takes most; `static` are the names of static arguments.

    JAX takes options for whole programs alone: inside of another program this is plain `jax.jit`.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        whole = jax.jit(function, static_argnames=static, compiler_options=WITHOUT_EMITTERS)
        part = jax.jit(function, static_argnames=static)

        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            try:
                return whole(*arguments, **named)
            except ValueError as error:
                if "compiler_options" not in str(error):
                    raise
                return part(*arguments, **named)

        return call

    return decorate
