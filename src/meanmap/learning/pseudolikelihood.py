"""The marginal pseudolikelihood of a kernel: how probable a sample is when its embedding is a Gaussian process."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.anew import compiled_anew
from meanmap.core.arrays import check_rows, parameter
from meanmap.core.door import Door
from meanmap.core.errors import ColumnError, ShapeError
from meanmap.core.points import count
from meanmap.core.types import Array, Data
from meanmap.kernels.base import Kernel
from meanmap.kernels.reading import check_alike, read_points
from meanmap.kernels.smoothed import Smoothed
from meanmap.kernels.terms import check_terms, matrix_of, names_of, terms_of

__all__ = ["log_pseudolikelihood", "objective"]

# Differences of points and landmarks that stay in a processor's cache, and that may be held (128 MB).
CACHED, HELD = 100_000, 16_000_000
# Points nearer than this many roundings are one.
SAME = 16
# Of a matrix with ones on its diagonal; about the rounding of sums over landmarks.
LEAST_PIVOT = 1e-15


def log_pseudolikelihood(
    kernel: Kernel, x: Data, landmarks: Array, *, noise: float = 1.0, width: Array | None = None
) -> Any:
    """log p(x | k) of Flaxman et al. (2016), eq. 15 with the corrections of the errata.

    The values φ(xᵢ) = k(xᵢ, z) at m landmarks z are modelled as noisy observations of the embedding, φ(xᵢ) ~ N(μ(z), τ²
    I) with μ ~ GP(0, r), and turned into a density of the points by the change of volume under φ:

    log p = −½ {log|A| + μ̂ᵀ A⁻¹ μ̂ + S/τ² + m log n + m (n − 1) log τ² + m n log 2π} + Σᵢ log γ(xᵢ)

    with A = R + τ²/n I, S = Σᵢⱼ (k(xᵢ, zⱼ) − μ̂ⱼ)² and γ(x)² = det Σ_l ∇k(x, z_l) ∇k(x, z_l)ᵀ.

    Parameters
    ----------
    kernel : RBF, Matern, products of RBF with one Matern, or a sum of multiples of these
        k, with one lengthscale or one per column; `OnColumns` products of these too.
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
    R = r(z, z) with r(x, y) = ∫ k(x, u) k(u, y) ν(du), which is known for these kernels: see `Smoothed`.

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
    check_terms(kernel)
    parameter(noise, "noise", axes=0)
    with Door(kernel, x, landmarks) as door:
        points, z = read_points(kernel, x, "x", door), read_points(kernel, landmarks, "landmarks", door)
        check_alike(points, z, "x", "landmarks")
        points, z = matrix_of(kernel, points), matrix_of(kernel, z)
        check_rows(count(points), "x", least=2)
        if count(z) < points.shape[1]:
            raise ShapeError(
                f"there are {count(z)} landmarks for {points.shape[1]} columns; expected at least as many."
            )
        if not door.follows and (np.ptp(np.asarray(z), axis=0) == 0).any() and (np.ptp(points, axis=0) == 0).any():
            raise ColumnError(
                "a column of x and of the landmarks is constant, which gives the points no volume: drop it."
            )
        Smoothed(kernel, width).check_matrix(z, "x")
        value = objective(door.cast(kernel), points, z, jnp.asarray(noise, door.dtype), width)
        return value if door.follows else float(value)


@compiled_anew
@jax.jit
def objective(
    kernel: Kernel, x: jax.Array, z: jax.Array, noise: Array, width: Array | None = None, used: jax.Array | None = None
) -> jax.Array:
    """The log pseudolikelihood as a pure function of points with the columns of `names_of(kernel)`.

    `used` marks the rows that count, others fill up a shape.
    """
    volumes = log_volumes(kernel, x, z)
    total = jnp.sum(volumes if used is None else jnp.where(used, volumes, 0))
    return log_normal(kernel, x, z, noise, width, used) + total


def log_normal(
    kernel: Kernel, x: jax.Array, z: jax.Array, noise: Array, width: Array | None = None, used: jax.Array | None = None
) -> jax.Array:
    """log N(k(X, z); 0, 1 1ᵀ ⊗ R + τ² I), the density of all n m values."""
    m = z.shape[0]
    weights = jnp.ones(x.shape[0], x.dtype) if used is None else used.astype(x.dtype)
    n = jnp.sum(weights)
    values: Any = sum(term.gram(x, z) for term in terms_of(kernel)) if names_of(kernel) else kernel.gram(x, z)
    # Sums of products here and below: a product of a matrix and a vector takes XLA far longer to compile.
    mean = jnp.sum(weights[:, None] * values, axis=0) / n
    spread = jnp.sum(weights[:, None] * (values - mean) ** 2)
    whole = Smoothed(kernel, width).of_matrix(z, z) + noise / n * jnp.eye(m, dtype=x.dtype)
    root = jnp.linalg.cholesky(whole)
    half = jax.scipy.linalg.solve_triangular(root, mean, lower=True)
    gaussian = 2 * jnp.sum(jnp.log(jnp.diagonal(root))) + jnp.sum(half**2) + spread / noise
    gaussian += m * jnp.log(n) + m * (n - 1) * jnp.log(noise) + m * n * math.log(2 * math.pi)
    return -gaussian / 2


