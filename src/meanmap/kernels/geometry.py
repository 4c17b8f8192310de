"""Inner products and squared distances between rows, dense or sparse."""

import sys
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.containers import is_sparse
from meanmap.core.door import is_concrete
from meanmap.core.errors import KindError
from meanmap.core.points import any_sparse, dense, library_of, matrices_of, slices
from meanmap.core.types import Array, Points

__all__ = [
    "FEW_COLUMNS",
    "inner_products",
    "known",
    "pair_distances",
    "safe_sqrt",
    "scale_columns",
    "squared_distances",
    "squared_norms",
    "unaided_distances",
]

# Up to this many columns, summing squared differences costs no more than a matrix product (both are hidden behind the
# exponential) and has no cancellation.
FEW_COLUMNS = 3
# Distances of this many pairs are computed at once: they stay in a core's cache.
PAIR_BLOCK = 1 << 15
# SciPy is imported for more differences of numbers than this, which take NumPy as long as the import.
WORTH_SCIPY = 50_000_000
# Sparse matrices wider than this are re-indexed by the columns that occur before they are multiplied.
WIDE = 1 << 24


def inner_products(x: Points, y: Points) -> jax.Array:
    """⟨xᵢ, yⱼ⟩ for all rows, (n, m). Sparse rows are multiplied as sparse matrices on the host."""
    if any_sparse((x, y)):
        return jnp.asarray(_sparse_products(x, y))
    return x @ y.T if library_of(x, y) is np else jnp.matmul(x, y.T, precision="highest")


def _sparse_products(x: Points, y: Points) -> np.ndarray:
    x, y = (known(m, "the dense one of x and y") for m in (x, y))
    if x.shape[1] > WIDE:
        x, y = _by_columns_that_occur(x, y)
    return np.asarray(dense(x @ y.T))


def _by_columns_that_occur(x: Points, y: Points) -> tuple[Any, Any]:
    import scipy.sparse

    x, y = scipy.sparse.csr_array(x), scipy.sparse.csr_array(y)
    occurring = np.unique(np.concatenate([x.indices, y.indices]))

    def relabel(m):
        columns = np.searchsorted(occurring, m.indices)
        return scipy.sparse.csr_array((m.data, columns, m.indptr), shape=(m.shape[0], len(occurring)))

    return relabel(x), relabel(y)


def squared_norms(x: Points) -> jax.Array:
    """|xᵢ|² for each row."""
    if is_sparse(x):
        return jnp.asarray(np.asarray(x.multiply(x).sum(axis=1)).ravel())
    return library_of(x).sum(x * x, axis=-1)


def squared_distances(x: Points, y: Points) -> jax.Array:
    """|xᵢ − yⱼ|² for all rows, (n, m).

    With few columns by differences; otherwise by |x|² + |y|² − 2⟨x, y⟩ about the mean of y, which keeps the
    cancellation small for data far from the origin.
    """
    if any_sparse((x, y)):
        return jnp.maximum(squared_norms(x)[:, None] + squared_norms(y)[None, :] - 2 * inner_products(x, y), 0)
    if x.shape[1] <= FEW_COLUMNS:
        return sum((x[:, d, None] - y[None, :, d]) ** 2 for d in range(x.shape[1]))  # pyright: ignore[reportReturnType]
    library = library_of(x, y)
    centre = np.mean(y, axis=0) if library is np else jax.lax.stop_gradient(jnp.mean(y, axis=0))
    x, y = x - centre, y - centre
    return library.maximum(squared_norms(x)[:, None] + squared_norms(y)[None, :] - 2 * inner_products(x, y), 0)


def pair_distances(points: np.ndarray, metric: Literal["euclidean", "cityblock"] = "euclidean") -> np.ndarray:
    """Distances of all pairs i < j of NumPy rows, by differences.

    `scipy.spatial.distance.pdist` gives the same bits in as little as a fifth of the time, but takes thirty
    milliseconds to import: it is used if it is already imported or if that pays.
    """
    if "scipy.spatial.distance" not in sys.modules and len(points) * points.size < WORTH_SCIPY:
        return unaided_distances(points, metric)
    from scipy.spatial.distance import pdist

    return pdist(points, metric)


def unaided_distances(points: np.ndarray, metric: Literal["euclidean", "cityblock"]) -> np.ndarray:
    """`pair_distances` by NumPy alone."""
    n, width = points.shape
    found = np.empty(n * (n - 1) // 2)
    first = np.arange(n) * (2 * n - np.arange(n) - 1) // 2  # where the pairs of each row begin
    with np.errstate(over="ignore"):  # infinitely far apart
        for part in slices(n, max(PAIR_BLOCK // max(n, 1), 1)):
            some, others = points[part], points[part.start + 1 :]
            steps = (some[:, d, None] - others[:, d] for d in range(width))
            total: Any = sum(np.abs(step) if metric == "cityblock" else np.square(step) for step in steps)
            for i, row in enumerate(total):
                found[first[part.start + i] : first[part.start + i] + len(others) - i] = row[i:]
    return found if metric == "cityblock" else np.sqrt(found, out=found)


def scale_columns(x: Points, lengthscale: Array) -> Any:
    """x / ℓ, ℓ one number or one per column."""
    if is_sparse(x):
        return x.multiply(1 / known(lengthscale, "lengthscale")).tocsr()
    return x / lengthscale


def safe_sqrt(value: Array) -> Any:
    """√value with gradient 0, not NaN, at 0: the distance of a point to itself has no direction."""
    return np.sqrt(value) if library_of(value) is np else _safe_sqrt(value)


@jax.custom_jvp
def _safe_sqrt(value: jax.Array) -> jax.Array:
    """The square root with a custom derivative.

    `where(value > 0, sqrt(where(value > 0, value, 1)), 0)` would be wrong: XLA may compute a distance twice, as 0 and,
    by a fused multiply-add, as 1e-17, so that the two conditions disagree and the root of zero becomes 1.
    """
    return jnp.sqrt(value)


@_safe_sqrt.defjvp
def _safe_sqrt_jvp(primals: Array, tangents: Array) -> tuple[jax.Array, jax.Array]:
    (value,), (tangent,) = primals, tangents
    root = _safe_sqrt(value)
    return root, jnp.where(root > 0, tangent / (2 * jnp.where(root > 0, root, 1)), 0)


def known(value: object, name: str) -> Any:
    """Concrete NumPy arrays, to be combined with sparse points on the host; sparse points unchanged."""
    if not is_concrete(value):
        raise KindError(
            f"{name} is traced by jit or grad, and sparse points are computed on the host: pass x.toarray()."
        )
    return matrices_of(value)
