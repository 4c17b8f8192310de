"""Censored and truncated responses, beside SciPy's densities, direct integration, and the maximum of the likelihood."""

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
from scipy import stats

pytest.importorskip("formulae")

from meanmap.core.errors import ColumnError, ParameterError
from meanmap.ep.linear import fit
from meanmap.ep.linear.family import Observed
from meanmap.ep.linear.likelihoods import FAMILIES
from meanmap.ep.linear.limits import limited

LAWS = {
    "gaussian": (("gaussian", "identity"), np.array([0.3]), lambda eta, p: stats.norm(eta, np.exp(p[0]))),
    "t": (("t", "identity"), np.array([0.3, 1.2]), lambda eta, p: stats.t(np.exp(p[1]), eta, np.exp(p[0]))),
    "gamma": (("gamma", "log"), np.array([0.7]), lambda eta, p: stats.gamma(np.exp(p[0]), scale=np.exp(eta - p[0]))),
}


def rows(name, rng, n=60):
    eta = rng.normal(size=n)
    key, p, law = LAWS[name]
    y = law(eta, p).rvs(random_state=rng)
    width = np.exp(rng.normal(size=n))
    return key, p, law(eta, p), eta, y, np.maximum(y - width, 1e-3) if name == "gamma" else y - width, y + width


@pytest.mark.parametrize("name", LAWS)
def test_densities_of_censored_rows(name):
    key, p, law, eta, y, low, high = rows(name, np.random.default_rng(0))
    family = limited(FAMILIES[key], "censored")
    for ends, exact in [
        ((y, y), law.logpdf(y)),
        ((-np.inf, y), law.logcdf(y)),
        ((y, np.inf), law.logsf(y)),
        ((low, high), np.log(law.cdf(high) - law.cdf(low))),
    ]:
        seen = Observed.of(y, low=ends[0], high=ends[1])
        np.testing.assert_allclose(family.log_density(seen, eta, p), exact, atol=1e-9)


@pytest.mark.parametrize("name", LAWS)
def test_densities_of_truncated_rows_have_mass_1(name):
    key, p, law, eta, y, low, high = rows(name, np.random.default_rng(1))
    family = limited(FAMILIES[key], "truncated")
    for ends, mass in [((low, high), law.cdf(high) - law.cdf(low)), ((low, np.inf), law.sf(low))]:
        found = family.log_density(Observed.of(y, low=ends[0], high=ends[1]), eta, p)
        np.testing.assert_allclose(found, law.logpdf(y) - np.log(mass), atol=1e-9)


@pytest.mark.parametrize("kind", ["censored", "truncated"])
@pytest.mark.parametrize("name", LAWS)
def test_slopes_by_parameters(name, kind):
    key, p, _, eta, y, low, high = rows(name, np.random.default_rng(2))
    family = limited(FAMILIES[key], kind)
    low = np.where(np.arange(len(y)) % 4 == 0, -np.inf, np.where(np.arange(len(y)) % 4 == 1, y, low))
    high = np.where(
        np.arange(len(y)) % 4 == 2, np.inf, np.where(np.arange(len(y)) % 4 == 1, y + (kind == "truncated"), high)
    )
    seen = Observed.of(y, low=low, high=high)
    for at, slope in enumerate(family.slopes(seen, eta, p)):
        step = 1e-3 * np.eye(len(p))[at]
        far, near = (
            (family.log_density(seen, eta, p + k * step) - family.log_density(seen, eta, p - k * step)) / (2e-3 * k)
            for k in (2, 1)
        )
        np.testing.assert_allclose(slope, (4 * near - far) / 3, atol=1e-6)


@pytest.mark.parametrize("name", LAWS)
def test_far_tails_keep_their_slope(name):
    """Below where probabilities are no numbers of 64 bits, logs still fall."""
    key, p, _ = LAWS[name]
    eta = np.linspace(-60.0, 60.0, 241) if name != "t" else np.linspace(-1e6, 1e6, 241)
    family = limited(FAMILIES[key], "censored")
    one = np.ones(len(eta))
    above = family.log_density(Observed.of(one, low=1.0, high=np.inf), eta, p)
    below = family.log_density(Observed.of(one, low=-np.inf, high=1.0), eta, p)
    assert not np.isnan([above, below]).any()
    assert (np.diff(above) >= 0).all()
    assert (np.diff(below) <= 0).all()
    if name == "gaussian":
        np.testing.assert_allclose(above, stats.norm.logsf((1 - eta) / np.exp(p[0])), rtol=1e-9)


