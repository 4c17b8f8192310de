"""Schedules: groups that nobody meets in, breadth-first trees, settings that are refused."""

import networkx
import numpy as np
import pytest

from meanmap.core.errors import ParameterError
from meanmap.graphs import Flooding, Graph, Residual, Splash
from meanmap.graphs.schedules import breadth_first, layers


def test_layers_keep_the_order_of_neighbours():
    graph = Graph.of(networkx.gnm_random_graph(40, 80, seed=3))
    groups = layers(graph)
    level = np.empty(40, dtype=int)
    for i, group in enumerate(groups):
        level[group] = i
    assert sorted(np.concatenate(groups)) == list(range(40))
    for a, b in graph.edges:
        assert level[a] != level[b]
        assert (level[a] < level[b]) == (a < b)


def test_breadth_first_comes_outwards():
    net = networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(6, 6))
    distance = networkx.single_source_shortest_path_length(net, 14)
    found = breadth_first(Graph.of(net), 14, 20)
    assert len(set(found.tolist())) == 20
    assert (np.diff([distance[i] for i in found]) >= 0).all()
    assert len(breadth_first(Graph.of(net), 14, 100)) == 36


@pytest.mark.parametrize(
    "make", [lambda v: Flooding(v), lambda v: Residual(at_once=v), lambda v: Splash(splash_size=v)]
)
@pytest.mark.parametrize("value", [0, 1.5, True])
def test_settings_are_whole_numbers(make, value):
    with pytest.raises(ParameterError, match="expected a whole number of at least 1"):
        make(value)
