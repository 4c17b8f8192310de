"""The Laplace distribution: two exponentials back to back."""

from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.door import Door
from meanmap.core.synonyms import own_words
from meanmap.core.types import Array, Numbers
from meanmap.families.base import Distribution
from meanmap.families.reading import as_fields, check_members, read_parameters

__all__ = ["Laplace"]


class Laplace(Distribution):
    """p(x) = exp(−|x − location| / scale) / (2 scale); for embeddings, not a message.

    Parameters
    ----------
    location, scale : array_like
        scale > 0, broadcast together; their axes are the batch.

    Notes
    -----
    Characteristic function exp(iw location) / (1 + scale² w²).

    Examples
    --------
    >>> Laplace(0.0, 2.0).characteristic_function([0.0, 0.5]).real.tolist()
    [1.0, 0.5]
    """

    location: Array
    scale: Array
    _shown: ClassVar[dict[str, str]] = {"location": "location", "scale": "scale", "sd": "sd"}

    @own_words
    def __init__(self, location: Any = 0.0, scale: Numbers = 1.0):
        with Door(location, scale) as door:
            location, scale = read_parameters(door, location=location, scale=scale)
            check_members(scale, scale > 0, "scale", "values above 0")
            self.location, self.scale = as_fields(location, scale)

    @classmethod
    def standard(cls, shape: int | tuple[int, ...] = ()) -> Self:
        """Location 0 and scale 1, repeated to a batch shape."""
        return cls(np.zeros(shape), np.ones(shape))

    def _proper(self) -> Any:
        return self.scale > 0

    def _mean(self) -> Array:
        return self.location

    def _variance(self) -> Array:
        return 2 * self.scale**2

    def _log_density(self, x: Array) -> Array:
        return -jnp.abs(x - self.location) / self.scale - jnp.log(2 * self.scale)

    def _entropy(self) -> Array:
        return 1 + jnp.log(2 * self.scale)

    def _characteristic_function(self, w: Array, coordinate: str) -> Array:
        del coordinate
        batch = (..., *(None,) * w.ndim)
        size = 1 / (1 + (self.scale[batch] * w) ** 2)
        phase = self.location[batch] * w
        return jax.lax.complex(size * jnp.cos(phase), size * jnp.sin(phase))

    def _cdf(self, x: Array) -> Array:
        standard = (x - self.location) / self.scale
        tail = jnp.exp(-jnp.abs(standard)) / 2
        return jnp.where(standard < 0, tail, 1 - tail)

    def _quantile(self, p: Array) -> Array:
        return self.location + self.scale * jnp.where(p < 0.5, jnp.log(2 * p), -jnp.log(2 * (1 - p)))

    def _sample(self, n: int, key: Array) -> Array:
        return self.location + self.scale * jax.random.laplace(key, (n, *self.shape), self.scale.dtype)
