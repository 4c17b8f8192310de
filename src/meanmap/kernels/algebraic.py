"""Kernels of the inner product: linear, polynomial, cosine, and linear after a random projection of labels."""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import as_array, check_finite, parameter
from meanmap.core.domains import Domain, Real
from meanmap.core.errors import ShapeError
from meanmap.core.rng import Rng
from meanmap.core.settings import whole_number
from meanmap.core.types import Array, Points, Seed
from meanmap.kernels.base import ByGram, Kernel
from meanmap.kernels.geometry import inner_products, safe_sqrt, squared_norms

__all__ = ["Cosine", "Linear", "Polynomial", "RandomProjection"]


class _OfInnerProduct(ByGram):
    """k(x, y) = f(⟨x, y⟩, |x|², |y|²); dense or sparse points."""

    @property
    def domain(self) -> Domain:
        """Real points, dense or sparse."""
        return Real(sparse=True)

    @abstractmethod
    def profile(self, inner: jax.Array, x_norm: jax.Array, y_norm: jax.Array) -> jax.Array:
        """k as a function f of the inner product."""

    def gram(self, x: Points, y: Points) -> jax.Array:
        """The Gram matrix through one matrix product."""
        return self.profile(inner_products(x, y), squared_norms(x)[:, None], squared_norms(y)[None, :])

    def diagonal(self, x: Points) -> jax.Array:
        """f(|x|², |x|², |x|²)."""
        norms = squared_norms(x)
        return self.profile(norms, norms, norms)


class Linear(_OfInnerProduct):
    """k(x, y) = ⟨x, y⟩: the mean embedding is the mean.

    Examples
    --------
    >>> Linear()([[1.0, 2.0], [3.0, 4.0]]).tolist()
    [[5.0, 11.0], [11.0, 25.0]]
    """

    def profile(self, inner: jax.Array, x_norm: jax.Array, y_norm: jax.Array) -> jax.Array:
        """The inner product."""
        return inner


class Polynomial(_OfInnerProduct):
    """k(x, y) = (⟨x, y⟩ + c)^p: the mean embedding consists of all moments up to order p.

    Parameters
    ----------
    degree : int
        p, at least 1.
    offset : float
        c ≥ 0; with c = 0 only moments of order exactly p remain.

    Examples
    --------
    >>> Polynomial(degree=2)([[1.0], [2.0]]).tolist()
    [[4.0, 9.0], [9.0, 25.0]]
    """

    degree: int = eqx.field(static=True)
    offset: Array

    def __init__(self, degree: int = 2, offset: object = 1.0):
        whole_number(degree, "degree")
        self.degree = int(degree)
        self.offset = parameter(offset, "offset", axes=0, positive=False, at_least=0.0)

    def profile(self, inner: jax.Array, x_norm: jax.Array, y_norm: jax.Array) -> jax.Array:
        """(⟨x, y⟩ + c)^p."""
        return (inner + self.offset) ** self.degree


class Cosine(_OfInnerProduct):
    """k(x, y) = ⟨x, y⟩ / (|x| |y|), the cosine of the angle between two points; 0 where one of them is 0.

    Examples
    --------
    >>> Cosine()([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]).round(4).tolist()
    [[1.0, 0.7071, 0.0], [0.7071, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """

    def profile(self, inner: jax.Array, x_norm: jax.Array, y_norm: jax.Array) -> jax.Array:
        """The inner product divided by both lengths."""
        # A separate root for each: the product of two squared lengths overflows float32 too early.
        length = safe_sqrt(x_norm) * safe_sqrt(y_norm)
        positive = length > 0
        return jnp.where(positive, inner / jnp.where(positive, length, 1), 0)


class RandomProjection(Kernel):
    """k(y, y′) = ⟨A y, A y′⟩ for label vectors y of many columns and a random matrix A of few rows.

    Parameters
    ----------
    matrix : array of shape (D, L)
        A; `RandomProjection.draw(L, D, rng)` draws it with independent N(0, 1/D) entries, so that k(y, y′) is ⟨y, y′⟩
        on average with an error of order |y| |y′| / √D.

    Notes
    -----
    Song et al. (2011), appendix section 4, after Hsu et al. (2009): sparse label vectors can be recovered from A y by
    orthogonal matching pursuit. A Gram matrix costs O((n + m) L D + n m D).

    Examples
    --------
    >>> k = RandomProjection.draw(labels=300, dimensions=100, rng=0)
    >>> k.matrix.shape
    (100, 300)
    """

    matrix: Array

    def __init__(self, matrix: Array):
        array = matrix if isinstance(matrix, jax.Array) else as_array(matrix, "matrix").astype(np.float64)
        if array.ndim != 2 or array.size == 0:
            raise ShapeError(f"matrix has shape {array.shape}; expected (dimensions, labels).")
        check_finite(array, "matrix")
        self.matrix = array

    @classmethod
    def draw(cls, labels: int, dimensions: int = 100, rng: Seed = None) -> "RandomProjection":
        """A kernel with a fresh A of shape (dimensions, labels)."""
        for name, size in (("labels", labels), ("dimensions", dimensions)):
            whole_number(size, name)
        return cls(Rng.of(rng).generator.normal(size=(dimensions, labels)) / np.sqrt(dimensions))

    @property
    def domain(self) -> Domain:
        """Real label vectors, dense or sparse."""
        return Real(sparse=True)

    def check(self, points: Points, argument: str) -> None:
        """Require one column per label."""
        if points.shape[1] != self.matrix.shape[1]:
            raise ShapeError(
                f"{argument} has {points.shape[1]} columns; the projection was made for {self.matrix.shape[1]} labels."
            )

    def project(self, y: Points) -> jax.Array:
        """A y for each row of points already read, (n, D)."""
        return inner_products(y, jnp.asarray(self.matrix))

    def evaluate(self, x: Array, y: Array) -> jax.Array:
        """k(x, y) for two points."""
        return jnp.vdot(self.project(x[None]), self.project(y[None]))

    def gram(self, x: Points, y: Points) -> jax.Array:
        """The Gram matrix of the projected points."""
        return inner_products(self.project(x), self.project(y))

    def diagonal(self, x: Points) -> jax.Array:
        """k(y, y) = |A y|² for each point."""
        return squared_norms(self.project(x))
