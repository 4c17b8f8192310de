"""The uniform distribution on an interval."""

from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.door import Door
from meanmap.core.synonyms import own_words
from meanmap.core.types import Array, Numbers
from meanmap.families.base import Distribution
from meanmap.families.reading import as_fields, check_members, read_parameters

__all__ = ["Uniform"]


class Uniform(Distribution):
    """p(x) = 1/(high − low) on low < x < high; for embeddings, not a message (`Flat` is the message without
    information).

    Parameters
    ----------
    low, high : array_like
        low < high, broadcast together; their axes are the batch.

    Notes
    -----
    Characteristic function exp(iw (low + high)/2) sin(wh)/(wh), h the half-width.

    Examples
    --------
    >>> Uniform(0.0, 1.0).mean_in("x"), float(Uniform(-1.0, 1.0).characteristic_function(0.0).real)
    (np.float64(0.5), 1.0)
    """

    low: Array
    high: Array
    _shown: ClassVar[dict[str, str]] = {"low": "low", "high": "high"}

    @own_words
    def __init__(self, low: Numbers = 0.0, high: Numbers = 1.0):
        with Door(low, high) as door:
            low, high = read_parameters(door, low=low, high=high)
            check_members(high, high > low, "high", "values above low")
            self.low, self.high = as_fields(low, high)

    @classmethod
    def standard(cls, shape: int | tuple[int, ...] = ()) -> Self:
        """The unit interval, repeated to a batch shape."""
        return cls(np.zeros(shape), np.ones(shape))

    def _proper(self) -> Any:
        return self.high > self.low

    def _mean(self) -> Array:
        return self.low + (self.high - self.low) / 2

    def _variance(self) -> Array:
        return (self.high - self.low) ** 2 / 12

    def _log_density(self, x: Array) -> Array:
        return jnp.where((x >= self.low) & (x <= self.high), -jnp.log(self.high - self.low), -jnp.inf)

    def _entropy(self) -> Array:
        return jnp.log(self.high - self.low)

    def _characteristic_function(self, w: Array, coordinate: str) -> Array:
        del coordinate
        batch = (..., *(None,) * w.ndim)
        size = jnp.sinc(w * ((self.high - self.low) / (2 * np.pi))[batch])
        phase = self._mean()[batch] * w
        return jax.lax.complex(size * jnp.cos(phase), size * jnp.sin(phase))

    def _cdf(self, x: Array) -> Array:
        return jnp.clip((x - self.low) / (self.high - self.low), 0, 1)

    def _quantile(self, p: Array) -> Array:
        return self.low + p * (self.high - self.low)

    def _sample(self, n: int, key: Array) -> Array:
        return self.low + (self.high - self.low) * jax.random.uniform(key, (n, *self.shape), self.low.dtype)
