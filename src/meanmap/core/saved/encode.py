"""Values to plain JSON and named arrays.

JSON stands for itself where it can: None, booleans, integers, finite floats, strings and lists. Anything else is an
object with one key that says what it is: `{"tuple": [...]}`, `{"array": "3"}` (a number of an array),
`{"value": [class, {field: value}]}` and so on.
"""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from meanmap.core.errors import KindError

__all__ = ["DEEPEST", "Encoder", "class_name", "state"]

# No value of the library is nested so deep.
DEEPEST = 100
KINDS = "biuf"  # what safetensors holds: booleans, whole numbers and floats


class Encoder:
    """Turns values into JSON; arrays are collected by number in `arrays`, each once however often it occurs."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        # By identity; the arrays are kept alive, so that no other takes the place of one.
        self._seen: dict[int, tuple[Any, dict[str, str]]] = {}

    def encode(self, value: object, where: str = "", depth: int = 0) -> Any:
        """The value as JSON; `where` names it in messages."""
        if depth > DEEPEST:
            raise KindError(f"this cannot be saved: it is nested more than {DEEPEST} deep, or holds itself.")
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if type(value) is list:
            return [self.encode(each, f"{where}[{i}]", depth + 1) for i, each in enumerate(value)]
        if isinstance(value, tuple):
            return {"tuple": [self.encode(each, f"{where}[{i}]", depth + 2) for i, each in enumerate(value)]}
        if _is_ours(type(value)) and not isinstance(value, type):
            parts = {name: self.encode(part, f"{where}.{name}", depth + 2) for name, part in state(value).items()}
            return {"value": [class_name(type(value)), parts]}
        if isinstance(value, Mapping):
            pairs = [(key, item, f"{where}[{key!r}]") for key, item in value.items()]
            return {"dict": [[self.encode(each, name, depth + 2) for each in (key, item)] for key, item, name in pairs]}
        if type(value) is range:
            return {"range": [value.start, value.stop, value.step]}
        if isinstance(value, np.datetime64 | np.timedelta64):
            return {"moment": [value.dtype.str, int(value.astype(np.int64))]}
        if isinstance(value, np.generic):
            self._check_digits(value.dtype, where)
            return {"scalar": [value.dtype.str, self.encode(value.item(), where)]}
        if isinstance(value, np.ndarray | jax.Array):
            return self._array(value, where)
        if scipy.sparse.issparse(value):
            rows: Any = scipy.sparse.csr_array(value)
            parts = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr, "shape": list(rows.shape)}
            return {"sparse": {name: self.encode(part, where) for name, part in parts.items()}}
        if isinstance(value, type) and _is_ours(value):
            return {"class": class_name(value)}
        what = f"{where.lstrip('.')} is" if where else "it is"
        raise KindError(
            f"this cannot be saved: {what} {value!r}, of type {type(value).__name__}. Numbers, text, arrays, lists, "
            "dictionaries and objects of meanmap can; a function or an object of another library cannot."
        )

    def _check_digits(self, dtype: np.dtype[Any], where: str) -> None:
        """Refuse numbers of more than 64 bits, as NumPy's long doubles are on some machines."""
        if dtype.kind in "iufc" and dtype.itemsize > (16 if dtype.kind == "c" else 8):
            raise KindError(
                f"this cannot be saved: {where.lstrip('.') or 'it'} holds {dtype}; expected at most 64 bits: "
                ".astype(float)."
            )

    def _array(self, value: object, where: str) -> Any:
        if id(value) in self._seen:
            return self._seen[id(value)][1]
        if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            data = np.asarray(jax.random.key_data(value))
            return {"key": [str(jax.random.key_impl(value)), self.encode(data, where)]}
        if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
            called = where.lstrip(".") or "it"
            raise KindError(
                f"this cannot be saved: {called} has masked entries. Fill them in first, as with .filled(nan)."
            )
        plain: Any = np.asarray(value)
        self._check_digits(plain.dtype, where)
        plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)  # as such a file holds them
        if plain.dtype.kind == "c":
            return {"complex": [plain.dtype.str, self.encode(np.stack([plain.real, plain.imag], axis=-1), where)]}
        if plain.dtype.kind == "U" and _is_sparse_text(plain):
            codes = np.ascontiguousarray(plain, plain.dtype.newbyteorder("<")).view(np.uint32)
            return {"words": [plain.dtype.str, self.encode(codes.reshape(*plain.shape, -1), where)]}
        if plain.dtype.kind in "UO":
            return {"objects": [plain.dtype.str, list(plain.shape), self.encode(plain.ravel().tolist(), where)]}
        if plain.dtype.kind in "mM":
            return {"times": [plain.dtype.str, self.encode(plain.astype(np.int64), where)]}
        if plain.dtype.kind not in KINDS:
            raise KindError(f"this cannot be saved: {where.lstrip('.') or 'it'} is an array of {plain.dtype}.")
        number = str(len(self.arrays))
        self.arrays[number] = np.ascontiguousarray(plain).reshape(plain.shape)
        found = {"jax" if isinstance(value, jax.Array) else "array": number}
        self._seen[id(value)] = (value, found)
        return found


def _is_sparse_text(words: np.ndarray) -> bool:
    """Whether one long word makes an array far larger than its words: it is then stored as it lies in memory."""
    return words.nbytes > 16 * (int(np.strings.str_len(words).sum()) + words.size)


def class_name(kind: type) -> str:
    """The name of a class in a file: by the folder in which it is public, so that it can move between files."""
    folder = ".".join(kind.__module__.split(".")[:2])
    public = getattr(import_module(folder), kind.__qualname__, None) is kind
    return f"{folder if public else kind.__module__}.{kind.__qualname__}"


def state(value: Any) -> dict[str, Any]:
    """What an object holds: the fields of a dataclass, otherwise its attributes without what it works out by itself.

    An object with a method `to_save` is saved as what that gives, one of the same class.
    """
    if hasattr(value, "to_save"):
        value = value.to_save()
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value) if hasattr(value, field.name)}
    made = {name for name in vars(value) if isinstance(getattr(type(value), name, None), cached_property)}
    return {name: part for name, part in vars(value).items() if name not in made}


def _is_ours(kind: type) -> bool:
    return kind.__module__.split(".")[0] == "meanmap" and "<" not in kind.__qualname__
