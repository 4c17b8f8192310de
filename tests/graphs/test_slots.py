"""The layout of messages: each directed edge has one row, and knows the row of its reverse."""

import networkx
import numpy as np
import pytest

from meanmap.graphs import Graph, Slots

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


def test_padding_is_at_most_a_quarter_where_degrees_are_many():
    graph = Graph.of(networkx.barabasi_albert_graph(3000, 3, seed=2))
    assert Slots.of(graph).rows <= 1.25 * len(graph.sources)
