"""Rows change places among neighbours in z where what regressions left may still hold weak functions of z."""

import numpy as np
import pytest

import meanmap as mm
from meanmap.core.door import Door
from meanmap.stats.conditional.conditional import read_triples
from meanmap.stats.conditional.landmarks import median_distance, rbf
from meanmap.stats.conditional.nearby import (
    DOUBT,
    TOGETHER,
    _orders,
    exchanged_nearby,
    order_in_doubt,
    told_nearby,
)
from meanmap.stats.conditional.residuals import Given, residuals
from meanmap.stats.conditional.statistics import LOCAL

SAID = "neighbours in z are slightly correlated"


def wave(seed, size=0.5, n=200):
    """A quick wave behind x and y."""
    rng = np.random.default_rng([seed, 8])
    z = rng.uniform(-3, 3, n)
    x, y = size * np.sin(20 * z) + rng.normal(size=(2, n))
    return x, y, z


def sides(x, y, z, kernel=None):
    with Door() as door:
        conditions, read = read_triples(x, y, z, (kernel, kernel), door)
        given = Given.of(conditions, np.random.default_rng(0))
        return [residuals(side, kernel, given, door) for side in read]


@pytest.mark.slow
def test_weak_waves_keep_the_level_or_are_told():
    found = [mm.conditional_independence_test(*wave(seed), n_permutations=199, rng=seed) for seed in range(100)]
    assert sum(each.pvalue <= 0.05 and not each.warnings for each in found) <= 14  # .9995 of binomial(100, .05); was 31


def test_waves_are_doubted_and_told():
    found = {seed: mm.conditional_independence_test(*wave(seed), n_permutations=99, rng=0) for seed in range(10)}
    told = [seed for seed, each in found.items() if any(SAID in text for text in each.warnings)]
    assert told
    x, y, z = wave(told[0])
    assert found[told[0]].null.kind == "permutation among neighbours in z"
    assert mm.conditional_independence_effect(x, y, z, rng=0).correlation.low == 0.0
    assert mm.structure.KernelTests({"x": x, "y": y, "z": z}, rng=0).pvalues([("x", "y")], ("z",))[0] > 0.05


def test_quick_changes_of_variance_are_doubted():
    rng = np.random.default_rng(0)
    z = rng.uniform(-3, 3, 200)
    x, y = np.exp(0.8 * np.sin(20 * z)) * rng.normal(size=(2, 200))
    assert order_in_doubt(*sides(x, y, z)) is not None


def test_dependence_is_seen_among_neighbours_too():
    x, y, z = wave(0, 0.8, 100)
    result = mm.conditional_independence_test(x, y + 1.5 * (x - 0.8 * np.sin(20 * z)), z, n_permutations=99, rng=0)
    assert result.pvalue <= 0.02


def test_noise_is_doubted_as_often_as_is_said():
    rng = np.random.default_rng(1)
    repeats, columns = 100, 3
    doubted = 0
    for _ in range(repeats):
        x, y = rng.normal(size=(2, 60))
        doubted += order_in_doubt(*sides(x, y + 0.5 * x, rng.normal(size=(60, columns)), "median")) is not None
    assert doubted <= 2 * repeats * DOUBT  # columns and reaches share it, and dependence does not count


@pytest.mark.parametrize("n", [9, 10, 11])
def test_rows_change_places_within_threes_in_all_orders_alike(n):
    found = _orders(n, 6000, np.random.default_rng(0))
    np.testing.assert_array_equal(found[0], np.arange(n))
    np.testing.assert_array_equal(np.sort(found, axis=1), np.tile(np.arange(n), (6001, 1)))
    np.testing.assert_array_equal(found // TOGETHER, np.tile(np.arange(n) // TOGETHER, (6001, 1)))
    for start in range(0, n, TOGETHER):
        ways, counts = np.unique(found[1:, start : start + TOGETHER], axis=0, return_counts=True)
        size = min(TOGETHER, n - start)
        assert len(ways) == [1, 2, 6][size - 1]
        assert np.abs(counts - 6000 / len(ways)).max() < 5 * np.sqrt(6000 / len(ways))


def test_the_sum_over_neighbours_by_hand():
    x, y, z = wave(3, 2.0, 60)
    left, right = sides(x, -y, z)
    order = order_in_doubt(left, right)
    assert order is not None
    np.testing.assert_array_equal(order, np.argsort(z, kind="stable"))
    shuffled = np.random.default_rng(0).permutation(60)
    assert order_in_doubt(*sides(x[shuffled], -y[shuffled], z)) is None


def test_the_statistic_is_that_of_exchanged_rows():
    left, right = sides(*wave(3, 2.0, 60), "median")
    n, generator = 60, np.random.default_rng(0)
    value, law = exchanged_nearby(left, right, "kci", 400, generator)
    z = left.given.where / median_distance(left.given.where)
    k = (1 - LOCAL + LOCAL * rbf(z, z)) * (left.left @ left.left.T)
    m = right.left @ right.left.T
    order = np.argsort(z[:, 0])
    draws = []
    for _ in range(400):
        new = np.empty(n, int)
        for start in range(0, n, TOGETHER):
            rows = order[start : start + TOGETHER]
            new[rows] = generator.permutation(rows)
        draws.append(np.sum(k * m[np.ix_(new, new)]) / n)
    # Landmarks of z and of features leave out a few percent.
    np.testing.assert_allclose(value, np.sum(k * m) / n, rtol=0.1)
    np.testing.assert_allclose(np.mean(law.draws), np.mean(draws), rtol=0.1)
    np.testing.assert_allclose(np.std(law.draws), np.std(draws), rtol=0.3)


def test_clusters_and_two_values_are_no_neighbours():
    x, y, _ = wave(0, 0.8, 100)
    z = np.arange(100) % 2
    assert order_in_doubt(*sides(x, y, z)) is None


def test_what_is_said_of_it():
    assert SAID in told_nearby(0.09, 0.03)
    assert "the regressions alone gave 0.03" in told_nearby(0.09, 0.03)
    assert told_nearby(0.04, 0.01) == told_nearby(0.05, 0.04) == ""
