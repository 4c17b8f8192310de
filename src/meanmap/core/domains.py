"""Domains: how a kernel reads what users pass into arrays. Each is a small hashable value."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import as_array, check_rows, read_matrix
from meanmap.core.door import Door, is_concrete
from meanmap.core.errors import ColumnError, InputError, KindError, ShapeError
from meanmap.core.table import Table

__all__ = ["Columns", "Domain", "Each", "Indices", "Labels", "Real", "Rotations", "Strings"]


class Domain(Protocol):
    """Reads users' data into points: a pytree of arrays with one leading axis, or a sparse matrix."""

    def read(self, data: Any, argument: str, door: Door) -> Any:
        """The points in `data`; `argument` names it in errors."""
        ...


@dataclass(frozen=True)
class Real:
    """Points of R^d, dense or (where the kernel allows) sparse."""

    sparse: bool = False

    def read(self, data: Any, argument: str, door: Door) -> Any:
        """An (n, d) array, from an array, a list, a DataFrame or a mapping of columns."""
        if Table.looks_like_one(data):
            data = Table.of(data, argument).matrix(argument=argument)
        return read_matrix(data, argument, door, self.sparse)


@dataclass(frozen=True)
class Labels:
    """Categories: text, integers, anything that is equal or not. Read as (n, d, 2) integers, two 32-bit words a label.

    Text is hashed to 64 bits, so that codes need no vocabulary and mean the same in every call; two of a million
    distinct labels share a code with probability 3e-8.
    """

    def read(self, data: Any, argument: str, door: Door) -> Any:
        """Codes of shape (n, d, 2); one axis means n points with one label each."""
        if isinstance(data, jax.Array):
            if not jnp.issubdtype(data.dtype, jnp.integer) and data.dtype != bool:
                raise KindError(f"{argument} is a JAX array of {data.dtype}; expected integer labels.")
            codes = data[:, None] if data.ndim == 1 else data
            if codes.ndim != 2:
                raise ShapeError(f"{argument} has shape {data.shape}; expected (n,) or (n, d) labels.")
            check_rows(codes.shape[0], argument)
            low = codes.astype(jnp.int32)
            return jnp.stack([low, jnp.where(low < 0, -1, 0)], axis=-1)
        if isinstance(data, str | bytes):
            raise KindError(f"{argument} is one text, {data!r}; expected a list of labels.")
        if Table.looks_like_one(data):
            table = Table.of(data, argument)
            columns = [table[name] for name in table.names]
        else:
            labels = np.asarray(data)
            if labels.ndim == 0 or labels.ndim > 2:
                raise ShapeError(f"{argument} has shape {labels.shape}; expected (n,) or (n, d) labels.")
            columns = [labels] if labels.ndim == 1 else list(labels.T)
        check_rows(len(columns[0]), argument)
        codes = np.stack([_codes(np.asarray(column), argument) for column in columns], axis=1)
        return jnp.asarray(codes) if door.follows else codes


def _codes(labels: np.ndarray, argument: str) -> np.ndarray:
    """64-bit codes of labels as pairs of int32: integers are their own code, anything else is hashed."""
    if labels.dtype.kind == "f" and (labels == np.round(labels)).all() and (np.abs(labels) < 2**53).all():
        labels = labels.astype(np.int64)
    if labels.dtype.kind in "iub":
        return np.ascontiguousarray(labels.astype(np.int64)).view(np.int32).reshape(-1, 2)
    if labels.dtype.kind == "O" and any(label is None or label != label for label in labels):
        raise InputError(
            f"{argument} has missing labels. Drop those rows, or give missing values a label of their own."
        )
    distinct, inverse = np.unique(labels.astype(str), return_inverse=True)
    digests = b"".join(hashlib.blake2b(text.encode(), digest_size=8).digest() for text in distinct)
    return np.frombuffer(digests, dtype="<i4").reshape(-1, 2)[inverse].astype(np.int32)


@dataclass(frozen=True)
class Rotations:
    """Rotation matrices, (n, 3, 3), or a `scipy.spatial.transform.Rotation`."""

    def read(self, data: Any, argument: str, door: Door) -> Any:
        """Matrices that are checked to be rotations."""
        if hasattr(data, "as_matrix"):
            data = data.as_matrix()
        matrices = data if isinstance(data, jax.Array) else as_array(data, argument)
        if matrices.shape == (3, 3):
            raise ShapeError(f"{argument} is one 3 × 3 matrix; expected (n, 3, 3): pass {argument}[None].")
        if matrices.ndim != 3 or matrices.shape[1:] != (3, 3):
            raise ShapeError(f"{argument} has shape {matrices.shape}; expected (n, 3, 3) rotation matrices.")
        check_rows(len(matrices), argument)
        if is_concrete(matrices):
            _check_rotations(np.asarray(matrices, dtype=np.float64), argument, door.dtype)
        return (jnp if door.follows else np).asarray(matrices, dtype=door.dtype)


