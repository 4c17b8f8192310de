"""Bins, points in them, and probabilities that held-out rows correct: against laws that are known."""

import numpy as np
import pytest
from scipy.stats import beta, norm

from meanmap.bp.beliefs.histogram import Histogram
from meanmap.bp.beliefs.levels import Levels


@pytest.fixture
def belief():
    """Half spread over (0, 1), a point of .2 at 1, .3 spread over (1, 3); and in a second row another law."""
    weights = np.array([[0.5, 0.2, 0.3], [0.1, 0.8, 0.1]])
    return Histogram.of(np.array([0.0, 0.99, 1.0, 3.0]), weights, np.array([False, True, False]))


def test_quantiles_turn_distribution_functions_round(belief):
    levels = np.array([0.0, 0.25, 0.5, 0.50001, 0.6, 0.7, 0.85, 1.0])
    found = belief.quantile(levels)
    np.testing.assert_allclose(found[0], [0, 0.495, 0.99, 1, 1, 1, 2, 3])
    assert found[0, 3] == found[0, 5] == 1.0  # to the last digit
    for q, x, row in zip(np.tile(levels, 2), found.ravel(), np.repeat([0, 1], len(levels)), strict=True):
        assert belief[row].cdf([x])[0] >= q - 1e-12
        assert belief[row].cdf([x - 1e-9])[0] <= q + 1e-12
    assert belief.quantile(0.6).tolist() == [1.0, 1.0]


def test_points_have_their_probability_where_they_are(belief):
    np.testing.assert_allclose(belief[0].cdf([0.99, 0.999, 1.0, 2.0, 3.0]), [0.5, 0.5, 0.7, 0.85, 1])
    np.testing.assert_allclose(belief[0].mean(), 0.5 * 0.495 + 0.2 + 0.3 * 2)
    drawn = belief.sample(20_000, rng=0)
    shares = (drawn == 1).mean(axis=1)
    np.testing.assert_allclose(shares, [0.2, 0.8], atol=4 * np.sqrt(0.16 / 20_000))
    np.testing.assert_allclose(drawn.mean(axis=1), belief.mean(), atol=0.03)
    np.testing.assert_allclose(drawn.var(axis=1), belief.var(), atol=0.03)


@pytest.mark.parametrize(("a", "b"), [(2.0, 2.0), (0.6, 0.7), (1.5, 0.8)])
def test_corrections_are_found_from_bins(a, b):
    """Values whose places in their beliefs follow a beta law, known as one of twenty bins only."""
    u = np.random.default_rng(0).beta(a, b, 4000)
    low = np.floor(20 * u) / 20
    found = Levels.fit(low, low + 0.05)
    # Standard errors of both logarithms are below .04 with 4000 rows in bins.
    np.testing.assert_allclose(np.log([found.a, found.b]), np.log([a, b]), atol=0.12)
    levels = np.linspace(0, 1, 33)
    np.testing.assert_allclose(found(levels), beta.cdf(levels, found.a, found.b), atol=1e-4)


def test_few_rows_change_little_and_repeated_rows_count_once():
    assert Levels()(np.array([0.3])).tolist() == [0.3]
    u = np.random.default_rng(1).beta(3.0, 3.0, 12)
    few, many = Levels.fit(u - 0.01, u + 0.01), Levels.fit(np.tile(u - 0.01, 50), np.tile(u + 0.01, 50))
    same = Levels.fit(np.tile(u - 0.01, 50), np.tile(u + 0.01, 50), rows=12)
    np.testing.assert_allclose([same.a, same.b], [few.a, few.b], rtol=0.02)
    assert many.a > few.a > 1


def test_intervals_that_were_too_wide_hold_what_they_say():
    """Beliefs N(0, 2²) about values of N(0, 1): .9 of them are in what was .59 of a belief."""
    y = np.random.default_rng(0).normal(size=3000)
    u = norm.cdf(y, scale=2)
    corrected = Levels.fit(u - 1e-6, u + 1e-6)(norm.cdf(np.random.default_rng(1).normal(size=3000), scale=2))
    assert 0.88 < np.mean((corrected > 0.05) & (corrected < 0.95)) < 0.92
