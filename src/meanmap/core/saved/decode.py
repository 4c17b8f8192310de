"""Plain JSON and named arrays back to values. Nothing is run: objects get their fields, and no method is called."""

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from types import UnionType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from meanmap.core.errors import FileFormatError
from meanmap.core.saved.encode import DEEPEST
from meanmap.core.saved.fitting import fits, hints_of
from meanmap.core.values import as_tuple

__all__ = ["Decoder"]

# No value of the library counts this many nodes.
LONGEST = 2**40
# What may be made of a file beyond its own arrays: this many bytes, and this many for each of the file.
SPARE, TIMES = 2**26, 100
# The folders whose classes a file may name.
NAME = re.compile(
    r"meanmap\.(bp|core|embeddings|ep|families|features|graphs|kernels|learning|linalg|plots|stats|structure)(\.\w+)+"
)


class Decoder:
    """Turns JSON into values, with the arrays that it names; `size` is that of the file, which bounds the memory."""

    def __init__(self, arrays: Mapping[str, np.ndarray], size: int) -> None:
        self.arrays = arrays
        self.left = SPARE + TIMES * size
        self.on_device: dict[str, jax.Array] = {}
        self.readers: dict[str, Callable[[Any, int], Any]] = {
            "tuple": lambda content, depth: tuple(self._list(content, depth)),
            "dict": self._dict,
            "range": lambda content, depth: _range(content),
            "float": lambda content, depth: _float(content),
            "scalar": self._scalar,
            "array": lambda content, depth: self._stored(content),
            "jax": lambda content, depth: self._on_device(content),
            "key": self._key,
            "complex": self._complex,
            "objects": self._objects,
            "words": self._words,
            "times": self._times,
            "moment": lambda content, depth: _moment(content),
            "sparse": self._sparse,
            "class": lambda content, depth: _class(content),
            "value": self._value,
        }

    def decode(self, content: object, depth: int = 0) -> Any:
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

    def _list(self, content: object, depth: int) -> list[Any]:
        return [self.decode(each, depth + 1) for each in _checked(content, list)]

    def _dict(self, content: object, depth: int) -> dict[Any, Any]:
        pairs = [self._list(each, depth) for each in _checked(content, list)]
        for key, _ in pairs:
            _check_key(key)
        return dict(pairs)

    def _scalar(self, content: object, depth: int) -> Any:
        name, value = _checked(content, list)
        return _dtype(name, "biufU").type(_checked(self.decode(value, depth), bool | int | float | str))

    def _spend(self, size: int) -> None:
        """Count `size` bytes allocated in addition to the file's own arrays."""
        self.left -= size
        if self.left < 0:
            raise FileFormatError("it would need far more memory than the size of the file")

    def _stored(self, content: object) -> np.ndarray:
        if not isinstance(content, str) or content not in self.arrays:
            raise FileFormatError(f"it refers to an array {str(content)[:40]!r} that it does not hold")
        return self.arrays[content]

    def _on_device(self, content: Any) -> jax.Array:
        stored = self._stored(content)
        if content not in self.on_device:
            with jax.enable_x64(True):
                self.on_device[content] = jnp.asarray(stored)
        return self.on_device[content]

    def _array(self, content: object, depth: int) -> np.ndarray:
        found = _checked(self.decode(content, depth), np.ndarray)
        self._spend(found.nbytes)  # for the copy that is made of it
        return found

    def _key(self, content: object, depth: int) -> Any:
        name, data = _checked(content, list)
        return jax.random.wrap_key_data(jnp.asarray(self._array(data, depth)), impl=_checked(name, str))

    def _complex(self, content: object, depth: int) -> np.ndarray:
        name, pairs = _checked(content, list)
        values = self._array(pairs, depth)
        kind = _dtype(name, "c")
        if values.shape[-1:] != (2,) or values.dtype.itemsize * 2 != kind.itemsize:
            raise FileFormatError("it holds complex numbers that are not pairs")
        return np.ascontiguousarray(values).view(kind)[..., 0]

    def _objects(self, content: object, depth: int) -> np.ndarray:
        name, shape, values = _checked(content, list)
        flat = self._list(values, depth)
        kind = _dtype(name, "UO")
        self._spend(len(flat) * kind.itemsize)
        array = np.empty(len(flat), kind)
        for i, each in enumerate(flat):  # one by one: all together, lists and ranges among them would be spread out
            array[i] = _checked(each, str) if kind.kind == "U" else each
        return array.reshape([_checked(each, int) for each in _checked(shape, list)])

    def _words(self, content: object, depth: int) -> np.ndarray:
        name, codes = _checked(content, list)
        kind, values = _dtype(name, "U"), self._array(codes, depth)
        if values.dtype != np.uint32 or values.size == 0 or values.max() > sys.maxunicode:
            raise FileFormatError("it holds text that is not valid Unicode")
        return values.view(kind.newbyteorder("<"))[..., 0].astype(kind, copy=False)

    def _times(self, content: object, depth: int) -> np.ndarray:
        name, counts = _checked(content, list)
        values = self._array(counts, depth)
        if values.dtype != np.int64:
            raise FileFormatError("it holds times that are not whole numbers")
        return values.astype(_unit_of_time(name))

    def _sparse(self, content: object, depth: int) -> Any:
        parts = _checked(content, dict)
        arrays = tuple(self._array(parts[name], depth) for name in ("data", "indices", "indptr"))
        shape = tuple(_checked(each, int) for each in _checked(parts["shape"], list))
        found = scipy.sparse.csr_array(arrays, shape=shape)
        found.check_format(full_check=True)
        return found

    def _value(self, content: object, depth: int) -> Any:
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
            for each, value in held.items():
                if not fits(value, hints_of(kind).get(each, Any)):
                    raise FileFormatError(
                        f"the field {each!r} of its {kind.__name__} holds {type(value).__name__}: another version of "
                        "meanmap wrote it, or it was altered"
                    )
            defaults = {each: known[each].default for each in known if known[each].default is not MISSING}
            held = {**defaults, **held}
        made = object.__new__(kind)
        vars(made).update(held)  # not by setattr, which would call the setters of its class
        return made


