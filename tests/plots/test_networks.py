"""Pages of graphs, also with the oldest SciPy that the package allows."""

import numpy as np
import pytest

import meanmap as mm


@pytest.mark.oldest
def test_pages_of_graphs_of_three_nodes_and_more(tmp_path):
    rng = np.random.default_rng(0)
    a, noise, more = rng.normal(size=(3, 80))
    table = {"a": a, "b": a + 0.3 * noise, "c": more}
    for graph in (mm.pc(table, rng=0), mm.chow_liu(table, rng=0)):
        path = tmp_path / "graph.html"
        graph.page(path)
        assert all(f'"{name}"' in path.read_text(encoding="utf-8") for name in table)
