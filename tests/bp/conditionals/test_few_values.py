"""Numbers of few values, such as ratings: draws are such values, others are improbable, means are those of the rows."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import nbinom, norm

import meanmap as mm
from meanmap.bp.conditionals.few_values import FewValues

ENDS = np.array([-np.inf, 1.5, 2.5, 3.5, 4.5, np.inf])


def chances(z):
    """p(rating | z) of ratings below."""
    return np.diff(norm.cdf((ENDS - 3 - 0.6 * np.asarray(z)[..., None]) / 0.8), axis=-1)


def ratings(seed, n, t: Any = 0.0):
    rng = np.random.default_rng(seed)
    z, noise = rng.normal(size=(2, n))
    return {"z": z, "rating": np.clip(np.round(3 + t + 0.6 * z + 0.8 * noise), 1, 5).astype(int)}


@pytest.fixture(scope="module")
def model():
    return mm.BayesianNetwork([("z", "rating")]).fit(ratings(1, 1500))


def test_draws_are_values_of_the_rows_and_as_frequent(model):
    """Of draws at z = 2 some 5% were 6 or 7."""
    drawn = model.sample(20_000, rng=0)["rating"]
    assert set(drawn) == {1, 2, 3, 4, 5}
    shares = np.bincount(drawn, minlength=6)[1:] / 20_000
    np.testing.assert_allclose(shares, np.bincount(ratings(1, 1500)["rating"], minlength=6)[1:] / 1500, atol=0.015)
    for z in (-2.0, 0.0, 2.0):
        belief = model.do({"z": z}, ["rating"], rng=0)["rating"]
        assert set(np.unique(belief.points)) <= {1, 2, 3, 4, 5}
        assert abs(belief.mean() - chances(z) @ np.arange(1, 6)) < 0.12
        assert abs(np.mean(belief.points == 5) - chances(z)[4]) < 0.08


def test_scores_are_right_and_of_other_values_low(model):
    """Rows of a rating lost .04 nats to the truth, and 6 had a probability of .01."""
    new = ratings(2, 3000)
    lost = np.log(chances(new["z"])[np.arange(3000), new["rating"] - 1]) - (
        model.score(new) - model.score({"z": new["z"]})
    )
    assert lost.mean() < 0.015
    values = np.arange(-20, 30)
    shares = np.exp(model.score({"z": np.ones(50), "rating": values}) - model.score({"z": np.ones(50)}))
    assert 0.998 < shares.sum() < 1.0005
    assert shares[(values < 1) | (values > 5)].max() < 3e-4
    two = mm.BayesianNetwork([("z", "y")]).fit({"z": new["z"], "y": np.where(new["rating"] > 3, 7, 3)})
    shares = np.exp(two.score({"y": np.arange(10)}))
    assert shares[[3, 7]].sum() == pytest.approx(1, abs=0.001)
    assert np.delete(shares, [3, 7]).max() < 3e-4


def test_effects_of_less_than_a_step_are_kept():
    """Rounded to the nearest, an effect of .2 on a rating was .1."""
    found = []
    for seed in range(10):
        t = np.arange(1500) % 2
        model = mm.BayesianNetwork([("t", "rating"), ("z", "rating")]).fit(
            {"t": t, **ratings([7, seed], 1500, 0.2 * t)}
        )
        off, on = (model.do({"t": each}, ["rating"], rng=0)["rating"].mean() for each in (0, 1))
        found.append(on - off)
    z = np.linspace(-5, 5, 2001)
    weights = norm.pdf(z) / norm.pdf(z).sum()
    truth = weights @ (np.diff(norm.cdf((ENDS - 3.2 - 0.6 * z[:, None]) / 0.8), axis=1) - chances(z)) @ np.arange(1, 6)
    assert abs(np.mean(found) - truth) < 3 * np.std(found, ddof=1) / np.sqrt(10) + 0.005


def test_means_beyond_the_ends_stay_inside():
    means, numbers = np.repeat([0.5, 3.0, 5.5], 40), np.repeat([1.0, 3.0, 5.0], 40)
    found = FewValues.fit(means, numbers, means)
    shares = found(np.array([-100.0, 3.0, 100.0]))
    assert (shares > 0).all()
    assert shares[0, 0] > 0.95
    assert shares[2, 2] > 0.95
    assert found.draw(np.full(1000, 3.0), np.random.default_rng(0)).mean() == pytest.approx(3, abs=0.01)


def test_a_number_whose_ends_are_tails_is_drawn_beyond_them():
    x, noise = np.random.default_rng(3).normal(size=(2, 1000))
    y = np.round(x + noise)
    drawn = mm.BayesianNetwork([("x", "y")]).fit({"x": x, "y": y}).do({"x": 4.0}, ["y"], rng=0)["y"].points
    assert drawn.max() > y.max()


@pytest.mark.parametrize("seed", range(3))
def test_means_given_labels_are_those_of_the_rows(seed):
    """Of rows with the same parents, means without a row are the smallest where its number is largest: with one 0/1
    parent `do` gave 2.49 for 2.01, and counts of means 1 and 2 both had 2.13.
    """
    rng = np.random.default_rng([8, seed])
    t, city = rng.integers(0, 2, 2000), rng.integers(0, 4, 2000)
    columns = {
        "rating": np.clip(np.round(2 + t + 0.8 * rng.normal(size=2000)), 1, 5).astype(int),
        "count": rng.poisson(1.0 + t),
        "scale": np.clip(np.round(1.5 + city + 0.8 * rng.normal(size=2000)), 1, 5).astype(int),
        "nothing": rng.poisson(0.8, 2000),
    }
    table = {"t": t, "city": np.array(list("abcd"))[city], **columns}
    edges = [("t", "rating"), ("t", "count"), ("city", "scale"), ("city", "nothing")]
    model = mm.BayesianNetwork(edges).fit(table)
    drawn = model.sample(20_000, rng=0)
    for cause, effect in edges:
        assert abs(drawn[effect].mean() - table[effect].mean()) < 0.06
        for value in np.unique(table[cause]):
            mean = model.do({cause: value}, [effect], rng=0)[effect].mean()
            assert abs(mean - table[effect][table[cause] == value].mean()) < 0.06, (cause, effect, value)


@pytest.mark.parametrize("rates", [(0.01, 0.03, 0.05, 0.1), (0.05, 0.3, 1.0, 3.0)])
def test_rare_counts_given_labels_stay_near_the_rows(rates):
    """By a regression and its residuals draws reached 39 where rows end at 10, and 5% were 0 in place of 8%."""
    rng = np.random.default_rng(1)
    city = rng.integers(0, 4, 6000)
    y, names = rng.poisson(np.array(rates)[city]), np.array(list("abcd"))[city]
    drawn = mm.BayesianNetwork([("city", "y")]).fit({"city": names, "y": y}).sample(40_000, rng=0)
    assert drawn["y"].max() <= y.max()
    for name in "abcd":
        some, rows = drawn["y"][drawn["city"] == name], y[names == name]
        assert abs((some == 0).mean() - (rows == 0).mean()) < 0.03
        assert abs(some.mean() - rows.mean()) < 0.01 + 0.05 * rows.mean()


@pytest.mark.parametrize("seed", range(2))
def test_counts_of_many_values_given_labels(seed):
    """By a regression and its residuals draws reached 154 where rows end at 90, and of the first label 29% were 0 in
    place of 34%.
    """
    rng = np.random.default_rng([3, seed])
    city, means = rng.integers(0, 4, 4000), np.array([2.0, 4.0, 8.0, 12.0])
    y, names = rng.negative_binomial(1, 1 / (1 + means[city])), np.array(list("abcd"))[city]
    model = mm.BayesianNetwork([("city", "y")]).fit({"city": names, "y": y})
    drawn = model.sample(40_000, rng=0)
    assert len(np.unique(y)) > 20
    assert drawn["y"].max() < 1.2 * y.max()
    for name in "abcd":
        some, rows = drawn["y"][drawn["city"] == name], y[names == name]
        assert abs(some.mean() / rows.mean() - 1) < 0.06
        assert abs((some == 0).mean() - (rows == 0).mean()) < 0.03
    new = rng.integers(0, 4, 3000)
    values, given = rng.negative_binomial(1, 1 / (1 + means[new])), {"city": np.array(list("abcd"))[new]}
    lost = nbinom.logpmf(values, 1, 1 / (1 + means[new])) - (model.score({**given, "y": values}) - model.score(given))
    assert lost.mean() < 0.015
    every = np.arange(-5, 400)
    of_a = {"city": np.full(405, "a")}
    shares = np.exp(model.score({**of_a, "y": every}) - model.score(of_a))
    assert 0.998 < shares.sum() < 1.0005
    assert shares[:5].max() < 1e-3
