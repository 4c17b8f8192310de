"""What a function reads besides its arguments: its code, defaults, closure, globals and attributes, by path."""

import dis
import functools
import hashlib
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

__all__ = ["Reads", "digest_of", "is_known", "reads"]

# Values that are identified by their name.
_KNOWN = {"meanmap", "jax", "jaxlib", "numpy", "scipy", "equinox", "builtins", "math", "operator", "functools"}
_KNOWN |= {"pandas", "polars", "pyarrow"}
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))
# Lists and dictionaries beyond this many entries of plain values are one piece; a function of more pieces is not told.
_MANY, _MOST = 1000, 20_000


class Reads(NamedTuple):
    """What was found.

    Attributes
    ----------
    pieces : dict
        By path, such as "globals y" or "self.calls", the type and value, or a digest of it; the same in every process.
    complete : bool
        Whether that is all. It is not where a part cannot be taken apart, such as an open file: that is then itself.
    """

    pieces: dict[str, str]
    complete: bool

    def digest(self) -> str:
        """One short text for all pieces."""
        return digest_of(self.pieces)


def digest_of(pieces: dict[str, str]) -> str:
    """One short text for some pieces."""
    joined = "\0".join(f"{path}\1{piece}" for path, piece in sorted(pieces.items()))
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def reads(function: Callable[..., Any]) -> Reads:
    """What a function reads now; its arguments are not looked at."""
    walk = _Walk()
    walk.add("", function)
    return Reads(walk.pieces, walk.complete)


