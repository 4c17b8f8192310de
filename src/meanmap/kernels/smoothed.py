"""Kernels smoothed by themselves, r(x, y) = ∫ k(x, u) k(u, y) ν(du): covariances of functions that lie in an RKHS."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import parameter
from meanmap.core.types import Array, Points
from meanmap.kernels.base import ByGram, Kernel
from meanmap.kernels.geometry import safe_sqrt, scale_columns, squared_distances
from meanmap.kernels.stationary import Matern
from meanmap.kernels.terms import check_closed_form, rbf_terms

__all__ = ["Smoothed"]

# ∫ exp(−t cosh u) cosh(νu) du by the trapezium rule, whose error falls exponentially with the number of nodes for
# integrands that decay doubly exponentially (Trefethen & Weideman 2014); accurate to 1e-12 for t above 1e-8 with these
# nodes.
NODES = np.linspace(0.0, 24.0, 241)
SMALLEST = 1e-8


class Smoothed(ByGram):
    """r(x, y) = ∫ k(x, u) k(u, y) ν(du) for an RBF kernel k, a sum of RBF kernels, or a Matérn kernel.

    A Gaussian process with covariance k has paths that lie outside the RKHS of k with probability one; with covariance
    r they lie inside (for a finite ν), so that r can be the prior of a mean embedding (Flaxman et al. 2016, section
    3.1).

    Parameters
    ----------
    kernel : RBF, a sum of multiples of RBF, or Matern
        k, with one lengthscale or one per column.
    width : float or array of shape (d,), optional
        η of the base measure ν(du) = exp(−Σ u_d²/2η_d²) du, centred at zero, for RBF. None, the default, is the
        Lebesgue measure ν(du) = du, the limit of wide η.

    Notes
    -----
    RBF: r = π^{d/2} Πℓ_d exp(−¼ Σ(x_d − y_d)²/ℓ_d²) with the Lebesgue measure; with width η each column gives √(2π)
    (2/ℓ² + 1/η²)^{−1/2} exp(−(x − y)²/4ℓ²) exp(−½ m²/(ℓ²/2 + η²)) with m = (x + y)/2 (appendix A.3 as corrected in the
    errata). In a sum, every pair of terms with lengthscales a and b contributes the same with a² + b² for 2ℓ², s² =
    a²b²/(a² + b²) for ℓ²/2, and m = (b²x + a²y)/(a² + b²). Matérn of smoothness ν: the spectral density is squared,
    which gives a Matérn kernel of smoothness 2ν + d/2.

    Examples
    --------
    >>> from meanmap.kernels import RBF
    >>> Smoothed(RBF(1.0))([0.0, 2.0]).round(4).tolist()
    [[1.7725, 0.652], [0.652, 1.7725]]
    """

    kernel: Kernel
    width: Any

    def __init__(self, kernel: Kernel, width: Array | None = None):
        check_closed_form(kernel, width)
        self.kernel = kernel
        self.width = None if width is None else parameter(width, "width")

    def check(self, points: Points, argument: str) -> None:
        """Require a single lengthscale, or one per column."""
        self.kernel.check(points, argument)

    def gram(self, x: Points, y: Points) -> jax.Array:
        """The Gram matrix, by matrix products."""
        if isinstance(self.kernel, Matern):
            scale = jnp.broadcast_to(jnp.asarray(self.kernel.lengthscale), (x.shape[1],))
            squares = squared_distances(scale_columns(x, scale), scale_columns(y, scale))
            return jnp.prod(scale) * _matern(squares, self.kernel.smoothness, x.shape[1])
        weights, scales = rbf_terms(self.kernel, x.shape[1])
        pairs = [(i, j) for i in range(len(weights)) for j in range(len(weights))]
        return sum(weights[i] * weights[j] * self._pair(scales[i], scales[j], x, y) for i, j in pairs)  # pyright: ignore[reportReturnType]

    def _pair(self, a: jax.Array, b: jax.Array, x: Points, y: Points) -> jax.Array:
        """∫ exp(−½ (x − u)²/a²) exp(−½ (u − y)²/b²) ν(du), (n, m): normal densities, the square completed in u."""
        both = a**2 + b**2
        apart = squared_distances(scale_columns(x, jnp.sqrt(both)), scale_columns(y, jnp.sqrt(both)))
        variance = a**2 * b**2 / both
        if self.width is None:
            return jnp.prod(jnp.sqrt(2 * math.pi * variance)) * jnp.exp(-apart / 2)
        width = jnp.broadcast_to(jnp.asarray(self.width), both.shape)
        amplitude = jnp.prod(jnp.sqrt(2 * math.pi / (1 / variance + 1 / width**2)))
        # m = (b²x + a²y)/(a² + b²), written as a difference of its two parts, becomes a distance too.
        spread = both * jnp.sqrt(variance + width**2)
        middles = squared_distances(scale_columns(x, spread / b**2), -scale_columns(y, spread / a**2))
        return amplitude * jnp.exp(-apart / 2 - middles / 2)


def _matern(squares: jax.Array, smoothness: float, columns: int) -> jax.Array:
    """∫ k(x, u) k(u, y) du for the Matérn kernel of lengthscale one, at squared distances.

    k has the spectral density C (κ² + |ω|²)^{−(ν + d/2)} with κ² = 2ν, and its square belongs to smoothness
    ν' = 2ν + d/2 with the same κ (Rasmussen & Williams 2006, eq. 4.15).
    """
    nu, rough = smoothness, 2 * smoothness + columns / 2
    log_density = _log_density(nu, columns, nu)
    log_amplitude = 2 * log_density - _log_density(rough, columns, nu)
    t = jnp.maximum(safe_sqrt(2 * nu * squares), SMALLEST)
    # 2^{1−ν'}/Γ(ν') t^{ν'} K_{ν'}(t), one at t = 0.
    log_bessel = _log_bessel(rough, t)
    profile = jnp.exp((1 - rough) * math.log(2) - math.lgamma(rough) + rough * jnp.log(t) + log_bessel)
    return math.exp(log_amplitude) * jnp.where(squares * 2 * nu > SMALLEST**2, profile, 1.0)


def _log_density(smoothness: float, columns: int, scale: float) -> float:
    """log C of a Matérn kernel of this smoothness with κ² = 2 × scale."""
    half = columns / 2
    gammas = math.lgamma(smoothness + half) - math.lgamma(smoothness)
    return columns * math.log(2) + half * math.log(math.pi) + gammas + smoothness * math.log(2 * scale)


def _log_bessel(order: float, t: jax.Array) -> jax.Array:
    """log K_order(t): ∫₀^∞ exp(−t cosh u) cosh(order u) du, node by node so that no larger array is stored."""
    step = NODES[1] - NODES[0]

    def add(i: object, total: jax.Array) -> jax.Array:
        u = jnp.asarray(NODES, t.dtype)[i]
        return jnp.logaddexp(total, order * u + jnp.log1p(jnp.exp(-2 * order * u)) - t * jnp.cosh(u))

    first = -t  # half of cosh(0) × 2, as all terms
    return jax.lax.fori_loop(1, len(NODES), add, first) + jnp.log(jnp.asarray(step / 2, t.dtype))
