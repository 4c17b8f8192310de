"""Multivariate Student distributions as proposals of importance sampling, with tails that cover any family here."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln

__all__ = ["Student"]

_DEGREES = 5.0


class Student(NamedTuple):
    """The distribution of centre + root t with five degrees of freedom of t; `root` and its inverse are triangular."""

    centre: jax.Array
    root: jax.Array
    inverse: jax.Array

    @classmethod
    def of(cls, centre: jax.Array, root: jax.Array) -> "Student":
        """With a lower triangular root."""
        inverse = jax.scipy.linalg.solve_triangular(root, jnp.eye(len(centre)), lower=True)
        return cls(centre, root, inverse)

    def sample(self, count: int, key: jax.Array) -> jax.Array:
        """Draws (count, d)."""
        normal, widening = jax.random.split(key)
        white = jax.random.normal(normal, (count, *self.centre.shape), self.centre.dtype)
        chi = 2 * jax.random.gamma(widening, _DEGREES / 2, (count,), self.centre.dtype)
        return self.centre + (white * jnp.sqrt(_DEGREES / chi)[:, None]) @ self.root.T

    def log_density(self, u: jax.Array) -> jax.Array:
        """At points (n, d)."""
        d = self.centre.shape[0]
        t = (u - self.centre) @ self.inverse.T
        half = (_DEGREES + d) / 2
        log_constant = gammaln(half) - gammaln(_DEGREES / 2) - d / 2 * jnp.log(_DEGREES * jnp.pi)
        log_constant = log_constant + jnp.log(jnp.abs(jnp.diagonal(self.inverse))).sum()
        return log_constant - half * jnp.log1p((t**2).sum(1) / _DEGREES)
