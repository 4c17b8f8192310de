"""Mixtures of members of one family."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.door import Door
from meanmap.core.errors import KindError, ShapeError
from meanmap.core.language import a_type
from meanmap.core.synonyms import own_words
from meanmap.core.types import Array
from meanmap.families.base import Distribution
from meanmap.families.family import Family
from meanmap.families.gaussian_parts import Parts
from meanmap.families.reading import as_fields, check_members, read_parameters, run

__all__ = ["Mixture"]


class Mixture(Distribution):
    """Σₖ πₖ pₖ, the components along the last batch axis of one distribution.

    Parameters
    ----------
    components : Distribution of shape (..., K)
        K components for each member of the batch.
    weights : array_like, shape (K,) or (..., K)
        π ≥ 0, summing to one.

    Notes
    -----
    Characteristic functions, means and densities mix linearly. `project` is the KL projection onto the family.

    Examples
    --------
    >>> from meanmap.families import Normal
    >>> two = Mixture(Normal([-1.0, 1.0], 1.0), [0.5, 0.5])
    >>> two, two.project()
    (Mixture(mean=0, sd=1.414), Normal(mean=0, sd=1.414))
    """

    components: Distribution
    weights: Array
    _shown: ClassVar[dict[str, str]] = {"mean": "mean", "sd": "sd"}

    @own_words
    def __init__(self, components: Distribution, weights: Array):
        if not isinstance(components, Distribution):
            raise KindError(f"components is {a_type(components)}; expected a batch such as Normal([0, 1], 1).")
        if not components.shape:
            raise ShapeError("components is one distribution; expected a batch with components along its last axis.")
        with Door(components, weights) as door:
            (weights,) = read_parameters(door, (1,), weights=weights)
            if weights.shape[-1] != components.shape[-1]:
                raise ShapeError(f"got {components.shape[-1]} components but {weights.shape[-1]} weights.")
            # Single precision leaves sums about 1e-6 away from one.
            whole = abs(weights.sum(-1) - 1) < 1e-5
            check_members(weights, (weights >= 0).all(-1) & whole, "weights", "values of at least 0 that sum to 1")
            batch = np.broadcast_shapes(weights.shape, components.shape)
            library = jnp if door.follows else np
            (self.weights,) = as_fields(library.broadcast_to(weights / weights.sum(-1)[..., None], batch))
        self.components = components.broadcast_to(batch)

    @property
    def coordinates(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The coordinates of the components."""
        return self.components.coordinates

    @property
    def _own_axes(self) -> tuple[int, ...]:
        return (*(own + 1 for own in self.components._own_axes), 1)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The event shape of the components."""
        return self.components.event_shape

    def _proper(self) -> Any:
        return self.components._proper().all(-1)

    def _mix(self, values: Array, trailing: int) -> Array:
        """Average over the components' axis, which is followed by `trailing` axes."""
        weights = self.weights.reshape(self.weights.shape + (1,) * trailing)
        return (weights * values).sum(-1 - trailing)

    def gaussian_parts(self, coordinate: str) -> Parts | None:
        """The parts of the components, their weights multiplied by those of the mixture."""
        inner = self.components
        parts = inner.reshape(-1).gaussian_parts(coordinate)
        if parts is None:
            return None
        weights, means, covariances = (jnp.reshape(part, (*inner.shape, *part.shape[1:])) for part in parts)
        joint = jnp.asarray(self.weights)[..., None] * weights
        return tuple(  # pyright: ignore[reportReturnType]
            jnp.reshape(part, (part.shape[0], part.shape[1] * part.shape[2], *part.shape[3:]))
            for part in (joint, means, covariances)
        )

    def _mean(self) -> Array:
        mean = self.components._mean()
        return self._mix(mean, mean.ndim - self.weights.ndim)

    def _variance(self) -> Array:
        return self._total_variance(self.components._mean(), self.components._variance())

    def _covariance(self) -> Array:
        mean, inner = self.components._mean(), self.components._covariance()
        if mean.ndim == self.weights.ndim:
            return self._total_variance(mean, inner)
        apart = mean - self._mix(mean, 1)[..., None, :]
        return self._mix(inner + apart[..., :, None] * apart[..., None, :], 2)

    def _total_variance(self, mean: Array, variance: Array) -> Array:
        trailing = mean.ndim - self.weights.ndim
        centre = jnp.expand_dims(self._mix(mean, trailing), -1 - trailing)
        return self._mix(variance + (mean - centre) ** 2, trailing)

    def _moments_in(self, coordinate: str) -> tuple[Array, Array]:
        mean, variance = self.components._moments_in(coordinate)
        return self._mix(mean, mean.ndim - self.weights.ndim), self._total_variance(mean, variance)

    def _log_density(self, x: Array) -> Array:
        densities = self.components._log_density(jnp.expand_dims(x, -1 - len(self.event_shape)))
        return jax.nn.logsumexp(densities, axis=-1, b=self.weights)

    def _cdf(self, x: Array) -> Array:
        return self._mix(self.components._cdf(x[..., None]), 0)

    def _frequency_axes(self, w: Array) -> Any:
        return self.components._frequency_axes(w)

    def _frequency_settings(self, w: Array, coordinate: str) -> dict[str, Any]:
        return self.components._frequency_settings(w, coordinate)

    def _characteristic_function(self, w: Array, coordinate: str, **settings: object) -> Array:
        values = self.components._characteristic_function(w, coordinate, **settings)
        return self._mix(values, values.ndim - self.weights.ndim)

    def _sample(self, n: int, key: Array) -> Array:
        key_label, key_draw = jax.random.split(key)
        labels = jax.random.categorical(key_label, jnp.log(self.weights), axis=-1, shape=(n, *self.shape))
        draws = self.components._sample(n, key_draw)
        event = len(self.event_shape)
        index = labels.reshape(labels.shape + (1,) * (event + 1))
        return jnp.take_along_axis(draws, index, axis=labels.ndim).squeeze(labels.ndim)

    def project(self) -> Family:
        """The member of the components' family nearest in KL(mixture ‖ member): expected statistics are averaged."""
        if not isinstance(self.components, Family):
            raise KindError(f"{type(self.components).__name__} is not an exponential family: nothing to project onto.")
        kind = type(self.components)
        return kind._of(run(Mixture._projection, self))

    def _projection(self) -> tuple[Array, ...]:
        family = self.components
        assert isinstance(family, Family)
        averages = [
            self._mix(statistic, statistic.ndim - self.weights.ndim) for statistic in family._expected_statistics()
        ]
        return type(family)._natural_from_moments(*averages)
