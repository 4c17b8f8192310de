"""How well a sample's mean embedding predicts held-out points: a score without landmarks or noise."""

import math

import jax
import jax.numpy as jnp

from meanmap.core.anew import compiled_anew
from meanmap.core.types import Array
from meanmap.kernels.base import Kernel
from meanmap.kernels.geometry import safe_sqrt, scale_columns, squared_distances
from meanmap.kernels.stationary import Matern
from meanmap.kernels.terms import rbf_terms

__all__ = ["held_out"]


@compiled_anew
@jax.jit
def held_out(kernel: Kernel, x: jax.Array, used: Array) -> jax.Array:
    """Σᵢ log μ̂₋ᵢ(xᵢ)/∫k, the log density of each point under the embedding of the others, over the rows in use.

    μ̂₋ᵢ(x) = 1/(n − 1) Σ_{j ≠ i} k(xⱼ, x) is a density up to the factor ∫k(u) du: (2π)^{d/2} Σ w Πℓ of RBF, and
    (2π/ν)^{d/2} Γ(ν + d/2)/Γ(ν) Πℓ of Matérn. The logarithm of a density is a proper score, so values under different
    lengthscales can be compared (Duin 1976).
    """
    n, d = jnp.sum(used), x.shape[1]
    if isinstance(kernel, Matern):
        nu, scale = kernel.smoothness, jnp.broadcast_to(jnp.asarray(kernel.lengthscale), (d,))
        scaled = scale_columns(x, scale)
        exponents = _log_matern(squared_distances(scaled, scaled), nu)[None] - jnp.sum(jnp.log(scale))
        constant = math.log(2 * math.pi / nu) * d / 2 + math.lgamma(nu + d / 2) - math.lgamma(nu)
    else:
        weights, scales = rbf_terms(kernel, d)
        log_terms = jnp.log(weights) - jnp.log(jnp.sum(weights * jnp.prod(scales, axis=1)))
        exponents = jnp.stack([_exponents(x, scale) + log for scale, log in zip(scales, log_terms, strict=True)])
        constant = math.log(2 * math.pi) * d / 2
    apart = ~jnp.eye(len(x), dtype=bool) & used[None, :]
    logs = jax.scipy.special.logsumexp(jnp.where(apart, exponents, -jnp.inf), axis=(0, 2))
    return jnp.sum(jnp.where(used, logs - jnp.log(n - 1.0) - constant, 0))


def _log_matern(squares: jax.Array, smoothness: float) -> jax.Array:
    """log k, which far away is a number where k is zero."""
    t = safe_sqrt(2 * smoothness * squares)
    return {0.5: -t, 1.5: jnp.log1p(t) - t, 2.5: jnp.log1p(t + t * t / 3) - t}[smoothness]


def _exponents(x: jax.Array, scale: jax.Array) -> jax.Array:
    scaled = scale_columns(x, scale)
    return -squared_distances(scaled, scaled) / 2
