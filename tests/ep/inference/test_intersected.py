"""Sharp intervals of one number are one: what they have in common, which is exact."""

import numpy as np
import pytest
from scipy.stats import norm, truncnorm

from meanmap import ep
from meanmap.ep.factors.interval import intersected


def exactly(low, high):
    """Mean, sd and log probability of a standard normal number between two ends."""
    law = truncnorm(low, high)
    log = np.log(norm.cdf(high) - norm.cdf(low)) if low < 0 else np.log(norm.sf(low) - norm.sf(high))
    return law.mean(), law.std(), log


def agree(found, low, high):
    belief = found["z"]
    at = (belief.mean(), belief.sd(), found.log_evidence)
    np.testing.assert_allclose(np.array(at, float), exactly(low, high), rtol=1e-5, atol=1e-8)
    assert found.report.status == "converged"


@pytest.mark.parametrize("seed", range(8))
def test_rows_of_one_number_are_exact(seed):
    rng = np.random.default_rng([61, seed])
    rows, value = int(rng.integers(1, 12)), rng.normal()
    lows, highs = value - rng.exponential(size=rows), value + rng.exponential(size=rows)
    lows[rng.random(rows) < 0.3], highs[rng.random(rows) < 0.3] = -np.inf, np.inf
    z = ep.Variable("z", ep.Normal(0.0, 1.0))
    agree(ep.infer(ep.FactorGraph(ep.Interval(z, lows, highs, noise=0.0))), lows.max(), highs.min())


def test_factors_of_one_number_are_exact_in_any_order():
    z = ep.Variable("z", ep.Normal(0.0, 1.0))
    factors = [ep.Interval(z, -1.0, 0.8, noise=0.0), ep.Interval(z, [0.2, 0.5], [np.inf, 5.0], noise=0.0, name="two")]
    for each in (factors, factors[::-1]):
        agree(ep.infer(ep.FactorGraph(*each)), 0.5, 0.8)


def test_members_of_a_plate_are_intersected_apart():
    z = ep.Variable("z", ep.Normal(np.zeros(3), 1.0))
    lows, highs = np.array([-1.0, 0.0, -2.0]), np.array([1.0, 2.0, -0.5])
    factors = ep.Interval(z, lows, highs, noise=0.0), ep.Interval(z, -0.7, 0.9, noise=0.0, name="all")
    found = ep.infer(ep.FactorGraph(*factors))
    each = [exactly(max(low, -0.7), min(high, 0.9)) for low, high in zip(lows, highs, strict=True)]
    mean, sd, log = np.array(each).T
    np.testing.assert_allclose(found["z"].mean(), mean, rtol=1e-5)
    np.testing.assert_allclose(found["z"].sd(), sd, rtol=1e-5)
    assert found.log_evidence == pytest.approx(log.sum(), rel=1e-6)


def test_the_same_interval_said_often_is_said_once():
    z = ep.Variable("z", ep.Normal(0.0, 1.0))
    agree(ep.infer(ep.FactorGraph(ep.Interval(z, np.zeros(20), np.ones(20), noise=0.0))), 0.0, 1.0)


def test_models_with_one_interval_a_number_stay_as_they_are():
    z = ep.Variable("z", ep.Normal(np.zeros(3), 1.0))
    factors = (ep.Interval(z, -1.0, np.array([0.5, 1.0, np.inf]), noise=0.0), ep.Interval(z, -2.0, 2.0, noise=0.5))
    assert all(one is other for one, other in zip(intersected(factors), factors, strict=True))


def test_intervals_that_exclude_one_another_are_impossible_in_words():
    z = ep.Variable("z", ep.Normal(0.0, 1.0))
    found = ep.infer(ep.FactorGraph(ep.Interval(z, [0.0, 2.0], [1.0, 3.0], noise=0.0)))
    assert found.log_evidence == -np.inf
    assert found.report.status != "converged"
