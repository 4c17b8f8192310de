"""Kernels smoothed by themselves, r(x, y) = ∫ k(x, u) k(u, y) ν(du): covariances of functions that lie in an RKHS."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import parameter
from meanmap.core.domains import Domain
from meanmap.core.door import all_concrete, is_concrete
from meanmap.core.errors import ParameterError, ShapeError
from meanmap.core.types import Array, Points
from meanmap.kernels.base import ByGram, Kernel
from meanmap.kernels.geometry import scale_columns, squared_distances
from meanmap.kernels.scales import of_two, pairs
from meanmap.kernels.terms import Term, blocks, check_terms, matrix_of, terms_of

__all__ = ["Smoothed"]


class Smoothed(ByGram):
    """r(x, y) = ∫ k(x, u) k(u, y) ν(du) for sums of products of RBF and Matérn kernels.

    A Gaussian process with covariance k has paths that lie outside the RKHS of k with probability one; with covariance
    r they lie inside (for a finite ν), so that r can be the prior of a mean embedding (Flaxman et al. 2016, section
    3.1).

    Parameters
    ----------
    kernel : RBF, Matern, products of RBF with one Matern, or a sum of multiples of these
        k, with one lengthscale or one per column; or `OnColumns` of such kernels multiplied, and sums of these.
    width : float or array of shape (d,), optional
        η of the base measure ν(du) = exp(−Σ u_d²/2η_d²) du, centred at zero. None, the default, is the Lebesgue measure
        ν(du) = du, the limit of wide η.

    Notes
    -----
    RBF: r = π^{d/2} Πℓ_d exp(−¼ Σ(x_d − y_d)²/ℓ_d²) with the Lebesgue measure; with width η each column gives
    √(2π) (2/ℓ² + 1/η²)^{−1/2} exp(−(x − y)²/4ℓ²) exp(−½ m²/(ℓ²/2 + η²)) with m = (x + y)/2 (appendix A.3 as corrected
    in the errata). In a sum, every pair of terms with lengthscales a and b contributes the same with a² + b² for 2ℓ²,
    s² = a²b²/(a² + b²) for ℓ²/2, and m = (b²x + a²y)/(a² + b²). If k is a product of kernels on separate columns, r is
    the product of their r.

    Matérn: k is a mixture of Gaussians over scales, and so is r, by the trapezium rule (`kernels.scales`). The error is
    below 2e-9 r(0, 0) for each pair of terms on the same columns, for any lengthscales, points and number of columns,
    and r remains positive definite. In two columns a Matérn kernel takes 40 to 180 Gaussians, alone or with RBF or
    another Matérn kernel, if both have one lengthscale. It takes hundreds, or thousands for ν = 1/2, with a product of
    RBF and Matérn, with another Matérn kernel with a lengthscale per column, and with any Matérn kernel under a base
    measure with a width. For 300 points in two columns RBF takes 0.4 ms, Matern(smoothness=2.5) 11, RBF + Matern 30,
    RBF * Matern 260, and RBF * Matern(smoothness=0.5) 2600; derivatives three times as much.

    Examples
    --------
    >>> from meanmap.kernels import RBF
    >>> Smoothed(RBF(1.0))([0.0, 2.0]).round(4).tolist()
    [[1.7725, 0.652], [0.652, 1.7725]]
    """

    kernel: Kernel
    width: Any

    def __init__(self, kernel: Kernel, width: Array | None = None):
        check_terms(kernel)
        self.kernel = kernel
        self.width = None if width is None else parameter(width, "width")

    @property
    def domain(self) -> Domain:
        """As k reads them."""
        return self.kernel.domain

    def check(self, points: Points, argument: str) -> None:
        """Require a single lengthscale, or one per column."""
        self.kernel.check(points, argument)
        self.check_matrix(matrix_of(self.kernel, points), argument)

    def check_matrix(self, x: Points, argument: str) -> None:
        """Require a single width, or one per column, and r that is a number."""
        columns = x.shape[1]
        if self.width is not None and self.width.ndim == 1 and self.width.shape[0] not in (1, columns):
            raise ShapeError(
                f"width has {self.width.shape[0]} entries, but {argument} has {columns} columns; expected one number, "
                "or one per column."
            )
        if is_concrete(x) and self._may_overflow(columns, x.dtype):
            with jax.ensure_compile_time_eval():
                centre = jnp.zeros((1, columns), x.dtype)
                volume = float(self.of_matrix(centre, centre)[0, 0])
            if not 0 < volume < np.inf:
                raise ParameterError(
                    f"kernel is a {type(self.kernel).__name__} whose lengthscales multiply to {volume:g} in {columns} "
                    "columns, out of range: change the units of the columns."
                )

    def _may_overflow(self, columns: int, dtype: Any) -> bool:
        """Whether r(0, 0) has to be computed to know that it is a number: it is a volume, ℓ to the power of columns."""
        factors = [factor for term in terms_of(self.kernel) for factor in term.factors]
        scales = [factor.kernel.lengthscale for factor in factors] + ([] if self.width is None else [self.width])
        if not all_concrete(scales):
            return False
        logs = max(float(np.abs(np.log(np.asarray(each, float))).max()) for each in scales)
        # A Matérn kernel has up to d! of the volume.
        return columns * (logs + 1 + math.log(1 + columns)) > math.log(jnp.finfo(dtype).max)

    def gram(self, x: Points, y: Points) -> jax.Array:
        """The Gram matrix: of every pair of terms, and of these the product over blocks of columns."""
        return self.of_matrix(matrix_of(self.kernel, x), matrix_of(self.kernel, y))

    def of_matrix(self, x: Points, y: Points) -> jax.Array:
        """The Gram matrix of points whose columns are those of `names_of`."""
        terms, columns = terms_of(self.kernel), x.shape[1]
        total: Any = 0.0
        for i, first in enumerate(terms):
            # By the Lebesgue measure r of two terms is the same in both orders.
            for j, second in enumerate(terms[: i + 1] if self.width is None else terms):
                part: Any = first.weight * second.weight * (1 if i == j or self.width is not None else 2)
                for block in blocks(first, second, columns):
                    part = part * self._of_terms(first, second, block, x, y)
                total = total + part
        return total

    def _of_terms(self, first: Term, second: Term, block: tuple[int, ...], x: Points, y: Points) -> jax.Array:
        """∫ k₁(x, u) k₂(u, y) ν(du), (n, m), over the columns of a block, for two terms without their weights."""
        d, on = x.shape[1], np.array(block)
        width = None if self.width is None else jnp.broadcast_to(jnp.asarray(self.width), (d,))[on]
        a, b = first.scales(block, d), second.scales(block, d)
        if len(block) < d:
            x, y = x[:, on], y[:, on]
        if width is None and (similar := _similar(first, second, block, d)):
            unit, c, nu = similar
            squares, weights = of_two(nu[0], nu[1], len(block), c[0], c[1])
            apart = squared_distances(scale_columns(x, unit), scale_columns(y, unit))
            return jnp.prod(unit) * _added(
                lambda k: weights[k] * jnp.exp(-apart / (2 * squares[k])), len(weights), apart
            )
        one, two = first.shares(block, d), second.shares(block, d)
        i, j, times = pairs(one, two, first is second and width is None)
        weights = jnp.asarray(times * one[i] * two[j], a.dtype)
        nothing = jnp.zeros((x.shape[0], y.shape[0]), a.dtype)
        return _added(lambda k: weights[k] * _pair(a[i][k], b[j][k], width, x, y), len(i), nothing)


def _pair(a: jax.Array, b: jax.Array, width: jax.Array | None, x: Points, y: Points) -> jax.Array:
    """∫ exp(−½ (x − u)²/a²) exp(−½ (u − y)²/b²) ν(du), (n, m): normal densities, the square completed in u."""
    both = jnp.hypot(a, b)  # no fourth powers of lengthscales, which float32 does not hold in small units
    apart = squared_distances(scale_columns(x, both), scale_columns(y, both))
    deviation = a * (b / both)
    if width is None:
        return jnp.prod(math.sqrt(2 * math.pi) * deviation) * jnp.exp(-apart / 2)
    wider = jnp.hypot(deviation, width)
    amplitude = jnp.prod(math.sqrt(2 * math.pi) * deviation * (width / wider))
    # m = (b²x + a²y)/(a² + b²), written as the difference of the two parts, turns into a distance too.
    middles = squared_distances(scale_columns(x, wider * (both / b) ** 2), -scale_columns(y, wider * (both / a) ** 2))
    return amplitude * jnp.exp(-apart / 2 - middles / 2)


def _similar(first: Term, second: Term, block: tuple[int, ...], d: int) -> Any:
    """Of two Matérn kernels with lengthscales c₁ ℓ and c₂ ℓ: ℓ (b,), (c₁, c₂) and (ν₁, ν₂); otherwise None."""
    alone = [[f for f in term.factors if set(f.on(d)) & set(block)] for term in (first, second)]
    if any(len(factors) > 1 or factors[0].smoothness is None for factors in alone):
        return None
    (one,), (two,) = alone
    a, b = (jnp.asarray(factor.kernel.lengthscale) for factor in (one, two))
    if first is second:
        unit, multiples = jnp.broadcast_to(a, (len(block),)), (jnp.ones((), a.dtype),) * 2
    elif a.size == b.size == 1 and one.on(d) == two.on(d):
        unit, multiples = jnp.ones(len(block), a.dtype), (a.reshape(()), b.reshape(()))
    else:
        return None
    return unit, multiples, (one.smoothness, two.smoothness)


def _added(part: Callable[[Any], jax.Array], count: int, like: jax.Array) -> jax.Array:
    """Σ_k part(k), so that one part is held at a time, differentiated too."""
    if count == 1:
        return part(0)
    return jax.lax.fori_loop(0, count, jax.checkpoint(lambda k, total: total + part(k)), jnp.zeros_like(like))
