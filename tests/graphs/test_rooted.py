"""Rooted forests against NetworkX and against what their words mean."""

import networkx
import numpy as np
import pytest

from meanmap.core.errors import InputError
from meanmap.graphs import Graph, Rooted, prune
from meanmap.graphs.rooted import centres, informed


def random_forest(seed, n=15, drop=2):
    rng = np.random.default_rng(seed)
    edges = [(int(rng.integers(i)), i) for i in range(1, n)]
    kept = sorted(rng.permutation(len(edges))[drop:])
    labels = rng.permutation(n)
    return Graph.of(np.array([[labels[a], labels[b]] for a, b in (edges[i] for i in kept)]), nodes=range(n))


@pytest.mark.parametrize("seed", range(10))
def test_parents_depths_and_order(seed):
    graph = random_forest(seed)
    root = int(np.random.default_rng(seed).integers(graph.size))
    tree = Rooted.at(graph, [root])
    net = graph.to_networkx()
    assert tree.parent[root] == -1
    for node, depth in networkx.single_source_shortest_path_length(net, root).items():
        assert tree.depth[node] == depth
    position = np.argsort(tree.order)
    for node in range(graph.size):
        if tree.parent[node] >= 0:
            assert net.has_edge(node, int(tree.parent[node]))
            assert tree.depth[node] == tree.depth[tree.parent[node]] + 1
            assert position[tree.parent[node]] < position[node]
            assert (graph.sources[tree.to_parent[node]], graph.targets[tree.to_parent[node]]) == (
                node,
                tree.parent[node],
            )
            assert (graph.targets[tree.from_parent[node]], graph.sources[tree.from_parent[node]]) == (
                node,
                tree.parent[node],
            )
    assert (np.diff(tree.depth[tree.order]) >= 0).all()


@pytest.mark.parametrize("seed", range(10))
def test_centres_have_the_least_eccentricity(seed):
    graph = random_forest(seed)
    net = graph.to_networkx()
    found = centres(graph)
    for nodes in networkx.connected_components(net):
        part = net.subgraph(nodes)
        middle = int(found[graph.components[next(iter(nodes))]])
        assert middle in networkx.center(part)


def test_the_centre_of_a_long_chain_is_found_at_once():
    n = 100_000
    chain = Graph.of(np.stack([np.arange(n - 1), np.arange(1, n)], axis=1))
    assert centres(chain)[0] in (n // 2 - 1, n // 2)


@pytest.mark.parametrize("seed", range(5))
def test_informed_edges_are_those_with_evidence_behind(seed):
    graph = random_forest(seed)
    rng = np.random.default_rng(seed + 100)
    evidence = rng.random((graph.size, 4)) < 0.2
    found = informed(Rooted.at(graph), evidence)
    for e, (a, b) in enumerate(zip(graph.sources, graph.targets, strict=True)):
        net = graph.to_networkx()
        net.remove_edge(a, b)
        behind = list(networkx.node_connected_component(net, a))
        np.testing.assert_array_equal(found[e], evidence[behind].any(axis=0))


def test_pruning_stops_at_evidence_and_drops_silent_branches():
    #     a - b - c - d      e hangs on b, f on d; h is alone
    graph = Graph.of([tuple(p) for p in ("ab", "bc", "cd", "be", "df")], nodes="abcdefh")
    assert prune(graph, evidence=["c"], targets=["a"]).names == ("a", "b", "c")
    assert prune(graph, evidence=["c", "f"], targets=["a"]).names == ("a", "b", "c")
    assert prune(graph, evidence=["f", "e"], targets=["c"]).names == ("b", "c", "d", "e", "f")
    assert prune(graph, evidence=["h"], targets=["c"]).names == ("c",)
    assert prune(graph, evidence=["c"], targets=["c"]).names == ("c",)


def test_cycles_and_double_roots_are_refused():
    square = Graph.of([(0, 1), (1, 2), (2, 3), (3, 0)])
    with pytest.raises(InputError, match=r"has a cycle, [0-3] - [0-3] - [0-3] - [0-3]; expected a tree"):
        Rooted.at(square)
    with pytest.raises(InputError, match="expected a tree"):
        prune(square, [0], [1])
    with pytest.raises(InputError, match="two nodes of one component, one of them 2"):
        Rooted.at(Graph.of([(0, 1), (1, 2)]), [0, 2])
    with pytest.raises(InputError, match=r"\(20 nodes\)"):
        Rooted.at(Graph.of([(i, (i + 1) % 20) for i in range(20)]))
