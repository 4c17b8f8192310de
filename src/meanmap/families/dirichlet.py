"""The Dirichlet distribution on the simplex."""

from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.door import Door, all_concrete
from meanmap.core.errors import ShapeError
from meanmap.core.synonyms import own_words
from meanmap.core.types import Array
from meanmap.families.complex_gamma import log_gamma_ratio
from meanmap.families.family import Family
from meanmap.families.inversion import parameters_from_expected_logs
from meanmap.families.reading import as_fields, check_members, read_parameters
from meanmap.families.real_gamma import trigamma
from meanmap.families.simplex import (
    covariance_of_shares,
    dirichlet_divergence,
    dirichlet_entropy,
    dirichlet_log_density,
    expected_logs,
    log_beta,
)

__all__ = ["Dirichlet"]


class Dirichlet(Family):
    """Dirichlet(α) on probability vectors x of length k: p(x) ∝ Π xⱼ^(αⱼ − 1), natural parameters α − 1.

    Parameters
    ----------
    concentration : array_like, shape (..., k)
        α > 0, k ≥ 2; leading axes are the batch.

    Notes
    -----
    Densities are with respect to the first k − 1 entries. The characteristic function is that of the vector log x,
    Π Γ(αⱼ + iwⱼ)/Γ(αⱼ) · Γ(Σα)/Γ(Σα + iΣw).

    Examples
    --------
    >>> (Dirichlet([2.0, 1.0, 1.0]) * Dirichlet([1.0, 3.0, 1.0])).mean().round(3).tolist()
    [0.333, 0.5, 0.167]
    """

    coefficient_log_x: Array
    coordinates: ClassVar[tuple[str, ...]] = ("log",)
    _fields_axes: ClassVar[dict[str, int]] = {"coefficient_log_x": 1}
    _statistic_names: ClassVar[tuple[str, ...]] = ("mean_log",)
    _shown: ClassVar[dict[str, str]] = {"concentration": "concentration"}

    @own_words
    def __init__(self, concentration: Array):
        with Door(concentration) as door:
            (concentration,) = read_parameters(door, (1,), concentration=concentration)
            self._check_own_axes([concentration])
            check_members(concentration, (concentration > 0).all(-1), "concentration", "values above 0")
            (self.coefficient_log_x,) = as_fields(concentration - 1)

    @classmethod
    def _check_own_axes(cls, natural: list[Any]) -> None:
        if natural[0].shape[-1] < 2:
            raise ShapeError(f"the last axis has length {natural[0].shape[-1]}; expected 2 or more entries of x.")

    @classmethod
    def standard(cls, k: int, shape: int | tuple[int, ...] = ()) -> Self:
        """The uniform distribution on probability vectors of length k, repeated to a batch shape."""
        return cls(np.ones((*np.empty(shape).shape, k)))

    @classmethod
    def flat(cls, k: int, shape: int | tuple[int, ...] = ()) -> Self:
        """No information: natural parameters zero, the identity of the product. It is `standard`, and proper."""
        return cls.standard(k, shape)

    @classmethod
    def _event_axes(cls) -> int:
        return 1

    @classmethod
    def _check_sample(cls, x: Array) -> None:
        if x.ndim:
            check_members(x, ((x > 0) & (x < 1)).all(-1), "x", "probability vectors with every entry above 0")

    @classmethod
    def _check_moments(cls, *moments: Array) -> None:
        if all_concrete(moments):
            shares = np.exp(np.asarray(moments[0])).sum(-1)
            check_members(shares, shares < 1, "the sum of exp E[log x]", "values below 1 (Jensen's inequality)")

    @classmethod
    def _natural_from_moments(cls, *moments: Array) -> tuple[Array, ...]:
        return (parameters_from_expected_logs(moments[0]) - 1,)

    @property
    def concentration(self) -> Any:
        """The parameters α; all above 0 if proper."""
        return self.coefficient_log_x + 1

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of one draw, `(k,)`."""
        return (self.coefficient_log_x.shape[-1],)

    def _exponents(self) -> tuple[Any, ...]:
        return (self.concentration,)

    def _proper(self) -> Any:
        return (self.concentration > 0).all(-1)

    @classmethod
    def _statistics(cls, x: Array) -> tuple[Array, ...]:
        return (jnp.log(x),)

    def _log_unnormalised(self, x: Array) -> Array:
        inside = ((x >= 0).all(-1)) & (jnp.abs(x.sum(-1) - 1) <= jnp.sqrt(jnp.finfo(x.dtype).eps))
        safe = jnp.where(inside[..., None], x, 1)
        return jnp.where(inside, jax.scipy.special.xlogy(self.coefficient_log_x, safe).sum(-1), -jnp.inf)

    def _log_density(self, x: Array) -> Array:
        mean = self._mean()
        unnormalised = self._log_unnormalised(x)
        inside = (x > 0).all(-1) & jnp.isfinite(unnormalised)
        safe = jnp.where(inside[..., None], x, mean)
        value = dirichlet_log_density(jnp.log(safe), safe - mean, self.concentration)
        return jnp.where(inside, value, unnormalised - self._log_normaliser())

    def _mean(self) -> Array:
        return self.concentration / self.concentration.sum(-1, keepdims=True)

    def _variance(self) -> Array:
        mean = self._mean()
        return mean * (1 - mean) / (self.concentration.sum(-1, keepdims=True) + 1)

    def _covariance(self) -> Array:
        return covariance_of_shares(self._mean()) / (self.concentration.sum(-1)[..., None, None] + 1)

    def _moments_in(self, coordinate: str) -> tuple[Array, Array]:
        del coordinate
        alpha = self.concentration
        return expected_logs(alpha), trigamma(alpha) - trigamma(alpha.sum(-1, keepdims=True))

    def _expected_statistics(self) -> tuple[Array, ...]:
        return (expected_logs(self.concentration),)

    def _log_normaliser(self) -> Array:
        return log_beta(self.concentration)

    def _entropy(self) -> Array:
        return dirichlet_entropy(self.concentration)

    def _kl(self, other: Self) -> Array:
        return dirichlet_divergence(self.concentration, other.concentration)

    def _characteristic_function(self, w: Array, coordinate: str) -> Array:
        del coordinate
        alpha = self.concentration[(..., *(None,) * (w.ndim - 1), slice(None))]
        total = alpha.sum(-1)
        return jnp.exp(log_gamma_ratio(alpha, w).sum(-1) - log_gamma_ratio(total, w.sum(-1)))

    def _sample(self, n: int, key: Array) -> Array:
        alpha = self.concentration
        logs = jax.random.loggamma(key, alpha, (n, *alpha.shape), alpha.dtype)
        return jnp.maximum(jax.nn.softmax(logs, axis=-1), jnp.finfo(alpha.dtype).tiny)
