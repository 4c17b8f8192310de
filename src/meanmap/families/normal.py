"""The normal distribution on the line."""

from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.door import Door
from meanmap.core.synonyms import own_words
from meanmap.core.types import Array, Numbers
from meanmap.families.family import Family
from meanmap.families.gaussian_parts import Parts, one_normal
from meanmap.families.reading import as_fields, check_members, read_parameters
from meanmap.families.real_gamma import HALF_LOG_TWO_PI, excess_minus_log
from meanmap.families.weights import normalised_weights

__all__ = ["Normal"]


class Normal(Family):
    """N(m, v) on the line, by its mean and its variance: Normal(0, 4) has a standard deviation of 2.

    Its natural parameters are (m/v, 1/v), to the statistics (x, −x²/2).

    Parameters
    ----------
    mean, variance : array_like
        m and v > 0, broadcast together; their axes are the batch. The variance is the square of the standard deviation.

    Notes
    -----
    A precision of zero or below is an improper message. Conversion between natural parameters and (mean, variance) is
    exact to rounding; `from_moments` takes raw moments, which lose digits of a variance that is small relative to the
    squared mean.

    Examples
    --------
    >>> Normal(1.0, 4.0) * Normal(3.0, 4.0)
    Normal(mean=2, sd=1.414)
    >>> Normal(0.0, 4.0) / Normal(0.0, [1.0, 8.0])
    Normal(shape=(2,), improper at [0])
    """

    precision_mean: Array
    precision: Array
    _fields_axes: ClassVar[dict[str, int]] = {"precision_mean": 0, "precision": 0}
    _statistic_names: ClassVar[tuple[str, ...]] = ("mean", "minus_half_mean_square")
    smooth: ClassVar[bool] = True

    @own_words
    def __init__(self, mean: Numbers = 0.0, variance: Numbers = 1.0):
        with Door(mean, variance) as door:
            mean, variance = read_parameters(door, mean=mean, variance=variance)
            check_members(variance, variance > 0, "variance", "values above 0")
            precision = 1 / variance
            self.precision, self.precision_mean = as_fields(precision, mean * precision)

    @classmethod
    def standard(cls, shape: int | tuple[int, ...] = ()) -> Self:
        """N(0, 1), repeated to a batch shape."""
        return cls(np.zeros(shape), np.ones(shape))

    @classmethod
    def flat(cls, shape: int | tuple[int, ...] = ()) -> Self:
        """No information: both natural parameters zero, the identity of the product; improper."""
        return cls.from_natural(np.zeros(shape), np.zeros(shape))

    @classmethod
    @own_words
    def from_mean_variance(cls, mean: Array, variance: Array) -> Self:
        """`Normal(mean, variance)`, under the name that it has for Beta and Gamma."""
        return cls(mean, variance)

    @classmethod
    def _check_moments(cls, *moments: Array) -> None:
        mean, minus_half_square = moments
        variance = -2 * minus_half_square - mean * mean
        check_members(variance, variance > 0, "the variance -2 E[-x²/2] - E[x]²", "values above 0")

    @classmethod
    def _natural_from_moments(cls, *moments: Array) -> tuple[Array, ...]:
        mean, minus_half_square = moments
        return _natural(mean, -2 * minus_half_square - mean * mean)

    @classmethod
    def _natural_from_sample(cls, x: Array, log_weights: Array) -> tuple[Array, ...]:
        # Centred second moments: the raw ones lose the variance of a narrow distribution far from zero.
        weights = normalised_weights(log_weights)
        mean = (weights * x).sum(0)
        return _natural(mean, (weights * (x - mean) ** 2).sum(0))

    def _proper(self) -> Any:
        return (self.precision > 0) & (self.precision < np.inf)

    @classmethod
    def _statistics(cls, x: Array) -> tuple[Array, ...]:
        return x, -x * x / 2

    def _log_message(self, c: Array, x: Array) -> Array:
        del c
        return (self.precision_mean - self.precision * x / 2) * x

    @classmethod
    def _project_points(cls, c: Array, x: Array, log_weights: Array) -> Self:
        del c
        weights = normalised_weights(log_weights)
        # Points without weight do not count, however large: their squares may overflow.
        x = jnp.where(weights > 0, x, 0.0)
        projected = cls.from_weighted_samples(x, log_weights)
        # Points that differ only by rounding have no spread that a Normal could fit: NaN (as for a Gamma).
        rounding = 8 * jnp.finfo(x.dtype).eps * (weights * jnp.abs(x)).sum(0)
        spread = projected.precision * rounding**2 < 1
        return jax.tree.map(lambda leaf: jnp.where(spread, leaf, jnp.nan), projected)

    @classmethod
    def _at_mode(cls, c: Array, curvature: Array) -> Self:
        return cls.from_natural(curvature * c, curvature)

    def _improper(self) -> Any:
        return self.precision < 0

    def _nearest_proper(self, incoming: Self) -> Self:
        tilted = jax.tree.map(jnp.add, incoming, self)
        mean = tilted.precision_mean / tilted.precision
        return self.from_natural(mean * incoming.precision - incoming.precision_mean, jnp.zeros_like(mean))

    def gaussian_parts(self, coordinate: str) -> Parts:
        """The distribution itself."""
        del coordinate
        return one_normal(jnp.asarray(self.mean())[:, None], jnp.asarray(self.var())[:, None, None])

    def _mean(self) -> Array:
        return self.precision_mean / self.precision

    def _variance(self) -> Array:
        return 1 / self.precision

    def _expected_statistics(self) -> tuple[Array, ...]:
        mean = self._mean()
        return mean, -(mean * mean + self._variance()) / 2

    def _log_normaliser(self) -> Array:
        return self.precision_mean * self._mean() / 2 - jnp.log(self.precision) / 2 + HALF_LOG_TWO_PI

    def _log_density(self, x: Array) -> Array:
        centred = x - self._mean()
        return (jnp.log(self.precision) - centred * centred * self.precision) / 2 - HALF_LOG_TWO_PI

    def _entropy(self) -> Array:
        return 0.5 - jnp.log(self.precision) / 2 + HALF_LOG_TWO_PI

    def _kl(self, other: Self) -> Array:
        shift = self._mean() - other._mean()
        widening = excess_minus_log(other.precision, self.precision)
        return jnp.maximum(widening + shift * shift * other.precision, 0) / 2

    def _characteristic_function(self, w: Array, coordinate: str) -> Array:
        del coordinate
        batch = (..., *(None,) * w.ndim)
        mean, variance = self._mean()[batch], self._variance()[batch]
        return jnp.exp(jax.lax.complex(*jnp.broadcast_arrays(-w * w * variance / 2, w * mean)))

    def _cdf(self, x: Array) -> Array:
        return jax.scipy.special.ndtr((x - self._mean()) * jnp.sqrt(self.precision))

    def _quantile(self, p: Array) -> Array:
        return self._mean() + jax.scipy.special.ndtri(p) / jnp.sqrt(self.precision)

    def _sample(self, n: int, key: Array) -> Array:
        noise = jax.random.normal(key, (n, *self.shape), self.precision.dtype)
        return self._mean() + noise / jnp.sqrt(self.precision)


def _natural(mean: Array, variance: Array) -> tuple[Array, Array]:
    precision = 1 / variance
    return mean * precision, precision