def log_volumes(kernel: Kernel, x: jax.Array, z: jax.Array) -> jax.Array:
    """log γ(xᵢ), (n,): γ² is the determinant of Σ_l ∇k(x, z_l) ∇k(x, z_l)ᵀ.

    A slope is exp(e_l) a_l: its size is kept as a logarithm, so that lengthscales far below the spacing of landmarks do
    not underflow, and its direction in units of the shortest lengthscales, so that units do not matter.
    """
    n, columns = x.shape
    # ∇k = Σ_t w_t k_t Σ_f s_f (z − x)/ℓ_f²: one row for each factor of each term.
    parts = [(term, factor) for term in terms_of(kernel) for factor in term.factors]
    inverses = jnp.stack([factor.inverses(columns) for _, factor in parts])
    weights = jnp.stack([jnp.asarray(term.weight) for term, _ in parts])
    # What is common to all landmarks goes before the determinant.
    common = jnp.max(inverses, axis=0)
    unit = jax.lax.stop_gradient(1 / common)
    outside = jnp.sum(jnp.log(unit) + 2 * jnp.log(common))
    ratios = (inverses / common) ** 2
    alike = all(factor.columns is None and np.size(factor.kernel.lengthscale) == 1 for _, factor in parts)

    def slopes(point: jax.Array) -> tuple[jax.Array, jax.Array]:
        apart = (point - z).T
        squares = [jnp.sum((apart * inverse[:, None]) ** 2, axis=0) for inverse in inverses]
        logs = [
            factor.log_slope(own)
            + sum(f.log_profile(other) for (t, f), other in zip(parts, squares, strict=True) if t is term)
            for (term, factor), own in zip(parts, squares, strict=True)
        ]
        terms = jnp.log(weights)[:, None] + jnp.stack(logs)
        sizes = terms[0]
        if len(terms) > 1:
            sizes = jax.scipy.special.logsumexp(terms, axis=0)
            bent = ratios.T @ jnp.exp(terms - sizes)
            if alike:  # slopes point to the landmark, whatever the lengthscales
                sizes = sizes + jnp.log(bent[0])
            else:
                apart = bent * apart
        # A landmark has no slope at itself; compiled, a difference from itself may come out as rounding.
        other = jnp.sum(apart**2, axis=0) > (SAME * jnp.finfo(x.dtype).eps) ** 2 * jnp.sum(point**2)
        return sizes, jnp.where(other, apart / unit[:, None], 0)

    def block(points: jax.Array) -> jax.Array:
        return _volumes(*jax.vmap(slopes)(points))

    rows = min(n, max(1, CACHED // z.size))
    blocks = jnp.pad(x, ((0, -n % rows), (0, 0)), mode="edge").reshape(-1, rows, columns)
    # Differentiated, each block leaves its slopes; more than can be held are computed again.
    found = jax.lax.map(block if x.size * len(z) <= HELD else jax.checkpoint(block), blocks)
    return outside + found.reshape(-1)[:n]


@jax.custom_jvp
def _volumes(sizes: jax.Array, directions: jax.Array) -> jax.Array:
    """½ log det Σ_l exp(2 e_l) a_l a_lᵀ of each point of a block, from e (b, m) and a (b, d, m)."""
    return _volumes_and_slopes(sizes, directions)[0]


@_volumes.defjvp
def _volumes_jvp(primals: Array, tangents: Array) -> Any:
    found, by_sizes, by_directions = _volumes_and_slopes(*primals)
    change = jnp.sum(by_sizes * tangents[0], axis=1) + jnp.sum(by_directions * tangents[1], axis=(1, 2))
    return found, change


Volume = tuple[jax.Array, jax.Array, jax.Array]


def _volumes_and_slopes(sizes: jax.Array, directions: jax.Array) -> Volume:
    """The volumes and their derivatives by e and by a, with the moments as they are where these tell them.

    Far from all landmarks but one the moments are singular to rounding. In the basis of the longest slope, the longest
    of what is left of the others, and so on, each coordinate measured by its longest, they are not: they hold the
    moments of those d slopes, a triangular matrix with ones on its diagonal and nothing above one.
    """
    columns = directions.shape[1]
    safe = jnp.finfo(sizes.dtype).eps ** (1 / 3)  # two digits in three are left

    def measured(bases: Volume) -> tuple[Volume, jax.Array]:
        found, by_sizes, by_directions, least = jax.vmap(_volume)(sizes, *bases)
        return (found, by_sizes, by_directions), least

    plain = _plain(sizes, directions)
    if columns == 1:
        return measured(plain)[0]

    # One loop of one round or two, and not two branches: compiling the determinant twice took longer than all runs.
    def again(state: tuple[Any, ...]) -> Any:
        rounds, (_, least) = state
        return (rounds == 0) | ((rounds == 1) & ~jnp.all(least > safe))

    def measure(state: tuple[Any, ...]) -> tuple[Any, ...]:
        rounds, _ = state
        bases = jax.lax.cond(rounds == 0, lambda: plain, lambda: jax.vmap(_graded)(sizes, directions))
        return rounds + 1, measured(bases)

    nothing = jnp.zeros_like(sizes[:, 0])
    start = (nothing, jnp.zeros_like(sizes), jnp.zeros_like(directions)), nothing
    return jax.lax.while_loop(again, measure, (jnp.zeros((), jnp.int32), start))[1][0]


def _plain(sizes: jax.Array, directions: jax.Array) -> Volume:
    """The basis of the columns, in the unit of the longest slope."""
    tops = jnp.max(_lengths(sizes, jnp.sum(directions**2, axis=1)), axis=1)
    count, columns, _ = directions.shape
    basis = np.broadcast_to(np.eye(columns, dtype=sizes.dtype), (count, columns, columns))
    return jnp.asarray(basis), jnp.broadcast_to(tops[:, None], (count, columns)), directions


def _volume(sizes: jax.Array, basis: jax.Array, tops: jax.Array, entries: jax.Array) -> tuple[jax.Array, ...]:
    """One volume, its derivatives and the least pivot of its factor, from slopes in a basis, in units of its tops."""
    # No product with an entry is above one but by rounding; what a larger factor multiplies is zero.
    factors = jnp.exp(jnp.minimum(sizes - tops[:, None], _most(sizes)))
    total, scaled, dual, least = _log_determinant(factors * entries)
    return total + jnp.sum(tops), jnp.sum(scaled * dual, axis=0), basis.T @ (factors * dual), least


def _graded(sizes: jax.Array, directions: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The graded basis (d, d) by rows, logarithms of the longest coordinates (d,), and coordinates qₖ · a_l (d, m).

    What is left of a direction at the size of rounding is nothing, or it would count where all else is smaller still.
    """
    columns = len(directions)
    whole = jnp.sum(directions**2, axis=0)
    least = (SAME * jnp.finfo(directions.dtype).eps) ** 2 * whole

    def step(k: Any, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        left, basis, tops, entries = state
        squares = jnp.sum(left**2, axis=0)
        lengths = _lengths(sizes, jnp.where(squares > least, squares, 0))
        longest = jnp.argmax(lengths)
        direction = left[:, longest]
        for _ in range(2):  # once leaves the rounding of a direction that is nearly a combination of those before
            known = jnp.sum(basis * direction, axis=1)
            direction = direction - jnp.sum(known[:, None] * basis, axis=0)
            direction = direction / jnp.maximum(jnp.linalg.norm(direction), jnp.finfo(left.dtype).tiny)
        along = jnp.where(squares > least, jnp.sum(direction[:, None] * left, axis=0), 0)
        now = (jnp.arange(columns) == k)[:, None]
        return (
            left - along * direction[:, None],
            jnp.where(now, direction, basis),
            jnp.where(now[:, 0], lengths[longest], tops),
            jnp.where(now, along, entries),
        )

    start = directions, jnp.zeros((columns, columns), sizes.dtype), jnp.zeros(columns, sizes.dtype)
    return jax.lax.fori_loop(0, columns, step, (*start, jnp.zeros_like(directions)))[1:]


def _lengths(sizes: jax.Array, squares: jax.Array) -> jax.Array:
    """log |exp(e_l) a_l|."""
    return jnp.where(squares > 0, sizes + jnp.log(jnp.where(squares > 0, squares, 1)) / 2, -jnp.inf)


def _most(like: jax.Array) -> jax.Array:
    """A logarithm whose exponential is far from overflow."""
    return jnp.log(jnp.finfo(like.dtype).max) / 2


def _log_determinant(slopes: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """½ log det S Sᵀ, S, its derivative (S Sᵀ)⁻¹ S, and the least pivot in units of the diagonal.

    By sweeping each column, elementwise over many small matrices at once: calls of LAPACK for each of them cost more,
    the more threads it has. Pivots below rounding count as rounding.
    """
    moments = slopes @ slopes.T
    size = jnp.sum(slopes**2, axis=1)
    root = jnp.sqrt(jnp.where(size > 0, size, 1))
    columns = jnp.arange(len(root))

    def sweep(k: Any, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        total, least, left = state
        column, here = left[:, k], columns == k
        pivot = jnp.maximum(column[k], LEAST_PIVOT)
        edge = jnp.where(here, -1, column) / pivot
        swept = jnp.where(here, edge[:, None], jnp.where(here[:, None], edge, left - jnp.outer(column, column) / pivot))
        return total + jnp.log(pivot), jnp.minimum(least, pivot), swept

    zero = jnp.zeros((), size.dtype)
    total, least, negative = jax.lax.fori_loop(0, len(root), sweep, (zero, zero + 1, moments / jnp.outer(root, root)))
    dual = -(negative @ (slopes / root[:, None])) / root[:, None]
    return (jnp.sum(jnp.log(size)) + total) / 2, slopes, dual, least
