"""Two-sample statistics of many rows: means of features at this many landmarks, permuted or with a Gaussian limit."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from meanmap.core.door import Door
from meanmap.core.points import count, rows
from meanmap.core.progress import track
from meanmap.core.types import DType, Points
from meanmap.embeddings.coordinates import FeatureEmbedding
from meanmap.features.base import Concatenated, FeatureKernel, Features, transformed
from meanmap.features.lowrank import Nystrom
from meanmap.features.states.feature_map import FeatureMap, working_precision
from meanmap.kernels.base import Kernel, Sum
from meanmap.linalg.moments import Moments
from meanmap.stats.collections import fused
from meanmap.stats.permutations import SQUARED, Centred, CentredFeatures, Permuted, root_mean_square
from meanmap.stats.result import Null
from meanmap.stats.samples.rank_features import with_columns, without_columns
from meanmap.stats.samples.samples import Outcome, Samples
from meanmap.stats.samples.units import Units

__all__ = [
    "FEWER_LANDMARKS",
    "LANDMARKS",
    "centred_features",
    "feature_map",
    "gaussian_limit",
    "landmark_features",
    "of_moments",
    "sizes_of",
    "standardising",
    "summed",
]

# A function of the means and covariances of features of two samples, the features, the number of draws, and a
# generator.
OfSums = Callable[[Moments, Moments, Any, int, np.random.Generator], Outcome]

# Landmarks of each kernel. With 4000 points, 512 landmarks had 95% of the power of full Gram matrices, 256 had 80%,
# and 128 had 60%.
LANDMARKS = 512
# Landmarks for limiting null distributions, of one kernel and of each of several. Permutations need the features of all
# points at once.
FEWER_LANDMARKS = 256, 64
# The range of features is estimated from this many rows.
FOR_GRID = 16_384


def landmark_features(
    kernels: tuple[Kernel, ...],
    points: Points,
    n_landmarks: int,
    generator: np.random.Generator,
    door: Door,
    dtype: DType,
    triangular: bool = False,
) -> Concatenated:
    """Nyström features of every kernel side by side, all on the same landmarks, drawn from `points` at random.

    On the benchmark panel in the documentation 64 landmarks had nearly the power of full Gram matrices. 256 random
    Fourier features of each kernel had much less, especially with many columns.
    """
    n = count(points)
    landmarks = rows(points, np.sort(generator.choice(n, min(n, n_landmarks), replace=False)))
    members = tuple(
        kernel.features
        if isinstance(kernel, FeatureKernel)
        else Nystrom.at(door.cast(kernel), landmarks, door, dtype, triangular)
        for kernel in kernels
    )
    return Concatenated(Sum(kernels), members)


def centred_features(
    samples: Samples, units: Units, generator: np.random.Generator, door: Door
) -> Iterator[tuple[Centred, float]]:
    """The features of the units under each kernel, at random landmarks, and the norm of the Gram matrix of rows. If
    units have several rows, the norm is estimated from as many rows as there are landmarks.
    """
    features = landmark_features(samples.kernels, samples.pooled, LANDMARKS, generator, door, np.float64, True)
    first = np.concatenate([part[:, 0] for part in units.members])
    some = rows(samples.pooled, first[:: -(-len(first) // LANDMARKS)])

    def held(member: Features) -> tuple[Centred, float]:
        found = CentredFeatures(units.features(member, samples.pooled))
        if units.alone:
            return found, found.norm
        phi = transformed(member, some)
        return found, root_mean_square(phi @ phi.T)

    return map(held, features.members)


def summed(samples: Samples, of_sums: OfSums, n_draws: int, generator: np.random.Generator, door: Door) -> Outcome:
    """The outcome of a statistic of sums of features, for samples in memory."""
    mapped = feature_map(samples, generator, door, columns=True)
    x, y = (mapped.sums([samples[i]]).moments() for i in track(range(2), "samples"))
    return of_moments(of_sums, x, y, mapped.features, n_draws, generator)


def of_moments(
    of_sums: OfSums, x: Moments, y: Moments, features: object, n_draws: int, generator: np.random.Generator
) -> Outcome:
    """The outcome of a statistic from means and covariances of features, and the difference of these means."""
    kernels, _ = without_columns(features)
    difference = FeatureEmbedding(kernels, (x.mean - y.mean)[: kernels.size])
    return replace(of_sums(x, y, features, n_draws, generator), difference=difference)


def feature_map(
    samples: Samples, generator: np.random.Generator, door: Door, correlated: bool = False, columns: bool = False
) -> FeatureMap:
    """A few features of all kernels, with a grid, a precision and perhaps correlations for rows like those of the
    samples.

    With `columns`, features of single columns follow.
    """
    dtype = working_precision(samples.pooled)
    number = FEWER_LANDMARKS[len(samples.kernels) > 1]
    features = landmark_features(samples.kernels, samples.pooled, number, generator, door, dtype)
    if columns and samples.by_columns:
        features = with_columns(features, samples)
    sample = rows(samples.pooled, slice(None, None, -(-count(samples.pooled) // FOR_GRID)))
    return FeatureMap.of(features, sample, dtype, correlated=correlated)


def sizes_of(features: Concatenated) -> list[int]:
    """The number of features of each kernel."""
    return [member.size for member in features.members]


def gaussian_limit(
    x: Moments, y: Moments, features: Concatenated, n_draws: int, generator: np.random.Generator
) -> Outcome:
    """The fused unbiased MMD² of feature means, and its limit under the null hypothesis.

    The difference of the means is asymptotically N(0, (1/n + 1/m) Σ), so its squared norm is a weighted sum of
    chi-squares. Σ is the pooled covariance within both samples, because a small sample alone may have no row with a
    rare value, and then no variance for it. Draws of the difference are fused in the same way as the statistic.
    Features of single columns may follow those of the kernels.
    """
    of_kernels, ranks = without_columns(features)
    sizes = sizes_of(of_kernels)
    covariance = (x.n * x.covariance() + y.n * y.covariance()) / (x.n + y.n) * (1 / x.n + 1 / y.n)
    own = np.diag(x.covariance()) / x.n + np.diag(y.covariance()) / y.n
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0))
    differences = np.column_stack([x.mean - y.mean, root @ generator.standard_normal((len(values), n_draws))])
    second = (x.n * x.second + y.n * y.second) / (x.n + y.n)
    found, norms = [], []
    for stop, size in zip(np.cumsum(sizes), sizes, strict=True):
        part = slice(stop - size, stop)
        # The corrections that make the statistic unbiased for any distributions, and the draws under the null
        # hypothesis.
        trace = float(np.trace(covariance[part, part]))
        traces = np.r_[float(np.sum(own[part])), np.full(n_draws, trace)]
        found.append(Permuted(np.sum(differences[part] ** 2, axis=0) - traces, SQUARED * trace))
        norms.append(float(np.sqrt(np.sum(second[part, part] ** 2))))
    smaller = min(x.n, y.n)
    result, _ = fused(found, norms, np.sqrt(smaller * (smaller - 1.0)))
    alone = {}
    if ranks is not None:
        part = slice(sum(sizes), None)
        squares = (differences[part] ** 2 / standardising(covariance, part)[:, None]).T
        result, alone = ranks.judged(result, squares, smaller), ranks.of_each(squares, smaller)
    law = Null("weighted chi-squares", result.values[1:], exact=False, rounding=result.rounding)
    return Outcome(float(result.values[0]), law, alone=alone)


def standardising(covariance: np.ndarray, part: slice) -> np.ndarray:
    """The variances of some features, bounded away from zero."""
    return np.maximum(np.diag(covariance)[part], np.finfo(float).tiny)
