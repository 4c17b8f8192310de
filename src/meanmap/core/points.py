"""Points as arrays: a pytree whose leaves share their leading axis, or a SciPy sparse matrix of rows."""

from collections.abc import Sequence
from typing import Any, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.containers import is_rotations, is_sparse
from meanmap.core.types import Index, Points

__all__ = [
    "abreast",
    "any_sparse",
    "bucket",
    "count",
    "dense",
    "has_rows",
    "in_columns",
    "joined",
    "library_of",
    "matrices_of",
    "of_batch",
    "on_device",
    "on_host",
    "one_row",
    "pad",
    "pieces",
    "row_shape",
    "rows",
    "slices",
    "spread_rows",
]


def library_of(*arrays: object) -> Any:
    """`jax.numpy` where one of the arrays is JAX's, else `numpy`."""
    return jnp if any(isinstance(array, jax.Array) for array in arrays) else np


def on_host(data: object) -> Any:
    """A JAX array as a NumPy array, anything else unchanged."""
    return np.asarray(data) if isinstance(data, jax.Array) else data


def on_device(tree: object) -> Any:
    """NumPy arrays and numbers of a tree as JAX arrays, without the program that `jnp.asarray` compiles for each shape.

    On a CPU both may share memory: the input must not be changed afterwards.
    """
    return jax.tree.map(lambda leaf: leaf if isinstance(leaf, jax.Array) else jax.device_put(leaf), tree)


def of_batch(index: Index) -> tuple[Any, ...]:
    """An index of the batch axes alone, which keeps all later axes."""
    return (*(index if isinstance(index, tuple) else (index,)), ..., slice(None))


def in_columns(points: object) -> TypeGuard[np.ndarray]:
    """Whether points are a matrix of NumPy: rows with columns."""
    return isinstance(points, np.ndarray) and points.ndim == 2


def matrices_of(data: Any) -> Any:
    """Rotations as matrices, sparse rows unchanged, anything else as NumPy reads it."""
    return data.as_matrix() if is_rotations(data) else data if is_sparse(data) else np.asarray(data)


def _leaves(points: Points) -> list:
    return jax.tree.leaves(points, is_leaf=is_sparse)


def count(points: Points) -> int:
    """The number of points."""
    return _leaves(points)[0].shape[0]


def has_rows(points: object) -> bool:
    """Whether `row_shape` takes points as a whole: sparse matrices, and points that define what rows must share."""
    return is_sparse(points) or hasattr(points, "row_shape")


def row_shape(points: Points) -> tuple[int, ...]:
    """What two sets of points must share; bags of samples define this themselves."""
    return points.row_shape if hasattr(points, "row_shape") else tuple(points.shape[1:])


def rows(points: Points, index: Index) -> Any:
    """The points at `index` (a slice or an integer array)."""
    return jax.tree.map(lambda leaf: leaf[index], points, is_leaf=is_sparse)


def slices(n: int, size: int) -> list[slice]:
    """0 to n in parts of a size, the last one shorter."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def pieces(values: Any, size: int) -> list[Any]:
    """An array in parts of this many rows."""
    return [values[part] for part in slices(len(values), size)]


def one_row(points: Points) -> Any:
    """The first point, with its leading axis: enough to determine shapes."""
    return rows(points, slice(0, 1))


def any_sparse(points: Points) -> bool:
    """Whether any part of `points` is sparse, and so must stay on the host."""
    return any(is_sparse(leaf) for leaf in _leaves(points))


def dense(points: Points) -> Any:
    """`points` with sparse parts as arrays: for a few of them only."""
    return jax.tree.map(lambda leaf: leaf.toarray() if is_sparse(leaf) else leaf, points, is_leaf=is_sparse)


def joined(*samples: Points) -> Any:
    """The points of several samples, one after another."""

    def join(*parts):
        if any(map(is_sparse, parts)):
            import scipy.sparse

            return scipy.sparse.vstack(parts).tocsr()
        library = library_of(*parts)
        return library.concatenate(parts)

    return jax.tree.map(join, *samples, is_leaf=is_sparse)


def abreast(parts: Sequence[Points]) -> Any:
    """Matrices with the same rows as one; sparse if all of them are."""
    if all(map(is_sparse, parts)):
        import scipy.sparse

        return scipy.sparse.hstack(parts, format="csr")
    return jnp.concatenate([dense(part) for part in parts], axis=-1)


def pad(points: Points, size: int) -> Any:
    """`points` lengthened to `size` rows by repeating the first one, so that padding is always a valid point."""

    def lengthen(leaf):
        missing = size - leaf.shape[0]
        if missing == 0:
            return leaf
        if is_sparse(leaf):
            return leaf[np.r_[0 : leaf.shape[0], np.zeros(missing, dtype=int)]]
        library = library_of(leaf)
        return library.concatenate([leaf, library.broadcast_to(leaf[:1], (missing, *leaf.shape[1:]))])

    return jax.tree.map(lengthen, points, is_leaf=is_sparse)


def bucket(n: int) -> int:
    """The next size of a short list, so that a new number of points seldom means a new compilation.

    Sizes are 16, 32, 64, ..., 256, and from there four to an octave: 320, 384, 448, 512, 640, ...

    Examples
    --------
    >>> [bucket(n) for n in (1, 17, 257, 1000)]
    [16, 32, 320, 1024]
    """
    if n <= 256:
        return max(16, 1 << (n - 1).bit_length())
    step = 1 << ((n - 1).bit_length() - 3)
    return -(-n // step) * step


def spread_rows(n: int, most: int) -> np.ndarray:
    """Row numbers of at most `most` of n rows, evenly spread."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).round().astype(int)
