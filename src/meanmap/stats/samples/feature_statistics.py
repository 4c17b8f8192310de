"""Two-sample statistics of many rows: differences of feature means, permuted or with their Gaussian limit."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from meanmap.core.door import Door
from meanmap.core.points import count, rows
from meanmap.core.types import DType, Points
from meanmap.embeddings.coordinates import FeatureEmbedding
from meanmap.features.base import Concatenated, FeatureKernel, transformed
from meanmap.features.lowrank import Nystrom
from meanmap.kernels.base import Kernel, Sum
from meanmap.linalg.moments import Moments
from meanmap.stats.collections import fused
from meanmap.stats.permutations import SQUARED, CentredFeatures, Permuted, assignments, permuted_mmd
from meanmap.stats.result import Null
from meanmap.stats.samples.feature_means import blocks_of, feature_moments, working_precision
from meanmap.stats.samples.samples import Outcome, Samples

__all__ = ["LANDMARKS", "feature_test", "landmark_features", "sample_moments", "streamed_test"]

# Landmarks of each kernel. At 4000 points 512 of them saw 95 % of what whole Gram matrices saw, 256 80 %, 128 60 %.
LANDMARKS = 512
# Without permutations, which need every point's features at once: of one kernel, and of each of several.
FEWER_LANDMARKS = 256, 64


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
        result, strongest = fused(found, norms, samples.rate)
        return Outcome.exact(result, "permutation", strongest)
    blocks = [blocks_of(samples[i], f"rows of {name}") for i, name in enumerate("xy")]
    return _streamed(samples, blocks, n_draws, generator, door)


def streamed_test(
    samples: Samples,
    rest: Sequence[Iterator[Any]],
    n_draws: int,
    generator: np.random.Generator,
    door: Door,
) -> Outcome:
    """The fused statistic of features where `samples` holds the first rows only, and `rest` the blocks that follow.

    Kernels and landmarks come from the first rows.
    """

    def points(i: int) -> Iterator[Any]:
        yield samples[i]
        for block in rest[i]:
            yield samples.read(block, "xy"[i], door)

    return _streamed(samples, [points(0), points(1)], n_draws, generator, door)


def sample_moments(
    samples: Samples, blocks: Sequence[Any], generator: np.random.Generator, door: Door
) -> tuple[Concatenated, list[Moments]]:
    """Few features, and their moments in each sample, in one pass over its blocks."""
    dtype = working_precision(samples.pooled)
    number = FEWER_LANDMARKS[len(samples.kernels) > 1]
    features = landmark_features(samples.kernels, samples.pooled, number, generator, door, dtype)
    return features, [feature_moments(features, part, dtype) for part in blocks]


def _streamed(samples: Samples, blocks: list[Any], n_draws: int, generator: np.random.Generator, door: Door) -> Outcome:
    features, (x, y) = sample_moments(samples, blocks, generator, door)
    value, null = gaussian_limit(x, y, [member.size for member in features.members], n_draws, generator)
    return Outcome(value, null, difference=FeatureEmbedding(features, x.mean - y.mean), sizes=(x.n, y.n))


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
