"""Numbers for messages about normal vectors: a vector and a symmetric matrix, its upper triangle row by row."""

from collections.abc import Callable
from typing import Any

import numpy as np

from meanmap.core.types import Array
from meanmap.families import MultivariateNormal

__all__ = ["derivatives", "from_derivatives", "from_tilted", "in_axes", "moments", "principal_axes", "tilted", "width"]

Function = Callable[[np.ndarray], np.ndarray]

# No belief is more than exp of this many times as precise as the incoming message: predictions far from all that was
# learned would overflow.
_MOST = 200.0


def width(d: int) -> int:
    """The number of targets for vectors of length d."""
    return d + d * (d + 1) // 2


def moments(law: MultivariateNormal) -> tuple[np.ndarray, np.ndarray]:
    """Means (n, d) and covariances (n, d, d), by NumPy."""
    covariance = np.linalg.inv(law.precision)
    return _times(covariance, law.precision_mean), covariance


def derivatives(incoming: MultivariateNormal, outgoing: MultivariateNormal) -> np.ndarray:
    """α and N of `Derivatives`, (n, d + d (d + 1)/2); NaN where the tilted covariance is not positive definite.

    With the precision V⁻¹ = RRᵀ of the incoming message and T of the outgoing one, the tilted one is
    R (I + R⁻¹TR⁻ᵀ) Rᵀ, and N = R log(I + R⁻¹TR⁻ᵀ) Rᵀ.
    """
    (mean, _), precision = moments(incoming), incoming.precision + outgoing.precision
    known = np.isfinite(precision).all((1, 2), keepdims=True)
    proper = np.linalg.eigvalsh(np.where(known, precision, 0.0))[:, :1] > 0
    moved = outgoing.precision_mean - _times(outgoing.precision, mean)
    safe = np.where(proper[..., None], precision, incoming.precision)
    alpha = _times(incoming.precision, np.linalg.solve(safe, moved[..., None])[..., 0])
    numbers = _flat(alpha, _in_units_of(incoming, outgoing.precision, np.log1p))
    return np.where(proper, numbers, np.nan)


def from_derivatives(incoming: MultivariateNormal, numbers: np.ndarray) -> MultivariateNormal:
    """T = R (exp(R⁻¹NR⁻ᵀ) − I) Rᵀ, and T m + (I + T V) α."""
    (mean, covariance), (alpha, matrix) = moments(incoming), _whole(numbers)
    precision = _in_units_of(incoming, matrix, lambda values: np.expm1(np.minimum(values, _MOST)))
    return MultivariateNormal.from_natural(alpha + _times(precision, mean + _times(covariance, alpha)), precision)


def tilted(incoming: MultivariateNormal, outgoing: MultivariateNormal) -> np.ndarray:
    """The mean and the logarithm of the covariance matrix of the tilted distribution; NaN where it is none."""
    precision = incoming.precision + outgoing.precision
    values, axes = np.linalg.eigh(np.where(np.isfinite(precision).all((1, 2), keepdims=True), precision, 0.0))
    mean = _times(_matrix(axes, 1 / values), incoming.precision_mean + outgoing.precision_mean)
    return np.where(values[:, :1] > 0, _flat(mean, _matrix(axes, -np.log(values))), np.nan)


def from_tilted(incoming: MultivariateNormal, numbers: np.ndarray) -> MultivariateNormal:
    """The tilted distribution over the incoming one."""
    mean, matrix = _whole(numbers)
    values, axes = np.linalg.eigh(matrix)
    precision = _matrix(axes, np.exp(-values))
    return MultivariateNormal.from_natural(
        _times(precision, mean) - incoming.precision_mean, precision - incoming.precision
    )


def principal_axes(law: MultivariateNormal, spread: bool) -> np.ndarray:
    """B (d, d): x = By turns the mean covariance, with the `spread` of the means or without it, into I.

    They are the principal axes in units of standard deviations, so that B follows a change of units exactly.
    """
    mean, covariance = moments(law)
    total = covariance.mean(0) + (np.cov(mean.T, bias=True).reshape(covariance.shape[1:]) if spread else 0.0)
    scale = np.sqrt(total.diagonal())
    values, axes = np.linalg.eigh(total / np.multiply.outer(scale, scale))
    return scale[:, None] * axes * np.sqrt(values)


def in_axes(law: MultivariateNormal, axes: np.ndarray) -> MultivariateNormal:
    """The distribution of y, where x = By."""
    precision = axes.T @ law.precision @ axes
    return MultivariateNormal.from_natural(law.precision_mean @ axes, (precision + precision.swapaxes(1, 2)) / 2)


def _in_units_of(incoming: MultivariateNormal, matrix: Array, function: Function) -> np.ndarray:
    """R f(R⁻¹MR⁻ᵀ) Rᵀ, with the function f of the eigenvalues and the precision RRᵀ of the incoming message."""
    root = np.linalg.cholesky(incoming.precision)
    half = np.linalg.solve(root, matrix)
    relative = np.linalg.solve(root, half.swapaxes(1, 2))
    finite = np.isfinite(relative).all((1, 2), keepdims=True)
    values, axes = np.linalg.eigh(np.where(finite, relative, 0.0))
    return np.where(finite, _matrix(root @ axes, function(values)), np.nan)


def _matrix(axes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """U diag(values) Uᵀ, symmetric to the last digit."""
    found = (axes * values[:, None]) @ axes.swapaxes(1, 2)
    return (found + found.swapaxes(1, 2)) / 2


def _flat(vector: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    rows, columns = np.triu_indices(vector.shape[1])
    return np.concatenate([vector, matrix[:, rows, columns]], axis=1)


def _whole(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    d = int(np.sqrt(2 * numbers.shape[1] + 2.25) - 1.5)
    rows, columns = np.triu_indices(d)
    matrix = np.empty((len(numbers), d, d))
    matrix[:, rows, columns] = matrix[:, columns, rows] = numbers[:, d:]
    return numbers[:, :d], matrix


def _times(matrix: Any, vector: Any) -> np.ndarray:
    return (matrix @ vector[..., None])[..., 0]
