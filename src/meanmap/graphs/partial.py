"""Partially directed graphs: arrows, and edges whose direction is not known."""

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from meanmap.core.errors import InputError, KindError
from meanmap.core.extras import optional
from meanmap.core.language import a_type, counted
from meanmap.core.types import Axes
from meanmap.core.values import Value
from meanmap.graphs.drawing import draw
from meanmap.graphs.graph import Graph, is_networkx
from meanmap.graphs.pages import graph_page
from meanmap.plots.facts import Page
from meanmap.plots.paged import Paged

__all__ = ["PDAG", "structural_hamming_distance"]

# The attribute of a NetworkX graph that holds the doubted arrows.
DOUBTED = "doubted"


@dataclass(frozen=True, eq=False, repr=False)
class PDAG(Value, Paged):
    """A partially directed graph: the part of a causal graph that data determine; some edges have a direction, others
    none.

    Attributes
    ----------
    names : sequence
        The nodes.
    directed : array (|A|, 2)
        Node numbers (from, to) of the arrows.
    undirected : array (|U|, 2)
        Node numbers of the edges without a direction.
    doubted : tuple of pairs (from, to)
        Arrows that may or may not be present, because tests contradict each other or do not decide whether a variable
        is a collider. Effects that depend on them are refused.

    Examples
    --------
    >>> graph = PDAG.of([("rain", "street"), ("hose", "street")], [("rain", "clouds")])
    >>> print(graph)
    PDAG with 4 nodes, 2 arrows and 1 undirected edge
      rain → street
      hose → street
      rain — clouds
    >>> graph.mark("street", "rain"), graph.mark("rain", "clouds"), graph.mark("hose", "clouds")
    ('←', '—', None)
    """

    names: Sequence[Hashable]
    directed: np.ndarray
    undirected: np.ndarray
    doubted: tuple[tuple, ...] = ()

    @classmethod
    def of(cls, directed: Any, undirected: Iterable = (), nodes: Iterable[Hashable] | None = None) -> "PDAG":
        """Read a PDAG, a Graph, a NetworkX graph, or lists of arrows and of undirected edges.

        Parameters
        ----------
        directed : PDAG, Graph, networkx graph, or pairs (from, to)
            In a `networkx.DiGraph` an edge present in both directions is undirected, and the doubted arrows are an
            attribute of the graph, as `to_networkx` writes them.
        undirected : pairs, optional
            Edges without a direction.
        nodes : iterable, optional
            All nodes, in order, for nodes without an edge or another order.
        """
        lines, doubted = list(undirected), ()
        if isinstance(directed, PDAG):
            if not lines and nodes is None:
                return directed
            lines = [*directed.named("undirected"), *lines]
            nodes = directed.names if nodes is None else nodes
            arrows, doubted = directed.named("directed"), directed.doubted
        elif isinstance(directed, Graph) or (is_networkx(directed) and not directed.is_directed()):
            plain = Graph.of(directed, nodes)
            arrows, lines, nodes = [], [*plain.named_edges, *lines], plain.names
        elif is_networkx(directed):
            lines += {frozenset(pair): pair for pair in directed.edges if directed.has_edge(*pair[::-1])}.values()
            nodes = list(directed.nodes) if nodes is None else nodes
            arrows = [pair for pair in directed.edges if not directed.has_edge(*pair[::-1])]
            doubted = _read_doubted(directed)
        else:
            arrows = list(directed)
        whole = Graph.of([*arrows, *lines], nodes)  # reads pairs, refuses loops and duplicate edges
        doubted = tuple(pair for pair in doubted if set(pair) <= set(whole.names))
        return cls(whole.names, whole.edges[: len(arrows)], whole.edges[len(arrows) :], doubted)

    @classmethod
    def of_matrix(cls, names: Sequence[Hashable], matrix: np.ndarray) -> "PDAG":
        """From a matrix whose entry (i, j) is true if i → j is possible; both entries mean an undirected edge."""
        matrix = np.asarray(matrix, dtype=bool)
        arrows, lines = matrix & ~matrix.T, np.triu(matrix & matrix.T)
        return cls(tuple(names), np.argwhere(arrows), np.argwhere(lines))

    @cached_property
    def matrix(self) -> np.ndarray:
        """True at (i, j) for i → j, and at (i, j) and (j, i) for an edge without a direction."""
        matrix = np.zeros((self.size, self.size), dtype=bool)
        for edges in (self.directed, self.undirected, self.undirected[:, ::-1]):
            matrix[edges[:, 0], edges[:, 1]] = True
        return matrix

    @property
    def size(self) -> int:
        """The number of nodes."""
        return len(self.names)

    @cached_property
    def skeleton(self) -> Graph:
        """The graph without its directions."""
        return Graph(self.names, np.concatenate([self.directed, self.undirected]))

    def named(self, kind: str = "directed") -> list[tuple]:
        """The "directed" or the "undirected" edges as pairs of names."""
        return [(self.names[a], self.names[b]) for a, b in getattr(self, kind)]

    def mark(self, a: Hashable, b: Hashable) -> str | None:
        """The edge from a to b as it is printed: →, ←, —, or None if there is none."""
        i, j = self.skeleton.index(a), self.skeleton.index(b)
        return {(True, False): "→", (False, True): "←", (True, True): "—"}.get(
            (bool(self.matrix[i, j]), bool(self.matrix[j, i]))
        )

    def doubts(self) -> np.ndarray:
        """A (d, d) array, True at (i, j) if the arrow i → j is `doubted`."""
        found = np.zeros((self.size, self.size), dtype=bool)
        for a, b in self.doubted:
            found[self.skeleton.index(a), self.skeleton.index(b)] = True
        return found

    def no_path(self, cause: Hashable, effect: Hashable) -> tuple[str, ...]:
        """The note on the effect of one variable on another to which no directed path leads.

        Examples
        --------
        >>> print(*PDAG.of([("rain", "street")]).no_path("street", "rain"))
        the graph, not the data, implies that setting 'street' does not change 'rain': it has the arrow rain → street. \
If you doubt that, change the graph and ask again.
        """
        reversed_ = self.mark(cause, effect) == "←"
        why = f"it has the arrow {effect} → {cause}" if reversed_ else "no path of its arrows leads there"
        said = f"the graph, not the data, implies that setting {cause!r} does not change {effect!r}: {why}."
        return (f"{said} If you doubt that, change the graph and ask again.",)

    def to_networkx(self) -> Any:
        """A `networkx.DiGraph`; an undirected edge is present in both directions, with the attribute directed=False.

        The pairs of names in `doubted`, which may have no edge, are a graph attribute of this name, as JSON text, which
        files can store.
        """
        with optional("to_networkx"):
            import networkx

        graph = networkx.DiGraph()
        graph.add_nodes_from(self.names)
        if self.doubted:
            graph.graph[DOUBTED] = json.dumps([list(map(str, pair)) for pair in self.doubted])
        for a, b, known in self.known_edges():
            graph.add_edges_from([(a, b)] if known["directed"] else [(a, b), (b, a)], **known)
        return graph

    def known_edges(self) -> list[tuple[Hashable, Hashable, dict[str, Any]]]:
        """The edges as pairs of names, each with its attributes: here whether it is directed."""
        arrows = [(a, b, {"directed": True}) for a, b in self.named("directed")]
        return arrows + [(a, b, {"directed": False}) for a, b in self.named("undirected")]

    def plot(self, ax: Axes | None = None, *, positions: Mapping[Hashable, Any] | None = None) -> Any:
        """Draw the graph; returns the matplotlib Axes. `positions` maps names to (x, y)."""
        return draw(self, ax, positions=positions, labels=self._labels(), support=self._support())

    def _labels(self) -> dict[tuple, str]:
        """Labels of edges."""
        return {}

    def _support(self) -> Mapping[tuple, float]:
        """The proportion of half-samples in which each edge was found, if these were requested."""
        return {}

    def _as_page(self, brief: bool = False) -> Page:
        pairs = [*self.named("directed"), *self.named("undirected")]
        arrows = [i < len(self.directed) for i in range(len(pairs))]
        return graph_page(self, pairs, arrows, self._known(), str(self), self._meaning(), self._title)

    @property
    def _title(self) -> str:
        """The title of its page."""
        return "A graph"

    def _known(self) -> dict[str, Mapping[tuple, float]]:
        """Numbers for edges, by the name of the quantity."""
        return {}

    def _meaning(self) -> str:
        """What edges and numbers mean, in sentences."""
        return ""

    def __str__(self) -> str:
        first = (
            f"{type(self).__name__} with {counted(self.size, 'node')}, {counted(len(self.directed), 'arrow')} and "
            f"{counted(len(self.undirected), 'undirected edge')}"
        )
        labels = self._labels()
        lines = [(pair, "→") for pair in self.named("directed")] + [(pair, "—") for pair in self.named("undirected")]
        return "\n".join([first, *(f"  {a} {mark} {b}  {labels.get((a, b), '')}".rstrip() for (a, b), mark in lines)])

    def __hash__(self) -> int:
        return hash((type(self), *self.names))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size} nodes, {len(self.directed)} arrows, {len(self.undirected)} edges)"


