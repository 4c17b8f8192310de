"""Models of normal unknowns and a few unknown precisions, beside dense Gaussian algebra on a fine grid."""

import numpy as np
import pytest
from scipy.stats import gamma, multivariate_normal, norm

from meanmap import ep

FINE = np.linspace(-30.0, 10.0, 401)


def averaged_by_hand(y, covariance, own, prior):
    """Log evidence, E τ, E log τ, and the mean and variance of some number, for y ~ N(0, covariance + I/τ).

    `own` are the covariance of that number with y, and its variance; the prior is a Gamma's shape and rate.
    """
    with_y, alone = own
    taus = np.exp(FINE)
    heights, means, variances = [], [], []
    for tau in taus:
        total = covariance + np.eye(len(y)) / tau
        heights.append(multivariate_normal(np.zeros(len(y)), total).logpdf(y))
        gain = np.linalg.solve(total, with_y)
        means.append(gain @ y)
        variances.append(alone - gain @ with_y)
    heights = np.array(heights) + gamma(prior[0], scale=1 / prior[1]).logpdf(taus) + FINE
    shares = np.exp(heights - heights.max())
    evidence = heights.max() + np.log(shares.sum() * (FINE[1] - FINE[0]))
    shares /= shares.sum()
    mean = shares @ means
    return evidence, shares @ taus, shares @ FINE, mean, shares @ (variances + (means - mean) ** 2)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_three_numbers_of_unknown_mean_and_precision(scale):
    y = np.array([1.0, 2.0, 6.0]) * scale
    mu, tau = ep.Variable("mu", ep.Normal(0.0, 100.0 * scale**2)), ep.Variable("tau", ep.Gamma(0.5, 0.5 * scale**2))
    post = ep.infer(ep.FactorGraph(ep.Gaussian(mu, observed=y, precision=tau)))
    wide = np.full((3, 3), 100.0)
    evidence, mean_tau, log_tau, mean, variance = averaged_by_hand(y / scale, wide, (wide[0], 100.0), (0.5, 0.5))
    assert post.report.status == "converged"
    assert not post.report.notes
    assert post.log_evidence == pytest.approx(evidence - 3 * np.log(scale), abs=1e-6)
    assert post["mu"].mean() == pytest.approx(mean * scale, rel=1e-6)
    assert post["mu"].sd() == pytest.approx(np.sqrt(variance) * scale, rel=1e-6)
    statistics = post["tau"].expected_statistics
    assert statistics[1] == pytest.approx(mean_tau / scale**2, rel=1e-6)
    assert statistics[0] == pytest.approx(log_tau - 2 * np.log(scale), abs=1e-6)


def test_as_many_weights_as_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 10))
    y = X @ rng.normal(size=10) + rng.normal(size=12)
    w, z = ep.Variable("w", ep.MultivariateNormal.standard(10)), ep.Variable("z", ep.Normal, plate=12)
    tau = ep.Variable("tau", ep.Gamma(1.0, 1.0))
    post = ep.infer(ep.FactorGraph(ep.Dot(X, w, z), ep.Gaussian(z, observed=y, precision=tau)))
    evidence, mean_tau, _, mean, variance = averaged_by_hand(y, X @ X.T, (X[:, 0], 1.0), (1.0, 1.0))
    assert post.log_evidence == pytest.approx(evidence, abs=1e-6)
    assert post["tau"].mean() == pytest.approx(mean_tau, rel=1e-6)
    assert post["w"].mean()[0] == pytest.approx(mean, rel=1e-6)
    assert post["w"].cov()[0, 0] == pytest.approx(variance, rel=1e-6)


def groups(y, which, number):
    """Members of groups around a common mean; both precisions are unknown."""
    a, u = ep.Variable("a", ep.Normal(0.0, 10.0)), ep.Variable("u", ep.Normal, plate=number)
    between, within = ep.Variable("between", ep.Gamma(1.0, 1.0)), ep.Variable("within", ep.Gamma(2.0, 1.0))
    eta = ep.Variable("eta", ep.Normal, plate=len(y))
    return ep.FactorGraph(
        ep.Gaussian(0.0, u, precision=between),
        ep.Sum(a, u[which], out=eta),
        ep.Gaussian(eta, observed=y, precision=within),
    )


