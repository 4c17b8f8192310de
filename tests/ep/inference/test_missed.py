"""The mass of a law is searched for where draws of what comes in miss it; what is missed is not called an answer."""

import numpy as np
import pytest
from scipy.special import expit

from meanmap import ep


def inferred(log_density, d):
    """What is said about standard Normal weights."""
    weights = ep.Variable("weights", ep.MultivariateNormal.standard(d))
    return ep.infer(ep.FactorGraph(ep.Density(log_density, weights, name="fit")), rng=0)


def apart(post, mean, covariance):
    """How far the mean, and the covariance, are from others, in standard deviations and their squares."""
    root = np.linalg.inv(np.linalg.cholesky(covariance))
    off = root @ (np.asarray(post["weights"].mean()) - mean)
    return np.abs(off).max(), np.abs(root @ np.asarray(post["weights"].cov()) @ root.T - np.eye(len(mean))).max()


@pytest.mark.parametrize(("d", "noise"), [(4, 0.5), (4, 0.01), pytest.param(10, 0.5, marks=pytest.mark.slow)])
def test_a_linear_model_as_a_plain_function(d, noise):
    """One point had all the weight."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(80, d))
    seen = rows @ rng.normal(size=d) + rng.normal(0.0, noise, 80)
    calls = []

    def log_density(weights):
        calls.append(1)
        return float(-0.5 * np.sum(((seen - rows @ np.asarray(weights)) / noise) ** 2))

    post = inferred(log_density, d)
    covariance = np.linalg.inv(np.eye(d) + rows.T @ rows / noise**2)
    mean_off, covariance_off = apart(post, covariance @ rows.T @ seen / noise**2, covariance)
    effective = post.effective_sample_size["fit"]
    assert post.report.status == "converged"
    assert effective > 1000
    # Four standard errors of the largest of d means, and of a variance.
    assert mean_off < 4 / np.sqrt(effective)
    assert covariance_off < 4 * np.sqrt(2 / effective)
    assert len(calls) < 30_000
    exact = -0.5 * np.sum(seen**2) / noise**2 + 0.5 * mean_quadratic(rows, seen, noise, covariance)
    assert post.log_evidence == pytest.approx(
        exact + 0.5 * np.linalg.slogdet(covariance)[1], abs=4 / np.sqrt(effective)
    )


def mean_quadratic(rows, seen, noise, covariance):
    """The quadratic form of a linear model's mean, of which the log evidence has a half."""
    pull = rows.T @ seen / noise**2
    return pull @ covariance @ pull


@pytest.mark.parametrize("d", [4, pytest.param(10, marks=pytest.mark.slow)])
def test_a_logistic_model_as_a_plain_function(d):
    """Against half a million draws from a Student law about the mode, which Newton's method finds."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(200, d))
    seen = (rng.random(200) < expit(2 * rows @ rng.normal(size=d))).astype(float)

    def log_density(weights):
        z = rows @ np.asarray(weights)
        return float(np.sum(seen * z - np.logaddexp(0, z)))

    mode = np.zeros(d)
    for _ in range(30):
        share = expit(rows @ mode)
        precision = np.eye(d) + rows.T @ (rows * (share * (1 - share))[:, None])
        mode = mode + np.linalg.solve(precision, rows.T @ (seen - share) - mode)
    t = rng.normal(size=(500_000, d)) * np.sqrt(8 / rng.chisquare(8, 500_000))[:, None]
    draws = mode + t @ np.linalg.inv(np.linalg.cholesky(precision))
    z = draws @ rows.T
    log_weights = (
        z @ seen - np.logaddexp(0, z).sum(1) - (draws**2).sum(1) / 2 + (8 + d) / 2 * np.log1p((t**2).sum(1) / 8)
    )
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    mean = weights @ draws
    covariance = (weights * (draws - mean).T) @ (draws - mean)
    post = inferred(log_density, d)
    effective = 1 / (1 / post.effective_sample_size["fit"] + (weights**2).sum())
    assert post.report.status == "converged"
    assert effective > 1000
    mean_off, covariance_off = apart(post, mean, covariance)
    assert mean_off < 4 / np.sqrt(effective)
    assert covariance_off < 5 * np.sqrt(2 / effective)  # tails are longer than those of a Normal


def test_two_numbers_and_a_vector_in_a_plate_that_only_some_rows_miss():
    """The function is called for more draws in the rows that miss, and there alone."""
    at, calls = np.array([0.3, 0.0, 3.0]), np.zeros(3)

    def log_density(scale, theta, center):
        calls[at == center] += 1
        width = 0.02 if center == 3 else 1.0
        return -0.5 * float(((theta[0] - center) / width) ** 2 + ((theta[1] - scale) / width) ** 2)

    theta = ep.Variable("theta", ep.MultivariateNormal(np.zeros(2), np.eye(2)), plate=3)
    scale = ep.Variable("scale", ep.Normal(np.zeros(3), 1.0))
    post = ep.infer(ep.FactorGraph(ep.Density(log_density, scale, theta, at, name="f")), rng=0)
    assert calls[1] == 10_000  # those of the first row are counted with what fills the plate up
    assert calls[2] > 20_000
    for row, width in enumerate((1.0, 1.0, 0.02)):
        effective = post.effective_sample_size["f"][row]
        assert effective > 1000
        precision = 1 + width**-2
        sd = np.sqrt(1 / precision)
        assert post["theta"].mean()[row, 0] == pytest.approx(
            at[row] * width**-2 / precision, abs=4 * sd / effective**0.5
        )
        # scale and theta[1]: standard Normals that differ by a Normal of this width
        together = (1 + width**2) / (2 + width**2)
        assert post["scale"].var()[row] == pytest.approx(together, rel=4 * np.sqrt(2 / effective))


def test_what_is_missed_for_all_that_is_no_convergence():
    """A sampler with randomness of its own is not searched."""
    z, out = ep.Variable("z", ep.Normal(0.0, 1.0)), ep.Variable("out", ep.Normal)
    noisy = ep.BlackBox(lambda rng, z: z + rng.normal(), z, out, random=True, name="fit")
    report = ep.infer(ep.FactorGraph(noisy, ep.Gaussian(out, precision=1e5, observed=3.0)), rng=0).report
    assert report.status == "converged, but samples missed most of the mass"
    assert any("fit: the points missed most of its mass" in note for note in report.notes)


def test_enough_points_leave_the_status_alone():
    theta = ep.Variable("theta", ep.MultivariateNormal.standard(2))
    log_density = lambda t: -0.5 * float(np.sum((np.asarray(t) - 1.0) ** 2))  # noqa: E731
    assert ep.infer(ep.FactorGraph(ep.Density(log_density, theta)), rng=0).report.status == "converged"
