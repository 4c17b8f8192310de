"""Permutations of a two-sample statistic as one matrix product."""

from abc import abstractmethod
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from meanmap.core.arrays import out_of_range
from meanmap.core.points import pieces, slices
from meanmap.core.progress import track
from meanmap.stats.designs.exchanges import Exchange

__all__ = [
    "BLOCK",
    "SINGLE",
    "SQUARED",
    "Centred",
    "CentredFeatures",
    "CentredGram",
    "Permuted",
    "assignments",
    "flipped_mmd",
    "permuted_mmd",
    "root_mean_square",
]

# Blocks of this many permutations regardless of memory: the same sums, hence the same p-value, on every machine.
BLOCK = 250
# Rounding of sums in single precision, for the sum of the absolute values of their terms.
SINGLE = 2 * float(np.finfo(np.float32).eps)
# The same of features, whose sums are squared before they are small.
SQUARED = 8 * SINGLE
# Rounding of n² kernel values in double precision, for the largest of them and n.
DOUBLE = 8 * float(np.finfo(float).eps)
# Sums of squares of values between this and its inverse neither overflow nor vanish.
SAFE = 1e-100


class Permuted(NamedTuple):
    """A statistic for the data and for each draw (1 + B,), and a bound on its rounding error."""

    values: np.ndarray
    rounding: float


def assignments(n: int, m: int, n_permutations: int, generator: np.random.Generator) -> np.ndarray:
    """Indicators of the first sample, rows of zeros and ones, (1 + B, n + m). The first row is the data."""
    return Exchange.of(n + m).labels(np.repeat(np.array([1, 0], np.float32), [n, m]), n_permutations, generator)


class Centred:
    """A pooled Gram matrix K of N points in two parts, K̃ = H K H = A + H diag(d) H.

    A is K off its diagonal, K_ij − f_i − f_j, so that its rows sum to zero, and zero on the diagonal (the U-centred
    matrix of Székely & Rizzo 2014). With z the indicator of the first sample the sums of A within x, within y and, with
    the other sign, between them are all zᵀ A z: one quadratic form without cancellation, which single precision serves
    to seven digits, and which is exactly zero where no two points are alike.

    Attributes
    ----------
    level, spread : float, array (N,)
        The mean of d, and d less its mean.
    norm : float
        The root mean square of K off its diagonal, by which MMD-FUSE normalises.

    Several matrices at once have one more axis in front.
    """

    level: Any
    spread: np.ndarray
    norm: Any

    def forms(self, z: np.ndarray) -> np.ndarray:
        """zᵀ A z for each row of `z`, in blocks of rows."""
        return np.concatenate([self._forms(block) for block in track(pieces(z, BLOCK), "permutations")])

    def of_groups(self, labels: np.ndarray, number: int) -> np.ndarray:
        """zᵀ A z of each group for each row of labels, (groups, rows). Groups are all points, and A of ones is 0."""
        found = np.empty((number, len(labels)))
        for part in track(slices(len(labels), BLOCK), "permutations"):
            rest: Any = 0.0
            for g in range(number):
                z = (labels[part] == g).astype(np.float32)
                sent = -rest if g == number - 1 else self._sent(z)
                found[g, part], rest = self._form(z, sent), rest + sent
        return found

    def own(self, z: np.ndarray) -> np.ndarray:
        """zᵀ d less its mean, for each row of `z`."""
        return np.concatenate([block @ self.spread for block in pieces(z, BLOCK)])

    @abstractmethod
    def rounding(self, n: int) -> float:
        """A bound on the rounding error of a form with n points in the first sample."""

    def _forms(self, z: np.ndarray) -> np.ndarray:
        """zᵀ A z for each row of one block."""
        return self._form(z, self._sent(z))

    @abstractmethod
    def _sent(self, z: np.ndarray) -> np.ndarray:
        """The linear function of z from which its form is computed, 0 for ones."""

    @abstractmethod
    def _form(self, z: np.ndarray, sent: np.ndarray) -> np.ndarray:
        """zᵀ A z for each row of z from `_sent`."""


class CentredGram(Centred):
    """From the Gram matrix itself: O(N²) for each row."""

    def __init__(self, gram: np.ndarray):
        size = len(gram)
        self._unit, off = _off_diagonal(gram)
        self.norm = self._unit * _root_mean_square(off)
        rows = off.sum(axis=1)
        f = (rows - rows.sum() / (2 * (size - 1))) / (size - 2)
        off -= f[:, None]
        off -= f[None, :]
        np.fill_diagonal(off, 0)
        d = gram.diagonal() - 2 * self._unit * f
        self.level, self.spread = float(d.mean()), d - d.mean()
        self._total = float(np.abs(off).sum())
        self._off = off.astype(np.float32)

    def rounding(self, n: int) -> float:
        """Rounding of products in single precision, and of the kernel values."""
        size = len(self._off)
        share = n * (size - n) / size**2
        return self._unit * (SINGLE * self._total * share + DOUBLE * size) if self._total else 0.0

    def _sent(self, z: np.ndarray) -> np.ndarray:
        return z @ self._off

    def _form(self, z: np.ndarray, sent: np.ndarray) -> np.ndarray:
        return self._unit * np.einsum("ij,ij->i", z, sent, dtype=np.float64)


