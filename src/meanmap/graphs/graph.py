"""Undirected graphs as integer arrays: named nodes, edges, and the two directions of each edge."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from meanmap.core.errors import EmptyError, InputError, KindError, ShapeError
from meanmap.core.extras import optional
from meanmap.core.held import holds_whole
from meanmap.core.language import a_type
from meanmap.core.meant import no_column
from meanmap.core.types import GraphLike
from meanmap.core.values import Value, as_known
from meanmap.plots.facts import Page
from meanmap.plots.paged import Paged

if TYPE_CHECKING:
    import networkx

__all__ = ["Graph", "is_networkx", "refuse_both_directions"]


def is_networkx(graph: object) -> TypeGuard["networkx.Graph"]:
    """Whether a graph is a NetworkX graph (checked without importing NetworkX)."""
    return hasattr(graph, "is_multigraph")


@dataclass(frozen=True, eq=False, repr=False)
class Graph(Value, Paged):
    """An undirected graph without loops or double edges.

    Edge number e joins `edges[e, 0]` and `edges[e, 1]`. As a directed edge, along which messages are sent, it has
    number e in that direction and e + |E| in the other.

    Attributes
    ----------
    names : sequence
        The user's names for the nodes; node i is `names[i]`.
    edges : array (|E|, 2)
        Node numbers.

    Examples
    --------
    >>> graph = Graph.of([("rain", "street"), ("sprinkler", "street")])
    >>> graph
    Graph(3 nodes, 2 edges)
    >>> graph.names, graph.degrees.tolist(), graph.is_forest
    (('rain', 'street', 'sprinkler'), [1, 2, 1], True)
    """

    names: Sequence[Hashable]
    edges: np.ndarray

    def _as_page(self, brief: bool = False) -> Page:
        from meanmap.graphs.pages import plain_page

        return plain_page(self)

    @classmethod
    def of(cls, data: GraphLike, nodes: Iterable[Hashable] | None = None) -> "Graph":
        """Read a Graph, a NetworkX graph, a list of edges, or an (|E|, 2) array of node numbers.

        Parameters
        ----------
        data : Graph, networkx.Graph, sequence of pairs, or array (|E|, 2)
            Edges. The nodes of an array of integers are 0, 1, ..., up to the largest; for a list of pairs, in order of
            first appearance. Directions of a NetworkX graph are dropped, and its edge data are not read.
        nodes : iterable, optional
            All nodes, in order, for nodes without an edge or another order.
        """
        if isinstance(data, Graph):
            return data if nodes is None else cls._named(data.named_edges, nodes)
        if is_networkx(data):
            pairs = [tuple(edge[:2]) for edge in data.edges]
            if data.is_multigraph():
                raise KindError(
                    "the graph is a NetworkX multigraph; expected a simple one: pass networkx.Graph(graph)."
                )
            return cls._named(_once(pairs), list(data.nodes) if nodes is None else nodes)
        if isinstance(data, np.ndarray):
            return cls._numbered(data, nodes)
        if isinstance(data, str | bytes | Mapping) or not isinstance(data, Iterable):
            raise KindError(
                f"graph is {a_type(data)}; expected a Graph, a NetworkX graph or a list of edges such as "
                '[("a", "b"), ("b", "c")].'
            )
        return cls._named([_pair(edge) for edge in data], nodes)

    @classmethod
    def _numbered(cls, edges: np.ndarray, nodes: Iterable[Hashable] | None) -> "Graph":
        if edges.ndim != 2 or edges.shape[1] != 2:
            raise ShapeError(f"edges has shape {edges.shape}; expected (|E|, 2): two node numbers per row.")
        if not holds_whole(edges):
            return cls._named([_pair(edge) for edge in edges.tolist()], nodes)
        if nodes is not None:
            names = _distinct(nodes)
            if len(edges) and (edges.min() < 0 or edges.max() >= len(names)):
                raise InputError(f"edges holds node {edges.max()}, but nodes has only {len(names)} entries.")
        else:
            if len(edges) == 0:
                raise EmptyError("the graph has no edges and no nodes: pass nodes=[...] for a graph without edges.")
            if edges.min() < 0:
                raise InputError(f"edges holds the negative node number {edges.min()}; expected numbers from 0.")
            names = range(int(edges.max()) + 1)
        return cls(names, _checked(edges.astype(np.int64), names))

    @classmethod
    def _named(cls, pairs: list[tuple], nodes: Iterable[Hashable] | None) -> "Graph":
        names = _distinct(nodes) if nodes is not None else tuple(dict.fromkeys(end for pair in pairs for end in pair))
        if not len(names):
            raise EmptyError("the graph has no edges and no nodes: pass nodes=[...] for a graph without edges.")
        number = {name: i for i, name in enumerate(names)}
        missing = next((end for pair in pairs for end in pair if end not in number), None)
        if missing is not None:
            raise InputError(f"an edge ends in {missing!r}, which is not among nodes.")
        edges = np.array([[number[a], number[b]] for a, b in pairs], dtype=np.int64).reshape(-1, 2)
        return cls(names, _checked(edges, names))

    @property
    def size(self) -> int:
        """The number of nodes."""
        return len(self.names)

    @cached_property
    def _number(self) -> dict[Hashable, int]:
        return {name: i for i, name in enumerate(self.names)}

    def index(self, name: Hashable) -> int:
        """The number of a node; "0" also finds 0, and 0 finds "0"."""
        known = as_known(name, self._number)
        if known is None:
            raise no_column("the graph", name, self.names, "node")
        return self._number[known]

    @property
    def named_edges(self) -> list[tuple]:
        """The edges as pairs of names."""
        return [(self.names[a], self.names[b]) for a, b in self.edges]

    @cached_property
    def sources(self) -> np.ndarray:
        """The sender of each directed edge, (2 |E|,)."""
        return np.concatenate([self.edges[:, 0], self.edges[:, 1]])

    @cached_property
    def targets(self) -> np.ndarray:
        """The receiver of each directed edge, (2 |E|,)."""
        return np.concatenate([self.edges[:, 1], self.edges[:, 0]])

    @cached_property
    def against(self) -> np.ndarray:
        """The directed edge in the other direction of each, (2 |E|,)."""
        return np.roll(np.arange(2 * len(self.edges)), len(self.edges))

    @cached_property
    def degrees(self) -> np.ndarray:
        """The number of neighbours of each node."""
        return np.bincount(self.sources, minlength=self.size)

    @cached_property
    def outgoing(self) -> tuple[np.ndarray, np.ndarray]:
        """Directed edges by sender, and where each node's start: those of node i are `order[start[i]:start[i+1]]`."""
        return np.argsort(self.sources, kind="stable"), np.concatenate([[0], np.cumsum(self.degrees)])

    @cached_property
    def adjacency(self) -> scipy.sparse.csr_array:
        """The adjacency matrix."""
        ones = np.ones(len(self.sources), dtype=np.int8)
        return scipy.sparse.csr_array((ones, (self.sources, self.targets)), shape=(self.size, self.size))

    @cached_property
    def components(self) -> np.ndarray:
        """The number of the connected component of each node, (n,)."""
        return connected_components(self.adjacency, directed=False)[1]

    @property
    def is_forest(self) -> bool:
        """Whether the graph has no cycle."""
        return len(self.edges) == self.size - (int(self.components.max()) + 1)

    def cycle(self) -> list[Hashable]:
        """The names along some cycle, in order; empty for a forest."""
        if self.is_forest:
            return []
        ends = list(range(self.size))  # union-find: the first edge within one set closes a cycle

        def end(i):
            while ends[i] != i:
                ends[i] = ends[ends[i]]
                i = ends[i]
            return i

        for e, (a, b) in enumerate(self.edges):
            if end(a) == end(b):
                tree = Graph(range(self.size), self.edges[:e])
                return [self.names[i] for i in _path(tree, int(a), int(b))]
            ends[end(a)] = end(b)
        return []

    def subgraph(self, names: Iterable[Hashable]) -> "Graph":
        """The graph of some nodes and the edges between them."""
        chosen = _distinct(names)
        position = np.full(self.size, -1)
        position[[self.index(name) for name in chosen]] = np.arange(len(chosen))
        edges = position[self.edges]
        return Graph(chosen, edges[(edges >= 0).all(axis=1)])

    def to_networkx(self) -> Any:
        """The graph as a `networkx.Graph`."""
        with optional("to_networkx"):
            import networkx

        graph = networkx.Graph()
        graph.add_nodes_from(self.names)
        graph.add_edges_from(self.known_edges())
        return graph

    def known_edges(self) -> list[tuple[Hashable, Hashable, dict[str, Any]]]:
        """The edges as pairs of names, each with its attributes, of which a plain graph has none."""
        return [(a, b, {}) for a, b in self.named_edges]

    def __hash__(self) -> int:
        return hash((type(self), *self.names))

    def __repr__(self) -> str:
        nodes, edges = (f"{n} {what}{'s' * (n != 1)}" for n, what in ((self.size, "node"), (len(self.edges), "edge")))
        return f"{type(self).__name__}({nodes}, {edges})"


