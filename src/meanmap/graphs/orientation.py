"""Directions implied by others: Meek's rules, orders and cycles of arrows, and the equivalence class of a DAG."""

from collections.abc import Hashable, Iterable
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush

import numpy as np

from meanmap.core.errors import InputError
from meanmap.core.types import GraphLike
from meanmap.graphs.partial import PDAG

__all__ = [
    "causes_first",
    "consistent_extension",
    "equivalence_class",
    "find_cycle",
    "meek",
    "reaches",
    "unshielded_colliders",
]


def meek(
    matrix: np.ndarray, barred: np.ndarray | None = None, doubtful: Iterable[tuple[int, int, int]] = ()
) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Orient every edge whose other direction would create a cycle or a new collider (Meek 1995, rules 1 to 4).

    Parameters
    ----------
    matrix : bool array (d, d)
        A PDAG as `PDAG.matrix`.
    barred : bool array (d, d), optional
        Arrows that are ruled out, for example by background knowledge.
    doubtful : triples (a, b, c), optional
        Unshielded triples a — b — c of which it is unknown whether they are colliders. No rule treats b as a
        non-collider (Colombo & Maathuis 2014, section 4.2).

    Returns
    -------
    matrix : bool array (d, d)
        The PDAG with more arrows.
    refused : list of pairs
        Edges that the rules would orient both ways, against `barred`, or into a cycle. They stay undirected, because
        the colliders or the background knowledge behind them contradict each other.

    Notes
    -----
    Edges that lead to a contradiction are left undirected, so that the answer does not depend on the order of nodes.
    Rule 4 is needed only with background knowledge. Cost O(d³) per round.
    """
    matrix = matrix.copy()
    refused, barred = np.zeros_like(matrix), np.zeros_like(matrix) if barred is None else barred
    known = np.ones((len(matrix),) * 3, dtype=bool)
    for a, b, c in doubtful:
        known[a, b, c] = known[c, b, a] = False
    while True:
        found = _implied(matrix, known) & ~refused
        unsure = found & (found.T | barred | reaches(matrix & ~matrix.T).T)
        refused |= unsure | unsure.T
        found &= ~refused
        if not found.any():
            return matrix, [(int(a), int(b)) for a, b in np.argwhere(np.triu(refused))]
        # One at a time if there may be cycles, because each arrow changes what the next one reaches.
        for a, b in np.argwhere(found):
            if reaches(matrix & ~matrix.T)[b, a]:
                refused[a, b] = refused[b, a] = True
            else:
                matrix[b, a] = False


def _implied(matrix: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The undirected edges a — b, as entries (a, b), that must be a → b, from triples that are `known`."""
    arrows, lines, joined = matrix & ~matrix.T, matrix & matrix.T, matrix | matrix.T
    apart = ~joined & ~np.eye(len(matrix), dtype=bool)
    found = np.zeros_like(matrix)
    for a, b in np.argwhere(lines):
        beside = apart[:, b] & known[:, a, b]
        chain = (arrows[:, a] & beside).any()  # c → a — b would be a collider the other way
        shortcut = (arrows[a] & arrows[:, b]).any()  # a → c → b would close a cycle
        ends = np.flatnonzero(lines[a] & arrows[:, b])  # a — c → b ← d — a, c and d apart
        roof = (apart & known[:, a])[np.ix_(ends, ends)].any()
        last = np.flatnonzero(joined[a] & arrows[:, b])  # a — d → c → b, a joined to c, d and b apart
        kite = ((lines[a] & beside)[:, None] & arrows[:, last]).any()
        found[a, b] = chain or shortcut or roof or kite
    return found


def reaches(arrows: np.ndarray) -> np.ndarray:
    """Which nodes are reachable from which along arrows; each is reachable from itself."""
    reach = arrows | np.eye(len(arrows), dtype=bool)
    while True:
        further = (reach.astype(np.float32) @ reach.astype(np.float32)) > 0
        if (further == reach).all():
            return reach
        reach = further


def causes_first(graph: PDAG) -> list[Hashable]:
    """The names of an acyclic graph in topological order: level by level, each in the graph's order."""
    order, found = _sorter(graph), []
    place = {name: number for number, name in enumerate(graph.names)}
    order.prepare()
    while order.is_active():
        level = sorted(order.get_ready(), key=place.__getitem__)
        order.done(*level)
        found += level
    return found


