"""How well a sample's mean embedding predicts held-out points: a score without landmarks or noise."""

import jax
import jax.numpy as jnp

from meanmap.core.anew import compiled_anew
from meanmap.core.types import Array
from meanmap.kernels.base import Kernel
from meanmap.kernels.terms import terms_of

__all__ = ["held_out"]


@compiled_anew
@jax.jit
def held_out(kernel: Kernel, x: jax.Array, used: Array) -> jax.Array:
    """Σᵢ log μ̂₋ᵢ(xᵢ)/∫k, the log density of each point under the embedding of the others, over the rows in use.

    μ̂₋ᵢ(x) = 1/(n − 1) Σ_{j ≠ i} k(xⱼ, x) is a density up to the factor ∫k(u) du, known for Gaussians, into which other
    kernels are split. The logarithm of a density is a proper score, so values under different lengthscales can be
    compared (Duin 1976).
    """
    n, d = jnp.sum(used), x.shape[1]
    terms = terms_of(kernel)
    weights = jnp.stack([jnp.asarray(term.weight) for term in terms])
    log_masses = jnp.stack([term.log_mass(d) for term in terms])
    constant = jax.scipy.special.logsumexp(log_masses, b=weights)
    exponents = jnp.stack([term.log_gram(x, x) + jnp.log(weight) for term, weight in zip(terms, weights, strict=True)])
    apart = ~jnp.eye(len(x), dtype=bool) & used[None, :]
    logs = jax.scipy.special.logsumexp(jnp.where(apart, exponents, -jnp.inf), axis=(0, 2))
    return jnp.sum(jnp.where(used, logs - jnp.log(n - 1.0) - constant, 0))
