"""Reading graphs: every way in, and what is refused."""

import networkx
import numpy as np
import pytest

from meanmap.core.errors import EmptyError, InputError, KindError, ShapeError
from meanmap.graphs import Graph

PAIRS = [("a", "b"), ("b", "c"), ("b", "d")]


def test_every_way_in_gives_the_same_graph():
    listed = Graph.of(PAIRS)
    net = Graph.of(networkx.Graph(PAIRS))
    numbered = Graph.of(np.array([[0, 1], [1, 2], [1, 3]]))
    assert listed.names == net.names == ("a", "b", "c", "d")
    assert list(numbered.names) == [0, 1, 2, 3]
    for graph in (net, numbered):
        np.testing.assert_array_equal(graph.edges, listed.edges)
    assert Graph.of(listed) is listed


def test_names_may_be_numbers_tuples_and_mixtures():
    graph = Graph.of([((0, 0), (0, 1)), ((0, 1), "end")])
    assert graph.index((0, 1)) == 1
    assert graph.index("end") == 2


def test_nodes_give_the_order_and_nodes_without_edges():
    graph = Graph.of([("b", "a")], nodes=["a", "b", "alone"])
    assert graph.names == ("a", "b", "alone")
    assert graph.degrees.tolist() == [1, 1, 0]
    assert graph.components.tolist() == [0, 0, 1]
    assert Graph.of([], nodes=["alone"]).is_forest


def test_directed_edges_are_two_for_each_edge():
    graph = Graph.of(PAIRS)
    assert graph.sources.tolist() == [0, 1, 1, 1, 2, 3]
    assert graph.targets.tolist() == [1, 2, 3, 0, 1, 1]
    order, start = graph.outgoing
    for node in range(graph.size):
        assert set(graph.sources[order[start[node] : start[node + 1]]]) <= {node}


def test_a_directed_networkx_graph_loses_its_directions():
    both = networkx.DiGraph([("a", "b"), ("b", "a"), ("b", "c")])
    assert len(Graph.of(both).edges) == 2


def test_networkx_and_back():
    graph = Graph.of(PAIRS, nodes=["a", "b", "c", "d", "alone"])
    again = Graph.of(graph.to_networkx())
    assert again.names == graph.names
    assert {frozenset(e) for e in again.named_edges} == {frozenset(e) for e in graph.named_edges}


def test_a_cycle_is_found_and_is_one():
    rng = np.random.default_rng(0)
    for _ in range(20):
        net = networkx.gnm_random_graph(12, 14, seed=int(rng.integers(1000)))
        graph = Graph.of(net)
        cycle = graph.cycle()
        assert graph.is_forest == networkx.is_forest(net) == (cycle == [])
        if cycle:
            assert len(cycle) >= 3
            assert len(set(cycle)) == len(cycle)
            assert all(net.has_edge(a, b) for a, b in zip(cycle, [*cycle[1:], cycle[0]], strict=True))


def test_subgraph_keeps_the_order_asked_for():
    part = Graph.of(PAIRS).subgraph(["d", "b", "a"])
    assert part.names == ("d", "b", "a")
    assert {frozenset(e) for e in part.named_edges} == {frozenset("ab"), frozenset("bd")}


@pytest.mark.parametrize(
    ("bad", "error", "words"),
    [
        ("ab", KindError, "graph is a str; expected a Graph, a NetworkX graph or a list of edges"),
        (3, KindError, "graph is an int"),
        ([("a", "a")], InputError, "edge 0 joins 'a' to itself"),
        (
            [("a", "b"), ("b", "a")],
            InputError,
            "between 'b' and 'a' is given twice, in both directions; expected each edge once",
        ),
        ([("a", "b", "c")], ShapeError, "expected pairs"),
        (["ab"], ShapeError, "expected pairs"),
        ([("a", ["b"])], KindError, "ends in a list"),
        (np.zeros((2, 3), dtype=int), ShapeError, r"shape \(2, 3\); expected \(\|E\|, 2\)"),
        (np.array([[0, -1]]), InputError, "negative node number -1"),
        (np.zeros((0, 2), dtype=int), EmptyError, "no edges and no nodes"),
        ([], EmptyError, "no edges and no nodes"),
        (networkx.MultiGraph([("a", "b")]), KindError, "multigraph"),
    ],
    ids=range(12),
)
def test_bad_graphs_are_refused(bad, error, words):
    with pytest.raises(error, match=words):
        Graph.of(bad)


def test_bad_names_are_refused():
    with pytest.raises(InputError, match="nodes holds 'a' twice"):
        Graph.of(PAIRS, nodes=["a", "b", "a"])
    with pytest.raises(InputError, match="ends in 'c', which is not among nodes"):
        Graph.of(PAIRS, nodes=["a", "b"])
    with pytest.raises(InputError, match="no node 'z'; it has 'a', 'b', 'c', 'd'"):
        Graph.of(PAIRS).index("z")
    with pytest.raises(InputError, match="holds node 3, but nodes has only 2 entries"):
        Graph.of(np.array([[0, 3]]), nodes=["a", "b"])