class CentredFeatures(Centred):
    """From features with K = Φ Φᵀ: O(N r) for each row."""

    def __init__(self, phi: np.ndarray):
        size, self._unit = len(phi), _largest(phi)
        self._phi = phi = phi / self._unit
        centred = phi - phi.mean(axis=0)
        diagonal = np.einsum("ij,ij->i", centred, centred)
        # The diagonal of H diag(d) H, solved for d.
        level = diagonal.sum() / (size - 1)
        d = (diagonal - level / size) / (1 - 2 / size)
        self._d, self._mean = d, level
        self.level, self.spread = self._unit**2 * level, self._unit**2 * (d - level)
        self._centred = centred.astype(np.float32)

    @cached_property
    def norm(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Computed on demand, because it is not needed for units."""
        phi, size = self._phi, len(self._phi)
        squares = np.einsum("ij,ij->i", phi, phi)
        off = np.sum((phi.T @ phi) ** 2) - squares @ squares
        return self._unit**2 * float(np.sqrt(max(off, 0) / (size * (size - 1))))

    def rounding(self, n: int) -> float:
        """Rounding of a square from which the sum over the diagonal is subtracted."""
        size = len(self._d)
        return self._unit**2 * SQUARED * size * self._mean * n * (size - n) / size**2

    def _sent(self, z: np.ndarray) -> np.ndarray:
        return z @ self._centred

    def _form(self, z: np.ndarray, sent: np.ndarray) -> np.ndarray:
        size, n = len(self._d), z.sum(axis=1, dtype=float)
        own = (1 - 2 * n / size) * (z @ self._d) + n**2 / size * self._mean
        return self._unit**2 * (np.square(sent).sum(axis=1, dtype=np.float64) - own)


def permuted_mmd(gram: Centred, z: np.ndarray, n: int, unbiased: bool) -> Permuted:
    """MMD² for each row of `z`: the statistic first, then its permutations.

    Unbiased leaves i = j out within each sample (Gretton et al. 2012, eq. 3), biased keeps them (eq. 5).
    """
    size = z.shape[1]
    m = size - n
    forms = gram.forms(z)
    if unbiased:
        weight = 1 / (n * (n - 1)) + 1 / (m * (m - 1)) + 2 / (n * m)
        return Permuted(weight * forms, weight * gram.rounding(n))
    weight = (1 / n + 1 / m) ** 2
    values = forms + (1 - 2 * n / size) * gram.own(z) + n * m / size * gram.level
    return Permuted(weight * values, weight * gram.rounding(n))


def flipped_mmd(gram: np.ndarray, z: np.ndarray, unbiased: bool) -> Permuted:
    """MMD² of n pairs for each row of signs ε in `z`: Σ εᵢ εⱼ h_ij / n², or over i ≠ j / n(n − 1).

    h_ij = k(xᵢ, xⱼ) + k(yᵢ, yⱼ) − k(xᵢ, yⱼ) − k(xⱼ, yᵢ): to exchange xᵢ and yᵢ is to change the sign of εᵢ, so random
    signs, the wild bootstrap, are permutations within pairs and as exact (Schrab et al. 2023, section 3.2).
    """
    n = z.shape[1]
    unit, off = _off_diagonal(gram)
    cross = off[:n, n:]
    h = off[:n, :n] + off[n:, n:] - cross - cross.T
    trace = gram.trace() / unit + h.trace()
    np.fill_diagonal(h, 0)
    rounding = SINGLE * float(np.abs(h).sum()) + DOUBLE * 2 * n
    h = h.astype(np.float32)
    forms = np.concatenate(
        [np.einsum("ij,ij->i", block, block @ h, dtype=np.float64) for block in track(pieces(z, BLOCK), "signs")]
    )
    values, weight = (forms, unit / (n * (n - 1))) if unbiased else (forms + trace, unit / n**2)
    return Permuted(weight * values, weight * rounding)


def root_mean_square(gram: np.ndarray) -> float:
    """The root mean square of a Gram matrix off its diagonal."""
    size = len(gram)
    off = np.ascontiguousarray(gram).ravel()[:-1].reshape(size - 1, size + 1)[:, 1:]  # no copy of many values
    _largest(gram.diagonal())
    with np.errstate(all="ignore"):
        total = float(np.einsum("ij,ij->", off, off))
    if SAFE < total < 1 / SAFE:
        return float(np.sqrt(total / off.size))
    unit = _largest(off)  # of numbers that are very large or small, or refused
    scaled = off / unit
    return unit * float(np.sqrt(np.einsum("ij,ij->", scaled, scaled) / off.size))


def _root_mean_square(off: np.ndarray) -> float:
    return float(np.sqrt(np.einsum("ij,ij->", off, off) / (len(off) * (len(off) - 1))))


def _off_diagonal(gram: np.ndarray) -> tuple[float, np.ndarray]:
    """The largest absolute value off the diagonal, and the matrix in units of it with a diagonal of zeros."""
    _largest(gram.diagonal())
    off = gram.copy()
    np.fill_diagonal(off, 0)
    unit = _largest(off)
    off /= unit
    return unit, off


def _largest(values: np.ndarray) -> float:
    """The largest absolute value, 1 if all are zero; infinite values are refused."""
    largest = max(float(values.max()), -float(values.min()))
    if not np.isfinite(largest):
        raise out_of_range(f"a kernel value is {largest}")
    return largest or 1.0
