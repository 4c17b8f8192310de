"""Several kernels at once: which ones, and how their statistics are combined."""

from collections.abc import Sequence

import numpy as np

from meanmap.core.points import count
from meanmap.core.types import Array
from meanmap.kernels.base import Kernel
from meanmap.kernels.stationary import Laplace
from meanmap.stats.permutations import Permuted
from meanmap.stats.settings import finite_distances

__all__ = ["column_kernel", "default_collection", "fused", "together"]

# From half the 5% quantile of the distances to their 95% quantile. Five Laplace kernels had as much power as twenty
# kernels of two shapes, or more, on the panel in the documentation (benchmarks/power.py).
QUANTILES = (0.05, 0.95)
LENGTHSCALES = 5
MOST_POINTS = 500
# Tails of statistics are those of their draws down to this share, and exponential beyond.
TAIL = 0.02
# Rounding of their logarithms: equal draws tie.
ROUNDING = 1e-6


def default_collection(pooled: np.ndarray, units: Array, generator: np.random.Generator) -> tuple[Kernel, ...]:
    """Five Laplace kernels whose lengthscales span the distances in the pooled sample, with columns in their own units.

    They depend on the pooled sample but not on its labels, so permutation tests with them stay exact.
    """
    n = count(pooled)
    rows = pooled if n <= MOST_POINTS else pooled[np.sort(generator.choice(n, MOST_POINTS, replace=False))]
    distances = finite_distances(rows / units, "cityblock")
    if not distances.any() and n > MOST_POINTS:  # the few points that differ were not drawn
        rows = np.unique(pooled, axis=0)[:MOST_POINTS]
        distances = finite_distances(rows / units, "cityblock")
    distances = distances[distances > 0] if distances.any() else np.ones(1)
    low, high = np.quantile(distances, QUANTILES)
    with np.errstate(over="ignore"):  # of columns some of which lie 10¹⁵⁰ apart in one sample and 10⁻¹⁶⁰ in another
        scales = [np.minimum(scale * units, np.finfo(float).max) for scale in np.geomspace(low / 2, high, LENGTHSCALES)]
    return tuple(map(Laplace, scales))


def column_kernel(scales: np.ndarray, column: int) -> Laplace:
    """A Laplace kernel of one column alone, as wide as its unit.

    Examples
    --------
    >>> column_kernel(np.array([2.0, 30.0]), 1).lengthscale.min()
    np.float64(30.0)
    """
    return Laplace(np.where(np.arange(len(scales)) == column, scales, np.finfo(float).max))


def fused(statistics: Sequence[Permuted], norms: Sequence[float], rate: float) -> tuple[Permuted, int]:
    """(1/λ) log mean_k exp(λ MMD²_k / √N_k): a soft maximum over kernels, and the kernel with the largest term.

    MMD-FUSE (Biggs, Schrab & Gretton 2023, eq. 6), with `rate` λ = √(n (n − 1)) for MMD². √N_k, the root mean square of
    the Gram matrix off its diagonal, does not change under permutations, so a permutation test of the fused statistic
    is exact. A single kernel is left unchanged.
    """
    if len(statistics) == 1:
        return statistics[0], 0
    scaled, rounding = np.zeros((len(statistics), len(statistics[0].values))), 0.0
    for row, (values, error), norm in zip(scaled, statistics, norms, strict=True):
        # Otherwise no two points are similar under this kernel, to working precision: it detects nothing.
        if rate * error < norm:
            row[:] = rate * values / norm
            rounding = max(rounding, error / norm)
    top = scaled.max(axis=0)
    values = (top + np.log(np.mean(np.exp(scaled - top), axis=0))) / rate
    return Permuted(values, rounding), int(np.argmax(scaled[:, 0]))


def together(parts: Sequence[Permuted], shares: Sequence[float]) -> tuple[Permuted, int]:
    """Several statistics combined into one, log Σ share / p, and the part with the largest term for the data.

    Each part has its draws after the data, and p is the tail probability of a value among the data and all draws. The
    combined draws of all parts are the null, so the level is exact. Little power is lost: a difference that one part
    detects at the level times its share is detected.
    """
    terms = np.stack([np.log(share) - _log_tail(*part) for part, share in zip(parts, shares, strict=True)])
    top = terms.max(axis=0)
    values = top + np.log(np.sum(np.exp(terms - top), axis=0))
    return Permuted(values, ROUNDING), int(np.argmax(terms[:, 0]))


def _log_tail(values: np.ndarray, rounding: float) -> np.ndarray:
    """The log of the share of values that are as large; of the largest, as a tail that falls like an exponential."""
    size, ordered = len(values), np.sort(values)
    larger = size - np.searchsorted(ordered, values - rounding, side="left")
    tail = max(TAIL, 2 / size)  # a single value, such as the data's, does not show the spacing of the largest ones
    low, high = np.quantile(values, [1 - 5 * tail, 1 - tail])
    if high - low <= 5 * rounding:
        return np.log(larger / size)
    beyond = np.log(tail) - np.log(5) * (values - high) / (high - low)
    return np.where(values > high, np.minimum(beyond, np.log(tail)), np.log(np.maximum(larger / size, tail)))
