"""Results that are tables as frames of pandas."""

import inspect
import sys

import numpy as np
import pandas as pd
import pytest

import meanmap as mm
from meanmap.core.errors import MissingPackageError
from meanmap.core.report import Report
from meanmap.stats.result import Interval
from meanmap.structure import DSeparation

RNG = np.random.default_rng(0)
A = RNG.normal(size=120)
TABLE = {"a": A, "b": A + 0.5 * RNG.normal(size=120), "c": np.where(A + RNG.normal(size=120) > 0, "u", "v")}

# Classes of results that are no table: plans and states, single numbers, and models that are asked for one.
NO_TABLE = {
    *("RejectionRate", "Interval", "SampleState", "TwoSamplePlan", "KSamplePlan"),
    *("IndependencePlan", "JointIndependencePlan", "ConditionalIndependencePlan"),
    *("Approximation", "Arm", "Configuration", "Estimate", "Gain", "Pooled", "Restored", "Solution"),
    *("FittedBayesianNetwork", "FittedDependencyNetwork", "FittedField", "FittedForestGrid", "FittedKernelField"),
    *("FittedKernelGraph", "FittedKernelGrid", "FittedModel", "GPClassification"),
}


VECTOR = mm.ep.Variable("w", mm.ep.MultivariateNormal.standard(2))
NUMBERS = mm.ep.Variable("z", mm.ep.Normal, plate=2)
NETWORK = mm.BayesianNetwork([("a", "b"), ("a", "c")])


def rate(pvalues):
    return mm.stats.results.RejectionRate(np.array(pvalues), 0.05, 0, Report("finished", True, len(pvalues)))


def effect():
    distance, share, shift = Interval(0.5, 0.2, 0.8), Interval(0.1, 0.05, 0.2), Interval(1.0, 0.4, 1.6)
    return mm.stats.results.Effect(distance, share, shift, None, mm.kernels.RBF(1.0), 0.95, "a method", (9, 9))


