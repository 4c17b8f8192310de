"""Results at a prompt are short, and equal results are equal."""

import copy
from dataclasses import replace

import numpy as np
import pytest

import meanmap as mm
from meanmap.core.report import Report

rng = np.random.default_rng(0)
x, y = rng.normal(size=(40, 2)), rng.normal(0.5, 1.0, size=(30, 2))
table = {"a": x[:, 0], "b": x[:, 0] + 0.1 * x[:, 1], "c": x[:, 1]}
makers = {
    "two samples": lambda: mm.two_sample_test(x, y, "median", n_permutations=99, rng=0),
    "independence": lambda: mm.independence_test(x[:, 0], x[:, 1], n_permutations=99, rng=0),
    "rate": lambda: mm.stats.rejection_rate(
        mm.independence_test, lambda rng: tuple(rng.normal(size=(2, 9))), repeats=3, rng=0
    ),
    "causes": lambda: mm.pc(table, rng=0),
    "posterior": lambda: mm.embeddings.posterior_embedding(x, mm.kernels.RBF(1.0)),
    "witness": lambda: mm.embeddings.posterior_witness(x, y, mm.kernels.RBF(1.0)),
    "kernel of a table": lambda: mm.default_kernel({**table, "town": ["Ulm", "Bonn"] * 20}),
    "features": lambda: mm.features.Fourier.draw(mm.kernels.RBF(1.0), like=x, n_features=20, rng=0),
    "embedding": lambda: mm.embed(x, mm.kernels.RBF(1.0)),
    "difference": lambda: mm.embed(x, mm.kernels.RBF(1.0)) - mm.embed(y, mm.kernels.RBF(1.0)),
    "operator": lambda: mm.condition(x[:, 0], x[:, 1]),
    "monitor": lambda: mm.DriftMonitor.of(x, rng=0).step(y),
    "tree of dependences": lambda: mm.chow_liu(table, rng=0),
    "graph": lambda: mm.Graph.of([("a", "b")]),
    "table": lambda: mm.Table.of(table),
    "model": lambda: mm.KernelGraph([("a", "b")]),
    "field": lambda: mm.KernelField([("a", "b"), ("b", "c"), ("c", "a")]),
    "grid": lambda: mm.KernelGrid(),
    "discrete network": lambda: mm.bp.DiscreteGraph([("a", "b")], {("a", "b"): np.ones((2, 3))}),
    "its marginals": lambda: mm.bp.DiscreteGraph([("a", "b")], {("a", "b"): np.ones((2, 3))}).query(),
    "tests for pc": lambda: mm.structure.KernelTests(table, rng=0),
    "variable": lambda: mm.ep.Variable("w", mm.ep.MultivariateNormal.standard(2)),
    "plate": lambda: mm.ep.Normal(np.zeros(1000), np.ones(1000)),
    "factor": lambda: mm.ep.Logistic(mm.ep.Variable("z", mm.ep.Normal, plate=2), observed=[0, 1]),
    "oracle": lambda: mm.ep.Learned(mm.ep.Quadrature()),
    "estimator": lambda: mm.estimators.ConditionalMeanRegressor(),
    "report": lambda: Report("converged", True, 1000, residuals=np.ones(1000)),
}


@pytest.mark.parametrize("name", makers)
def test_representations_are_one_short_line(name):
    shown = repr(makers[name]())
    assert "\n" not in shown
    assert len(shown) < 500
    assert " object at 0x" not in shown


def test_a_schema_is_a_line_for_each_column():
    assert len(repr(mm.Schema.of(table)).splitlines()) == 4


@pytest.mark.parametrize("name", ["two samples", "independence", "rate", "posterior", "report"])
def test_results_equal_their_copies(name):
    found = makers[name]()
    assert found == copy.deepcopy(found)
    assert found != "another thing"


def test_results_that_differ_in_one_entry_of_an_array_differ():
    report = Report("converged", True, 2, residuals=[1.0, np.nan], counts={"floored": 1})
    assert report == Report("converged", True, 2, residuals=[1.0, np.nan], counts={"floored": 1})
    assert report != replace(report, residuals=np.array([1.0, 2.0]))
    assert report != replace(report, counts={"floored": 2})
    assert report != replace(report, notes=("doubtful",))
