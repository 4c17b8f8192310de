"""Messages from observed variables: their coordinates, computed once for messages, beliefs and the report."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from meanmap.bp.edges.learning import LikelihoodEdge
from meanmap.bp.evidence.kernel_evidence import Evidence
from meanmap.core.points import count
from meanmap.graphs import Graph

__all__ = ["Observed"]


@dataclass(frozen=True, eq=False)
class Observed:
    """Evidence, and for each directed edge that leaves an observed node its φ_t(x̄), (B or 1, r_t)."""

    seen: Evidence
    likelihoods: Sequence[LikelihoodEdge]
    features: dict[int, np.ndarray]

    @classmethod
    def of(cls, graph: Graph, likelihoods: Sequence[LikelihoodEdge], seen: Evidence) -> "Observed":
        """Collect the messages of all observed nodes."""
        order, start = graph.outgoing
        leaving = {node: order[start[node] : start[node + 1]].tolist() for node in seen.points}
        features = {e: likelihoods[e].observed.at(seen.points[node]) for node, edges in leaving.items() for e in edges}
        return cls(seen, likelihoods, features)

    def message(self, e: int, part: slice, floor: float | None) -> np.ndarray:
        """The message along an edge in some queries, at the points of its receiver, (B or 1, N_s)."""
        return self.likelihoods[e].message(self._of(e, part), floor)

    def coefficients(self, e: int, part: slice) -> np.ndarray:
        """The message as coefficients in the coordinates of the receiver, (B or 1, r_s)."""
        return self._of(e, part) @ self.likelihoods[e].inner

    def _of(self, e: int, part: slice) -> np.ndarray:
        return self.features[e] if count(self.features[e]) == 1 else self.features[e][part]
