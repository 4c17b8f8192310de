"""Intervals for new groups, effects of groups, many rows and ordered labels, beside exact posteriors on a grid."""

import numpy as np
import pytest
import scipy.stats
from scipy.special import expit, gammaln

pytest.importorskip("formulae")

from meanmap.ep.linear import fit
from meanmap.ep.linear.mixtures import GRID, Shaped

GROUPS = np.repeat(np.arange(10), 3)
RNG = np.random.default_rng(5)
COUNTS = np.r_[np.zeros(6), RNG.poisson(np.exp(1 + 1.5 * RNG.normal(size=8))[GROUPS[6:] - 2])]
FRAME = {"y": COUNTS, "g": GROUPS}


def on_a_grid(y, groups):
    """Of `y ~ 1 + (1 | g)`, Poisson: ends of 95% of the effect of group 0, and of the predictor of a new group."""
    middle = np.log(y.mean()) + np.linspace(-5, 3, 121)[:, None, None]
    sd, t = np.exp(np.linspace(-6, 2.2, 101))[:, None], np.linspace(-7, 7, 141)
    eta, normal = middle + sd * t, np.exp(-(t**2) / 2)
    inside = [
        np.exp(sum(v * eta - np.exp(eta) - gammaln(v + 1) for v in y[groups == g])) * normal for g in np.unique(groups)
    ]
    whole = np.sum([np.log(each.sum(2)) for each in inside], axis=0)
    whole += scipy.stats.norm.logpdf(middle[..., 0], np.log(y.mean()), 2.5)
    whole += (scipy.stats.t.logpdf(sd / 2.5, 3) + np.log(sd))[:, 0]
    share = np.exp(whole - whole.max())[..., None]
    found = []
    for values, mass in ((sd * t + 0 * middle, inside[0]), (eta, normal + 0 * eta)):
        mass = (share * mass / mass.sum(2, keepdims=True)).ravel()
        order = np.argsort(values.ravel())
        mean = mass @ values.ravel() / mass.sum()
        spread = np.sqrt(mass @ (values.ravel() - mean) ** 2 / mass.sum())
        ends = values.ravel()[order][np.searchsorted(np.cumsum(mass[order]) / mass.sum(), [0.025, 0.975])]
        found.append((spread, ends))
    return found


@pytest.fixture(scope="module")
def found():
    return fit("y ~ 1 + (1 | g)", FRAME, "poisson")


def test_effects_of_groups_and_new_groups_have_their_ends(found):
    """A group of zeros has a long lower tail: by a Normal that end was off by .17 standard deviations."""
    (sd, effect), (spread, new) = on_a_grid(COUNTS, GROUPS)
    row = found.group_effects().iloc[0]
    np.testing.assert_allclose(row[["low", "high"]].to_numpy(float), effect, atol=0.06 * sd)
    with pytest.warns(UserWarning, match="mean response of 1 row does not exist"):
        shown = found.predict({"g": [99]})[["low", "high"]].to_numpy()[0]
    np.testing.assert_allclose(np.log(shown), new, atol=0.06 * spread)


def test_where_few_have_laws_of_their_own_others_are_corrected_and_a_note_says_where_that_will_not_do(
    found, monkeypatch
):
    monkeypatch.setitem(found.model.__dict__, "effect_draws", None)  # as of tables that are too large
    whole = found.group_effects()
    monkeypatch.setattr("meanmap.ep.linear.skewed._SHAPED", 1)
    monkeypatch.setattr("meanmap.ep.linear.skewed._ROUGH", 0.3)
    # Both groups of zeros have one law, but group effects of their own.
    with pytest.warns(UserWarning, match="1 of the 10 distributions examined are skewed") as caught:
        few = found.group_effects()
    assert "too many to compute one by one" in str(caught[0].message)
    columns = ["low", "high"]
    np.testing.assert_allclose(few[columns], whole[columns], atol=0.06 * whole.sd.max())
    monkeypatch.setattr("meanmap.ep.linear.skewed._DENSE", 50)  # a sample of the groups
    with pytest.warns(UserWarning, match=r"1 of the 4 distributions examined are skewed"):
        found.group_effects()


def test_many_rows_and_new_groups_are_quiet_where_laws_are_near_normal(monkeypatch):
    rng = np.random.default_rng(6)
    x, g = rng.normal(size=600), np.repeat(np.arange(20), 30)
    y = rng.random(600) < expit(0.5 * x + 0.5 * rng.normal(size=20)[g])
    fitted = fit("y ~ x + (1 | g)", {"x": x, "y": y * 1, "g": g}, "bernoulli")
    ends = fitted.predict()
    monkeypatch.setattr("meanmap.ep.linear.skewed._SHAPED", 10**9)
    monkeypatch.setattr("meanmap.ep.linear.shapes._MOST", 10**9)
    exact = fitted.predict()
    np.testing.assert_allclose(ends[["low", "high"]], exact[["low", "high"]], atol=0.03 * ends.sd.max())


