"""Domains: how a kernel converts users' data to arrays. Each is a small hashable value."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import array_of, check_finite, check_rows, read_matrix
from meanmap.core.containers import is_rotations, is_sparse
from meanmap.core.door import Door, is_concrete
from meanmap.core.errors import ColumnError, InputError, KindError, ShapeError
from meanmap.core.labels import Labels, hashes
from meanmap.core.points import matrices_of
from meanmap.core.tables.table import Table, table_in
from meanmap.core.types import Data

__all__ = ["Columns", "Domain", "Each", "Indices", "Real", "Rotations", "Strings"]


class Domain(Protocol):
    """Reads users' data into points: a pytree of arrays with one leading axis, or a sparse matrix."""

    def read(self, data: Data, argument: str, door: Door) -> Any:
        """The points in `data`; `argument` names it in errors."""
        ...


def holds_vectors(domain: Domain) -> bool:
    """Whether points are vectors, which have columns, means and directions; a domain says so by `vectors = True`."""
    return getattr(domain, "vectors", False)


@dataclass(frozen=True)
class Real:
    """Points of R^d, dense or (where the kernel allows) sparse."""

    sparse: bool = False

    vectors: ClassVar[bool] = True

    def read(self, data: Data, argument: str, door: Door) -> Any:
        """An (n, d) array, from an array, a list, a DataFrame or a mapping of columns."""
        if table := table_in(data, argument):
            data = table.matrix(argument=argument)
        return read_matrix(data, argument, door, self.sparse)


@dataclass(frozen=True)
class Rotations:
    """Rotation matrices, (n, 3, 3), or a `scipy.spatial.transform.Rotation`."""

    def read(self, data: Data, argument: str, door: Door) -> Any:
        """Matrices, after checking that they are rotations."""
        if is_rotations(data):
            data = matrices_of(data)
        matrices = array_of(data, argument)
        if matrices.shape == (3, 3):
            raise ShapeError(f"{argument} is one 3 × 3 matrix; expected (n, 3, 3): pass {argument}[None].")
        if matrices.ndim != 3 or matrices.shape[1:] != (3, 3):
            raise ShapeError(f"{argument} has shape {matrices.shape}; expected (n, 3, 3) rotation matrices.")
        check_rows(len(matrices), argument)
        check_finite(matrices, argument)
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
        raise InputError(f"{argument}[{i}] is not a rotation matrix: {why}. Project it first, for example with an SVD.")


@dataclass(frozen=True)
class Indices:
    """Row numbers of a matrix of given size, for kernels known only through a Gram matrix."""

    size: int

    def read(self, data: Data, argument: str, door: Door) -> Any:
        """Integers from 0 to size − 1, shape (n,)."""
        index = array_of(data, argument)
        if index.dtype == bool:
            raise KindError(f"{argument} is a mask; expected row numbers: pass numpy.flatnonzero({argument}).")
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

    A substring's column is its 64-bit hash, so counts from different calls are comparable without a vocabulary. A
    shorter text counts as a single substring, and is similar only to the same text.
    """

    length: int

    def read(self, data: Data, argument: str, door: Door) -> Any:
        """A CSR matrix of counts, one row per text."""
        import scipy.sparse

        if isinstance(data, str | bytes) or not hasattr(data, "__len__"):
            raise KindError(f"{argument} is {data!r}; expected a list of strings.")
        texts = list(_one_column(data, argument))
        check_rows(len(texts), argument)
        for row, text in enumerate(texts):
            if not isinstance(text, str):
                raise KindError(f"{argument} holds {text!r} ({type(text).__name__}) in row {row}; expected strings.")
        pieces = [[text[i : i + self.length] for i in range(max(len(text) - self.length + 1, 1))] for text in texts]
        starts = np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])])
        codes = hashes(np.array([p for piece in pieces for p in piece])).view(np.int64).ravel()
        columns = codes & (2**62 - 1)
        counts = scipy.sparse.csr_array((np.ones(len(columns)), columns, starts), shape=(len(texts), 2**62))
        counts.sum_duplicates()
        return counts


def _one_column(data: Any, argument: str) -> Any:
    """The only column of a table or matrix of texts."""
    table = table_in(data, argument)
    width = len(table.names) if table else np.shape(data)[1] if np.ndim(data) == 2 else 1
    if width != 1:
        raise ShapeError(f"{argument} has {width} columns; expected one column of texts.")
    if table:
        return next(iter(table.columns.values()))
    return np.ravel(data) if np.ndim(data) == 2 else data


@dataclass(frozen=True)
class Columns:
    """Some columns of a table (or column numbers of an array), read by an inner domain."""

    names: tuple[str | int, ...]
    inner: Any

    def read(self, data: Any, argument: str, door: Door) -> Any:
        """The points in the chosen columns."""
        where = f"{argument}[{', '.join(map(repr, self.names))}]"
        if Table.looks_like_one(data) or isinstance(self.names[0], str):
            return self.inner.read(Table.of(data, argument, only=self.names), where, door)
        matrix = data.tocsr() if is_sparse(data) else data if isinstance(data, jax.Array) else np.asarray(data)
        if matrix.ndim != 2 or max(int(name) for name in self.names) >= matrix.shape[1]:
            raise ColumnError(
                f"{argument} has shape {matrix.shape}; expected a matrix with columns {list(self.names)}."
            )
        return self.inner.read(matrix[:, np.array(self.names, dtype=int)], where, door)


@dataclass(frozen=True)
class Each:
    """Several domains that each read the same data; points are the tuple of their readings."""

    parts: tuple[Any, ...]

    def read(self, data: Data, argument: str, door: Door) -> Any:
        """One reading per part."""
        return tuple(part.read(data, argument, door) for part in self.parts)


def holds_labels(domain: Domain) -> bool:
    """Whether points are labels, which are kept as codes, in some column at least."""
    if isinstance(domain, Columns):
        return holds_labels(domain.inner)
    if isinstance(domain, Each):
        return any(map(holds_labels, domain.parts))
    return isinstance(domain, Labels)


def column_names(names: str | int | Sequence[str | int]) -> tuple[str | int, ...]:
    """One name or several, as a tuple; a mixture of names and numbers is refused."""
    one = isinstance(names, str | int | np.integer)
    listed = tuple(int(n) if isinstance(n, np.integer) else n for n in ((names,) if one else names))
    if not listed:
        raise ColumnError("no columns were named; expected at least one.")
    if not (all(isinstance(n, str) for n in listed) or all(isinstance(n, int) and n >= 0 for n in listed)):
        raise ColumnError(f"columns are {list(listed)}; expected names, or numbers from 0, but not both.")
    if len(set(listed)) < len(listed):
        raise ColumnError(f"columns are {list(listed)}; expected each of them once.")
    return listed
