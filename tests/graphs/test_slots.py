"""The layout of messages: each directed edge has one row, and knows the row of its reverse."""

import itertools

import networkx
import numpy as np
import pytest

from meanmap.graphs import Graph, Slots
from meanmap.graphs.slots import LEAST_SAVED, SHARE_SAVED, widths

GRAPHS = {
    "path": networkx.path_graph(5),
    "star": networkx.star_graph(450),
    "grid": networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(4, 5)),
    "scale-free": networkx.barabasi_albert_graph(200, 2, seed=1),
    "isolated": networkx.empty_graph(3),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_layout(name):
    graph = Graph.of(GRAPHS[name])
    slots = Slots.of(graph)
    assert len(np.unique(slots.row)) == len(graph.sources)
    np.testing.assert_array_equal(slots.edge[slots.row], np.arange(len(graph.sources)))
    edges = len(graph.edges)
    np.testing.assert_array_equal(slots.reverse[slots.row[:edges]], slots.row[edges:])
    np.testing.assert_array_equal(slots.reverse[slots.reverse], np.arange(slots.rows))
    seen = []
    for bucket in slots.buckets:
        for j, node in enumerate(bucket.nodes):
            rows = bucket.start + j * bucket.width + np.arange(bucket.width)
            received = slots.edge[rows]
            received = received[received >= 0]
            assert (graph.targets[received] == node).all()
            assert len(received) == graph.degrees[node]
            assert bucket.padded or len(received) == bucket.width
            seen.append(node)
    assert sorted(seen) == np.flatnonzero(graph.degrees).tolist()


def test_padding_is_at_most_two_fifths_in_few_buckets_where_degrees_are_many():
    graph = Graph.of(networkx.barabasi_albert_graph(3000, 3, seed=2))
    slots = Slots.of(graph)
    assert slots.rows <= 1.4 * len(graph.sources)
    assert len(slots.buckets) <= 5


def test_buckets_cost_as_little_as_the_best_of_all_partitions():
    rng = np.random.default_rng(0)
    for _ in range(5):
        degrees = np.repeat(rng.choice(60, 7, replace=False), rng.integers(1, 2000, 7))
        price = max(LEAST_SAVED, SHARE_SAVED * degrees.sum())
        wide = widths(degrees)[degrees]
        found = wide.sum() + price * len(np.unique(wide[wide > 0]))
        present, costs = np.unique(degrees[degrees > 0]), []
        for ends in itertools.product([False, True], repeat=len(present) - 1):  # at the largest a bucket always ends
            tops = np.append(present[:-1][list(ends)], present[-1])
            held = tops[np.searchsorted(tops, degrees[degrees > 0])]
            costs.append(held.sum() + price * len(tops))
        np.testing.assert_allclose(found, min(costs))