def half_student(log):
    return -2 * np.log1p((np.exp(log) / 2.5) ** 2 / 3) + log


def data(rng, n=40):
    y = 1.0 + 2.0 * rng.normal(size=n)
    status = np.where(y > 2.0, "right", np.where(y < -1.5, "left", "none")).astype(object)
    wide = (np.arange(n) % 5 == 0) & (status == "none")
    status[wide] = "interval"
    low = np.where(wide, np.floor(y), np.clip(y, -1.5, 2.0))
    return {"low": low, "high": low + 1.0, "status": status}


def moments(heights, values):
    shares = np.exp(heights - heights.max())
    shares /= shares.sum()
    mean = (shares * values).sum()
    return mean, np.sqrt((shares * (values - mean) ** 2).sum())


def test_all_kinds_of_censoring_beside_direct_integration():
    table = data(np.random.default_rng(3))
    found = fit("censored(low, high, status) ~ 1", table)
    assert found.report.status == "converged"
    shown = found.to_frame()
    status, low, high = table["status"], table["low"], table["high"]
    used = np.where(status == "interval", (low + high) / 2, low)
    base, unit = used.mean(), used.std()
    mu, logs = np.meshgrid(np.linspace(-4, 4, 301), np.linspace(-1.5, 2, 301), indexing="ij")
    heights = -((mu / 2.5) ** 2) / 2 - np.log(2.5) - np.log(2 * np.pi) / 2 + half_student(logs)
    heights += np.log(2) + stats.t(3, scale=2.5).logpdf(0)
    for one, a, b in zip(status, low, high, strict=True):
        law = stats.norm(mu * unit + base, np.exp(logs) * unit)
        if one == "interval":
            heights += np.log(np.maximum(law.cdf(b) - law.cdf(a), 1e-300))
        else:
            heights += {"none": law.logpdf, "left": law.logcdf, "right": law.logsf}[one](a)
    for name, values in (("Intercept", mu * unit + base), ("sigma", np.exp(logs) * unit)):
        mean, sd = moments(heights, values)
        assert shown.loc[name, "estimate"] == pytest.approx(mean, abs=0.03 * sd)
        assert shown.loc[name, "sd"] == pytest.approx(sd, rel=0.03)
    top = heights.max()
    exact = top + np.log(np.exp(heights - top).sum() * (8 / 300) * (3.5 / 300))
    assert found.log_evidence == pytest.approx(exact, abs=0.02)


def test_truncation_beside_direct_integration():
    rng = np.random.default_rng(4)
    y = rng.normal(size=200)
    y = y[(y > -0.5) & (y < 1.5)]
    found = fit("truncated(y, lb=-0.5, ub=1.5) ~ 1", {"y": y})
    shown, base, unit = found.to_frame(), y.mean(), y.std()
    mu, logs = np.meshgrid(np.linspace(-10, 10, 801), np.linspace(-1.0, 3.0, 401), indexing="ij")
    heights = -((mu / 2.5) ** 2) / 2 + half_student(logs)
    law = stats.norm(mu * unit + base, np.exp(logs) * unit)
    # On the side where tails are small.
    low, high = (np.where(mu * unit + base > 0.5, law.logcdf(end), law.logsf(end)) for end in (-0.5, 1.5))
    mass = np.maximum(low, high) + np.log(-np.expm1(-np.abs(low - high)))
    heights += sum(law.logpdf(one) - mass for one in y)
    for name, values in (("Intercept", mu * unit + base), ("sigma", np.exp(logs) * unit)):
        mean, sd = moments(heights, values)
        assert shown.loc[name, "estimate"] == pytest.approx(mean, abs=0.1 * sd)
        assert shown.loc[name, "sd"] == pytest.approx(sd, rel=0.1)


