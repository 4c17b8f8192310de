"""Predictions at a label without events, beside an integral over a grid, and in tables where draws are costly."""

import warnings

import numpy as np
import pytest
from scipy.special import expit

pytest.importorskip("formulae")

from meanmap.ep.linear import fit

FORMULAS = {"poisson": "y ~ k + (1 | g)", "bernoulli": "y ~ k + (1 | g)", "binomial": "p(y, m) ~ k + (1 | g)"}


def table(family, rows, seed, rare=0.04, base=-1.5):
    """No row with label c has an event."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 11, rows)
    g = np.repeat(np.arange(rows), sizes)[:rows]
    k = rng.choice(["a", "c"], rows, p=[1 - rare, rare])
    eta, m = base + rng.normal(size=rows)[g], rng.integers(2, 6, rows) if family == "binomial" else np.ones(rows, int)
    y = rng.poisson(np.exp(eta)) if family == "poisson" else rng.binomial(m, expit(eta))
    return {"y": np.where(k == "c", 0, y), "m": m, "k": k, "g": g}


def on_a_grid(family, data):
    """Means at rows with label c, by an integral over both coefficients, the standard deviation and each group; and the
    values of the coefficient of c with their probabilities.
    """
    y, m, c, g = data["y"], data["m"], data["k"] == "c", data["g"]
    middle, share, u = np.log(y.mean()) if family == "poisson" else 0.0, c.mean(), np.linspace(-6, 6, 33)
    scale = 2.5 / c.std()
    slopes = np.r_[np.linspace(-3 * scale, -8, 30, endpoint=False), np.linspace(-8, 3, 34)]
    widths = np.gradient(slopes)

    def log_of(some, eta):
        if family == "poisson":
            return y[some, None] * eta - np.exp(eta)
        return y[some, None] * eta - m[some, None] * np.logaddexp(0, eta)

    def sums(logs, index):
        return np.add.reduceat(logs, np.flatnonzero(np.diff(index, prepend=-1)), axis=0)

    mean = np.exp if family == "poisson" else expit
    logs, means, values = [], [], []
    for level in np.linspace(-4.5, 0.5, 26):  # of label a
        for log_sd in np.linspace(-1.2, 1.2, 17):
            sd = np.exp(log_sd)
            plain = np.zeros((g.max() + 1, len(u)))
            plain[np.unique(g[~c])] = sums(log_of(~c, level + sd * u + np.zeros(((~c).sum(), 1))), g[~c])
            plain -= u**2 / 2
            for slope, width in zip(slopes, widths, strict=True):
                eta = level + slope + sd * u
                whole = plain.copy()
                whole[np.unique(g[c])] += sums(log_of(c, eta + np.zeros((c.sum(), 1))), g[c])
                top = whole.max(1, keepdims=True)
                inside = np.exp(whole - top)
                at = level + share * slope - middle
                prior = -((at / 2.5) ** 2 + (slope / scale) ** 2) / 2 - 2 * np.log1p((sd / 2.5) ** 2 / 3) + log_sd
                logs.append(prior + (np.log(inside.sum(1)) + top[:, 0]).sum() + np.log(width))
                means.append(inside[g[c]] @ mean(eta) / inside[g[c]].sum(1))
                values.append(slope)
    weights = np.exp(np.array(logs) - max(logs))
    weights /= weights.sum()
    return weights @ np.array(means), np.bincount(np.searchsorted(slopes, values), weights), slopes


@pytest.mark.parametrize("family", list(FORMULAS))
def test_means_at_a_label_without_events_where_only_its_rows_count_as_they_are(family, monkeypatch):
    monkeypatch.setattr("meanmap.ep.linear.effect_draws._EVALUATIONS", 1)  # as in tables of thousands of rows
    data = table(family, 240, 3, rare=0.06)
    found, at, m = fit(FORMULAS[family], data, family), data["k"] == "c", data["m"]
    assert found.model.effect_draws is not None
    assert not found.model.effect_draws.of_all
    shown, drawn = found.predict().estimate.to_numpy(), found.expected(draws=4000, rng=0).mean(0)
    exact, trials = on_a_grid(family, data)[0], m if family == "binomial" else np.ones(240)
    np.testing.assert_allclose(trials[at] @ shown[at], trials[at] @ exact, rtol=0.2)
    np.testing.assert_allclose(trials[at] @ drawn[at], trials[at] @ exact, rtol=0.35)
    np.testing.assert_allclose(trials @ shown, data["y"].sum(), rtol=0.02)


@pytest.mark.parametrize("family", list(FORMULAS))
def test_the_coefficient_of_a_label_without_events_in_tables_and_contrasts(family):
    """By runs or rows its upper end was above 0 and its standard deviation up to 1.8 times as large."""
    data = table(family, 240, 5, rare=0.06)
    found, (_, probabilities, slopes) = fit(FORMULAS[family], data, family), on_a_grid(family, data)
    mean = probabilities @ slopes
    sd = np.sqrt(probabilities @ (slopes - mean) ** 2)
    low, high = np.interp([0.025, 0.975], np.cumsum(probabilities) - probabilities / 2, slopes)
    for row in (
        found.to_frame().loc["k[c]"],
        -found.contrasts("k").loc["a - c"].rename({"low": "high", "high": "low"}),
    ):
        assert abs(row.estimate - mean) < 0.15 * sd
        assert abs(np.log(abs(row.sd) / sd)) < 0.15
        assert abs(row.low - low) < 0.4 * sd
        assert abs(row.high - high) < 0.2 * sd


@pytest.mark.slow
@pytest.mark.parametrize("family", list(FORMULAS))
@pytest.mark.parametrize("rows", [1500, 3000, 10_000])
def test_predictions_add_up_to_the_events_in_tables_of_any_size(family, rows):
    """The posterior mean of the derivative of its log by a coefficient is 0: so means at the label are known."""
    data = table(family, rows, rows, rare=0.02)
    found, at = fit(FORMULAS[family], data, family), data["k"] == "c"
    trials = data["m"] if family == "binomial" else np.ones(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        shown, drawn = found.predict().estimate.to_numpy(), found.expected(draws=2000, rng=0).mean(0)
    assert abs(trials @ shown / data["y"].sum() - 1) < 0.02
    assert abs(trials @ drawn / data["y"].sum() - 1) < 0.03
    # Half a normal distribution, as the prior is cut off where events would have been seen.
    nearly = np.sqrt(2 / np.pi) * at.std() / 2.5
    assert abs(trials[at] @ shown[at] / nearly - 1) < 0.35


def test_predictions_that_no_draws_confirm_are_nan_with_a_note_and_the_status_says_so(monkeypatch):
    for name in ("_EVALUATIONS", "_NEEDED"):
        monkeypatch.setattr(f"meanmap.ep.linear.effect_draws.{name}", 1)
    data = table("poisson", 240, 3, rare=0.06)
    found, at = fit(FORMULAS["poisson"], data, "poisson"), data["k"] == "c"
    assert "predictions are nan where coefficients separate" in found.report.status
    with pytest.warns(UserWarning, match="predictions of [0-9]+ rows are nan: only the prior keeps"):
        shown = found.predict()
    with pytest.warns(UserWarning, match="predictions of [0-9]+ rows are nan"):
        drawn = [found.expected(draws=5, rng=0), found.simulate(draws=5, rng=0)]
    assert all(np.isnan(each[:, at]).all() and np.isfinite(each[:, ~at]).all() for each in drawn)
    assert shown[at].isna().all(axis=None)
    assert shown[~at].notna().all(axis=None)


def test_predictions_at_a_label_without_events_are_nan_with_more_coefficients_than_have_draws(monkeypatch):
    for name in ("_EVALUATIONS", "_WIDE"):
        monkeypatch.setattr(f"meanmap.ep.linear.effect_draws.{name}", 1)
    data = table("poisson", 240, 4, rare=0.06)
    found, at = fit(FORMULAS["poisson"], data, "poisson"), data["k"] == "c"
    with pytest.warns(UserWarning, match="predictions of [0-9]+ rows are nan: only the prior keeps"):
        shown = found.predict()
    assert shown[at].isna().all(axis=None)
    assert shown["estimate"][~at].sum() == pytest.approx(data["y"].sum(), rel=0.02)


@pytest.mark.slow
def test_means_at_a_label_without_events_with_a_second_factor():
    """A long chain of Hamiltonian Monte Carlo, four times 5000 draws, has 0.053 with standard error 0.003."""
    rng = np.random.default_rng(6)
    g, h, k = rng.integers(0, 250, 1500), rng.integers(0, 8, 1500), rng.choice(["a", "c"], 1500, p=[0.98, 0.02])
    eta, at = -1.5 + rng.normal(size=250)[g] + 0.7 * rng.normal(size=8)[h], k == "c"
    data = {"y": np.where(at, 0, rng.poisson(np.exp(eta))), "k": k, "g": g, "h": h}
    shown = fit("y ~ k + (1 | g) + (1 | h)", data, "poisson").predict()["estimate"]
    assert shown[at].sum() == pytest.approx(0.053, rel=0.2)
    assert shown.sum() == pytest.approx(data["y"].sum(), rel=0.01)


def test_draws_move_with_the_standard_deviation_of_groups():
    """Rare events in groups of two: the intercept and that standard deviation are known together. Where draws at the
    most probable nodes stood for the nodes around them, its standard deviation was .349 for .456.
    """
    rng = np.random.default_rng(1032)
    g, k, x = np.repeat(np.arange(300), 2), rng.choice(["a", "b", "c"], 600, p=[0.5, 0.4, 0.1]), rng.normal(size=600)
    y = rng.binomial(1, expit(-2.5 + 2 * rng.normal(size=300)[g] + 0.5 * (k == "b") + 0.4 * x))
    found = fit("y ~ k + x + (1 | g)", {"y": np.where(k == "c", 0, y), "k": k, "g": g, "x": x}, "bernoulli")
    assert found.model.effect_draws is not None
    table, drawn = found.to_frame(), found.draws(8000, rng=0)
    for name in ("Intercept", "k[b]", "x"):
        assert abs(np.log(drawn[name].std() / table.sd[name])) < 0.08
        assert abs(drawn[name].quantile(0.025) - table.low[name]) < 0.2 * table.sd[name]
        assert abs(drawn[name].quantile(0.975) - table.high[name]) < 0.2 * table.sd[name]
