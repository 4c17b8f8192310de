"""Reduction of mixtures to fewer components, and bandwidths of kernel density estimates."""

from typing import Any

import numpy as np

from meanmap.core.errors import InputError
from meanmap.core.settings import whole_number
from meanmap_papers.rivals.mixtures.mixtures import Mixtures
from meanmap_papers.rivals.mixtures.trees import Trees

__all__ = ["BANDWIDTHS", "likelihood_bandwidth", "reduced", "thumb_bandwidth"]

# Multiples of the rule of thumb among which the leave-one-out likelihood chooses.
MULTIPLES = np.geomspace(0.1, 1.5, 10)
# A sample without any spread: this share of its distance from zero keeps its density finite.
LEAST_SHARE = 1e-6


def reduced(mixtures: Mixtures, size: int) -> Mixtures:
    """At most `size` components, a power of two, with the same mean and the same variance of each column.

    Components are gathered by the tree that cuts them at medians; each group becomes one component at its mean, and the
    bandwidth grows by the variance within groups. Cost O(K log² K) per mixture.

    Examples
    --------
    >>> many = Mixtures.of(np.ones(100), np.linspace(-1, 1, 100)[:, None], [0.01])
    >>> few = reduced(many, 8)
    >>> few.weights.size, bool(np.allclose(few.var(), many.var()))
    (8, True)
    """
    whole_number(size, "size")
    if mixtures.weights.shape[-1] <= size:
        return mixtures
    batch, (count, d) = mixtures.weights.shape[:-1], mixtures.means.shape[-2:]
    flat = Mixtures(mixtures.weights.reshape(-1, count), mixtures.means.reshape(-1, count, d), mixtures.variance)
    groups = 2 ** int(np.log2(size))
    trees = Trees.of(flat)
    weights = trees.weight[:, trees.order.shape[1] - 1 :].reshape(len(flat.weights), groups, -1)
    means = np.take_along_axis(flat.means, trees.order[..., None], axis=1).reshape(*weights.shape, d)
    mass = weights.sum(axis=2)
    share = weights / np.where(mass > 0, mass, 1)[..., None]
    middle = np.where(mass[..., None] > 0, np.einsum("egk,egkd->egd", share, means), means[:, :, 0])
    within = np.einsum("egk,egkd->ed", weights, (means - middle[:, :, None]) ** 2)
    variance = mixtures.variance + within.reshape(*batch, d)
    return Mixtures(mass.reshape(*batch, groups), middle.reshape(*batch, groups, d), variance)


def thumb_bandwidth(points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Standard deviation × (4 / ((d + 2) n))^(1/(d + 4)) for points (..., n, d): (..., d) (Silverman 1986, 4.14).

    n is the effective number of points, 1 / Σ w². Right for a normal sample, too wide for one of several modes.
    """
    weights = _scaled(points, weights)
    d = points.shape[-1]
    centred = points - np.einsum("...n,...nd->...d", weights, points)[..., None, :]
    spread = np.sqrt(np.einsum("...n,...nd->...d", weights, centred**2))
    number = 1 / np.sum(weights**2, axis=-1, keepdims=True)
    least = LEAST_SHARE * (np.abs(points).max(axis=-2) + LEAST_SHARE)
    return np.maximum(spread * (4 / ((d + 2) * number)) ** (1 / (d + 4)), least)


def likelihood_bandwidth(points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The multiple of the rule of thumb under which each point is most probable given all others, on average.

    Cost O(n²) per sample and multiple.
    """
    weights = _scaled(points, weights)
    thumb = thumb_bandwidth(points, weights)
    count, d = points.shape[-2:]
    squares: Any = 0.0
    for i in range(d):
        squares = squares + ((points[..., :, None, i] - points[..., None, :, i]) / thumb[..., i, None, None]) ** 2
    others = np.where(np.eye(count, dtype=bool), 0, weights[..., None, :])
    scores = []
    for multiple in MULTIPLES:
        density = np.sum(others * np.exp(-squares / (2 * multiple**2)), axis=-1)
        logs = np.log(np.maximum(density, 1e-300)) - d * np.log(multiple)
        scores.append(np.sum(weights * logs, axis=-1))
    return thumb * MULTIPLES[np.argmax(scores, axis=0)][..., None]


BANDWIDTHS = {"thumb": thumb_bandwidth, "likelihood": likelihood_bandwidth}


def _scaled(points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weights that sum to one."""
    if not np.isfinite(points).all():
        raise InputError("the points of a sample are not all finite.")
    total = weights.sum(axis=-1, keepdims=True)
    if (weights < 0).any() or not (total > 0).all():
        raise InputError("the weights of a sample are negative or all zero: it has no bandwidth.")
    return weights / total