@pytest.mark.parametrize("kind", ["censored", "truncated"])
@pytest.mark.parametrize("family", ["t", "gamma"])
def test_other_families_beside_direct_integration(family, kind):
    rng = np.random.default_rng(13)
    y = rng.gamma(2.0, 1.0, size=60) if family == "gamma" else 2.0 + rng.standard_t(4, size=60)
    limit = 3.0 if kind == "censored" else 4.0
    status = np.where(y > limit, "right", "none")
    y = np.minimum(y, limit) if kind == "censored" else y[y <= limit]
    response = "censored(y, status)" if kind == "censored" else "truncated(y, ub=4.0)"
    found = fit(f"{response} ~ 1", {"y": y, "status": status[: len(y)]}, family)
    logs = np.linspace(-1.5, 1.5, 61)
    if family == "gamma":
        centre = np.log(y.mean() + 1e-3)
        eta, shape = np.meshgrid(centre + np.linspace(-1.5, 4, 221), np.linspace(-1.5, 3, 121), indexing="ij")
        heights = -(((eta - centre) / 2.5) ** 2) / 2 - np.log1p((np.exp(shape) / 10) ** 2) + shape
        law, extra = stats.gamma(np.exp(shape), scale=np.exp(eta - shape)), ("alpha", np.exp(shape))
    else:
        base = np.median(y)
        unit = np.median(np.abs(y - base)) / 0.6745
        eta, logs, nu = np.meshgrid(np.linspace(-2, 3, 51), logs, np.linspace(-1, 5.5, 41), indexing="ij")
        heights = -((eta / 2.5) ** 2) / 2 + half_student(logs) + 2 * nu - 0.1 * np.exp(nu)
        eta = base + unit * eta
        law, extra = stats.t(np.exp(nu), eta, unit * np.exp(logs)), ("sigma", unit * np.exp(logs))
    for one, side in zip(y, status, strict=False):
        if kind == "censored":
            heights = heights + (law.logsf(one) if side == "right" else law.logpdf(one))
        else:
            heights = heights + law.logpdf(one) - law.logcdf(limit)
    shown = found.to_frame()
    for name, values in (("Intercept", eta), extra):
        mean, sd = moments(heights, values)
        assert shown.loc[name, "estimate"] == pytest.approx(mean, abs=0.08 * sd)
        assert shown.loc[name, "sd"] == pytest.approx(sd, rel=0.08)


@pytest.mark.parametrize("kind", ["censored", "truncated"])
def test_many_rows_have_the_estimates_of_maximum_likelihood(kind):
    rng = np.random.default_rng(5)
    x = rng.normal(size=3000)
    y = 1.0 + 0.5 * x + rng.normal(size=3000)
    kept = np.ones(3000, bool) if kind == "censored" else y > 0.5
    x, y = x[kept], y[kept]
    status = np.where(y > 1.5, "right", "none")
    response = "censored(y, status)" if kind == "censored" else "truncated(y, lb=0.5)"
    y = np.minimum(y, 1.5) if kind == "censored" else y
    shown = fit(f"{response} ~ x", {"y": y, "x": x, "status": status}).to_frame()

    def loss(p):
        law = stats.norm(p[0] + p[1] * x, np.exp(p[2]))
        if kind == "censored":
            return -np.where(status == "right", law.logsf(y), law.logpdf(y)).sum()
        return -(law.logpdf(y) - law.logsf(0.5)).sum()

    best = scipy.optimize.minimize(loss, [0.5, 0.0, 0.0], method="BFGS").x
    exact = np.array([best[0], best[1], np.exp(best[2])])
    # The posterior of truncated rows is skewed.
    np.testing.assert_allclose((shown.estimate - exact) / shown.sd, 0, atol=0.1 if kind == "censored" else 0.25)


def grouped(rng, groups=6, each=6):
    g = np.repeat(np.arange(groups), each)
    y = 0.8 * rng.normal(size=groups)[g] + rng.normal(size=len(g))
    return {"y": np.minimum(y, 0.7), "g": g, "status": np.where(y > 0.7, "right", "none")}


