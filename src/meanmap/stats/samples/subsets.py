"""Sums of features over many random subsets of rows, a few subsets at a time."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import numpy as np
from scipy.sparse import csr_array

from meanmap.core.progress import track
from meanmap.features.base import Concatenated
from meanmap.stats.collections import fused
from meanmap.stats.permutations import Permuted
from meanmap.stats.samples.scores import Scores, judged

__all__ = ["TIE", "among_subsets", "blocks_of", "subset_sums", "with_columns"]

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
    scores: Scores | None = None,
) -> Permuted:
    """The fused unbiased MMD² of the last `size` points against the others, and of random subsets of that size.

    With `scores` of all points it is combined with the evidence of single columns and of relations between columns.
    """
    total, rest = len(both), len(both) - size
    blocks = blocks_of(features, both)
    if scores is not None:
        blocks.append(scores.products_of_rows(generator))
    blocks = [block - block.mean(axis=0) for block in blocks]  # so sums of the other points are minus the subset's
    norms = [np.einsum("ij,ij->i", block, block) for block in blocks]
    drawn = (generator.choice(total, size, replace=False, shuffle=False) for _ in range(n_draws))
    summed = [*blocks, *norms, *([] if scores is None else [scores.matrix, scores.each_pair])]
    added = subset_sums(chain([np.arange(rest, total)], drawn), 1 + n_draws, size, summed)
    found = []
    for own, sums, inside in zip(norms, added, added[len(blocks) :], strict=False):
        q = np.einsum("ij,ij->i", sums, sums)
        outside = own.sum() - inside
        values = (q - inside) / (size * (size - 1)) + (q - outside) / (rest * (rest - 1)) + 2 * q / (size * rest)
        found.append(Permuted(values, TIE * float(own.mean()) / size))
    sizes = [square**0.5 for square in mean_squares]
    kernels = fused(found[: len(sizes)], sizes, float(np.sqrt(size * (size - 1.0))))[0]
    return kernels if scores is None else with_columns(kernels, found[-1], added[-2:], scores)


def with_columns(kernels: Permuted, pairs: Permuted, sums: Sequence[np.ndarray], scores: Scores) -> Permuted:
    """The evidence of kernels, of relations between columns and of columns combined, from sums of scores and of their
    products for pairs.
    """
    own, of_pairs = (_standardised(each) for each in sums)
    shares = np.log(scores.shares)
    return judged(kernels, pairs, own, shares, lambda part: part, len(scores.names), of_pairs)[0]


def _standardised(sums: np.ndarray) -> np.ndarray:
    """Squares of sums, in units of their mean over subsets."""
    squares = sums**2
    return squares / np.maximum(squares.mean(axis=0), np.finfo(float).tiny)


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
