"""The posterior of a mean embedding: pointwise uncertainty of the embedding of a sample."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from meanmap.core.arrays import check_rows
from meanmap.core.door import Door
from meanmap.core.errors import KindError, ParameterError
from meanmap.core.notes import warn_of
from meanmap.core.points import any_sparse, count, rows
from meanmap.core.rng import Rng
from meanmap.core.settings import is_number, probability, whole_number
from meanmap.core.synonyms import own_words
from meanmap.core.tables.schema import Schema, check_same_columns, later, opened
from meanmap.core.types import Array, Data, Numbers, Points, Seed
from meanmap.core.values import Value
from meanmap.features.lowrank import PivotedCholesky
from meanmap.kernels.base import Kernel, Scaled, as_kernel
from meanmap.kernels.gram import gram_matrix
from meanmap.kernels.reading import check_alike, read_points
from meanmap.kernels.smoothed import Smoothed
from meanmap.kernels.terms import has_terms
from meanmap.learning.default import asks_to_learn
from meanmap.learning.learned import learned_for

__all__ = ["GaussianElement", "PosteriorDifference", "PosteriorEmbedding", "posterior_embedding"]

# Landmarks at which the embedding is observed. More add no information once they are denser than the lengthscale.
MOST_LANDMARKS = 200
TRACE_TOLERANCE = 1e-6
# Makes a singular empirical covariance of the noise invertible; relative to k(z, z).
JITTER = 1e-8
# The number of rows whose kernel values at the landmarks are in memory at once.
BLOCK = 4096


@dataclass(frozen=True, eq=False, repr=False)
class GaussianElement(Value):
    """A Gaussian process: a mean and a covariance at any points."""

    schema: Schema | None = field(default=None, kw_only=True)

    @abstractmethod
    def mean(self, points: Data) -> np.ndarray:
        """The mean function at m points, (m,)."""

    @abstractmethod
    def cov(self, points: Data) -> np.ndarray:
        """The covariance at m points, (m, m)."""

    def sd(self, points: Data) -> np.ndarray:
        """Standard deviations at m points, (m,)."""
        return np.sqrt(np.maximum(np.diagonal(self.cov(points)), 0))

    def interval(self, points: Data, confidence: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of the interval that contains each value with this probability."""
        from scipy.special import ndtri

        confidence = probability(confidence)
        mean, half = self.mean(points), ndtri((1 + confidence) / 2) * self.sd(points)
        return mean - half, mean + half

    def sample(self, points: Data, n: int = 1, rng: Seed = None) -> np.ndarray:
        """Joint draws of the function at m points, (n, m)."""
        whole_number(n, "n")
        values, vectors = np.linalg.eigh(self.cov(points))
        normal = Rng.of(rng).generator.standard_normal((n, len(values)))
        return self.mean(points) + normal @ (vectors * np.sqrt(np.maximum(values, 0))).T

    def __sub__(self, other: object) -> "PosteriorDifference":
        if not isinstance(other, GaussianElement):
            return NotImplemented
        check_same_columns(self.schema, other.schema, "the difference")
        return PosteriorDifference(self, other, schema=self.schema or other.schema)


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorEmbedding(GaussianElement):
    """The posterior of a mean embedding, a Gaussian process. Made by `posterior_embedding`.

    Attributes
    ----------
    kernel, prior : Kernel
        k, and the covariance r of the prior.
    landmarks : points (m, ...)
        z, the points at which the embedding was observed.
    observed : array (m,)
        μ̂(z), the empirical embedding at the landmarks.
    noise : array (m, m)
        The covariance of these observations.
    size : int
        The number of points in the sample.
    schema : Schema or None
        The columns, if the sample was a table with names; later tables are read by it.
    """

    kernel: Kernel
    prior: Kernel
    landmarks: Any
    observed: np.ndarray
    noise: np.ndarray
    size: int
    factor: np.ndarray

    def mean(self, points: Data) -> np.ndarray:
        """R*ᵀ (R + N)⁻¹ μ̂(z)."""
        return self._solve(self._cross(points)).T @ self._solve(self.observed)

    def cov(self, points: Data) -> np.ndarray:
        """r** − R*ᵀ (R + N)⁻¹ R*."""
        half = self._solve(self._cross(points))
        with Door() as door:
            return gram_matrix(self.prior, self._read(points, door)) - half.T @ half

    def sd(self, points: Data) -> np.ndarray:
        """Standard deviations at m points, (m,), without computing covariances between points."""
        half = self._solve(self._cross(points))
        with Door() as door:
            own = np.asarray(self.prior.diagonal(self._read(points, door)))
        return np.sqrt(np.maximum(own - np.sum(half**2, axis=0), 0))

    def _read(self, points: Data, door: Door) -> Any:
        read = read_points(self.kernel, later(self.schema, points, "points"), "points", door)
        check_alike(read, self.landmarks, "points", "the sample")
        return read

    def _cross(self, points: Data) -> np.ndarray:
        with Door() as door:
            return gram_matrix(self.prior, self.landmarks, self._read(points, door))

    def _solve(self, columns: np.ndarray) -> np.ndarray:
        from scipy.linalg import solve_triangular

        return solve_triangular(self.factor, columns, lower=True, check_finite=False)


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorDifference(GaussianElement):
    """The difference of two embeddings learned from independent samples: a witness function with its uncertainty."""

    first: GaussianElement
    second: GaussianElement

    def mean(self, points: Data) -> np.ndarray:
        """Difference of the means."""
        return self.first.mean(points) - self.second.mean(points)

    def cov(self, points: Data) -> np.ndarray:
        """Sum of the covariances."""
        return self.first.cov(points) + self.second.cov(points)

    def excludes_zero(self, points: Data, confidence: float = 0.95) -> np.ndarray:
        """Whether the interval with this confidence excludes zero at each of m points."""
        low, high = self.interval(points, confidence)
        return (low > 0) | (high < 0)


