"""Log-gamma, digamma and their differences on the positive axis, without the cancellation of large arguments.

Beta, Gamma and Dirichlet distributions of large parameters are differences of log-gammas of size a log a, of which
only order one is left. So everything here is written through Stirling's remainder δ and through ψ(x) − log x, which are
small when x is large, and each difference is taken by hand.
"""

import jax
import jax.numpy as jnp
import numpy as np

__all__ = [
    "HALF_LOG_TWO_PI",
    "SHIFT",
    "digamma_minus_log",
    "excess_minus_log",
    "log_gamma",
    "log_gamma_divergence",
    "stirling_remainder",
    "stirling_series",
    "trigamma",
]

HALF_LOG_TWO_PI = float(0.5 * np.log(2 * np.pi))

# Arguments are moved up by the recurrence Γ(x + 1) = x Γ(x) before the series is used: at |x| ≥ 10 the first term left
# out of the eight below is 43867/244188 · 10⁻¹⁷ < 2e-18.
SHIFT = 10

# B₂ₖ / (2k (2k − 1)), k = 1, ..., 8 (Abramowitz & Stegun 6.1.40), with Bernoulli's numbers B₂ₖ.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)


def stirling_series(z: jax.Array) -> jax.Array:
    """log Γ(z) − [(z − ½) log z − z + ½ log 2π] for |z| ≥ 10 in the right half-plane, real or complex."""
    inverse = 1 / z
    square = inverse * inverse
    total = jnp.zeros_like(z)
    for coefficient in reversed(_STIRLING):
        total = total * square + coefficient
    return total * inverse


def stirling_remainder(x: jax.Array) -> jax.Array:
    """δ(x) = log Γ(x) − [(x − ½) log x − x + ½ log 2π] for x > 0; about 1/(12 x) for large x."""
    y = x + SHIFT
    logs = jnp.log(_steps(x) / y[..., None]).sum(-1)
    return (x - 0.5) * jnp.log1p(SHIFT / x) - SHIFT - logs + stirling_series(y)


def _steps(x: jax.Array) -> jax.Array:
    """x, x + 1, ..., x + 9 in a last axis, which the compiler fuses into the sum over it."""
    return x[..., None] + jnp.arange(SHIFT, dtype=x.dtype)


def digamma_minus_log(x: jax.Array) -> jax.Array:
    """φ(x) = ψ(x) − log x for x > 0, to a few roundings of itself; about −1/(2 x) for large x."""
    y = x + SHIFT
    inverse = 1 / y
    square = inverse * inverse
    tail = jnp.zeros_like(x)
    for k in range(len(_STIRLING), 0, -1):
        tail = tail * square + _STIRLING[k - 1] * (2 * k - 1)
    return jnp.log1p(SHIFT / x) - inverse / 2 - tail * square - (1 / _steps(x)).sum(-1)


def trigamma(x: jax.Array) -> jax.Array:
    """ψ′(x) for x > 0."""
    _, slope = jax.jvp(digamma_minus_log, (x,), (jnp.ones_like(x),))
    return 1 / x + slope


def log_gamma(x: jax.Array) -> jax.Array:
    """log Γ(x) for x > 0, with derivatives that stay accurate."""
    return (x - 0.5) * jnp.log(x) - x + HALF_LOG_TWO_PI + stirling_remainder(x)


def excess_minus_log(p: jax.Array, q: jax.Array) -> jax.Array:
    """r − 1 − log r with r = p/q > 0, from the difference where they are close and from the ratio where r is small."""
    excess = (p - q) / q
    close = excess > -0.5
    return excess - jnp.where(close, jnp.log1p(jnp.where(close, excess, 0)), jnp.log(p) - jnp.log(q))


def log_gamma_divergence(q: jax.Array, p: jax.Array) -> jax.Array:
    """log Γ(q) − log Γ(p) − (q − p) ψ(p) − [q log(q/p) − (q − p)], what is left beside the leading Bregman term.

    The divergences of Beta, Gamma and Dirichlet are sums of these and of leading terms that join to something simple.
    """
    remainders = stirling_remainder(jnp.stack(jnp.broadcast_arrays(q, p)))
    return remainders[0] - remainders[1] - 0.5 * jnp.log(q / p) - (q - p) * digamma_minus_log(p)
