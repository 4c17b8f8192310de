"""Messages of many rows of a table at once, each with its own observed cells: one pass inwards, one outwards.

A message without evidence is one everywhere, so that rows with different cells missing need no programs of
their own. The result is what a query for each row gives.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.bp.edges.floors import FLOOR
from meanmap.bp.edges.learning import LikelihoodEdge, MessageEdge
from meanmap.bp.kernel.belief_weights import Arriving
from meanmap.core.report import Report
from meanmap.graphs import Rooted

__all__ = ["RowMessages"]

# Products of more messages than this are scaled on the way: each has values down to about a thousandth.
MOST_FACTORS = 32


@dataclass(frozen=True, eq=False)
class Sent:
    """A message along one edge in B rows: where it says anything, its values (B, N) at the receiver's points, and its
    coefficients where the sender's own value gave it and where it was worked out, (B, r) each.
    """

    live: np.ndarray
    values: np.ndarray
    told: np.ndarray
    heard: np.ndarray


class RowMessages:
    """Messages of a forest of learned edges in B rows.

    Parameters
    ----------
    tree : Rooted
    model : FittedKernelGraph
        Its edges.
    counts : array (n,)
        The number of points of each node.
    there : array (n, B) of bool
        Which cells were seen.
    features : dict of arrays
        φ_t(x̄) of each directed edge that leaves a node that was seen anywhere, (B or 1, r).
    """

    def __init__(
        self,
        tree: Rooted,
        model: Any,
        counts: np.ndarray,
        there: np.ndarray,
        features: dict[int, np.ndarray],
    ):
        self.tree, self.counts = tree, counts
        self.report = Report("messages are exact (the graph has no cycles)", True, 1)
        self.messages: Sequence[MessageEdge] = model.messages
        self.likelihoods: Sequence[LikelihoodEdge] = model.likelihoods
        self.there, self.features = there, features
        self.children: list[list[int]] = [[] for _ in range(tree.graph.size)]
        for node in tree.order.tolist():
            if tree.parent[node] >= 0:
                self.children[tree.parent[node]].append(node)
        self.sent: dict[int, Sent] = {}
        for node in tree.order[::-1].tolist():
            if tree.parent[node] >= 0:
                self._send(int(tree.to_parent[node]), [int(tree.to_parent[child]) for child in self.children[node]])

    def outwards(self, in_turn: bool = False) -> None:
        """Send messages outwards; `in_turn` without those of later children, so that each node gets the evidence of
        nodes before it in a walk from the root, and of no others.
        """
        for node in self.tree.order.tolist():
            above = [int(self.tree.from_parent[node])] if self.tree.parent[node] >= 0 else []
            ups = [int(self.tree.to_parent[child]) for child in self.children[node]]
            for i, child in enumerate(self.children[node]):
                others = ups[:i] if in_turn else ups[:i] + ups[i + 1 :]
                self._send(int(self.tree.from_parent[child]), above + others)

    def weights(self, node: int) -> np.ndarray:
        """The belief (B, N) about a node from all that it hears, in rows where it was not seen; sums are one."""
        product = self.product(self.incoming(node), node)
        return product / product.sum(axis=-1, keepdims=True)

    def heard(self, node: int) -> np.ndarray:
        """The number of messages to a node that say anything, (B,)."""
        return sum((self.sent[e].live for e in self.incoming(node)), np.zeros(self.there.shape[1], dtype=int))

    def incoming(self, node: int) -> list[int]:
        """The edges along which a node has been sent anything so far."""
        above = [int(self.tree.from_parent[node])] if self.tree.parent[node] >= 0 else []
        return [
            e for e in (*above, *(int(self.tree.to_parent[child]) for child in self.children[node])) if e in self.sent
        ]

    def product(self, edges: Sequence[int], node: int) -> np.ndarray:
        """Messages multiplied at the points of a node, (B, N)."""
        result = np.ones((self.there.shape[1], self.counts[node]))
        for i, e in enumerate(edges):
            if self.sent[e].live.any():
                result *= self.sent[e].values
            if i % MOST_FACTORS == MOST_FACTORS - 1:
                result /= result.max(axis=-1, keepdims=True)
        return result

    def arriving(self, e: int) -> Arriving:
        """A message as functions: what is given and what is worked out, with coefficients of zero in other rows."""
        sent = self.sent[e]
        return [(self.likelihoods[e].receiver, sent.told, True), (self.messages[e].receiver, sent.heard, False)]

    def _send(self, e: int, behind: Sequence[int]) -> None:
        """The message along an edge from those that its sender hears along the edges behind."""
        graph, rows = self.tree.graph, self.there.shape[1]
        t, s = int(graph.sources[e]), int(graph.targets[e])
        tells, wanted = self.there[t], ~self.there[s]
        hears = ~tells & np.any([np.zeros(rows, dtype=bool), *(self.sent[other].live for other in behind)], axis=0)
        values = np.ones((rows, self.counts[s]))
        told = np.zeros((rows, self.likelihoods[e].inner.shape[1]))
        heard = np.zeros((rows, self.messages[e].into.shape[1]))
        if tells.any():
            phi = np.broadcast_to(self.features[e], (rows, self.features[e].shape[1]))
            told[tells] = phi[tells] @ self.likelihoods[e].inner
            some = tells & wanted
            values[some] = self.likelihoods[e].message(phi[some])
        if hears.any():
            heard[hears] = self.product(behind, t)[hears] @ self.messages[e].into
            some = hears & wanted
            values[some] = _finished(heard[some] @ self.messages[e].out)
        self.sent[e] = Sent(tells | hears, values, told, heard)


def _finished(message: np.ndarray) -> np.ndarray:
    """Process a message as the engine does: largest value 1, floored; ones if no value is positive."""
    top = message.max(axis=-1, keepdims=True, initial=0.0)
    return np.where(top > 0, np.maximum(message / np.where(top > 0, top, 1), FLOOR), 1.0)