# What is made, the names of its rows and columns, and one cell with what the result itself says.
RESULTS = {
    "Adjusted": (
        lambda: mm.stats.adjusted({"age": 0.004, ("town", "age"): 0.6}),
        (["age", ("town", "age")], ["pvalue"]),
        (0, "pvalue", lambda made: made.pvalues["age"]),
    ),
    "Effect": (
        effect,
        (["distance", "share", "shift"], ["estimate", "low", "high"]),
        (2, "high", lambda made: made.shift.high),
    ),
    "PowerCurve": (
        lambda: mm.stats.results.PowerCurve((50, 100), (rate([0.01, 0.2, 0.7]), rate([0.01, 0.01, 0.2]))),
        ([50, 100], ["rate", "low", "high", "repeats"]),
        (1, "low", lambda made: made.rates[1].interval()[0]),
    ),
    "TwoSampleResult": (
        lambda: mm.two_sample_test(A[:60], A[60:], n_permutations=99, rng=0),
        (["two-sample test, unbiased MMD² fused over 5 kernels"], ["statistic", "pvalue", "rows"]),
        (0, "pvalue", lambda made: made.pvalue),
    ),
    "Posterior": (
        lambda: mm.ep.infer(
            mm.ep.FactorGraph(mm.ep.Dot(np.eye(2), VECTOR, NUMBERS), mm.ep.Probit(NUMBERS, observed=[0, 1]))
        ),
        (["w[0]", "w[1]", "z[0]", "z[1]"], ["mean", "sd"]),
        (1, "mean", lambda made: made["w"].mean()[1]),
    ),
    "DiscoveredGraph": (
        lambda: mm.pc(DSeparation([("a", "c"), ("b", "c")])),
        ([0, 1], ["from", "to", "directed", "pvalue", "adjusted"]),
        (0, "adjusted", lambda made: made.adjusted["a", "c"]),
    ),
    "DependenceTree": (
        lambda: mm.chow_liu(TABLE, level=0.05, rng=0),
        ([0, 1], ["from", "to", "weight", "pvalue"]),
        (0, "weight", lambda made: made.weights[0]),
    ),
    "ArrowScores": (
        lambda: NETWORK.judge(TABLE),
        ([0, 1], ["from", "to", "directed", "gain", "error"]),
        (0, "gain", lambda made: made.arrows["a", "b"].mean),
    ),
    "CausalEffect": (
        lambda: NETWORK.effect(TABLE, "b", of="a", from_=0.0, to=1.0, rng=0),
        (["mean", "median"], ["estimate", "low", "high"]),
        (0, "high", lambda made: made.interval()[1]),
    ),
    "Sensitivity": (
        lambda: mm.bp.sensitivity(NETWORK.fit(TABLE), {"a": 1.0, "c": "u"}, "b", rng=0),
        (["a", "c"], ["moved"]),
        (1, "moved", lambda made: made.moved["c"]),
    ),
    "BinaryRegression": (
        lambda: mm.ep.models.logistic_regression({"a": TABLE["a"]}, TABLE["c"]),
        (["intercept", "a"], ["mean", "sd", "low", "high", "z", "positive"]),
        (1, "high", lambda made: made.summary().high[1]),
    ),
    "Ranking": (
        lambda: mm.ep.models.ranking(["ann", "ann", "bob"], ["bob", "cy", "cy"]),
        (["ann", "bob", "cy"], ["mean", "sd", "low", "high", "z", "positive"]),
        (0, "mean", lambda made: made.mean[0]),
    ),
}
SAME = {
    "ClosenessResult",
    "KSampleResult",
    "Regression",
    "CountRegression",
    "OrdinalRegression",
    "RobustRegression",
    "Program",
    "Summary",
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_as_frames(name):
    make, (rows, columns), (row, column, said) = RESULTS[name]
    made = make()
    assert type(made).__name__ == name
    frame = made.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert (list(frame.index), list(frame.columns)) == (rows, columns)
    assert frame[column].iloc[row] == said(made)
    assert all(frame[each].dtype.kind in "fi" for each in columns if each not in ("from", "to", "directed"))


def test_every_result_that_is_a_table_has_a_frame():
    folders = (mm.stats.results, mm.structure, mm.bp.results, mm.ep.models)
    classes = {
        name: each for folder in folders for name in folder.__all__ if inspect.isclass(each := vars(folder)[name])
    }
    known = {name for name, each in classes.items() if hasattr(each, "to_frame")}
    assert known | {"Posterior"} == {*RESULTS, *SAME}  # of meanmap.ep, which has no folder of results
    learners = {
        "ArrayTest",
        "CallableTest",
        "ConditionalTests",
        "DSeparation",
        "FunctionTests",
        "KernelTests",
        "Knowledge",
    }
    assert set(classes) - known == {*NO_TABLE, *learners}


def test_intervals_of_frames_have_the_confidence_that_was_asked_for():
    found = NETWORK.effect(TABLE, "b", of="a", from_=0.0, to=1.0, rng=0)
    assert found.to_frame(0.5).low["mean"] == found.interval(0.5)[0]
    fit = mm.ep.models.logistic_regression({"a": TABLE["a"]}, TABLE["c"])
    assert fit.to_frame(0.5).high["a"] == fit.summary(0.5).high[1] < fit.to_frame().high["a"]
    curve = RESULTS["PowerCurve"][0]()
    assert curve.to_frame(0.5).low[50] == curve.rates[0].interval(0.5)[0]


def test_effects_on_labels_have_a_row_for_each():
    found = NETWORK.effect(TABLE, "c", of="a", from_=0.0, to=1.0, rng=0)
    frame = found.to_frame()
    assert list(frame.index) == ["u", "v"]
    assert frame.estimate["v"] == found.difference("v").value


def test_graphs_without_edges_are_frames_without_rows():
    frame = mm.pc(DSeparation(mm.graphs.PDAG.of([], nodes=["a", "b"]))).to_frame()
    assert (len(frame), list(frame.columns)) == (0, ["from", "to"])


def test_support_of_edges_is_in_the_frame():
    found = mm.pc({name: TABLE[name] for name in "ab"}, half_samples=3, rng=0)
    frame = found.to_frame()
    assert list(frame.columns) == ["from", "to", "directed", "pvalue", "adjusted", "support", "arrow"]
    assert (frame.support[0], frame.directed[0]) == (1.0, False)


def test_where_pandas_is_missing_the_message_says_what_to_type(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingPackageError, match=r"needs pandas.*meanmap\[tables\]"):
        mm.stats.adjusted([0.1]).to_frame()
