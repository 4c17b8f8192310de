"""Families of responses, against SciPy's densities, differences and draws."""

import numpy as np
import pytest

from meanmap.ep.linear.family import Observed
from meanmap.ep.linear.likelihoods import FAMILIES

PARAMETERS = {
    "gaussian": [0.3],
    "t": [0.3, 1.2],
    "negativebinomial": [0.4],
    "gamma": [0.7],
    "cumulative": [0.2, -0.4],
}
EVERY = pytest.mark.parametrize(("name", "link"), list(FAMILIES))


def responses(name, rows, rng):
    eta = rng.normal(size=rows)
    p = np.array(PARAMETERS.get(name, []))
    observed = Observed.of(np.zeros(rows), 7.0 if name == "binomial" else 1.0)
    return eta, p, observed


def by_scipy(name, link, y, trials, eta, p):
    from scipy import stats

    share = stats.norm.cdf(eta) if link == "probit" else 1 / (1 + np.exp(-eta))
    cuts = np.concatenate([[0], np.cumsum(np.exp(p))])
    cuts = np.concatenate([[-np.inf], cuts - cuts.mean(), [np.inf]])
    return {
        "gaussian": lambda: stats.norm.logpdf(y, eta, np.exp(p[0])),
        "t": lambda: stats.t.logpdf(y, np.exp(p[1]), eta, np.exp(p[0])),
        "bernoulli": lambda: stats.bernoulli.logpmf(y, share),
        "binomial": lambda: stats.binom.logpmf(y, trials, share),
        "poisson": lambda: stats.poisson.logpmf(y, np.exp(eta)),
        "negativebinomial": lambda: stats.nbinom.logpmf(y, np.exp(p[0]), 1 / (1 + np.exp(eta - p[0]))),
        "gamma": lambda: stats.gamma.logpdf(y, np.exp(p[0]), scale=np.exp(eta - p[0])),
        "cumulative": lambda: np.log(
            stats.logistic.cdf(cuts[y.astype(int) + 1] - eta) - stats.logistic.cdf(cuts[y.astype(int)] - eta)
        ),
    }[name]()


@EVERY
def test_density_slopes_and_draws(name, link):
    rng = np.random.default_rng(3)
    family = FAMILIES[name, link]
    eta, p, observed = responses(name, 4000, rng)
    y = family.draw(observed, eta, p, rng)
    seen = Observed.of(y, observed.trials)
    density = family.log_density(seen, eta, p)
    np.testing.assert_allclose(density, by_scipy(name, link, y, observed.trials, eta, p), atol=1e-9)
    # A mean of draws, less what is expected, is within five standard errors of 0.
    off = y - family.mean(seen, eta, p)
    assert abs(off.mean()) < 5 * off.std() / np.sqrt(len(off))
    slopes = family.slopes(seen, eta, p)
    assert len(slopes) == len(p)
    for at, slope in enumerate(slopes):
        step = 1e-5 * np.eye(len(p))[at]
        moved = family.log_density(seen, eta, p + step) - family.log_density(seen, eta, p - step)
        np.testing.assert_allclose(slope, moved / 2e-5, atol=1e-6)


@EVERY
def test_weights_and_offsets(name, link):
    rng = np.random.default_rng(4)
    family = FAMILIES[name, link]
    eta, p, observed = responses(name, 30, rng)
    y, weights, offset = family.draw(observed, eta, p, rng), rng.gamma(1.0, size=30), rng.normal(size=30)
    seen = Observed.of(y, observed.trials, offset, weights)
    plain = family.log_density(Observed.of(y, observed.trials), eta + offset, p)
    np.testing.assert_allclose(family.weighted(seen, eta, p), weights * plain)
    by_row = np.stack(family.weighted_slopes(seen, eta, p)) if len(p) else np.zeros((0, 30))
    by_node = family.weighted_slopes(seen.columns(), np.stack([eta, eta + 1], axis=1), p)
    for one, both in zip(by_row, by_node, strict=True):
        np.testing.assert_allclose(both[:, 0], one)
    precision, shift = family.first_sites(seen, p)
    assert (precision > 0).all()
    assert np.isfinite(shift).all()


@EVERY
def test_derivatives_by_the_predictor(name, link):
    rng = np.random.default_rng(5)
    family = FAMILIES[name, link]
    eta, p, observed = responses(name, 200, rng)
    y = family.draw(observed, eta, p, rng)
    seen, h = Observed.of(y, observed.trials, 0.3, rng.integers(1, 4, 200)), 1e-4
    here, slope, bend = family.weighted_bends(seen, eta, p, np.full(200, 1e-3))
    low, middle, high = (family.weighted(seen, eta + k * h, p) for k in (-1, 0, 1))
    np.testing.assert_allclose(here, middle, rtol=1e-12)
    np.testing.assert_allclose(slope, (high - low) / (2 * h), atol=1e-5 * np.abs(slope).max())
    np.testing.assert_allclose(bend, (high - 2 * middle + low) / h**2, atol=1e-3 * np.abs(bend).max() + 1e-5)
