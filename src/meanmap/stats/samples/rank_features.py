"""Rank scores of columns as features of a row, with ranks from the quantiles of a sample, for tests of many rows."""

from functools import partial
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from scipy.special import ndtri as host_ndtri

from meanmap.core.points import in_columns
from meanmap.core.types import Array, Points
from meanmap.features.base import Concatenated, Features
from meanmap.kernels.base import Kernel, Sum
from meanmap.stats.permutations import Permuted
from meanmap.stats.samples.scores import COMMON, OF_NUMBERS, judged, raw_scores

__all__ = ["RankFeatures", "with_columns", "without_columns"]

# The number of quantiles for ranks, and the largest number of scores in all, since their covariances are computed, too.
QUANTILES, MOST_SCORES = 512, 512
# The number of rows from which the means and standard deviations of scores are computed, and the smallest standard
# deviation of a score that is kept.
MEASURED, LEAST_SPREAD = 4096, 1e-6
# Scores are scaled down by this factor, so that the common grid is as fine as for the features of kernels alone.
SIZE = 1 / 16


class RankFeatures(Features):
    """The scores of `Scores` for columns of numbers as functions of a single row, with ranks relative to a sample.

    Attributes: `knots` (quantiles of columns and, last, of the norms of rows), `middle` and `deviation` (means and
    scaled standard deviations of raw scores in the sample), `kept` (the scores that vary there), `shares` (logarithms).
    """

    kernel: Kernel
    knots: Any
    middle: Any
    deviation: Any
    kept: Any
    shares: Any

    @classmethod
    def of(cls, kernel: Kernel, sample: np.ndarray) -> "RankFeatures | None":
        """The features from a sample of rows; None if there are fewer than two columns, or too many."""
        d = sample.shape[1]
        each = len(OF_NUMBERS) if len(OF_NUMBERS) * d < MOST_SCORES else 2
        if d < 2 or each * d > MOST_SCORES:
            return None
        places = (np.arange(QUANTILES) + 0.5) / QUANTILES
        knots = np.quantile(sample, places, axis=0, method="inverted_cdf").T
        some = sample[:: -(-len(sample) // MEASURED)]
        u = np.column_stack([_midranks(np, *pair) for pair in zip(knots, some.T, strict=True)])
        normal = host_ndtri(u)
        widths = np.sum(normal**2, axis=1)
        knots = np.concatenate([knots, np.quantile(widths, places)[None]])
        width = host_ndtri(_midranks(np, knots[-1], widths))
        scores = np.column_stack([raw_scores(u, normal, np).reshape(len(u), -1), width])
        shares = np.append(np.tile((1 - COMMON) / d * np.array(OF_NUMBERS), d), COMMON)
        middle, deviation = scores.mean(axis=0), scores.std(axis=0)
        of_column = np.append(np.tile(np.arange(len(OF_NUMBERS)), d), 0)
        kept = np.flatnonzero((deviation > LEAST_SPREAD) & (of_column < each))
        return cls(kernel, knots, middle[kept], deviation[kept] / SIZE, kept, np.log(shares[kept]))

    def transform(self, x: Points) -> jax.Array:
        """Scores of rows, (n, r): pure and traceable."""
        u = _ranks(self.knots[:-1], x)
        normal = ndtri(u)
        width = ndtri(_ranks(self.knots[-1:], jnp.sum(normal**2, axis=1, keepdims=True)))
        raw = jnp.concatenate([raw_scores(u, normal, jnp).reshape(len(u), -1), width], axis=1)
        return (raw[:, self.kept] - self.middle) / self.deviation

    def check(self, points: Points, argument: str) -> None:
        """Check points as the kernel does."""

    @property
    def size(self) -> int:
        """The number of scores."""
        return len(self.kept)

    def judged(self, kernels: Permuted, squares: np.ndarray) -> Permuted:
        """Combine the evidence of kernels and of columns; `squares` are those of standardised sums of scores."""
        found, _, _ = judged(kernels, None, squares, self.shares, lambda part: part, len(self.knots) - 1)
        return found


def with_columns(features: Concatenated, pooled: Points) -> Concatenated:
    """Features of kernels followed by those of single columns, for rows of two or more numeric columns."""
    if not in_columns(pooled):
        return features
    ranks = RankFeatures.of(features.members[0].kernel, np.asarray(pooled, float))
    if ranks is None:
        return features
    kernels = (*(member.kernel for member in features.members), ranks.kernel)
    return Concatenated(Sum(kernels), (*features.members, ranks))


def without_columns(features: object) -> tuple[Any, RankFeatures | None]:
    """The features of kernels alone, and those of single columns if there are any."""
    members = features.members if isinstance(features, Concatenated) else ()
    if not members or not isinstance(members[-1], RankFeatures):
        return features, None
    kernels = tuple(member.kernel for member in members[:-1])
    return Concatenated(Sum(kernels), members[:-1]), members[-1]


def _ranks(knots: Any, x: Any) -> Any:
    """The ranks in each column, (n, d)."""
    of_column = partial(_midranks, jnp)
    return jax.vmap(of_column, in_axes=(0, 1), out_axes=1)(knots, x).astype(x.dtype)


def _midranks(library: ModuleType, quantiles: Array, values: Array) -> Any:
    """The shares of quantiles below each value, with ties counted half, and neither 0 nor 1."""
    below, upto = (library.searchsorted(quantiles, values, side=side) for side in ("left", "right"))
    return library.clip((below + upto) / (2 * QUANTILES), 0.5 / QUANTILES, 1 - 0.5 / QUANTILES)
