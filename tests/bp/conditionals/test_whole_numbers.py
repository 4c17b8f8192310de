"""Scores of whole and rounded numbers are probabilities over a step: they add up to one, and gains are right."""

import numpy as np
import pytest
from scipy.stats import norm, poisson

import meanmap as mm

GRID = np.linspace(-6, 6, 2001)


def table(rate, slope, seed, n=1500):
    rng = np.random.default_rng(seed)
    x, u = rng.normal(size=(2, n))
    return {"x": x, "u": u, "count": rng.poisson(rate * np.exp(slope * x))}


def chances(model, given, counts):
    """p(count | one value), for each count."""
    (name, value) = given
    seen = {name: np.full(len(counts), value)}
    return np.exp(model.score(seen | {"count": counts}) - model.score(seen))


@pytest.mark.parametrize("rate", [0.7, 2.0, 8.0])
def test_probabilities_of_counts_are_right(rate):
    """That of 0 was four times the truth, and where a count did not depend on its parent all of them came to 154."""
    found, counts = table(rate, 0.3, 1), np.arange(60)
    model = mm.BayesianNetwork([("x", "count"), ("u", "x")]).fit(found)
    shares = chances(model, ("x", 0.0), counts)
    assert 0.98 < shares.sum() < 1.0001
    assert np.abs(shares - poisson.pmf(counts, rate)).max() < 0.08  # of the rows with x near 0
    alone = mm.BayesianNetwork([("u", "count")]).fit(found)
    shares = chances(alone, ("u", 0.0), counts)
    assert 0.98 < shares.sum() < 1.0001
    frequencies = np.bincount(found["count"], minlength=60) / 1500
    assert np.abs(shares - frequencies).max() < 0.08  # of the rows with u near 0
    assert np.isfinite(model.score({"count": [10_000]})).all()


def test_a_dependency_network_has_probabilities_of_many_counts():
    """With more than 20 of them densities depended on the width of bins, and came to 39."""
    found, counts = table(8.0, 0.3, 2), np.arange(60)
    model = mm.bp.DependencyNetwork().fit({name: found[name] for name in ("x", "count")})
    shares = chances(model, ("x", 0.0), counts)
    assert len(np.unique(found["count"])) > 20
    assert 0.95 < shares.sum() < 1.05
    assert np.abs(shares - poisson.pmf(counts, 8.0)).max() < 0.05


@pytest.mark.parametrize("seed", range(3))
def test_an_arrow_to_a_count_gains_what_it_should(seed):
    """Held-out rows were most probable without the true arrow."""
    rate, slope = 0.7, 0.5
    found, new = table(rate, slope, seed), table(rate, slope, 100 + seed, 5000)
    law = norm.pdf(GRID)[:, None] * poisson.pmf(np.arange(60), rate * np.exp(slope * GRID)[:, None])
    marginal = law.sum(axis=0) * (GRID[1] - GRID[0])
    truth = poisson.logpmf(new["count"], rate * np.exp(slope * new["x"])) - np.log(marginal[new["count"]])
    models = [mm.BayesianNetwork([(cause, "count")]).fit(found) for cause in "xu"]
    scores = [
        model.score({name: new[name], "count": new["count"]}) - model.score({name: new[name]})
        for model, name in zip(models, "xu", strict=True)
    ]
    assert abs(np.mean(scores[0] - scores[1]) - truth.mean()) < 0.03
    gain = mm.BayesianNetwork([("x", "count")]).judge({name: found[name] for name in ("x", "count")})
    assert gain.arrows["x", "count"].mean > 0.03


@pytest.mark.parametrize("seed", range(3))
def test_a_count_of_zero_says_as_much_about_its_cause_as_it_should(seed):
    """The mean of the cause was off by up to half a standard deviation."""
    model = mm.BayesianNetwork([("x", "count")]).fit({name: table(0.7, 0.5, seed)[name] for name in ("x", "count")})
    weights = norm.pdf(GRID) * poisson.pmf(0, 0.7 * np.exp(0.5 * GRID))
    mean = weights @ GRID / weights.sum()
    assert abs(model.query({"count": 0}, ["x"], rng=0)["x"].mean() - mean) < 0.15


