"""Zero is in intervals as often as promised where rows that would show the variation are missing."""

import numpy as np
import pytest
import scipy.stats

import meanmap as mm
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.effects.zero import chance_of_dependence, chance_of_difference, draws_for
from meanmap.stats.independence.shifts import Shifts
from meanmap.stats.samples.cells import Cells

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
    assert any("unctions of z" in text for text in told), told


def test_strong_effects_are_still_seen():
    rng = np.random.default_rng(6)
    x, e = rng.normal(size=(2, 100))
    assert mm.independence_effect(x, x + 0.5 * e, confidence=0.99, rng=0).correlation.low > 0.2
    assert mm.two_sample_effect(x, e + 1.0, confidence=0.99, rng=0).shift.low > 0.2


def rare_in_designs(i):
    """Ones that are rare on both sides, with strata, clusters of three rows, and weights."""
    rng = np.random.default_rng([29, i])
    x, y = (rng.uniform(size=60) < 0.03) * 1.0, (rng.uniform(size=300) < 0.03) * 1.0
    yield x, y, {"weights": rng.exponential(size=360) + 0.5}
    yield x, y, {"within": rng.integers(0, 3, 360)}
    x, y = (np.repeat((rng.uniform(size=n) < 0.05) * 1.0, 3) for n in (20, 100))
    x[0] = 1.0  # nor is all the same
    yield x, y, {"clusters": np.repeat(np.arange(120), 3)}


@pytest.mark.slow
def test_designs_exclude_zero_as_seldom_as_promised():
    found = [
        mm.two_sample_effect(x, y, rng=0, **said).distance.low > 0
        for i in range(30)
        for x, y, said in rare_in_designs(i)
    ]
    assert sum(found) <= scipy.stats.binom.isf(FAILURE_RATE, len(found), TAIL)  # 10; was 12


def test_the_test_of_zero_in_a_design_by_hand():
    """Samples are put one after another as each exchange says, and their distance is computed anew."""
    rng = np.random.default_rng(30)
    values, sizes = rng.normal(size=(24, 2)), (12, 12)
    gram, groups = values @ values.T, np.repeat([0, 1], sizes)
    units = np.repeat(np.arange(8), 3)
    strata = np.isin(units, [0, 1, 4, 5]).astype(int)
    design = Exchange(strata, units, rng.random(24) + 0.5)
    drawn = design.labels(design.of_units(groups), draws_for(0.9), np.random.default_rng(0))
    squared = []
    for labels in drawn:
        order = np.argsort(labels[units], kind="stable")
        again = Exchange(strata[order], units[order], design.weights[order])
        size = int((labels[units] == 0).sum())
        squared.append(Cells.of((size, 24 - size), again).law_of_gram(gram[np.ix_(order, order)]).squared)
    expected = np.mean(np.array(squared) >= squared[0] * (1 - 1e-9))
    by_gram = chance_of_difference(lambda w: float(np.sum(w * (gram @ w))), sizes, design, 0.9)
    assert by_gram == pytest.approx(expected)


@pytest.mark.parametrize("n", [24, 300])  # several orders of few rows; some of the shifts of one order of many
def test_the_test_of_zero_of_dependence_by_hand(n):
    """Rows of y are brought into each order that is drawn, and HSIC is computed anew."""
    x, y = np.random.default_rng([32, n]).normal(size=(2, n, 1))
    k, m = (np.exp(-((side - side.T) ** 2)) for side in (x, y + x / np.sqrt(n)))
    shifts, centring = Shifts.draw(n, draws_for(0.95), np.random.default_rng(33)), np.eye(n) - 1 / n
    values = []
    for order, chosen in zip(shifts.orders, shifts.chosen, strict=True):
        for shift in chosen:
            at = shifts.base[np.roll(order, -shift)]
            values.append(np.sum((centring @ k @ centring)[np.ix_(shifts.base, shifts.base)] * m[np.ix_(at, at)]))
    assert len(values) == draws_for(0.95) + 1
    expected = np.mean(np.array(values) >= values[0] * (1 - 1e-9))
    assert 1 / 200 < expected < 0.98
    assert chance_of_dependence(k, m, 0.95, np.random.default_rng(33)) == pytest.approx(expected)
    assert chance_of_dependence(1e-30 * k, 1e30 * m, 0.95, np.random.default_rng(33)) == pytest.approx(expected)


def test_many_rows_in_a_design_are_exchanged_too():
    rng = np.random.default_rng(31)
    x, y = rng.normal(size=(2, 700))
    within = np.tile([0, 1], 700)
    assert mm.two_sample_effect(x, y, within=within, rng=0).distance.low == 0.0
    assert mm.two_sample_effect(x, y + 1.0, within=within, rng=0).distance.low > 0.1


def test_the_same_rows_twice_are_at_no_distance():
    x = np.random.default_rng(7).normal(size=60)
    effect = mm.two_sample_effect(x, x, rng=0)
    for each in (effect.distance, effect.shift):
        assert each.estimate == each.low == 0.0
        assert 0.01 < each.high < 1.0
