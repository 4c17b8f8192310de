"""Plain JSON and named arrays back to values. Nothing is run: objects get their fields, and no method is called."""

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from meanmap.core.errors import FileFormatError

__all__ = ["Decoder"]

# No value of the library is nested so deep.
DEEPEST = 100
# Nor are there so many nodes.
LONGEST = 2**40
# The folders whose classes a file may name.
NAME = re.compile(
    r"meanmap\.(bp|core|embeddings|ep|families|features|graphs|kernels|learning|linalg|stats|structure)(\.\w+)+"
)


class Decoder:
    """Turns JSON into values, with the arrays that it names."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.arrays = arrays
        self.readers: dict[str, Callable[[Any, int], Any]] = {
            "tuple": lambda content, depth: tuple(self._list(content, depth)),
            "dict": self._dict,
            "range": lambda content, depth: _range(content),
            "float": lambda content, depth: _float(content),
            "scalar": self._scalar,
            "array": lambda content, depth: self._stored(content),
            "jax": lambda content, depth: _on_device(self._stored(content)),
            "key": self._key,
            "complex": self._complex,
            "objects": self._objects,
            "sparse": self._sparse,
            "class": lambda content, depth: _class(content),
            "value": self._value,
        }

    def decode(self, content: Any, depth: int = 0) -> Any:
        """The value that JSON stands for."""
        if depth > DEEPEST:
            raise FileFormatError(f"it is nested more than {DEEPEST} deep")
        if isinstance(content, list):
            return self._list(content, depth)
        if not isinstance(content, dict):
            return content
        kind = next(iter(content), None)
        if len(content) != 1 or kind not in self.readers:
            raise FileFormatError(f"it holds something of an unknown kind, {str(kind)[:40]!r}")
        return self.readers[kind](content[kind], depth + 1)

    def _list(self, content: Any, depth: int) -> list[Any]:
        return [self.decode(each, depth + 1) for each in _checked(content, list)]

    def _dict(self, content: Any, depth: int) -> dict[Any, Any]:
        return dict(self._list(each, depth) for each in _checked(content, list))

    def _scalar(self, content: Any, depth: int) -> Any:
        name, value = _checked(content, list)
        return _dtype(name, "biufU").type(self.decode(value, depth))

    def _stored(self, content: Any) -> np.ndarray:
        if not isinstance(content, str) or content not in self.arrays:
            raise FileFormatError(f"it speaks of an array {str(content)[:40]!r} that it does not hold")
        return self.arrays[content]

    def _key(self, content: Any, depth: int) -> Any:
        name, data = _checked(content, list)
        return jax.random.wrap_key_data(jnp.asarray(self.decode(data, depth)), impl=_checked(name, str))

    def _complex(self, content: Any, depth: int) -> np.ndarray:
        name, pairs = _checked(content, list)
        values = _checked(self.decode(pairs, depth), np.ndarray)
        kind = _dtype(name, "c")
        if values.shape[-1:] != (2,) or values.dtype.itemsize * 2 != kind.itemsize:
            raise FileFormatError("it holds complex numbers that are not pairs")
        return np.ascontiguousarray(values).view(kind)[..., 0]

    def _objects(self, content: Any, depth: int) -> np.ndarray:
        name, shape, values = _checked(content, list)
        flat = self._list(values, depth)
        kind = _dtype(name, "UO")
        if kind.itemsize > 4 * max((len(str(each)) for each in flat), default=1) + 64:
            raise FileFormatError(f"it holds words wider than any of them, {name}")
        array = np.empty(len(flat), kind)
        array[:] = flat
        return array.reshape([_checked(each, int) for each in _checked(shape, list)])

    def _sparse(self, content: Any, depth: int) -> Any:
        parts = {name: self.decode(part, depth) for name, part in _checked(content, dict).items()}
        arrays = (parts["data"], parts["indices"], parts["indptr"])
        found = scipy.sparse.csr_array(arrays, shape=tuple(_checked(parts["shape"], list)))
        found.check_format(full_check=True)
        return found

    def _value(self, content: Any, depth: int) -> Any:
        name, parts = _checked(content, list)
        kind = _class(name)
        held = {field: self.decode(part, depth) for field, part in _checked(parts, dict).items()}
        if is_dataclass(kind):
            known = {field.name: field for field in fields(kind)}
            unknown = sorted(set(held) - set(known))
            absent = [each for each in known if each not in held and _required(known[each])]
            if unknown or absent:
                found = f"an unknown field {unknown[0]!r}" if unknown else f"no field {absent[0]!r}"
                raise FileFormatError(f"its {kind.__name__} has {found}: another version of meanmap wrote it")
            defaults = {each: known[each].default for each in known if known[each].default is not MISSING}
            held = {**defaults, **held}
        made = object.__new__(kind)
        for field, part in held.items():
            object.__setattr__(made, field, part)
        return made


def _required(field: Any) -> bool:
    # A field that its class fills in by itself was there when the object was saved, if it was there at all.
    return field.init and field.default is MISSING and field.default_factory is MISSING


def _class(name: Any) -> type:
    """A class of the library by its name; no other can be named."""
    if not NAME.fullmatch(_checked(name, str)):
        raise FileFormatError(f"it names {name[:80]!r}, which is no class that can be loaded")
    module, _, last = name.rpartition(".")
    try:
        kind = getattr(import_module(module), last)
    except (ImportError, AttributeError):
        raise FileFormatError(f"it names {name[:80]!r}, which this version of meanmap does not have") from None
    if not isinstance(kind, type) or not kind.__module__.startswith("meanmap."):
        raise FileFormatError(f"it names {name[:80]!r}, which is no class of meanmap")
    return kind


def _dtype(name: Any, kinds: str) -> np.dtype[Any]:
    """A type of numbers by its name, of one of the kinds; NumPy itself would read much more."""
    if not re.fullmatch(rf"[<>|=][{kinds}]\d{{0,9}}", _checked(name, str)):
        raise FileFormatError(f"it holds something of type {name[:40]!r}")
    return np.dtype(name)


def _range(content: Any) -> range:
    ends = [_checked(each, int) for each in _checked(content, list)]
    if len(ends) != 3 or ends[2] == 0 or max(map(abs, ends)) > LONGEST:
        raise FileFormatError(f"it counts from, to and by {str(content)[:40]}")
    return range(*ends)


def _float(content: Any) -> float:
    if content not in ("nan", "inf", "-inf"):
        raise FileFormatError(f"it holds the number {str(content)[:40]!r}")
    return float(content)


def _on_device(array: np.ndarray) -> jax.Array:
    with jax.enable_x64(True):
        return jnp.asarray(array)


def _checked(content: Any, kind: type) -> Any:
    if not isinstance(content, kind):
        raise FileFormatError(f"it holds {type(content).__name__} where {kind.__name__} was expected")
    return content
