"""Log-gamma of complex arguments, which JAX lacks, and the ratio Γ(a + iw)/Γ(a) of characteristic functions."""

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.families.real_gamma import HALF_LOG_TWO_PI, SHIFT, stirling_series

__all__ = ["complex_log_gamma", "gamma_ratio", "log_gamma_ratio"]


@jax.jit
def complex_log_gamma(z: jax.Array) -> jax.Array:
    """The principal branch of log Γ(z), analytic off the negative real axis, as `scipy.special.loggamma`.

    For Re z ≥ ½ the argument is moved up by ten with Γ(z + 1) = z Γ(z), and Stirling's series is summed there. For
    Re z < ½ it is reflected: log Γ(z) = log π − log sin πz − log Γ(1 − z), with the branch of log sin πz that is
    analytic in each half-plane.

    Parameters
    ----------
    z : complex array
        Any shape; not a pole (0, −1, −2, ...).

    Notes
    -----
    Abramowitz & Stegun (1964), eq. 6.1.15, 6.1.17 and 6.1.40; Hare (1997) for the branch. Pure and traceable.
    """
    z = jnp.asarray(z)
    left = z.real < 0.5
    right_half = jnp.where(left, 1 - z, z)
    y = right_half + SHIFT
    forward = (y - 0.5) * jnp.log(y) - y + HALF_LOG_TWO_PI + stirling_series(y)
    for k in range(SHIFT):
        forward = forward - jnp.log(right_half + k)
    inside = jnp.where(left, z, 0.25 + 0.25j)  # any harmless point, so that the unused branch has finite derivatives
    return jnp.where(left, float(np.log(np.pi)) - _log_sin_pi(inside) - forward, forward)


def _log_sin_pi(z: jax.Array) -> jax.Array:
    """log sin πz in the branch that is analytic in Im z > 0 and real on (0, 1); conjugate below the real axis."""
    sign = jnp.where(z.imag < 0, -1.0, 1.0)
    x, y = z.real, z.imag * sign
    # sin πz = (i/2) e^{−iπz} (1 − e^{2πiz}); x is reduced to |turn| ≤ ½ first, so that zeros of sin are seen exactly.
    turn = x - jnp.round(x)
    decay, angle = -2 * np.pi * y, 2 * np.pi * turn
    real = -jnp.expm1(decay) + jnp.exp(decay) * 2 * jnp.sin(angle / 2) ** 2
    imaginary = -jnp.exp(decay) * jnp.sin(angle)
    log_modulus = 0.5 * jnp.log(real**2 + imaginary**2) + np.pi * y - float(np.log(2))
    phase = jnp.arctan2(imaginary, real) + np.pi * (0.5 - x)
    return jax.lax.complex(log_modulus, sign * phase)


def gamma_ratio(a: jax.Array, w: jax.Array) -> jax.Array:
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
        # Times 1/(1 + i t): products instead of logarithms, as only the exponential is asked for.
        t = w / (a + k)
        scale = 1 / (1 + t * t)
        real, imaginary = (real + imaginary * t) * scale, (imaginary - real * t) * scale
    return jax.lax.complex(real, imaginary)


def log_gamma_ratio(a: jax.Array, w: jax.Array) -> jax.Array:
    """log Γ(a + iw) − log Γ(a), as [`gamma_ratio`][] but safe from underflow, at twice its cost."""
    log_modulus, phase = _shifted_ratio(a, w)
    for k in range(SHIFT):
        t = w / (a + k)
        log_modulus = log_modulus - 0.5 * jnp.log1p(t * t)
        phase = phase - jnp.arctan(t)
    return jax.lax.complex(log_modulus, phase)


def _shifted_ratio(a: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Real and imaginary part of log Γ(y + iw) − log Γ(y) at y = a + 10, by Stirling's series."""
    y = a + SHIFT
    t = w / y
    # log(1 + i t)
    real, imaginary = 0.5 * jnp.log1p(t * t), jnp.arctan(t)
    tail = stirling_series(jax.lax.complex(jnp.broadcast_to(y, t.shape), jnp.broadcast_to(w, t.shape)))
    log_modulus = (y - 0.5) * real - w * imaginary + tail.real - stirling_series(y)
    return log_modulus, (y - 0.5) * imaginary + w * (real + jnp.log(y) - 1) + tail.imag
