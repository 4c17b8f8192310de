"""Ready models where outcomes say far more than priors: judged by least squares and by sums over a grid."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.stats

from meanmap import ep


def test_counts_in_the_tens_of_thousands():
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    y = rng.poisson(3e4 * np.exp(0.1 * x))
    fit = ep.models.poisson_regression({"x": x}, y)
    rows, w = np.column_stack([np.ones(40), x]), np.array([np.log(y.mean()), 0.0])
    for _ in range(20):
        mean = np.exp(rows @ w)
        information = (rows.T * mean) @ rows
        w += np.linalg.solve(information, rows.T @ (y - mean))
    sd = np.sqrt(np.diag(np.linalg.inv(information)))
    assert fit.report.converged
    np.testing.assert_allclose(np.sqrt(np.diag(fit.covariance)), sd, rtol=1e-3)
    assert (np.abs(fit.mean - w) < 0.02 * sd).all()


def test_a_program_with_hardly_any_noise():
    t, noise = np.linspace(0, 3, 20), 1e-3
    fit = ep.models.simulator(
        lambda rate, t: jnp.exp(-rate * t), {"rate": ep.Gamma(2.0, 2.0)}, t, observed=np.exp(-1.5 * t), noise_sd=noise
    )
    sd = noise / np.sqrt(((t * np.exp(-1.5 * t)) ** 2).sum())
    assert fit["rate"].sd() == pytest.approx(sd, rel=0.01)
    assert abs(fit["rate"].mean() - 1.5) < 0.02 * sd
    assert not fit.report.notes


def test_a_line_with_a_thousandth_of_noise():
    rng = np.random.default_rng(1)
    x = rng.normal(size=30)
    y = 3 * x + 0.005 * rng.standard_t(4, size=30)
    fit = ep.models.robust_regression(x, y, intercept=False, standardise=False)
    unit = 1.4826 * np.median(np.abs(y))
    logs, w = np.linspace(np.log(1e-3), np.log(2e-2), 120), 3 + np.linspace(-0.012, 0.012, 241)
    log_joint = np.array([scipy.stats.t.logpdf(y[:, None] - x[:, None] * w, 4, scale=np.exp(s)).sum(0) for s in logs])
    log_joint += scipy.stats.norm.logpdf(w, 0, 2.5 * unit)
    law = np.exp(log_joint - log_joint.max())
    evidence = np.log(law.sum() * (w[1] - w[0]) * (logs[1] - logs[0]) / np.log(1e4)) + log_joint.max()
    law /= law.sum()
    mean = (law @ w).sum()
    sd = np.sqrt((law @ (w - mean) ** 2).sum())
    assert abs(fit.mean[0] - mean) < 0.1 * sd
    assert np.sqrt(fit.covariance[0, 0]) == pytest.approx(sd, rel=0.1)
    assert fit.log_evidence == pytest.approx(evidence, abs=0.2)


def test_half_of_the_outcomes_are_zero():
    """Most distances from the median are then nearly zero, and a prior in their units held the noise below a tenth."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=200), np.r_[np.zeros(100), 100 * rng.exponential(size=100)]
    fit = ep.models.robust_regression({"x": x}, y)

    def loss(theta):
        return -scipy.stats.t.logpdf(y, 4, theta[0] + theta[1] * x, np.exp(theta[2])).sum()

    best = scipy.optimize.minimize(loss, [20.0, 0.0, 3.5], method="Nelder-Mead", options={"maxiter": 2000}).x
    assert fit.scale == pytest.approx(np.exp(best[2]), rel=0.1)
    np.testing.assert_allclose(fit.mean, best[:2], atol=0.5 * np.sqrt(np.diag(fit.covariance)).max())