class _Walk:
    def __init__(self) -> None:
        self.pieces: dict[str, str] = {}
        self.complete = True
        # The objects too: the number of one that is gone may be given to another.
        self.met: dict[int, tuple[str, Any]] = {}

    def add(self, path: str, value: object, names: tuple[str, ...] = ()) -> None:
        """A value and all that it is made of; of a module only what is named."""
        if isinstance(value, _PLAIN):
            self.pieces[path] = f"{type(value).__name__} {value!r}"
            return
        name = _known_name(value)
        if name:
            self.pieces[path] = name
            return
        if id(value) in self.met:
            self.pieces[path] = f"as {self.met[id(value)][0]}"
            return
        self.met[id(value)] = path, value
        if len(self.pieces) > _MOST:
            self.give_up(path, value)
            return
        try:
            parts = list(self.parts(path, value, names))
        except Exception:  # any error that an object raises when it is inspected
            self.give_up(path, value)
            return
        for inner, part in parts:
            self.add(inner, part, _names(value))

    def give_up(self, path: str, value: object) -> None:
        """Equal only to itself."""
        self.complete = False
        self.pieces[path] = f"{type(value).__module__}.{type(value).__qualname__} at {id(value)}"

    def parts(self, path: str, value: object, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        """The parts of a value, by path; plain ones are recorded immediately."""
        match value:
            case types.ModuleType():
                held = vars(value)
                yield from ((f"{path}.{name}", held[name]) for name in names if name in held)
            case types.FunctionType():
                yield from self.of_function(path, value)
            case types.CodeType():
                self.pieces[f"{path} code"] = repr(
                    (value.co_code, value.co_names, value.co_varnames, value.co_freevars)
                )
                yield from ((f"{path} constant {at}", part) for at, part in enumerate(value.co_consts))
            case types.MethodType():
                yield from ((f"{path} self", value.__self__), (f"{path} function", value.__func__))
            case functools.partial():
                yield from ((f"{path}.{name}", getattr(value, name)) for name in ("func", "args", "keywords"))
            case weakref.ref():
                yield f"{path} referent", value()
            case np.ufunc():
                self.pieces[path] = value.__name__
            case np.ndarray() | np.generic() | jax.Array() if not isinstance(value, Tracer):
                yield from self.of_array(path, value)
                yield from _beside(path, value)
            case dict() | list() | tuple():
                yield from self.of_entries(path, value)
                yield from _beside(path, value)
            case set() | frozenset():
                yield path, sorted(map(repr, value))
            case type():
                self.pieces[path] = value.__qualname__
                yield from ((f"{path}.{name}", part) for name, part in sorted(vars(value).items()) if _says(name, part))
                yield from ((f"{path} base {at}", base) for at, base in enumerate(value.__bases__))
            case _ if (inner := getattr(value, "__wrapped__", None)) is not None:  # compiled, or wrapped otherwise
                self.pieces[path] = type(value).__qualname__
                yield f"{path} wrapped", inner
            case _:
                yield from self.of_object(path, value)

    def of_function(self, path: str, value: types.FunctionType) -> Iterator[tuple[str, Any]]:
        if any(step.opname == "IMPORT_NAME" and not is_known(step.argval) for step in dis.get_instructions(value)):
            self.complete = False
        yield path, value.__code__
        yield from ((f"{path} defaults{name}", part) for name, part in _defaults(value))
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            try:
                yield f"{path} closure {name}", cell.cell_contents
            except ValueError:  # defined further below
                self.pieces[f"{path} closure {name}"] = "empty"
        yield from _beside(path, value)
        held = value.__globals__
        yield from ((f"{path} globals {name}", held[name]) for name in _names(value) if name in held)

    def of_array(self, path: str, value: Any) -> Iterator[tuple[str, Any]]:
        if not isinstance(value, np.ndarray | np.generic) and jnp.issubdtype(value.dtype, jax.dtypes.extended):
            yield f"{path} key", jax.random.key_data(value)
            return
        array = np.asarray(value)
        if array.dtype == object:
            yield path, array.tolist()
            return
        content = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
        self.pieces[path] = f"{array.dtype} {array.shape} {content}"

    def of_entries(self, path: str, value: Any) -> Iterator[tuple[str, Any]]:
        entries = list(value.items() if isinstance(value, dict) else enumerate(value))
        if len(entries) > _MANY and all(isinstance(part, _PLAIN) for entry in entries for part in entry):
            self.pieces[path] = f"{type(value).__name__} {hashlib.sha256(repr(value).encode()).hexdigest()}"
            return
        keys = [repr(key) for key, _ in entries] if isinstance(value, dict) else len(entries)
        self.pieces[f"{path} entries"] = f"{type(value).__name__} {keys}"
        yield from ((f"{path}[{key!r}]", part) for key, part in entries)

    def of_object(self, path: str, value: object) -> Iterator[tuple[str, Any]]:
        """As it would be copied: by what makes it, and its state."""
        if isinstance(value, property | classmethod | staticmethod):
            yield path, getattr(value, "fget", None) or getattr(value, "__func__", None)
            return
        how = value.__reduce_ex__(4)
        if isinstance(how, str):
            self.pieces[path] = f"{value.__module__}.{how}"
            return
        maker, arguments, state, items, entries = (*how, None, None, None)[:5]
        self.pieces[path] = f"object of {type(value).__qualname__}"
        yield from ((f"{path} maker", maker), (f"{path} made of", arguments))
        if isinstance(state, dict):
            yield from ((f"{path}.{name}", part) for name, part in state.items())
        else:
            yield f"{path} state", state
        if not is_known(type(value).__module__):  # its state may be less than what it holds
            told = {f"{path}.{name}" for name in state} if isinstance(state, dict) else set()
            yield from ((name, part) for name, part in _beside(path, value) if name not in told)
        yield from ((f"{path} items", list(items or ())), (f"{path} entries", dict(entries or ())))


def _known_name(value: object) -> str:
    """The name of a module, type or function in a known package; empty if it is not in one."""
    if isinstance(value, types.ModuleType):
        return value.__name__ if is_known(value.__name__) else ""
    if not callable(value) or not isinstance(getattr(value, "__qualname__", None), str):
        return ""
    module, name = str(getattr(value, "__module__", None)), value.__qualname__
    held: Any = sys.modules.get(module) if is_known(module) else None
    for part in name.split("."):
        held = getattr(held, part, None)
    return f"{module}.{name}" if held is value else ""


def is_known(module: str) -> bool:
    """Whether a module belongs to Python, to this library or to its dependencies."""
    first = module.split(".")[0]
    return first in _KNOWN or first in sys.stdlib_module_names


def _names(value: object) -> tuple[str, ...]:
    """The names that a function, and the functions inside it, look up; none for anything else."""
    code = value if isinstance(value, types.CodeType) else getattr(value, "__code__", None)
    if not isinstance(code, types.CodeType):
        return ()
    inner = (name for const in code.co_consts if isinstance(const, types.CodeType) for name in _names(const))
    # Names with @ are what pytest puts into assertions.
    return tuple(name for name in dict.fromkeys((*code.co_names, *inner)) if name[0] != "@")


def _beside(path: str, value: object) -> Iterator[tuple[str, Any]]:
    """Attributes set on an object that is identified by other parts."""
    return ((f"{path}.{name}", part) for name, part in getattr(value, "__dict__", {}).items() if name != "__wrapped__")


def _defaults(value: types.FunctionType) -> list[tuple[str, Any]]:
    return [("", value.__defaults__), *((f" {name}", part) for name, part in (value.__kwdefaults__ or {}).items())]


def _says(name: str, part: object) -> bool:
    """Whether an attribute of a class says what it does or reads."""
    slots = (types.GetSetDescriptorType, types.MemberDescriptorType, types.WrapperDescriptorType)
    # What fields are is in the code that dataclasses made of them; slots are found by copying.
    return name not in ("_abc_impl", "__dataclass_fields__", "__annotations__", "__slotnames__") and not isinstance(
        part, slots
    )
