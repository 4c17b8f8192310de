"""What is loaded equals what was saved, or says that it is another: fitted models and monitors."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import meanmap as mm
from meanmap import ep

rng = np.random.default_rng(0)
X = rng.normal(size=60)
NUMBERS = {"x": X, "y": X + 0.3 * rng.normal(size=60)}
MIXED = {
    **NUMBERS,
    "kind": np.where(X > 0, "a", "b"),
    "day": pd.date_range("2020", periods=60),
    "block": rng.normal(size=(60, 2)),
}
BY_VALUE = {
    "graph": lambda: mm.Graph.of([("x", "y"), ("y", "z")]),
    "directed graph": lambda: mm.graphs.PDAG.of([("x", "y")], [("y", "z")]),
    "causes": lambda: mm.pc(NUMBERS, rng=0),
    "tree": lambda: mm.chow_liu(NUMBERS, rng=0),
    "table": lambda: mm.Table.of(MIXED),
    "schema": lambda: mm.Schema.of(MIXED),
    "result": lambda: mm.two_sample_test(X[:30], X[30:], "median", n_permutations=19, rng=0),
    "kernel": lambda: mm.kernels.RBF(0.3) + mm.kernels.Laplace(2.0),
    "embedding": lambda: mm.embed(X, mm.kernels.RBF(1.0)),
    "posterior": lambda: ep.infer(ep.FactorGraph(ep.Bernoulli(ep.Variable("p", ep.Beta(1.0, 1.0)), observed=1))),
}
BY_IDENTITY = {
    "model": lambda: mm.KernelGraph([("x", "y")]).fit(NUMBERS),
    "monitor": lambda: mm.DriftMonitor.of(NUMBERS, n_permutations=19, rng=0),
}


@pytest.mark.parametrize("make", BY_VALUE.values(), ids=BY_VALUE)
def test_what_is_loaded_equals_what_was_saved(make, tmp_path):
    value = make()
    loaded = mm.load(mm.save(value, tmp_path / "saved.meanmap"))
    assert loaded is not value
    assert loaded == value


@pytest.mark.parametrize("make", BY_IDENTITY.values(), ids=BY_IDENTITY)
def test_models_and_monitors_equal_themselves_alone(make, tmp_path):
    value = make()
    assert value == value
    assert mm.load(mm.save(value, tmp_path / "saved.meanmap")) != value


def test_graphs_and_tables_that_differ_are_not_equal():
    graph = mm.Graph.of([("x", "y"), ("y", "z")])
    assert graph != mm.Graph.of([("x", "y"), ("x", "z")])
    assert graph != mm.Graph.of([("x", "y"), ("y", "w")])
    assert len({graph, mm.Graph.of([("x", "y"), ("y", "z")])}) == 1
    arrows = mm.graphs.PDAG.of([("x", "y")])
    assert arrows != mm.graphs.PDAG.of([("y", "x")], nodes=["x", "y"])
    assert arrows != mm.graphs.PDAG.of([], [("x", "y")])
    assert len({arrows, mm.graphs.PDAG.of([("x", "y")])}) == 1
    found = mm.pc(NUMBERS, rng=0)
    assert found != replace(found, pvalues=dict.fromkeys(found.pvalues, 0.5))
    assert found != mm.graphs.PDAG(found.names, found.directed, found.undirected)
    assert mm.Table.of(MIXED) != mm.Table.of({**MIXED, "x": X + 1})
    assert mm.Table.of(MIXED) != mm.Table.of({**MIXED, "kind": np.full(60, "a")})
    assert mm.Table.of(MIXED) != mm.Table.of(NUMBERS)
