"""Sums of features over many random subsets of rows, a few subsets at a time."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import numpy as np
from scipy.sparse import csr_array

from meanmap.core.progress import track
from meanmap.features.base import Concatenated
from meanmap.stats.collections import fused
from meanmap.stats.permutations import Permuted

__all__ = ["TIE", "among_subsets", "blocks_of", "subset_sums"]

# Statistics tie if they differ by less than this, relative to the largest of them or of the terms that cancel in them,
# because sums in another order round differently.
TIE = 1e-9
# This many rows are selected at a time, which takes 64 MB for subsets of any size.
PICKED = 1 << 22
# Subsets of more rows are summed by products of dense matrices, which read memory in order and are ten times as fast.
DENSE = 1 << 11


def blocks_of(features: Concatenated, phi: np.ndarray) -> list[np.ndarray]:
    """The columns of each kernel."""
    return np.split(phi, np.cumsum([member.size for member in features.members])[:-1], axis=1)


def among_subsets(
    features: Concatenated,
    both: np.ndarray,
    size: int,
    mean_squares: Sequence[float],
    n_draws: int,
    generator: np.random.Generator,
) -> Permuted:
    """The fused unbiased MMD² of the last `size` points against the others, and of random subsets of that size."""
    total, rest = len(both), len(both) - size
    drawn = (generator.choice(total, size, replace=False, shuffle=False) for _ in range(n_draws))
    centred = both - both.mean(axis=0)  # so the sums of the other points are minus those of the subset
    found = []
    blocks = blocks_of(features, centred)
    norms = [np.einsum("ij,ij->i", block, block) for block in blocks]
    added = subset_sums(chain([np.arange(rest, total)], drawn), 1 + n_draws, size, [*blocks, *norms])
    for own, sums, inside in zip(norms, added[: len(blocks)], added[len(blocks) :], strict=True):
        q = np.einsum("ij,ij->i", sums, sums)
        outside = own.sum() - inside
        values = (q - inside) / (size * (size - 1)) + (q - outside) / (rest * (rest - 1)) + 2 * q / (size * rest)
        found.append(Permuted(values, TIE * float(own.mean()) / size))
    sizes = [square**0.5 for square in mean_squares]
    return fused(found, sizes, float(np.sqrt(size * (size - 1.0))))[0]


def subset_sums(
    subsets: Iterable[np.ndarray], number: int, size: int, features: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """For each matrix of features the sums over each of this many subsets of `size` rows, (number, width).

    Examples
    --------
    >>> rows = np.array([[1.0], [2.0], [4.0]])
    >>> subset_sums([np.array([0, 1]), np.array([1, 2])], 2, 2, [rows])[0].tolist()
    [[3.0], [6.0]]
    """
    total = len(features[0])
    at_once = max(1, PICKED // (total if size > DENSE else size))
    parts = [
        [pick @ block for block in features]
        for pick in track(_picked(iter(subsets), size, total, at_once), "subsets", -(-number // at_once))
    ]
    return [np.concatenate(each) for each in zip(*parts, strict=True)]


def _picked(subsets: Iterator[np.ndarray], size: int, total: int, at_once: int) -> Iterator[csr_array | np.ndarray]:
    """Matrices that select the rows of some subsets, one in each row."""
    while held := list(islice(subsets, at_once)):
        if size > DENSE:
            pick = np.zeros((len(held), total))
            for row, chosen in zip(pick, held, strict=True):
                row[chosen] = 1.0
        else:
            chosen = np.concatenate(held)
            starts = np.arange(0, len(chosen) + 1, size)
            pick = csr_array((np.ones(len(chosen)), chosen, starts), shape=(len(held), total))
        yield pick
