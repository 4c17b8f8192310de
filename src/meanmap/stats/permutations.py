"""Permutations of a two-sample statistic as one matrix product."""

import numpy as np

__all__ = ["CentredGram", "assignments", "permuted_mmd"]

# Blocks of this many permutations whatever the memory: the same sums, hence the same p-value, on every machine.
BLOCK = 250


def assignments(n: int, m: int, n_permutations: int, generator: np.random.Generator) -> np.ndarray:
    """Columns of zeros and ones, (n + m, 1 + B): who is in the first sample. The first column is the data."""
    base = np.zeros((n_permutations + 1, n + m), dtype=np.float32)
    base[:, :n] = 1
    base[1:] = generator.permuted(base[1:], axis=1)
    return base.T


class CentredGram:
    """A pooled Gram matrix centred once, K̃ = H K H, with what is needed to undo it.

    With z the indicator of the first sample, MMD² = (1/n + 1/m)² zᵀ K̃ z: one quadratic form without cancellation, which
    single precision serves to seven digits.
    """

    def __init__(self, gram: np.ndarray):
        self.diagonal = gram.diagonal().copy()
        self.means = gram.mean(axis=1)
        self.mean = float(self.means.mean())
        # Mean square of the entries off the diagonal, the normalisation of MMD-FUSE.
        size = len(gram)
        squares = float(np.einsum("ij,ij->", gram, gram) - self.diagonal @ self.diagonal)
        self.mean_square = squares / (size * (size - 1))
        centred = gram - self.means[:, None]
        centred -= self.means[None, :]
        centred += self.mean
        self.centred = centred.astype(np.float32)

    def forms(self, z: np.ndarray) -> np.ndarray:
        """zᵀ K̃ z for each column."""
        parts = []
        for start in range(0, z.shape[1], BLOCK):
            block = np.ascontiguousarray(z[:, start : start + BLOCK])
            parts.append(np.einsum("ij,ij->j", block, self.centred @ block, dtype=np.float64))
        return np.concatenate(parts)


def permuted_mmd(gram: CentredGram, z: np.ndarray, n: int, unbiased: bool) -> np.ndarray:
    """MMD² for each column of `z`: the statistic first, then its permutations.

    Unbiased leaves i = j out within each sample (Gretton et al. 2012, eq. 3), biased keeps them (eq. 5).
    """
    size = len(gram.diagonal)
    m = size - n
    centred = gram.forms(z)
    if not unbiased:
        return (1 / n + 1 / m) ** 2 * centred
    first = z.T @ gram.means
    within_x = centred + 2 * n * first - n * n * gram.mean
    total, to_all = size**2 * gram.mean, size * first
    cross = to_all - within_x
    within_y = total - within_x - 2 * cross
    trace_x = z.T @ gram.diagonal
    trace_y = gram.diagonal.sum() - trace_x
    return (within_x - trace_x) / (n * (n - 1)) + (within_y - trace_y) / (m * (m - 1)) - 2 * cross / (n * m)
