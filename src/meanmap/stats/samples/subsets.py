"""Sums of features over many random subsets of rows, a few subsets at a time."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
from scipy.sparse import csr_array

from meanmap.core.progress import track
from meanmap.features.base import Concatenated

__all__ = ["TIE", "blocks_of", "subset_sums"]

# Statistics that differ by less than this, for the largest of them or of the terms that cancel in them, tie: sums in
# another order round differently.
TIE = 1e-9
# So many rows are picked at once: 64 MB, however large subsets are.
PICKED = 1 << 22
# Subsets of more rows are added up by products of dense matrices, which read memory in order: ten times as fast.
DENSE = 1 << 11


def blocks_of(features: Concatenated, phi: np.ndarray) -> list[np.ndarray]:
    """The columns of each kernel."""
    return np.split(phi, np.cumsum([member.size for member in features.members])[:-1], axis=1)


def subset_sums(
    subsets: Iterable[np.ndarray], number: int, size: int, features: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """For each matrix of features the sums over each of so many subsets of `size` rows, (number, width).

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
    """Matrices that pick the rows of some subsets, one in each row."""
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
