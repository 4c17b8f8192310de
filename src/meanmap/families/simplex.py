"""Formulas of Dirichlet distributions over a last axis of parameters; a Beta distribution is the case of two.

Each is arranged so that terms as large as Σα log Σα never cancel numerically: they are combined analytically.
"""

import jax.numpy as jnp
import numpy as np

from meanmap.core.types import Array
from meanmap.families.real_gamma import (
    HALF_LOG_TWO_PI,
    digamma_minus_log,
    log_gamma_divergence,
    stirling_remainder,
    trigamma,
)

__all__ = [
    "covariance_of_shares",
    "dirichlet_divergence",
    "dirichlet_entropy",
    "dirichlet_log_density",
    "expected_logs",
    "expected_logs_and_slopes",
    "log_beta",
    "log_shares",
    "with_total",
]


def covariance_of_shares(mean: Array) -> Array:
    """diag(m) − m mᵀ, the covariance of indicators of labels with probabilities m."""
    return mean[..., :, None] * (jnp.eye(mean.shape[-1], dtype=mean.dtype) - mean[..., None, :])


def log_shares(parameters: Array) -> Array:
    """log(αᵢ / Σα), to a few roundings of itself even where one parameter is nearly the whole sum."""
    k = parameters.shape[-1]
    if k == 2:
        return -jnp.log1p(parameters[..., ::-1] / parameters)
    apart = jnp.ones((k, k), parameters.dtype) - jnp.eye(k, dtype=parameters.dtype)
    others = jnp.matmul(parameters, apart, precision="highest")
    return -jnp.log1p(others / parameters)


def log_beta(parameters: Array) -> Array:
    """Σᵢ log Γ(αᵢ) − log Γ(Σα)."""
    k, total = parameters.shape[-1], parameters.sum(-1)
    leading = ((parameters - 0.5) * log_shares(parameters)).sum(-1)
    return leading + _balance(stirling_remainder(with_total(parameters))) + _rest(k, total)


def expected_logs(parameters: Array) -> Array:
    """E[log xᵢ] = ψ(αᵢ) − ψ(Σα), to a few roundings of itself."""
    return log_shares(parameters) + _drift(parameters)


def expected_logs_and_slopes(parameters: Array) -> tuple[Array, Array]:
    """E[log xᵢ], and ψ′ of α₁, ..., αₖ, Σα."""
    k, arguments = parameters.shape[-1], with_total(parameters)
    values = jnp.concatenate([digamma_minus_log(arguments), trigamma(arguments)], -1)
    read = np.zeros((2 * k + 2, 2 * k + 1))
    read[: k + 1, :k], read[k + 1 :, k:] = _less_last(k), np.eye(k + 1)
    found = jnp.matmul(values, read.astype(values.dtype), precision="highest")
    return log_shares(parameters) + found[..., :k], found[..., k:]


def dirichlet_entropy(parameters: Array) -> Array:
    """log B(α) − Σᵢ (αᵢ − 1) E[log xᵢ]."""
    k, total = parameters.shape[-1], parameters.sum(-1)
    terms = 0.5 * log_shares(parameters) - (parameters - 1) * _drift(parameters)
    return terms.sum(-1) + _balance(stirling_remainder(with_total(parameters))) + _rest(k, total)


def dirichlet_divergence(p: Array, q: Array) -> Array:
    """KL(p ‖ q) between Dirichlet distributions: a sum of Bregman divergences of log Γ.

    The leading parts combine to Σq times the divergence between the two vectors of shares.
    """
    total = q.sum(-1)
    shares = q / total[..., None]
    leading = total * (shares * (log_shares(q) - log_shares(p))).sum(-1)
    return jnp.maximum(leading + _balance(log_gamma_divergence(with_total(q), with_total(p))), 0)


def dirichlet_log_density(logs: Array, excess: Array, parameters: Array) -> Array:
    """log p(x) inside the simplex, from log xᵢ and xᵢ − E[xᵢ], both of the shape of the parameters.

    Around the mean, Σ αᵢ log(xᵢ / E[xᵢ]) is of order one while each log-gamma is of order α log α.
    """
    k, total = parameters.shape[-1], parameters.sum(-1)
    shares = log_shares(parameters)
    relative = excess * total[..., None] / parameters
    close = relative > -0.5
    ratio = jnp.where(close, jnp.log1p(jnp.where(close, relative, 0)), logs - shares)
    terms = parameters * ratio - logs + 0.5 * shares
    return terms.sum(-1) - _balance(stirling_remainder(with_total(parameters))) - _rest(k, total)


def with_total(parameters: Array) -> Array:
    """α₁, ..., αₖ, Σα in the last axis, so that a function of them all is evaluated once."""
    return jnp.concatenate([parameters, parameters.sum(-1, keepdims=True)], -1)


def _balance(values: Array) -> Array:
    """The sum over the αᵢ minus the value at Σα."""
    return values[..., :-1].sum(-1) - values[..., -1]


def _drift(parameters: Array) -> Array:
    """φ(αᵢ) − φ(Σα), φ(x) = ψ(x) − log x."""
    values = digamma_minus_log(with_total(parameters))
    return jnp.matmul(values, _less_last(parameters.shape[-1]).astype(values.dtype), precision="highest")


def _less_last(k: int) -> np.ndarray:
    """The matrix that subtracts the last of k + 1 values from each of the others. XLA would compile slices as separate
    loops that recompute parts of their input; a product compiles in half the time.
    """
    return np.concatenate([np.eye(k), -np.ones((1, k))])


def _rest(k: int, total: Array) -> Array:
    """The terms of log B in Stirling's formula besides logarithms of shares and remainders."""
    return (k - 1) * (HALF_LOG_TWO_PI - 0.5 * jnp.log(total))
