"""Kernel herding: points whose average embedding approximates a given one."""

from functools import partial

import jax
import jax.numpy as jnp

from meanmap.core.anew import compiled_anew
from meanmap.core.points import count
from meanmap.core.types import Points
from meanmap.kernels.base import Kernel
from meanmap.kernels.gram import product

__all__ = ["herd"]


@compiled_anew
@partial(jax.jit, static_argnames="n")
def herd(kernel: Kernel, points: Points, weights: jax.Array, n: int) -> jax.Array:
    """Row numbers (..., n) of points chosen greedily to approximate Σᵢ wᵢ k(xᵢ, ·); weights sum to one.

    Chen, Welling & Smola (2010), eq. 2, with the points themselves as candidates. One column of the Gram matrix is
    evaluated per choice: O(points) memory.
    """
    points = jax.tree.map(jnp.asarray, points)
    m = count(points)
    columns = weights.reshape(-1, m).T
    target = product(kernel, points, points, columns).T

    def one(values):
        def choose(taken, t):
            best = jnp.argmax(values - taken / (t + 1))
            chosen = jax.tree.map(lambda leaf: leaf[best][None], points)
            return taken + kernel.gram(chosen, points)[0], best

        return jax.lax.scan(choose, jnp.zeros_like(values), jnp.arange(n))[1]

    return jax.vmap(one)(target).reshape(*weights.shape[:-1], n)
