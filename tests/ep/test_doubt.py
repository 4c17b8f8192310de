"""How far apart two beliefs are, held against their divergences, and where rounding is all that they differ by."""

import jax
import numpy as np
import pytest

from meanmap import ep
from meanmap.ep import doubt
from meanmap.families import Beta, Dirichlet, Gamma, MultivariateNormal, Normal
from meanmap.families.reading import run

PAIRS = {
    "Normal": (Normal([0.3, 1.0], [2.0, 4.0]), Normal([0.5, 1.0], [2.5, 4.1])),
    "MultivariateNormal": (
        MultivariateNormal([1.0, 2.0], [[2.0, 0.5], [0.5, 1.0]]),
        MultivariateNormal([1.1, 2.0], [[2.0, 0.4], [0.4, 1.2]]),
    ),
    "Beta": (Beta(2.0, 5.0), Beta(2.5, 4.0)),
    "Gamma": (Gamma(2.0, 5.0), Gamma(2.2, 4.5)),
    "Dirichlet": (Dirichlet([1.0, 2.0, 3.0]), Dirichlet([1.5, 2.0, 2.5])),
}


def between(one, other):
    return np.asarray(run(doubt.between, one, other))


@pytest.mark.parametrize("name", PAIRS)
def test_it_is_the_root_of_both_divergences(name):
    one, other = PAIRS[name]
    wanted = np.sqrt(np.asarray(one.kl(other)) + np.asarray(other.kl(one)))
    np.testing.assert_allclose(between(one, other), wanted, rtol=1e-9)
    np.testing.assert_allclose(between(other, one), wanted, rtol=1e-9)


def test_normals_of_equal_spread_are_as_far_apart_as_their_means():
    np.testing.assert_allclose(between(Normal(0.0, 4.0), Normal([0.0, 3.0], 4.0)), [0.0, 1.5])


def test_rounding_alone_is_no_distance():
    rng = np.random.default_rng(4)
    a, b = rng.uniform(1e3, 1e4, (2, 2000))
    wobble = 1 + 1e-15 * rng.normal(size=a.shape)
    assert np.sqrt(2 * np.abs(Beta(a, b).kl(Beta(a * wobble, b)))).max() > 1e-6  # by one divergence
    assert between(Beta(a, b), Beta(a * wobble, b)).max() < 1e-10


@pytest.mark.slow
def test_many_rows_settle_in_as_few_sweeps_as_few_rows():
    rng = np.random.default_rng(0)
    for n in (300, 20_000):  # of these, some shares have thousands of successes and failures
        x = rng.normal(size=(n, 10))
        y = (x @ np.linspace(2, -1, 10) + rng.logistic(size=n) > 0).astype(int)
        w = ep.Variable("w", ep.MultivariateNormal.standard(10))
        z, p = ep.Variable("z", ep.Normal, plate=n), ep.Variable("p", ep.Beta, plate=n)
        model = ep.FactorGraph(ep.Dot(x, w, z), ep.BlackBox(jax.nn.sigmoid, z, p), ep.Bernoulli(p, observed=y))
        report = ep.infer(model).report
        assert report.converged
        assert report.steps < 25
