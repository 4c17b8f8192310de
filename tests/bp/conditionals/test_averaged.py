"""Beliefs from draws average the probabilities given the parents, where values have some."""

import numpy as np
import pytest

import meanmap as mm
from meanmap.bp.beliefs.densities import NormalMixture
from meanmap.bp.beliefs.rounded import Rounded
from meanmap.bp.conditionals.averaged import Weighed
from meanmap.bp.conditionals.given_parents import joined

N = 1500


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(11)
    arm, x = rng.random(N) < 0.4, rng.normal(size=N)
    ill = rng.random(N) < 0.004 * np.where(arm, 3, 0.5) * np.exp(0.5 * x)
    cost = np.where(rng.random(N) < 0.1 * np.exp(0.3 * x), np.exp(2 + 0.5 * rng.normal(size=N)), 0.0)
    return {
        "arm": np.where(arm, "yes", "no"),
        "x": x,
        "ill": np.where(ill, "ill", "ok"),
        "event": ill.astype(int),
        "count": rng.poisson(np.exp(0.3 * x)),
        "many": rng.poisson(np.exp(3 + 0.2 * x)),
        "two": np.where(ill, 2.7, 0.1),
        "cost": cost,
        "mark": np.where(ill, 2.0, 0.0) + rng.normal(size=N),
    }


@pytest.fixture(scope="module")
def model(table):
    effects = [(cause, name) for name in ("ill", "event") for cause in ("arm", "x")]
    numbers = [("x", name) for name in ("count", "many", "two", "cost")]
    return mm.BayesianNetwork([*effects, *numbers, ("ill", "mark")]).fit(table)


def test_a_rare_label_or_event_has_the_mean_of_its_probabilities(model, table):
    every = {"arm": ["no"] * N, "x": table["x"]}
    by_row = model.predict(every, ["ill", "event"], rng=0)
    label, number = np.mean(by_row["ill"].probabilities()["ill"]), np.mean(by_row["event"].mean())
    assert 0.0003 < label < 0.006
    for seed in range(5):
        done = model.do({"arm": "no"}, ["ill", "event"], rng=seed)
        assert done["ill"].probabilities()["ill"] == pytest.approx(label, rel=0.02)
        assert done["event"].mean() == pytest.approx(number, rel=0.02)
        hidden = model.predict({"arm": ["no"]}, ["ill", "event"], rng=seed)
        assert hidden["ill"].probabilities()["ill"][0] == pytest.approx(label, rel=0.1)
        assert hidden["event"].mean()[0] == pytest.approx(number, rel=0.1)
        assert not done["event"].quantile([0.05, 0.95]).any()


def test_observed_effects_multiply_the_probabilities_by_their_likelihood(model, table):
    """Compared with the sum over all rows, whose values x the draws are."""
    column, mark = model.columns["x"], model.columns["mark"].read(np.array([2.0]), "evidence")
    arm, x = model.columns["arm"].read(np.array(["no"]), "evidence"), column.read(table["x"], "evidence")
    each = {"arm": np.repeat(arm, N, axis=0), "x": x}
    rows = joined([each[name] for name in model._heard()["ill"]], N)
    shares, labels = model.conditionals["ill"].shares(rows), np.eye(2)
    likelihood = np.exp(model.conditionals["mark"].log_chance(labels, np.repeat(mark, 2, axis=0)))
    joint = (shares * likelihood).sum(axis=0)
    truth = dict(zip(model.columns["ill"].states, joint / joint.sum(), strict=True))["ill"]
    found = [
        model.query({"arm": "no", "mark": 2.0}, ["ill", "x"], rng=seed)["ill"].probabilities()["ill"]
        for seed in range(8)
    ]
    assert found == pytest.approx([truth] * 8, rel=0.1)


def test_evidence_beyond_an_effect_that_is_not_known_counts():
    rng = np.random.default_rng(12)
    group = rng.random(800) < 0.5
    middle = 2.0 * group + rng.normal(size=800)
    data = {"group": np.where(group, "b", "a"), "middle": middle, "end": middle + rng.normal(size=800)}
    model = mm.BayesianNetwork([("group", "middle"), ("middle", "end")]).fit(data)
    found = model.query({"end": 2.5}, ["group"], rng=0)["group"].probabilities()["b"]
    odds = np.exp((2.5**2 - 0.5**2) / 4)  # noise of both has variance 2
    assert found == pytest.approx(odds / (1 + odds), abs=0.06)


