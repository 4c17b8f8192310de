"""The Gamma distribution on the positive line."""

from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.door import Door, all_concrete
from meanmap.core.settings import one_of
from meanmap.core.synonyms import own_words
from meanmap.core.types import Array, Numbers
from meanmap.families.complex_gamma import gamma_ratio
from meanmap.families.family import Family
from meanmap.families.inversion import shape_from_log_gap
from meanmap.families.line import LARGEST_LOG
from meanmap.families.reading import as_fields, by_scipy, check_members, read_parameters
from meanmap.families.real_gamma import (
    HALF_LOG_TWO_PI,
    digamma_minus_log,
    excess_minus_log,
    log_gamma,
    log_gamma_divergence,
    stirling_remainder,
    trigamma,
)
from meanmap.families.weights import normalised_weights

__all__ = ["Gamma"]


class Gamma(Family):
    """Gamma(shape, rate) on x > 0: p(x) ∝ x^(shape − 1) exp(−rate x), natural parameters (shape − 1, −rate).

    Parameters
    ----------
    shape, rate : array_like
        Both above 0, broadcast together; their axes are the batch. Read them back as `shape_parameter` and `rate`
        (`shape` is the batch shape, as for every distribution).

    Notes
    -----
    `from_moments` inverts E[log x], E[x] (the KL projection), and `from_mean_variance` the first two moments. Of draws
    from a Gamma both give nearly the same; of a distribution with heavier tails the shapes can differ by a factor. The
    characteristic function has a closed form in both coordinates: (1 − iw/rate)^(−shape) in x and
    Γ(shape + iw)/Γ(shape) rate^(−iw) in log x.

    Examples
    --------
    >>> Gamma(2.0, rate=4.0) * Gamma(3.0, rate=1.0)
    Gamma(shape=4, rate=5, mean=0.8, sd=0.4)
    >>> Gamma.from_mean_variance(2.0, 0.5)
    Gamma(shape=8, rate=4, mean=2, sd=0.7071)
    """

    coefficient_log_x: Array
    coefficient_x: Array
    coordinates: ClassVar[tuple[str, ...]] = ("x", "log")
    _fields_axes: ClassVar[dict[str, int]] = {"coefficient_log_x": 0, "coefficient_x": 0}
    _statistic_names: ClassVar[tuple[str, ...]] = ("mean_log", "mean")
    _mean_is_statistic: ClassVar[bool] = True
    smooth: ClassVar[bool] = True
    _shown: ClassVar[dict[str, str]] = {"shape": "shape_parameter", "rate": "rate", "mean": "mean", "sd": "sd"}

    @own_words
    def __init__(self, shape: Numbers, rate: Numbers):
        with Door(shape, rate) as door:
            shape, rate = read_parameters(door, shape=shape, rate=rate)
            check_members(shape, shape > 0, "shape", "values above 0")
            check_members(rate, rate > 0, "rate", "values above 0")
            self.coefficient_log_x, self.coefficient_x = as_fields(shape - 1, -rate)

    @classmethod
    def standard(cls, shape: int | tuple[int, ...] = ()) -> Self:
        """The unit exponential, Gamma(1, 1), repeated to a batch shape."""
        return cls(np.ones(shape), np.ones(shape))

    @classmethod
    def flat(cls, shape: int | tuple[int, ...] = ()) -> Self:
        """No information: both natural parameters zero, the identity of the product; improper."""
        return cls.from_natural(np.zeros(shape), np.zeros(shape))

    @classmethod
    @own_words
    def from_mean_variance(cls, mean: Array, variance: Array) -> Self:
        """The member with this mean and variance: shape = mean²/variance, rate = mean/variance."""
        with Door(mean, variance) as door:
            mean, variance = read_parameters(door, mean=mean, variance=variance)
            check_members(mean, mean > 0, "mean", "values above 0")
            check_members(variance, variance > 0, "variance", "values above 0")
            return cls(mean * mean / variance, mean / variance)

    @classmethod
    def from_weighted_samples(cls, x: Array, log_weights: Array, match: str = "statistics") -> Self:
        """The member that matches a weighted sample.

        Parameters
        ----------
        x, log_weights : array_like
            As for every family: n draws along the first axis, and the logarithms of their weights.
        match : {"statistics", "variance"}
            "statistics" matches E[log x] and E[x], the KL projection; "variance" matches mean and variance.
        """
        formulas = {"statistics": cls._natural_from_sample, "variance": cls._natural_by_variance}
        return cls._project(formulas[one_of(match, "match", formulas)], x, log_weights)

    @classmethod
    def _check_sample(cls, x: Array) -> None:
        check_members(x, x > 0, "x", "draws above 0")

    @classmethod
    def _natural_from_sample(cls, x: Array, log_weights: Array) -> tuple[Array, ...]:
        # log E[x] − E[log x] as a mean of r − 1 − log r ≥ 0 with r = x/E[x]: no two large logarithms are subtracted.
        weights = normalised_weights(log_weights)
        mean = (weights * x).sum(0)
        gap = (weights * excess_minus_log(x, mean)).sum(0)
        # A gap of a few roundings means that all draws are equal: no shape fits.
        return _natural_from_gap(jnp.where(gap > 8 * jnp.finfo(x.dtype).eps, gap, jnp.nan), mean)

    @classmethod
    def _natural_by_variance(cls, x: Array, log_weights: Array) -> tuple[Array, ...]:
        weights = normalised_weights(log_weights)
        mean = (weights * x).sum(0)
        variance = (weights * (x - mean) ** 2).sum(0)
        return mean * mean / variance - 1, -mean / variance

    @classmethod
    def _check_moments(cls, *moments: Array) -> None:
        mean_log, mean = moments
        check_members(mean, mean > 0, "E[x]", "values above 0")
        if all_concrete(moments):
            gap = np.log(np.asarray(mean)) - np.asarray(mean_log)
            check_members(gap, gap > 0, "log E[x] - E[log x]", "values above 0 (Jensen's inequality)")

    @classmethod
    def _natural_from_moments(cls, *moments: Array) -> tuple[Array, ...]:
        mean_log, mean = moments
        return _natural_from_gap(jnp.log(mean) - mean_log, mean)

    @property
    def shape_parameter(self) -> Any:
        """The shape; above 0 if proper."""
        return self.coefficient_log_x + 1

    @property
    def rate(self) -> Any:
        """The rate; above 0 if proper."""
        return -self.coefficient_x

    def _proper(self) -> Any:
        return (self.shape_parameter > 0) & (self.rate > 0)

    @classmethod
    def _statistics(cls, x: Array) -> tuple[Array, ...]:
        return jnp.log(x), x

    def _log_unnormalised(self, x: Array) -> Array:
        inside = x >= 0
        safe = jnp.where(inside, x, 1)
        return jnp.where(
            inside, jax.scipy.special.xlogy(self.coefficient_log_x, safe) + self.coefficient_x * safe, -jnp.inf
        )

    def _log_message(self, c: Array, x: Array) -> Array:
        return self.coefficient_log_x * c + self.coefficient_x * x

    def _tails(self) -> tuple[Any, Any]:
        return self.shape_parameter, None

    @classmethod
    def _project_points(cls, c: Array, x: Array, log_weights: Array) -> Self:
        # log E[x] − E[log x] as a mean of r − 1 − log r with r = x/E[x], from log x itself: x may underflow.
        weights = jax.nn.softmax(log_weights, 0)
        mean = (weights * x).sum(0)
        away = jnp.minimum(c - jnp.log(mean), LARGEST_LOG)
        gap = (weights * (jnp.expm1(away) - away)).sum(0)
        shape = shape_from_log_gap(jnp.where(gap > 8 * jnp.finfo(gap.dtype).eps, gap, jnp.nan))
        return cls.from_natural(shape - 1, -shape / mean)

    @classmethod
    def _at_mode(cls, c: Array, curvature: Array) -> Self:  # a c − b eᶜ: mode log(a/b), curvature a
        return cls.from_natural(curvature - 1, -curvature * jnp.exp(-c))

    def _exponents(self) -> tuple[Any, ...]:
        return self.shape_parameter, -self.rate

    def _improper(self) -> Any:
        return (self.shape_parameter <= 0) | (self.rate < 0)

    def _nearest_proper(self, incoming: Self) -> Self:
        tilted = jax.tree.map(jnp.add, incoming, self)
        mean, shape, rate = tilted.shape_parameter / tilted.rate, incoming.shape_parameter, incoming.rate
        more = jnp.maximum(mean * rate - shape, 0)  # of the shape, where the mean grows
        return self.from_natural(more, -jnp.maximum(shape / mean - rate, 0))

    def _mean(self) -> Array:
        return self.shape_parameter / self.rate

    def _variance(self) -> Array:
        return self._mean() / self.rate

    def _mean_log(self) -> Array:
        return digamma_minus_log(self.shape_parameter) + jnp.log(self._mean())

    def _expected_statistics(self) -> tuple[Array, ...]:
        return self._mean_log(), self._mean()

    def _moments_in(self, coordinate: str) -> tuple[Array, Array]:
        if coordinate == "log":
            return self._mean_log(), trigamma(self.shape_parameter)
        return self._mean(), self._variance()

    def _log_normaliser(self) -> Array:
        return log_gamma(self.shape_parameter) - self.shape_parameter * jnp.log(self.rate)

    def _log_density(self, x: Array) -> Array:
        # a log(x/E x) − (x/E x − 1) a is of order one near the mean, where log Γ(a) and a log x are of order a log a.
        a, safe = self.shape_parameter, jnp.where(x > 0, x, 1)
        inside = -a * excess_minus_log(safe * self.rate, a) - jnp.log(safe) + jnp.log(a) / 2 - HALF_LOG_TWO_PI
        return jnp.where(x > 0, inside - stirling_remainder(a), self._log_unnormalised(x) - self._log_normaliser())

    def _entropy(self) -> Array:
        a = self.shape_parameter
        return (
            jnp.log(self._mean())
            - jnp.log(a) / 2
            + HALF_LOG_TWO_PI
            + stirling_remainder(a)
            + (1 - a) * digamma_minus_log(a)
        )

    def _kl(self, other: Self) -> Array:
        p, q = self.shape_parameter, other.shape_parameter
        leading = q * excess_minus_log(self._mean(), other._mean())
        return jnp.maximum(leading + log_gamma_divergence(q, p), 0)

    def _characteristic_function(self, w: Array, coordinate: str) -> Array:
        batch = (..., *(None,) * w.ndim)
        a, rate = self.shape_parameter[batch], self.rate[batch]
        if coordinate == "log":
            turn = w * jnp.log(rate)
            return gamma_ratio(a, w) * jax.lax.complex(jnp.cos(turn), -jnp.sin(turn))
        t = w / rate
        return jnp.exp(jax.lax.complex(-a * jnp.log1p(t * t) / 2, a * jnp.arctan(t)))

    def _cdf(self, x: Array) -> Array:
        return jax.scipy.special.gammainc(self.shape_parameter, jnp.maximum(x, 0) * self.rate)

    def _quantile_of(self, p: Array) -> Any:
        from scipy.special import gammaincinv  # here: importing this package needs no SciPy

        def inverse(p: np.ndarray) -> np.ndarray:
            return gammaincinv(np.asarray(self.shape_parameter, float), p) / np.asarray(self.rate, float)

        return by_scipy(self, p, inverse)

    def _sample(self, n: int, key: Array) -> Array:
        a = self.shape_parameter
        logs = jax.random.loggamma(key, a, (n, *self.shape), a.dtype) - jnp.log(self.rate)
        # With a small shape draws may underflow; they are kept above 0, which lies outside the support.
        return jnp.maximum(jnp.exp(logs), jnp.finfo(a.dtype).tiny)


def _natural_from_gap(gap: Array, mean: Array) -> tuple[Array, Array]:
    shape = shape_from_log_gap(gap)
    return shape - 1, -shape / mean
