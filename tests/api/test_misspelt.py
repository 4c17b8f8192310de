"""A misspelt name of a column, node or option is answered with the name that may be meant, at every door."""

import numpy as np
import pytest

import meanmap as mm
from meanmap.core import ColumnError, KindError
from meanmap.core.meant import did_you_mean, nearest

RANDOM = np.random.default_rng(0)
DOSE = RANDOM.normal(size=60)
TABLE = {"dose": DOSE, "outcome": DOSE + RANDOM.normal(size=60), "age": RANDOM.normal(size=60)}
EDGES = [("dose", "outcome"), ("age", "outcome")]
MISSPELT = {"dos": TABLE["dose"], "age": TABLE["age"]}


@pytest.fixture(scope="module")
def network():
    return mm.BayesianNetwork(EDGES).fit(TABLE)


@pytest.fixture(scope="module")
def graph():
    return mm.KernelGraph(EDGES).fit(TABLE)


DOORS = {
    "graph, fit": lambda graph, network: mm.KernelGraph([("dos", "outcome")]).fit(TABLE),
    "graph, kinds": lambda graph, network: mm.KernelGraph(EDGES).fit(TABLE, kinds={"dos": "number"}),
    "graph, query": lambda graph, network: graph.query({"dos": 1.0}),
    "graph, targets": lambda graph, network: graph.query({"age": 1.0}, ["dos"]),
    "graph, belief": lambda graph, network: graph.query({"age": 1.0})["dos"],
    "graph, impute": lambda graph, network: graph.impute({"dos": [1.0]}),
    "network, fit": lambda graph, network: mm.BayesianNetwork([("dos", "outcome")]).fit(TABLE),
    "network, kinds": lambda graph, network: mm.BayesianNetwork(EDGES).fit(TABLE, kinds={"dos": "number"}),
    "network, query": lambda graph, network: network.query({"dos": 1.0}),
    "network, do": lambda graph, network: network.do({"dos": 1.0}),
    "network, effect": lambda graph, network: mm.BayesianNetwork(EDGES).effect(
        TABLE, "outcome", of="dos", from_=0.0, to=1.0
    ),
    "network, impute": lambda graph, network: network.impute({"dos": [1.0]}),
    "pc, tiers": lambda graph, network: mm.pc(TABLE, tiers=[["dos"], ["outcome"]]),
    "test": lambda graph, network: mm.independence_test("dos", "age", data=TABLE),
    "two tables": lambda graph, network: mm.two_sample_test(
        TABLE, {"dos" if k == "dose" else k: TABLE[k] for k in TABLE}
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_misspelt_name_is_answered_with_the_one_that_is_meant(door, graph, network):
    with pytest.raises(ColumnError, match=r"\(did you mean '(dose|dos)'\?\)"):
        DOORS[door](graph, network)


def test_one_target_that_is_no_list_is_refused(graph, network):
    for model in (graph, network):
        with pytest.raises(KindError, match=r"targets is 'outcome'; expected a list of names: targets=\['outcome'\]"):
            model.predict(TABLE, "outcome")
    with pytest.raises(KindError, match="targets is 'outcome'"):
        graph.query({"age": 1.0}, "outcome")


def test_a_column_that_is_nearly_one_of_the_model_has_a_note(graph, network):
    said = "frame has no column 'dose', which counts as missing in all rows; its column 'dos' is not used: is it meant?"
    for model in (graph, network):
        assert said in model.predict(MISSPELT, ["outcome"]).report.notes


def test_suggestions_keep_the_kind_of_names():
    assert nearest("5", [5, 7]) == 5
    assert did_you_mean((0, 1), [(0, 2)]) == ""


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("DependencyNetwork", "'meanmap.bp.DependencyNetwork'"),
        ("Density", "'meanmap.bp.Density' or 'meanmap.ep.Density'"),
        ("two_sampel_test", "'two_sample_test'"),
    ],
)
def test_a_name_of_a_folder_is_found_from_the_top(name, meant):
    with pytest.raises(AttributeError, match=rf"has no attribute '{name}'; did you mean {meant}\?$"):
        getattr(mm, name)
    assert not hasattr(mm, "nothing_like_it")


@pytest.mark.parametrize(
    ("made", "how"),
    [
        (mm.DriftMonitor, r"mm\.DriftMonitor\.of\(reference, run_length=1000\)"),
        (mm.stats.TwoSampleBet, r"mm\.stats\.TwoSampleBet\.of\(x, y\)"),
        (mm.stats.IndependenceBet, r"mm\.stats\.IndependenceBet\.of\(x, y\)"),
    ],
)
def test_a_class_that_is_not_called_by_itself_says_what_to_type(made, how):
    """DriftMonitor(x) named eight fields of its inside."""
    with pytest.raises(TypeError, match=rf"^{made.__name__}\(\) is not called by itself; type {how}\.$"):
        made([[1.0, 2.0], [3.0, 4.0]])
