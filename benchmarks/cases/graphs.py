"""Learned trees and belief propagation on large ones."""

import numpy as np

from benchmarks.harness import Case
from meanmap import KernelGraph
from meanmap.bp import DiscreteGraph
from meanmap.bp.kernel.fitted_graph import FittedKernelGraph
from meanmap.graphs import Graph

VARIABLES = 10
# Leaves of the tree below, and the variable that is asked about.
SEEN, TARGET = (4, 6, 7, 8, 9), 0
EDGES = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (2, 6), (3, 7), (3, 8), (5, 9)]
Queries = tuple[FittedKernelGraph, dict[int, np.ndarray]]


def tree_table(n: int) -> np.ndarray:
    """Ten variables, each a noisy bent function of its parent."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(n, VARIABLES))
    for parent, child in EDGES:
        table[:, child] = np.sin(2 * table[:, parent]) + table[:, parent] / 2 + 0.4 * table[:, child]
    return table


def fit(table: np.ndarray) -> np.ndarray:
    """Learn the tree, all lengthscales and ridges chosen; the ridges."""
    return np.array([edge["ridge"] for edge in KernelGraph(EDGES).fit(table).chosen.values()])


def queries(n: int) -> Queries:
    """A tree learned from 1000 rows, and n queries with five pieces of evidence."""
    table = tree_table(1000 + n)
    return KernelGraph(EDGES).fit(table[:1000]), {i: table[1000:, i] for i in SEEN}


def ask(data: Queries) -> np.ndarray:
    """Means of a variable, for all queries at once."""
    model, evidence = data
    return model.query(evidence, targets=[TARGET])[TARGET].mean()


def network(n: int) -> DiscreteGraph:
    """A random tree of n variables with 10 states, one table for all edges, prepared for queries."""
    rng = np.random.default_rng(0)
    parents = (np.arange(1, n) * rng.random(n - 1)).astype(int)
    graph = Graph.of(np.stack([parents, np.arange(1, n)], axis=1))
    model = DiscreteGraph(graph, rng.random((10, 10)), rng.random((n, 10)))
    model.query(targets=[0])
    return model


def two_pass(model: DiscreteGraph) -> np.ndarray:
    """All marginals, by two passes; that of one variable."""
    return model.query(targets=[0])[0]


CASES = (
    Case(
        name="tree-fit",
        title="Fit of a kernel tree of ten variables, every lengthscale and ridge cross-validated.",
        sizes=(300,),
        setup=tree_table,
        ours=fit,
    ),
    Case(
        name="tree-query",
        title="n queries with five pieces of evidence each, to a tree of ten variables learned from 1000 rows.",
        sizes=(1, 100),
        setup=queries,
        ours=ask,
    ),
    Case(
        name="tree-two-pass",
        title="Two passes over a random tree of n variables with 10 states that share an edge operator.",
        sizes=(1000, 100_000),
        setup=network,
        ours=two_pass,
    ),
)
