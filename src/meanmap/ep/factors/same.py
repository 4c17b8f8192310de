"""One object for functions that do the same, so that a lambda made anew in every call finds its compiled program."""

import functools
import hashlib
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from meanmap.core.door import is_concrete

__all__ = ["PLAIN", "globals_named", "same"]

# What stays what it is under its name.
_KNOWN = {"meanmap", "jax", "jaxlib", "numpy", "scipy", "builtins", "math", "operator"}
# What is its own value.
PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))

_seen: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()


class _Unlike(Exception):
    """A part that may change while it stays the same object, such as a list: only the function itself is like it."""


def same(function: Callable[..., Any]) -> Any:
    """The first function that was met with the same code, defaults, closure and globals as this one; or itself.

    Only for functions that are compiled: their numbers are fixed at the first call anyway.
    """
    try:
        key = _key(function, {})
        first = _seen.setdefault(key, function)
        # An array that the first one holds may have been written to since.
        return first if first is function or _key(first, {}) == key else function
    except (_Unlike, TypeError, ValueError):  # so are what takes no weak reference and what names a variable to come
        return function


def _key(value: Any, met: dict[int, int]) -> Any:
    """What a value is, by content; of one that was met before, which by its number: helpers may share their helpers."""
    if isinstance(value, PLAIN):
        return type(value).__name__, repr(value)
    if isinstance(value, tuple):
        return "tuple", *(_key(part, met) for part in value)
    name = _found_under(value)
    if name:
        return name
    if id(value) in met:
        return "met", met[id(value)]
    met[id(value)] = len(met)
    if isinstance(value, np.ufunc):
        return "ufunc", value.__name__
    if isinstance(value, types.FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        named = [value.__globals__.get(name) for name in globals_named(value.__code__)]
        parts = [value.__defaults__, *(value.__kwdefaults__ or {}).items(), *cells, *named]
        return "function", value.__code__, *(_key(part, met) for part in parts)
    if isinstance(value, functools.partial):
        return "partial", *(_key(part, met) for part in (value.func, value.args, *value.keywords.items()))
    if isinstance(value, np.ndarray | np.generic | jax.Array) and is_concrete(value):
        array = np.asarray(value)
        if array.dtype != object:
            return type(value).__name__, str(array.dtype), array.shape, hashlib.sha256(array.tobytes()).digest()
    wrapped = getattr(value, "__wrapped__", None)  # of a compiled function
    if wrapped is not None and type(value).__module__.split(".")[0] in ("jax", "jaxlib"):
        return "compiled", _key(wrapped, met)
    raise _Unlike


def _found_under(value: Any) -> str:
    """The name under which known packages hold a module, type or function; empty where they do not."""
    if isinstance(value, types.ModuleType):
        return value.__name__ if value.__name__.split(".")[0] in _KNOWN else ""
    if not isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
        return ""
    module, name = str(value.__module__), value.__qualname__
    held: Any = sys.modules.get(module) if module.split(".")[0] in _KNOWN else None
    for part in name.split("."):
        held = getattr(held, part, None)
    return f"{module}.{name}" if held is value else ""


def globals_named(code: types.CodeType) -> list[str]:
    """The globals that a function and the functions inside it name."""
    inner = [name for const in code.co_consts if isinstance(const, types.CodeType) for name in globals_named(const)]
    return [*code.co_names, *inner]
