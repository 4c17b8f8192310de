"""The law of the distance between the mean embeddings of samples, and what a shift of one of them amounts to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from meanmap.core.door import Door
from meanmap.core.points import count, rows
from meanmap.core.progress import track
from meanmap.core.types import Points
from meanmap.features.base import FeatureKernel, Features, transformed
from meanmap.kernels.base import Kernel, Sum
from meanmap.kernels.gram import gram_matrix
from meanmap.linalg.moments import Moments
from meanmap.stats.limits import DistanceLaw
from meanmap.stats.samples.feature_statistics import feature_map
from meanmap.stats.samples.margin import mover
from meanmap.stats.samples.samples import Samples

__all__ = ["Difference", "averaged", "difference_of"]

# Whole Gram matrices, and their eigenvalues, up to so many points in all: a second.
MOST_WHOLE = 1200
# Rows that are moved to see what a shift amounts to, and how far: from a thousandth to ten standard deviations.
MOVED, MOVED_BY_FEATURES = 300, 3000
SHIFTS = np.geomspace(1e-3, 10.0, 16)


@dataclass(frozen=True)
class Difference:
    """How far samples lie apart.

    Attributes
    ----------
    law : DistanceLaw
        Of the root of Σ_g π_g ‖μ_g − μ̄‖² with shares π; of two samples of ‖μ_P − μ_Q‖.
    reach : float
        The largest distance between the features of two rows that were seen.
    of_shift : callable or None
        The distance between the first sample and itself moved by so many standard deviations in every column.
    kernel : Kernel
        Under which all this is.
    """

    law: DistanceLaw
    reach: float
    of_shift: Callable[[float], float] | None
    kernel: Kernel

    def as_shift(self, distances: Sequence[float]) -> list[float]:
        """Shifts that amount to these distances, in standard deviations; infinite beyond the largest that any does."""
        assert self.of_shift is not None
        known = np.maximum.accumulate([self.of_shift(float(s)) for s in SHIFTS])
        slope, found = known[0] / SHIFTS[0], []
        for distance in distances:
            if distance <= known[0]:
                found.append(distance / slope if slope > 0 else 0.0)
            elif distance >= known[-1]:
                found.append(np.inf)
            else:
                found.append(float(np.exp(np.interp(np.log(distance), np.log(known), np.log(SHIFTS)))))
        return found


def averaged(kernels: Sequence[Kernel]) -> Kernel:
    """The mean of several kernels."""
    return kernels[0] if len(kernels) == 1 else Sum(tuple(kernels)) * (1 / len(kernels))


def difference_of(samples: Samples, generator: np.random.Generator, door: Door) -> Difference:
    """The difference of samples, from whole Gram matrices of few points and from features of many."""
    kernel, sizes = averaged(samples.kernels), samples.sizes
    some = rows(samples.pooled, np.sort(generator.choice(sum(sizes), min(sum(sizes), MOVED), replace=False)))
    if sum(sizes) <= MOST_WHOLE:
        gram = np.asarray(gram_matrix(kernel, samples.pooled), float)
        of_shift = _shifter(samples[0], MOVED, generator, lambda a, b: _distance_of_grams(kernel, a, b))
        return Difference(_law_of_gram(gram, sizes), _reach(gram), of_shift, kernel)
    mapped = feature_map(samples, generator, door)
    features = mapped.features
    groups = [mapped.sums([samples[g]]).moments() for g in track(range(len(sizes)), "samples")]
    scale = 1 / np.sqrt(len(samples.kernels))
    kernel = FeatureKernel(features) * scale**2
    reach = _reach(np.asarray(gram_matrix(kernel, some)))
    of_shift = _shifter(
        samples[0], MOVED_BY_FEATURES, generator, lambda a, b: scale * _distance_of_features(features, a, b)
    )
    return Difference(_law_of_moments(groups, scale), reach, of_shift, kernel)


def _contrasts(sizes: Sequence[int]) -> np.ndarray:
    """How much each group's mean weighs in each component, (k, components)."""
    if len(sizes) == 2:
        return np.array([[1.0], [-1.0]])
    share = np.asarray(sizes) / sum(sizes)
    return (np.eye(len(sizes)) - share[:, None]) * np.sqrt(share)[None, :]


def _law_of_gram(gram: np.ndarray, sizes: Sequence[int]) -> DistanceLaw:
    """T = Σ_c ‖Σ_g C_gc μ̂_g‖², and the covariance of these sums by that of rows within groups."""
    contrasts, group = _contrasts(sizes), np.repeat(np.arange(len(sizes)), sizes)
    weights = contrasts[group] / np.asarray(sizes)[group, None]
    squared = float(np.einsum("ic,ij,jc->", weights, gram, weights, optimize=True))
    belongs = (group[:, None] == np.arange(len(sizes))) / np.asarray(sizes)
    means = gram @ belongs
    centred = gram - means[:, group] - means[:, group].T + (belongs.T @ means)[np.ix_(group, group)]
    size = np.asarray(sizes, float)[group]
    scale = 1 / np.sqrt(size * (size - 1))
    inner = contrasts @ contrasts.T
    matrix = centred * inner[np.ix_(group, group)] * scale[:, None] * scale[None, :]
    return DistanceLaw(squared, np.maximum(np.linalg.eigvalsh(matrix), 0.0))


def _law_of_moments(groups: Sequence[Moments], scale: float) -> DistanceLaw:
    contrasts = _contrasts([group.n for group in groups])
    means = np.stack([group.mean for group in groups])
    squared = scale**2 * float(np.sum((contrasts.T @ means) ** 2))
    covariance = sum(
        np.kron(np.outer(c, c), group.covariance() / group.n) for c, group in zip(contrasts, groups, strict=True)
    )
    return DistanceLaw(squared, np.maximum(np.linalg.eigvalsh(scale**2 * np.asarray(covariance)), 0.0))


def _reach(gram: np.ndarray) -> float:
    own = gram.diagonal()
    return float(np.sqrt(max(np.max(own[:, None] + own[None, :] - 2 * gram), np.finfo(float).tiny)))


def _shifter(
    points: Points, most: int, generator: np.random.Generator, distance: Callable[[Any, Any], float]
) -> Callable[[float], float] | None:
    """The distance of at most so many points from themselves moved; None where there are no columns of numbers."""
    move = mover(points)
    if move is None:
        return None
    n = count(points)
    some = rows(points, np.sort(generator.choice(n, min(n, most), replace=False)))

    def of_shift(shift: float) -> float:
        return distance(some, move(some, shift))

    return of_shift


def _distance_of_grams(kernel: Kernel, a: Points, b: Points) -> float:
    n = count(a)
    gram = np.asarray(gram_matrix(kernel, jax.tree.map(lambda *parts: np.concatenate(parts), a, b)), float)
    weights = np.r_[np.full(n, 1 / n), np.full(n, -1 / n)]
    return float(np.sqrt(max(weights @ gram @ weights, 0.0)))


def _distance_of_features(features: Features, a: Points, b: Points) -> float:
    return float(np.linalg.norm(transformed(features, a).mean(axis=0) - transformed(features, b).mean(axis=0)))
