"""Rooted forests: parents, depths, centres, and pruning given evidence."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import breadth_first_order

from meanmap.core.errors import InputError
from meanmap.core.types import GraphLike
from meanmap.graphs.graph import Graph

__all__ = ["Rooted", "centres", "check_forest", "informed", "prune", "steps_to_farthest"]


@dataclass(frozen=True, eq=False)
class Rooted:
    """A forest with a root in each component.

    Attributes
    ----------
    graph : Graph
        The forest.
    order : array (n,)
        Nodes from the roots outwards: by depth, and within a depth by parent.
    parent : array (n,)
        The parent of each node, −1 at a root.
    depth : array (n,)
        Steps from the root.

    Examples
    --------
    >>> tree = Rooted.at(Graph.of([("a", "b"), ("b", "c")]), ["c"])
    >>> tree.parent.tolist(), tree.depth.tolist()
    ([1, 2, -1], [2, 1, 0])
    """

    graph: Graph
    order: np.ndarray
    parent: np.ndarray
    depth: np.ndarray

    @classmethod
    def at(cls, graph: GraphLike, roots: Iterable | None = None) -> "Rooted":
        """Root `graph` at `roots`, by name, and components without a root at their centre (the shallowest tree)."""
        graph = Graph.of(graph)
        check_forest(graph)
        chosen = centres(graph)
        given: set[int] = set()
        for root in roots or ():
            node = graph.index(root)
            component = int(graph.components[node])
            if component in given:
                raise InputError(f"roots has two nodes of one component, one of them {root!r}; expected one for each.")
            given.add(component)
            chosen[component] = node
        order, parent, depth = _outwards(graph, chosen)
        return cls(graph, order, parent, depth)

    @cached_property
    def to_parent(self) -> np.ndarray:
        """The directed edge from each node to its parent, −1 at a root, (n,)."""
        result = np.full(self.graph.size, -1)
        up = np.flatnonzero(self.parent[self.graph.sources] == self.graph.targets)
        result[self.graph.sources[up]] = up
        return result

    @cached_property
    def from_parent(self) -> np.ndarray:
        """The directed edge from each node's parent to it, −1 at a root, (n,)."""
        edges = len(self.graph.edges)
        return np.where(self.to_parent < 0, -1, (self.to_parent + edges) % max(2 * edges, 1))


def check_forest(graph: Graph) -> None:
    """Refuse a graph with a cycle, naming one."""
    if not graph.is_forest:
        shown = [str(name) for name in graph.cycle()]
        shown = shown if len(shown) <= 10 else [*shown[:9], f"... ({len(shown)} nodes)"]
        raise InputError(
            f"the graph has a cycle, {' - '.join(shown)}; expected a tree. "
            "For graphs with cycles use a schedule for them, such as mm.graphs.Flooding()."
        )


def _outwards(graph: Graph, roots: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Breadth-first order, parents and depths, by one search from a node connected to all roots."""
    n = graph.size
    fields = np.ones(len(roots), dtype=np.int8), (np.full(len(roots), n), roots)
    above = scipy.sparse.coo_array(fields, shape=(n + 1, n + 1))
    below = scipy.sparse.coo_array(
        (np.ones(len(graph.sources), dtype=np.int8), (graph.sources, graph.targets)), shape=(n + 1, n + 1)
    )
    order, before = breadth_first_order((above + below).tocsr(), n, directed=True)
    parents, depths = before.tolist(), [-1] * (n + 1)
    for node in order[1:].tolist():
        depths[node] = depths[parents[node]] + 1
    return order[1:].astype(np.int64), np.where(before[:n] == n, -1, before[:n]).astype(np.int64), np.array(depths[:n])


def steps_to_farthest(graph: Graph, nodes: np.ndarray) -> int:
    """The distance from some nodes (k,) to the farthest reachable node, each from its nearest; 0 without nodes.

    Examples
    --------
    >>> steps_to_farthest(Graph.of([(0, 1), (1, 2), (2, 3), (3, 0)]), np.array([1]))
    2
    """
    return int(_outwards(graph, nodes)[2].max(initial=0)) if 0 < len(nodes) < graph.size else 0


def centres(graph: Graph) -> np.ndarray:
    """For each component of a forest, a node whose distance to the farthest node is smallest.

    It is the middle of a longest path, and a longest path ends at the node farthest from any node (Jordan 1869).
    """
    first = np.unique(graph.components, return_index=True)[1]
    ends = _farthest(graph, first)[0]
    other, parent, depth = _farthest(graph, ends)
    middle = other.copy()
    for _ in range(int(depth[other].max()) // 2):
        rising = depth[middle] > depth[other] - depth[other] // 2
        middle = np.where(rising, parent[middle], middle)
    return middle


def _farthest(graph: Graph, roots: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The deepest node of each component, seen from its root, with all parents and depths."""
    order, parent, depth = _outwards(graph, roots)
    last = np.zeros(len(roots), dtype=np.int64)
    last[graph.components[order]] = order  # breadth first: the last one written is the deepest
    return last, parent, depth


def informed(tree: Rooted, evidence: np.ndarray) -> np.ndarray:
    """Whether any evidence lies behind each directed edge, on the sender's side: (2 |E|, ...) from (n, ...) booleans.

    If none does, the message is constant for any model, and need not be sent.
    """
    below = np.array(evidence, dtype=np.int64)
    for node in tree.order[::-1]:
        if tree.parent[node] >= 0:
            below[tree.parent[node]] += below[node]
    total = np.zeros((int(tree.graph.components.max()) + 1, *below.shape[1:]), dtype=np.int64)
    roots = tree.order[tree.depth[tree.order] == 0]
    total[tree.graph.components[roots]] = below[roots]
    result = np.zeros((len(tree.graph.sources), *below.shape[1:]), dtype=bool)
    inner = np.flatnonzero(tree.parent >= 0)
    result[tree.to_parent[inner]] = below[inner] > 0
    result[tree.from_parent[inner]] = total[tree.graph.components[inner]] - below[inner] > 0
    return result


def prune(graph: GraphLike, evidence: Iterable, targets: Iterable) -> Graph:
    """The part of a forest that matters for the targets once `evidence` is known exactly.

    Nodes behind an observed node are irrelevant (Song et al. 2010, section 2.1), and so is a branch without evidence.
    The result keeps the targets, the observed nodes reachable without passing other observed ones, and the paths in
    between.

    Examples
    --------
    >>> chain = Graph.of([(i, i + 1) for i in range(5)])
    >>> prune(chain, evidence=[1, 4], targets=[2]).names
    (1, 2, 3, 4)
    """
    graph = Graph.of(graph)
    seen = {graph.index(name) for name in evidence}
    wanted = [graph.index(name) for name in targets]
    check_forest(graph)
    order, start = graph.outgoing
    neighbours = [graph.targets[order[start[i] : start[i + 1]]].tolist() for i in range(graph.size)]
    kept, stack = set(wanted), list(wanted)
    while stack:
        node = stack.pop()
        if node in seen:  # observed nodes separate what is behind them
            continue
        new = [other for other in neighbours[node] if other not in kept]
        kept.update(new)
        stack += new
    ends = kept & seen | set(wanted)
    stack = list(kept - ends)
    while stack:  # branches without evidence are pruned leaf by leaf
        node = stack.pop()
        near = [other for other in neighbours[node] if other in kept]
        if node in kept and node not in ends and len(near) <= 1:
            kept.remove(node)
            stack += near
    return graph.subgraph([graph.names[i] for i in sorted(kept)])
