"""Priors of parameters of the family, beside grids."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

import meanmap as mm
from meanmap.errors import ParameterError


def _moments(values, logs):
    """Mean and standard deviation of values on a grid with log probabilities summed over all other axes."""
    shares = np.exp(logs - logsumexp(logs))
    mean = float((shares * values).sum())
    return mean, float(np.sqrt((shares * (values - mean) ** 2).sum()))


@pytest.mark.parametrize("scale", [0.2, 30.0])
def test_alpha_has_the_given_prior(scale):
    y = np.random.default_rng(21).negative_binomial(3, 0.4, 25).astype(float)
    found = mm.fit("y ~ 1", {"y": y}, family="negativebinomial", priors={"alpha": scale}).to_frame()
    intercept, log = np.linspace(-1.0, 4.0, 201), np.linspace(-5.0, 9.0, 281)
    eta, alpha = intercept[:, None], np.exp(log)[None, :]
    # Default of the intercept: Normal around the log of the mean with standard deviation 2.5.
    logs = stats.norm.logpdf(eta, np.log(y.mean() + 1e-3), 2.5) + stats.halfcauchy.logpdf(alpha, scale=scale) + log
    for one in y:
        logs = logs + gammaln(one + alpha) - gammaln(alpha) - gammaln(one + 1)
        logs = logs + alpha * np.log(alpha / (alpha + np.exp(eta))) + one * (eta - np.log(alpha + np.exp(eta)))
    mean, sd = _moments(eta + 0 * alpha, logs)
    assert found.loc["Intercept", "estimate"] == pytest.approx(mean, abs=0.05 * sd)
    assert found.loc["Intercept", "sd"] == pytest.approx(sd, rel=0.03)
    reached = np.cumsum(np.exp(logsumexp(logs, axis=0) - logsumexp(logs)))
    low, high = np.exp(np.interp([0.025, 0.975], reached, log))
    np.testing.assert_allclose(
        np.log(found.loc["alpha", ["low", "high"]].to_numpy(float)), np.log([low, high]), atol=0.1
    )


@pytest.mark.parametrize("prior", [(20.0, 10.0), (4.0, 0.1)])
def test_nu_has_the_given_prior(prior):
    y = np.random.default_rng(22).standard_t(4, 30)
    found = mm.fit("y ~ 1", {"y": y}, family="t", priors={"nu": prior}).to_frame()
    unit = np.median(np.abs(y - np.median(y))) / 0.6745
    place, log, nus = np.linspace(-1.5, 1.5, 81), np.linspace(-3.0, 2.0, 101), np.linspace(-1.5, 6.0, 121)
    mu, sigma, nu = place[:, None, None], np.exp(log)[None, :, None], np.exp(nus)[None, None, :]
    logs = stats.norm.logpdf(mu, np.median(y), 2.5 * unit) + stats.t.logpdf(sigma / (2.5 * unit), 3) + np.log(sigma)
    logs = logs + stats.gamma.logpdf(nu, prior[0], scale=1 / prior[1]) + np.log(nu)
    for one in y:
        logs = logs + stats.t.logpdf((one - mu) / sigma, nu) - np.log(sigma)
    for name, values in (("Intercept", mu), ("sigma", sigma), ("nu", nu)):
        mean, sd = _moments(values + 0 * logs, logs)
        assert found.loc[name, "estimate"] == pytest.approx(mean, abs=0.05 * sd)
        assert found.loc[name, "sd"] == pytest.approx(sd, rel=0.05)


def test_priors_of_other_families_and_impossible_ones_are_refused():
    table = {"y": [1, 2, 5, 3, 0, 2]}
    for family, priors, words in [
        ("poisson", {"alpha": 1.0}, "priors names 'alpha'"),
        ("negativebinomial", {"alpha": -1.0}, r"priors\['alpha'\] holds -1.0; expected a scale above 0"),
        ("negativebinomial", {"alhpa": 1.0}, "'alpha'"),
        ("t", {"nu": 4.0}, r"priors\['nu'\] is 4.0; expected the shape and the rate of a Gamma"),
        ("t", {"nu": (0.0, 1.0)}, r"priors\['nu'\] holds 0.0"),
    ]:
        with pytest.raises(ParameterError, match=words):
            mm.fit("y ~ 1", table, family=family, priors=priors)


def _panel():
    """Twenty sites in twenty years, half of them treated, a label and a curve."""
    rng = np.random.default_rng(5)
    site, year = np.repeat(np.arange(20), 20), np.tile(np.arange(2001.0, 2021.0), 20)
    treated = (site % 2).astype(float)
    y = 0.02 * (year - 2010) + 0.15 * (year - 2010) * treated + rng.normal(size=20)[site] + rng.normal(size=400)
    kind = np.array(list("abc"))[rng.integers(0, 3, 400)]
    return {"y": y, "x": year, "treated": treated, "site": site, "kind": kind, "bent": y - 0.03 * (year - 2010) ** 2}


@pytest.mark.parametrize(
    ("formula", "last"),
    [
        ("y ~ x * treated + (1 | site)", "x:treated"),
        ("bent ~ x + I(x**2)", "I(x ** 2)"),
        ("bent ~ I(x**2) + x", "I(x ** 2)"),
        ("y ~ kind + x:kind", "x:kind[b]"),
        ("y ~ x * kind * treated", "x:kind[b]:treated"),
    ],
)
def test_it_does_not_matter_where_the_numbers_of_a_product_are_0(formula, last):
    """The prior of year * treated was that of a column of thousands: .004 for an interaction of .15."""
    table = _panel()
    here, there = (mm.fit(formula, table | {"x": table["x"] - zero}) for zero in (0.0, 2010.0))
    assert here.log_evidence == pytest.approx(there.log_evidence, abs=1e-6)
    found, expected = (fit.to_frame().loc[last, ["estimate", "sd"]].to_numpy(float) for fit in (here, there))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    rows = {name: column[:3] for name, column in table.items()}
    np.testing.assert_allclose(
        here.predict(rows)["sd"], there.predict(rows | {"x": rows["x"] - 2010.0})["sd"], rtol=1e-6
    )


def _apart():
    """Twenty groups of nine rows with curves of their own, which depend on a label."""
    rng = np.random.default_rng(6)
    g, x, c = np.repeat(np.arange(20), 9), rng.normal(size=180), np.tile([0.0, 1.0, 1.0], 60)
    own = rng.normal(size=(20, 3)) * [1.0, 0.4, 0.5]
    y = 0.5 + own[g, 0] + (0.3 + own[g, 1]) * x + (0.4 + own[g, 2]) * x * c + rng.normal(size=180)
    return {"y": y, "bent": y + (own[g, 2] - 0.2) * x**2, "x": x, "c": c, "k": np.where(c > 0, "b", "a"), "g": g}


@pytest.mark.parametrize(
    ("formula", "last"),
    [
        ("y ~ x * c + (1 + x * c | g)", "sd(x:c | g)"),
        ("bent ~ x + I(x**2) + (x + I(x**2) | g)", "sd(I(x ** 2) | g)"),
        ("y ~ x + (1 + x + I(x * c) + c | g)", "sd(I(x * c) | g)"),
        ("y ~ x * k + (0 + k + x:k | g)", "sd(x:k[b] | g)"),
    ],
)
def test_nor_in_brackets(formula, last):
    """.86 for sd(x:c | g) was .03 where the mean of x was fifty of its standard deviations."""
    table = _apart()
    here, there = (mm.fit(formula, table | {"x": table["x"] + zero}) for zero in (0.0, 50.0))
    assert here.log_evidence == pytest.approx(there.log_evidence, abs=1e-6)
    found, expected = (fit.to_frame().loc[last, ["estimate", "sd"]].to_numpy(float) for fit in (here, there))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    rows = {name: column[:3] for name, column in table.items()} | {"g": np.array([0, 99, 99])}
    of_here, of_there = here.predict(rows), there.predict(rows | {"x": rows["x"] + 50.0})
    np.testing.assert_allclose(of_here["sd"], of_there["sd"], rtol=1e-5)


def test_priors_of_slopes_by_group_are_those_of_the_table():
    table = _apart()
    table["x"] = table["x"] + 50.0
    tight = mm.fit("y ~ x * c + (1 + x * c | g)", table, priors={"sd(x | g)": 1e-4}).to_frame()
    assert tight.loc["sd(x | g)", "high"] < 1e-2 < tight.loc["sd(x:c | g)", "low"]


def test_an_interaction_of_years_is_that_of_least_squares():
    table = _panel()
    columns = np.column_stack([np.ones(400), table["x"], table["treated"], table["x"] * table["treated"]])
    expected = np.linalg.lstsq(columns, table["y"])[0]
    found = mm.fit("y ~ x * treated", table).to_frame()
    assert found.loc["x:treated", "estimate"] == pytest.approx(expected[3], abs=0.05 * found.loc["x:treated", "sd"])
    # A prior for the number itself is one for its coefficient where the other is 0.
    tight = mm.fit("y ~ x * treated", table, priors={"x": (1.0, 1e-4)}).to_frame()
    assert tight.loc["x", "estimate"] == pytest.approx(1.0, abs=1e-3)


def test_a_product_that_its_own_columns_determine_is_kept_whole():
    table = _panel()
    found = mm.fit("y ~ x + I(2 * x)", table).to_frame()
    slope = found.loc["x", "estimate"] + 2 * found.loc["I(2 * x)", "estimate"]
    assert slope == pytest.approx(np.polyfit(table["x"], table["y"], 1)[0], rel=0.01)