def test_ends_of_probabilities_of_ordered_labels_with_a_rare_level():
    """Two labels are a logistic regression, whose predictor has a law of its own: by Normals ends were off."""
    x = (np.arange(30) >= 28) * 1.0
    y = np.r_[np.random.default_rng(10).integers(2, size=28), 1, 1]
    frame = {"x": x, "y": y}
    one, two = (fit("y ~ x", frame, family).predict({"x": [1.0]}) for family in ("bernoulli", "cumulative"))
    chance = two.xs(1, level="y")[["low", "high"]].to_numpy()
    odds = [np.log(each / (1 - each)) for each in (one[["low", "high"]].to_numpy(), chance)]
    sd = np.ptp(odds[0]) / 3.9
    np.testing.assert_allclose(odds[1], odds[0], atol=0.2 * sd)


def test_a_new_group_at_a_rare_level_that_separates():
    """Draws of coefficients with their shapes, and of new groups, are the judge."""
    rng = np.random.default_rng(7)
    g, x = np.arange(60) % 6, (np.arange(60) >= 57) * 1.0
    y = np.r_[rng.integers(2, size=57), 1, 1, 1]
    fitted = fit("y ~ x + (1 | g)", {"x": x, "y": y, "g": g}, "bernoulli")
    drawn = fitted.draws(100_000, rng=0)
    eta = drawn["Intercept"] + drawn["x"] + drawn["sd(Intercept | g)"] * rng.normal(size=100_000)
    shown = fitted.predict({"x": [1.0], "g": [99]})[["low", "high"]].to_numpy()[0]
    np.testing.assert_allclose(np.log(shown / (1 - shown)), eta.quantile([0.025, 0.975]), atol=0.12 * eta.std())


def test_a_law_of_its_own_with_a_normal_added_is_their_convolution():
    rng = np.random.default_rng(8)
    density = scipy.stats.gumbel_r.pdf(GRID * np.pi / 6**0.5, -np.euler_gamma)
    function = np.cumsum(density) - density / 2
    law = Shaped(
        np.zeros((1, 2)), np.full((1, 2), 2.0), np.ones(2) / 2, np.arange(1), np.stack([[function / density.sum()] * 2])
    )
    wider = law.widened(np.array([[3.0, 0.0]]))
    draws = 2 * (rng.gumbel(-np.euler_gamma, size=400_000) * 6**0.5 / np.pi)
    draws[::2] += np.sqrt(3.0) * rng.normal(size=200_000)
    np.testing.assert_allclose(wider.interval(0.95), np.quantile(draws, [[0.025], [0.975]]), atol=0.04)
    np.testing.assert_allclose(law.widened(np.full((1, 2), 400.0)).interval(0.95), [[-39.4], [39.4]], atol=0.05)


def by_weighted_draws(found, rows):
    """Mean and sd of probabilities in new rows of a logistic model without groups, and effective number of draws."""
    design, asked = (each.shared @ found.scaled.turn for each in (found.formula.rows, found.formula.later(rows)))
    y, precision, at = found.model.observed.response, 1 / 2.5**2, np.zeros(design.shape[1])
    curvature = np.eye(len(at))
    for _ in range(50):
        mean = expit(design @ at)
        curvature = (design.T * (mean * (1 - mean))) @ design + precision * np.eye(len(at))
        step = np.linalg.solve(curvature, design.T @ (y - mean) - precision * at)
        at = at + step * min(1.0, 2 / np.abs(step).max())
    rng = np.random.default_rng(1)
    z = rng.normal(size=(60_000, len(at))) / np.sqrt(rng.chisquare(5, (60_000, 1)) / 5)
    effects = at + z @ (1.15 * np.linalg.cholesky(np.linalg.inv(curvature))).T
    eta = effects @ design.T
    logs = (y * eta - np.logaddexp(0, eta)).sum(1) - precision * (effects**2).sum(1) / 2
    logs += (5 + len(at)) / 2 * np.log1p((z**2).sum(1) / 5)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    shown = expit(effects @ asked.T)
    mean = weights @ shown
    return mean, np.sqrt(weights @ (shown - mean) ** 2), 1 / (weights @ weights)


@pytest.mark.parametrize(("seed", "rows", "near"), [(2, 250, 0.05), (1, 120, 0.08)])
def test_probabilities_near_0_and_1_where_slopes_depend_on_labels(seed, rows, near):
    """Means and sds are those of tails: both were up to ten times too small for the rare label."""
    rng = np.random.default_rng(seed)
    k, x = rng.choice(["a1", "a2", "a3"], rows, p=[0.45, 0.45, 0.1]), rng.normal(size=rows)
    eta = -1 + x * (1 + (k == "a2") + 2 * (k == "a3"))
    found = fit("y ~ x * k", {"y": (rng.random(rows) < expit(eta)).astype(int), "x": x, "k": k}, "bernoulli")
    new = {"x": np.tile([-4.0, -3, -2, -1, 0, 2, 3, 4], 3), "k": np.repeat(["a1", "a2", "a3"], 8)}
    mean, sd, effective = by_weighted_draws(found, new)
    assert effective > 15_000
    shown = found.predict(new)
    assert ((mean < 0.01) | (mean > 0.99)).sum() >= 4
    rare, expected = (np.where(mean < 0.5, each, 1 - each) for each in (shown.estimate, mean))
    error = 4 * sd / np.sqrt(effective) / expected
    np.testing.assert_array_less(abs(rare / expected - 1), near + error)
    np.testing.assert_allclose(shown.sd, sd, rtol=0.12)
