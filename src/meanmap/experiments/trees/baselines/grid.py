"""Belief propagation on a fine grid: numbers cut into bins, and each edge a table of counts."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from meanmap.bp import DiscreteGraph
from meanmap.graphs import Graph

__all__ = ["GridTree"]


class GridTree:
    """A tree of numbers on a common grid, learned by counting.

    Parameters
    ----------
    graph : Graph or list of edges
        A tree of column numbers.
    table : (m, columns) array
    bins : array
        The centres of equal bins; what lies outside is counted at the ends.
    pseudo_count : float
        Added to each cell of each edge's table.
    """

    def __init__(self, graph: Any, table: np.ndarray, bins: np.ndarray, pseudo_count: float = 0.1):
        self.graph, self.bins = Graph.of(graph), np.asarray(bins)
        self.width = self.bins[1] - self.bins[0]
        places: Any = self.place(table)
        k, degrees = len(self.bins), self.graph.degrees
        marginals = {name: np.bincount(places[:, name], minlength=k) + pseudo_count * k for name in self.graph.names}
        tables = {}
        for s, t in self.graph.named_edges:
            tables[s, t] = np.full((k, k), pseudo_count)
            np.add.at(tables[s, t], (places[:, s], places[:, t]), 1)
        # p(x) = Π p(x_s, x_t) Π p(x_s)^(1 − d_s)  (Song et al. 2010, section 2.1)
        priors = {name: marginals[name] ** (1.0 - degrees[i]) for i, name in enumerate(self.graph.names)}
        self.network = DiscreteGraph(self.graph, tables, priors)

    def place(self, values: Any) -> np.ndarray:
        """The number of the bin of each value."""
        return np.clip(np.rint((np.asarray(values) - self.bins[0]) / self.width), 0, len(self.bins) - 1).astype(int)

    def density(self, evidence: Mapping[int, float], target: int) -> np.ndarray:
        """The density of a variable at the bins, given others."""
        seen = {name: int(self.place(value)) for name, value in evidence.items()}
        return self.network.query(seen, targets=[target])[target] / self.width