def test_groups_of_censored_rows_beside_direct_integration():
    table = grouped(np.random.default_rng(6))
    found = fit("censored(y, status) ~ 1 + (1 | g)", table)
    assert found.report.status == "converged"
    y = (table["y"] - table["y"].mean()) / table["y"].std()
    axes = np.linspace(-4, 5, 46), np.linspace(-6, 2.2, 42), np.linspace(-1.2, 1.2, 25)
    mu, spread, noise = np.meshgrid(*axes, indexing="ij")
    # Of a group: the likelihood at its mean, and the masses of that.
    eta = np.linspace(-20, 20, 2001)
    masses = -(((eta - mu[:, :, :1]) / np.exp(spread[:, :, :1])) ** 2) / 2
    masses = np.exp(masses - masses.max(2, keepdims=True))
    masses /= masses.sum(2, keepdims=True)
    heights = -((mu / 2.5) ** 2) / 2 + half_student(spread) + half_student(noise)
    for one in range(6):
        inside = np.zeros((len(eta), 25))
        for value, status in zip(y[table["g"] == one], table["status"][table["g"] == one], strict=True):
            z = (value - eta[:, None]) * np.exp(-axes[2])
            inside += stats.norm.logsf(z) if status == "right" else -(z**2) / 2 - axes[2]
        heights += np.log(np.maximum(masses @ np.exp(inside), 1e-300))
    unit, shown = table["y"].std(), found.to_frame()
    for name, values in [
        ("Intercept", mu * unit + table["y"].mean()),
        ("sd(Intercept | g)", np.exp(spread) * unit),
        ("sigma", np.exp(noise) * unit),
    ]:
        mean, sd = moments(heights, values)
        assert shown.loc[name, "estimate"] == pytest.approx(mean, abs=0.06 * sd)
        assert shown.loc[name, "sd"] == pytest.approx(sd, rel=0.06)


def test_units_and_signs_do_not_matter():
    table = grouped(np.random.default_rng(7))
    formula = "censored(y, status) ~ 1 + (1 | g)"
    found = fit(formula, table)
    wide = fit(formula, {**table, "y": 1000 * table["y"]})
    np.testing.assert_allclose(wide.to_frame(), 1000 * found.to_frame(), rtol=1e-6)
    seen = (table["status"] == "none").sum()
    assert wide.log_evidence == pytest.approx(found.log_evidence - seen * np.log(1000), abs=1e-6)
    moved = wide.leave_one_out() - found.leave_one_out()
    np.testing.assert_allclose(moved, np.where(table["status"] == "none", -np.log(1000), 0), atol=1e-6)
    turned = {**table, "y": -table["y"], "status": np.where(table["status"] == "right", "left", "none")}
    mirrored, shown = fit(formula, turned).to_frame(), found.to_frame()
    ends = mirrored.loc["Intercept", ["estimate", "high"]], shown.loc["Intercept", ["estimate", "low"]]
    np.testing.assert_allclose(ends[0], -ends[1], atol=1e-4)
    np.testing.assert_allclose(mirrored.drop("Intercept"), shown.drop("Intercept"), rtol=1e-4)


def test_without_limits_nothing_changes():
    rng = np.random.default_rng(8)
    table = {"y": rng.normal(size=50), "x": rng.normal(size=50), "status": np.full(50, "none")}
    plain = fit("y ~ x", table)
    for response in ("censored(y, status)", "truncated(y, lb=-1000)"):
        found = fit(f"{response} ~ x", table)
        np.testing.assert_allclose(found.to_frame(), plain.to_frame(), atol=2e-3)
        assert found.log_evidence == pytest.approx(plain.log_evidence, abs=1e-2)


def test_what_is_printed_predicted_and_drawn():
    table = pd.DataFrame(grouped(np.random.default_rng(9)))
    found = fit("censored(y, status) ~ 1 + (1 | g)", table)
    right = (table.status == "right").sum()
    assert f"36 rows, g: 6 groups, censored: {right} right" in str(found)
    # Means are those without limits.
    cut = fit("y ~ 1 + (1 | g)", table)
    assert (found.predict(table[["g"]])["estimate"] > cut.predict(table[["g"]])["estimate"]).all()
    assert found.simulate(draws=50, rng=0).max() > 0.7
    with pytest.raises(ParameterError, match=r"is censored, and simulate\(\) draws it without limits"):
        found.plot_check()


