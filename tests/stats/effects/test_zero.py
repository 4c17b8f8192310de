"""Zero is in intervals as often as promised where rows that would show the variation are missing."""

import numpy as np
import pytest
import scipy.stats

import meanmap as mm

FAILURE_RATE, TAIL = 1e-5, 0.025


def excluded(repeats, draw, name):
    """How many lower ends lie above zero, and how many there may be."""
    found = [getattr(draw(np.random.default_rng([5, i])), name) for i in range(repeats)]
    return sum(each.low > 0 for each in found), scipy.stats.binom.isf(FAILURE_RATE, repeats, TAIL)


def rare_label_and_many_zeros(rng):
    label = np.where(rng.permutation(80) < 5, "p", "q")
    return mm.independence_effect(label, (rng.uniform(size=80) < 0.2) * rng.exponential(size=80), rng=0)


def rare_on_both_sides(rng):
    return mm.independence_effect(rng.permutation(200) < 12, rng.permutation(200) < 12, rng=0)


def rare_ones(rng):
    x, y = (rng.uniform(size=50) < 0.03) * 1.0, (rng.uniform(size=300) < 0.03) * 1.0
    return mm.two_sample_effect(x, y, rng=0)


def steps_behind_z(rng):
    z = rng.uniform(-3, 3, 120)
    x, y = np.floor(z) + 0.3 * rng.normal(size=(2, 120))
    return mm.conditional_independence_effect(x, y, z, rng=0)


@pytest.mark.parametrize(
    ("draw", "name"),
    [
        (rare_label_and_many_zeros, "correlation"),
        (rare_on_both_sides, "distance"),
        (rare_ones, "distance"),
        (steps_behind_z, "correlation"),
    ],
)
def test_zero_is_excluded_as_seldom_as_promised(draw, name):
    found, most = excluded(20, draw, name)
    assert found <= most, (found, most)


def test_what_regressions_miss_is_told_as_by_the_test():
    told = steps_behind_z(np.random.default_rng([5, 0])).warnings
    assert any("functions of z" in text for text in told), told


def test_strong_effects_are_still_seen():
    rng = np.random.default_rng(6)
    x, e = rng.normal(size=(2, 100))
    assert mm.independence_effect(x, x + 0.5 * e, level=0.99, rng=0).correlation.low > 0.2
    assert mm.two_sample_effect(x, e + 1.0, level=0.99, rng=0).shift.low > 0.2


def test_the_same_rows_twice_are_at_no_distance():
    x = np.random.default_rng(7).normal(size=60)
    effect = mm.two_sample_effect(x, x, rng=0)
    for each in (effect.distance, effect.shift):
        assert each.estimate == each.low == 0.0
        assert 0.01 < each.high < 1.0
