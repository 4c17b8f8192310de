"""Modes of an embedding: Newton ascent from many starts, on R^d and, along geodesics, on the rotation group."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.anew import compiled_anew
from meanmap.core.domains import Rotations, holds_vectors
from meanmap.core.door import is_concrete
from meanmap.core.errors import InputError, KindError
from meanmap.core.points import count
from meanmap.core.types import Points
from meanmap.kernels.base import Kernel
from meanmap.kernels.gram import product

__all__ = ["find_modes"]

# Near a mode each Newton step doubles the number of correct digits; earlier steps are damped.
MOST_STEPS = 100


def find_modes(kernel: Kernel, points: Points, weights: jax.Array, n_starts: int) -> jax.Array:
    """The highest local maximum of Σᵢ wᵢ k(xᵢ, ·) found from the best `n_starts` points, (..., point).

    A tangent step u is taken at the current point: x + u on R^d, exp([u]×) R on the rotation group, where the gradient
    is the Riemannian one (Abrudan, Eriksson & Koivunen 2008). The step is Newton's with the Hessian's eigenvalues made
    negative, so it always ascends, and it is halved until the value rises.
    """
    domain = kernel.domain
    if isinstance(domain, Rotations):
        retract, size = _rotate, 3
    elif holds_vectors(domain):
        retract, size = _shift, points.shape[1]
    else:
        raise KindError(
            f"{type(kernel).__name__} has no smooth space to search: pass mode(candidates=...). For labels y, "
            "expect(y == 'a') is the probability of 'a', in a graphical model beliefs.probabilities(name)."
        )
    flat = jnp.asarray(weights).reshape(-1, weights.shape[-1])
    best, rises = _ascend_all(kernel, jnp.asarray(points), flat, retract, size, min(n_starts, count(points)))
    if holds_vectors(domain) and is_concrete(rises) and bool(np.asarray(rises).any()):
        raise InputError(
            f"the embedding has no highest point: {type(kernel).__name__} grows without bound. Use a bounded kernel, "
            "such as mm.kernels.RBF(1.0), or pass mode(candidates=...)."
        )
    return best.reshape(*weights.shape[:-1], *points.shape[1:])


def _shift(x: jax.Array, u: jax.Array) -> jax.Array:
    return x + u


def _rotate(matrix: jax.Array, u: jax.Array) -> jax.Array:
    """exp([u]×) R by Rodrigues' formula, smooth at u = 0."""
    square = jnp.sum(u * u)
    small = square < 1e-8
    angle = jnp.sqrt(jnp.where(small, 1.0, square))
    sine = jnp.where(small, 1 - square / 6, jnp.sin(angle) / angle)
    versine = jnp.where(small, 0.5 - square / 24, (1 - jnp.cos(angle)) / jnp.where(small, 1.0, square))
    zero = jnp.zeros((), u.dtype)
    cross = jnp.array([[zero, -u[2], u[1]], [u[2], zero, -u[0]], [-u[1], u[0], zero]])
    return (jnp.eye(3, dtype=u.dtype) + sine * cross + versine * cross @ cross) @ matrix


@compiled_anew
@partial(jax.jit, static_argnames=("retract", "size", "n_starts"))
def _ascend_all(
    kernel: Kernel, points: jax.Array, weights: jax.Array, retract: Callable, size: int, n_starts: int
) -> tuple[jax.Array, jax.Array]:
    """The modes, and whether the embedding is even higher ten times as far from the centre of the points."""
    values_at_points = product(kernel, points, points, weights.T).T

    def one(w, values):
        starts = points[jax.lax.top_k(values, n_starts)[1]]

        def height(x):
            return jnp.dot(kernel.gram(x[None], points)[0], w)

        ends = jax.vmap(lambda start: _ascend(height, start, retract, size))(starts)
        heights = jax.vmap(height)(ends)
        top = jnp.argmax(heights)
        middle = points.mean(axis=0)
        far = middle + 10 * (ends[top] - middle)
        # Only a kernel with growing values can be unbounded; on angles a distant higher value may be another mode.
        sizes = kernel.diagonal(jnp.stack([ends[top], far]))
        return ends[top], (height(far) > heights[top]) & (sizes[1] > 2 * sizes[0])

    return jax.lax.map(lambda pair: one(*pair), (weights, values_at_points))


def _ascend(height: Callable, start: jax.Array, retract: Callable, size: int) -> jax.Array:
    """Damped Newton ascent in the tangent space, with halving."""
    zero = jnp.zeros(size, start.dtype)
    tolerance = 10 * jnp.finfo(start.dtype).eps

    def step(state):
        x, value, _, k = state

        def at(u):
            return height(retract(x, u))

        gradient, hessian = jax.grad(at)(zero), jax.hessian(at)(zero)
        curvature, axes = jnp.linalg.eigh(hessian)
        floor = 1e-6 * jnp.max(jnp.abs(curvature)) + jnp.finfo(start.dtype).tiny
        direction = axes @ ((axes.T @ gradient) / jnp.maximum(jnp.abs(curvature), floor))
        scales = 0.5 ** jnp.arange(30, dtype=start.dtype)
        heights = jax.vmap(lambda s: at(s * direction))(scales)
        rises = heights > value
        first = jnp.argmax(rises)
        moved = rises[first]
        x = jnp.where(moved, retract(x, scales[first] * direction), x)
        gained = jnp.where(moved, heights[first] - value, 0)
        return x, jnp.where(moved, heights[first], value), gained, k + 1

    def unfinished(state):
        _, value, gained, k = state
        return (gained > tolerance * jnp.abs(value)) & (k < MOST_STEPS)

    first_gain = jnp.asarray(jnp.inf, start.dtype)
    return jax.lax.while_loop(unfinished, step, (start, height(start), first_gain, 0))[0]