def _sorter(graph: PDAG) -> TopologicalSorter:
    order = TopologicalSorter(dict.fromkeys(graph.names, ()))
    for start, end in graph.named("directed"):
        order.add(end, start)
    return order


def find_cycle(graph: PDAG) -> list[Hashable]:
    """The names along some cycle of arrows; empty without one."""
    order = _sorter(graph)
    try:
        order.prepare()
    except CycleError as error:
        return error.args[1][:-1]  # it ends where it begins
    return []


def unshielded_colliders(graph: PDAG) -> set[tuple[frozenset, Hashable]]:
    """Each a → b ← c with a and c not adjacent, as ({a, c}, b)."""
    arrows, joined = graph.matrix & ~graph.matrix.T, graph.matrix | graph.matrix.T
    found = set()
    for b in range(graph.size):
        into = np.flatnonzero(arrows[:, b]).tolist()
        found |= {
            (frozenset((graph.names[a], graph.names[c])), graph.names[b])
            for i, a in enumerate(into)
            for c in into[i + 1 :]
            if not joined[a, c]
        }
    return found


def consistent_extension(graph: PDAG) -> PDAG:
    """A directed acyclic graph with these arrows and no further unshielded colliders (Dor & Tarsi 1992).

    Examples
    --------
    >>> print(consistent_extension(PDAG.of([("a", "b")], [("b", "c")])))
    PDAG with 3 nodes, 2 arrows and 0 undirected edges
      a → b
      b → c
    """
    children, lines, near = ([set() for _ in range(graph.size)] for _ in range(3))
    for edges, of in ((graph.directed, children), (graph.undirected, lines), (graph.undirected[:, ::-1], lines)):
        for start, end in edges.tolist():
            of[start].add(end)
            near[start].add(end)
            near[end].add(start)
    arrows, removed, waiting = graph.directed.tolist(), set(), list(range(graph.size))
    while waiting:
        node = heappop(waiting)
        if node in removed or children[node]:
            continue
        if all(other == line or other in near[line] for line in lines[node] for other in near[node]):
            arrows += [[line, node] for line in lines[node]]
            removed.add(node)
            for other in near[node]:  # only these may have become sinks
                for of in (children, lines, near):
                    of[other].discard(node)
                heappush(waiting, other)
    if len(removed) < graph.size:
        raise InputError(
            "the undirected edges of the graph cannot all be oriented without a cycle or a new collider: orient "
            "some of them yourself, mm.graphs.PDAG.of(arrows, lines)."
        )
    return PDAG(graph.names, np.array(sorted(arrows), dtype=int).reshape(-1, 2), np.zeros((0, 2), dtype=int))


def equivalence_class(dag: GraphLike) -> PDAG:
    """The graph of all directed acyclic graphs with the same conditional independences as this one.

    Its arrows are those that all of them share (Verma & Pearl 1990; Meek 1995): an arrow of an unshielded collider, or
    one implied by those.

    Parameters
    ----------
    dag : PDAG, networkx.DiGraph or list of pairs (from, to)
        Without cycles and without undirected edges.

    Examples
    --------
    >>> print(equivalence_class([("a", "b"), ("c", "b"), ("b", "d")]))  # all arrows follow
    PDAG with 4 nodes, 3 arrows and 0 undirected edges
      a → b
      b → d
      c → b
    >>> print(equivalence_class([("a", "b"), ("b", "c")]))
    PDAG with 3 nodes, 0 arrows and 2 undirected edges
      a — b
      b — c
    """
    pdag = PDAG.of(dag)
    if len(pdag.undirected):
        first = pdag.named("undirected")[0]
        raise InputError(f"the graph has undirected edges, such as {first}; expected arrows only.")
    if cycle := find_cycle(pdag):
        raise InputError(f"the graph has a cycle: {' → '.join(map(str, [*cycle, cycle[0]]))}.")
    matrix = pdag.matrix | pdag.matrix.T
    for ends, middle in unshielded_colliders(pdag):
        for end in ends:
            matrix[pdag.skeleton.index(middle), pdag.skeleton.index(end)] = False
    return PDAG.of_matrix(pdag.names, meek(matrix)[0])
