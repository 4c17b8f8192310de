"""Covariance operators: means over pairs, whose matrix is never stored."""

from types import ModuleType
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from meanmap.core.door import Door
from meanmap.core.synonyms import own_words
from meanmap.core.tables.schema import Schema
from meanmap.core.types import Array, Data, KernelLike, Points
from meanmap.embeddings.bases import Basis
from meanmap.embeddings.operators import ImplicitMatrix, Operator
from meanmap.embeddings.reading import read_pairs
from meanmap.kernels.base import Kernel
from meanmap.kernels.gram import streamed_product

__all__ = ["PairMean", "cross_covariance"]


class PairMean(ImplicitMatrix):
    """M = I / n, or (I - 1 1ᵀ / n) / n: the mean over n pairs, without or with centring."""

    count: int = eqx.field(static=True)
    centred: bool = eqx.field(static=True)

    def times(self, values: Array, library: ModuleType) -> Any:
        """M v for v of shape (n, m)."""
        return (values - library.mean(values, axis=0) if self.centred else values) / self.count

    def dense(self) -> Any:
        """M as an array."""
        return self.times(np.eye(self.count), np)

    def square(self, output: Basis, inputs: Basis, door: Door) -> float | None:
        """‖A‖² = tr(G M H M) for Gram matrices G and H of points, by tiles; None if the bases are not points."""
        if output.orthonormal or inputs.orthonormal:
            return None
        n = self.count
        sides: tuple[Any, Any] = output, inputs
        kernels = tuple(door.cast(side.kernel) for side in sides)
        points = tuple(side.points for side in sides)
        ones = np.ones((n, 1))
        product: Any = _Both(*kernels)
        both = streamed_product(product, points, points, ones).sum() / n**2
        if not self.centred:
            return both
        g, h = (streamed_product(kernel, x, x, ones)[:, 0] / n for kernel, x in zip(kernels, points, strict=True))
        return both - 2.0 * np.mean(g * h) + g.mean() * h.mean()


class _Both(eqx.Module):
    """k(x, x') l(y, y') at pairs."""

    first: Kernel
    second: Kernel

    @property
    def in_numpy(self) -> bool:
        """Whether both kernels use NumPy for NumPy points."""
        return self.first.in_numpy and self.second.in_numpy

    def gram(self, a: Points, b: Points) -> Any:
        """Values at all pairs of pairs."""
        return self.first.gram(a[0], b[0]) * self.second.gram(a[1], b[1])


@own_words
def cross_covariance(x: Data, y: Data, kernel_x: KernelLike, kernel_y: KernelLike, centred: bool = False) -> Operator:
    """C_XY = E φ(X) ⊗ ψ(Y), the (cross-)covariance operator from the RKHS of y to that of x: ⟨f, C g⟩ = E f(X) g(Y).

    Parameters
    ----------
    x, y : points
        n pairs; pass the same data and kernel twice for the covariance operator C_XX.
    kernel_x, kernel_y : Kernel or Features
        The spaces. With features the operator is an (r, s) matrix, streamed over the data; with kernels it stores only
        the points, and its norm takes O(n²) time, without a matrix of all pairs.
    centred : bool
        Subtract the product of the means, so that independence makes it zero; its squared norm is then HSIC.

    Examples
    --------
    >>> import numpy as np
    >>> import meanmap as mm
    >>> k = mm.kernels.Linear()
    >>> x = np.array([0.0, 1.0, 2.0])
    >>> c = cross_covariance(x, 2 * x, k, k, centred=True)
    >>> round(c.norm(), 3)                            # the covariance of x and 2 x
    1.333
    """
    with Door(x, y, kernel_x, kernel_y) as door:
        schemas = (Schema.of_points(data, name, brief=True) for data, name in ((x, "x"), (y, "y")))
        first, second = read_pairs(x, y, kernel_x, kernel_y, door, *schemas)
        n, library = first.count, jnp if door.follows else np
        first.check_like(second)
        if first.basis.orthonormal:
            product, mean_x, mean_y = first.moments_with(second, door)
            matrix = product / n - (library.outer(mean_x, mean_y) if centred else 0.0)
        else:
            matrix = PairMean(n, centred)
        return door.leave(Operator(first.basis, second.basis, matrix))
