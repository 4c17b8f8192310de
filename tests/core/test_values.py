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
    "rate": lambda: mm.rejection_rate(
        mm.independence_test, lambda rng: tuple(rng.normal(size=(2, 9))), repeats=3, rng=0
    ),
    "causes": lambda: mm.pc(table, rng=0),
    "posterior": lambda: mm.posterior_embedding(x, mm.kernels.RBF(1.0)),
    "witness": lambda: mm.posterior_witness(x, y, mm.kernels.RBF(1.0)),
    "report": lambda: Report("converged", True, 1000, residuals=np.ones(1000)),
}


@pytest.mark.parametrize("name", makers)
def test_representations_are_one_short_line(name):
    shown = repr(makers[name]())
    assert "\n" not in shown
    assert len(shown) < 500


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
