"""The ratio Γ(a + iw)/Γ(a), the characteristic function of the logarithm of a Gamma variable."""

import jax
import jax.numpy as jnp

from meanmap.core.types import Array
from meanmap.families.real_gamma import SHIFT, stirling_series

__all__ = ["gamma_ratio", "log_gamma_ratio"]


def gamma_ratio(a: Array, w: Array) -> Array:
    """Γ(a + iw)/Γ(a) for real a > 0 and real w: the characteristic function of the log of a Gamma(a, 1).

    The two log-gammas grow like a log a; their difference is formed term by term, so that the error is a few
    roundings of |w| log(a + |w|), whatever a is.

    Parameters
    ----------
    a : array
        Real, above 0.
    w : array
        Real; broadcasts against a.
    """
    log_modulus, phase = _shifted_ratio(a, w)
    size = jnp.exp(log_modulus)
    real, imaginary = size * jnp.cos(phase), size * jnp.sin(phase)
    for k in range(SHIFT):
        # Times 1/(1 + i t): products instead of logarithms, as only the exponential is needed.
        t = w / (a + k)
        scale = 1 / (1 + t * t)
        real, imaginary = (real + imaginary * t) * scale, (imaginary - real * t) * scale
    return jax.lax.complex(real, imaginary)


def log_gamma_ratio(a: Array, w: Array) -> Array:
    """log Γ(a + iw) − log Γ(a), as `gamma_ratio` but safe from underflow, at twice its cost."""
    log_modulus, phase = _shifted_ratio(a, w)
    for k in range(SHIFT):
        t = w / (a + k)
        log_modulus = log_modulus - 0.5 * jnp.log1p(t * t)
        phase = phase - jnp.arctan(t)
    return jax.lax.complex(log_modulus, phase)


def _shifted_ratio(a: Array, w: Array) -> tuple[Array, Array]:
    """Real and imaginary part of log Γ(y + iw) − log Γ(y) at y = a + 10, by Stirling's series."""
    y = a + SHIFT
    t = w / y
    # log(1 + i t)
    real, imaginary = 0.5 * jnp.log1p(t * t), jnp.arctan(t)
    tail = stirling_series(jax.lax.complex(jnp.broadcast_to(y, t.shape), jnp.broadcast_to(w, t.shape)))
    log_modulus = (y - 0.5) * real - w * imaginary + jnp.real(tail) - stirling_series(y)
    return log_modulus, (y - 0.5) * imaginary + w * (real + jnp.log(y) - 1) + jnp.imag(tail)
