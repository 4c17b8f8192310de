"""GraphML and UAI: there and back, against NetworkX and a file written by hand, and broken files."""

import networkx
import numpy as np
import pytest

from meanmap.core.errors import InputError, KindError, ShapeError
from meanmap.graphs import Factors, Graph, Rooted, prune, read_graphml, read_uai, write_graphml, write_uai


def test_graphml_there_and_back(tmp_path):
    graph = Graph.of([("a", "b"), ("b", "c")], nodes=["c", "a", "b", "alone"])
    write_graphml(graph, tmp_path / "g.graphml")
    again = read_graphml(tmp_path / "g.graphml")
    assert again.names == graph.names
    assert {frozenset(e) for e in again.named_edges} == {frozenset(e) for e in graph.named_edges}
    assert networkx.is_isomorphic(networkx.read_graphml(tmp_path / "g.graphml"), graph.to_networkx())


def test_broken_graphml(tmp_path):
    (tmp_path / "g.graphml").write_text("<graphml><node")
    with pytest.raises(InputError, match="is not a GraphML file"):
        read_graphml(tmp_path / "g.graphml")
    with pytest.raises(KindError, match="expected a Graph"):
        write_graphml(7, tmp_path / "g.graphml")


@pytest.mark.parametrize("give", [lambda edges: edges, networkx.Graph], ids=["edges", "networkx"])
def test_whatever_takes_a_graph_takes_edges_and_networkx(tmp_path, give):
    edges = [("a", "b"), ("b", "c"), ("c", "d")]
    write_graphml(give(edges), tmp_path / "g.graphml")
    assert set(read_graphml(tmp_path / "g.graphml").names) == set("abcd")
    assert prune(give(edges), evidence=["c"], targets=["b"]).names == ("b", "c")
    assert Rooted.at(give(edges), ["a"]).depth.tolist() == [0, 1, 2, 3]


# The example of the format's description: three variables, two factors.
EXAMPLE = """MARKOV
3
2 2 3
2
2 0 1
2 1 2

4
 4.000 2.400
 1.000 0.000

6
 2.2500 3.2500 3.7500
 0.0000 0.0000 10.0000
"""


def test_uai_by_hand(tmp_path):
    (tmp_path / "m.uai").write_text(EXAMPLE)
    factors = read_uai(tmp_path / "m.uai")
    assert factors.cardinalities.tolist() == [2, 2, 3]
    assert factors.scopes == ((0, 1), (1, 2))
    np.testing.assert_array_equal(factors.tables[0], [[4, 2.4], [1, 0]])
    np.testing.assert_array_equal(factors.tables[1], [[2.25, 3.25, 3.75], [0, 0, 10]])


def test_uai_there_and_back_keeps_all_digits(tmp_path):
    rng = np.random.default_rng(0)
    factors = Factors([2, 3, 4], ((1,), (2, 0), (0, 1, 2)), (rng.random(3), rng.random((4, 2)), rng.random((2, 3, 4))))
    write_uai(factors, tmp_path / "m.uai")
    again = read_uai(tmp_path / "m.uai")
    assert again.scopes == factors.scopes
    for a, b in zip(again.tables, factors.tables, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("PNG", "begins with 'PNG'; expected a UAI file"),
        ("", "begins with ''"),
        ("MARKOV 2 2", "ends early: the number of states of a variable is missing"),
        ("MARKOV 1 two", "holds 'two' where the number of states"),
        ("MARKOV 1 2 1 1 5 2 1 1", "expected numbers from 0 to 0"),
        ("MARKOV 1 2 1 1 0 3 1 1 1", "a table of 3 entries"),
        ("MARKOV 1 2 1 1 0 2 1", "an entry of a table is missing"),
    ],
)
def test_broken_uai(tmp_path, text, words):
    (tmp_path / "m.uai").write_text(text)
    with pytest.raises(InputError, match=words):
        read_uai(tmp_path / "m.uai")


def test_factors_that_do_not_fit():
    with pytest.raises(ShapeError, match=r"factor 0 has shape \(2, 2\); expected \(2, 3\)"):
        Factors([2, 3], ((0, 1),), (np.ones((2, 2)),))
    with pytest.raises(InputError, match=r"factor 0 is on variables \(0, 0\)"):
        Factors([2, 3], ((0, 0),), (np.ones((2, 2)),))
    with pytest.raises(KindError, match=r"expected mm\.graphs\.Factors"):
        write_uai("m", "m.uai")
