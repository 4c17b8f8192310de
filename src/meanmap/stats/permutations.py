"""Permutations of a two-sample statistic as one matrix product."""

from abc import abstractmethod

import numpy as np

from meanmap.core.progress import track

__all__ = ["BLOCK", "Centred", "CentredFeatures", "CentredGram", "assignments", "flipped_mmd", "permuted_mmd", "signs"]

# Blocks of this many permutations whatever the memory: the same sums, hence the same p-value, on every machine.
BLOCK = 250


def assignments(n: int, m: int, n_permutations: int, generator: np.random.Generator) -> np.ndarray:
    """Rows of zeros and ones, (1 + B, n + m): who is in the first sample. The first row is the data."""
    z = np.zeros((n_permutations + 1, n + m), dtype=np.float32)
    z[:, :n] = 1
    z[1:] = generator.permuted(z[1:], axis=1)
    return z


def signs(n: int, n_draws: int, generator: np.random.Generator) -> np.ndarray:
    """Rows of random signs, (1 + B, n): which pairs are exchanged. The first row, all ones, is the data."""
    z = np.ones((n_draws + 1, n), np.float32)
    z[1:] = generator.choice(np.array([-1, 1], np.float32), (n_draws, n))
    return z


class Centred:
    """A pooled Gram matrix centred once, K̃ = H K H, which changes neither MMD² nor its unbiased form.

    With z the indicator of the first sample, MMD² = (1/n + 1/m)² zᵀ K̃ z: one quadratic form without cancellation, which
    single precision serves to seven digits. Attributes: the `diagonal` of K̃, and the `mean_square` of the entries of K
    off the diagonal, by which MMD-FUSE normalises.
    """

    diagonal: np.ndarray
    mean_square: float

    def forms(self, z: np.ndarray) -> np.ndarray:
        """zᵀ K̃ z for each row of `z`, in blocks of rows."""
        return np.concatenate([self._forms(block) for block in track(_blocks(z), "permutations")])

    @abstractmethod
    def _forms(self, z: np.ndarray) -> np.ndarray:
        """The same for one block."""


class CentredGram(Centred):
    """From the Gram matrix itself: O(N²) for each row."""

    def __init__(self, gram: np.ndarray):
        self.mean_square = _off_diagonal(np.einsum("ij,ij->", gram, gram), gram.diagonal())
        means = gram.mean(axis=1)
        centred = gram - means[:, None]
        centred -= means[None, :]
        centred += means.mean()
        self.diagonal = centred.diagonal().copy()
        self.centred = centred.astype(np.float32)

    def _forms(self, z: np.ndarray) -> np.ndarray:
        return np.einsum("ij,ij->i", z, z @ self.centred, dtype=np.float64)


class CentredFeatures(Centred):
    """From features with K = Φ Φᵀ: O(N r) for each row."""

    def __init__(self, phi: np.ndarray):
        self.mean_square = _off_diagonal(np.sum((phi.T @ phi) ** 2), np.einsum("ij,ij->i", phi, phi))
        centred = phi - phi.mean(axis=0)
        self.diagonal = np.einsum("ij,ij->i", centred, centred)
        self.centred = centred.astype(np.float32)

    def _forms(self, z: np.ndarray) -> np.ndarray:
        return np.square(z @ self.centred).sum(axis=1, dtype=np.float64)


def permuted_mmd(gram: Centred, z: np.ndarray, n: int, unbiased: bool) -> np.ndarray:
    """MMD² for each row of `z`: the statistic first, then its permutations.

    Unbiased leaves i = j out within each sample (Gretton et al. 2012, eq. 3), biased keeps them (eq. 5). The rows of K̃
    sum to zero, so all three of its blocks follow from q = zᵀ K̃ z: q within x, q within y, −q between them.
    """
    m = z.shape[1] - n
    q = gram.forms(z)
    if not unbiased:
        return (1 / n + 1 / m) ** 2 * q
    own_x = np.concatenate([block @ gram.diagonal.astype(np.float32) for block in _blocks(z)]).astype(float)
    own_y = gram.diagonal.sum() - own_x
    return (q - own_x) / (n * (n - 1)) + (q - own_y) / (m * (m - 1)) + 2 * q / (n * m)


def flipped_mmd(gram: np.ndarray, z: np.ndarray, unbiased: bool) -> np.ndarray:
    """MMD² of n pairs for each row of signs ε in `z`: Σ εᵢ εⱼ h_ij / n², or over i ≠ j / n(n − 1).

    h_ij = k(xᵢ, xⱼ) + k(yᵢ, yⱼ) − k(xᵢ, yⱼ) − k(xⱼ, yᵢ): to exchange xᵢ and yᵢ is to change the sign of εᵢ, so random
    signs, the wild bootstrap, are permutations within pairs and as exact (Schrab et al. 2023, section 3.2).
    """
    n = z.shape[1]
    cross = gram[:n, n:]
    h = (gram[:n, :n] + gram[n:, n:] - cross - cross.T).astype(np.float32)
    forms = np.concatenate(
        [np.einsum("ij,ij->i", block, block @ h, dtype=np.float64) for block in track(_blocks(z), "signs")]
    )
    return (forms - np.trace(h, dtype=np.float64)) / (n * (n - 1)) if unbiased else forms / n**2


def _blocks(z: np.ndarray) -> list[np.ndarray]:
    return [z[start : start + BLOCK] for start in range(0, len(z), BLOCK)]


def _off_diagonal(sum_of_squares: float, diagonal: np.ndarray) -> float:
    size = len(diagonal)
    return float(sum_of_squares - diagonal @ diagonal) / (size * (size - 1))
