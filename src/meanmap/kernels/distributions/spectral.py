"""Coordinates in which the RBF kernel is an inner product to rounding: a trapezium rule over its spectral density.

exp(−(x − y)²/2ℓ²) = Σₖ wₖ cos(ωₖ (x − y)/ℓ) with equidistant ω and Gaussian weights is exact to 1e-16 as long as |x −
y| + 9ℓ stays below the period of the rule. So a distribution has the coordinates √wₖ (Re c(ωₖ/ℓ), Im c(ωₖ/ℓ)), c its
characteristic function, and ⟨μ_P, μ_Q⟩ for N by M distributions is one matrix product; a bag of n points costs O(n)
instead of O(n²) in every pair.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.errors import ParameterError
from meanmap.core.points import bucket
from meanmap.core.types import Array, Points
from meanmap.families.base import Distribution
from meanmap.families.beta import Beta
from meanmap.families.gamma import Gamma
from meanmap.families.mixture import Mixture
from meanmap.kernels.distributions.bags import Bags
from meanmap.kernels.distributions.domain import label
from meanmap.kernels.distributions.expectations import MOST_NODES, SPECTRAL_REACH, TAIL_REACH
from meanmap.kernels.distributions.laws import characteristic

__all__ = ["bag_coordinates", "extent", "law_coordinates", "nodes_for"]


def extent(law: Any, coordinate: str) -> tuple[np.ndarray, np.ndarray]:
    """The interval, (d,) and (d,), that contains all distributions of a batch up to a probability of 1e-15."""
    law = jax.tree.map(
        np.asarray, law
    )  # on the host: inside an enclosing `jit`, JAX would trace even results of known numbers
    if isinstance(law, Bags):
        points = np.asarray(law.points).reshape(-1, law.dimension)
        return points.min(axis=0), points.max(axis=0)
    inner = law.components.reshape(-1) if isinstance(law, Mixture) else law
    mean = np.asarray(inner.mean_in(coordinate), dtype=float)
    variance = np.asarray(inner.variance_in(coordinate), dtype=float)
    scale = np.sqrt(variance)
    if isinstance(inner, Gamma) and coordinate == "x":
        scale = np.maximum(scale, variance / mean)  # with a small shape, the tail exp(−rate x) is long
    low, high = np.min(mean - TAIL_REACH * scale), np.max(mean + TAIL_REACH * scale)
    if isinstance(inner, Gamma | Beta) and coordinate == "x":
        low = max(low, 0.0)
    if isinstance(inner, Beta) and coordinate == "x":
        high = min(high, 1.0)
    return np.array([low]), np.array([high])


def nodes_for(x: Points, y: Points, lengthscale: Array | None, coordinate: str, name: object = None) -> np.ndarray:
    """The number of frequencies that each coordinate needs for the distributions x and y, (d,)."""
    (low_x, high_x), (low_y, high_y) = extent(x, coordinate), extent(y, coordinate)
    lengthscale = np.broadcast_to(np.asarray(lengthscale, dtype=float), low_x.shape)
    distance = np.maximum(high_x - low_y, high_y - low_x)
    number = SPECTRAL_REACH * (distance / lengthscale + SPECTRAL_REACH) / (2 * np.pi)
    if not (number < MOST_NODES).all() and not isinstance(x, Bags):
        widest = float(np.max(distance))
        raise ParameterError(
            f"the lengthscale of {label('x', name)} is {float(lengthscale[0]):.3g}, too small for distributions that "
            f"spread over {widest:.3g}: use one above {widest * SPECTRAL_REACH / (2 * np.pi * MOST_NODES):.3g}, or "
            "another coordinate."
        )
    return np.array([bucket(int(np.ceil(n)) + 1) for n in np.minimum(number, MOST_NODES)])


def _rule(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies, starting at 0, and the square roots of their weights."""
    omega = np.linspace(0, SPECTRAL_REACH, number)
    weights = 2 * omega[1] * np.exp(-(omega**2) / 2) / np.sqrt(2 * np.pi)
    weights[0] /= 2
    return omega, np.sqrt(weights)


def law_coordinates(law: Distribution | Bags, lengthscale: Array, coordinate: str, number: int) -> jax.Array:
    """√w (Re c, Im c) of distributions on the line, (N, 2 number)."""
    omega, roots = _rule(number)
    dtype = jax.tree.leaves(law)[0].dtype
    w = omega.astype(dtype)[:, None] / lengthscale  # NumPy if the lengthscale is: a Beta needs known frequencies
    c = jnp.asarray(characteristic(law, w, coordinate))
    return jnp.concatenate([jnp.real(c), jnp.imag(c)], axis=-1) * jnp.asarray(np.tile(roots, 2), dtype)


def bag_coordinates(bags: Bags, lengthscale: Array, numbers: tuple[int, ...]) -> jax.Array:
    """Coordinates of bags in one or two dimensions, (N, Π (2 numberₖ − 1)): products of those of each column.

    Cost O(n Σ numberₖ) cosines and one small matrix product per bag.
    """
    return _bag_coordinates(bags, jnp.broadcast_to(jnp.asarray(lengthscale), (bags.dimension,)), numbers)


def _waves(x: jax.Array, number: int) -> jax.Array:
    omega, roots = _rule(number)
    angles = x[..., None] * jnp.asarray(omega, x.dtype)
    roots = jnp.asarray(roots, x.dtype)
    # The sine of frequency zero is not a coordinate.
    return jnp.concatenate([jnp.cos(angles) * roots, (jnp.sin(angles) * roots)[..., 1:]], axis=-1)


def _one_bag(bag: Bags, lengthscale: jax.Array, numbers: tuple[int, ...]) -> jax.Array:
    scaled = bag.points / lengthscale
    first = bag.weights[:, None] * _waves(scaled[:, 0], numbers[0])
    if len(numbers) == 1:
        return first.sum(axis=0)
    return jnp.matmul(first.T, _waves(scaled[:, 1], numbers[1]), precision="highest").reshape(-1)


@partial(jax.jit, static_argnums=2)
def _bag_coordinates(bags: Bags, lengthscale: jax.Array, numbers: tuple[int, ...]) -> jax.Array:
    return jax.lax.map(lambda bag: _one_bag(bag, lengthscale, numbers), bags)
