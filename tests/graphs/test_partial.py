"""Partially directed graphs: reading, writing, drawing, distances, and what cannot be read."""

import networkx
import numpy as np
import pytest

from meanmap.core.errors import EmptyError, InputError, KindError, ShapeError
from meanmap.graphs import PDAG, Graph, structural_hamming_distance, write_graphml
from meanmap.graphs.drawing import draw


def mixed():
    return PDAG.of([("a", "b"), ("c", "b")], [("c", "d")], nodes=["d", "c", "b", "a", "alone"])


def test_marks_and_matrix():
    graph = mixed()
    assert graph.names == ("d", "c", "b", "a", "alone")
    assert [graph.mark(*pair) for pair in ("ab", "ba", "cd", "dc", "ad")] == ["→", "←", "—", "—", None]
    assert {frozenset(pair) for pair in graph.skeleton.named_edges} == {frozenset(p) for p in ("ab", "bc", "cd")}
    assert (PDAG.of_matrix(graph.names, graph.matrix).matrix == graph.matrix).all()
    with pytest.raises(InputError, match="no node 'e'"):
        graph.mark("a", "e")


def test_networkx_there_and_back():
    graph = mixed()
    whole = graph.to_networkx()
    assert set(whole.edges) == {("a", "b"), ("c", "b"), ("c", "d"), ("d", "c")}
    assert whole.edges["a", "b"]["directed"]
    assert not whole.edges["d", "c"]["directed"]
    again = PDAG.of(whole)
    assert structural_hamming_distance(graph, again) == 0
    assert (again.matrix == graph.matrix).all()
    lines = PDAG.of(networkx.path_graph(3))
    assert lines.named("undirected") == [(0, 1), (1, 2)]
    assert PDAG.of(Graph.of([("a", "b")])).mark("a", "b") == "—"
    assert PDAG.of(graph) is graph
    assert PDAG.of(graph, [("a", "alone")]).mark("alone", "a") == "—"


def test_graphml_there_and_back(tmp_path):
    write_graphml(mixed(), tmp_path / "g.graphml")
    again = PDAG.of(networkx.read_graphml(tmp_path / "g.graphml"))
    assert structural_hamming_distance(mixed(), again) == 0
    with pytest.raises(InputError, match="two nodes called '1'"):
        write_graphml(PDAG.of([(1, "1")]), tmp_path / "g.graphml")


@pytest.mark.parametrize("pair", [("a", "b"), ("d", "a"), ("b", "c")])
def test_what_is_doubted_is_doubted_there_and_back(pair, tmp_path):
    """About an edge, about no edge, and against an arrow; in another order, too, and with an edge more."""
    graph = mixed()
    graph = PDAG(graph.names, graph.directed, graph.undirected, (pair,))
    write_graphml(graph, tmp_path / "g.graphml")
    networkx.write_graphml(graph.to_networkx(), tmp_path / "own.graphml")
    order = ["a", "b", "c", "d", "alone"]
    for again in (
        PDAG.of(graph.to_networkx()),
        PDAG.of(networkx.read_graphml(tmp_path / "g.graphml")),
        PDAG.of(networkx.read_graphml(tmp_path / "own.graphml")),
        PDAG.of(graph, nodes=order),
        PDAG.of(graph.to_networkx(), nodes=order),
        PDAG.of(graph, [("a", "alone")]),
    ):
        found = [(again.names[i], again.names[j]) for i, j in np.argwhere(again.doubts())]
        assert found == [pair]
    assert "doubted" not in mixed().to_networkx().graph
    alone = PDAG(graph.names, graph.directed, graph.undirected, (("a", "alone"),))
    assert not PDAG.of(alone, nodes=order[:4]).doubted  # nor can an effect depend on it


def test_names_of_what_is_doubted_are_nodes():
    graph = PDAG.of([(1, "b"), ("b", "1")])
    again = PDAG.of(PDAG(graph.names, graph.directed, graph.undirected, ((1, "b"),)).to_networkx())
    assert again.doubted == ((1, "b"), ("1", "b"))  # the same as text
    for text in ('[["a", "x"]]', "yes", "7", '["abc"]', 3.0, '[[["a"], "b"]]'):
        whole = mixed().to_networkx()
        whole.graph["doubted"] = text
        with pytest.raises(
            InputError, match=r"attribute 'doubted' is .* expected pairs of its nodes as text.*del graph"
        ):
            PDAG.of(whole)


def test_distances_count_pairs_that_differ():
    graph = PDAG.of([("a", "b"), ("b", "c")], [("c", "d")])
    for other, distance in [
        (graph, 0),
        (PDAG.of([("b", "a"), ("b", "c")], [("c", "d")]), 1),  # turned round
        (PDAG.of([("b", "c")], [("a", "b"), ("c", "d")]), 1),  # direction lost
        (PDAG.of([("b", "c")], [("c", "d")], nodes="abcd"), 1),  # missing
        (PDAG.of([("a", "b"), ("b", "c"), ("a", "d")], [("c", "d")]), 1),  # added
        (PDAG.of([], nodes="dcba"), 3),
    ]:
        assert structural_hamming_distance(graph, other) == distance
        assert structural_hamming_distance(other, graph) == distance
    with pytest.raises(InputError, match="different nodes: 'e' in one"):
        structural_hamming_distance(graph, PDAG.of(graph, nodes="abcde"))
    with pytest.raises(KindError, match="second is a DiGraph"):
        structural_hamming_distance(graph, networkx.DiGraph([("a", "b")]))


def test_what_is_printed():
    assert str(mixed()).splitlines() == [
        "PDAG with 5 nodes, 2 arrows and 1 undirected edge",
        "  a → b",
        "  c → b",
        "  c — d",
    ]
    assert repr(mixed()) == "PDAG(5 nodes, 2 arrows, 1 edges)"


def test_the_drawing_has_every_node_and_edge():
    axes = mixed().plot()
    names = {text.get_text() for text in axes.texts if text.get_text()}
    assert names == {"a", "b", "c", "d", "alone"}
    heads = [text.arrowprops["arrowstyle"] for text in axes.texts if getattr(text, "arrowprops", None)]
    assert sorted(heads) == ["-", "-|>", "-|>"]
    given = {name: (i, i) for i, name in enumerate("abcd")} | {"alone": (9, 9)}
    assert mixed().plot(axes, positions=given) is axes


def test_edges_that_were_seldom_found_are_dashed():
    support = {("a", "b"): 0.4, ("c", "b"): 0.9}
    axes = draw(PDAG.of([("a", "b"), ("c", "b")]), support=support)
    styles = [text.arrow_patch.get_linestyle() for text in axes.texts if getattr(text, "arrow_patch", None)]
    assert styles == ["dashed", "solid"]


def test_what_cannot_be_read():
    with pytest.raises(InputError, match="given twice"):
        PDAG.of([("a", "b")], [("b", "a")])
    with pytest.raises(InputError, match="to itself"):
        PDAG.of([("a", "a")])
    with pytest.raises(InputError, match="'c', which is not among nodes"):
        PDAG.of([("a", "c")], nodes="ab")
    with pytest.raises(ShapeError, match="expected pairs"):
        PDAG.of(["ab", "bc"])
    with pytest.raises(EmptyError, match="no nodes"):
        PDAG.of([])
    assert PDAG.of([], nodes=["a"]).matrix.shape == (1, 1)
    assert np.array_equal(PDAG.of([], nodes=["a"]).directed, np.zeros((0, 2)))
