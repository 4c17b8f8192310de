"""Several kernels at once: which ones, and how their statistics become one."""

from typing import Any

import numpy as np

from meanmap.core.errors import InputError
from meanmap.core.points import count
from meanmap.kernels.base import Kernel
from meanmap.kernels.stationary import RBF, Laplace

__all__ = ["default_collection", "fused"]

# Lengthscales run from half the 5 % quantile to twice the 95 % quantile of the pooled distances (Biggs et al. 2023).
QUANTILES = (0.05, 0.95)
LENGTHSCALES = 10
MOST_POINTS = 500


def default_collection(pooled: np.ndarray, generator: np.random.Generator) -> tuple[Kernel, ...]:
    """Ten RBF and ten Laplace kernels whose lengthscales span the distances of the pooled sample.

    They depend on the pooled sample without its labels, so permutation tests with them stay exact.
    """
    from scipy.spatial.distance import pdist

    n = count(pooled)
    rows = pooled if n <= MOST_POINTS else pooled[np.sort(generator.choice(n, MOST_POINTS, replace=False))]
    kernels: list[Kernel] = []
    for kind, distances in ((RBF, pdist(rows)), (Laplace, pdist(rows, "cityblock"))):
        distances = distances[distances > 0]
        if not len(distances):
            raise InputError("all points of x and y are equal: there is nothing to compare.")
        low, high = np.quantile(distances, QUANTILES)
        kernels += [kind(scale) for scale in np.geomspace(low / 2, high * 2, LENGTHSCALES)]
    return tuple(kernels)


def fused(statistics: np.ndarray, mean_squares: Any, pairs: int) -> np.ndarray:
    """(1/λ) log mean_k exp(λ MMD²_k / √N_k), λ = √(n (n − 1)): a soft maximum over kernels, (B,) from (kernels, B).

    MMD-FUSE (Biggs, Schrab & Gretton 2023, eq. 6). N_k, the mean square of the Gram matrix off its diagonal, does not
    change under permutations, so a permutation test of the fused statistic is exact.
    """
    lam = np.sqrt(pairs)
    scaled = lam * statistics / np.sqrt(np.asarray(mean_squares))[:, None]
    top = scaled.max(axis=0)
    return (top + np.log(np.mean(np.exp(scaled - top), axis=0))) / lam
