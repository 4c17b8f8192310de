"""The Bernoulli distribution on {0, 1}."""

from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.door import Door
from meanmap.core.synonyms import own_words
from meanmap.core.types import Array, Numbers
from meanmap.families.family import Family
from meanmap.families.gaussian_parts import Parts, points_with_weights
from meanmap.families.reading import as_fields, check_members, read_parameters

__all__ = ["Bernoulli"]


class Bernoulli(Family):
    """x = 1 with probability p and 0 otherwise; natural parameter log(p/(1 − p)) to the statistic x.

    Parameters
    ----------
    probability : array_like
        0 < p < 1; its axes are the batch. For certainty use `PointMass(0)` or `PointMass(1)`.

    Examples
    --------
    >>> Bernoulli(0.8) * Bernoulli(0.2)
    Bernoulli(probability=0.5)
    """

    logit: Array
    _fields_axes: ClassVar[dict[str, int]] = {"logit": 0}
    _statistic_names: ClassVar[tuple[str, ...]] = ("mean",)
    _shown: ClassVar[dict[str, str]] = {"probability": "mean"}
    states: ClassVar[tuple[float, ...] | None] = (0.0, 1.0)

    @own_words
    def __init__(self, probability: Numbers = 0.5):
        with Door(probability) as door:
            (p,) = read_parameters(door, probability=probability)
            check_members(
                p,
                (p > 0) & (p < 1),
                "probability",
                "values between 0 and 1; for certainty use PointMass(0) or PointMass(1)",
            )
            library = jnp if door.follows else np
            (self.logit,) = as_fields(library.log(p) - library.log1p(-p))

    @classmethod
    def standard(cls, shape: int | tuple[int, ...] = ()) -> Self:
        """A fair coin, repeated to a batch shape."""
        return cls.from_natural(np.zeros(shape))

    @classmethod
    def flat(cls, shape: int | tuple[int, ...] = ()) -> Self:
        """No information: logit zero, the identity of the product. It is `standard`, and proper."""
        return cls.standard(shape)

    @classmethod
    def _check_moments(cls, *moments: Array) -> None:
        mean = moments[0]
        check_members(mean, (mean > 0) & (mean < 1), "the mean", "values between 0 and 1")

    @classmethod
    def _natural_from_moments(cls, *moments: Array) -> tuple[Array, ...]:
        return (jnp.log(moments[0]) - jnp.log1p(-moments[0]),)

    @classmethod
    def _project_points(cls, c: Array, x: Array, log_weights: Array) -> Self:
        """By the weights of both values: their share rounds to 0 or 1 where one of them is nearly certain."""
        del c
        one, zero = (jax.nn.logsumexp(jnp.where(x == value, log_weights, -jnp.inf), axis=0) for value in (1, 0))
        return cls.from_natural(one - zero)

    @classmethod
    def _check_sample(cls, x: Array) -> None:
        check_members(x, (x == 0) | (x == 1), "x", "zeros and ones")

    @property
    def probability(self) -> Array:
        """P(x = 1), the mean."""
        return self.mean()

    def _proper(self) -> Any:
        return abs(self.logit) < np.inf

    @classmethod
    def _statistics(cls, x: Array) -> tuple[Array, ...]:
        return (x,)

    def _log_unnormalised(self, x: Array) -> Array:
        return jnp.where((x == 0) | (x == 1), self.logit * x, -jnp.inf)

    def gaussian_parts(self, coordinate: str) -> Parts:
        """Two points, 0 and 1."""
        del coordinate
        p = jnp.asarray(self.mean())
        return points_with_weights(jnp.stack([1 - p, p], axis=-1), jnp.array([[0.0], [1.0]], p.dtype))

    def _mean(self) -> Array:
        return jax.nn.sigmoid(self.logit)

    def _variance(self) -> Array:
        return jax.nn.sigmoid(self.logit) * jax.nn.sigmoid(-self.logit)

    def _expected_statistics(self) -> tuple[Array, ...]:
        return (self._mean(),)

    def _log_normaliser(self) -> Array:
        return jax.nn.softplus(self.logit)

    def _entropy(self) -> Array:
        # Even in the logit; written with −|logit| to keep the precision of nearly certain distributions.
        size = jnp.abs(self.logit)
        return jnp.log1p(jnp.exp(-size)) + size * jax.nn.sigmoid(-size)

    def _kl(self, other: Self) -> Array:
        difference = other._log_normaliser() - self._log_normaliser()
        return jnp.maximum(difference + (self.logit - other.logit) * self._mean(), 0)

    def _characteristic_function(self, w: Array, coordinate: str) -> Array:
        del coordinate
        batch = (..., *(None,) * w.ndim)
        one, zero = jax.nn.sigmoid(self.logit)[batch], jax.nn.sigmoid(-self.logit)[batch]
        return jax.lax.complex(zero + one * jnp.cos(w), one * jnp.sin(w))

    def _cdf(self, x: Array) -> Array:
        return jnp.where(x < 0, 0.0, jnp.where(x < 1, jax.nn.sigmoid(-self.logit), 1.0))

    def _quantile(self, p: Array) -> Array:
        return jnp.where(p <= jax.nn.sigmoid(-self.logit), 0.0, 1.0)

    def _sample(self, n: int, key: Array) -> Array:
        uniform = jax.random.uniform(key, (n, *self.shape), self.logit.dtype)
        return (uniform < self._mean()).astype(self.logit.dtype)
