"""Equivalence classes by looking at every orientation of a skeleton: slow, and obviously right."""

from itertools import product

import networkx
import numpy as np


def colliders(dag: networkx.DiGraph) -> set:
    """a → b ← c with a and c not joined."""
    return {
        (frozenset((a, c)), b)
        for b in dag
        for a in dag.predecessors(b)
        for c in dag.predecessors(b)
        if a != c and not dag.has_edge(a, c) and not dag.has_edge(c, a)
    }


def members(dag: networkx.DiGraph, allowed=lambda graph: True) -> list[networkx.DiGraph]:
    """All acyclic graphs with the same skeleton and the same unshielded colliders (Verma & Pearl 1990)."""
    edges, wanted, found = list(dag.edges), colliders(dag), []
    for turned in product((False, True), repeat=len(edges)):
        graph = networkx.DiGraph()
        graph.add_nodes_from(dag)
        graph.add_edges_from((b, a) if turn else (a, b) for (a, b), turn in zip(edges, turned, strict=True))
        if networkx.is_directed_acyclic_graph(graph) and colliders(graph) == wanted and allowed(graph):
            found.append(graph)
    return found


def union(graphs: list[networkx.DiGraph]) -> set:
    """Every arrow of any of them: an edge that is there both ways has no direction in the class."""
    return {edge for graph in graphs for edge in graph.edges}


def arrows_and_lines(pdag) -> set:
    """The same set of a PDAG."""
    return set(pdag.to_networkx().edges)


def random_dag(size: int, density: float, generator: np.random.Generator) -> networkx.DiGraph:
    """Arrows along a random order."""
    order = generator.permutation(size)
    graph = networkx.DiGraph()
    graph.add_nodes_from(f"v{i}" for i in range(size))
    pairs = np.argwhere(np.triu(generator.random((size, size)) < density, 1))
    graph.add_edges_from((f"v{order[i]}", f"v{order[j]}") for i, j in pairs)
    return graph
