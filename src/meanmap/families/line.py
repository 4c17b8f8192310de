"""The coordinate in which a family of numbers is integrated: x itself, log x or logit x, each over the whole line.

On the line, densities have exponential tails and no edges, so that the trapezium rule converges faster than any power
of its step.
"""

from abc import ABC, abstractmethod

import jax
import jax.numpy as jnp

__all__ = ["COORDINATES", "Coordinate"]

# exp(c) and exp(−c) are finite up to this bound. For larger coordinates, functions of x are evaluated at the bound.
LARGEST_LOG = 690.0


class Coordinate(ABC):
    """A map c ↦ x(c) from the line onto the support of a family."""

    @abstractmethod
    def x(self, c: jax.Array) -> jax.Array:
        """The point at a value of the coordinate."""

    @abstractmethod
    def log_jacobian(self, c: jax.Array) -> jax.Array:
        """The logarithm of |dx/dc|."""

    @abstractmethod
    def of(self, x: jax.Array) -> jax.Array:
        """The coordinate of a point."""

    @abstractmethod
    def inside(self, x: jax.Array) -> jax.Array:
        """The points, moved inside if they round to the boundary of the support; NaN if they are outside."""


class Plain(Coordinate):
    """Numbers on the whole line, which are their own coordinate."""

    def x(self, c: jax.Array) -> jax.Array:
        """A value of the coordinate is the point."""
        return c

    def log_jacobian(self, c: jax.Array) -> jax.Array:
        """Zeros, as dx/dc is 1."""
        return jnp.zeros_like(c)

    def of(self, x: jax.Array) -> jax.Array:
        """A point is its own coordinate."""
        return x

    def inside(self, x: jax.Array) -> jax.Array:
        """All numbers are inside."""
        return x


class Log(Coordinate):
    """log x of x > 0."""

    def x(self, c: jax.Array) -> jax.Array:
        """exp(c), if that is finite."""
        return jnp.exp(jnp.clip(c, -LARGEST_LOG, LARGEST_LOG))

    def log_jacobian(self, c: jax.Array) -> jax.Array:
        """log exp(c) is c."""
        return c

    def of(self, x: jax.Array) -> jax.Array:
        """log x, the coordinate of x."""
        return jnp.log(x)

    def inside(self, x: jax.Array) -> jax.Array:
        """Zero becomes the smallest number above it."""
        return jnp.where(x < 0, jnp.nan, jnp.maximum(x, jnp.finfo(x.dtype).tiny))


class Logit(Coordinate):
    """log x − log(1 − x) of 0 < x < 1."""

    def x(self, c: jax.Array) -> jax.Array:
        """1/(1 + exp(−c))."""
        return jax.nn.sigmoid(jnp.clip(c, -LARGEST_LOG, LARGEST_LOG))

    def log_jacobian(self, c: jax.Array) -> jax.Array:
        """log x (1 − x)."""
        return -jax.nn.softplus(c) - jax.nn.softplus(-c)

    def of(self, x: jax.Array) -> jax.Array:
        """log x − log(1 − x), the coordinate of x."""
        return jnp.log(x) - jnp.log1p(-x)

    def inside(self, x: jax.Array) -> jax.Array:
        """Zero and one are moved inside by one unit of rounding."""
        limits = jnp.finfo(x.dtype)
        outside = (x < 0) | (x > 1)
        return jnp.where(outside, jnp.nan, jnp.clip(x, limits.tiny, 1 - limits.epsneg))


# By the name of a family's last coordinate; more may be added.
COORDINATES: dict[str, Coordinate] = {"x": Plain(), "log": Log(), "logit": Logit()}
