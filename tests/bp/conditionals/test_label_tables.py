"""Networks whose unknowns are labels: exact answers, against sums over all states."""

import sys
from itertools import product
from types import ModuleType

import numpy as np
import pytest

import meanmap as mm
from meanmap.core.errors import InputError
from meanmap.graphs import from_pgmpy

ARROWS = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "e"), ("x", "c")]


def table() -> dict:
    """A loop of labels a, b, c, d, a number x above c and a label e below."""
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=400), rng.random((4, 400))
    a = rng.choice(["u", "v", "w"], 400, p=[0.5, 0.3, 0.2])
    b = np.where(noise[0] < 0.2 + 0.6 * (a == "u"), "yes", "no")
    c = noise[1] < 1 / (1 + np.exp(-x - (a == "v")))
    d = np.where(noise[2] < 0.1 + 0.4 * (b == "yes") + 0.4 * c, "high", "low")
    return {"a": a, "b": b, "c": c, "d": d, "e": np.where(noise[3] < 0.8, d, "other"), "x": x}


@pytest.fixture(scope="module")
def model():
    return mm.bp.BayesianNetwork(ARROWS).fit(table())


def enumerated(model, evidence: dict, target: str, fixed: tuple = ()) -> dict:
    """Σ Π p(value | parents) over all states of what is not known; what is set has no law."""
    known = {name: model.columns[name].read([value], "evidence") for name, value in evidence.items()}
    free = [name for name in model.columns if name not in known]
    total: dict = {}
    for states in product(*(range(model.columns[name].width) for name in free)):
        here = known | {n: np.eye(model.columns[n].width)[[s]] for n, s in zip(free, states, strict=True)}
        log = 0.0
        for name, law in model.conditionals.items():
            order = [p for p, child in model.directed.named("directed") if child == name]
            rows = [np.zeros((1, 0)), *(here[p] for p in order)]
            log += 0.0 if name in fixed else law.log_chance(np.concatenate(rows, axis=1), here[name])[0]
        label = model.columns[target].labels[states[free.index(target)]]
        total[label] = total.get(label, 0.0) + np.exp(log)
    return {label: value / sum(total.values()) for label, value in total.items()}


def test_answers_are_exact_where_only_labels_are_unknown(model):
    evidence = {"x": 0.4, "e": "high"}
    found = model.query(evidence)
    assert found.report.status == "exact (on a tree of cliques)"
    for name in "abcd":
        assert found.probabilities(name) == pytest.approx(enumerated(model, evidence, name), abs=1e-12)
    set_to = model.do({"b": "yes"}, ["d", "a"], evidence=evidence)
    for name in "da":
        truth = enumerated(model, {**evidence, "b": "yes"}, name, ("b",))
        assert set_to.probabilities(name) == pytest.approx(truth, abs=1e-12)


def test_draws_answer_where_a_number_matters(model):
    exact = model.query({"x": 0.4, "d": "high"}, ["a"])
    drawn = model.query({"d": "high"}, ["a", "x"], rng=0)
    assert "draws along the arrows" in drawn.report.status
    assert exact["a"].probabilities()["u"] != drawn["a"].probabilities()["u"]
    # Behind what is known numbers do not matter, and neither do effects that nobody saw.
    assert "exact" in model.query({"a": "u"}, ["b"]).report.status
    assert "exact" in model.query({"d": "high"}, ["e"]).report.status


def test_numbers_far_from_all_data_contradict_no_label():
    """Their densities are zero in double precision whatever the labels are."""
    rng = np.random.default_rng(0)
    label = rng.choice(["u", "v"], 200)
    data = {"a": label, "x": rng.normal(size=200) + (label == "u"), "y": rng.normal(size=200) - (label == "u")}
    model = mm.bp.BayesianNetwork([("a", "x"), ("a", "y")]).fit(data)
    found = model.query({"x": 500.0, "y": 500.0}, ["a"])
    assert sum(found.probabilities("a").values()) == pytest.approx(1)
    assert any("far outside" in note for note in found.report.notes)
    assert model.query({"x": 500.0}, ["a"])["a"].mode() == "u"


def test_scores_of_rows_with_gaps_add_up_over_labels(model):
    row = {"a": "u", "b": None, "c": None, "d": "high", "e": "high", "x": 0.4}
    every = [row | {"b": b, "c": c} for b, c in product(("yes", "no"), (True, False))]
    logs = [model.score({name: [value] for name, value in each.items()})[0] for each in every]
    found = model.score({name: [value] for name, value in row.items()})[0]
    # Of 401 rows one might have had a label b that never came.
    assert found == pytest.approx(np.log(np.sum(np.exp(logs)) * 401 / 400), abs=1e-12)
    # A label that never came is as improbable whatever the gaps may be.
    once, new = (model.score({n: [v] for n, v in (row | {"d": d}).items()}) for d in ("high", "?"))
    assert -np.inf < new[0] < once[0]


class Table:
    """A stand-in for pgmpy's tables, with what `from_pgmpy` reads."""

    def __init__(self, variable, size, values, evidence, sizes, state_names):
        assert values.shape == (size, int(np.prod(sizes)))
        np.testing.assert_allclose(values.sum(axis=0), 1)
        self.variable, self.variables, self.state_names = variable, [variable, *evidence], state_names
        self.values = values.reshape(size, *sizes)

    def to_factor(self):
        return self


class Network:
    def __init__(self, arrows):
        self.arrows, self.cpds, self.names = arrows, [], []

    def add_nodes_from(self, names):
        self.names = names

    def add_cpds(self, table):
        self.cpds.append(table)

    def get_cpds(self):
        return self.cpds

    def nodes(self):
        return self.names


def test_tables_go_to_pgmpy_and_back(model, monkeypatch):
    for name, parts in {
        "pgmpy": {},
        "pgmpy.factors": {},
        "pgmpy.factors.discrete": {"TabularCPD": Table},
        "pgmpy.models": {"DiscreteBayesianNetwork": Network},
    }.items():
        module = ModuleType(name)
        vars(module).update(parts)
        monkeypatch.setitem(sys.modules, name, module)
    with pytest.raises(InputError, match=r"'x' is not a label, and networks of pgmpy have tables: bin it"):
        model.to_pgmpy()
    data = table()
    labels = mm.bp.BayesianNetwork([arrow for arrow in ARROWS if "x" not in arrow]).fit(
        {name: column for name, column in data.items() if name != "x"}
    )
    back = mm.bp.CliqueTree(from_pgmpy(labels.to_pgmpy())).query({"e": "high"})
    found = labels.query({"e": "high"})
    for name in "abcd":
        np.testing.assert_allclose(back[name], list(found.probabilities(name).values()), atol=1e-12)
