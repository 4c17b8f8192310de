"""Kernels on categories and on texts, and kernels known only as a matrix."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import as_array, check_finite, parameter
from meanmap.core.domains import Domain, Indices, Strings
from meanmap.core.door import is_concrete
from meanmap.core.errors import InputError, ShapeError
from meanmap.core.labels import Labels
from meanmap.core.settings import truth, whole_number
from meanmap.core.types import Array, Numbers, Points
from meanmap.kernels.algebraic import Cosine, Linear
from meanmap.kernels.base import Kernel

__all__ = ["Delta", "Hamming", "Precomputed", "Spectrum"]


class Delta(Kernel):
    """k(x, y) = 1 if x = y else 0, for categories; with several columns, all must agree.

    The mean embedding of a categorical variable is its probability table, and belief propagation on it is discrete.

    Examples
    --------
    >>> Delta()(["red", "blue", "red"]).tolist()
    [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    """

    @property
    def domain(self) -> Domain:
        """Labels, hashed to 64 bits."""
        return Labels()

    def evaluate(self, x: Array, y: Array) -> jax.Array:
        """k(x, y) for two points."""
        return jnp.where(jnp.all(x == y), 1.0, 0.0)  # weakly typed: takes the precision of kernels it multiplies


class Hamming(Kernel):
    """k(x, y) = exp(−(share of columns in which x and y differ) / ℓ), for rows of categories.

    Parameters
    ----------
    lengthscale : float
        ℓ; as it falls to 0 the kernel tends to `Delta`.

    Notes
    -----
    A product over columns of 1 if equal and ρ = exp(−1/(ℓ d)) < 1 if not, hence positive definite, and characteristic
    on finite sets.

    Examples
    --------
    >>> Hamming(1.0)([["a", "x"], ["a", "y"]]).round(4).tolist()
    [[1.0, 0.6065], [0.6065, 1.0]]
    """

    lengthscale: Array

    def __init__(self, lengthscale: Numbers = 1.0):
        self.lengthscale = parameter(lengthscale, "lengthscale", axes=0)

    @property
    def domain(self) -> Domain:
        """Labels, hashed to 64 bits."""
        return Labels()

    def evaluate(self, x: Array, y: Array) -> jax.Array:
        """k(x, y) for two points."""
        differ = jnp.any(x != y, axis=-1)
        return jnp.exp(-jnp.mean(differ, dtype=jnp.result_type(self.lengthscale, float)) / self.lengthscale)


class Spectrum(Kernel):
    """The spectrum kernel on texts: the inner product of the counts of all substrings of `length` characters.

    Parameters
    ----------
    length : int
        Substring length.
    normalise : bool
        Divide by the lengths of the count vectors (the default), so that k(x, x) = 1 and long texts do not dominate.

    Notes
    -----
    Leslie, Eskin & Noble (2002). Counts are sparse; a Gram matrix costs time in proportion to shared substrings. It
    runs on the host, not under `jit`. A text shorter than `length` counts as a single substring: it is similar only to
    equal texts.

    Examples
    --------
    >>> Spectrum(length=2)(["abab", "baba", "cccc"]).round(4).tolist()
    [[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    length: int = eqx.field(static=True)
    normalise: bool = eqx.field(static=True)

    def __init__(self, length: int = 3, normalise: bool = True):
        whole_number(length, "length")
        self.length = int(length)
        self.normalise = truth(normalise, "normalise")

    @property
    def domain(self) -> Domain:
        """Texts, read as sparse counts."""
        return Strings(self.length)

    def _on_counts(self) -> Kernel:
        return Cosine() if self.normalise else Linear()

    def evaluate(self, x: Array, y: Array) -> jax.Array:
        """k(x, y) for two rows of counts, each (1, columns)."""
        return self._on_counts().gram(x, y)[0, 0]

    def gram(self, x: Points, y: Points) -> jax.Array:
        """The Gram matrix of two sets of counts."""
        return self._on_counts().gram(x, y)

    def diagonal(self, x: Points) -> jax.Array:
        """Ones, or the squared lengths of the counts."""
        return self._on_counts().diagonal(x)


class Precomputed(Kernel):
    """A kernel known only through its Gram matrix on a fixed set; points are row numbers.

    Parameters
    ----------
    matrix : array of shape (N, N)
        The symmetric Gram matrix.

    Examples
    --------
    >>> k = Precomputed([[1.0, 0.5], [0.5, 1.0]])
    >>> k([0, 1, 1]).tolist()
    [[1.0, 0.5, 0.5], [0.5, 1.0, 1.0], [0.5, 1.0, 1.0]]
    """

    matrix: Array

    def __init__(self, matrix: Array):
        array = matrix if isinstance(matrix, jax.Array) else as_array(matrix, "matrix").astype(np.float64)
        if array.ndim != 2 or array.shape[0] != array.shape[1] or array.shape[0] == 0:
            raise ShapeError(f"matrix has shape {array.shape}; expected a square Gram matrix.")
        check_finite(array, "matrix")
        if is_concrete(array):
            values = np.asarray(array)
            if not np.allclose(values, values.T, rtol=1e-6, atol=1e-6 * float(np.abs(values).max())):
                raise InputError("matrix is not symmetric; expected a Gram matrix, k(i, j) = k(j, i).")
        self.matrix = array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(jnp.result_type(float))

    @property
    def domain(self) -> Domain:
        """Row numbers of the matrix."""
        return Indices(self.matrix.shape[0])

    def evaluate(self, x: Array, y: Array) -> jax.Array:
        """k(x, y) for two row numbers."""
        return jnp.asarray(self.matrix)[x, y]

    def gram(self, x: Points, y: Points) -> jax.Array:
        """The requested rows and columns."""
        return jnp.asarray(self.matrix)[x[:, None], y[None, :]]
