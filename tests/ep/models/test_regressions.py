"""Regressions against plain sums over a grid of their one or two parameters, and what they print, draw and predict."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.special
import scipy.stats

from meanmap import ep
from meanmap.core import ColumnError, ParameterError, ShapeError

W = np.linspace(-12, 12, 24_001)
STEP = W[1] - W[0]
RNG = np.random.default_rng(0)
X = RNG.normal(size=60)
LATENT = 1.2 * X
BITS = (RNG.uniform(size=60) < scipy.special.expit(LATENT)).astype(int)
COUNTS = RNG.poisson(np.exp(LATENT / 2))
GRADES = np.digitize(LATENT + RNG.normal(size=60), [-0.7, 0.9])
NUMBERS = LATENT + 0.3 * RNG.standard_t(4, size=60)


def check(fit, log_likelihood, sd=2.5, mean=0.05, spread=0.05, evidence=0.05):
    """One coefficient without intercept and scaling: mean in standard deviations, spread, evidence; the exact law."""
    log_joint = log_likelihood + scipy.stats.norm.logpdf(W, 0, sd)
    law = np.exp(log_joint - log_joint.max())
    total = law.sum() * STEP
    law /= law.sum()
    exact = law @ W
    exact_sd = np.sqrt(law @ (W - exact) ** 2)
    assert fit.report.converged
    assert abs(fit.mean[0] - exact) < mean * exact_sd
    assert abs(np.sqrt(fit.covariance[0, 0]) / exact_sd - 1) < spread
    assert abs(fit.posterior.log_evidence - np.log(total) - log_joint.max()) < evidence
    return law


PLAIN = {"standardise": False, "intercept": False}
NEW = np.array([-1.5, 0.3, 2.0])


@pytest.mark.parametrize("link", ["logistic", "probit"])
def test_two_labels_against_a_sum(link):
    fit = getattr(ep.models, f"{link}_regression")(X, BITS, **PLAIN)
    function = {"logistic": scipy.special.log_expit, "probit": scipy.special.log_ndtr}[link]
    law = check(fit, function((2 * BITS - 1)[:, None] * X[:, None] * W).sum(0))
    exact = np.exp(function(NEW[:, None] * W)) @ law
    np.testing.assert_allclose(fit.predict_proba(NEW), np.column_stack([1 - exact, exact]), atol=2e-3)
    assert fit.predict(NEW).tolist() == [0, 1, 1]
    low, high = fit.probability_interval(NEW, 0.9)
    inside = [
        law[(np.exp(function(x * W)) > a) & (np.exp(function(x * W)) < b)].sum()
        for x, a, b in zip(NEW, low, high, strict=True)
    ]
    np.testing.assert_allclose(inside, 0.9, atol=0.02)


@pytest.mark.slow
def test_counts_against_a_sum():
    exposure = np.linspace(0.5, 2, 60)
    fit = ep.models.poisson_regression(X, COUNTS, exposure=exposure, **PLAIN)
    rates = exposure[:, None] * np.exp(X[:, None] * W)
    law = check(fit, scipy.stats.poisson.logpmf(COUNTS[:, None], rates).sum(0))
    np.testing.assert_allclose(fit.predict(NEW, 3.0), (3 * np.exp(NEW[:, None] * W)) @ law, rtol=0.02)
    low, high = fit.predict_interval(NEW, 3.0, confidence=0.8)
    for x, a, b in zip(NEW, low, high, strict=True):
        below = scipy.stats.poisson.cdf(np.array([a - 1, a, b - 1, b])[:, None], 3 * np.exp(x * W)) @ law
        assert below[0] < 0.11
        assert below[1] > 0.09
        assert below[2] < 0.91
        assert below[3] > 0.89


@pytest.mark.slow
def test_ordered_labels_against_a_sum_at_cutpoints_of_the_largest_evidence():
    fit = ep.models.ordinal_regression(X, GRADES, standardise=False)

    def log_likelihood(cuts):
        ends = np.concatenate([[-np.inf], cuts, [np.inf]])
        a, b = (end[:, None] - X[:, None] * W for end in (ends[GRADES], ends[GRADES + 1]))
        return np.log(np.maximum(scipy.special.ndtr(b) - scipy.special.ndtr(a), 1e-300)).sum(0)

    law = check(fit, log_likelihood(fit.cutpoints))
    ends = np.concatenate([[-np.inf], fit.cutpoints, [np.inf]])
    below = scipy.special.ndtr(ends[:, None, None] - NEW[:, None] * W) @ law
    np.testing.assert_allclose(fit.predict_proba(NEW), np.diff(below, axis=0).T, atol=3e-3)
    assert fit.predict(NEW).tolist() == [0, 1, 2]

    def evidence(cuts):
        return np.log(np.exp(log_likelihood(cuts) + scipy.stats.norm.logpdf(W, 0, 2.5)).sum())

    best = evidence(fit.cutpoints)
    for step in ([0.1, 0], [-0.1, 0], [0, 0.1], [0, -0.1]):
        assert evidence(fit.cutpoints + step) < best
    # Standardised, the column is centred: another prior, and cutpoints and coefficients in the units of the data.
    moved = ep.models.ordinal_regression({"x": 100 + 7 * X}, np.array(["low", "mid", "top"])[GRADES],
                                         levels=["low", "mid", "top"], prior_sd=2.5 * X.std())  # fmt: skip
    assert 7 * moved.mean[0] == pytest.approx(fit.mean[0], abs=0.01)
    np.testing.assert_allclose(moved.cutpoints + X.mean() * fit.mean, fit.cutpoints, atol=0.03)
    np.testing.assert_allclose(moved.predict_proba({"x": 100 + 7 * NEW}), fit.predict_proba(NEW), atol=0.02)
    assert moved.predict({"x": [85.0, 115.0]}).tolist() == ["low", "top"]


@pytest.mark.slow
def test_outliers_against_a_sum_over_slope_and_scale():
    y = NUMBERS.copy()
    y[:6] += 8
    fit = ep.models.robust_regression(X, y, **PLAIN)
    unit = 1.4826 * np.median(np.abs(y))
    logs = np.linspace(np.log(0.05 * unit), np.log(2 * unit), 200)
    w = np.linspace(-1, 3, 801)
    log_joint = np.array(
        [scipy.stats.t.logpdf(y[:, None] - X[:, None] * w, 4, scale=np.exp(s)).sum(0) for s in logs]
    ) + scipy.stats.norm.logpdf(w, 0, 2.5 * unit)
    law = np.exp(log_joint - log_joint.max())
    cell = (w[1] - w[0]) * (logs[1] - logs[0])
    evidence = np.log(law.sum() * cell / np.log(1e4)) + log_joint.max()
    law /= law.sum()
    mean = (law @ w).sum()
    sd = np.sqrt((law @ (w - mean) ** 2).sum())
    assert abs(fit.mean[0] - mean) < 0.1 * sd
    assert abs(np.sqrt(fit.covariance[0, 0]) / sd - 1) < 0.1
    assert fit.scale == pytest.approx(law.sum(1) @ np.exp(logs), rel=0.03)
    assert fit.log_evidence == pytest.approx(evidence, abs=0.2)
    assert set(np.flatnonzero(fit.outlying > 8)) >= set(range(6))
    low, high = fit.predict_interval([1.0], 0.9)
    below = [(law * scipy.stats.t.cdf((end - w)[None] / np.exp(logs)[:, None], 4)).sum() for end in (low[0], high[0])]
    np.testing.assert_allclose(below, [0.05, 0.95], atol=0.01)


def test_units_names_and_columns_are_those_of_the_data():
    frame = pd.DataFrame({"dose": X, "age": 50 + 10 * RNG.normal(size=60)})
    fit = ep.models.logistic_regression(frame, np.array(["no", "yes"])[BITS])
    assert fit.names == ("intercept", "dose", "age")
    assert fit.title == "logistic regression, P(yes)"
    # The same prior laid on the raw columns by hand: the intercept of centred columns is another parameter, and wide.
    raw = ep.models.logistic_regression(
        frame - frame.mean(), BITS, standardise=False, prior_sd=2.5 / frame.std(ddof=0).to_numpy()
    )
    np.testing.assert_allclose(fit.mean[1:], raw.mean[1:], rtol=1e-6)
    np.testing.assert_allclose(fit.covariance[1:, 1:], raw.covariance[1:, 1:], rtol=1e-5, atol=1e-9)
    assert fit.mean[0] == pytest.approx(raw.mean[0] - frame.mean().to_numpy() @ raw.mean[1:], rel=1e-6)
    assert fit.log_evidence == pytest.approx(raw.log_evidence, abs=1e-6)
    np.testing.assert_array_equal(fit.predict_proba(frame[["age", "dose"]]), fit.predict_proba(frame))
    np.testing.assert_allclose(fit.linear_predictor(frame).mean(), fit.coefficients.mean() @ np.vstack(
        [np.ones(60), frame.to_numpy().T]))  # fmt: skip
    law = fit.linear_predictor(frame[:1])
    row = np.array([1, *frame.to_numpy()[0]])
    assert law.var()[0] == pytest.approx(row @ fit.covariance @ row)
    with pytest.raises(ColumnError, match="no column 'age'"):
        fit.predict_proba({"dose": [1.0]})
    with pytest.raises(ColumnError, match=r"X is an array, .* expected a table with the columns 'dose', 'age'"):
        fit.predict_proba(frame.to_numpy())
    with pytest.raises(ShapeError, match="X has 3 columns; expected 2"):
        ep.models.logistic_regression(frame.to_numpy(), BITS).predict_proba(np.zeros((2, 3)))
    with pytest.raises(ParameterError, match="confidence is 95"):
        fit.summary(95)
    with pytest.raises(ParameterError, match=r"confidence is 1\.0"):
        fit.probability_interval(frame, confidence=1.0)


def test_tables_print_draw_and_travel():
    fit = ep.models.logistic_regression(pd.DataFrame({"dose": X, "a<b": X**2}), BITS)
    table = fit.summary(0.9)
    assert str(table).splitlines()[0].split() == ["mean", "sd", "5%", "95%", "z", "P(>0)"]
    inside = scipy.stats.norm.cdf((np.array([table.low, table.high]) - table.mean) / table.sd)
    np.testing.assert_allclose(inside, [[0.05] * 3, [0.95] * 3])
    np.testing.assert_allclose(table.positive, scipy.stats.norm.cdf(table.z))
    assert len(str(fit).splitlines()) == 8
    assert "a&lt;b" in fit._repr_html_()
    assert json.loads(json.dumps(fit.to_dict()))["coefficients"]["dose"]["mean"] == pytest.approx(fit.mean[1])
    assert [label.get_text() for label in fit.plot().get_yticklabels()] == ["dose", "a<b"]
    drawn = fit.plot().lines[1].get_xdata()
    np.testing.assert_allclose(drawn, fit.mean[1:] * [X.std(), (X**2).std()])


def test_separated_labels_have_finite_coefficients_and_a_note():
    fit = ep.models.logistic_regression(np.column_stack([X, X**2]), X > 0)
    assert fit.report.converged
    assert "a linear rule in 'x0' separates the labels" in str(fit)
    assert "prior_sd=1" in str(fit)
    assert np.isfinite(fit.mean).all()
    assert "separates" not in str(ep.models.logistic_regression(np.column_stack([X, X**2]), BITS))


def test_separation_is_noted_where_the_mean_does_not_separate():
    x = np.r_[np.full(30, -3.0), 1.0, 1.1]
    fit = ep.models.logistic_regression(x[:, None], x > 1.05, prior_sd=0.5)
    assert (fit.predict(x[:, None]) != (x > 1.05)).any()
    assert "a linear rule in 'x0' separates the labels: only the prior" in str(fit)


@pytest.mark.parametrize(("link", "seed"), [("logistic", 0), ("logistic", 1), ("probit", 1)])
def test_separated_labels_under_a_wide_prior_are_doubted_by_name(link, seed):
    """Under a prior of 100 the slope has .6 to .8 of its exact standard deviation; its status was "converged"."""
    x = np.random.default_rng(seed).normal(size=50)
    x = (x - x.mean()) / x.std()
    y = (x > 0.1).astype(int)
    fit = getattr(ep.models, f"{link}_regression")(x[:, None], y, prior_sd=100.0)
    slope, constant = np.linspace(-50, 400, 3000), np.linspace(-50, 50, 500)[:, None]
    log_p = {"logistic": scipy.special.log_expit, "probit": scipy.special.log_ndtr}[link]
    height = -((slope / 100) ** 2) / 2 - (constant / 10) ** 2 / 2
    for value, label in zip(x, y, strict=True):
        height = height + log_p((2 * label - 1) * (constant + slope * value))
    share = np.exp(height - height.max()).sum(0)
    share /= share.sum()
    exact = np.sqrt(share @ (slope - share @ slope) ** 2)
    at = int(np.argmax(fit.mean))
    assert np.sqrt(fit.covariance[at, at]) < 0.85 * exact
    assert fit.report.status == "converged, but standard deviations may be wrong"
    note = next(each for each in fit.report.notes if "weighted draws" in each)
    assert "times as large for" in note
    assert "may be wrong" in str(fit)
    weak = getattr(ep.models, f"{link}_regression")(x[:, None], y)
    assert weak.report.status == "converged"
