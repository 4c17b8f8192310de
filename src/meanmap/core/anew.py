"""Recompiles programs that contain a user's code when globals, attributes or closures that it reads have changed."""

import dataclasses
import itertools
import types
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache, wraps
from typing import Any

import jax
import numpy as np

from meanmap.core.reads import is_known, reads

__all__ = ["apart_from", "as_read", "compiled_anew", "foreign", "read_anew", "remember"]

# Types that cannot hold a user's code.
_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.dtype, np.ndarray, np.generic, jax.Array)
_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)

# By compiled program, what it read at first: programs made then are found as usual.
_first: dict[Any, str] = {}
_count = itertools.count()


def compiled_anew(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """A function that JAX compiled, for arguments that may hold a user's class or function.

    JAX knows a program by the classes and settings of its arguments, not by what their code reads elsewhere.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from meanmap.core.anew import compiled_anew
    >>> from meanmap.kernels import Kernel
    >>> class Flat(Kernel):
    ...     __module__, width = "a notebook", 1.0
    ...     def evaluate(self, x, y):
    ...         return jnp.exp(-jnp.sum((x - y) ** 2) / Flat.width)
    >>> gram = compiled_anew(jax.jit(lambda kernel, x: kernel.gram(x, x)[0, 1]))
    >>> before = gram(Flat(), jnp.array([[0.0], [1.0]]))
    >>> Flat.width = 4.0
    >>> round(float(before), 3), round(float(gram(Flat(), jnp.array([[0.0], [1.0]]))), 3)
    (0.368, 0.779)
    """

    @wraps(compiled)
    def call(*arguments: object, **named: object) -> Any:
        with read_anew(arguments, named):
            return compiled(*arguments, **named)

    return call


def read_anew(*held: object) -> AbstractContextManager[Any]:
    """A scope that shares no programs with those compiled when users' code in `held` read something else."""
    found = foreign(held)
    if not found:
        return nullcontext()
    key, now = tuple(map(_kind, found)), as_read(tuple(found))
    remember(key, now)
    return apart_from(key, now)


def as_read(code: Any) -> str:
    """A digest of everything that some code reads now; a unique one if that cannot be determined."""
    found = reads(code)
    return found.digest() if found.complete else f"unknown {next(_count)}"


def remember(key: object, now: str) -> None:
    """JAX may keep programs of `key` from now on."""
    _first.setdefault(key, now)


def apart_from(key: object, now: str) -> AbstractContextManager[Any]:
    """A scope in which JAX finds no program of `key` that was compiled when it read anything but `now`."""
    return nullcontext() if _first.get(key, now) == now else _told()(now)


@cache
def _told() -> Any:
    """Created only when needed, because JAX retraces all programs afterwards."""
    return jax.make_user_context(default_value=None)


def foreign(tree: object) -> list[Any]:
    """Objects and functions in a tree, or in static fields of its nodes, whose code is not from a known package."""
    found: dict[int, Any] = {}

    def note(node: object) -> bool:
        found.update((id(each), each) for each in _foreign(node))
        return False

    jax.tree.leaves(tree, is_leaf=note)
    return list(found.values())


def _foreign(node: object) -> Iterator[Any]:
    """The foreign parts of one node: its class, or values in its static fields."""
    kind = type(node)
    if issubclass(kind, _PLAIN):
        return
    if isinstance(node, type):
        if not is_known(node.__module__):
            yield node
        return
    if isinstance(node, _FUNCTIONS):
        if not is_known(getattr(node, "__module__", None) or "builtins"):
            yield node
        return
    if not is_known(kind.__module__):
        # Arrays in an object are arguments of a program; its class and what is static are part of the program.
        yield kind
        if not dataclasses.is_dataclass(node):
            yield node
    for name in _static_fields(kind):
        part = getattr(node, name, None)
        for each in part if isinstance(part, tuple | list) else (part,):
            yield from _foreign(each)


@cache
def _static_fields(kind: type) -> tuple[str, ...]:
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    return tuple(field.name for field in fields if field.metadata.get("static"))


def _kind(found: object) -> Any:
    return found if isinstance(found, type) else getattr(found, "__code__", None) or type(found)
