"""Documents carried from language to language by linear maps between words: what a practitioner would take.

Each is learned from the pairs of one edge. `carried` gives words of the other language, as a query for the next edge;
`alike` compares documents of both languages, (queries, candidates). Side 0 is the first language and 1 the second.
Settings were chosen on two splits of seed 71, which is not reported: ridges from 0.01, 0.1, 1 (and 10 for
correlations), dimensions from 25, 50 and 99.
"""

from typing import Any

import numpy as np

__all__ = ["Canonical", "Regression", "Semantic", "cosines"]


class Regression:
    """Ridge regression of the words of one language on those of the other.

    Attributes
    ----------
    ridge : float
        Added to the eigenvalues of the Gram matrix of documents, which have length one.
    """

    ridge = 0.1

    def __init__(self, first: Any, second: Any):
        self.pairs = first, second

    def carried(self, documents: Any, side: int) -> np.ndarray:
        """The words that are expected in the other language."""
        here, there = self.pairs[side], self.pairs[1 - side]
        gram = _products(here, here) + self.ridge * np.eye(here.shape[0])
        return np.linalg.solve(gram, _products(here, documents)).T @ _dense(there)

    def alike(self, queries: Any, candidates: Any, side: int) -> np.ndarray:
        """Cosines of the expected and the actual words."""
        return cosines(self.carried(queries, side), candidates)


class Semantic:
    """Latent semantic indexing of the two documents of a pair laid side by side (Dumais et al. 1997).

    Attributes
    ----------
    dimensions : int
        The number of singular vectors kept.
    """

    dimensions = 99

    def __init__(self, first: Any, second: Any):
        values, vectors = np.linalg.eigh(_products(first, first) + _products(second, second))
        kept = slice(-self.dimensions, None)
        onto = vectors[:, kept] / np.sqrt(values[kept])
        self.sides = _dense(first).T @ onto, _dense(second).T @ onto

    def carried(self, documents: Any, side: int) -> np.ndarray:
        """The projection onto the words of the other language."""
        return documents @ self.sides[side] @ self.sides[1 - side].T

    def alike(self, queries: Any, candidates: Any, side: int) -> np.ndarray:
        """Cosines in the space of the singular vectors."""
        return cosines(queries @ self.sides[side], candidates @ self.sides[1 - side])


class Canonical:
    """Canonical correlations of the words of two languages, with a ridge on both covariances.

    Attributes
    ----------
    ridge : float
        Added to the eigenvalues of both scatter matrices.
    """

    ridge = 1.0

    def __init__(self, first: Any, second: Any):
        self.means, bases = [], []
        for pairs in map(_dense, (first, second)):
            self.means.append(pairs.mean(axis=0))
            left, scales, right = np.linalg.svd(pairs - self.means[-1], full_matrices=False)
            bases.append((left, scales, np.sqrt(scales**2 + self.ridge), right))
        shrunk = [left * (scales / whole) for left, scales, whole, _ in bases]
        one, self.correlations, other = np.linalg.svd(shrunk[0].T @ shrunk[1], full_matrices=False)
        turns = one, other.T
        self.onto = [right.T @ (turn / whole[:, None]) for turn, (_, _, whole, right) in zip(turns, bases, strict=True)]
        self.back = [(turn * whole[:, None]).T @ right for turn, (_, _, whole, right) in zip(turns, bases, strict=True)]

    def carried(self, documents: Any, side: int) -> np.ndarray:
        """The words that are expected in the other language, from all canonical variates."""
        return self._variates(documents, side) * self.correlations @ self.back[1 - side] + self.means[1 - side]

    def alike(self, queries: Any, candidates: Any, side: int) -> np.ndarray:
        """Cosines of the canonical variates, each weighted by its correlation."""
        return cosines(self._variates(queries, side) * self.correlations, self._variates(candidates, 1 - side))

    def _variates(self, documents: Any, side: int) -> np.ndarray:
        return documents @ self.onto[side] - self.means[side] @ self.onto[side]


def cosines(rows: Any, others: Any) -> np.ndarray:
    """Of all rows with all others."""
    one, two = (_dense(each) for each in (rows, others))
    lengths = np.linalg.norm(one, axis=1)[:, None] * np.linalg.norm(two, axis=1)
    return one @ two.T / np.maximum(lengths, 1e-12)


def _products(rows: Any, others: Any) -> np.ndarray:
    return _dense(rows @ others.T)


def _dense(rows: Any) -> np.ndarray:
    from scipy.sparse import issparse

    return np.asarray(rows.todense()) if issparse(rows) else np.asarray(rows)
