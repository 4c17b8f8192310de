"""A linear map of many standard normal numbers, most of which are integrated out one by one."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.points import bucket
from meanmap.core.types import Array
from meanmap.ep.factor import Answer, Factor
from meanmap.ep.factors.gaussian import SURE
from meanmap.ep.variables import Given, Variable
from meanmap.families import MultivariateNormal, Normal

__all__ = ["Effects"]


class Effects(Factor):
    """zᵢ = xᵢᵀw + aᵢ e[gᵢ] for standard normal w and e, which no other factor meets.

    Parameters
    ----------
    X : (n, d) array
    weights : (n,) array
        The aᵢ.
    groups : (n,) array
        The gᵢ, whole numbers from 0.
    z : Variable
        A plate of n Normals.
    name : str

    Notes
    -----
    Given w the e are independent, and integrated out: with messages (νᵢ, τᵢ) from z, e[g] adds 1 + tg to its precision,
    where tg = Σ aᵢ² τᵢ, and what it is tied to w by is bg = Σ aᵢ τᵢ xᵢ. The precision of w is
    I + Xᵀ T X − Σ bg bgᵀ / (1 + tg). Cost (n + groups) d² + d³ a sweep.
    """

    arguments: tuple[Any, ...]
    name: str = eqx.field(static=True)
    # An upper bound on the number of groups.
    count: int = eqx.field(static=True)
    # All rows have one normaliser.
    whole: ClassVar[tuple[int, ...]] = (0,)

    def __init__(self, X: np.ndarray, weights: np.ndarray, groups: np.ndarray, z: Variable, name: str):
        self.arguments = (Given(X, "X"), Given(weights, "weights"), Given(groups, "groups"), z)
        self.name, self.count = name, bucket(int(groups.max()) + 1)

    def answer(self, incoming: tuple[Any, ...], power: Array, key: jax.Array) -> Answer:
        """The marginal of each row divided by its message."""
        del power, key
        x, a, g, z = incoming
        tau, toward = z.precision, z.precision_mean
        g = g.astype(int)

        def summed(values: jax.Array) -> jax.Array:
            return jax.ops.segment_sum(values, g, self.count)

        precision, middle = 1 + summed(a * a * tau), summed(a * toward)
        tied = summed((a * tau)[:, None] * x)
        linear = _product(toward, x) - _product(middle / precision, tied)
        square = _product(x.T * tau, x) - _product(tied.T / precision, tied) + jnp.eye(x.shape[1], dtype=x.dtype)
        joint = MultivariateNormal.from_natural(linear, (square + square.T) / 2)
        root = jnp.linalg.cholesky(joint.precision)
        white = jax.scipy.linalg.solve_triangular(root, jnp.eye(x.shape[1], dtype=x.dtype), lower=True)
        w = _product(white.T, _product(white, linear))
        e = (middle - _product(tied, w)) / precision
        mean = _product(x, w) + a * e[g]
        rest = x - (a[:, None] * (tied / precision[:, None])[g])
        variance = (_product(rest, white.T) ** 2).sum(-1) + a * a / precision[g]
        widest = variance.max()
        known = 1 / jnp.where(variance > 0, variance, SURE**2 * jnp.where(widest > 0, widest, 1.0))
        # Of w by itself, and of e given w = 0; a flat law of w of this length has the density 1.
        log_normaliser = joint.log_normaliser - x.shape[1] * jnp.log(2 * jnp.pi) / 2
        log_normaliser += ((middle**2 / precision - jnp.log(precision)) / 2).sum()
        message = Normal.from_natural(mean * known - toward, known - tau)
        return Answer((None, None, None, message), log_normaliser)


def _product(a: Array, b: Array) -> jax.Array:
    return jnp.matmul(a, b, precision="highest")
