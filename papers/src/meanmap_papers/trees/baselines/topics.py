"""Retrieval by a bilingual topic model: topics of pairs of documents, compared by the Jensen-Shannon divergence.

Mimno et al. (2009) for two languages: the two documents of a pair share their topics, and each language has its own
words in each topic. That is latent Dirichlet allocation of the two documents laid side by side. A document in one
language then has topics, and so has one in the other.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from meanmap.core.types import Array

__all__ = ["BilingualTopics", "jensen_shannon", "route"]


class BilingualTopics:
    """Topics learned from pairs of documents.

    Parameters
    ----------
    first, second : (m, words) arrays, sparse or not
        How often each word occurs in each of m documents, row i of both being one pair.
    topics : int
        The number of topics.
    seed : int
        Of the variational inference.
    """

    def __init__(self, first: Array, second: Array, topics: int = 50, seed: int = 0):
        from scipy.sparse import csr_array, hstack
        from sklearn.decomposition import LatentDirichletAllocation

        self.widths = first.shape[1], second.shape[1]
        self.model = LatentDirichletAllocation(topics, doc_topic_prior=0.5, max_iter=50, random_state=seed)
        self.model.fit(hstack([csr_array(first), csr_array(second)]).tocsr())

    def of(self, documents: Any, side: int) -> np.ndarray:
        """The topics of documents in the first (0) or second (1) language, (n, topics)."""
        from scipy.sparse import csr_array, hstack

        documents = csr_array(documents)
        blank = csr_array((documents.shape[0], self.widths[1 - side]))
        parts = [documents, blank] if side == 0 else [blank, documents]
        return self.model.transform(hstack(parts).tocsr())

    def divergence(self, queries: Any, candidates: Array, side: int = 0) -> np.ndarray:
        """Between queries in language `side` and candidates in the other, (queries, candidates)."""
        return jensen_shannon(self.of(queries, side), self.of(candidates, 1 - side))


def jensen_shannon(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The Jensen-Shannon divergence of all rows of p and of q in nats, H((p + q) / 2) − (H(p) + H(q)) / 2."""

    def entropy(rows: np.ndarray) -> np.ndarray:
        return -np.sum(rows * np.log(np.maximum(rows, 1e-300)), axis=-1)

    middle = np.stack([entropy((one + q) / 2) for one in p])
    return middle - (entropy(p)[:, None] + entropy(q)) / 2


def route(divergences: Sequence[np.ndarray]) -> np.ndarray:
    """From divergences between neighbouring languages to those of the last documents from each query.

    A model for each pair of languages can only carry a query on by way of the nearest document in each language between
    (Song, Gretton & Guestrin 2010, section 6.1).

    Parameters
    ----------
    divergences : sequence of (documents, documents) arrays
        For each step of the way, from the documents of one language to those of the next.
    """
    found = np.arange(len(divergences[0]))
    rows = divergences[0]
    for divergence in divergences:
        rows = divergence[found]
        found = rows.argmin(axis=1)
    return rows