def refuse_both_directions(edges: Iterable[Any], argument: str) -> None:
    """Raise if an edge is named in both directions, because one of the two would be lost."""
    known: set[frozenset] = set()
    for edge in edges:
        if frozenset(edge) in known:
            raise InputError(f"{argument} has the edge {edge!r} in both directions; expected each edge once.")
        known.add(frozenset(edge))


def _pair(edge: object) -> tuple:
    if isinstance(edge, str | bytes) or not isinstance(edge, Iterable) or len(pair := tuple(edge)) != 2:
        raise ShapeError(f'edges holds {edge!r}; expected pairs such as ("a", "b").')
    for end in pair:
        if not isinstance(end, Hashable):
            raise KindError(f"the edge {edge!r} ends in {a_type(end)}; expected names, numbers or tuples.")
    return pair


def _once(pairs: list[tuple]) -> list[tuple]:
    """Each undirected edge once: a directed NetworkX graph may hold both directions."""
    return list({frozenset(pair): pair for pair in reversed(pairs)}.values())[::-1]


def _distinct(nodes: Iterable[Hashable]) -> Sequence[Hashable]:
    names = nodes if isinstance(nodes, range) else tuple(nodes)
    if len(set(names)) < len(names):
        doubled = next(name for i, name in enumerate(names) if name in names[:i])
        raise InputError(f"nodes holds {doubled!r} twice; expected each name once.")
    return names


def _checked(edges: np.ndarray, names: Sequence[Hashable]) -> np.ndarray:
    """Edges without loops and doubles."""
    loops = np.flatnonzero(edges[:, 0] == edges[:, 1])
    if loops.size:
        raise InputError(
            f"edge {loops[0]} joins {names[edges[loops[0], 0]]!r} to itself; expected two different nodes."
        )
    keys = np.sort(edges, axis=1) @ np.array([len(names), 1])
    order = np.argsort(keys, kind="stable")
    doubled = order[1:][np.diff(keys[order]) == 0]
    if doubled.size:
        a, b = edges[doubled[0]]
        before = edges[order[:-1][np.diff(keys[order]) == 0][0]]
        ways = "" if before[0] == a else ", in both directions"
        raise InputError(
            f"the edge between {names[a]!r} and {names[b]!r} is given twice{ways}; expected each edge once."
        )
    return edges


def _path(forest: Graph, start: int, stop: int) -> list[int]:
    from scipy.sparse.csgraph import breadth_first_order

    before = breadth_first_order(forest.adjacency, start, directed=False)[1]
    path = [stop]
    while path[-1] != start:
        path.append(int(before[path[-1]]))
    return path[::-1]
