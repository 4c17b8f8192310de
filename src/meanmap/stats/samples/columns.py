"""The maximum mean discrepancy in one column at a time, under a Laplace kernel, without Gram matrices."""

from collections.abc import Sequence

import numpy as np

from meanmap.core.progress import track
from meanmap.kernels.stationary import Laplace
from meanmap.stats.permutations import Centred, Permuted, permuted_mmd

__all__ = ["column_statistics"]

# So many sums of decaying terms are carried along at once: they stay in cache.
AT_ONCE = 2**15
# Rounding of sums of n terms between 0 and 1 in double precision, for n.
DOUBLE = 8 * float(np.finfo(float).eps)


class Column(Centred):
    """One column, of which `forms` are found together with those of the others."""

    def __init__(self, sums: np.ndarray, norm: float, found: np.ndarray):
        size = len(sums)
        self._found = found
        self._f = (sums - sums.sum() / (2 * (size - 1))) / (size - 2)
        self.norm, self.level = norm, float(np.mean(1 - 2 * self._f))
        self.spread = -2 * (self._f - self._f.mean())

    def forms(self, z: np.ndarray) -> np.ndarray:
        """zᵀ A z = zᵀ K z off the diagonal, less what the sums of rows take."""
        weighed = z @ self._f
        return self._found - 2 * weighed * (z.sum(axis=1, dtype=float) - 1)

    def rounding(self, n: int) -> float:
        """Of sums in double precision."""
        return DOUBLE * n * len(self._f)


def column_statistics(
    kernels: Sequence[Laplace], pooled: np.ndarray, z: np.ndarray, n: int, unbiased: bool
) -> tuple[list[Permuted], list[float]]:
    """MMD² under the kernel of each column for each row of `z`, and the norms of these kernels.

    In order along a line exp(−|x − y| / ℓ) is the product of the steps between: sums over all pairs are found in one
    pass, O(N) for each row of `z` and column where a Gram matrix costs O(N²).
    """
    scales = np.array([np.min(kernel.lengthscale) for kernel in kernels])
    places = [int(np.argmin(kernel.lengthscale)) for kernel in kernels]
    columns = np.ascontiguousarray(pooled[:, places].T)
    size = columns.shape[1]
    order = np.argsort(columns, axis=1, kind="stable")
    with np.errstate(over="ignore"):  # steps of 1e150 in a unit of 1e-160
        steps = np.exp(-np.diff(np.take_along_axis(columns, order, axis=1), axis=1) / scales[:, None])
    sums = np.empty_like(columns)
    np.put_along_axis(sums, order, _before(steps) + _before(steps[:, ::-1])[:, ::-1], axis=1)
    # Squares have half the lengthscale.
    norms = np.sqrt(2 * _before(steps**2).sum(axis=1) / (size * (size - 1)))
    rows = max(1, AT_ONCE // len(kernels))
    blocks = [z[start : start + rows] for start in range(0, len(z), rows)]
    found = np.concatenate([_forms(steps, order, block) for block in track(blocks, "permutations")], axis=1)
    held = [Column(*each) for each in zip(sums, norms, found, strict=True)]
    return [permuted_mmd(column, z, n, unbiased) for column in held], [float(norm) for norm in norms]


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
