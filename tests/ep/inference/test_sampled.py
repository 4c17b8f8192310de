"""Errors of sampling are in the report, in print, and where they are large in the status; and they are as stated."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2

from meanmap import ep

WEIGHTS = np.array([1.0, -2.0, 0.5, 3.0])


def vector(points, rng=0):
    """Four weights and one reading of their sum, 4 ± .5."""
    w = ep.Variable("w", ep.MultivariateNormal.standard(4))
    reading = ep.Density(lambda w: -(((w @ WEIGHTS - 4.0) / 0.5) ** 2) / 2, w, name="reading")
    return ep.infer(ep.FactorGraph(reading), ep.ImportanceSampling(points), rng=rng)


def test_errors_of_a_vector_are_in_the_report_and_in_print():
    """The report said "last residual 7e-15" beside means that were off by .05 standard deviations."""
    post = vector(20_000)
    size, error = post.effective_sample_size["reading"], post.standard_errors["w"]
    assert error.shape == (4,)
    measures = post.report.measures
    assert measures["reading: effective sample size"] == pytest.approx(size)
    share = (error / post["w"].sd()).max()
    assert measures["w: standard error of its mean by sampling, in standard deviations"] == pytest.approx(share)
    assert measures["log evidence: standard error by sampling"] == pytest.approx(size**-0.5)
    printed = str(post)
    assert "standard error of its mean by sampling, in standard deviations: 0.0" in printed
    assert "standard error of the mean by sampling [0." in printed


def test_large_errors_are_in_the_status():
    few, many = vector(1000), vector(100_000)
    assert few.report.status == "converged, but errors of sampling are large"
    assert few.report.converged
    assert any(
        "'w' by 0." in note and "Four times the points, messages=ep.ImportanceSampling(4_000)," in note
        for note in few.report.notes
    )
    assert many.report.status == "converged"
    assert not any("Four times" in note for note in many.report.notes)


def test_rules_have_no_errors_of_sampling():
    z = ep.Variable("z", ep.Normal(0.0, 1.0))
    post = ep.infer(ep.FactorGraph(ep.Logistic(z, observed=1)))
    assert post.standard_errors == {}
    assert not post.report.measures
    assert "by sampling" not in str(post)


def ratio_of_squares(stated, off):
    """The mean of squared errors, in squares of stated ones, with the ends of 99.99% of its distribution."""
    n = off.size
    return ((off / stated) ** 2).mean(), *chi2.ppf([5e-5, 1 - 5e-5], n) / n


@pytest.mark.slow
def test_stated_errors_of_a_vector_hold():
    posts = [vector(4000, seed) for seed in range(24)]
    precision = np.eye(4) + np.outer(WEIGHTS, WEIGHTS) / 0.25
    exact = np.linalg.solve(precision, WEIGHTS * 4.0 / 0.25)
    root = np.linalg.cholesky(precision)  # whitens: entries of one mean are correlated
    off = np.stack([root.T @ (post["w"].mean() - exact) for post in posts])
    along = np.array([post["w"].mean() @ np.ones(4) - exact.sum() for post in posts])
    assert np.isfinite(off).all()
    stated = np.stack([post.standard_errors["w"] for post in posts])
    squares = np.stack([((post["w"].mean() - exact) ** 2) for post in posts]).mean(0) / (stated**2).mean(0)
    low, high = chi2.ppf([1e-5, 1 - 1e-5], 24 - 1) / (24 - 1)
    assert (squares > 0.7 * low).all()  # leaving out one of 16 groups knows an error to a fifth or so
    assert (squares < 1.4 * high).all()
    assert abs(along.mean()) < 5 * along.std() / 24**0.5


@pytest.mark.slow
@pytest.mark.parametrize("oracle", [ep.ImportanceSampling(2000), ep.Stratified(200)])
def test_stated_errors_of_what_rows_share_hold(oracle):
    """Members draw independently: the squares of their errors add up."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=12)
    y = 0.7 * x + rng.normal(0.0, 0.5, 12)
    slope, level = ep.Variable("slope", ep.Normal(0.0, 1.0)), ep.Variable("level", ep.Normal(0.0, 0.1))
    far = ep.Density(lambda a, b, x, y: -2 * jnp.log1p((y - a * x - b) ** 2), slope, level, x, y, name="far")
    model = ep.FactorGraph(far)
    exact = ep.infer(model)
    assert exact.report.converged
    z = []
    for seed in range(30):
        post = ep.infer(model, oracle, rng=seed)
        z.append((post["slope"].mean() - exact["slope"].mean()) / post.standard_errors["slope"])
    square, low, high = ratio_of_squares(1.0, np.array(z))
    assert low * 0.5 < square < high * 2  # errors move other messages, which is not part of what is stated
