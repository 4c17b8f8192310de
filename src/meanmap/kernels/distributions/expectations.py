"""Expectations of an RBF kernel under probability distributions: E k(X, x) and E k(X, Y), exactly.

Normal distributions have closed forms. All others use their characteristic function c and the trapezium rule: E k(X, x)
= E_ω Re c(ω/ℓ) exp(−iωx/ℓ) with ω standard normal.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.door import all_concrete
from meanmap.core.errors import ParameterError
from meanmap.core.points import bucket
from meanmap.families import Gamma, Mixture, MultivariateNormal, Normal
from meanmap.families.base import Distribution

__all__ = ["expected_kernel", "expected_pair", "gaussian_overlap"]

# The Gaussian spectral density is below 1e-17 of its peak beyond this many standard deviations.
SPECTRAL_REACH = 9.0
# An exponential tail is below 1e-15 beyond this many of its scales.
TAIL_REACH = 36.0
MOST_NODES = 1 << 15
# The number of nodes if numbers are traced and the spread of the distribution is unknown: exact for spreads up to 700
# lengthscales.
TRACED_NODES = 1024


def _normal_moments(family: Distribution) -> tuple[Any, Any] | None:
    """Mean (..., d) and covariance (..., d, d) of a normal distribution, or None."""
    if isinstance(family, Normal):
        return jnp.asarray(family.mean())[..., None], jnp.asarray(family.var())[..., None, None]
    if isinstance(family, MultivariateNormal):
        return jnp.asarray(family.mean()), jnp.asarray(family.cov())
    return None


def gaussian_overlap(difference: jax.Array, covariance: jax.Array, lengthscale: jax.Array) -> jax.Array:
    """(|Σ| / |V + Σ|)^(1/2) exp(−½ δᵀ (V + Σ)⁻¹ δ) for Σ = diag ℓ²: the RBF kernel blurred by a covariance V."""
    d = difference.shape[-1]
    squares = jnp.broadcast_to(lengthscale, (d,)) ** 2
    if d == 1:  # a factorisation for every pair would cost more than the exponential
        spread = covariance[..., 0, 0] + squares[0]
        return jnp.sqrt(squares[0] / spread) * jnp.exp(-(difference[..., 0] ** 2) / spread / 2)
    triangle = jnp.linalg.cholesky(covariance + jnp.diag(squares))
    triangle = jnp.broadcast_to(triangle, (*difference.shape[:-1], d, d))
    solved = jax.scipy.linalg.solve_triangular(triangle, difference[..., None], lower=True)[..., 0]
    log_ratio = jnp.sum(jnp.log(squares)) / 2 - jnp.sum(jnp.log(jnp.diagonal(triangle, axis1=-2, axis2=-1)), axis=-1)
    return jnp.exp(log_ratio - jnp.sum(solved**2, axis=-1) / 2)


def expected_kernel(family: Distribution, x: jax.Array, lengthscale: jax.Array, coordinate: str = "x") -> jax.Array:
    """E exp(−½ Σ (X_d − x_d)² / ℓ_d²) at points x (m, d), (..., m) for a batch of distributions."""
    if isinstance(family, Mixture):
        values = expected_kernel(family.components, x, lengthscale, coordinate)
        return jnp.sum(jnp.asarray(family.weights)[..., None] * values, axis=-2)
    moments = _normal_moments(family)
    if moments is not None:
        mean, covariance = moments
        return gaussian_overlap(x - mean[..., None, :], covariance[..., None, :, :], lengthscale)
    ell = lengthscale.reshape(())
    omega, weights = _nodes(family, ell, coordinate, x)
    c = jnp.asarray(family.characteristic_function(omega / ell, coordinate))
    phase = jnp.exp(-1j * omega[:, None] * (x[:, 0] / ell))
    return jnp.real(jnp.matmul(c * weights, phase))


def expected_pair(
    first: Distribution, second: Distribution, lengthscale: jax.Array, coordinate: str = "x"
) -> jax.Array:
    """E exp(−½ Σ (X_d − Y_d)² / ℓ_d²) for independent X and Y, (...); batches broadcast."""
    if isinstance(first, Mixture):
        values = expected_pair(first.components, _spread(second), lengthscale, coordinate)
        return jnp.sum(jnp.asarray(first.weights) * values, axis=-1)
    if isinstance(second, Mixture):
        return expected_pair(second, first, lengthscale, coordinate)
    moments, others = _normal_moments(first), _normal_moments(second)
    if moments is not None and others is not None:
        return gaussian_overlap(moments[0] - others[0], moments[1] + others[1], lengthscale)
    ell = lengthscale.reshape(())
    at = jnp.reshape(jnp.asarray(second.mean_in(coordinate)), (-1, 1))
    omega, weights = _nodes(first, ell, coordinate, at, also=second)
    c = jnp.asarray(first.characteristic_function(omega / ell, coordinate))
    other = jnp.asarray(second.characteristic_function(omega / ell, coordinate))
    return jnp.real(jnp.sum(c * jnp.conj(other) * weights, axis=-1))


def _spread(family: Distribution) -> Distribution:
    """A batch with one more axis, to broadcast against the components of a mixture."""
    return family.reshape(*family.shape, 1)


def _nodes(
    family: Distribution, ell: jax.Array, coordinate: str, x: jax.Array, also: Distribution | None = None
) -> tuple[jax.Array, jax.Array]:
    """Trapezium nodes ω and weights for the standard normal spectral integral.

    The rule repeats the blurred distribution with period 2πℓ/h, so h is chosen such that it fits into one period.
    """
    number = TRACED_NODES
    if all_concrete((family, also, x, ell)):
        # On the host: inside an enclosing `jit`, JAX would trace even results of known numbers.
        host, other, points = jax.tree.map(np.asarray, (family, also, x))
        reach = _reach(host, coordinate) + (0 if other is None else _reach(other, coordinate))
        centre = np.asarray(host.mean_in(coordinate))
        distance = max(abs(float(np.max(points)) - centre.min()), abs(centre.max() - float(np.min(points))))
        period = 2 * (distance + reach + SPECTRAL_REACH * float(ell))
        number = bucket(int(np.ceil(SPECTRAL_REACH * period / (2 * np.pi * float(ell)))) + 1)
        if number > MOST_NODES:
            raise ParameterError(
                f"lengthscale {float(ell):.3g} is too small for a distribution that spreads over {period:.3g}: use one "
                f"above {period * SPECTRAL_REACH / (2 * np.pi * MOST_NODES):.3g}, or another coordinate."
            )
    omega = jnp.linspace(0, SPECTRAL_REACH, number, dtype=x.dtype)
    step = omega[1]
    weights = 2 * step * jnp.exp(-(omega**2) / 2) / jnp.sqrt(2 * jnp.pi)
    return omega, weights.at[0].divide(2)


def _reach(family: Distribution, coordinate: str) -> float:
    """The radius around its mean that contains a distribution up to a probability of 1e-15."""
    variance, mean = np.asarray(family.variance_in(coordinate)), np.asarray(family.mean_in(coordinate))
    scale = np.sqrt(variance)
    if isinstance(family, Gamma) and coordinate == "x":
        scale = np.maximum(scale, variance / mean)  # with a small shape, the tail exp(−rate x) is long
    return float(TAIL_REACH * np.max(scale))