def test_columns_that_separate_censored_rows_are_named():
    """A treatment whose rows are all censored has no best coefficient."""
    rng = np.random.default_rng(11)
    table = {"y": rng.normal(size=40), "x": rng.normal(size=40), "treated": np.arange(40) % 2}
    status = np.where(rng.random(40) < 0.3, "right", "none")
    notes = fit("censored(y, status) ~ x + treated", {**table, "status": status}).report.notes
    assert notes == ()
    alone = np.where(table["treated"] == 1, "right", status)
    notes = fit("censored(y, status) ~ x + treated", {**table, "status": alone}).report.notes
    assert any(
        note.startswith("'treated' separates the response in some rows: the likelihood has no") for note in notes
    )


def test_status_may_be_categories_and_values_computed():
    table = pd.DataFrame(grouped(np.random.default_rng(12)))
    table["time"] = np.exp(table.y)
    found = fit("censored(np.log(time), status) ~ 1 + (1 | g)", table.astype({"status": "category"}))
    np.testing.assert_allclose(found.to_frame(), fit("censored(y, status) ~ 1 + (1 | g)", table).to_frame(), rtol=1e-6)


@pytest.mark.parametrize("family", ["t", "gamma"])
def test_other_families(family):
    rng = np.random.default_rng(10)
    x = rng.normal(size=400)
    if family == "t":
        y, limit = 1 + x + 0.5 * rng.standard_t(4, 400), 2.0
    else:
        y, limit = rng.gamma(2.0, np.exp(1 + 0.5 * x) / 2.0), 5.0
    table = {"y": np.minimum(y, limit), "x": x, "status": np.where(y > limit, "right", "none")}
    shown = fit("censored(y, status) ~ x", table, family).to_frame()
    whole = fit("y ~ x", {"y": y, "x": x}, family).to_frame()
    for name in ("Intercept", "x"):
        assert abs(shown.loc[name, "estimate"] - whole.loc[name, "estimate"]) < 3 * shown.loc[name, "sd"]
    cut = fit("y ~ x", table, family).to_frame()
    assert abs(cut.loc["x", "estimate"] - whole.loc["x", "estimate"]) > 3 * cut.loc["x", "sd"]


TABLE = {
    "y": np.array([1.0, 2.0, 3.0, 4.0]),
    "z": np.array([2.0, 3.0, 3.0, 5.0]),
    "event": np.array([1, 0, 1, 1]),
    "status": np.array(["none", "right", "none", "none"]),
    "odd": np.array(["none", "rihgt", "none", "none"]),
    "inside": np.array(["none", "right", "interval", "none"]),
    "lost": np.full(4, "right"),
    "c": np.array([0, 1, 2, 3]),
}


@pytest.mark.parametrize(
    ("response", "family", "error", "words"),
    [
        ("censored(y, event)", "gaussian", ColumnError, r"holds numbers.*numpy.where\(event == 1, 'none', 'right'\)"),
        ("censored(y, odd)", "gaussian", ColumnError, r"is 'rihgt' in row 1; expected 'none', 'left'"),
        ("censored(y, inside)", "gaussian", ParameterError, r"type censored\(low, high, status\)"),
        ("censored(y, z, inside)", "gaussian", ColumnError, "interval in row 2 of censored.* is 3 to 3: it is empty"),
        ("censored(y, lost)", "gaussian", ParameterError, "known only to be above its value.*'none' or 'interval'"),
        ("censored(y)", "gaussian", ParameterError, "has 1 arguments"),
        ("censored(status, odd)", "gaussian", ColumnError, "expected numbers before the status"),
        ("censored(c, status)", "poisson", ParameterError, "is for family 'gaussian', 't' or 'gamma'; got 'poisson'"),
        ("truncated(y)", "gaussian", ParameterError, r"has no limits; type truncated\(y, lb=0\)"),
        ("truncated(y, lb=1.5)", "gaussian", ColumnError, "is 1 in row 0, outside 1.5 to inf"),
        ("truncated(y, ub=z)", "t", None, ""),
        ("censored(c, status)", "gamma", ParameterError, "expects numbers above 0"),
        ("Surv(y, event)", "gaussian", ColumnError, r"Censored responses are censored\(time, status\)"),
    ],
)
def test_refusals_say_what_to_type(response, family, error, words):
    if error is None:
        assert fit(f"{response} ~ 1", TABLE, family).limits == "truncated"
        return
    with pytest.raises(error, match=words):
        fit(f"{response} ~ 1", TABLE, family)
