"""Distributions as mixtures of normal distributions and points, which kernels on distributions embed in closed form."""

import jax.numpy as jnp

from meanmap.core.types import Array

__all__ = ["Parts", "one_normal", "points_with_weights"]

# Weights (N, K), means (N, K, d) and covariances (N, K, d, d) of N distributions.
Parts = tuple[Array, Array, Array]


def one_normal(mean: Array, covariance: Array) -> Parts:
    """Normal distributions with means (N, d) and covariances (N, d, d), zero for a point."""
    return jnp.ones((mean.shape[0], 1), mean.dtype), mean[:, None], covariance[:, None]


def points_with_weights(weights: Array, points: Array) -> Parts:
    """Distributions with weights (N, K) on the same points (K, d)."""
    (n, k), d = weights.shape, points.shape[1]
    return weights, jnp.broadcast_to(points, (n, k, d)), jnp.zeros((n, k, d, d), weights.dtype)
