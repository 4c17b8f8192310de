"""Regularised solves with a symmetric positive semidefinite matrix: factor once, solve many."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg

from meanmap.core.arrays import check_finite, parameter, read_matrix
from meanmap.core.door import Door, is_concrete
from meanmap.core.errors import InputError, ParameterError, PrecisionError, ShapeError
from meanmap.core.points import library_of
from meanmap.core.threads import blas_threads_for
from meanmap.core.types import Array, Numbers

__all__ = ["Ridge", "check_precision", "read_square"]

# The relative error of a solve is within a factor of about two of eps · trace / shift (measured on Gaussian Gram
# matrices, where the largest eigenvalue dominates the trace); above one percent an error is raised.
WORST_RELATIVE_ERROR = 1e-2


class Ridge(eqx.Module):
    """The factored inverse of a regularised matrix: (K + n λ I)⁻¹ from a Gram matrix, (ΦᵀΦ / n + λ I)⁻¹ from features.

    λ is the ridge of the operator, so that both forms give the same predictions for the same λ:
    k(x)ᵀ (K + n λ I)⁻¹ Y = φ(x)ᵀ (ΦᵀΦ / n + λ I)⁻¹ (Φᵀ Y / n) where K = ΦΦᵀ (push-through identity).

    Attributes
    ----------
    triangle : array (n, n)
        The lower Cholesky factor; entries above its diagonal are not used.
    shift : number
        The number added to the diagonal: n λ for a Gram matrix, λ for features.

    Examples
    --------
    >>> import numpy as np
    >>> features, y = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), np.array([1.0, 2.0, 4.0])
    >>> dual = Ridge.factor(features @ features.T, ridge=0.1).solve(y)
    >>> primal = Ridge.factor_features(features, ridge=0.1).solve(features.T @ y / 3)
    >>> np.allclose(features @ features.T @ dual, features @ primal)
    True
    """

    triangle: Any
    shift: Any

    @classmethod
    def factor(cls, gram: Array, *, ridge: Numbers) -> "Ridge":
        """Factor K + n λ I. Cost n³ / 3.

        Parameters
        ----------
        gram : array (n, n)
            K, symmetric positive semidefinite; only one triangle is read.
        ridge : float
            λ ≥ 0; zero only if K itself is invertible.

        Raises
        ------
        PrecisionError
            If eps · trace(K) / (n λ) > 0.01: the rounding error of the solve would exceed a percent. Inside `jit` the
            numbers are unknown and the check is skipped.
        """
        with Door(gram, ridge) as door:
            matrix = read_square(gram, "gram", door)
            lam = _read_ridge(ridge, door)
            return _factor(matrix, matrix.shape[0] * lam, lam, "the Gram matrix", overwrite=False)

    @classmethod
    def factor_features(cls, features: object, *, ridge: Numbers) -> "Ridge":
        """Factor ΦᵀΦ / n + λ I from features Φ (n, r). Cost n r² + r³ / 3."""
        with Door(features, ridge) as door:
            matrix = read_matrix(features, "features", door, sparse=False)
            lam = _read_ridge(ridge, door)
            if door.follows:
                covariance = jnp.matmul(matrix.T, matrix, precision="highest") / matrix.shape[0]
            else:
                covariance = matrix.T @ matrix
                covariance /= matrix.shape[0]
            return _factor(covariance, lam, lam, "the features' covariance", overwrite=True)

    def solve(self, right: Array) -> Any:
        """The regularised inverse times `right`, (n,) or (n, q). Cost 2 n² q."""
        with Door(self.triangle, right) as door:
            size = self.triangle.shape[-1]
            if np.ndim(right) not in (1, 2) or np.shape(right)[0] != size:
                raise ShapeError(f"right has shape {np.shape(right)}; expected ({size},) or ({size}, q).")
            if door.follows:
                triangle = jnp.asarray(self.triangle, door.dtype)
                return jax.scipy.linalg.cho_solve((triangle, True), jnp.asarray(right, door.dtype))
            array = np.asarray(right, dtype=np.float64)
            check_finite(array, "right")
            with blas_threads_for(2.0 * len(self.triangle) * array.size):
                return scipy.linalg.cho_solve((self.triangle, True), array, check_finite=False)

    def log_determinant(self) -> Any:
        """The logarithm of the determinant of the regularised matrix."""
        library = library_of(self.triangle)
        return 2 * library.sum(library.log(library.diagonal(self.triangle)))


def check_precision(trace: Array, shift: Array, dtype: np.dtype, name: str = "the matrix") -> None:
    """Refuse a solve with M + shift · I whose rounding error would exceed a percent; silent for traced values."""
    if not (is_concrete(trace) and is_concrete(shift)):
        return
    smallest = float(np.min(np.asarray(shift)))
    error = float(jnp.finfo(dtype).eps) * float(np.asarray(trace)) / smallest if smallest > 0 else np.inf
    if error <= WORST_RELATIVE_ERROR:
        return
    double = 'Pass NumPy arrays or enable jax_enable_x64 (jax.config.update("jax_enable_x64", True))'
    cure = "Use a larger ridge" if np.dtype(dtype) == np.float64 else f"{double}, or use a larger ridge"
    raise PrecisionError(
        f"{np.dtype(dtype).name} is not precise enough for this solve: {name} has trace "
        f"{float(np.asarray(trace)):.3g} and the regularisation adds only {smallest:.3g} to its diagonal, so the "
        f"relative error is about {error:.1g}; "
        f"expected at most {WORST_RELATIVE_ERROR:g}. {cure}."
    )


def read_square(matrix: Array, argument: str, door: Door) -> Any:
    """`matrix` as a checked (n, n) array."""
    array = read_matrix(matrix, argument, door, sparse=False)
    if np.ndim(matrix) != 2 or array.shape[0] != array.shape[1]:
        raise ShapeError(f"{argument} has shape {np.shape(matrix)}; expected a square (n, n) matrix.")
    return array


def _read_ridge(ridge: Numbers, door: Door) -> Any:
    value = parameter(ridge, "ridge", positive=False, axes=0)
    if is_concrete(value) and float(np.asarray(value)) < 0:
        raise ParameterError(f"ridge is {float(np.asarray(value)):g}; expected a number above 0, such as ridge=1e-3.")
    return door.cast(value)


def _factor(matrix: Array, shift: Array, ridge: Array, name: str, overwrite: bool) -> Ridge:
    """Cholesky of `matrix` + shift · I, by LAPACK on the host and by XLA for JAX arrays."""
    diagonal = matrix.diagonal()
    zero = is_concrete(ridge) and float(np.asarray(ridge)) == 0.0
    if not zero:
        check_precision(diagonal.sum(), shift, matrix.dtype, name)
    if isinstance(matrix, jax.Array):
        shifted = matrix + jnp.asarray(shift, matrix.dtype) * jnp.eye(matrix.shape[0], dtype=matrix.dtype)
        triangle = jnp.linalg.cholesky(shifted, symmetrize_input=False)
    else:
        # The transpose of a C-ordered symmetric matrix is the same matrix in LAPACK's order: no copy is wasted.
        ordered = matrix.T if overwrite else np.array(matrix.T, order="F")
        ordered[np.diag_indices_from(ordered)] += float(shift)
        try:
            with blas_threads_for(len(ordered) ** 3 / 3):
                triangle = scipy.linalg.cholesky(ordered, lower=True, overwrite_a=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            triangle = None
    _check_factor(triangle, diagonal, shift, zero, name)
    return Ridge(triangle, shift)


def _check_factor(triangle: Array | None, diagonal: Array, shift: Array, zero: bool, name: str) -> None:
    """Refuse a factorisation that broke down or, without a ridge, one whose last pivots are rounding errors."""
    if not is_concrete(triangle):
        return
    # A breakdown is a NaN in XLA and an exception in LAPACK.
    pivots = np.full(1, np.nan) if triangle is None else np.asarray(triangle.diagonal())
    broken = not np.isfinite(pivots).all()
    if zero:
        floor = diagonal.shape[0] * float(jnp.finfo(diagonal.dtype).eps) * float(np.asarray(diagonal).max())
        if broken or float(pivots.min()) ** 2 <= floor:
            suggestion = 1e-6 * float(np.asarray(diagonal).mean())
            raise ParameterError(
                f"ridge is 0 but {name} is singular in {np.dtype(diagonal.dtype).name}; expected a ridge above 0: "
                f"type ridge={suggestion:.1g}, or choose one from the data with choose_ridge."
            )
    elif broken:
        raise InputError(
            f"{name} is not positive semidefinite: it has an eigenvalue below {-float(np.asarray(shift)):.3g}. "
            "Check that it is symmetric and comes from a positive definite kernel."
        )
