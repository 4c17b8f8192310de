"""Documents in nine languages as features, and three graphs between the languages."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import networkx
import numpy as np

from meanmap import kernels

__all__ = ["CHAIN", "LINGUISTIC", "WIDE", "Corpus", "dependence_tree", "median_distance"]

# Figure 1a: Swedish documents are looked for from the other end.
CHAIN = ("pt", "es", "it", "fr", "en", "de", "nl", "da", "sv")
# Figure 1e is a picture without names of edges; leaves and inner nodes are those of the text.
LINGUISTIC = (
    ("pt", "es"),
    ("es", "fr"),
    ("it", "fr"),
    ("fr", "en"),
    ("nl", "de"),
    ("sv", "da"),
    ("da", "de"),
    ("de", "en"),
)
# Texts of few common words are √2 apart whatever the language: this is √2 times their median distance.
WIDE = 2.0

WORD = re.compile(r"[^\W\d_]+")
# The first letters of a word stand in for its stem, and words of more than half the documents for stop words.
STEM, MOST_COMMON = 6, 0.5


class Corpus:
    """Documents, each in several languages.

    Parameters
    ----------
    texts : mapping from languages to lists of texts
        Document i is the same in all.
    words : int, optional
        The number of words read of each document; by default all.

    Attributes
    ----------
    features : dict
        TF-IDF of each language, (documents, words), rows of length one.
    counts : dict
        How often each word occurs.
    lengths : dict
        Characters of each whole document.
    """

    def __init__(self, texts: Mapping[str, Sequence[str]], words: int | None = None):
        from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

        def split(text: str) -> list[str]:
            return [word[:STEM] for word in WORD.findall(text.lower())[:words]]

        stems: Any = split  # the stubs of scikit-learn know only names of analyzers
        self.counts: dict[str, Any] = {}
        self.features: dict[str, Any] = {}
        for language, documents in texts.items():
            counts = CountVectorizer(analyzer=stems, max_df=MOST_COMMON).fit_transform(documents)
            self.counts[language] = counts
            self.features[language] = TfidfTransformer(sublinear_tf=True).fit_transform(counts).tocsr()
        self.lengths = {language: np.array([len(text) for text in documents]) for language, documents in texts.items()}

    def __len__(self) -> int:
        return len(next(iter(self.lengths.values())))


def median_distance(features: Any) -> float:
    """Of all pairs of documents, whose features have length one."""
    products = np.asarray((features @ features.T).todense())[np.triu_indices(features.shape[0], 1)]
    return float(np.median(np.sqrt(np.maximum(2 - 2 * products, 0))))


def dependence_tree(samples: Mapping[str, Any], lengthscales: Mapping[str, float]) -> list[tuple[str, str]]:
    """The Chow-Liu tree of one joint sample: the spanning tree of largest total HSIC."""
    centred = {}
    for name, sample in samples.items():
        gram = np.asarray(kernels.RBF(lengthscales[name])(sample))
        centred[name] = gram - gram.mean(axis=0) - gram.mean(axis=1)[:, None] + gram.mean()
    graph = networkx.Graph()
    for s in samples:
        for t in samples:
            if s < t:
                graph.add_edge(s, t, weight=float(np.sum(centred[s] * centred[t])) / len(centred[s]) ** 2)
    return sorted(networkx.maximum_spanning_tree(graph).edges)
