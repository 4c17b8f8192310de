"""The marginal pseudolikelihood of a kernel: how probable a sample is when its embedding is a Gaussian process."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import check_rows, parameter
from meanmap.core.door import Door
from meanmap.core.errors import ColumnError, KindError, ShapeError
from meanmap.core.points import count
from meanmap.kernels.base import Kernel
from meanmap.kernels.geometry import FEW_COLUMNS
from meanmap.kernels.reading import check_alike, read_points
from meanmap.kernels.smoothed import Smoothed
from meanmap.kernels.terms import is_rbf_sum, rbf_terms

__all__ = ["log_pseudolikelihood", "objective"]

# Up to this many differences of points and landmarks are held at once (128 MB), beyond, those of a block of rows.
HELD = 16_000_000
BLOCK = 512
# Points nearer than this many roundings are one.
SAME = 16
# Of a matrix with ones on its diagonal; about the rounding of sums over landmarks.
LEAST_PIVOT = 1e-15


def log_pseudolikelihood(kernel: Kernel, x: Any, landmarks: Any, *, noise: float = 1.0, width: Any = None) -> Any:
    """log p(x | k) of Flaxman et al. (2016), eq. 15 with the corrections of the errata.

    The values φ(xᵢ) = k(xᵢ, z) at m landmarks z are taken for noisy looks at the embedding, φ(xᵢ) ~ N(μ(z), τ² I) with
    μ ~ GP(0, r), and turned into a density of the points by the volume that φ gives them:

    log p = −½ {log|A| + μ̂ᵀ A⁻¹ μ̂ + S/τ² + m log n + m (n − 1) log τ² + m n log 2π} + Σᵢ log γ(xᵢ)

    with A = R + τ²/n I, S = Σᵢⱼ (k(xᵢ, zⱼ) − μ̂ⱼ)² and γ(x)² = det Σ_l ∇k(x, z_l) ∇k(x, z_l)ᵀ.

    Parameters
    ----------
    kernel : RBF, or a sum of multiples of RBF
        k, with one lengthscale or one per column.
    x : points (n, d)
        The sample.
    landmarks : points (m, d)
        z: at least d of them, and not all on one side of any plane of lower dimension.
    noise : float
        τ².
    width : float or array, optional
        η of a Gaussian base measure, centred at zero; None is the Lebesgue measure.

    Notes
    -----
    O(n m d² + m³) time and O(m² + n) memory; JAX inputs can be differentiated.

    Examples
    --------
    >>> import numpy as np
    >>> from meanmap.kernels import RBF
    >>> x = np.random.default_rng(0).normal(size=(200, 1))
    >>> scales = (0.01, 0.5, 50.0)
    >>> values = [log_pseudolikelihood(RBF(scale), x, x[:20]) for scale in scales]
    >>> int(np.argmax(values))
    1
    """
    if not is_rbf_sum(kernel):
        raise KindError(
            f"kernel is {kernel!r}; expected RBF, or a sum of RBF: the volume of their features has a closed form."
        )
    parameter(noise, "noise", axes=0)
    with Door(kernel, x, landmarks) as door:
        points, z = read_points(kernel, x, "x", door), read_points(kernel, landmarks, "landmarks", door)
        check_alike(points, z, "x", "landmarks")
        check_rows(count(points), "x", least=2)
        if count(z) < points.shape[1]:
            raise ShapeError(
                f"there are {count(z)} landmarks for {points.shape[1]} columns; expected at least as many."
            )
        if not door.follows and (np.ptp(np.asarray(z), axis=0) == 0).any() and (np.ptp(points, axis=0) == 0).any():
            raise ColumnError(
                "a column of x and of the landmarks is constant, which gives the points no volume: drop it."
            )
        value = objective(door.cast(kernel), points, z, jnp.asarray(noise, door.dtype), width)
        return value if door.follows else float(value)


@jax.jit
def objective(
    kernel: Kernel, x: jax.Array, z: jax.Array, noise: Any, width: Any = None, used: jax.Array | None = None
) -> jax.Array:
    """The same as a pure function; `used` marks the rows that count, where others only fill up a shape."""
    volumes = log_volumes(kernel, x, z)
    total = jnp.sum(volumes if used is None else jnp.where(used, volumes, 0))
    return log_normal(kernel, x, z, noise, width, used) + total


def log_normal(
    kernel: Kernel, x: jax.Array, z: jax.Array, noise: Any, width: Any = None, used: jax.Array | None = None
) -> jax.Array:
    """log N(k(X, z); 0, 1 1ᵀ ⊗ R + τ² I), the density of all n m values."""
    m = z.shape[0]
    weights = jnp.ones(x.shape[0], x.dtype) if used is None else used.astype(x.dtype)
    n = jnp.sum(weights)
    values = kernel.gram(x, z)
    mean = weights @ values / n
    spread = jnp.sum(weights @ (values - mean) ** 2)
    whole = Smoothed(kernel, width).gram(z, z) + noise / n * jnp.eye(m, dtype=x.dtype)
    root = jnp.linalg.cholesky(whole)
    half = jax.scipy.linalg.solve_triangular(root, mean, lower=True)
    gaussian = 2 * jnp.sum(jnp.log(jnp.diagonal(root))) + half @ half + spread / noise
    gaussian += m * jnp.log(n) + m * (n - 1) * jnp.log(noise) + m * n * math.log(2 * math.pi)
    return -gaussian / 2


def log_volumes(kernel: Kernel, x: jax.Array, z: jax.Array) -> jax.Array:
    """log γ(xᵢ), (n,): γ² is the determinant of Σ_l ∇k(x, z_l) ∇k(x, z_l)ᵀ.

    The largest k² of a row is taken out, so that lengthscales far below the spacing of landmarks do not underflow, and
    columns are scaled by their shortest lengthscale, so that their units do not matter.
    """
    columns = x.shape[1]
    weights, scales = rbf_terms(kernel, columns)
    unit = jnp.min(scales, axis=0)
    x, z, scales = x / unit, z / unit, scales / unit
    # Of one kernel in many columns all moments are one matrix product, about the middle of the landmarks.
    products = len(weights) == 1 and columns > FEW_COLUMNS
    centre = jnp.mean(z, axis=0)
    table = _moment_table(z - centre) if products else z

    def one(point: jax.Array) -> jax.Array:
        apart = point - z
        exponents = -jnp.sum((apart / scales[:, None]) ** 2, axis=2) / 2
        # The nearest landmark that is not the point itself, which has no slope; compiled, a difference from itself may
        # come out as rounding.
        other = jnp.sum(apart**2, axis=1) > (SAME * jnp.finfo(x.dtype).eps) ** 2 * jnp.sum(point**2)
        top = jax.lax.stop_gradient(jnp.max(jnp.where(other, exponents, -jnp.inf)))
        profile = weights[:, None] * jnp.exp(jnp.where(exponents > top, top, exponents) - top)
        if products:
            moments = _about(point - centre, profile[0] ** 2 @ table)
        else:
            slopes = (profile.T @ (1 / scales**2)) * apart
            turned = _turned(slopes) if 1 < columns <= FEW_COLUMNS else slopes
            moments = turned.T @ turned
        return 0.5 * _log_determinant(moments) + columns * top

    small = x.size * len(z) <= HELD
    found = jax.vmap(one)(x) if small else jax.lax.map(jax.checkpoint(one), x, batch_size=BLOCK)
    return found - jnp.sum(jnp.log(unit))


def _moment_table(z: jax.Array) -> jax.Array:
    """1, z and z zᵀ for each landmark, (m, 1 + d + d²)."""
    m, columns = z.shape
    return jnp.concatenate([jnp.ones((m, 1), z.dtype), z, (z[:, :, None] * z[:, None, :]).reshape(m, columns**2)], 1)


def _about(x: jax.Array, sums: jax.Array) -> jax.Array:
    """Σ w (x − z)(x − z)ᵀ from Σ w, Σ w z and Σ w z zᵀ."""
    columns = len(x)
    first, second = sums[1 : columns + 1], sums[columns + 1 :].reshape(columns, columns)
    crossed = jnp.outer(x, first)
    return sums[0] * jnp.outer(x, x) - crossed - crossed.T + second


def _turned(slopes: jax.Array) -> jax.Array:
    """Slopes (m, d) in an orthonormal basis that starts with the longest of them, then the longest of what is left.

    Far from all landmarks but one, moments in the given columns are singular to rounding; in these they are graded.
    """
    left, basis, pivots = jax.lax.stop_gradient(slopes), [], []
    for _ in range(slopes.shape[1]):
        lengths = jnp.sum(left**2, axis=1)
        pivot = jnp.argmax(lengths)
        direction = left[pivot] / jnp.sqrt(lengths[pivot])
        left = (left - jnp.outer(left @ direction, direction)).at[pivot].set(0)
        basis.append(direction)
        pivots.append(pivot)
    turned = slopes @ jnp.stack(basis, axis=1)
    for step, pivot in enumerate(pivots):  # zero but for rounding, which would count where all else is smaller still
        turned = turned.at[pivot, step + 1 :].add(-jax.lax.stop_gradient(turned[pivot, step + 1 :]))
    return turned


def _log_determinant(moments: jax.Array) -> jax.Array:
    """Of a positive definite matrix, in units of its diagonal."""
    size = jnp.diagonal(moments)
    if len(size) == 1:
        return jnp.log(size[0])
    root = jnp.sqrt(size)
    return jnp.sum(jnp.log(size)) + _swept(moments / jnp.outer(root, root))[0]


@jax.custom_jvp
def _swept(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Log determinant and inverse by sweeping each column; pivots below rounding count as rounding.

    Elementwise over many small matrices at once: calls of LAPACK for each of them cost more, the more threads it has.
    """

    def sweep(k: Any, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        total, left = state
        column = left[:, k]
        pivot = jnp.maximum(column[k], LEAST_PIVOT)
        left = left - jnp.outer(column, column) / pivot
        left = left.at[:, k].set(column / pivot).at[k, :].set(column / pivot).at[k, k].set(-1 / pivot)
        return total + jnp.log(pivot), left

    start = jnp.zeros((), matrix.dtype), matrix
    total, negative = jax.lax.fori_loop(0, matrix.shape[0], sweep, start)
    return total, -negative


@_swept.defjvp
def _swept_jvp(primals: Any, tangents: Any) -> Any:
    """d log|M| = tr(M⁻¹ dM) and d M⁻¹ = −M⁻¹ dM M⁻¹."""
    total, inverse = _swept(*primals)
    change = inverse @ tangents[0]
    return (total, inverse), (jnp.trace(change), -change @ inverse)
