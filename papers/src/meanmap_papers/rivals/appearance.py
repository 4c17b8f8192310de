"""The probability of each edge in a random spanning tree: the weights of tree-reweighted belief propagation."""

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import splu

from meanmap.graphs.graph import Graph

__all__ = ["edge_appearance"]

# This many right-hand sides at once.
COLUMNS = 256


def edge_appearance(graph: Graph) -> np.ndarray:
    """ρ_st, the share of all spanning trees (forests, where the graph is in parts) that have the edge, (|E|,).

    It is the effective resistance between its ends (Kirchhoff 1847), so that ρ sums to n minus the number of
    components, and an edge on no cycle has ρ = 1. Cost one sparse factorisation and |E| solves.

    Examples
    --------
    >>> edge_appearance(Graph.of([(0, 1), (1, 2), (2, 0), (2, 3)])).round(3).tolist()
    [0.667, 0.667, 0.667, 1.0]
    """
    if graph.is_forest:
        return np.ones(len(graph.edges))
    adjacency = graph.adjacency.astype(float)
    # One node of each component is fixed at zero, which makes the rest of the Laplacian invertible.
    held = np.unique(graph.components, return_index=True)[1]
    free = np.setdiff1d(np.arange(graph.size), held)
    place = np.full(graph.size, -1)
    place[free] = np.arange(len(free))
    laplacian = scipy.sparse.diags_array(adjacency.sum(axis=1)) - adjacency
    factor = splu(laplacian.tocsr()[free][:, free].tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
    resistance = np.zeros(len(graph.edges))
    for start in range(0, len(graph.edges), COLUMNS):
        ends = place[graph.edges[start : start + COLUMNS]]
        column = np.arange(len(ends))
        right = np.zeros((len(free), len(ends)))
        for end, sign in ((0, 1.0), (1, -1.0)):
            there = ends[:, end] >= 0
            right[ends[there, end], column[there]] = sign
        resistance[start : start + COLUMNS] = (right * factor.solve(right)).sum(axis=0)
    return np.minimum(resistance, 1.0)