def test_groups_of_unknown_spread():
    rng = np.random.default_rng(1)
    which = np.arange(24) % 6
    y = 1.0 + rng.normal(size=6)[which] + 0.5 * rng.normal(size=24)
    post = ep.infer(groups(y, which, 6))
    same = (which[:, None] == which).astype(float)
    grid = np.linspace(-9.0, 5.0, 57)
    heights = np.array(
        [
            [
                multivariate_normal(np.zeros(24), 10.0 + same / np.exp(b) + np.eye(24) / np.exp(s)).logpdf(y)
                for s in grid
            ]
            for b in grid
        ]
    )
    heights += (gamma(1.0).logpdf(np.exp(grid)) + grid)[:, None] + gamma(2.0).logpdf(np.exp(grid)) + grid
    shares = np.exp(heights - heights.max())
    assert post.log_evidence == pytest.approx(heights.max() + np.log(shares.sum() * 0.25**2), abs=1e-5)
    shares /= shares.sum()
    assert post["between"].mean() == pytest.approx(shares.sum(1) @ np.exp(grid), rel=1e-5)
    assert post["within"].mean() == pytest.approx(shares.sum(0) @ np.exp(grid), rel=1e-5)


def test_order_and_names_do_not_matter():
    rng = np.random.default_rng(2)
    which = np.arange(20) % 4
    y = rng.normal(size=20)
    one, order = ep.infer(groups(y, which, 4)), rng.permutation(20)
    other = ep.infer(groups(y[order], which[order], 4))
    assert other.log_evidence == pytest.approx(one.log_evidence, abs=1e-9)
    np.testing.assert_allclose(other["u"].mean(), one["u"].mean(), atol=1e-9)


def test_what_is_known_of_a_precision_alone_counts_too():
    mu, tau = ep.Variable("mu", ep.Normal(0.0, 1e-12)), ep.Variable("tau", ep.Gamma(2.0, 3.0))
    post = ep.infer(
        ep.FactorGraph(
            ep.Gaussian(mu, observed=[1.0, -2.0], precision=tau), ep.Gaussian(0.5, observed=[1.5], precision=tau)
        )
    )
    # With a mean that is known to be 0 everything is conjugate: shape 2 + 3/2, rate 3 + (1 + 4 + 1) / 2.
    statistics = ep.Gamma(3.5, 6.0).expected_statistics
    np.testing.assert_allclose(post["tau"].expected_statistics, statistics, rtol=1e-6)
    student = 2 * np.log(3) - 3.5 * np.log(6) - 1.5 * np.log(2 * np.pi)
    assert post.log_evidence == pytest.approx(student + np.log(2.5 * 1.5 * 0.5 * np.sqrt(np.pi)), abs=1e-6)


def test_a_posterior_that_is_no_gamma_is_named():
    rng = np.random.default_rng(0)
    u, between = ep.Variable("u", ep.Normal, plate=2), ep.Variable("between", ep.Gamma(0.05, 1e-4))
    y = rng.normal(size=200)
    model = ep.FactorGraph(ep.Gaussian(0.0, u, precision=between), ep.Sum(u[np.arange(200) % 2], out=y, precision=1.0))
    post = ep.infer(model)
    grid = np.linspace(-20, 15, 2001)
    middle = np.array([y[::2].mean(), y[1::2].mean()])
    heights = norm(0.0, np.sqrt(0.01 + np.exp(-grid[:, None]))).logpdf(middle).sum(1)
    heights += gamma(0.05, scale=1e4).logpdf(np.exp(grid)) + grid
    shares = np.exp(heights - heights.max()) / np.exp(heights - heights.max()).sum()
    sd = np.sqrt(shares @ np.exp(2 * grid) - (shares @ np.exp(grid)) ** 2)
    assert float(post["between"].sd()) < 0.9 * sd
    assert f"the standard deviation of 'between' is {sd:.3g}" in post.report.notes[0]
    assert post.report.status == "converged, but standard deviations may be wrong"


def test_an_unknown_without_prior_or_too_many_precisions_are_left_to_messages():
    taus = ep.Variable("taus", ep.Gamma(np.full(4, 2.0), 1.0))
    mu = ep.Variable("mu", ep.Normal(0.0, 1.0))
    post = ep.infer(ep.FactorGraph(ep.Gaussian(mu, observed=[1.0, 2.0, 3.0, 4.0], precision=taus)))
    assert post.messages
    assert post["taus"].shape == (4,)