@pytest.mark.parametrize("unit", [1.0, 100.0])
@pytest.mark.parametrize("kind", ["BayesianNetwork", "DependencyNetwork"])
def test_a_frequent_value_has_its_probability(kind, unit):
    """The zeros of costs had a density that depended on the nearest other cost, or on the width of a bin."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=1000)
    cost = np.where(rng.random(1000) < 0.4, 0.0, np.exp(x + 0.5 * rng.normal(size=1000))) * unit
    made = mm.BayesianNetwork([("x", "cost")]) if kind == "BayesianNetwork" else mm.bp.DependencyNetwork()
    model = made.fit({"x": x, "cost": cost})
    found = np.exp(model.score({"x": [0.0], "cost": [0.0]}) - model.score({"x": [0.0]}))
    assert abs(found[0] - 0.4) < 0.08


@pytest.mark.parametrize("step", [0.1, 0.5, 2.0])
def test_rounding_hardly_changes_scores_and_gains(step):
    """With y rounded to a quarter of its standard deviation an arrow that gains .2 was said to lose 1."""
    rng = np.random.default_rng(5)

    def rows(n):
        x, u = rng.normal(size=(2, n))
        return {"x": x, "u": u, "y": 3 * x + 4 * rng.normal(size=n)}

    table, new, found = rows(1000), rows(3000), []
    for unit in (0, step):
        first, other = (each | {"y": np.round(each["y"] / unit) * unit if unit else each["y"]} for each in (table, new))
        scores = []
        for cause in "xu":
            model = mm.BayesianNetwork([(cause, "y")]).fit({name: first[name] for name in (cause, "y")})
            whole = model.score({name: other[name] for name in (cause, "y")})
            scores.append(np.mean(whole - model.score({cause: other[cause]})))
        found.append([scores[0], scores[0] - scores[1]])
    assert np.abs(np.diff(found, axis=0)).max() < 0.06


@pytest.mark.parametrize("step", [0.1, 0.25, 0.5, 1.0])
def test_rounded_numbers_lose_nothing_by_a_parent_that_says_little(step):
    """A forest separated the peaks of residuals at multiples of the step, and new rows were .02 to .06 too improbable:
    the gain of a weak arrow over none was .04 for .002.
    """
    lost = []
    for seed in range(3):
        rng = np.random.default_rng([31, seed])
        x, u, noise = rng.normal(size=(3, 3000))
        y = np.round((0.1 * x + noise) / step) * step
        for name, cause, mean, sd in (("x", x, 0.1 * x, 1.0), ("u", u, 0.0, 1.01**0.5)):
            model = mm.BayesianNetwork([(name, "y")]).fit({name: cause[:1000], "y": y[:1000]})
            found = model.score({name: cause, "y": y}) - model.score({name: cause})
            truth = np.log((norm.cdf((y + step / 2 - mean) / sd) - norm.cdf((y - step / 2 - mean) / sd)) / step)
            lost.append((truth - found)[1000:].mean())
    assert np.max(lost) < 0.012


@pytest.mark.parametrize("slope", [0.1, 0.4])
def test_effects_of_less_than_half_a_step_are_not_rounded_away(slope):
    """Residuals are nearly whole numbers: of .2 between two settings 0 or .105 were left, and .49 of .6."""
    rng = np.random.default_rng(6)
    x = rng.normal(size=4000)
    y = np.round(3 + slope * x + 0.7 * rng.normal(size=4000))
    model = mm.BayesianNetwork([("x", "y")]).fit({"x": x, "y": y})
    low, high = (model.do({"x": at}, ["y"], rng=0)["y"] for at in (-1.0, 1.0))
    assert abs(high.mean() - low.mean() - 2 * np.polyfit(x, y, 1)[0]) < 0.04
    truth = np.std(y - slope * x)
    assert abs(low.sd() / truth - 1) < 0.05


@pytest.mark.parametrize("step", [0.1, 0.25, 5.0])
def test_draws_of_rounded_numbers_are_rounded(step):
    rng = np.random.default_rng(7)
    x = rng.normal(size=1500)
    y = np.round((50 + 3 * x + 2 * rng.normal(size=1500)) / step) * step
    model = mm.BayesianNetwork([("x", "y")]).fit({"x": x, "y": np.round(y, 2)})
    for values, given in ((None, None), ({"x": 0.5}, 0.5)):
        drawn = model.sample(3000, values=values, rng=0)["y"]
        assert np.array_equal(drawn, np.round(np.round(drawn / step) * step, 2))
        assert abs(drawn.mean() - 50 - 3 * (given or 0)) < 0.25
    assert abs(model.sample(3000, rng=0)["y"].std() / y.std() - 1) < 0.05


def test_rows_are_scored_alike_in_any_company():
    """Equal rows are scored once: 3000 rows of a rounded number whose cause was missing took minutes."""
    rng = np.random.default_rng(8)
    x, z = rng.normal(size=(2, 500))
    table = {"x": x, "z": z, "y": np.round(x + z + rng.normal(size=500)), "l": np.where(x > 0, "a", "b")}
    model = mm.BayesianNetwork([("x", "y"), ("z", "y"), ("x", "l")]).fit(table)
    some = {
        "x": [np.nan, 0.3, np.nan, np.nan, np.nan, 0.3],
        "z": [np.nan, np.nan, np.nan, 0.5, np.nan, np.nan],
        "y": [1.0, np.nan, 1.0, 1.0, 2.0, np.nan],
        "l": ["a", "c", "a", None, "a", "b"],
    }
    found = model.score(some)
    alone = [model.score({name: [column[i]] for name, column in some.items()})[0] for i in range(6)]
    assert np.allclose(found, alone, rtol=0, atol=1e-9)
    assert found[0] == found[2] != found[4]


def test_numbers_beyond_the_range_of_a_logarithm_are_scored_too():
    """Whole money with many zeros: the score of 1 was an error of NumPy, and of -1 as large as that of the least."""
    rng = np.random.default_rng(11)
    group = rng.choice(["a", "b"], 1000)
    money = np.where(rng.random(1000) < 0.6, 0, np.round(np.exp(4 + 0.7 * rng.normal(size=1000))))
    model = mm.BayesianNetwork([("group", "money")]).fit({"group": group, "money": money})
    values = np.arange(-20, 4000)
    chances = np.exp(model.score({"money": values}))
    assert np.isfinite(chances).all()
    assert chances.sum() == pytest.approx(1, abs=0.01)
    assert chances[values < 0].sum() < 2 / 1000


@pytest.mark.parametrize("seed", [707, 731])
def test_the_least_number_is_drawn_although_its_standardised_form_is_rounded(seed):
    """Standardised and back, a count of 0 was 2e-16: no draw was 0, for a share of .31."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=1000)
    visits = rng.poisson(np.exp(0.3 * x + 0.2))
    model = mm.BayesianNetwork([("x", "visits")]).fit({"x": x, "visits": visits})
    drawn = model.sample(20_000, rng=0)["visits"]
    assert np.mean(drawn == 0) == pytest.approx(np.mean(visits == 0), abs=0.05)
    assert np.mean(drawn) == pytest.approx(np.mean(visits), abs=0.12)
