"""Equivalence classes and Meek's rules against the enumeration of every orientation."""

import networkx
import numpy as np
import pytest

from meanmap.core.errors import InputError
from meanmap.graphs import PDAG, equivalence_class
from meanmap.graphs.orientation import causes_first, consistent_extension, find_cycle, meek, unshielded_colliders
from tests.graphs.enumeration import arrows_and_lines, colliders, members, random_dag, union


@pytest.mark.parametrize("seed", range(12))
def test_equivalence_classes_are_those_of_enumeration(seed):
    generator = np.random.default_rng(seed)
    dag = random_dag(int(generator.integers(3, 7)), generator.uniform(0.3, 0.7), generator)
    found = equivalence_class(dag)
    assert arrows_and_lines(found) == union(members(dag))
    assert unshielded_colliders(PDAG.of(dag)) == colliders(dag)


@pytest.mark.parametrize("seed", range(12))
def test_rules_with_knowledge_are_those_of_enumeration(seed):
    """Rule 4 too: some arrows of the true graph are told, and no rule may miss or invent what follows from them."""
    generator = np.random.default_rng(100 + seed)
    dag = random_dag(6, 0.6, generator)
    told = [edge for edge in dag.edges if generator.random() < 0.3]
    whole = equivalence_class(dag)
    matrix = whole.matrix.copy()
    for a, b in told:
        matrix[whole.skeleton.index(b), whole.skeleton.index(a)] = False
    found, refused = meek(matrix)
    assert refused == []
    agreeing = members(dag, lambda graph: all(graph.has_edge(*edge) for edge in told))
    assert arrows_and_lines(PDAG.of_matrix(whole.names, found)) == union(agreeing)


def test_rule_four_is_needed():
    """a — d → c → b with a joined to all: only rule 4 directs a → b."""
    matrix = PDAG.of([("d", "c"), ("c", "b")], [("a", "b"), ("a", "c"), ("a", "d")], nodes="abcd").matrix
    assert PDAG.of_matrix("abcd", meek(matrix)[0]).mark("a", "b") == "→"


def test_contradictions_are_left_open_and_told():
    # c → a — b ← d: rule 1 wants the edge both ways.
    matrix = PDAG.of([("c", "a"), ("d", "b")], [("a", "b")], nodes="abcd").matrix
    found, refused = meek(matrix)
    assert refused == [(0, 1)]
    assert (found == matrix).all()
    # Rule 1 wants a → b, which is barred.
    matrix = PDAG.of([("c", "a")], [("a", "b")], nodes="abc").matrix
    barred = np.zeros_like(matrix)
    barred[0, 1] = True
    assert meek(matrix, barred)[1] == [(0, 1)]


def test_a_triple_in_doubt_directs_nothing():
    matrix = PDAG.of([("a", "b")], [("b", "c")], nodes="abc").matrix
    assert PDAG.of_matrix("abc", meek(matrix)[0]).mark("b", "c") == "→"
    assert (meek(matrix, doubtful=[(0, 1, 2)])[0] == matrix).all()
    assert (meek(matrix, doubtful=[(2, 1, 0)])[0] == matrix).all()


def test_no_rule_closes_a_cycle():
    generator = np.random.default_rng(0)
    for _ in range(200):
        # Arrows at random along an order and lines: mostly no equivalence class at all.
        dag = PDAG.of(random_dag(6, 0.6, generator))
        matrix = dag.matrix | (dag.matrix.T & (generator.random(dag.matrix.shape) < 0.5))
        found, refused = meek(matrix)
        assert not find_cycle(PDAG.of_matrix(dag.names, found))
        assert ((found | found.T) == (matrix | matrix.T)).all()
        for a, b in refused:
            assert found[a, b]
            assert found[b, a]


def test_bad_graphs():
    with pytest.raises(InputError, match="has a cycle: a → b → c → a"):
        equivalence_class([("a", "b"), ("b", "c"), ("c", "a")])
    with pytest.raises(InputError, match="undirected edges, such as"):
        equivalence_class(PDAG.of([("a", "b")], [("b", "c")]))
    assert find_cycle(PDAG.of(networkx.path_graph(4, create_using=networkx.DiGraph))) == []


@pytest.mark.parametrize("seed", range(12))
def test_extensions_are_members_of_the_class(seed):
    generator = np.random.default_rng(200 + seed)
    whole = equivalence_class(random_dag(int(generator.integers(3, 7)), generator.uniform(0.3, 0.7), generator))
    found = consistent_extension(whole)
    assert len(found.undirected) == 0
    assert arrows_and_lines(equivalence_class(found)) == arrows_and_lines(whole)


def test_a_square_without_directions_has_no_extension():
    square = PDAG.of([], [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    with pytest.raises(InputError, match="cannot all be oriented"):
        consistent_extension(square)


def test_causes_come_first_however_long_a_chain_is():
    """Level by level in the order of names; 3000 nodes, written from the last effect to the first cause."""
    assert causes_first(PDAG.of([("b", "a"), ("c", "a"), ("a", "d")], nodes="dabce")) == ["b", "c", "e", "a", "d"]
    n = 3000
    chain = PDAG.of([(i + 1, i) for i in range(n)])
    assert causes_first(chain) == list(range(n, -1, -1))


@pytest.mark.parametrize("steps", [[(i, i + 1) for i in range(5000)], [(0, i + 1) for i in range(5000)]])
def test_chains_and_hubs_are_extended_in_linear_time(steps):
    """5000 nodes in a tenth of a second; by matrices 300 in a chain took a second."""
    assert consistent_extension(PDAG.of(steps)).named() == steps
    assert len(consistent_extension(PDAG.of([], steps)).directed) == len(steps)
