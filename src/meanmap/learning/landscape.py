"""The objective over vectors of hyperparameters: values and slopes for each draw of landmarks, and where to look."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from meanmap.core.compiling import compiled_quickly
from meanmap.core.points import bucket, pad
from meanmap.core.types import Array, Numbers, Points
from meanmap.kernels.geometry import pair_distances
from meanmap.learning.held_out import held_out
from meanmap.learning.hyperparameters import Hyperparameters
from meanmap.learning.pseudolikelihood import objective

__all__ = ["Landscape", "landscape_of"]

# The range of lengthscales: from where every point sees one landmark to where all features are linear.
SHORTEST = 0.1  # of the 2% quantile of distances
LONGEST = 10.0  # times the diameter
NEAREST = 0.02


@dataclass(frozen=True)
class Landscape:
    """An objective over vectors of hyperparameters.

    Attributes
    ----------
    values : function
        From a vector to one value for each draw of landmarks.
    slopes : function
        From a vector to values and gradients, (draws,) and (draws, p).
    low, high : float
        Bounds of lengthscales.
    calls : list of one int
        Counts evaluations.
    """

    values: Callable[[np.ndarray], np.ndarray]
    slopes: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    low: float
    high: float
    calls: list[int]


def landscape_of(
    score: str, what: Hyperparameters, points: np.ndarray, z: np.ndarray, noise: float, width: Numbers | None
) -> Landscape:
    """The objective of a sample, compiled once for a size of it; `score` is "pseudolikelihood" or "held-out"."""
    distances = pair_distances(points[:: -(-len(points) // 500)])
    distances = distances[distances > 0]
    shortest = SHORTEST * float(np.quantile(distances, NEAREST))
    size = bucket(len(points))
    data = pad(points, size), np.arange(size) < len(points), z, np.float64(noise), width
    calls = [0]

    def slopes(vector: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        calls[0] += 1
        found, slope = _slopes(score, what, vector, *data)
        return np.asarray(found), np.asarray(slope)

    def values(vector: np.ndarray) -> np.ndarray:
        if what.count > 1:  # these are climbed by slopes: one program to compile instead of two
            found = slopes(vector)[0]
        else:
            calls[0] += 1
            found = np.asarray(_values(score, what, vector, *data))
        return np.where(np.isnan(found), -np.inf, found)

    return Landscape(values, slopes, shortest, LONGEST * float(distances.max()), calls)


def _value(
    score: str, what: Hyperparameters, vector: Array, x: Points, used: Array, z: Array, noise: Array, width: Array
) -> jax.Array:
    kernel = what.kernel(vector)
    if score == "held-out":
        return held_out(kernel, x, used)
    return objective(kernel, x, z, noise, what.base_width(vector) if what.width else width, used)


@compiled_quickly("score", "what")
def _values(
    score: str, what: Hyperparameters, vector: Array, x: Points, used: Array, z: Array, noise: Array, width: Array
) -> Any:
    """The objective for each draw of landmarks, (draws,)."""
    return jax.lax.map(lambda draw: _value(score, what, vector, x, used, draw, noise, width), z)


@compiled_quickly("score", "what")
def _slopes(
    score: str, what: Hyperparameters, vector: Array, x: Points, used: Array, z: Array, noise: Array, width: Array
) -> Any:
    """The objective and its gradient for each draw of landmarks, (draws,) and (draws, p)."""
    value = jax.value_and_grad(lambda v, draw: _value(score, what, v, x, used, draw, noise, width))
    return jax.lax.map(lambda draw: value(vector, draw), z)
