"""What every kernel obeys, as functions of a kernel and points: used for each member of each family of kernels."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.door import Door
from meanmap.core.points import rows
from meanmap.kernels.reading import read_points
from tests.kernels.examples import size, take

# float64 rounding of distances by expansion, relative to the largest value of the Gram matrix and |x|² up to 3000;
# kernels with a kink at zero take its square root.
TIGHT, AFTER_A_ROOT = 1e-10, 1e-5


def tolerance(kernel: Any, gram: np.ndarray) -> float:
    rough = any(getattr(kernel, "smoothness", 1) == 0.5 for kernel in [kernel, *getattr(kernel, "members", ())])
    return (AFTER_A_ROOT if rough else TIGHT) * max(1.0, float(np.abs(gram).max()))


def symmetric(kernel, x):
    """K(x, x) is symmetric, and K(x, y) is K(y, x) turned over."""
    y = take(x, slice(None, None, 2))
    gram, cross = kernel(x), kernel(x, y)
    np.testing.assert_allclose(gram, gram.T, rtol=0, atol=1e-3 * tolerance(kernel, gram))
    np.testing.assert_allclose(cross, kernel(y, x).T, rtol=0, atol=tolerance(kernel, gram))


def positive_semidefinite(kernel, x):
    """No eigenvalue is below zero by more than rounding."""
    gram = kernel(x)
    values = np.linalg.eigvalsh(gram)
    assert values[0] >= -1e-13 * len(gram) * max(values[-1], 1.0)


def diagonal_is_that_of_gram(kernel, x):
    """`diag` is the diagonal of the Gram matrix, and never negative."""
    diagonal = kernel.diag(x)
    assert diagonal.shape == (size(x),)
    assert (diagonal >= 0).all()
    np.testing.assert_allclose(kernel(x).diagonal(), diagonal, rtol=1e-14, atol=0)


def cauchy_schwarz(kernel, x):
    """|k(x, y)|² ≤ k(x, x) k(y, y)."""
    gram, diagonal = kernel(x), kernel.diag(x)
    assert (gram**2 <= np.outer(diagonal, diagonal) * (1 + 1e-10) + 1e-12).all()


def entries_are_evaluations(kernel, x):
    """`evaluate` of two points is their entry of the Gram matrix."""
    gram = kernel(x)
    with Door() as door:
        points = read_points(kernel, x, "x", door)
        if any(not isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(points)):
            return  # sparse counts of substrings are compared as whole matrices only
        values = [[kernel.evaluate(rows(points, i), rows(points, j)) for j in range(size(x))] for i in range(size(x))]
    np.testing.assert_allclose(values, gram, rtol=0, atol=tolerance(kernel, gram))


def blocks_are_parts_of_the_whole(kernel, x):
    """The Gram matrix of some points is that part of the Gram matrix of all."""
    some = np.arange(size(x))[::-2]
    gram = kernel(x)
    np.testing.assert_allclose(kernel(take(x, some)), gram[np.ix_(some, some)], rtol=0, atol=tolerance(kernel, gram))


def products_are_dense_products(kernel, x):
    """`matvec` and `mean`, which never hold the Gram matrix, give what it would."""
    y = take(x, slice(None, None, 2))
    gram, cross = kernel(x), kernel(x, y)
    v = np.cos(np.arange(2.0 * size(y))).reshape(-1, 2)
    atol = size(x) * tolerance(kernel, gram)
    np.testing.assert_allclose(kernel.matvec(x, y, v), cross @ v, rtol=0, atol=atol)
    np.testing.assert_allclose(kernel.matvec(x, y, v[:, 0]), cross @ v[:, 0], rtol=0, atol=atol)
    np.testing.assert_allclose(kernel.mean(x, y), cross.mean(axis=1), rtol=0, atol=atol)
    # Of all points the Gram matrix can be larger than of some, and rounding with it.
    whole = kernel(x)
    np.testing.assert_allclose(kernel.mean(x), whole.mean(axis=1), rtol=0, atol=size(x) * tolerance(kernel, whole))


def numpy_in_numpy_out(kernel, x):
    """Plain data come back as float64 NumPy arrays that can be written to, and nothing of JAX changes."""
    before = jax.config.jax_enable_x64
    v = np.ones(size(x), dtype=np.float32)
    for result in (kernel(x), kernel(x, x), kernel.diag(x), kernel.mean(x), kernel.matvec(x, None, v)):
        assert type(result) is np.ndarray
        assert result.dtype == np.float64
        assert result.flags.writeable
    assert jax.config.jax_enable_x64 == before
    assert jnp.ones(1).dtype == (jnp.float64 if before else jnp.float32)


LAWS = [
    symmetric,
    positive_semidefinite,
    diagonal_is_that_of_gram,
    cauchy_schwarz,
    entries_are_evaluations,
    blocks_are_parts_of_the_whole,
    products_are_dense_products,
    numpy_in_numpy_out,
]
