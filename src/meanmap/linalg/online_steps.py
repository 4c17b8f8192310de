"""The two ways to update a Bayesian linear regression: a Kalman step, or Cholesky from the statistics.

Each is written for NumPy and for XLA. The host form calls only NumPy's BLAS and LAPACK: SciPy has its own thread pool,
and threads of both in one loop wait for each other (ten times slower on 2 cores).
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.types import Array, Numbers

__all__ = ["kalman", "predict", "refit"]


def kalman(mean: Array, covariance: Array, phi: Array, y: Array, noise: Numbers) -> tuple[Any, Any]:
    """Mean and covariance after k more rows, at cost D² k + D k².

    With V = S Φᵀ and C = s² I + Φ V = R Rᵀ, V C⁻¹ (Y − Φ mean) is added to the mean and (V R⁻ᵀ)(V R⁻ᵀ)ᵀ subtracted from
    S. The residual form keeps the mean accurate where S (XᵀY) / s² would multiply the error of S by XᵀY / s².
    """
    if isinstance(mean, jax.Array):
        return _kalman_xla(mean, covariance, phi, y, noise)
    moved = covariance @ phi.T
    residual = y - phi @ mean
    if phi.shape[0] == 1:
        scale = noise + phi[0] @ moved[:, 0]
        whitened = moved[:, 0] / np.sqrt(scale)
        new = np.multiply.outer(whitened, whitened)
        return mean + moved * (residual / scale), np.subtract(covariance, new, out=new)
    root = np.linalg.cholesky(noise * np.eye(phi.shape[0]) + phi @ moved)
    inverse_root = np.linalg.inv(root)
    whitened = inverse_root @ moved.T
    return mean + whitened.T @ (inverse_root @ residual), covariance - whitened.T @ whitened


@jax.jit
def _kalman_xla(mean: Array, covariance: Array, phi: Array, y: Array, noise: Array) -> tuple[Any, Any]:
    moved = _product(covariance, phi.T)
    root = jnp.linalg.cholesky(noise * jnp.eye(phi.shape[0], dtype=phi.dtype) + _product(phi, moved))
    whitened = jax.scipy.linalg.solve_triangular(root, moved.T, lower=True)
    shift = jax.scipy.linalg.solve_triangular(root, y - _product(phi, mean), lower=True)
    return mean + _product(whitened.T, shift), covariance - _product(whitened.T, whitened)


def refit(mean: Array, inputs: Any, cross: Array, noise: Array, prior_variance: Array) -> tuple[Any, Any, Any]:
    """Mean, covariance and log determinant of A = XᵀX + (s² / s₀) I, from XᵀX and XᵀY. Cost D³.

    The mean is refined iteratively: mean + A⁻¹ (XᵀY − A mean).
    """
    ratio = noise / prior_variance
    if isinstance(inputs, jax.Array):
        return _refit_xla(mean, inputs, cross, noise, ratio)
    size = inputs.shape[0]
    matrix = inputs + ratio * np.eye(size)
    root = np.linalg.cholesky(matrix)
    inverse_root = np.linalg.inv(root)
    new_mean = mean + inverse_root.T @ (inverse_root @ (cross - matrix @ mean))
    return new_mean, noise * (inverse_root.T @ inverse_root), 2 * np.log(root.diagonal()).sum()


@jax.jit
def _refit_xla(mean: Array, inputs: Any, cross: Array, noise: Array, ratio: Any) -> tuple[Any, Any, Any]:
    identity = jnp.eye(inputs.shape[0], dtype=inputs.dtype)
    matrix = inputs + ratio * identity
    root = jnp.linalg.cholesky(matrix)
    new_mean = mean + jax.scipy.linalg.cho_solve((root, True), cross - _product(matrix, mean))
    inverse_root = jax.scipy.linalg.solve_triangular(root, identity, lower=True)
    covariance = noise * _product(inverse_root.T, inverse_root)
    return new_mean, covariance, 2 * jnp.sum(jnp.log(jnp.diagonal(root)))


def predict(mean: Array, covariance: Array, phi: Array) -> tuple[Any, Any]:
    """Predictive mean Φ mean (n, q) and variance diag(Φ S Φᵀ) (n,), floored at zero."""
    if isinstance(mean, jax.Array):
        return _predict_xla(mean, covariance, phi)
    return phi @ mean, np.maximum(np.einsum("nd,nd->n", phi @ covariance, phi), 0.0)


@jax.jit
def _predict_xla(mean: Array, covariance: Array, phi: Array) -> tuple[Any, Any]:
    return _product(phi, mean), jnp.maximum(jnp.sum(_product(phi, covariance) * phi, axis=1), 0.0)


def _product(left: Array, right: Array) -> Any:
    return jnp.matmul(left, right, precision="highest")
