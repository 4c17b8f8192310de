"""Where messages lie: each row belongs to one receiver, and rows can be thinned evenly."""

import networkx
import numpy as np

from meanmap.bp.engine.layout import Layout
from meanmap.graphs import Graph


def layout():
    graph = Graph.of(networkx.star_graph(6))
    return graph, Layout.of(graph, np.zeros(2 * len(graph.edges), dtype=int), 1, single=True)


def test_nodes_find_the_rows_that_they_receive():
    graph, laid = layout()
    none = len(laid.reverse)
    for node in range(graph.size):
        rows = laid.incoming[node][laid.incoming[node] < none]
        arriving = np.flatnonzero(graph.targets == node)
        assert sorted(rows) == sorted(laid.row[arriving])
        assert np.all(laid.receiver[rows] == node)
    # The answer to a message lies at its sender.
    np.testing.assert_array_equal(laid.receiver[laid.reverse[laid.row]], graph.sources)


def test_every_few_nodes_give_all_their_rows():
    _, laid = layout()
    expected = [
        row
        for nodes, (start, width) in zip(laid.nodes, laid.widths, strict=True)
        for place in range(0, len(nodes), 3)
        for row in range(start + width * place, start + width * (place + 1))
    ]
    assert laid.every(3).tolist() == expected
    assert laid.every(1) == slice(None)