def _required(field: Any) -> bool:
    # A field that its class fills in by itself was there when the object was saved, if it was there at all.
    return field.init and field.default is MISSING and field.default_factory is MISSING


def _class(name: Any) -> type:
    """A class of the library by its name; no other can be named."""
    if not NAME.fullmatch(_checked(name, str)):
        raise FileFormatError(f"it names {name[:80]!r}, which is not a class that can be loaded")
    module, _, last = name.rpartition(".")
    try:
        kind = getattr(import_module(module), last)
    except (ImportError, AttributeError):
        raise FileFormatError(f"it names {name[:80]!r}, which this version of meanmap does not have") from None
    if not isinstance(kind, type) or not kind.__module__.startswith("meanmap."):
        raise FileFormatError(f"it names {name[:80]!r}, which is not a class of meanmap")
    return kind


def _dtype(name: Any, kinds: str) -> np.dtype[Any]:
    """A type of numbers by its name, of one of the kinds; NumPy itself would accept much more."""
    if not re.fullmatch(rf"[<>|=][{kinds}]\d{{0,9}}", _checked(name, str)):
        raise FileFormatError(f"it holds something of type {name[:40]!r}")
    return np.dtype(name)


def _unit_of_time(name: Any) -> np.dtype[Any]:
    """A type of times by its name."""
    if not re.fullmatch(r"<[mM]8\[(Y|M|W|D|h|m|s|ms|us|ns)\]", _checked(name, str)):
        raise FileFormatError(f"it holds times of type {name[:40]!r}")
    return np.dtype(name)


def _moment(content: object) -> Any:
    name, count = _checked(content, list)
    if abs(_checked(count, int)) > 2**63 - 1 or isinstance(count, bool):
        raise FileFormatError("it holds a time that is not a whole number of 64 bits")
    return np.array(count, np.int64).astype(_unit_of_time(name))[()]


def _range(content: object) -> range:
    ends = [_checked(each, int) for each in _checked(content, list)]
    if len(ends) != 3 or ends[2] == 0 or max(map(abs, ends)) > LONGEST:
        raise FileFormatError(f"it counts from, to and by {str(content)[:40]}")
    return range(*ends)


def _float(content: object) -> float:
    if content not in ("nan", "inf", "-inf"):
        raise FileFormatError(f"it holds the number {str(content)[:40]!r}")
    return float(content)


def _check_key(key: object) -> None:
    """Refuse keys other than plain values: hashing and comparing them would call methods of the objects in the file."""
    for each in as_tuple(key):
        if isinstance(each, tuple):
            _check_key(each)
        elif each is not None:
            _checked(each, bool | int | float | str | np.generic)


def _checked(content: object, kind: type | UnionType) -> Any:
    if not isinstance(content, kind):
        expected = kind.__name__ if isinstance(kind, type) else "a plain value"
        raise FileFormatError(f"it holds {type(content).__name__} where {expected} was expected")
    return content
