"""What observed variables tell their neighbours: their coordinates, found once for messages, beliefs and the report."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from meanmap.bp.kernel_evidence import Evidence
from meanmap.bp.learning import LikelihoodEdge
from meanmap.core.points import count
from meanmap.graphs import Graph

__all__ = ["Observed", "raised", "typical"]


@dataclass(frozen=True, eq=False)
class Observed:
    """Evidence, and for each directed edge that leaves an observed node its φ_t(x̄), (B or 1, r_t)."""

    seen: Evidence
    likelihoods: Sequence[LikelihoodEdge]
    features: dict[int, np.ndarray]

    @classmethod
    def of(cls, graph: Graph, likelihoods: Sequence[LikelihoodEdge], seen: Evidence) -> "Observed":
        """Of all observed nodes."""
        order, start = graph.outgoing
        leaving = {node: order[start[node] : start[node + 1]].tolist() for node in seen.points}
        features = {e: likelihoods[e].observed.at(seen.points[node]) for node, edges in leaving.items() for e in edges}
        return cls(seen, likelihoods, features)

    def message(self, e: int, part: slice, floor: float | None) -> np.ndarray:
        """What is sent along an edge in some queries, at the points of its receiver, (B or 1, N_s)."""
        return raised(self._of(e, part) @ self.likelihoods[e].matrix, floor)

    def coefficients(self, e: int, part: slice) -> np.ndarray:
        """The same function in the coordinates of its receiver, (B or 1, r_s)."""
        return self._of(e, part) @ self.likelihoods[e].inner

    def _of(self, e: int, part: slice) -> np.ndarray:
        return self.features[e] if count(self.features[e]) == 1 else self.features[e][part]


def raised(message: np.ndarray, floor: float | None) -> np.ndarray:
    """A message (..., N) at the points of its receiver, scaled to largest value 1 and floored; ones where nothing
    positive is left. The floor is a share of the mean, so that what is seen counts for that share as not seen at all:
    of the largest value it would be most of a narrow message.
    """
    top = message.max(axis=-1, keepdims=True)
    scaled = message / np.where(top > 0, top, 1)
    return np.where(top > 0, scaled if floor is None else np.maximum(scaled, floor * typical(scaled)), 1.0)


def typical(scaled: np.ndarray) -> np.ndarray:
    """The mean of a message's values, those below zero as zero, (..., 1)."""
    return np.maximum(scaled, 0.0).mean(axis=-1, keepdims=True)
