"""Outside of the data: draws of money stay near what rows reach, real tails stay, and no score outweighs all others."""

import numpy as np
import pytest

import meanmap as mm


def visits(seed, n=1000):
    """Costs, in tens, that follow from a number of visits."""
    rng = np.random.default_rng(seed)
    age = np.round(rng.normal(45, 12, n)).clip(18, 85)
    number = rng.poisson(np.exp(0.03 * (age - 45) + 0.4))
    cost = np.where(number > 0, np.round(number * np.exp(3.5 + 0.5 * rng.normal(size=n)), -1), 0.0)
    return {"age": age, "visits": number, "cost": cost}


@pytest.mark.parametrize("seed", [704, 711, 744])
def test_costs_after_counts_are_not_absurd(seed):
    """On the scale of logarithms the mean went on as a line beyond the data, and the size of residuals was that of one
    row: single draws were 12,570 where the largest cost was 770.
    """
    table = visits(seed)
    model = mm.BayesianNetwork([("age", "visits"), ("visits", "cost")]).fit(table)
    drawn = model.sample(20_000, rng=seed)["cost"]
    assert drawn.max() < 3 * table["cost"].max()
    assert abs(drawn.mean() - table["cost"].mean()) < 4 * table["cost"].std() / np.sqrt(1000)


def test_tails_of_draws_are_real():
    """Limits of draws cut no tail that rows have."""
    gaps = []
    for seed in range(6):
        rng = np.random.default_rng([11, seed])
        x, noise = rng.normal(size=(2, 1000))
        y = np.exp(3 + 0.5 * x + 0.7 * noise)
        drawn = mm.BayesianNetwork([("x", "y")]).fit({"x": x, "y": y}).sample(20_000, rng=seed)["y"]
        truth = np.exp(3 + np.sqrt(0.25 + 0.49) * np.array([2.3263, 3.0902]))
        gaps.append(np.log(np.quantile(drawn, [0.99, 0.999]) / truth))
    assert np.abs(np.mean(gaps, axis=0)).max() < 0.12


def test_a_logarithm_counts_as_at_the_nearest_end_outside_of_the_data():
    rng = np.random.default_rng(5)
    x, noise = rng.normal(size=(2, 800))
    model = mm.BayesianNetwork([("x", "y")]).fit({"x": x, "y": np.exp(x + 0.3 * noise)})
    end, beyond = (model.do({"x": value}, ["y"], rng=0) for value in (x.max(), x.max() + 1))
    assert beyond["y"].mean() == pytest.approx(end["y"].mean())
    assert "its distribution is that at the nearest end" in str(beyond.report)
    far = model.do({"x": x.max() + 50}, ["y"], rng=0)
    assert far["y"].mean() == pytest.approx(end["y"].mean())
    assert "its distribution is that at the nearest end" in str(
        far.report
    )  # it was told of values that are less far only
    assert "far outside" in str(far.report)


def test_a_parent_far_from_all_rows_does_not_outweigh_them():
    """The mean score of held-out rows was -8,900,000: by the line of an irrelevant parent with a heavy tail."""
    rng = np.random.default_rng(32)
    parent, child = np.exp(5 + rng.standard_t(3, 1000)), rng.normal(size=1000)
    model = mm.BayesianNetwork([("parent", "child")]).fit({"parent": parent, "child": child})
    far = parent.max() * np.array([1.0, 10.0, 1e6])
    scores = model.score({"parent": far, "child": np.zeros(3)}) - model.score({"parent": far})
    assert (scores > -20).all()
    heavy = np.round(
        np.append(parent, 1e12)
    )  # this was zero of a Cauchy distribution, as its distribution function is one
    found = mm.BayesianNetwork([("child", "heavy")]).fit({"child": child, "heavy": heavy[:-1]}).score({"heavy": heavy})
    assert found.min() > -60
    gains = mm.BayesianNetwork([("parent", "child")]).judge({"parent": parent, "child": child})
    assert abs(gains.nodes["child"].mean) < 0.1