def _read_doubted(graph: Any) -> tuple[tuple, ...]:
    """The doubted arrows of a NetworkX graph; nodes whose names are equal as text count as the same."""
    text = graph.graph.get(DOUBTED, "[]")
    called: dict[str, list[Hashable]] = {}
    for name in graph.nodes:
        called.setdefault(str(name), []).append(name)
    try:
        pairs = [(called[a], called[b]) for a, b in json.loads(text)]
    except (TypeError, ValueError, KeyError):
        raise InputError(
            f"the graph's attribute {DOUBTED!r} is {text!r}; expected pairs of its nodes as text, as to_networkx() "
            f"writes them. After nodes were renamed or left out, del graph.graph[{DOUBTED!r}] if you doubt no edge."
        ) from None
    return tuple((a, b) for first, second in pairs for a in first for b in second)


def structural_hamming_distance(first: PDAG, second: PDAG) -> int:
    """The number of pairs of nodes that are connected differently: a missing, an extra, or a differently oriented edge.

    An arrow in one graph and an undirected edge in the other differ by one, as do opposite arrows (Tsamardinos, Brown &
    Aliferis 2006, compared as equivalence classes).

    Examples
    --------
    >>> structural_hamming_distance(PDAG.of([("a", "b"), ("b", "c")]), PDAG.of([("b", "a")], nodes=["c", "a", "b"]))
    2
    """
    for graph, argument in ((first, "first"), (second, "second")):
        if not isinstance(graph, PDAG):
            raise KindError(f"{argument} is {a_type(graph)}; expected a PDAG: pass mm.graphs.PDAG.of(graph).")
    if set(first.names) != set(second.names):
        odd = sorted(map(repr, set(first.names) ^ set(second.names)))
        raise InputError(f"the graphs have different nodes: {', '.join(odd[:5])} in one of them only.")
    order = [second.skeleton.index(name) for name in first.names]
    differs = first.matrix != second.matrix[np.ix_(order, order)]
    return int(np.triu(differs | differs.T).sum())
