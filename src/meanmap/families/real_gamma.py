"""Log-gamma, digamma and their differences on the positive axis, without the cancellation of large arguments.

With large parameters, formulas of Beta, Gamma and Dirichlet distributions are differences of order one between
log-gammas of size a log a. So everything here is expressed in Stirling's remainder δ and ψ(x) − log x, which are small
when x is large, and each difference is rearranged analytically.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.types import Array

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
    "trigamma_minus_inverse",
]

HALF_LOG_TWO_PI = float(0.5 * np.log(2 * np.pi))

# Arguments below 10 are moved up by the recurrence Γ(x + 1) = x Γ(x) before the series is used: at |x| ≥ 10 the first
# term left out of the eight below is 43867/244188 · 10⁻¹⁷ < 2e-18.
SHIFT = 10

# B₂ₖ / (2k (2k − 1)), k = 1, ..., 8 (Abramowitz & Stegun 6.1.40), with Bernoulli's numbers B₂ₖ.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)


def stirling_series(z: Array) -> Array:
    """log Γ(z) − [(z − ½) log z − z + ½ log 2π] for |z| ≥ 10 in the right half-plane, real or complex."""
    inverse = 1 / z
    return _series(inverse * inverse, _STIRLING) * inverse


@jax.custom_jvp
def stirling_remainder(x: Array) -> Array:
    """δ(x) = log Γ(x) − [(x − ½) log x − x + ½ log 2π] for x > 0; about 1/(12 x) for large x."""
    moved = _moved(x)
    inverse = 1 / moved.y
    product = jnp.ones_like(x)
    for constant in _PAIRS:
        product = product * ((moved.pair + constant) * inverse * inverse)
    steps = (moved.x - 0.5) * jnp.log(moved.y / moved.x) - SHIFT - jnp.log(product)
    return jnp.where(moved.any, steps, 0) + stirling_series(moved.y)


@stirling_remainder.defjvp
def _remainder_derivative(primals, tangents):
    (x,), (step,) = primals, tangents
    return stirling_remainder(x), step * _digamma_remainder(x)


@jax.custom_jvp
def digamma_minus_log(x: Array) -> Array:
    """φ(x) = ψ(x) − log x for x > 0, to a few roundings of itself; about −1/(2 x) for large x."""
    return _digamma_remainder(x) - 0.5 / x


@digamma_minus_log.defjvp
def _digamma_derivative(primals, tangents):
    (x,), (step,) = primals, tangents
    return digamma_minus_log(x), step * trigamma_minus_inverse(x)


def trigamma(x: Array) -> Array:
    """ψ′(x) for x > 0."""
    return 1 / x + trigamma_minus_inverse(x)


def trigamma_minus_inverse(x: Array) -> Array:
    """φ′(x) = ψ′(x) − 1/x for x > 0; about 1/(2 x²) for large x."""
    moved = _moved(x)
    first, second = moved.sums()
    steps = moved.width * moved.width * second - 2 * first - SHIFT / (moved.x * moved.y)
    inverse = 1 / moved.y
    square = inverse * inverse
    tail = _series(square, [2 * k * (2 * k - 1) * c for k, c in enumerate(_STIRLING, 1)])
    return jnp.where(moved.any, steps, 0) + square * (0.5 + inverse * tail)


def _digamma_remainder(x: Array) -> Array:
    """φ(x) + 1/(2 x), the derivative of δ; about −1/(12 x²) for large x."""
    moved = _moved(x)
    first, _ = moved.sums()
    steps = jnp.log(moved.y / moved.x) - moved.width * first + 0.5 * SHIFT / (moved.x * moved.y)
    square = (1 / moved.y) ** 2
    tail = _series(square, [(2 * k - 1) * c for k, c in enumerate(_STIRLING, 1)])
    return jnp.where(moved.any, steps, 0) - square * tail


# (x + k)(x + 9 − k) = x (x + 9) + k (9 − k) for k = 0, ..., 4: ten steps are five pairs, which compile to half.
_PAIRS = tuple(k * (SHIFT - 1 - k) for k in range(SHIFT // 2))


class _Moved(NamedTuple):
    """Arguments x below 10, moved up to y = x + 10; for larger ones y is the argument, and `any` is False.

    `pair` is x (x + 9), and `width` is x + (x + 9).
    """

    any: Array
    x: Array
    y: Array
    pair: Array
    width: Array

    def sums(self) -> tuple[Array, Array]:
        """The sum of 1/(x (x + 9) + c) over the pairs, and the sum of its squares."""
        each = [1 / (self.pair + constant) for constant in _PAIRS]
        return sum(each[1:], each[0]), sum((one * one for one in each[1:]), each[0] * each[0])


def _moved(x: Array) -> _Moved:
    few = ~(x >= SHIFT)
    small = jnp.where(few, x, SHIFT)
    return _Moved(few, small, jnp.where(few, x + SHIFT, x), small * (small + (SHIFT - 1)), 2 * small + (SHIFT - 1))


def _series(square: Array, coefficients: Sequence[float]) -> Array:
    """Σ cₖ square^(k − 1), by Horner's scheme."""
    total = jnp.full_like(square, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * square + coefficient
    return total


def log_gamma(x: Array) -> Array:
    """log Γ(x) for x > 0, with derivatives that stay accurate."""
    return (x - 0.5) * jnp.log(x) - x + HALF_LOG_TWO_PI + stirling_remainder(x)


def excess_minus_log(p: Array, q: Array) -> Array:
    """r − 1 − log r with r = p/q > 0, from the difference where they are close and from the ratio where r is small."""
    excess = (p - q) / q
    close = excess > -0.5
    return excess - jnp.where(close, jnp.log1p(jnp.where(close, excess, 0)), jnp.log(p) - jnp.log(q))


def log_gamma_divergence(q: Array, p: Array) -> Array:
    """log Γ(q) − log Γ(p) − (q − p) ψ(p) − [q log(q/p) − (q − p)], the remainder after the leading Bregman term.

    The divergences of Beta, Gamma and Dirichlet are sums of such remainders and of leading terms with a simple total.
    """
    remainders = stirling_remainder(jnp.stack(jnp.broadcast_arrays(q, p)))
    return remainders[0] - remainders[1] - 0.5 * jnp.log(q / p) - (q - p) * digamma_minus_log(p)
