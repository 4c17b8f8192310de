"""Adaptive importance sampling, for tilted distributions whose mass draws from the incoming messages miss.

A Student proposal is moved until its draws cover the mass (Cappé et al. 2008; Cornuet et al. 2012). Each round fits the
next proposal to the weighted draws of the last one. While a few draws have all the weight, the weights are tempered to
a power that leaves a hundred effective draws, and the centre and shape are those of a quadratic function fitted to the
log of the tilted density under these weights, which is exact for a Gaussian, however far off the draws are. Afterwards
they are the weighted mean and covariance.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.ep.oracles.student import Student

__all__ = ["MOST_DIMENSIONS", "refined"]

# A quadratic function of more numbers has too many coefficients to be fitted to a few thousand draws.
MOST_DIMENSIONS = 20

# Rounds at most, and draws in each: this many, or this many times the coefficients of a quadratic function.
_ROUNDS, _DRAWS, _PER_COEFFICIENT = 12, 1000, 10

# A distribution is good enough where draws are worth this share of independent ones.
_ENOUGH = 0.2

# Tempered weights are worth this many draws, or this many times the coefficients.
_LEFT, _LEFT_PER_COEFFICIENT = 100.0, 3.0

# In units of the tempered draws: the smallest precision of the next distribution along any direction, and its longest
# step.
_FLATTEST, _STEP = 0.2, 10.0

# Of the power of the weights, in halvings of its exponent, and the least exponent.
_HALVINGS, _LEAST = 30, -60.0


class _Round(NamedTuple):
    law: Student
    best: Student
    share: jax.Array  # of the best one
    number: jax.Array


def refined(
    log_tilted: Callable[[jax.Array], jax.Array],
    u: jax.Array,
    height: jax.Array,
    log_density: jax.Array,
    wanted: jax.Array,
    key: jax.Array,
) -> Student:
    """A distribution whose draws have the mass of another one, known by the log of its density at any points.

    Parameters
    ----------
    log_tilted : callable
        From points (n, d) to the log of the density, up to a constant; points are NaN where nothing is `wanted`.
    u, height, log_density : arrays (n, d) and (n,)
        First draws, the log of the density there, and that of the distribution from which they come.
    wanted : bool
        Whether to search at all.
    key : JAX key
        Randomness.
    """
    coefficients = _coefficients(u.shape[1])
    draws = max(_DRAWS, _PER_COEFFICIENT * coefficients)

    def unfinished(now):
        return wanted & (now.share < _ENOUGH) & (now.number < _ROUNDS)

    def closer(now):
        points = now.law.sample(draws, jax.random.fold_in(key, now.number))
        points = jnp.where(unfinished(now), points, jnp.nan)
        known, own = log_tilted(points), now.law.log_density(points)
        share = _worth(_weights(known, own)) / draws
        better = share > now.share
        best = jax.tree.map(lambda a, b: jnp.where(better, a, b), now.law, now.best)
        return _Round(_next(points, known, own, now.law), best, jnp.maximum(share, now.share), now.number + 1)

    centre, spread = u.mean(0), jnp.atleast_2d(jnp.cov(u.T))
    first = _next(u, height, log_density, Student.of(centre, jnp.linalg.cholesky(spread)))
    start = _Round(first, first, jnp.zeros(()), jnp.zeros((), jnp.int32))
    return jax.lax.while_loop(unfinished, closer, start).best


def _next(u: jax.Array, height: jax.Array, log_density: jax.Array, last: Student) -> Student:
    """The next distribution; the last one where draws tell nothing."""
    coefficients = _coefficients(u.shape[1])
    log_weights = _weights(height, log_density)
    power = _power(log_weights, max(_LEFT, _LEFT_PER_COEFFICIENT * coefficients))
    weights = jax.nn.softmax(jnp.where(jnp.isfinite(log_weights), power * log_weights, -jnp.inf))
    mean = weights @ jnp.where(weights[:, None] > 0, u, 0.0)
    centred = jnp.where(weights[:, None] > 0, u - mean, 0.0)
    root = jnp.linalg.cholesky((weights * centred.T) @ centred)
    white = jax.scipy.linalg.solve_triangular(root, centred.T, lower=True).T
    centre, shape = _quadratic(white, jnp.where(weights > 0, height, 0.0), weights)
    fitted = Student.of(mean + root @ centre, jnp.linalg.cholesky(root @ shape @ root.T))
    chosen = jax.tree.map(lambda a, b: jnp.where(power < 1, a, b), fitted, Student.of(mean, root))
    told = jnp.isfinite(chosen.centre).all() & jnp.isfinite(chosen.inverse).all()
    return jax.tree.map(lambda a, b: jnp.where(told, a, b), chosen, last)


def _quadratic(white: jax.Array, height: jax.Array, weights: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The top of a quadratic function fitted to heights, and the inverse of its curvature, kept within bounds."""
    n, d = white.shape
    one, other = np.triu_indices(d)
    design = jnp.concatenate([jnp.ones((n, 1)), white, white[:, one] * white[:, other]], 1)
    weighted = design * weights[:, None]
    offset = (weights * height).sum()
    normal = weighted.T @ design
    normal = normal + 1e-12 * jnp.trace(normal) / len(normal) * jnp.eye(len(normal))
    found = jnp.linalg.solve(normal, weighted.T @ (height - offset))
    slope, bends = found[1 : d + 1], found[d + 1 :]
    half = jnp.zeros((d, d)).at[one, other].set(bends)
    values, directions = jnp.linalg.eigh(-(half + half.T))
    values = jnp.maximum(values, _FLATTEST)
    step = directions @ ((directions.T @ slope) / values)
    length = jnp.sqrt((step**2).sum())
    step = step * jnp.minimum(1.0, _STEP / jnp.where(length > 0, length, 1.0))
    return step, (directions / values) @ directions.T


def _weights(height: jax.Array, log_density: jax.Array) -> jax.Array:
    """Logs of weights; −∞ where nothing is known."""
    found = height - log_density
    return jnp.where(jnp.isnan(found) | (found == jnp.inf), -jnp.inf, found)


def _worth(log_weights: jax.Array) -> jax.Array:
    """The equivalent number of independent draws; 0 if no draw has weight."""
    worth = jnp.exp(2 * jax.nn.logsumexp(log_weights) - jax.nn.logsumexp(2 * log_weights))
    return jnp.where(jnp.isfinite(worth), worth, 0.0)


def _power(log_weights: jax.Array, worth: float) -> jax.Array:
    """The largest power of weights, at most 1, with which draws are worth this many."""

    def halved(_, ends):
        low, high = ends
        middle = (low + high) / 2
        tempered = jnp.where(jnp.isfinite(log_weights), jnp.exp2(middle) * log_weights, -jnp.inf)
        enough = _worth(tempered) >= worth
        return jnp.where(enough, middle, low), jnp.where(enough, high, middle)

    low, _ = jax.lax.fori_loop(0, _HALVINGS, halved, (jnp.asarray(_LEAST), jnp.asarray(0.0)))
    return jnp.where(_worth(log_weights) >= worth, 1.0, jnp.exp2(low))


def _coefficients(d: int) -> int:
    """Of a quadratic function of d numbers."""
    return 1 + d + d * (d + 1) // 2
