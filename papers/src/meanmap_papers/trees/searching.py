"""Retrieval of documents by three methods, each trained on the same pairs for each edge of a graph."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import networkx
import numpy as np

from meanmap_papers.trees.baselines.linear import Canonical, Regression, Semantic
from meanmap_papers.trees.languages import Corpus

__all__ = ["DEPTH", "LINEAR", "METHODS", "Split", "inwards", "recall"]

METHODS = ("learned tree", "topic model", "length")
# What a practitioner would take: linear maps of words.
LINEAR = {"ridge regression": Regression, "semantic indexing": Semantic, "canonical correlation": Canonical}
TOPICS = 50
DEPTH = 50


class Split:
    """Documents to look for, and for each edge its own pairs of other documents.

    Parameters
    ----------
    corpus : Corpus
    size : int
        The number of documents to search for, each among all of them.
    pairs : int
        The number of pairs from which an edge is learned.
    """

    def __init__(self, corpus: Corpus, size: int, pairs: int, rng: np.random.Generator):
        order = rng.permutation(len(corpus))
        self.corpus, self.size, self.pairs = corpus, size, pairs
        self.searched, self.others = order[:size], order[size:]
        self.rng = rng
        self._pairs: dict[frozenset[str], np.ndarray] = {}
        self._divergences: dict[tuple[str, str], np.ndarray] = {}

    def documents(self, edge: frozenset[str]) -> np.ndarray:
        """The training documents of an edge, drawn once."""
        if edge not in self._pairs:
            self._pairs[edge] = self.rng.choice(self.others, self.pairs, replace=False)
        return self._pairs[edge]

    def learned_tree(
        self,
        edges: Sequence[tuple[str, str]],
        target: str,
        known: Sequence[Sequence[str]],
        lengthscales: Mapping[str, float],
    ) -> list:
        """Scores (documents, candidates) from a tree learned edge by edge, for each set of known languages.

        What the messages make of a candidate is how much more probable it became by the evidence. This estimate rises
        and falls more for some candidates than for others, so that it is standardised for each over all queries.
        """
        from meanmap import KernelGraph, kernels

        features = self.corpus.features
        data = {}
        for s, t in edges:
            documents = self.documents(frozenset((s, t)))
            data[s, t] = features[s][documents], features[t][documents]
        # An edge to their numbers makes the candidates points of the target, so that its messages have values there.
        data[target, "number"] = features[target][self.searched], np.arange(float(self.size))
        rbf = {name: kernels.RBF(lengthscales[name]) for edge in edges for name in edge}
        model = KernelGraph(list(data), kernels=rbf).fit(data)
        scores = []
        for languages in known:
            evidence = {language: features[language][self.searched] for language in languages}
            weights = model.query(evidence, targets=[target])[target].weights
            ratio = weights[:, -self.size :] / weights[:, : -self.size].mean(axis=1, keepdims=True)
            scores.append(_standardised(np.asarray(ratio)))
        return scores

    def linear(
        self,
        learn: Callable[[Any, Any], Any],
        edges: Sequence[tuple[str, str]],
        target: str,
        known: Sequence[Sequence[str]],
    ) -> list:
        """Scores by linear maps between the words of the languages of an edge (`trees.baselines.linear`).

        Several routes add their scores, standardised for each candidate as those of the learned tree.
        """
        graph, maps, features = networkx.Graph(edges), {}, self.corpus.features
        for s, t in edges:
            documents = self.documents(frozenset((s, t)))
            learned = learn(features[s][documents], features[t][documents])
            maps[s, t], maps[t, s] = (learned, 0), (learned, 1)
        ways = {name: networkx.shortest_path(graph, name, target) for name in graph if name != target}
        alike = {}
        for name, way in ways.items():
            documents = features[name][self.searched]
            *between, last = pairwise(way)
            for step in between:
                learned, side = maps[step]
                documents = learned.carried(documents, side)
            learned, side = maps[last]
            alike[name] = _standardised(learned.alike(documents, features[target][self.searched], side))
        return [sum(alike[name] for name in given if not set(ways[name][1:]) & set(given)) for given in known]

    def topic_model(self, edges: Sequence[tuple[str, str]], target: str, known: Sequence[Sequence[str]]) -> list:
        """Distances by a bilingual topic model for each edge; several routes add their divergences."""
        from meanmap_papers.trees.baselines.topics import route

        graph = networkx.Graph(edges)
        scores = []
        for languages in known:
            total = np.zeros((self.size, self.size))
            for language in languages:
                way = networkx.shortest_path(graph, language, target)
                if not set(way[1:]) & set(languages):  # languages behind another known one are irrelevant
                    total += route([self._divergence(s, t) for s, t in pairwise(way)])
            scores.append(-total)
        return scores

    def length(self, edges: Sequence[tuple[str, str]], target: str, known: Sequence[Sequence[str]]) -> list:
        """Distances by the length of whole documents alone."""
        from meanmap_papers.trees.baselines.lengths import length_distance, normalised

        lengths = {name: normalised(values[self.searched]) for name, values in self.corpus.lengths.items()}
        return [-length_distance([lengths[language] for language in languages], lengths[target]) for languages in known]

    def _divergence(self, s: str, t: str) -> np.ndarray:
        """Between all documents in s and all in t, by the topics of the pairs of their edge."""
        from meanmap_papers.trees.baselines.topics import BilingualTopics

        if (s, t) not in self._divergences:
            counts, documents = self.corpus.counts, self.documents(frozenset((s, t)))
            topics = BilingualTopics(counts[s][documents], counts[t][documents], TOPICS)
            there = topics.divergence(counts[s][self.searched], counts[t][self.searched])
            self._divergences[s, t], self._divergences[t, s] = there, there.T
        return self._divergences[s, t]


def _standardised(scores: np.ndarray) -> np.ndarray:
    """Each candidate over all queries."""
    return (scores - scores.mean(axis=0)) / scores.std(axis=0)


def recall(scores: np.ndarray) -> np.ndarray:
    """The share of queries whose own document is among the first 1, ..., 50 candidates; half of all ties are lost."""
    own = np.diagonal(scores)[:, None]
    ranks = np.sum(scores > own, axis=1) + (np.sum(scores == own, axis=1) - 1) // 2
    return np.mean(ranks[:, None] < np.arange(1, DEPTH + 1), axis=0)


def inwards(edges: Sequence[tuple[str, str]], target: str) -> list[list[str]]:
    """Growing evidence: half of the other languages, leaves and those far from the target first, up to all of them."""
    graph = networkx.Graph(edges)
    distance = networkx.shortest_path_length(graph, target=target)
    order = sorted(set(graph) - {target}, key=lambda name: (graph.degree(name) > 1, -distance[name], name))
    return [order[:count] for count in range(len(order) // 2, len(order) + 1)]
