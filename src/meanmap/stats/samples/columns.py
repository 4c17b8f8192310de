"""The maximum mean discrepancy in one column at a time, under a Laplace kernel, without Gram matrices."""

from collections.abc import Callable, Sequence

import numpy as np

from meanmap.core.points import pieces
from meanmap.core.progress import track
from meanmap.kernels.stationary import Laplace
from meanmap.stats.permutations import Centred, Permuted

__all__ = ["column_statistics"]

# So many sums of decaying terms are carried along at once: they stay in cache.
AT_ONCE = 2**15
# Rounding of sums of n terms between 0 and 1 in double precision, for n.
DOUBLE = 8 * float(np.finfo(float).eps)


class Columns(Centred):
    """The Gram matrices of one kernel for each column, never formed: columns are the first axis of all they tell.

    In order along a line exp(−|x − y| / ℓ) is the product of the steps between: sums over all pairs are found in one
    pass, O(N) for each row of `z` and column where a Gram matrix costs O(N²).
    """

    def __init__(self, kernels: Sequence[Laplace], pooled: np.ndarray):
        scales = np.array([np.min(kernel.lengthscale) for kernel in kernels])
        places = [int(np.argmin(kernel.lengthscale)) for kernel in kernels]
        columns = np.ascontiguousarray(pooled[:, places].T)
        size = columns.shape[1]
        order = np.argsort(columns, axis=1, kind="stable")
        with np.errstate(over="ignore"):  # steps of 1e150 in a unit of 1e-160
            steps = np.exp(-np.diff(np.take_along_axis(columns, order, axis=1), axis=1) / scales[:, None])
        # Before and behind each point, and of squares, which have half the lengthscale.
        before, behind, squares = np.split(_before(np.concatenate([steps, steps[:, ::-1], steps**2])), 3)
        sums = np.empty_like(columns)
        np.put_along_axis(sums, order, before + behind[:, ::-1], axis=1)
        self._order, self._steps = order, steps
        self._f = (sums - sums.sum(axis=1, keepdims=True) / (2 * (size - 1))) / (size - 2)
        mean = self._f.mean(axis=1, keepdims=True)
        self.level, self.spread = 1 - 2 * mean, 2 * (mean - self._f)
        self.norm = np.sqrt(2 * squares.sum(axis=1) / (size * (size - 1)))

    def forms(self, z: np.ndarray) -> np.ndarray:
        """zᵀ A z = zᵀ K z off the diagonal, less what the sums of rows take; (d, B)."""
        rows = max(1, AT_ONCE // len(self._f))
        found = [_forms(self._steps, self._order, block) for block in track(pieces(z, rows), "permutations")]
        return np.concatenate(found, axis=1) - 2 * (self._f @ z.T) * (z.sum(axis=1, dtype=float) - 1)

    def own(self, z: np.ndarray) -> np.ndarray:
        """zᵀ d less its mean, (d, B)."""
        return self.spread @ z.T

    def rounding(self, n: int) -> float:
        """Of sums in double precision."""
        return DOUBLE * n * self._f.shape[1]


def column_statistics(
    kernels: Sequence[Laplace], pooled: np.ndarray, statistic: Callable[[Centred], Permuted]
) -> tuple[list[Permuted], list[float]]:
    """A statistic of centred Gram matrices under the kernel of each column, and the norms of these kernels."""
    if not kernels:
        return [], []
    columns = Columns(kernels, pooled)
    found = statistic(columns)
    return [Permuted(values, found.rounding) for values in found.values], columns.norm.tolist()


def _before(steps: np.ndarray) -> np.ndarray:
    """Σ k(xᵢ, xⱼ) over the points before each in order, (d, N)."""
    sums = np.zeros((len(steps), steps.shape[1] + 1))
    for i, step in enumerate(steps.T):
        sums[:, i + 1] = (sums[:, i] + 1) * step
    return sums


def _forms(steps: np.ndarray, order: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Σ zᵢ zⱼ k(xᵢ, xⱼ) over i ≠ j for each column and row of `z`, (d, B)."""
    turned = np.ascontiguousarray(z.T, dtype=float)
    here = turned[order[:, 0]]
    carried, total = np.zeros_like(here), np.zeros_like(here)
    for step, place in zip(steps.T, order[:, 1:].T, strict=True):
        carried += here
        carried *= step[:, None]
        here = turned[place]
        total += here * carried
    return 2 * total
