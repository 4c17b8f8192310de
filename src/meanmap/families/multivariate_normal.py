"""The normal distribution of vectors."""

from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from meanmap.core.door import Door, is_concrete
from meanmap.core.errors import ParameterError, ShapeError
from meanmap.core.synonyms import own_words
from meanmap.core.types import Array
from meanmap.families.family import Family
from meanmap.families.gaussian_parts import Parts, one_normal
from meanmap.families.reading import as_fields, check_members, members, read_parameters, run
from meanmap.families.real_gamma import HALF_LOG_TWO_PI
from meanmap.families.weights import normalised_weights

__all__ = ["MultivariateNormal", "unitless"]


class MultivariateNormal(Family):
    """N(m, V) on vectors of length d, with natural parameters (V⁻¹m, V⁻¹) to the statistics (x, −xxᵀ/2).

    Parameters
    ----------
    mean : array_like, shape (..., d)
    covariance : array_like, shape (..., d, d)
        Symmetric positive definite; leading axes are the batch. Cost O(d³) per member.

    Notes
    -----
    A precision that is not positive definite is an improper message.

    Examples
    --------
    >>> belief = MultivariateNormal.standard(2) * MultivariateNormal([2.0, 0.0], [[1.0, 0.0], [0.0, 1.0]])
    >>> belief.mean().round(12).tolist(), belief.cov().round(12).tolist()
    ([1.0, 0.0], [[0.5, 0.0], [0.0, 0.5]])
    """

    precision_mean: Array
    precision: Array
    _fields_axes: ClassVar[dict[str, int]] = {"precision_mean": 1, "precision": 2}
    smooth: ClassVar[bool] = True
    _statistic_names: ClassVar[tuple[str, ...]] = ("mean", "minus_half_mean_outer")

    @own_words
    def __init__(self, mean: Array, covariance: Array):
        with Door(mean, covariance) as door:
            mean, covariance = read_parameters(door, (1, 2), mean=mean, covariance=covariance)
            self._check_own_axes([mean, covariance])
            check_symmetric(covariance, "covariance")
            precision_mean, precision = run(_natural, mean, covariance)
            _check_definite(precision, covariance)
            self.precision_mean, self.precision = as_fields(precision_mean, precision)

    @classmethod
    def _check_own_axes(cls, natural: list[Any]) -> None:
        vector, matrix = natural
        if matrix.shape[-1] != matrix.shape[-2] or vector.shape[-1] != matrix.shape[-1] or not vector.shape[-1]:
            raise ShapeError(
                f"got a vector of length {vector.shape[-1]} and a matrix of shape {matrix.shape[-2:]}; "
                "expected (..., d) and (..., d, d)."
            )

    @classmethod
    def from_natural(cls, *natural: Array) -> Self:
        """The member with precision-mean and precision, proper or not; the precision must be symmetric."""
        family = super().from_natural(*natural)
        check_symmetric(family.precision, "precision")
        return family

    @classmethod
    def standard(cls, d: int, shape: int | tuple[int, ...] = ()) -> Self:
        """N(0, I) in d dimensions, repeated to a batch shape."""
        return cls._scaled_identity(d, shape, 1.0)

    @classmethod
    def flat(cls, d: int, shape: int | tuple[int, ...] = ()) -> Self:
        """No information: both natural parameters zero, the identity of the product; improper."""
        return cls._scaled_identity(d, shape, 0.0)

    @classmethod
    def _scaled_identity(cls, d: int, shape: int | tuple[int, ...], scale: float) -> Self:
        batch = np.empty(shape).shape
        return cls.from_natural(np.zeros((*batch, d)), np.broadcast_to(scale * np.eye(d), (*batch, d, d)))

    @classmethod
    def _event_axes(cls) -> int:
        return 1

    @classmethod
    def _check_moments(cls, *moments: Array) -> None:
        check_symmetric(moments[1], "E[-xxᵀ/2]")
        if is_concrete(moments[0]) and is_concrete(moments[1]):
            mean, matrix = (np.asarray(moment, dtype=float) for moment in moments)
            lowest = np.linalg.eigvalsh(unitless(-2 * matrix - mean[..., :, None] * mean[..., None, :], np))[..., 0]
            check_members(lowest, lowest > 0, "the least eigenvalue of the covariance", "values above 0")

    @classmethod
    def _natural_from_moments(cls, *moments: Array) -> tuple[Array, ...]:
        mean, matrix = moments
        return _natural(mean, -2 * matrix - mean[..., :, None] * mean[..., None, :])

    @classmethod
    def _natural_from_sample(cls, x: Array, log_weights: Array) -> tuple[Array, ...]:
        weights = normalised_weights(log_weights)[..., None]
        mean = (weights * x).sum(0)
        centred = x - mean
        return _natural(mean, jnp.einsum("n...i,n...j->...ij", weights * centred, centred, precision="highest"))

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of one draw, `(d,)`."""
        return (self.precision_mean.shape[-1],)

    def _proper(self) -> Any:
        if isinstance(self.precision, jax.Array):
            return jnp.isfinite(jnp.linalg.cholesky(self.precision)).all((-2, -1))
        return np.linalg.eigvalsh(unitless(np.asarray(self.precision), np))[..., 0] > 0

    def _factor(self) -> Array:
        return jnp.linalg.cholesky(self.precision)

    @classmethod
    def _statistics(cls, x: Array) -> tuple[Array, ...]:
        return x, -x[..., :, None] * x[..., None, :] / 2

    def _log_unnormalised(self, x: Array) -> Array:
        return ((self.precision_mean - _times(self.precision, x) / 2) * x).sum(-1)

    @classmethod
    def _at_mode(cls, c: Array, curvature: Array) -> Self:
        return cls.from_natural(curvature @ c, curvature)

    def _improper(self) -> Any:
        values = jnp.linalg.eigvalsh(unitless(self.precision, jnp))
        return values[..., 0] < -1e-10 * jnp.abs(values).max(-1)  # rounding may make a zero eigenvalue negative

    def gaussian_parts(self, coordinate: str) -> Parts:
        """The distribution itself."""
        del coordinate
        return one_normal(jnp.asarray(self.mean()), jnp.asarray(self.cov()))

    def _mean(self) -> Array:
        factor = self._factor()
        return _solve(factor, _solve(factor, self.precision_mean), transpose=True)

    def _covariance(self) -> Array:
        d = self.precision.shape[-1]
        identity = jnp.broadcast_to(jnp.eye(d, dtype=self.precision.dtype), self.precision.shape)
        root = solve_triangular(self._factor(), identity, lower=True)
        return jnp.matmul(jnp.swapaxes(root, -1, -2), root, precision="highest")

    def _variance(self) -> Array:
        return jnp.diagonal(self._covariance(), axis1=-2, axis2=-1)

    def _expected_statistics(self) -> tuple[Array, ...]:
        mean = self._mean()
        return mean, -(self._covariance() + mean[..., :, None] * mean[..., None, :]) / 2

    def _log_normaliser(self) -> Array:
        factor, d = self._factor(), self.precision.shape[-1]
        return (_solve(factor, self.precision_mean) ** 2).sum(-1) / 2 - _log_root(factor) + d * HALF_LOG_TWO_PI

    def _log_density(self, x: Array) -> Array:
        centred = x - self._mean()
        square = (_times(self.precision, centred) * centred).sum(-1)
        return _log_root(self._factor()) - square / 2 - self.precision.shape[-1] * HALF_LOG_TWO_PI

    def _entropy(self) -> Array:
        return self.precision.shape[-1] * (0.5 + HALF_LOG_TWO_PI) - _log_root(self._factor())

    def _kl(self, other: Self) -> Array:
        own, others = self._factor(), other._factor()
        whitened = solve_triangular(
            own, jnp.broadcast_to(others, jnp.broadcast_shapes(own.shape, others.shape)), lower=True
        )
        trace = (whitened**2).sum((-2, -1)) - self.precision.shape[-1]
        # Lᵀ times the difference of the means, L the factor of the other precision.
        shift = _times(jnp.swapaxes(others, -1, -2), self._mean()) - _solve(others, other.precision_mean)
        square = (shift * shift).sum(-1)
        return jnp.maximum(trace / 2 + square / 2 + _log_root(own) - _log_root(others), 0)

    def _characteristic_function(self, w: Array, coordinate: str) -> Array:
        del coordinate
        rows = w.reshape(-1, w.shape[-1]).T
        factor = self._factor()
        whitened = solve_triangular(factor, jnp.broadcast_to(rows, (*self.shape, *rows.shape)), lower=True)
        phase = jnp.matmul(self._mean()[..., None, :], rows, precision="highest")[..., 0, :]
        values = jnp.exp(jax.lax.complex(-(whitened**2).sum(-2) / 2, phase))
        return values.reshape(*self.shape, *w.shape[:-1])

    def _sample(self, n: int, key: Array) -> Array:
        noise = jax.random.normal(key, (n, *self.precision_mean.shape), self.precision.dtype)
        return self._mean() + _solve(self._factor(), noise, transpose=True)


def check_symmetric(matrix: Array, name: str) -> None:
    """Refuse concrete matrices that differ from their transpose by more than rounding."""
    if not is_concrete(matrix):
        return
    gap = np.abs(np.asarray(matrix) - np.swapaxes(np.asarray(matrix), -1, -2)).max((-2, -1))
    scale = np.abs(np.asarray(matrix)).max((-2, -1))
    # Products of d-dimensional matrices in the array's own precision are symmetric to about d roundings.
    bad = gap > 1e3 * np.finfo(matrix.dtype).eps * scale
    if bad.any():
        raise ParameterError(
            f"{name} is not symmetric{members(bad)}: entries differ from the transpose by {gap.max():.3g}. "
            f"Pass ({name} + {name}.T) / 2 if that is rounding."
        )


def _check_definite(precision: Array, covariance: Array) -> None:
    if not is_concrete(precision):
        return
    bad = ~np.isfinite(np.asarray(precision)).all((-2, -1))
    if bad.any():
        lowest = np.linalg.eigvalsh(np.asarray(covariance, dtype=float))[..., 0].min()
        raise ParameterError(
            f"covariance is not positive definite{members(bad)}: its least eigenvalue is {lowest:.3g}. "
            "Leave out coordinates that are linear functions of others."
        )


def unitless(matrix: Array, xp: Any) -> Array:
    """The matrix scaled to a unit diagonal, so that judging its rounding does not depend on the coordinates' units."""
    diagonal = xp.diagonal(matrix, axis1=-2, axis2=-1)
    scale = xp.sqrt(xp.where(diagonal > 0, diagonal, 1.0))
    return matrix / scale[..., :, None] / scale[..., None, :]


def _natural(mean: Array, covariance: Array) -> tuple[Array, Array]:
    factor = jnp.linalg.cholesky(covariance)
    identity = jnp.broadcast_to(jnp.eye(mean.shape[-1], dtype=mean.dtype), covariance.shape)
    root = solve_triangular(factor, identity, lower=True)
    return _solve(factor, _solve(factor, mean), transpose=True), jnp.matmul(
        jnp.swapaxes(root, -1, -2), root, precision="highest"
    )


def _solve(factor: Array, vector: Array, transpose: bool = False) -> Array:
    """L⁻¹v or L⁻ᵀv, over leading axes."""
    batch = jnp.broadcast_shapes(factor.shape[:-2], vector.shape[:-1])
    factor = jnp.broadcast_to(factor, batch + factor.shape[-2:])
    vector = jnp.broadcast_to(vector, batch + vector.shape[-1:])
    return solve_triangular(factor, vector[..., None], lower=True, trans=1 if transpose else 0)[..., 0]


def _times(matrix: Array, vector: Array) -> Array:
    return jnp.matmul(matrix, vector[..., None], precision="highest")[..., 0]


def _log_root(factor: Array) -> Array:
    """Half the log determinant."""
    return jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)).sum(-1)