@own_words
def posterior_embedding(
    x: Data,
    kernel: Kernel | str,
    *,
    prior: Kernel | None = None,
    landmarks: Array | None = None,
    noise: Numbers | str = "empirical",
    missing: str = "raise",
    kinds: Mapping[str, Any] | None = None,
) -> PosteriorEmbedding:
    """The posterior of the mean embedding μ of the distribution of a sample, under a Gaussian process prior.

    μ ~ GP(0, r) is observed at landmarks z as μ̂(z) = (1/n) Σᵢ k(xᵢ, z) with normal noise of covariance N (Flaxman et
    al. 2016, eq. 3-8).

    Parameters
    ----------
    x : points
        n points, at least 2.
    kernel : Kernel or "learned"
        k; "learned" is RBF at the lengthscale that `learn_kernel` finds, with several columns in their own units.
    prior : Kernel, optional
        r; by default `kernels.Smoothed(kernel)`, for RBF, Matérn, their products and sums, scaled so that r(z, z) =
        k(z, z), because its scale depends on the units of the columns. With r = k and noise τ² = n² λ the mean is
        the shrinkage estimate, whose points have the weights (K + n λ I)⁻¹ K 1/n.
    landmarks : points, optional
        z; by default at most 200 points that span the sample.
    noise : "empirical" or float
        "empirical": N is the covariance of k(X, z) over the sample, divided by n; intervals then cover about as often
        as they say, or a little more often, but less often with few rows of skewed data (80% intervals in 70% of places
        with 15 exponential draws). A number τ²: N = τ²/n I, as in the paper, which treats the observations as
        independent measurements of μ; bands are then too narrow where landmarks are denser than the lengthscale (see
        the errata).
    missing, kinds :
        As in `embed`.

    Notes
    -----
    O(n m (d + m) + m³) for m landmarks, and O(m²) for each evaluation point.

    Examples
    --------
    >>> import numpy as np
    >>> from meanmap import kernels
    >>> x = np.random.default_rng(0).normal(size=200)
    >>> g = posterior_embedding(x, kernels.RBF(1.0))
    >>> truth = np.sqrt(1 / 2)                       # E k(X, 0) for a standard normal X
    >>> low, high = g.interval([0.0], 0.99)
    >>> bool(low[0] < truth < high[0])
    True
    """
    (x,), (schema,), told = opened((x,), ("x",), missing, kinds, brief=True, wild=True)
    warn_of(told)
    if asks_to_learn(kernel):
        kernel, _ = learned_for(x)
    kernel = as_kernel(kernel, "kernel", ", or 'learned'")
    if prior is None and not has_terms(kernel):
        raise KindError(
            f"kernel is {kernel!r}, which has no smoothed form here: pass prior=, for example the kernel itself."
        )
    with Door() as door:
        points = read_points(kernel, x, "x", door)
        if any_sparse(points):
            raise KindError("x is sparse, and a posterior embedding needs dense points: pass x.toarray().")
        n = count(points)
        check_rows(n, "x", least=2)
        if landmarks is None:
            low = PivotedCholesky.of_points(kernel, points, door, TRACE_TOLERANCE, MOST_LANDMARKS)
            z = low.pivots
        else:
            z = read_points(kernel, later(schema, landmarks, "landmarks"), "landmarks", door)
            check_alike(points, z, "x", "landmarks")
        if prior is None:
            prior = _smoothed(kernel, rows(z, slice(1)))
        mean, covariance = _moments(kernel, points, z)
        scale = float(np.mean(np.asarray(kernel.diagonal(z))))
        observed_noise = _noise_of_means(noise, covariance, n, scale)
        whole = gram_matrix(prior, z) + observed_noise
        # The prior at dense landmarks is numerically singular; the addition is of the order of rounding.
        whole[np.diag_indices(len(whole))] += 1e-12 * np.trace(whole) / len(whole)
        return PosteriorEmbedding(kernel, prior, z, mean, observed_noise, n, np.linalg.cholesky(whole), schema=schema)


