"""Matérn kernels as mixtures of Gaussians over scales: nodes and weights of the trapezium rule, with a proved error.

A Matérn kernel of smoothness ν is E exp(−½ r²/g) with g ~ Gamma(ν, ν) (its spectral density is a multivariate t). So
r(x, y) = ∫ k(x, u) k(u, y) ν(du) is an expectation of the r of two Gaussians, in any number of columns d. In t = log g
the integrand is analytic for |Im t| < π/2: on the line Im t = θ its modulus is at most that of real scales g/cos θ with
the weights of g cos θ, whose integral is at most c(θ) r(0, 0). The trapezium rule with step h then has an error of at
most 2 c(θ)/(exp(2πθ/h) − 1) r(0, 0), for any lengthscales and points (Trefethen & Weideman 2014, theorem 5.1).
"""

import math
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.types import Array

__all__ = ["TOLERANCE", "of_one", "of_two", "pairs"]

# The error of each integral over a scale, in units of r(0, 0).
TOLERANCE = 1e-9


@cache
def of_one(smoothness: float, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes g and weights w of E f(g) ≈ Σ w f(g), f(g) the r of any Gaussian and one of squared scale b² g.

    At x = y, f(g) = Π_d (α_d + β_d/g)^{−1/2} grows with g, and at most as g^{d/2}. Hence c = (cos θ)^{−ν − d}, the part
    left out below g is at most P(g), and that above at most the same for Gamma(ν + d/2, ν).
    """
    from scipy.special import gammainccinv, gammaincinv

    step = _step(smoothness + columns, 0)
    low = math.log(gammaincinv(smoothness, TOLERANCE / 8) / smoothness)
    high = math.log(gammainccinv(smoothness + columns / 2, TOLERANCE / 8) / smoothness)
    t = low + step * np.arange(math.ceil((high - low) / step) + 1)
    return np.exp(t), step * np.exp(_log_gamma_density(smoothness, t))


def pairs(one: np.ndarray, two: np.ndarray, alike: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which nodes of two scales are needed together, i and j, and how many times: of `alike` terms for i ≤ j only.

    Their r at x = y grows with both scales, so that leaving out a set of pairs that holds everything shorter costs at
    most its probability (Harris's inequality): here the pairs with the smallest i + j.
    """
    i, j = (index.ravel() for index in np.indices((len(one), len(two))))
    order = np.argsort(i + j, kind="stable")
    needed = order[np.cumsum((one[i] * two[j])[order]) > TOLERANCE / 4]
    i, j = i[needed], j[needed]
    if not alike:
        return i, j, np.ones(len(i))
    once = i <= j
    return i[once], j[once], np.where(i == j, 1.0, 2.0)[once]


def of_two(first: float, second: float, columns: int, a: Array, b: Array) -> tuple[jax.Array, jax.Array]:
    """Squared scales S (K,) and weights (K,): r(x, y) = Σ_k w_k exp(−½ |x − y|²/S_k) for two Matérn kernels.

    Their squared lengthscales times g₁ and g₂ add up to S. With log S and v = log g₂/g₁ for variables the sum over v
    does not depend on x and y. c = (cos θ cos θ/2)^{−ν₁ − ν₂ − d} serves both.
    """
    (low, high), (other_low, other_high) = (np.log(of_one(nu, columns)[0][[0, -1]]) for nu in (first, second))
    step = _step(first + second + columns, first + second + columns)
    # S/(a² + b²) lies between g₁ and g₂.
    logs = _between(min(low, other_low), max(high, other_high), step)[:, None]
    v = _between(other_low - high, other_high - low, step)
    dtype = jnp.result_type(a, b)
    log_a, log_b = 2 * jnp.log(jnp.asarray(a)), 2 * jnp.log(jnp.asarray(b))
    unit = jnp.logaddexp(log_a, log_b)
    log_first = jnp.asarray(logs, dtype) + unit - jnp.logaddexp(log_a, log_b + jnp.asarray(v, dtype))
    log_second = log_first + jnp.asarray(v, dtype)
    log_total = jnp.asarray(logs, dtype) + unit
    log_weights = _log_gamma_density(first, log_first) + _log_gamma_density(second, log_second)
    log_weights += columns / 2 * (math.log(2 * math.pi) + log_a + log_first + log_b + log_second - log_total)
    return jnp.exp(log_total[:, 0]), step**2 * jnp.sum(jnp.exp(log_weights), axis=1)


def _log_gamma_density(smoothness: float, t: Array) -> Array:
    """log of the density of log g, g ~ Gamma(ν, ν)."""
    constant = smoothness * math.log(smoothness) - math.lgamma(smoothness)
    exp = np.exp if isinstance(t, np.ndarray) else jnp.exp
    return constant + smoothness * (t - exp(t))


def _between(low: float, high: float, step: float) -> np.ndarray:
    return low + step * np.arange(math.ceil((high - low) / step) + 1)


def _step(power: float, half_power: float) -> float:
    """The longest step with an error below half the tolerance, for c = (cos θ)^−power (cos θ/2)^−half_power."""
    theta = np.linspace(0.1, 1.56, 147)
    bound = np.cos(theta) ** -power * np.cos(theta / 2) ** -half_power
    return float(np.max(2 * math.pi * theta / np.log1p(4 / TOLERANCE * bound)))
