"""The categorical distribution on labels 0, ..., k − 1."""

from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.door import Door, is_concrete
from meanmap.core.errors import EmptyError, ParameterError, ShapeError
from meanmap.core.synonyms import own_words
from meanmap.core.types import Array
from meanmap.families.family import Family
from meanmap.families.gaussian_parts import Parts, points_with_weights
from meanmap.families.reading import as_fields, check_members, read_parameters
from meanmap.families.simplex import covariance_of_shares
from meanmap.families.weights import normalised_weights

__all__ = ["Categorical"]


class Categorical(Family):
    """A label j out of k with probability pⱼ; natural parameters log pⱼ (up to a constant) to the indicator vector.

    Parameters
    ----------
    probabilities : array_like, shape (..., k)
        Positive and summing to one; leading axes are the batch. For certainty use `PointMass(label)`.

    Notes
    -----
    Draws and arguments of densities are labels. Means, statistics and the characteristic function are those of the
    indicator vector of length k, so `mean` is the vector of probabilities.

    Examples
    --------
    >>> (Categorical([0.5, 0.25, 0.25]) * Categorical([0.2, 0.4, 0.4])).mean().round(4).tolist()
    [0.3333, 0.3333, 0.3333]
    """

    logits: Array
    _fields_axes: ClassVar[dict[str, int]] = {"logits": 1}
    _statistic_names: ClassVar[tuple[str, ...]] = ("probabilities",)
    _shown: ClassVar[dict[str, str]] = {"probabilities": "mean"}

    @own_words
    def __init__(self, probabilities: Array):
        with Door(probabilities) as door:
            (p,) = read_parameters(door, (1,), probabilities=probabilities)
            self._check_own_axes([p])
            self._check_moments(p)
            (self.logits,) = as_fields((jnp if door.follows else np).log(p))

    @classmethod
    def _check_own_axes(cls, natural: list[Any]) -> None:
        if natural[0].shape[-1] < 2:
            raise ShapeError(f"the last axis has length {natural[0].shape[-1]}; expected 2 or more labels.")

    @classmethod
    def _check_moments(cls, *moments: Array) -> None:
        (p,) = moments
        # Single precision leaves sums of probabilities about 1e-6 away from one.
        whole = abs(p.sum(-1) - 1) < 1e-5
        check_members(
            p,
            (p > 0).all(-1) & whole,
            "probabilities",
            "values above 0 that sum to 1; for certainty use PointMass(label)",
        )

    @classmethod
    def standard(cls, k: int, shape: int | tuple[int, ...] = ()) -> Self:
        """All k labels equally likely, repeated to a batch shape."""
        return cls.from_natural(np.zeros((*np.empty(shape).shape, k)))

    @classmethod
    def flat(cls, k: int, shape: int | tuple[int, ...] = ()) -> Self:
        """No information: logits zero, the identity of the product. It is `standard`, and proper."""
        return cls.standard(k, shape)

    @classmethod
    def from_weighted_samples(cls, x: Array, log_weights: Array, k: int | None = None) -> Self:
        """The weighted frequencies of the labels in x; each of the k labels must occur.

        Parameters
        ----------
        x, log_weights : array_like
            As for every family: n labels along the first axis, and the logarithms of their weights.
        k : int, optional
            The number of labels; by default the largest observed label plus one.
        """
        labels = np.asarray(x) if is_concrete(x) else None
        if labels is not None and not labels.size:
            raise EmptyError("x has no draws; expected at least two.")
        if labels is not None:
            if not ((labels >= 0) & (labels == np.round(labels))).all():
                raise ParameterError("x holds values that are not labels; expected whole numbers from 0 on.")
            k = int(labels.max()) + 1 if k is None else k
            if labels.max() >= k:
                raise ParameterError(f"x holds label {labels.max():g}; expected labels below k={k}.")
        if k is None:
            raise ParameterError("k is None; expected the number of labels, which cannot be read from a traced x.")
        return cls._project(cls._natural_from_labels, x, log_weights, k=k)

    @classmethod
    def _natural_from_labels(cls, x: Array, log_weights: Array, k: int) -> tuple[Array, ...]:
        weights = normalised_weights(log_weights)[..., None]
        return (jnp.log((weights * jax.nn.one_hot(x.astype(int), k, dtype=x.dtype)).sum(0)),)

    @classmethod
    def _natural_from_moments(cls, *moments: Array) -> tuple[Array, ...]:
        return (jnp.log(moments[0]),)

    @property
    def probabilities(self) -> Array:
        """The mean of the indicator vector, shape `shape + (k,)`."""
        return self.mean()

    def _proper(self) -> Any:
        return (abs(self.logits) < np.inf).all(-1)

    @classmethod
    def _statistics(cls, x: Array) -> tuple[Array, ...]:
        raise ParameterError("the statistics of a label need the number of labels: use jax.nn.one_hot(x, k).")

    def _log_unnormalised(self, x: Array) -> Array:
        k = self.logits.shape[-1]
        label = jnp.clip(x, 0, k - 1).astype(int)
        batch = jnp.broadcast_shapes(label.shape, self.shape)
        logits = jnp.broadcast_to(self.logits, (*batch, k))
        chosen = jnp.take_along_axis(logits, jnp.broadcast_to(label, batch)[..., None], axis=-1)[..., 0]
        return jnp.where(label == x, chosen, -jnp.inf)

    @property
    def dimension(self) -> int:
        """The number of labels, each a unit vector."""
        return self.logits.shape[-1]

    def gaussian_parts(self, coordinate: str) -> Parts:
        """A unit vector for each label."""
        del coordinate
        p = jnp.asarray(self.mean())
        return points_with_weights(p, jnp.eye(p.shape[-1], dtype=p.dtype))

    def _mean(self) -> Array:
        return jax.nn.softmax(self.logits, axis=-1)

    def _variance(self) -> Array:
        p = self._mean()
        return p * (1 - p)

    def _covariance(self) -> Array:
        return covariance_of_shares(self._mean())

    def _expected_statistics(self) -> tuple[Array, ...]:
        return (self._mean(),)

    def _log_normaliser(self) -> Array:
        return jax.nn.logsumexp(self.logits, axis=-1)

    def _entropy(self) -> Array:
        return -(self._mean() * jax.nn.log_softmax(self.logits, axis=-1)).sum(-1)

    def _kl(self, other: Self) -> Array:
        gap = jax.nn.log_softmax(self.logits, axis=-1) - jax.nn.log_softmax(other.logits, axis=-1)
        return jnp.maximum((self._mean() * gap).sum(-1), 0)

    def _frequency_axes(self, w: Array) -> Any:
        k = self.logits.shape[-1]
        if w.ndim == 0 or w.shape[-1] != k:
            raise ShapeError(f"w has shape {w.shape}; expected (..., {k}): one frequency per label.")
        return w

    def _characteristic_function(self, w: Array, coordinate: str) -> Array:
        del coordinate
        p = self._mean()[(..., *(None,) * (w.ndim - 1), slice(None))]
        return jax.lax.complex((p * jnp.cos(w)).sum(-1), (p * jnp.sin(w)).sum(-1))

    def _sample(self, n: int, key: Array) -> Array:
        return jax.random.categorical(key, self.logits, axis=-1, shape=(n, *self.shape))
