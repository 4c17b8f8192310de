"""Gaussian belief propagation on trees of numbers: means and precisions as messages (Weiss & Freeman 2001)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from meanmap.graphs import Graph, Rooted

__all__ = ["GaussianTree"]


class GaussianTree:
    """A tree of jointly Gaussian numbers, with the means, variances and correlations of neighbours in a table.

    Parameters
    ----------
    graph : Graph or list of edges
        A tree of column numbers.
    table : (m, columns) array
    """

    def __init__(self, graph: Any, table: np.ndarray):
        self.graph = Graph.of(graph)
        self.mean, self.variance = table.mean(axis=0), table.var(axis=0)
        self.correlation = np.corrcoef(table.T)

    def query(self, evidence: Mapping[int, float], target: int) -> tuple[float, float]:
        """Mean and variance of a variable given others.

        A message to s is a likelihood of x_s in standard units, exp(h x − J x² / 2). Through an edge of correlation ρ
        one of mean h / J and variance 1 / J becomes one of ρ x_s with variance 1 − ρ² + 1 / J; a value has none.
        """
        names: Any = self.graph.names  # column numbers
        tree = Rooted.at(self.graph, [target])
        precision, information = np.zeros(len(names)), np.zeros(len(names))
        seen = {self.graph.index(name): value for name, value in evidence.items()}
        for node in tree.order[:0:-1]:
            up = tree.parent[node]
            column = names[node]
            rho = self.correlation[column, names[up]]
            if node in seen:
                # x_t | x_s is N(ρ x_s, 1 − ρ²).
                value = (seen[node] - self.mean[column]) / np.sqrt(self.variance[column])
                gain = 1 / (1 - rho**2)
            else:
                # The likelihood of x_t, with x_t | x_s in between, gains the noise 1 − ρ².
                if precision[node] == 0:
                    continue
                value = information[node] / precision[node]
                gain = 1 / (1 - rho**2 + 1 / precision[node])
            precision[up] += gain * rho**2
            information[up] += gain * rho * value
        root = self.graph.index(target)
        scale = self.variance[target]
        total = 1 + precision[root]
        return float(self.mean[target] + np.sqrt(scale) * information[root] / total), float(scale / total)
