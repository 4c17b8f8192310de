"""How well a sample's mean embedding predicts points that it has not seen: a score without landmarks or noise."""

import math

import jax
import jax.numpy as jnp

from meanmap.core.anew import compiled_anew
from meanmap.core.types import Array
from meanmap.kernels.base import Kernel
from meanmap.kernels.geometry import scale_columns, squared_distances
from meanmap.kernels.terms import rbf_terms

__all__ = ["held_out"]


@compiled_anew
@jax.jit
def held_out(kernel: Kernel, x: jax.Array, used: Array) -> jax.Array:
    """Σᵢ log μ̂₋ᵢ(xᵢ)/∫k, the log density of each point under the embedding of the others, over the rows in use.

    μ̂₋ᵢ(x) = 1/(n − 1) Σ_{j ≠ i} k(xⱼ, x) is a density up to the factor ∫k(u) du = (2π)^{d/2} Σ w Πℓ. The logarithm of a
    density is a proper score, so values under different lengthscales can be compared (Duin 1976).
    """
    n = jnp.sum(used)
    weights, scales = rbf_terms(kernel, x.shape[1])
    log_terms = jnp.log(weights) - jnp.log(jnp.sum(weights * jnp.prod(scales, axis=1)))
    apart = ~jnp.eye(len(x), dtype=bool) & used[None, :]
    exponents = jnp.stack([_exponents(x, scale) + log for scale, log in zip(scales, log_terms, strict=True)])
    logs = jax.scipy.special.logsumexp(jnp.where(apart, exponents, -jnp.inf), axis=(0, 2))
    constant = math.log(2 * math.pi) * x.shape[1] / 2
    return jnp.sum(jnp.where(used, logs - jnp.log(n - 1.0) - constant, 0))


def _exponents(x: jax.Array, scale: jax.Array) -> jax.Array:
    scaled = scale_columns(x, scale)
    return -squared_distances(scaled, scaled) / 2
