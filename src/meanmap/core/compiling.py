"""Programs that compile faster, for calls that run them only a few times."""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import equinox as eqx
import jax
import numpy as np

from meanmap.core.anew import compiled_anew, read_anew
from meanmap.core.door import all_concrete, is_enclosed

__all__ = ["BARE", "compiled_quickly", "compiled_values"]

# Compiling is most of what a first call costs. These options of XLA make it cheap on a CPU, and programs run no slower
# for them (a first learned kernel took 3.9 s without any, a later one 0.2 s with and without): no emitters of its own
# for fused loops, which take up to half of the time; two pieces for two threads instead of 32, each of which is set up
# anew; and the first level of optimisation.
QUICK: dict[str, bool | int] = {
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 2,
    "xla_backend_optimization_level": 1,
}
# Without optimisation programs compile in a third of that time again, and run slower: for those on few rows.
BARE: dict[str, bool | int] = {
    **QUICK,
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
}
# JAX 0.12 has no option for emitters. An option that is refused is not asked for again.
NO_OPTION = "No such compile option"
_offered = list(BARE)


def compiled_quickly(*static: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`jax.jit` for programs that take longer to compile than to run; `static` are the names of static arguments.

    JAX takes options for whole programs alone: inside of another program, under `grad` and `vmap` this is `jax.jit`.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        return _quickly(function, QUICK, static_argnames=static)

    return decorate


def compiled_values(function: Callable[..., Any], options: dict[str, bool | int] = QUICK) -> Callable[..., Any]:
    """`jax.jit` for functions of values, quick to compile: arrays in arguments are traced, all else is static."""

    def combined(traced: Any, static: tuple[Any, ...], structure: Any) -> Any:
        return function(*eqx.combine(traced, jax.tree.unflatten(structure, static)))

    combined.__name__ = function.__name__  # of the program
    compiled = _quickly(combined, options, static_argnums=(1, 2))

    @wraps(function)
    def call(*arguments: object) -> Any:
        traced, static = eqx.partition(arguments, lambda leaf: isinstance(leaf, jax.Array | np.ndarray | np.generic))
        leaves, structure = jax.tree.flatten(static)
        return compiled(traced, tuple(leaves), structure)

    return call


def _quickly(function: Callable[..., Any], options: dict[str, bool | int], **settings: Any) -> Callable[..., Any]:
    part_anew = compiled_anew(jax.jit(function, **settings))

    @cache
    def whole(*names: str) -> Callable[..., Any]:
        return jax.jit(function, compiler_options={name: options[name] for name in names}, **settings)

    @wraps(function)
    def call(*arguments: object, **named: Any) -> Any:
        if is_enclosed() or not all_concrete((arguments, named)):
            return part_anew(*arguments, **named)
        try:
            with read_anew(arguments, named):
                return whole(*(name for name in _offered if name in options))(*arguments, **named)
        except ValueError as error:  # a function among the arguments may hold a number that is traced
            if "compiler_options" not in str(error):
                raise
            return part_anew(*arguments, **named)
        except jax.errors.JaxRuntimeError as error:
            refused = [option for option in _offered if NO_OPTION in str(error) and option in str(error)]
            if not refused:
                raise
        _offered[:] = [option for option in _offered if option not in refused]
        return call(*arguments, **named)

    return call
