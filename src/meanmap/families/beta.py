"""The Beta distribution on the unit interval."""

from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.door import Door, all_concrete, is_concrete
from meanmap.core.errors import InputError
from meanmap.core.settings import one_of
from meanmap.core.synonyms import own_words
from meanmap.core.types import Array
from meanmap.families.complex_gamma import gamma_ratio
from meanmap.families.family import Family
from meanmap.families.inversion import parameters_from_expected_logs
from meanmap.families.product_integration import beta_rule, nodes_for_frequency
from meanmap.families.reading import as_fields, by_scipy, check_members, read_parameters
from meanmap.families.real_gamma import digamma_minus_log, trigamma
from meanmap.families.simplex import (
    dirichlet_divergence,
    dirichlet_entropy,
    dirichlet_log_density,
    expected_logs,
    log_beta,
)
from meanmap.families.weights import normalised_weights

__all__ = ["Beta"]

# Inside jit the number of nodes must be fixed before the frequencies are known: frequencies above this give NaN there.
_TRACED_FREQUENCY = 256.0


class Beta(Family):
    """Beta(a, b) on 0 < x < 1: p(x) ∝ x^(a − 1) (1 − x)^(b − 1), natural parameters (a − 1, b − 1).

    Parameters
    ----------
    a, b : array_like
        Both above 0, broadcast together; their axes are the batch.

    Notes
    -----
    The characteristic function is Γ(a + iw) Γ(b − iw) / (Γ(a) Γ(b)) in the coordinate "logit". In "x" it is the
    confluent hypergeometric function ₁F₁(a; a + b; iw), whose series cancels without bound for large a, b; here it is
    computed by quadrature with n = |w|/2 + 11 (|w|/2)^⅓ (about) Chebyshev nodes shared by the batch, at the cost of one
    (batch, n) by (n, frequencies) product. Inside `jit`, traced frequencies with |w| > 256 give NaN: keep them constant
    there.

    Examples
    --------
    >>> Beta(2.0, 1.0) * Beta(1.0, 2.0)
    Beta(a=2, b=2, mean=0.5, sd=0.2236)
    >>> Beta(2.0, 1.0) / Beta(1.0, 2.0)
    Beta(improper, natural=1, -1)
    """

    coefficient_log_x: Array
    coefficient_log_complement: Array
    coordinates: ClassVar[tuple[str, ...]] = ("x", "logit")
    _fields_axes: ClassVar[dict[str, int]] = {"coefficient_log_x": 0, "coefficient_log_complement": 0}
    smooth: ClassVar[bool] = True
    _statistic_names: ClassVar[tuple[str, ...]] = ("mean_log", "mean_log_complement")
    _shown: ClassVar[dict[str, str]] = {"a": "a", "b": "b", "mean": "mean", "sd": "sd"}

    @own_words
    def __init__(self, a: Array, b: Array):
        with Door(a, b) as door:
            a, b = read_parameters(door, a=a, b=b)
            check_members(a, a > 0, "a", "values above 0")
            check_members(b, b > 0, "b", "values above 0")
            self.coefficient_log_x, self.coefficient_log_complement = as_fields(a - 1, b - 1)

    @classmethod
    def standard(cls, shape: int | tuple[int, ...] = ()) -> Self:
        """The uniform distribution on (0, 1), Beta(1, 1), repeated to a batch shape."""
        return cls(np.ones(shape), np.ones(shape))

    @classmethod
    def flat(cls, shape: int | tuple[int, ...] = ()) -> Self:
        """No information: both natural parameters zero, the identity of the product. It is `standard`, and proper."""
        return cls.standard(shape)

    @classmethod
    @own_words
    def from_mean_variance(cls, mean: Array, variance: Array) -> Self:
        """The member with this mean m and variance v < m (1 − m): a + b = m (1 − m)/v − 1."""
        with Door(mean, variance) as door:
            mean, variance = read_parameters(door, mean=mean, variance=variance)
            check_members(mean, (mean > 0) & (mean < 1), "mean", "values between 0 and 1")
            spread = mean * (1 - mean)
            check_members(
                variance, (variance > 0) & (variance < spread), "variance", "values above 0 and below mean (1 - mean)"
            )
            total = spread / variance - 1
            return cls(mean * total, (1 - mean) * total)

    @classmethod
    def from_weighted_samples(cls, x: Array, log_weights: Array, match: str = "statistics") -> Self:
        """The member that matches a weighted sample.

        Parameters
        ----------
        x, log_weights : array_like
            As for every family: n draws along the first axis, and the logarithms of their weights.
        match : {"statistics", "variance"}
            "statistics" matches E[log x] and E[log(1 − x)], the KL projection; "variance" matches mean and variance.
        """
        formulas = {"statistics": cls._natural_from_sample, "variance": cls._natural_by_variance}
        return cls._project(formulas[one_of(match, "match", formulas)], x, log_weights)

    @classmethod
    def _check_sample(cls, x: Array) -> None:
        check_members(x, (x > 0) & (x < 1), "x", "draws strictly between 0 and 1")

    @classmethod
    def _natural_by_variance(cls, x: Array, log_weights: Array) -> tuple[Array, ...]:
        weights = normalised_weights(log_weights)
        mean = (weights * x).sum(0)
        total = mean * (1 - mean) / (weights * (x - mean) ** 2).sum(0) - 1
        return mean * total - 1, (1 - mean) * total - 1

    @classmethod
    def _check_moments(cls, *moments: Array) -> None:
        if all_concrete(moments):
            shares = np.exp(np.asarray(moments[0])) + np.exp(np.asarray(moments[1]))
            check_members(
                shares, shares < 1, "exp E[log x] + exp E[log(1 - x)]", "values below 1 (Jensen's inequality)"
            )

    @classmethod
    def _natural_from_moments(cls, *moments: Array) -> tuple[Array, ...]:
        parameters = parameters_from_expected_logs(jnp.stack(jnp.broadcast_arrays(*moments), -1))
        return parameters[..., 0] - 1, parameters[..., 1] - 1

    @property
    def a(self) -> Any:
        """The exponent of x plus one; above 0 if proper."""
        return self.coefficient_log_x + 1

    @property
    def b(self) -> Any:
        """The exponent of 1 − x plus one; above 0 if proper."""
        return self.coefficient_log_complement + 1

    def _both(self) -> Array:
        return jnp.stack([self.a, self.b], -1)

    def _proper(self) -> Any:
        return (self.a > 0) & (self.b > 0)

    @classmethod
    def _statistics(cls, x: Array) -> tuple[Array, ...]:
        return jnp.log(x), jnp.log1p(-x)

    def _log_unnormalised(self, x: Array) -> Array:
        inside = (x >= 0) & (x <= 1)
        safe = jnp.where(inside, x, 0.5)
        value = jax.scipy.special.xlogy(self.coefficient_log_x, safe)
        value = value + jax.scipy.special.xlog1py(self.coefficient_log_complement, -safe)
        return jnp.where(inside, value, -jnp.inf)

    def _log_message(self, c: Array, x: Array) -> Array:
        del x  # without rounding of 1 − x
        return -self.coefficient_log_x * jax.nn.softplus(-c) - self.coefficient_log_complement * jax.nn.softplus(c)

    def _tails(self) -> tuple[Any, Any]:
        return self.a, self.b

    @classmethod
    def _project_points(cls, c: Array, x: Array, log_weights: Array) -> Self:
        del x
        weights = jax.nn.softmax(log_weights, 0)
        return cls.from_moments((-weights * jax.nn.softplus(-c)).sum(0), (-weights * jax.nn.softplus(c)).sum(0))

    @classmethod
    def _at_mode(cls, c: Array, curvature: Array) -> Self:
        # a log σ(c) + b log σ(−c): mode σ(c) = a/(a + b), curvature a b/(a + b)
        return cls.from_natural(curvature / jax.nn.sigmoid(-c) - 1, curvature / jax.nn.sigmoid(c) - 1)

    def _exponents(self) -> tuple[Any, ...]:
        return self.a, self.b

    def _improper(self) -> Any:
        return (self.a <= 0) | (self.b <= 0)

    def _nearest_proper(self, incoming: Self) -> Self:
        tilted = jax.tree.map(jnp.add, incoming, self)
        a, b = incoming.a, incoming.b
        mean = tilted.a / (tilted.a + tilted.b)
        return self.from_natural(
            jnp.maximum((mean * (a + b) - a) / (1 - mean), 0), jnp.maximum(((1 - mean) * (a + b) - b) / mean, 0)
        )

    def _turned(self, step: Array) -> Self:
        return self.from_natural(self.coefficient_log_x + step, self.coefficient_log_complement - step)

    def _mean(self) -> Array:
        return self.a / (self.a + self.b)

    def _variance(self) -> Array:
        total = self.a + self.b
        return (self.a / total) * (self.b / total) / (total + 1)

    def _expected_statistics(self) -> tuple[Array, ...]:
        logs = expected_logs(self._both())
        return logs[..., 0], logs[..., 1]

    def _moments_in(self, coordinate: str) -> tuple[Array, Array]:
        if coordinate == "logit":
            mean = jnp.log(self.a / self.b) + digamma_minus_log(self.a) - digamma_minus_log(self.b)
            return mean, trigamma(self.a) + trigamma(self.b)
        return self._mean(), self._variance()

    def _log_normaliser(self) -> Array:
        return log_beta(self._both())

    def _log_density(self, x: Array) -> Array:
        inside = (x > 0) & (x < 1)
        safe = jnp.where(inside, x, 0.5)
        excess = safe - self._mean()
        logs = jnp.stack([jnp.log(safe), jnp.log1p(-safe)], -1)
        value = dirichlet_log_density(logs, jnp.stack([excess, -excess], -1), self._both())
        return jnp.where(inside, value, self._log_unnormalised(x) - self._log_normaliser())

    def _entropy(self) -> Array:
        return dirichlet_entropy(self._both())

    def _kl(self, other: Self) -> Array:
        return dirichlet_divergence(self._both(), other._both())

    def _frequency_settings(self, w: Array, coordinate: str) -> dict[str, Any]:
        if coordinate == "logit":
            return {}
        if not is_concrete(w):
            return {"nodes": nodes_for_frequency(_TRACED_FREQUENCY), "limit": _TRACED_FREQUENCY}
        largest = float(np.abs(np.asarray(w)).max(initial=1.0))
        if not np.isfinite(largest):
            raise InputError("w holds infinity; expected finite frequencies.")
        return {"nodes": nodes_for_frequency(largest)}

    def _characteristic_function(self, w: Array, coordinate: str, nodes: int = 0, limit: float | None = None) -> Array:
        if coordinate == "logit":
            batch = (..., *(None,) * w.ndim)
            return gamma_ratio(self.a[batch], w) * gamma_ratio(self.b[batch], -w)
        points, weights = beta_rule(self.a, self.b, nodes)
        angles = points[:, None] * w.reshape(-1)
        waves = jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], -1)
        real, imaginary = jnp.split(jnp.matmul(weights, waves, precision="highest"), 2, axis=-1)
        values = jax.lax.complex(real, imaginary).reshape(*self.shape, *w.shape)
        return values if limit is None else jnp.where(jnp.abs(w) <= limit, values, jnp.nan)

    def _cdf(self, x: Array) -> Array:
        return jax.scipy.special.betainc(self.a, self.b, jnp.clip(x, 0, 1))

    def _quantile_of(self, p: Array) -> Any:
        from scipy.special import betaincinv  # here: importing this package needs no SciPy

        return by_scipy(self, p, lambda p: betaincinv(np.asarray(self.a, float), np.asarray(self.b, float), p))

    def _sample(self, n: int, key: Array) -> Array:
        # A ratio of Gammas, kept in logarithms: for small parameters both underflow.
        dtype = self.coefficient_log_x.dtype
        logs = jax.random.loggamma(key, self._both(), (n, *self.shape, 2), dtype)
        limits = jnp.finfo(dtype)
        return jnp.clip(jax.nn.sigmoid(logs[..., 0] - logs[..., 1]), limits.tiny, 1 - limits.epsneg)
