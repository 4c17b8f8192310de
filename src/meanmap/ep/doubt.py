"""Distances of beliefs, from the exact one or from each other: √(2 KL), in standard deviations of the belief."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.families import Family

__all__ = ["ENOUGH", "Lean", "between", "from_covariance", "jackknife", "mean_error"]


# Answers of rules, which are exact where nothing is wrong, are in no doubt below this many standard deviations.
ENOUGH = 1e-6


class Lean(NamedTuple):
    """How beliefs move when some predictions of a plate are replaced by exact messages.

    Attributes
    ----------
    moved : array
        How far beliefs move that members feed together, in standard deviations, one number for each variable.
    error : array
        Its standard error, were the members drawn at random from a large population.
    """

    moved: np.ndarray
    error: np.ndarray

    def times(self, factor: float) -> "Lean":
        """Of this many times as many members."""
        return Lean(factor * self.moved, factor * self.error)

    def matters(self, limit: float, errors: float = 2.0) -> bool:
        """Whether a belief is moved beyond a limit, and beyond this many standard errors."""
        return not (self.moved <= np.maximum(limit, errors * self.error)).all()

    @property
    def most(self) -> float:
        """Of the belief that moves most."""
        return float(self.moved.max(initial=0.0))


def between(belief: Family, other: Family) -> jax.Array:
    """√(KL(a ‖ b) + KL(b ‖ a)); for Normals of equal spread the distance of their means in standard deviations.

    The sum of both divergences is (η_a - η_b)·(E_a t - E_b t). It needs no normalisers, whose rounding keeps the root
    of one divergence above 1e-6 where parameters are in the thousands and the beliefs are the same.
    """
    parts = []
    for axes, one, two, seen, expected in zip(
        belief._own_axes,
        belief.natural,
        other.natural,
        belief.expected_statistics,
        other.expected_statistics,
        strict=True,
    ):
        part = (one - two) * (seen - expected)
        parts.append(part.sum(tuple(range(-axes, 0))) if axes else part)
    return jnp.sqrt(jnp.maximum(sum(parts[1:], start=parts[0]), 0))


def from_covariance(belief: Family, covariance: jax.Array) -> jax.Array:
    """√ tr(F Σ) with the Fisher information F of the belief and the covariance Σ of its natural parameters.

    To second order 2 KL = δᵀ F δ for an error δ of the natural parameters (numbers only).
    """
    kind = type(belief)
    fisher = jax.jacfwd(lambda eta: jnp.stack(kind.from_natural(*eta).expected_statistics))(jnp.stack(belief.natural))
    return jnp.sqrt(jnp.maximum((fisher * covariance).sum(), 0))


def mean_error(belief: Family, covariance: jax.Array) -> jax.Array:
    """The standard error of the mean of a belief, given the covariance of its natural parameters (numbers only)."""
    slope = jax.grad(lambda eta: jnp.asarray(type(belief).from_natural(*eta)._mean()))(jnp.stack(belief.natural))
    return jnp.sqrt(jnp.maximum(slope @ covariance @ slope, 0))


def jackknife(
    project: Callable[[jax.Array], Family], log_weights: jax.Array, groups: int
) -> tuple[Any, jax.Array, jax.Array]:
    """Standard errors of a projection's natural parameters and of its mean, and its doubt, by leaving out groups.

    Consecutive points form a group, so that dependence along a chain stays inside one.
    """
    n = log_weights.shape[0]
    group = (jnp.arange(n) * groups // n).reshape(n, *(1,) * (log_weights.ndim - 1))
    whole = project(log_weights)
    parts = jax.vmap(lambda g: project(jnp.where(group == g, -jnp.inf, log_weights)))(jnp.arange(groups))
    share = (groups - 1) / groups

    def error(leaf):
        return jnp.sqrt(share * ((leaf - leaf.mean(0)) ** 2).sum(0))

    return jax.tree.map(error, parts), error(parts._mean()), jnp.sqrt(share * (2 * parts.kl(whole)).sum())