def _check_rotations(matrices: np.ndarray, argument: str, dtype: np.dtype) -> None:
    tolerance = 1e3 * float(jnp.finfo(dtype).eps) ** (0.5 if dtype == np.float64 else 1.0)
    skew = np.abs(matrices.transpose(0, 2, 1) @ matrices - np.eye(3)).max(axis=(1, 2))
    wrong = ~(skew <= tolerance) | (np.linalg.det(matrices) < 0)
    if wrong.any():
        i = int(np.argmax(wrong))
        why = "its transpose is not its inverse" if not skew[i] <= tolerance else "its determinant is -1 (a reflection)"
        raise InputError(f"{argument}[{i}] is no rotation matrix: {why}. Project it first, for example with an SVD.")


@dataclass(frozen=True)
class Indices:
    """Row numbers of a matrix of given size, for kernels that are known only as a Gram matrix."""

    size: int

    def read(self, data: Any, argument: str, door: Door) -> Any:
        """Integers from 0 to size − 1, shape (n,)."""
        index = data if isinstance(data, jax.Array) else as_array(data, argument)
        if index.ndim == 2 and index.shape[1] == 1:
            index = index[:, 0]
        if index.ndim != 1:
            raise ShapeError(f"{argument} has shape {index.shape}; a precomputed kernel takes row numbers, shape (n,).")
        check_rows(len(index), argument)
        if is_concrete(index):
            values = np.asarray(index)
            if not (values == np.round(values)).all() or values.min() < 0 or values.max() >= self.size:
                raise InputError(
                    f"{argument} must hold row numbers from 0 to {self.size - 1} of the precomputed matrix."
                )
        return (jnp if door.follows else np).asarray(index, dtype=np.int32)


@dataclass(frozen=True)
class Strings:
    """Texts, read as sparse counts of their substrings of `length` characters.

    A substring's column is its 64-bit hash, so counts from different calls are comparable without a vocabulary.
    """

    length: int

    def read(self, data: Any, argument: str, door: Door) -> Any:
        """A CSR matrix of counts, one row per text."""
        import scipy.sparse

        if isinstance(data, str | bytes) or not hasattr(data, "__len__"):
            raise KindError(f"{argument} is {data!r}; expected a list of strings.")
        texts = list(data)
        check_rows(len(texts), argument)
        strange = next((text for text in texts if not isinstance(text, str)), None)
        if strange is not None:
            raise KindError(f"{argument} holds {strange!r} ({type(strange).__name__}); expected strings.")
        short = next((text for text in texts if len(text) < self.length), None)
        if short is not None:
            raise InputError(
                f"{argument} holds {short!r}, shorter than the substrings of {self.length} characters that are "
                "compared. Use a shorter length."
            )
        pieces = [[text[i : i + self.length] for i in range(len(text) - self.length + 1)] for text in texts]
        starts = np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])])
        codes = _codes(np.array([p for piece in pieces for p in piece]), argument).view(np.int64).ravel()
        columns = codes & (2**62 - 1)
        counts = scipy.sparse.csr_array((np.ones(len(columns)), columns, starts), shape=(len(texts), 2**62))
        counts.sum_duplicates()
        return counts


@dataclass(frozen=True)
class Columns:
    """Some columns of a table (or column numbers of an array), read by an inner domain."""

    names: tuple[str | int, ...]
    inner: Any

    def read(self, data: Any, argument: str, door: Door) -> Any:
        """The points in the chosen columns."""
        where = f"{argument}[{', '.join(map(repr, self.names))}]"
        if all(isinstance(name, str) for name in self.names):
            table = Table.of(data, argument).select([str(name) for name in self.names], argument)
            if isinstance(self.inner, Strings):
                return self.inner.read(list(table[str(self.names[0])]), where, door)
            return self.inner.read(table, where, door)
        array = data if isinstance(data, jax.Array) else np.asarray(data)
        if array.ndim != 2 or max(int(name) for name in self.names) >= array.shape[1]:
            raise ColumnError(f"{argument} has shape {array.shape}; expected a matrix with columns {list(self.names)}.")
        return self.inner.read(array[:, np.array(self.names, dtype=int)], where, door)


@dataclass(frozen=True)
class Each:
    """The same data read by several domains side by side, as a tuple of points."""

    parts: tuple[Any, ...]

    def read(self, data: Any, argument: str, door: Door) -> Any:
        """One reading per part."""
        return tuple(part.read(data, argument, door) for part in self.parts)


def column_names(names: str | int | Sequence[str | int]) -> tuple[str | int, ...]:
    """One name or several, as a tuple, refusing a mixture of names and numbers."""
    listed = (names,) if isinstance(names, str | int) else tuple(names)
    if not listed:
        raise ColumnError("no columns were named; expected at least one.")
    if not (all(isinstance(n, str) for n in listed) or all(isinstance(n, int) and n >= 0 for n in listed)):
        raise ColumnError(f"columns are {list(listed)}; expected names, or numbers from 0, but not both.")
    return listed