def _smoothed(kernel: Kernel, point: Points) -> Kernel:
    """The smoothed kernel scaled to r(z, z) = k(z, z): unscaled it is a volume, which depends on units."""
    smoothed = Smoothed(kernel)
    volume = float(smoothed.diagonal(point)[0]) / float(kernel.diagonal(point)[0])
    if not 0 < volume < np.inf:
        raise ParameterError(
            f"kernel is {kernel!r}, whose lengthscales multiply to {volume:g}, out of range: change the units of the "
            "columns, or pass prior=, for example the kernel itself."
        )
    return Scaled(smoothed, 1 / volume)


def _noise_of_means(noise: Numbers | str, covariance: np.ndarray, n: int, scale: float) -> np.ndarray:
    """N, the covariance of means of n rows: that of the rows divided by n, or independent with a variance of τ²/n."""
    identity = np.eye(len(covariance))
    if isinstance(noise, str) and noise == "empirical":
        return covariance / n + JITTER * scale * identity
    if is_number(noise) and noise > 0:
        return float(noise) / n * identity
    raise ParameterError(f"noise is {noise!r}; expected 'empirical' or a number above 0.")


def _moments(kernel: Kernel, points: Points, z: Array) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of k(X, z) over the sample, in blocks of rows."""
    n = count(points)
    blocks = [slice(start, start + BLOCK) for start in range(0, n, BLOCK)]
    mean = sum(gram_matrix(kernel, rows(points, part), z).sum(axis=0) for part in blocks) / n
    second = 0.0
    for part in blocks:
        centred = gram_matrix(kernel, rows(points, part), z) - mean
        second = second + centred.T @ centred
    return np.asarray(mean), np.asarray(second) / (n - 1)
