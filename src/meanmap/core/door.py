"""Conversion at the boundary of public functions: results have the type of the inputs.

NumPy arrays, lists, pandas, polars and SciPy sparse matrices are computed in float64 and come back as NumPy. As soon as
one JAX array (or tracer) is among the inputs, its dtype is followed and JAX arrays come back, so that the same function
can be jitted, mapped and differentiated inside a program of the caller's own.
"""

import os
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.extend.core import Primitive

from meanmap.core.errors import ForkError
from meanmap.programs import keep_programs

__all__ = ["Door", "all_concrete", "is_concrete", "is_enclosed"]

# The first process that computed here.
_first: list[int] = []


def is_concrete(value: object) -> bool:
    """Whether `value` holds known numbers (not a tracer inside `jit`, `vmap` or `grad`)."""
    return not isinstance(value, Tracer)


def all_concrete(tree: object) -> bool:
    """Whether every leaf is known (not traced)."""
    return all(is_concrete(leaf) for leaf in jax.tree.leaves(tree))


class _Traced(Exception):
    """Raised by a primitive that would become part of a program."""


def _refuse_tracing() -> Any:
    raise _Traced


# Of JAX's ways to find out this is the one that puts nothing on a device, which took an eighth of fitting a tree.
_ask = Primitive("is_enclosed")
_ask.def_impl(lambda: None)
_ask.def_abstract_eval(_refuse_tracing)


def is_enclosed() -> bool:
    """Whether a program of the caller is being traced, in which even constants are not known yet."""
    try:
        _ask.bind()
    except _Traced:
        return True
    return False


class Door:
    """A scope in which the inputs of one public call become arrays, and its results the type of the inputs.

    With no JAX array among the leaves of `inputs` the scope is 64-bit (`jax.enable_x64(True)`, undone on exit),
    computes at once even inside an enclosing `jit`, and `leave` hands back NumPy. Otherwise results stay JAX arrays of
    the same dtype, and only the precision of matrix products on GPUs is changed, which JAX rounds to ten bits by
    default.

    Examples
    --------
    >>> import numpy as np
    >>> from meanmap.core import Door
    >>> with Door([1.0, 2.0]) as door:
    ...     door.follows, door.dtype.name
    (False, 'float64')
    """

    def __init__(self, *inputs: object):
        leaves = [leaf for value in inputs for leaf in _jax_arrays(value)]
        self.follows = bool(leaves)
        floats = [leaf.dtype for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating)]
        if not self.follows:
            self.dtype = np.dtype(np.float64)
        else:
            self.dtype = np.dtype(jnp.result_type(*floats)) if floats else np.dtype(jnp.result_type(float))
        self._stack = ExitStack()

    def __enter__(self) -> "Door":
        _check_process()
        if not self.follows:
            self._stack.enter_context(jax.enable_x64(True))
            # NumPy data are constants of a surrounding `jit`: without this their Gram matrix would become a tracer. But
            # it also computes every constant of programs that are traced inside, each by a small program of its own:
            # learning a kernel compiled 60 of them, half of its first call.
            if is_enclosed():
                self._stack.enter_context(jax.ensure_compile_time_eval())
        elif jax.default_backend() != "cpu":
            self._stack.enter_context(jax.default_matmul_precision("highest"))
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def cast(self, tree: object) -> Any:
        """`tree` with its floating NumPy leaves (hyperparameters, say) in the scope's dtype."""

        def convert(leaf):
            if isinstance(leaf, np.ndarray) and np.issubdtype(leaf.dtype, np.floating):
                return leaf.astype(self.dtype, copy=False)
            return leaf

        return jax.tree.map(convert, tree)

    def leave(self, value: object) -> Any:
        """The result to return: unchanged for JAX inputs, otherwise with writable NumPy leaves."""
        if self.follows:
            return value
        return jax.tree.map(lambda leaf: np.array(leaf) if isinstance(leaf, jax.Array) else leaf, value)


def _check_process() -> None:
    """Refuse to compute in a fork of a process that has computed: it would hang silently."""
    here = os.getpid()
    if not _first:
        _first.append(here)
        keep_programs()
    elif _first[0] != here:
        raise ForkError(
            "this process was forked from one that had used meanmap, and JAX does not support forking: start fresh "
            "worker processes, with multiprocessing.get_context('spawn') or "
            "concurrent.futures.ProcessPoolExecutor(mp_context="
            "multiprocessing.get_context('spawn'))."
        )


def _jax_arrays(value: object) -> list[jax.Array]:
    """The JAX arrays in `value`. Mappings are opened here, because JAX wants their keys to be sortable."""
    if isinstance(value, Mapping):
        return [leaf for entry in value.values() for leaf in _jax_arrays(entry)]
    return [leaf for leaf in jax.tree.leaves(value) if isinstance(leaf, jax.Array)]
