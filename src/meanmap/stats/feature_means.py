"""Two-sample statistics of many rows: differences of feature means, streamed, with the null of their Gaussian limit."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.door import Door
from meanmap.core.errors import KindError
from meanmap.core.points import any_sparse, count, pad, rows
from meanmap.features.base import Concatenated, FeatureKernel, Features
from meanmap.features.lowrank import Nystrom
from meanmap.kernels.base import Kernel, Sum
from meanmap.stats.collections import fused
from meanmap.stats.result import Null

__all__ = ["FeatureMeans", "gaussian_limit", "landmark_features", "working_precision"]

# Rows that are mapped in one compiled call, the same whatever chunks the data come in, so that sums are the same too.
CHUNK = 8192


def landmark_features(
    kernels: tuple[Kernel, ...], points: Any, n_landmarks: int, generator: np.random.Generator, door: Door, dtype: Any
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


def working_precision(points: Any) -> Any:
    """Single, unless columns lie so far from zero, for their spread, that it would round their differences away."""
    if any_sparse(points):
        return np.float64
    leaves = [leaf for leaf in jax.tree.leaves(points) if np.issubdtype(leaf.dtype, np.floating)]
    far = any((np.abs(leaf).max(axis=0) > 1e4 * np.maximum(leaf.std(axis=0), 1e-300)).any() for leaf in leaves)
    return np.float64 if far else np.float32


@dataclass(frozen=True)
class FeatureMeans:
    """Size, mean and second moment of the features of one sample."""

    n: int
    mean: np.ndarray
    second: np.ndarray

    @classmethod
    def of(cls, features: Features, chunks: Iterable[Any], dtype: Any) -> "FeatureMeans":
        """Summed over chunks of points: O(n r (d + r)) time, O(r²) memory beyond a chunk.

        In `dtype` within a block of 8192 rows and in double precision between blocks, whatever the chunks are.
        """
        cast = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), features)
        n, mean, second = 0, np.zeros(features.size), np.zeros((features.size, features.size))
        for block in _blocks(chunks, dtype):
            kept = count(block)
            sums, products = _sums(cast, pad(block, CHUNK), kept)
            n, mean, second = n + kept, mean + np.asarray(sums, float), second + np.asarray(products, float)
        return cls(n, mean / n, second / n)

    @property
    def covariance(self) -> np.ndarray:
        """The covariance of the features."""
        return (self.second - np.outer(self.mean, self.mean)) * (self.n / (self.n - 1))


@jax.jit
def _sums(features: Features, x: Any, kept: int) -> tuple[jax.Array, jax.Array]:
    phi = jnp.where(jnp.arange(CHUNK)[:, None] < kept, features.transform(x), 0)
    return phi.sum(axis=0), phi.T @ phi


def _blocks(chunks: Iterable[Any], dtype: Any) -> Iterable[Any]:
    """The same rows in blocks of 8192, the last one shorter."""
    waiting: list[Any] = []
    held = 0
    for chunk in chunks:
        start, size = 0, count(chunk)
        while start < size:
            stop = min(size, start + CHUNK - held)
            waiting.append(rows(chunk, slice(start, stop)))
            held, start = held + stop - start, stop
            if held == CHUNK:
                yield _joined(waiting, dtype)
                waiting, held = [], 0
    if held:
        yield _joined(waiting, dtype)


def _joined(parts: list[Any], dtype: Any) -> Any:
    if any_sparse(parts):
        raise KindError("sparse rows are not streamed: pass x.toarray(), or at most 10,000 rows in all.")
    return jax.tree.map(lambda *leaves: np.concatenate(leaves).astype(dtype), *parts)


def gaussian_limit(
    x: FeatureMeans, y: FeatureMeans, sizes: list[int], n_draws: int, generator: np.random.Generator
) -> tuple[float, Null]:
    """The fused unbiased MMD² of feature means, and its limit under the hypothesis.

    The difference of the means is asymptotically N(0, Σ_x/n + Σ_y/m), so its squared norm is a weighted sum of
    chi-squares. Draws of the difference go through the same fusing as the statistic, `sizes` being the features of
    each kernel.
    """
    covariance = x.covariance / x.n + y.covariance / y.n
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0))
    differences = np.column_stack([x.mean - y.mean, root @ generator.standard_normal((len(values), n_draws))])
    second = (x.n * x.second + y.n * y.second) / (x.n + y.n)
    statistics, norms = [], []
    for stop, size in zip(np.cumsum(sizes), sizes, strict=True):
        part = slice(stop - size, stop)
        statistics.append(np.sum(differences[part] ** 2, axis=0) - np.trace(covariance[part, part]))
        norms.append(np.sum(second[part, part] ** 2))
    smaller = min(x.n, y.n)
    result = fused(np.stack(statistics), norms, np.sqrt(smaller * (smaller - 1.0)))
    return float(result[0]), Null("weighted chi-squares", result[1:], exact=False)
