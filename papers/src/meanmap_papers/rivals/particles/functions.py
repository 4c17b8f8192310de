"""Messages from particles as functions, so that they can be evaluated at new particles."""

from dataclasses import dataclass

import numpy as np

from meanmap.core.points import pieces, slices
from meanmap.graphs import Graph
from meanmap_papers.rivals.pair_densities import PairDensities

__all__ = ["MessageFunctions", "edge_matrices"]

# Edges that are processed at once.
EDGES_AT_ONCE = 512
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class MessageFunctions:
    """m_ts(x) = Σₖ gₖ(x) cₖ with c = Σᵢ wᵢ N(x_tⁱ; rₖ): the sum over particles is done once, whatever x is asked.

    Attributes
    ----------
    coefficients : list of arrays (edges, b)
        c of the directed edges of each direction.
    edges : list of arrays
        Which.
    """

    graph: Graph
    densities: PairDensities
    edges: list[np.ndarray]
    coefficients: list[np.ndarray]

    @classmethod
    def of(
        cls, graph: Graph, densities: PairDensities, template: np.ndarray, points: np.ndarray, weights: np.ndarray
    ) -> "MessageFunctions":
        """From particles (n, N, d) and what each sender knows without the receiver, (2 |E|, N)."""
        edges = [np.flatnonzero(template == i) for i in range(len(densities.backwards))]
        coefficients = []
        for some, density in zip(edges, densities.backwards, strict=True):
            parts = [np.zeros((0, density.v_centres.shape[0]))]
            for part in pieces(some, EDGES_AT_ONCE):
                nodes, place = np.unique(graph.sources[part], return_inverse=True)
                components = np.exp(density.log_components(points[nodes][..., : density.v_width.size]))
                sums = np.matmul(weights[part][:, None], components[place])[:, 0]
                parts.append(sums / np.maximum(sums.max(axis=1, keepdims=True), TINY))
            coefficients.append(np.concatenate(parts))
        return cls(graph, densities, edges, coefficients)

    def log_heard(self, points: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Σ_t log m_ts at points of all nodes, (n, N); messages that are known to say nothing are left out."""
        total = np.zeros(points.shape[:2])
        for some, density, coefficients in zip(self.edges, self.densities.backwards, self.coefficients, strict=True):
            there = ~known[some]
            receivers, rows = self.graph.targets[some[there]], coefficients[there]
            order = np.argsort(receivers, kind="stable")
            receivers, rows = receivers[order], rows[order]
            for part in slices(len(receivers), EDGES_AT_ONCE):
                nodes, place = np.unique(receivers[part], return_inverse=True)
                gates = np.exp(density.log_weights(points[nodes][..., : density.u_width.size]))
                values = np.matmul(gates[place], rows[part][:, :, None])[..., 0]
                np.add.at(total, receivers[part], np.log(np.maximum(values, TINY)))
        return total


def edge_matrices(graph: Graph, densities: PairDensities, template: np.ndarray, points: np.ndarray) -> np.ndarray:
    """p(x_tⁱ | x_sʲ) for all particles of sender and receiver of each directed edge, (2 |E|, N, N).

    Cost O(|E| N² b) for mixtures of b components.
    """
    number = points.shape[1]
    matrices = np.empty((len(template), number, number))
    for i, density in enumerate(densities.backwards):
        some = np.flatnonzero(template == i)
        for part in pieces(some, EDGES_AT_ONCE):
            senders, from_ = np.unique(graph.sources[part], return_inverse=True)
            receivers, to = np.unique(graph.targets[part], return_inverse=True)
            components = np.exp(density.log_components(points[senders][..., : density.v_width.size]))
            gates = np.exp(density.log_weights(points[receivers][..., : density.u_width.size]))
            matrices[part] = np.matmul(components[from_], np.swapaxes(gates, 1, 2)[to])
    return matrices
