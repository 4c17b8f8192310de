"""For which factor an operator was trained: its function and all that this depends on, its families, its power."""

import functools
import hashlib
import types
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from meanmap.ep.factor import FactorLike
from meanmap.ep.factors.same import PLAIN, globals_named

__all__ = ["Signature"]

# Functions of these packages are what their names say.
_KNOWN = {"meanmap", "jax", "jaxlib", "numpy", "scipy", "equinox", "builtins", "math", "operator", "functools"}


@dataclass(frozen=True)
class Signature:
    """What two factors must share for the messages of one to teach those of the other.

    Attributes
    ----------
    factor : str
        The kind of factor and the name of its function, for people.
    power : float
        α of power expectation propagation.
    content : str
        A digest of what the function does: its code, default arguments, what it closes over, the globals that it names.
    """

    factor: str
    power: float = 1.0
    content: str = ""

    @classmethod
    def of(cls, factor: FactorLike, power: float = 1.0) -> "Signature":
        """The kind of a factor, and the function it is made of."""
        digest = hashlib.sha256()
        for piece in _pieces(factor.function, set()):
            digest.update(piece + b"\0")
        return cls(f"{type(factor).__name__} {_label(factor.function)}", float(power), digest.hexdigest()[:16])


def _pieces(value: object, seen: set[int]) -> Iterator[bytes]:
    """All that a value is made of, the same in every process; what cannot be taken apart is only itself."""
    if isinstance(value, PLAIN):
        yield f"{type(value).__name__} {value!r}".encode()
        return
    name = f"{getattr(value, '__module__', None)}.{getattr(value, '__qualname__', None)}"
    if isinstance(value, types.ModuleType):
        yield value.__name__.encode()
    elif name.split(".")[0] in _KNOWN and getattr(value, "__qualname__", "<").isidentifier():
        yield name.encode()
    elif id(value) in seen:
        yield b"again"
    else:
        seen.add(id(value))
        yield type(value).__qualname__.encode()
        for part in _parts(value):
            yield from _pieces(part, seen)


@functools.singledispatch
def _parts(value: Any) -> list[Any]:
    """What a value is made of: simpler values, or bytes."""
    wrapped = getattr(value, "__wrapped__", None)  # compiled and otherwise wrapped functions
    if wrapped is not None:
        return [wrapped]
    if hasattr(value, "__dict__"):
        return [type(value), vars(value)]
    return [f"{type(value).__module__} at {id(value)}"]


@_parts.register
def _of_function(value: types.FunctionType) -> list[Any]:
    cells = [cell.cell_contents for cell in value.__closure__ or ()]
    named = [value.__globals__.get(name) for name in globals_named(value.__code__)]
    return [value.__code__, value.__defaults__, value.__kwdefaults__, *cells, *named]


@_parts.register(np.ndarray | np.generic | jax.Array)
def _of_array(value: Any) -> list[Any]:
    array = np.asarray(value)
    whole = array.dtype != object
    return [str(array.dtype), array.shape, array.tobytes()] if whole else [f"{type(value).__module__} at {id(value)}"]


@_parts.register
def _of_class(value: type) -> list[Any]:
    return [part for _, part in sorted(vars(value).items()) if isinstance(part, (types.FunctionType, *PLAIN))]


_parts.register(types.CodeType, lambda c: [c.co_code, c.co_names, c.co_varnames, c.co_freevars, *c.co_consts])
_parts.register(np.ufunc, lambda value: [value.__name__])
_parts.register(types.MethodType, lambda value: [value.__self__, value.__func__])
_parts.register(functools.partial, lambda value: [value.func, value.args, value.keywords])
_parts.register(dict, lambda value: [part for pair in value.items() for part in pair])
_parts.register(list | tuple, list)
_parts.register(set | frozenset, lambda value: sorted(map(repr, value)))


def _label(function: Callable[..., Any]) -> str:
    """A name that is the same in every process; functions without a name of their own are told apart by their code."""
    module = getattr(function, "__module__", None) or type(function).__module__
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    code = getattr(function, "__code__", None)
    if code is None or "<" not in name:
        return f"{module}.{name}"
    closed = [repr(cell.cell_contents) for cell in getattr(function, "__closure__", None) or ()]
    body = repr((code.co_code, [c for c in code.co_consts if not hasattr(c, "co_code")], code.co_names, closed))
    return f"{module}.{name}#{zlib.crc32(body.encode()):08x}"