def test_zeros_of_costs_have_the_mean_of_their_probabilities_and_amounts_are_as_many_as_draws(model, table):
    cost = model.predict({"x": table["x"]}, ["cost"], rng=0)["cost"]
    zero = float(np.mean(cost.cdf([0.0])))
    found = [model.query({}, ["cost"], rng=seed)["cost"] for seed in range(4)]
    assert [float(each.expect(lambda c: c == 0)) for each in found] == pytest.approx([zero] * 4, abs=2e-3)
    assert np.std([each.mean() for each in found]) < 0.02 * table["cost"].mean()
    assert found[0].effective_size > 3000  # one point of large weight would smooth densities as few draws


@pytest.mark.parametrize("name", ["event", "count", "many", "two", "cost"])
@pytest.mark.parametrize("learned", ["bayesian", "dependency"])
def test_quantiles_of_whole_numbers_and_points_are_these(model, other, table, name, learned):
    asked = model if learned == "bayesian" else other
    belief = asked.predict({"x": table["x"][:200]}, [name], rng=0)[name]
    low, high = belief.interval(0.9)
    drawn = belief[:20].sample(30, rng=0)
    if name in ("event", "count", "many"):
        for each in (low, high, drawn):
            assert (each == np.rint(each)).all()
            assert (each >= 0).all()
        there = table[name][:200]
        assert np.mean((low <= there) & (there <= high)) > 0.85
    elif name == "two":
        assert np.isin(np.concatenate([low, high, drawn.ravel()]), [0.1, 2.7]).all()
    else:
        assert (low == 0).all()


@pytest.fixture(scope="module")
def other(table):
    return mm.bp.DependencyNetwork().fit({name: table[name] for name in ("x", "event", "count", "many", "two", "cost")})


def test_quantiles_at_points_are_the_points():
    weights, means = np.array([[0.3, 0.4, 0.3], [0.7, 0.1, 0.2]]), np.array([[0.0, 1.0, 3.0], [0.0, 1.0, 3.0]])
    points = NormalMixture(weights, means, np.zeros((2, 3)))
    levels = [0.05, 0.3, 0.5, 0.75, 1.0]
    assert points.quantile(levels).tolist() == [[0.0, 0.0, 1.0, 3.0, 3.0], [0.0, 0.0, 0.0, 1.0, 3.0]]
    mixed = NormalMixture(np.array([0.5, 0.5]), np.array([0.0, 0.0]), np.array([0.0, 1.0]))
    assert mixed.quantile(0.5) == 0
    assert mixed.quantile(0.1) == pytest.approx(-0.8416, abs=1e-4)


def test_rounded_beliefs_have_the_law_of_their_draws():
    belief = Rounded(NormalMixture.normal(np.array([0.4, 6.3]), np.array([1.0, 4.0])), 0.0)
    drawn = belief.sample(20_000, rng=0)
    assert belief.cdf([-1.0, 0.0, 5.5]) == pytest.approx(
        np.mean(drawn[:, :, None] <= np.array([-1.0, 0.0, 5.5]), axis=1), abs=0.015
    )
    assert (belief.quantile([0.1, 0.9]) == np.quantile(drawn, [0.1, 0.9], axis=1, method="inverted_cdf").T).all()
    assert belief[1].mode() == 6
    assert (belief.mean().tolist(), belief.sd().tolist()) == ([0.4, 6.3], [1.0, 2.0])


def test_listed_values_keep_their_weight_where_draws_are_made_fewer():
    draws = Weighed(np.array([[0.0], [1.0], [2.0], [3.0], [4.0]]), np.array([1e-4, 0.0999, 0.4, 0.3, 0.2]), 1)
    fewer = draws.of_size(2)
    assert fewer.weights.tolist() == pytest.approx([1e-4, 0.49995, 0.49995])
    assert fewer.values[0] == 0
    points, weights = draws.as_points(20_000)
    assert (len(points), weights[:2].tolist()) == (6, [5e-5, 5e-5])
    assert weights.sum() == pytest.approx(1)
