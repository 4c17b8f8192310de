"""The Hilbert-Schmidt independence criterion for the data and all permutations, and its fusion over kernels."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from meanmap.core.arrays import out_of_range
from meanmap.core.door import Door
from meanmap.core.points import slices
from meanmap.core.progress import track
from meanmap.core.types import Points
from meanmap.kernels.base import Kernel
from meanmap.kernels.gram import diagonal_array, gram_matrix
from meanmap.stats.independence.shifts import Shifts, correlations, feature_sums, lag_spectra, shift_sums
from meanmap.stats.permutations import Permuted

__all__ = [
    "Margins",
    "centre",
    "diagonal_sums",
    "fused_hsic",
    "largest_standardised",
    "one_hsic",
    "permuted_features",
    "permuted_hsic",
    "single_gram",
    "sums_of",
    "turned_spectra",
]

# A bound on the rounding error of Fourier transforms in single precision, relative to the spread of the sums over
# permutations. It is five times the error measured on numbers and labels with 50 to 1500 points.
SINGLE = 32 * float(np.finfo(np.float32).eps)
# Single precision can hold kernel values between this bound and its reciprocal, and their squares.
SMALL = 1e-15
# Rows that are centred at once, which stay in a core's cache.
ROWS = 64


@dataclass(frozen=True)
class Margins:
    """Summaries of a centred Gram matrix K̃ = H K H = A + H diag(d) H, where A is zero on the diagonal.

    A is the U-centred matrix of Székely & Rizzo (2014), K_ij − f_i − f_j off the diagonal, whose rows sum to zero.

    Attributes
    ----------
    level, spread : float, array (n,)
        The mean of d, and d less its mean.
    off : float
        The norm of A.
    largest : float
        The largest diagonal entry of K.
    unit : float
        The unit of all the numbers above.
    squared : bool
        Whether sums with A are found as sums with K̃ minus `diagonal_sums`, which adds to the rounding error.
    """

    level: float
    spread: np.ndarray
    off: float
    largest: float
    unit: float = 1.0
    squared: bool = False

    @classmethod
    def of_features(cls, phi: np.ndarray) -> "Margins":
        """The margins of K̃ = Φ Φᵀ for centred features Φ."""
        n, diagonal = len(phi), np.sum(phi**2, axis=1)
        level = diagonal.sum() / (n - 1)
        d = (diagonal - level / n) / (1 - 2 / n)
        inner = np.sum((phi.T @ phi) ** 2) - (n - 1) * level**2 - (1 - 2 / n) * np.sum((d - level) ** 2)
        return cls(float(level), d - level, float(np.sqrt(max(inner, 0))), float(diagonal.max()), squared=True)

    @property
    def norm(self) -> float:
        """The norm of K̃."""
        n = len(self.spread)
        return float(np.sqrt(self.off**2 + (n - 1) * self.level**2 + (1 - 2 / n) * np.sum(self.spread**2)))

    @property
    def is_zero(self) -> bool:
        """Whether the centred Gram matrix is zero up to rounding, as for a constant variable."""
        return bool(self.norm <= 1e-6 * len(self.spread) * self.largest)


def single_gram(kernel: Kernel, points: Points, door: Door, out: np.ndarray) -> float:
    """Fill `out` with the Gram matrix, in units that single precision can hold; return the unit, mostly 1."""
    largest = float(np.max(np.abs(diagonal_array(kernel, points, door))))
    if not np.isfinite(largest):
        raise out_of_range(f"a kernel value is {largest}")
    unit = 1.0 if SMALL < largest < 1 / SMALL or largest == 0 else largest
    gram_matrix(kernel if unit == 1.0 else kernel * (1 / unit), points, out=out)
    return unit


def centre(gram: np.ndarray, unit: float = 1.0) -> Margins:
    """Turn a Gram matrix K into A in place; single precision keeps seven digits, because no later step cancels them."""
    n, diagonal = len(gram), gram.diagonal().astype(float)
    np.fill_diagonal(gram, 0)
    rows = gram.sum(axis=1, dtype=float)
    if not np.isfinite(rows).all():
        raise out_of_range(f"the sum over a row of kernel values is {rows[~np.isfinite(rows)][0]}")
    f = (rows - rows.sum() / (2 * (n - 1))) / (n - 2)
    across, square = f.astype(gram.dtype), 0.0
    for part in slices(n, ROWS):
        some = gram[part]
        some -= across[part, None]
        some -= across
        some[np.arange(len(some)), np.arange(n)[part]] = 0
        square += float(np.sum(np.vecdot(some, some), dtype=float))
    d = diagonal - 2 * f
    return Margins(float(d.mean()), d - d.mean(), square**0.5, float(np.abs(diagonal).max()), unit)


def permuted_hsic(x: Iterable[np.ndarray], y: Iterable[np.ndarray], shifts: Shifts, behind: np.ndarray) -> np.ndarray:
    """Σ_ij A_ij B_π(i)π(j) for every kernel of x, kernel of y and permutation π, (p, q, 1 + B).

    `behind` (p, q) are the handicaps of `fused_hsic`. Pairs of kernels with an infinite handicap are left out: their
    sums are zeros.

    Each centred Gram matrix fills the first n columns of an (n, n + n // 2) array, which may be overwritten as soon as
    the next one is requested. The cost is O((p + q) n² log n + p q n²) for n permutations, and the memory that of p
    Gram matrices.
    """
    spectra = [lag_spectra(gram) for gram in track(x, "transforms")]
    columns = []
    for counted, gram in zip(np.isfinite(behind).T, track(y, "permutations"), strict=True):

        def of_order(order: np.ndarray, gram: np.ndarray = gram, counted: np.ndarray = counted) -> np.ndarray:
            return sums_of(spectra, turned_spectra(gram, order), counted, len(gram))

        columns.append(shifts.values(of_order))
    return np.stack(columns, axis=1)


def sums_of(first: list[np.ndarray], second: np.ndarray, counted: np.ndarray, n: int) -> np.ndarray:
    """Sums for all shifts, (p, n), from the spectra of each kernel of x and of one kernel of y."""
    return np.array([shift_sums(a, second, n) if c else np.zeros(n) for a, c in zip(first, counted, strict=True)])


def turned_spectra(gram: np.ndarray, order: np.ndarray) -> np.ndarray:
    """The transforms of a matrix (the first n columns of `gram`) whose rows and columns are reordered."""
    n = len(gram)
    if (order == np.arange(n)).all():
        return lag_spectra(gram)
    turned = np.empty_like(gram)
    turned[:, :n] = np.take(np.take(gram, order, axis=0), order, axis=1)  # a third of the time of both at once
    return lag_spectra(turned)


def permuted_features(
    phis: Sequence[np.ndarray], psis: Sequence[np.ndarray], shifts: Shifts, behind: np.ndarray
) -> np.ndarray:
    """Σ_ij K̃_ij L̃_π(i)π(j), shaped as in `permuted_hsic`, from centred features with K̃ = Φ Φᵀ and L̃ = Ψ Ψᵀ."""
    counted = np.isfinite(behind)
    return shifts.values(lambda order: feature_sums(phis, [psi[order] for psi in psis], counted, shifts.step))


def diagonal_sums(x: Margins, y: Margins, shifts: Shifts) -> np.ndarray:
    """Σ_ij K̃_ij L̃_π(i)π(j) − Σ_ij A_ij B_π(i)π(j) for each permutation: the part due to the diagonals d.

    The first sum divided by n² is the biased HSIC. The second divided by n (n − 3) is the unbiased one (Song et al.
    2012, eq. 5).
    """
    n = len(x.spread)
    paired = shifts.values(lambda order: correlations(x.spread, y.spread[order], shifts.step))
    return (n - 1) * x.level * y.level + (1 - 2 / n) * paired


def fused_hsic(sums: np.ndarray, x: list[Margins], y: list[Margins], shifts: Shifts, behind: np.ndarray) -> Permuted:
    """The largest standardised biased HSIC over all pairs of kernels, (1 + B,) from `permuted_hsic`.

    The statistic of each pair is standardised by its mean and standard deviation over all permutations, including the
    identity. Its handicap is then subtracted. None of these three depends on which permutation is the identity, so the
    permutation test of the largest is exact.
    """
    pairs = (
        (Permuted(sums[i, j] + diagonal_sums(x[i], y[j], shifts), _rounding(x[i], y[j])), float(behind[i, j]))
        for i, j in np.argwhere(np.isfinite(behind))
    )
    return largest_standardised(pairs, sums.shape[-1])


def largest_standardised(statistics: Iterable[tuple[Permuted, float]], size: int) -> Permuted:
    """The largest of several statistics, each standardised over its (1 + B,) values, minus its handicap."""
    found, rounding = [], 0.0
    for (values, error), behind in statistics:
        spread = float(values.std())
        # If no permutation changes the value (labels that are all different), the kernels carry no information.
        if spread > error:
            found.append((values - values.mean()) / spread - behind)
            rounding = max(rounding, error / spread)
    return Permuted(np.max(found, axis=0) if found else np.zeros(size), rounding)


def one_hsic(off: np.ndarray, x: Margins, y: Margins, statistic: str, shifts: Shifts) -> Permuted:
    """The biased, unbiased or normalised statistic of one kernel on each side, from `permuted_hsic`, (1 + B,)."""
    n, unit = len(x.spread), x.unit * y.unit
    if statistic == "unbiased":
        values, weight = off, unit / (n * (n - 3))
    else:
        values, weight = off + diagonal_sums(x, y, shifts), unit / n**2
        weight = 1 / (x.norm * y.norm) if statistic == "normalised" else weight
    return Permuted(weight * values, weight * _rounding(x, y))


def _rounding(x: Margins, y: Margins) -> float:
    """A bound on the rounding error of the sums of `permuted_hsic`."""
    n = len(x.spread)
    diagonals = n * x.level * y.level if x.squared or y.squared else 0.0
    return SINGLE * (x.off * y.off / n + diagonals)
