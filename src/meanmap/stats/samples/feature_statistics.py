"""Two-sample statistics of many rows: differences of feature means, permuted or with their Gaussian limit."""

import numpy as np

from meanmap.core.door import Door
from meanmap.core.points import count, rows
from meanmap.core.progress import track
from meanmap.core.types import DType, Points
from meanmap.embeddings.coordinates import FeatureEmbedding
from meanmap.features.base import Concatenated, FeatureKernel, transformed
from meanmap.features.lowrank import Nystrom
from meanmap.features.states.feature_map import FeatureMap, working_precision
from meanmap.kernels.base import Kernel, Sum
from meanmap.linalg.moments import Moments
from meanmap.stats.collections import BEHIND, fused
from meanmap.stats.permutations import SQUARED, CentredFeatures, Permuted, assignments, permuted_mmd
from meanmap.stats.result import Null
from meanmap.stats.samples.columns import column_statistics
from meanmap.stats.samples.samples import Outcome, Samples

__all__ = ["LANDMARKS", "feature_map", "feature_test", "gaussian_limit", "landmark_features"]

# Landmarks of each kernel. At 4000 points 512 of them saw 95 % of what whole Gram matrices saw, 256 80 %, 128 60 %.
LANDMARKS = 512
# Without permutations, which need every point's features at once: of one kernel, and of each of several.
FEWER_LANDMARKS = 256, 64
# How far features reach is seen on so many rows.
FOR_GRID = 16_384


def landmark_features(
    kernels: tuple[Kernel, ...],
    points: Points,
    n_landmarks: int,
    generator: np.random.Generator,
    door: Door,
    dtype: DType,
) -> Concatenated:
    """Nyström features of every kernel side by side, all on the same landmarks, drawn from `points` at random.

    On the panel in the documentation 64 of them saw nearly what whole Gram matrices see, and 256 random Fourier
    features of each kernel much less, the less the more columns there are.
    """
    n = count(points)
    landmarks = rows(points, np.sort(generator.choice(n, min(n, n_landmarks), replace=False)))
    members = tuple(
        kernel.features if isinstance(kernel, FeatureKernel) else Nystrom.at(door.cast(kernel), landmarks, door, dtype)
        for kernel in kernels
    )
    return Concatenated(Sum(kernels), members)


def feature_test(samples: Samples, kind: str, n_draws: int, generator: np.random.Generator, door: Door) -> Outcome:
    """The fused statistic of the features of samples in memory."""
    n, m = samples.sizes
    if kind == "permutation":
        features = landmark_features(samples.kernels, samples.pooled, LANDMARKS, generator, door, np.float64)
        z = assignments(n, m, n_draws, generator)
        found, norms = [], []
        for member in features.members:
            centred = CentredFeatures(transformed(member, samples.pooled))
            found.append(permuted_mmd(centred, z, n, unbiased=True))
            norms.append(centred.norm)
        ours, theirs = column_statistics(samples.alone, samples.pooled, lambda gram: permuted_mmd(gram, z, n, True))
        result, strongest = fused([*found, *ours], [*norms, *theirs], samples.rate, [BEHIND] * len(ours))
        return Outcome.exact(result, "permutation", strongest)
    mapped = feature_map(samples, generator, door)
    x, y = (mapped.sums([samples[i]]).moments() for i in track(range(2), "samples"))
    value, null = gaussian_limit(x, y, mapped.sizes, n_draws, generator)
    return Outcome(value, null, difference=FeatureEmbedding(mapped.features, x.mean - y.mean))


def feature_map(samples: Samples, generator: np.random.Generator, door: Door, correlated: bool = False) -> FeatureMap:
    """Few features of all kernels; grid, precision and perhaps correlations for rows like those of the samples."""
    dtype = working_precision(samples.pooled)
    number = FEWER_LANDMARKS[len(samples.kernels) > 1]
    features = landmark_features(samples.kernels, samples.pooled, number, generator, door, dtype)
    sample = rows(samples.pooled, slice(None, None, -(-count(samples.pooled) // FOR_GRID)))
    return FeatureMap.of(features, sample, dtype, correlated=correlated)


def gaussian_limit(
    x: Moments, y: Moments, sizes: list[int], n_draws: int, generator: np.random.Generator
) -> tuple[float, Null]:
    """The fused unbiased MMD² of feature means, and its limit under the hypothesis.

    The difference of the means is asymptotically N(0, Σ_x/n + Σ_y/m), so its squared norm is a weighted sum of
    chi-squares. Draws of the difference go through the same fusing as the statistic, `sizes` being the features of
    each kernel.
    """
    covariance = x.covariance() / x.n + y.covariance() / y.n
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0))
    differences = np.column_stack([x.mean - y.mean, root @ generator.standard_normal((len(values), n_draws))])
    second = (x.n * x.second + y.n * y.second) / (x.n + y.n)
    found, norms = [], []
    for stop, size in zip(np.cumsum(sizes), sizes, strict=True):
        part = slice(stop - size, stop)
        trace = float(np.trace(covariance[part, part]))
        found.append(Permuted(np.sum(differences[part] ** 2, axis=0) - trace, SQUARED * trace))
        norms.append(float(np.sqrt(np.sum(second[part, part] ** 2))))
    smaller = min(x.n, y.n)
    result, _ = fused(found, norms, np.sqrt(smaller * (smaller - 1.0)))
    law = Null("weighted chi-squares", result.values[1:], exact=False, rounding=result.rounding)
    return float(result.values[0]), law
