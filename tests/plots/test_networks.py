"""Pages of graphs, also with the oldest SciPy that the package allows."""

import numpy as np
import pytest

import meanmap as mm
from meanmap.plots.networks import Link, network_chart


def test_nodes_without_edges_stand_below_and_do_not_squeeze_the_others():
    """Twelve of them pushed a chain of four into a tenth of the width."""
    names = list("abcd") + [f"alone {i}" for i in range(12)]
    links = [Link(0, 1, directed=True), Link(1, 2, directed=True), Link(2, 3, directed=True)]
    nodes = network_chart("Causes", names, links).panels[0].marks[-1].places
    assert np.all(np.diff(nodes["x"][:4]) > 0)  # arrows point to the right
    assert np.ptp(nodes["x"][:4]) >= np.ptp(nodes["x"][4:])
    assert nodes["y"][4:].max() < nodes["y"][:4].min() - 0.5
    assert len(set(zip(nodes["x"].tolist(), nodes["y"].tolist(), strict=True))) == len(names)


@pytest.mark.oldest
def test_pages_of_graphs_of_three_nodes_and_more(tmp_path):
    rng = np.random.default_rng(0)
    a, noise, more = rng.normal(size=(3, 80))
    table = {"a": a, "b": a + 0.3 * noise, "c": more}
    for graph in (mm.pc(table, rng=0), mm.chow_liu(table, rng=0)):
        path = tmp_path / "graph.html"
        graph.page(path)
        assert all(f'"{name}"' in path.read_text(encoding="utf-8") for name in table)


def test_pages_of_networks_with_dates_and_durations(tmp_path):
    """The evidence that a slider moves was in seconds, which is no date: an error in place of a page."""
    x = np.random.default_rng(0).normal(size=200)
    days = np.round(30 * x + 100).astype("timedelta64[D]")
    data = {"x": x, "y": x + 1, "day": np.datetime64("2024-01-01") + days, "wait": days}
    arrows = [("x", "y"), ("x", "day"), ("x", "wait")]
    for model in (mm.BayesianNetwork(arrows), mm.bp.DependencyNetwork(), mm.KernelGraph(arrows)):
        path = tmp_path / f"{type(model).__name__}.html"
        model.fit(data).page(path)
        assert "Move the evidence" in path.read_text()
