"""Gram matrices by tiles: full ones, and products with large ones that are never stored.

Small ones are computed by NumPy if the formula of a kernel allows it, because compiling a program would take longer.
Otherwise a tile is one compiled call on a fixed shape, so a new number of points does not compile anything new once it
exceeds a tile, and a 512 × 512 tile of doubles (2 MiB) stays in a core's cache between the distance and the
exponential.
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.anew import compiled_anew
from meanmap.core.door import Door
from meanmap.core.points import any_sparse, bucket, count, library_of, on_device, pad, rows, slices
from meanmap.core.progress import track
from meanmap.core.types import Array, Points

__all__ = [
    "diagonal_array",
    "gram_array",
    "gram_matrix",
    "point_values",
    "product",
    "streamed_product",
    "suits_numpy",
    "times",
]

TILE = 512
# Up to this many kernel values NumPy takes a millisecond or two: one more than a compiled program, which first takes 50
# to compile.
FEW_VALUES = 1 << 17
# NumPy computes this many values at a time, so that intermediate arrays stay in a core's nearest cache and need no new
# memory for each step.
NUMPY_BLOCK = 1 << 15
# Two tiles computed while two are copied keep both the cores and the copying busy.
IN_FLIGHT = 4
# Rows of a sparse Gram block are chosen so that a block holds about this many numbers (64 MiB).
SPARSE_BLOCK = 1 << 23
Place = TypeVar("Place")


class OnPoints(Protocol):
    """The part of a kernel used here: values between points already read."""

    @property
    def in_numpy(self) -> bool:
        """Whether its values can be computed with NumPy."""
        ...

    def gram(self, x: Points, y: Points) -> jax.Array:
        """k(xᵢ, yⱼ) for all pairs, (n, m)."""
        ...

    def diagonal(self, x: Points) -> jax.Array:
        """k(xᵢ, xᵢ) for each point, (n,)."""
        ...


def gram_matrix(kernel: OnPoints, x: Points, y: Points = None, out: np.ndarray | None = None) -> np.ndarray:
    """The Gram matrix of points already read, on the host; `y=None` means `y = x` and computes one half.

    Tiles are computed in the scope's precision and written to `out`, if given, in its own.

    Cost O(n m d) time; memory is that of the result and a few tiles.
    """
    symmetric = y is None
    y = x if symmetric else y
    if any_sparse((x, y)):
        return _sparse_gram(kernel, x, y, symmetric, out)
    out = np.empty((count(x), count(y))) if out is None else out
    if suits_numpy(kernel, x, y):
        out[:] = _numpy_gram(kernel, x, y)
    else:
        _fill_by_tiles(kernel, x, y, symmetric, out)
    if symmetric:
        # Expanded distances are wrong by 1e-16 on the diagonal, and their square roots by 1e-8.
        np.fill_diagonal(out, _diagonal_by_tiles(kernel, x))
    return out


def gram_array(kernel: OnPoints, x: Points, y: Points = None) -> Any:
    """The Gram matrix as a pure function of JAX arrays, for use under `jit`, `vmap` and `grad`; all of it at once."""
    if any_sparse((x, y)):
        with jax.enable_x64(True):  # sparse points stay on the host, in float64
            return gram_matrix(kernel, x, y)
    return _square(kernel, x) if y is None else _tile(kernel, x, y)


def diagonal_array(kernel: OnPoints, x: Points, door: Door) -> Any:
    """k(xᵢ, xᵢ), as NumPy or JAX like the inputs."""
    if any_sparse(x):
        with jax.enable_x64(True):
            diagonal = _sparse_diagonal(kernel, x)
        return jnp.asarray(diagonal, door.dtype) if door.follows else diagonal
    if door.follows:
        return point_values(kernel, x).astype(door.dtype)
    if _in_numpy(kernel, x):
        return _numpy_diagonal(kernel, x)
    n = count(x)
    return np.array(np.asarray(point_values(kernel, pad(x, bucket(n))))[:n])


@compiled_anew
@jax.jit
def point_values(kernel: OnPoints, x: Points) -> jax.Array:
    """k(xᵢ, xᵢ), compiled."""
    return kernel.diagonal(x)


def times(kernel: OnPoints, x: Points, y: Points, v: Array, door: Door) -> Any:
    """K(x, y) v for v of shape (m, q), streamed, as NumPy or JAX like the inputs."""
    if door.follows and not any_sparse((x, y)):
        return product(kernel, x, y, on_device(v))
    with jax.enable_x64(True):  # sparse points stay on the host, in float64
        result = streamed_product(kernel, x, y, np.asarray(v))
    return jnp.asarray(result, door.dtype) if door.follows else result


@compiled_anew
@jax.jit
def product(kernel: OnPoints, x: Points, y: Points, v: jax.Array) -> jax.Array:
    """K(x, y) v as a pure function of JAX arrays, for use under `jit`, `vmap` and `grad`; same streaming."""
    n = count(x)
    y_tiles, v_tiles = _stack(y, v, bucket_tiles=False)
    size = min(TILE, n)
    number = -(-n // size)
    x_tiles = jax.tree.map(lambda leaf: leaf.reshape(number, size, *leaf.shape[1:]), pad(x, number * size))
    result = jax.lax.map(lambda tile: _row_of_tiles(kernel, tile, y_tiles, v_tiles), x_tiles)
    return result.reshape(number * size, -1)[:n]


def streamed_product(kernel: OnPoints, x: Points, y: Points, v: np.ndarray) -> np.ndarray:
    """K(x, y) v on the host for v of shape (m, q), holding one row of tiles at a time. Cost O(n m (d + q))."""
    if any_sparse((x, y)):
        return np.concatenate([block @ v for block in _sparse_blocks(kernel, x, y)])
    if suits_numpy(kernel, x, y):
        return _numpy_gram(kernel, x, y) @ v
    y_tiles, v_tiles = _stack(y, v, bucket_tiles=True)
    ranges, x_tiles = _tiles(x)
    if len(ranges) > 1:
        kernel, y_tiles, v_tiles = on_device((kernel, y_tiles, v_tiles))  # once, not in every call
    out = np.empty((count(x), v.shape[1]))
    rows_of_tiles = zip(ranges, track(x_tiles, "kernel sums"), strict=True)
    sums = ((part, _row_of_tiles(kernel, tile, y_tiles, v_tiles)) for part, tile in rows_of_tiles)
    for part, result in _in_flight(sums):
        out[part] = result[: part.stop - part.start]
    return out


def suits_numpy(kernel: OnPoints, *points: Points) -> bool:
    """Whether kernel values between this many points, on the host, are few enough to be computed by NumPy at once."""
    return math.prod(map(count, points)) <= FEW_VALUES and _in_numpy(kernel, *points)


def _in_numpy(kernel: OnPoints, *points: Points) -> bool:
    return kernel.in_numpy and not any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves((kernel, points)))


def _numpy_gram(kernel: OnPoints, x: Points, y: Points) -> np.ndarray:
    """The Gram matrix of points for which `suits_numpy`, some rows at a time; overflow gives infinity, as in a tile."""
    out = np.empty((count(x), count(y)))
    with np.errstate(all="ignore"):
        for part in slices(len(out), max(1, NUMPY_BLOCK // max(out.shape[1], 1))):
            out[part] = kernel.gram(rows(x, part), y)
    return out


def _numpy_diagonal(kernel: OnPoints, x: Points) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.array(kernel.diagonal(x))


def _fill_by_tiles(kernel: OnPoints, x: Points, y: Points, symmetric: bool, out: np.ndarray) -> None:
    """Write the Gram matrix tile by tile; if it is symmetric only one half is computed."""
    row_ranges, row_tiles = _tiles(x)
    column_ranges, column_tiles = (row_ranges, row_tiles) if symmetric else _tiles(y)
    if len(row_ranges) * len(column_ranges) > 1:
        kernel = on_device(kernel)  # once, not in every call
    tiles = (
        ((i, j), _tile(kernel, row_tiles[a], column_tiles[b]))
        for a, i in enumerate(track(row_ranges, "kernel values"))
        for b, j in enumerate(column_ranges)
        if b <= a or not symmetric
    )
    for (i, j), tile in _in_flight(tiles):
        block = tile[: i.stop - i.start, : j.stop - j.start]
        out[i, j] = block
        if symmetric and i != j:
            out[j, i] = block.T


def _diagonal_by_tiles(kernel: OnPoints, x: Points) -> np.ndarray:
    """k(xᵢ, xᵢ), in tiles of the same shape as those of the Gram matrix."""
    if _in_numpy(kernel, x):
        return _numpy_diagonal(kernel, x)
    return np.concatenate([np.asarray(point_values(kernel, tile)) for tile in _tiles(x)[1]])[: count(x)]


def _in_flight(computed: Iterable[tuple[Place, jax.Array]]) -> Iterator[tuple[Place, np.ndarray]]:
    """Results on the host, each beside its place: some are computed while earlier ones are copied."""
    waiting: deque[tuple[Place, jax.Array]] = deque()
    for each in computed:
        waiting.append(each)
        if len(waiting) > IN_FLIGHT:
            place, result = waiting.popleft()
            yield place, np.asarray(result)
    while waiting:
        place, result = waiting.popleft()
        yield place, np.asarray(result)


def _tiles(points: Points) -> tuple[list[slice], list[Any]]:
    """Row ranges of the tiles of `points`, and the tiles padded to one shape and moved to the device."""
    n = count(points)
    size = min(TILE, bucket(n))
    ranges = slices(n, size)
    tiles = [pad(rows(points, part), size) for part in ranges]
    return ranges, tiles if len(tiles) == 1 else [on_device(tile) for tile in tiles]


def _stack(y: Points, v: Array, bucket_tiles: bool) -> tuple[Any, Any]:
    """y and v cut into tiles along a new leading axis; padding points get weight zero."""
    m = count(y)
    size = min(TILE, bucket(m)) if bucket_tiles else min(TILE, m)
    number = -(-m // size)
    if bucket_tiles and number > 16:
        number = bucket(number)
    total = number * size
    y = jax.tree.map(lambda leaf: leaf.reshape(number, size, *leaf.shape[1:]), pad(y, total))
    # On the host NumPy pads: in JAX every new number of points would be compiled.
    library = library_of(v)
    v = library.concatenate([v, library.zeros((total - m, v.shape[1]), v.dtype)])
    return y, v.reshape(number, size, -1)


@compiled_anew
@jax.jit
def _tile(kernel: OnPoints, x: Points, y: Points) -> jax.Array:
    return kernel.gram(x, y)


@compiled_anew
@jax.jit
def _square(kernel: OnPoints, x: Points) -> jax.Array:
    # The diagonal is set explicitly: expanded distances are wrong by 1e-7 there in float32, and their roots by 3e-4.
    return jnp.where(jnp.eye(count(x), dtype=bool), kernel.diagonal(x)[:, None], kernel.gram(x, x))


@compiled_anew
@jax.jit
def _row_of_tiles(kernel: OnPoints, x: Points, y_tiles: Any, v_tiles: jax.Array) -> jax.Array:
    """K(x, y) v for one tile of x, y running over tiles; only one tile of K exists at a time."""

    def step(total, tile):
        y, v = tile
        return total + jnp.matmul(kernel.gram(x, y), v, precision="highest"), None

    start = jnp.zeros((count(x), v_tiles.shape[-1]), v_tiles.dtype)
    return jax.lax.scan(step, start, (y_tiles, v_tiles))[0]


def _sparse_gram(kernel: OnPoints, x: Points, y: Points, symmetric: bool, out: np.ndarray | None) -> np.ndarray:
    """The Gram matrix of points of which some are sparse, on the host."""
    whole = np.concatenate(list(_sparse_blocks(kernel, x, y)))
    if symmetric:
        np.fill_diagonal(whole, _sparse_diagonal(kernel, x))
    if out is None:
        return whole
    out[:] = whole
    return out


def _sparse_blocks(kernel: OnPoints, x: Points, y: Points) -> Iterator[np.ndarray]:
    """The Gram matrix of sparse points by blocks of rows, in sizes of a short list like those of dense points."""
    m = count(y)
    y = pad(y, bucket(m))
    for part in slices(count(x), max(1, SPARSE_BLOCK // m)):
        n = part.stop - part.start
        yield np.asarray(kernel.gram(pad(rows(x, part), bucket(n)), y))[:n, :m]


def _sparse_diagonal(kernel: OnPoints, x: Points) -> np.ndarray:
    n = count(x)
    return np.array(np.asarray(kernel.diagonal(pad(x, bucket(n))))[:n])
