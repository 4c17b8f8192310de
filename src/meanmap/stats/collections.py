"""Several kernels at once: which ones, and how their statistics become one."""

from collections.abc import Sequence

import numpy as np

from meanmap.core.points import count
from meanmap.core.types import Array
from meanmap.kernels.base import Kernel
from meanmap.kernels.stationary import Laplace
from meanmap.stats.permutations import Permuted
from meanmap.stats.settings import finite_distances

__all__ = ["BEHIND", "column_kernels", "default_collection", "fused"]

# From half the 5 % quantile of the distances to their 95 % quantile. Five Laplace kernels had as much power as twenty
# kernels of two shapes, or more, on the panel in the documentation (benchmarks/power.py).
QUANTILES = (0.05, 0.95)
LENGTHSCALES = 5
MOST_POINTS = 500
# One column of many that differs in width is hardly seen in distances over all of them: in its own unit, which is that
# of the pooled sample, it is as wide as the others. So each of up to 32 columns has a kernel of its own, which starts
# this far behind the others in the soft maximum, and costs what they see next to nothing.
MOST_COLUMNS, BEHIND = 32, 4.0


def default_collection(pooled: np.ndarray, units: Array, generator: np.random.Generator) -> tuple[Kernel, ...]:
    """Five Laplace kernels whose lengthscales span the distances of the pooled sample in its columns' units.

    They depend on the pooled sample without its labels, so permutation tests with them stay exact.
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


def column_kernels(pooled: np.ndarray, scales: np.ndarray) -> tuple[Laplace, ...]:
    """A Laplace kernel of each column alone, as wide as its unit, of 2 to 32 columns that vary and differ.

    Examples
    --------
    >>> kernels = column_kernels(np.array([[0.0, 5.0, 0.0], [2.0, 35.0, 2.0]]), np.array([2.0, 30.0, 2.0]))
    >>> [float(kernel.lengthscale.min()) for kernel in kernels]
    [2.0, 30.0]
    """
    if not 1 < len(scales) <= MOST_COLUMNS:
        return ()
    places = {
        np.ascontiguousarray(column).tobytes(): j for j, column in reversed(list(enumerate(pooled.T))) if scales[j]
    }
    far = np.finfo(float).max
    kernels = [Laplace(np.where(np.arange(len(scales)) == j, scales, far)) for j in sorted(places.values())]
    return tuple(kernels) if len(kernels) > 1 else ()


def fused(
    statistics: Sequence[Permuted], norms: Sequence[float], rate: float, behind: Sequence[float] = ()
) -> tuple[Permuted, int]:
    """(1/λ) log mean_k exp(λ MMD²_k / √N_k − h_k): a soft maximum over kernels.

    Also the kernel with the largest term for the data. `behind` are the h of the last kernels, zero for the others.

    MMD-FUSE (Biggs, Schrab & Gretton 2023, eq. 6), with `rate` λ = √(n (n − 1)) for MMD². √N_k, the root mean square of
    the Gram matrix off its diagonal, does not change under permutations, so a permutation test of the fused statistic
    is exact. One kernel alone is left as it is.
    """
    if len(statistics) == 1:
        return statistics[0], 0
    scaled, rounding = np.zeros((len(statistics), len(statistics[0].values))), 0.0
    for row, (values, error), norm in zip(scaled, statistics, norms, strict=True):
        # Otherwise no two points are alike under this kernel, as far as its digits say: it sees nothing.
        if rate * error < norm:
            row[:] = rate * values / norm
            rounding = max(rounding, error / norm)
    scaled[len(scaled) - len(behind) :] -= np.reshape(behind, (-1, 1))
    top = scaled.max(axis=0)
    values = (top + np.log(np.mean(np.exp(scaled - top), axis=0))) / rate
    return Permuted(values, rounding), int(np.argmax(scaled[:, 0]))
