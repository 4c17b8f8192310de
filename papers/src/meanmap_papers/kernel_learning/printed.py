"""The density of the Stan program printed with Flaxman et al. (2016), mistakes included, to compare with figure 3."""

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.errors import ShapeError
from meanmap.core.types import Array, Numbers, Points, Seed
from meanmap.kernels import RBF
from meanmap.learning.draws import KernelDraws
from meanmap.learning.sampling import Potential, drawn

__all__ = ["printed_log_density", "sample_printed"]


def sample_printed(
    x: Points, landmarks: Numbers, rng: Seed = None, *, warmup: int = 500, draws: int = 500
) -> KernelDraws:
    """Four chains of lengthscale and noise under the printed program and its Gamma(1, 1) priors, in the unit of x."""

    def potential_of(points: np.ndarray, z: np.ndarray, centre: np.ndarray) -> Potential:
        del centre
        if points.shape[1] > 1:
            raise ShapeError(f"x has {points.shape[1]} columns, and the printed program is for one.")
        x, marks = jnp.asarray(points[:, 0]), jnp.asarray(z[:, 0])

        def potential(q: jax.Array) -> jax.Array:
            scale, noise = jnp.exp(q[0]), jnp.exp(q[1])
            # Gamma(1, 1) twice, with the volumes of the logarithms.
            return -printed_log_density(scale, noise, x, marks) - (q[1] - noise) - (q[0] - scale)

        return potential

    return drawn(potential_of, x, RBF(), landmarks, None, rng, 4, warmup, draws, scale=False)


def printed_log_density(lengthscale: Array, noise: Array, x: jax.Array, z: jax.Array) -> jax.Array:
    """The log density of the program for points x (n,) and landmarks z (m,), before its Gamma(1, 1) priors.

    It differs from log p of eq. 15 in four places, listed in the errata: the volume enters squared; R has no amplitude;
    the eigenvalue n of the matrix of ones is paired with the first of its eigenvectors in ascending order, which is not
    the constant one; and the weights e are filled row by row where the rotated values are read column by column. Of the
    quadratic form about |K|²/τ² is left, so that long lengthscales are punished and the posterior is proper.
    """
    n, m = len(x), len(z)
    apart = (x[:, None] - z[None, :]) ** 2
    values = jnp.exp(-apart / (2 * lengthscale**2))
    slopes = values**2 * apart / lengthscale**4
    prior = jnp.exp(-((z[:, None] - z[None, :]) ** 2) / (4 * lengthscale**2))
    second, rotation = jnp.linalg.eigh(prior)
    first = np.zeros(n)
    first[0] = n
    ones = np.linalg.eigh(np.ones((n, n)))[1]
    rotated = ((rotation.T @ values.T) @ ones).T.ravel()  # column by column of the (m, n) matrix
    weights = 1 / (first[None, :] * second[:, None] + noise).ravel()  # row by row of the (m, n) matrix
    log_determinant = jnp.sum(jnp.log(second * n + noise)) + m * (n - 1) * jnp.log(noise)
    return jnp.sum(jnp.log(0.5 * jnp.sum(slopes, axis=1))) - (log_determinant + jnp.sum(weights * rotated**2)) / 2
