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
from meanmap.kernels.reading import check_alike, read_points
from meanmap.kernels.smoothed import Smoothed
from meanmap.kernels.stationary import RBF

__all__ = ["log_pseudolikelihood", "objective"]

# Rows whose products with all landmarks are held at once.
BLOCK = 1024


def log_pseudolikelihood(kernel: RBF, x: Any, landmarks: Any, *, noise: float = 1.0, width: Any = None) -> Any:
    """log p(x | k) of Flaxman et al. (2016), eq. 15 with the corrections of the errata.

    The values φ(xᵢ) = k(xᵢ, z) at m landmarks z are taken for noisy looks at the embedding, φ(xᵢ) ~ N(μ(z), τ² I) with
    μ ~ GP(0, r), and turned into a density of the points by the volume that φ gives them:

    log p = −½ {log|A| + μ̂ᵀ A⁻¹ μ̂ + S/τ² + m log n + m (n − 1) log τ² + m n log 2π} + Σᵢ log γ(xᵢ)

    with A = R + τ²/n I, S = Σᵢⱼ (k(xᵢ, zⱼ) − μ̂ⱼ)² and γ(x)² = det Σ_l k(x, z_l)² (x − z_l)(x − z_l)ᵀ/(ℓ ℓᵀ)².

    Parameters
    ----------
    kernel : RBF
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
    >>> x = np.random.default_rng(0).normal(size=(200, 1))
    >>> scales = (0.01, 0.5, 50.0)
    >>> values = [log_pseudolikelihood(RBF(scale), x, x[:20]) for scale in scales]
    >>> int(np.argmax(values))
    1
    """
    if not isinstance(kernel, RBF):
        raise KindError(f"kernel is {kernel!r}; expected RBF: the volume of its features is known in closed form.")
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
def objective(kernel: RBF, x: jax.Array, z: jax.Array, noise: Any, width: Any = None) -> jax.Array:
    """The same as a pure function."""
    n, m = x.shape[0], z.shape[0]
    prior: Kernel = Smoothed(kernel, width)
    values = kernel.gram(x, z)
    mean = jnp.mean(values, axis=0)
    spread = jnp.sum((values - mean) ** 2)
    whole = prior.gram(z, z) + noise / n * jnp.eye(m, dtype=x.dtype)
    root = jnp.linalg.cholesky(whole)
    half = jax.scipy.linalg.solve_triangular(root, mean, lower=True)
    gaussian = 2 * jnp.sum(jnp.log(jnp.diagonal(root))) + half @ half + spread / noise
    gaussian += m * math.log(n) + m * (n - 1) * jnp.log(noise) + m * n * math.log(2 * math.pi)
    return -gaussian / 2 + jnp.sum(_log_volumes(kernel, x, z))


def _log_volumes(kernel: RBF, x: jax.Array, z: jax.Array) -> jax.Array:
    """log γ(xᵢ), (n,): half the log determinant of Σ_l k² v vᵀ less Σ log ℓ, v = (xᵢ − z_l)/ℓ, block by block of rows.

    The largest k² of a row is taken out, so that lengthscales far below the spacing of landmarks do not underflow.
    """
    scale = jnp.broadcast_to(jnp.asarray(kernel.lengthscale, x.dtype), (x.shape[1],))
    scaled, landmarks = x / scale, z / scale
    columns = x.shape[1]

    @jax.checkpoint
    def one(point: jax.Array) -> jax.Array:
        v = point - landmarks
        exponents = -jnp.sum(v * v, axis=1)
        # The nearest landmark that is not the point itself: one at distance zero adds nothing to the sum.
        top = jax.lax.stop_gradient(jnp.max(jnp.where(exponents < 0, exponents, -jnp.inf)))
        apart = exponents < 0
        weights = jnp.where(apart, jnp.exp(jnp.where(apart, exponents, top) - top), 0)
        moments = (weights[:, None] * v).T @ v
        if columns == 1:
            logdet = jnp.log(moments[0, 0])
        else:
            logdet = 2 * jnp.sum(jnp.log(jnp.diagonal(jnp.linalg.cholesky(moments))))
        return 0.5 * (logdet + columns * top)

    return jax.lax.map(one, scaled, batch_size=BLOCK) - jnp.sum(jnp.log(scale))
