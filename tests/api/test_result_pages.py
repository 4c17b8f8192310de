"""Every kind of result has a page and is drawn in a notebook: one table."""

import json
import re

import numpy as np
import pytest

import meanmap as mm
from meanmap import bp, ep
from meanmap.plots import Paged

RNG = np.random.default_rng(0)
A, NOISE, MORE = RNG.normal(size=(3, 80))
TABLE = {"sun": A, "rain": A + NOISE, "mud": A + NOISE + MORE}
LABELS = {"sun": A, "wet": np.where(A + NOISE > 0, "yes", "no")}
QUICK = {"rng": 0, "n_permutations": 99}


def monitor():
    found = mm.DriftMonitor.of(RNG.normal(size=(200, 1)), rng=0, n_permutations=99)
    return found.step(RNG.normal(size=(25, 1))).step(RNG.normal(3.0, 1.0, size=(25, 1)))


def network():
    return mm.KernelGraph([("sun", "wet")]).fit(LABELS)


def posterior():
    mu = ep.Variable("mu", ep.Normal(0.0, 1.0))
    return ep.infer(ep.FactorGraph(ep.Gaussian(mu, observed=2.0)), rng=0)


RESULTS = {
    "two samples": lambda: mm.two_sample_test(TABLE, {**TABLE, "sun": A + 1}, **QUICK),
    "several samples": lambda: mm.k_sample_test({"a": A, "b": NOISE, "c": MORE}, **QUICK),
    "independence": lambda: mm.independence_test(A, LABELS["wet"], **QUICK),
    "conditional independence": lambda: mm.conditional_independence_test(A, NOISE, MORE, **QUICK),
    "joint independence": lambda: mm.joint_independence_test([A, NOISE, MORE], **QUICK),
    "effect": lambda: mm.two_sample_effect(A, NOISE, rng=0),
    "monitor": monitor,
    "graph": lambda: mm.graphs.Graph.of([("a", "b"), ("b", "c"), ("x", "y")]),
    "causes": lambda: mm.pc(TABLE, rng=0),
    "tree": lambda: mm.chow_liu(TABLE, rng=0),
    "network": network,
    "states": lambda: bp.DiscreteGraph([("a", "b")], {("a", "b"): np.array([[0.9, 0.1], [0.2, 0.8]])}),
    "beliefs": lambda: network().query({"sun": [-1.0, 0.0, 1.0]}),
    "beliefs about numbers": lambda: network().query({"wet": "yes"}),
    "posterior": posterior,
    "model": lambda: ep.models.logistic_regression(np.stack([A, NOISE], axis=1), A + NOISE > 0),
    "formula": lambda: mm.fit("rain ~ sun", TABLE),
}  # fmt: skip


@pytest.mark.parametrize("kind", RESULTS)
def test_every_result_has_a_page_and_a_picture(kind, tmp_path):
    result = RESULTS[kind]()
    assert isinstance(result, Paged)
    text = result.page(tmp_path / "a.html").read_text("utf-8")
    assert len(text.encode()) < 1e6
    facts = json.loads(re.findall(r'id="facts">(.*?)</script>', text, re.DOTALL)[0])
    assert facts["charts"]
    assert facts["facts"]
    for chart in facts["charts"]:
        assert len(chart["panels"]) == np.prod([len(each["choices"]) for each in chart["controls"]], initial=1)
    shown = result._repr_html_()
    assert "<svg" in shown
    assert "<script" not in shown


def facts_of(result, path):
    return json.loads(re.findall(r'id="facts">(.*?)</script>', result.page(path).read_text("utf-8"), re.DOTALL)[0])


def test_the_evidence_of_a_network_moves_its_beliefs_as_queries_do(tmp_path):
    model = network()
    *_, chart = facts_of(model, tmp_path / "a.html")["charts"]
    assert [each["choices"][:2] for each in chart["controls"][:2]] == [["sun", "wet"], ["sun", "wet"]]
    levels = [float(each) for each in chart["controls"][2]["choices"]]
    values = [float(f"{each:.4g}") for each in model.query({})["sun"].quantile(levels)]
    wet = model.query({"sun": np.array(values)})["wet"].probabilities()
    for k, value in enumerate(values):
        panel = chart["panels"][len(levels) + k]
        assert panel["note"].startswith(f"Given sun = {value:.4g}: ")
        shown = dict(zip([name for _, name in panel["x"]["ticks"]], panel["marks"][0]["y"], strict=True))
        assert shown == pytest.approx({label: float(p[k]) for label, p in wet.items()}, abs=1e-5)


def test_a_belief_shows_its_mean_and_interval(tmp_path):
    beliefs = network().query({"wet": "yes"})
    said = facts_of(beliefs, tmp_path / "a.html")["facts"]["beliefs"]["sun"][0]
    assert said["mean"] == float(beliefs["sun"].mean())
    assert said["interval"] == [float(each) for each in beliefs["sun"].quantile([0.025, 0.975])]


def test_samples_are_not_drawn_row_by_row(tmp_path):
    chart = facts_of(RESULTS["several samples"](), tmp_path / "a.html")["charts"][0]
    assert [mark["kind"] for mark in chart["panels"][0]["marks"]] == ["bars"] * 3
