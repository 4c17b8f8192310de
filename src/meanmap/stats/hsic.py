"""The Hilbert-Schmidt independence criterion for the data and all permutations, and its fusion over kernels."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from meanmap.core.progress import track
from meanmap.stats.shifts import Shifts, correlations, feature_sums, lag_spectra, shift_sums

__all__ = ["Margins", "centre", "fused_hsic", "permuted_features", "permuted_hsic", "unbiased_hsic"]


@dataclass(frozen=True)
class Margins:
    """What is kept of a Gram matrix K when it is centred: its diagonal, its row sums, and the norm of K̃ = H K H."""

    diagonal: np.ndarray
    rows: np.ndarray
    norm: float

    @property
    def is_zero(self) -> bool:
        """Whether the variable is constant as far as this kernel sees."""
        return bool(self.norm <= 1e-6 * len(self.rows) * np.abs(self.diagonal).max())


def centre(gram: np.ndarray) -> Margins:
    """Centre a Gram matrix where it stands: single precision serves to seven digits, because nothing cancels later."""
    diagonal, rows = gram.diagonal().astype(float), gram.sum(axis=1, dtype=float)
    means = rows / len(gram)
    across, square = (means - means.mean()).astype(gram.dtype), 0.0
    for row, mean in zip(gram, means.astype(gram.dtype), strict=True):
        row -= mean
        row -= across
        square += float(row @ row)
    return Margins(diagonal, rows, square**0.5)


def permuted_hsic(x: Iterable[np.ndarray], y: Iterable[np.ndarray], shifts: Shifts) -> np.ndarray:
    """Σ_ij K̃_ij L̃_π(i)π(j) for every kernel of x, kernel of y and permutation π, (p, q, 1 + B).

    Each centred Gram matrix comes in the first n columns of an (n, n + n // 2) array and may be overwritten as soon as
    the next is asked for. Cost O((p + q) n² log n + p q n²) for n permutations; memory that of p Gram matrices.
    """
    spectra = [lag_spectra(gram) for gram in track(x, "transforms")]
    columns = []
    for gram in track(y, "permutations"):
        n = len(gram)

        def of_order(order: np.ndarray, gram: np.ndarray = gram, n: int = n) -> np.ndarray:
            if order is not shifts.orders[0]:
                turned = np.empty_like(gram)
                turned[:, :n] = gram[np.ix_(order, order)]
                gram = turned
            spectrum = lag_spectra(gram)
            return np.array([shift_sums(first, spectrum, n) for first in spectra])

        columns.append(shifts.values(of_order))
    return np.stack(columns, axis=1)


def permuted_features(phi: np.ndarray, psi: np.ndarray, shifts: Shifts) -> np.ndarray:
    """The same for one kernel each, from centred features with K̃ = Φ Φᵀ and L̃ = Ψ Ψᵀ, (1 + B,)."""
    return shifts.values(lambda order: feature_sums(phi, psi[order]))


def unbiased_hsic(
    sums: np.ndarray,
    rows: tuple[np.ndarray, np.ndarray],
    diagonals: tuple[np.ndarray, np.ndarray],
    shifts: Shifts,
) -> np.ndarray:
    """Song et al. (2012), eq. 5, from the centred sums and the row sums and diagonals of both Gram matrices."""
    n = len(rows[0])
    (row_x, row_y), (diagonal_x, diagonal_y) = rows, diagonals
    total_x, total_y = row_x.sum(), row_y.sum()
    # tr(K L) from the centred trace: centring subtracts row and total sums, which permute with y.
    paired_rows = shifts.values(lambda order: correlations(row_x, row_y[order]))
    trace = sums + 2 * paired_rows / n - total_x * total_y / n**2
    trace -= shifts.values(lambda order: correlations(diagonal_x, diagonal_y[order]))
    off_x, off_y = row_x - diagonal_x, row_y - diagonal_y
    crossed = shifts.values(lambda order: correlations(off_x, off_y[order]))
    product = off_x.sum() * off_y.sum()
    return (trace + product / ((n - 1) * (n - 2)) - 2 * crossed / (n - 2)) / (n * (n - 3))


def fused_hsic(sums: np.ndarray) -> np.ndarray:
    """The largest standardised value over all pairs of kernels, (1 + B,) from (p, q, 1 + B).

    Each pair is standardised by the mean and the spread of its own values under all permutations, the data's among
    them. No permutation changes these, so the largest is a statistic like any other, and its test is exact.
    """
    values = sums.reshape(-1, sums.shape[-1])
    mean, spread = values.mean(axis=1, keepdims=True), values.std(axis=1, keepdims=True)
    # Where no permutation changes the value (labels that are all different) the kernels say nothing.
    telling = (spread > 1e-5 * np.abs(mean)).ravel()
    if not telling.any():
        return np.zeros(sums.shape[-1])
    return np.max((values[telling] - mean[telling]) / spread[telling], axis=0)
