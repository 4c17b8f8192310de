"""Formulas of Dirichlet distributions over a last axis of parameters; a Beta distribution is the case of two.

Each is arranged so that terms as large as Σα log Σα never meet: they are joined on paper first.
"""

import jax
import jax.numpy as jnp

from meanmap.families.real_gamma import (
    HALF_LOG_TWO_PI,
    digamma_minus_log,
    log_gamma_divergence,
    stirling_remainder,
)

__all__ = [
    "dirichlet_divergence",
    "dirichlet_entropy",
    "dirichlet_log_density",
    "expected_logs",
    "log_beta",
    "log_shares",
]


def log_shares(parameters: jax.Array) -> jax.Array:
    """log(αᵢ / Σα), to a few roundings of itself even where one parameter is nearly the whole sum."""
    k = parameters.shape[-1]
    apart = jnp.ones((k, k), parameters.dtype) - jnp.eye(k, dtype=parameters.dtype)
    others = jnp.matmul(parameters, apart, precision="highest")
    return -jnp.log1p(others / parameters)


def log_beta(parameters: jax.Array) -> jax.Array:
    """Σᵢ log Γ(αᵢ) − log Γ(Σα)."""
    k, total = parameters.shape[-1], parameters.sum(-1)
    terms = (parameters - 0.5) * log_shares(parameters) + stirling_remainder(parameters)
    return terms.sum(-1) - stirling_remainder(total) + (k - 1) * (HALF_LOG_TWO_PI - 0.5 * jnp.log(total))


def expected_logs(parameters: jax.Array) -> jax.Array:
    """E[log xᵢ] = ψ(αᵢ) − ψ(Σα), to a few roundings of itself."""
    total = parameters.sum(-1, keepdims=True)
    return log_shares(parameters) + digamma_minus_log(parameters) - digamma_minus_log(total)


def dirichlet_entropy(parameters: jax.Array) -> jax.Array:
    """log B(α) − Σᵢ (αᵢ − 1) E[log xᵢ]."""
    k, total = parameters.shape[-1], parameters.sum(-1)
    drift = digamma_minus_log(parameters) - digamma_minus_log(total)[..., None]
    terms = 0.5 * log_shares(parameters) + stirling_remainder(parameters) - (parameters - 1) * drift
    return terms.sum(-1) - stirling_remainder(total) + (k - 1) * (HALF_LOG_TWO_PI - 0.5 * jnp.log(total))


def dirichlet_divergence(p: jax.Array, q: jax.Array) -> jax.Array:
    """KL(p ‖ q) between Dirichlet distributions: a sum of Bregman divergences of log Γ.

    The leading parts join to Σq times the divergence between the two vectors of shares.
    """
    total_p, total_q = p.sum(-1), q.sum(-1)
    shares = q / total_q[..., None]
    leading = total_q * (shares * (log_shares(q) - log_shares(p))).sum(-1)
    terms = log_gamma_divergence(q, p).sum(-1) - log_gamma_divergence(total_q, total_p)
    return jnp.maximum(leading + terms, 0)


def dirichlet_log_density(logs: jax.Array, excess: jax.Array, parameters: jax.Array) -> jax.Array:
    """log p(x) inside the simplex, from log xᵢ and xᵢ − E[xᵢ], both of the shape of the parameters.

    Around the mean, Σ αᵢ log(xᵢ / E[xᵢ]) is of order one while each log-gamma is of order α log α.
    """
    k, total = parameters.shape[-1], parameters.sum(-1)
    relative = excess * total[..., None] / parameters
    close = relative > -0.5
    ratio = jnp.where(close, jnp.log1p(jnp.where(close, relative, 0)), logs - log_shares(parameters))
    terms = parameters * ratio - logs + 0.5 * log_shares(parameters) - stirling_remainder(parameters)
    return terms.sum(-1) + stirling_remainder(total) - (k - 1) * (HALF_LOG_TWO_PI - 0.5 * jnp.log(total))
