"""Units of rows: the statistic of rows but for pairs inside of units, and exact permutations."""

import numpy as np
import pytest

import meanmap as mm
from meanmap.core.door import Door
from meanmap.features.base import transformed
from meanmap.features.lowrank import Nystrom
from meanmap.kernels import Laplace
from meanmap.stats.permutations import CentredFeatures, CentredGram, permuted_mmd
from meanmap.stats.samples.units import Units

SIZES = 1303, 904


def units(sizes=SIZES, seed=0):
    return Units.of(sizes, np.random.default_rng(seed))


def test_units_hold_each_row_once_and_rows_of_one_sample():
    found = units()
    assert found.size == 2
    held = np.concatenate([found.members.ravel(), *found.left])
    assert sorted(held) == list(range(sum(SIZES)))
    groups = np.repeat([0, 1], SIZES)
    assert (groups[found.members] == found.labels[: len(found.members), None]).all()
    assert found.sizes == (652, 452)
    assert [groups[left].tolist() for left in found.left] == [[0]]


def test_few_rows_are_units_of_their_own_and_nothing_is_drawn():
    generator = np.random.default_rng(0)
    found = Units.of((900, 300), generator)
    assert found.size == 1
    assert generator.random() == np.random.default_rng(0).random()
    assert Units.of((30_000, 400), generator).size == 1  # of a small sample many units stay


def test_what_is_left_over_stays():
    found = units()
    labels = found.exchanged(50, np.random.default_rng(1))
    assert (labels[:, len(found.members) :] == found.labels[len(found.members) :]).all()
    assert (np.bincount(labels[7]) == np.bincount(found.labels)).all()
    assert (labels[0] == found.labels).all()
    assert not (labels[1] == labels[2]).all()


def test_the_statistic_is_that_of_rows_without_pairs_inside_of_units():
    rng = np.random.default_rng(0)
    x = np.sort(rng.normal(size=(sum(SIZES), 2)), axis=0)  # of sorted rows, too
    found, kernel = Units.of((1302, 904), rng), Laplace(1.0)
    x = x[: 1302 + 904]
    gram = np.asarray(kernel(x))
    unit = np.empty(len(x), int)
    unit[found.members] = np.arange(len(found.members))[:, None]
    groups = np.repeat([0, 1], (1302, 904))
    apart = unit[:, None] != unit[None]

    def mean(a, b):
        pairs = (groups[:, None] == a) & (groups[None] == b) & apart
        return gram[pairs].mean()

    expected = mean(0, 0) + mean(1, 1) - 2 * mean(0, 1)
    z = (found.labels[None] == 0).astype(np.float32)
    got = permuted_mmd(CentredGram(found.gram(gram)), z, found.sizes[0], unbiased=True).values[0]
    np.testing.assert_allclose(got, expected, atol=1e-8)


def test_means_of_features_are_those_of_rows():
    rng = np.random.default_rng(0)
    x, found = rng.normal(size=(sum(SIZES), 2)), units()
    with Door(Laplace(1.0), x) as door:
        member = Nystrom.at(Laplace(1.0), x[:40], door)
        np.testing.assert_allclose(found.features(member, x), found.means(transformed(member, x)), atol=1e-12)
    np.testing.assert_allclose(found.features(member, x).sum(axis=0), 0, atol=1e-9)
    gram = transformed(member, x) @ transformed(member, x).T
    z = (found.labels[None] == 0).astype(np.float32)
    by_features = permuted_mmd(CentredFeatures(found.features(member, x)), z, found.sizes[0], True).values
    by_gram = permuted_mmd(CentredGram(found.gram(gram)), z, found.sizes[0], True).values
    np.testing.assert_allclose(by_features, by_gram, atol=1e-8)


@pytest.mark.parametrize("test", ["two", "three"])
def test_a_shift_in_sorted_rows_is_seen_and_the_order_of_rows_is_not(test):
    rng = np.random.default_rng(0)
    x, same, moved = (np.sort(rng.normal(m, 1, size=(1100, 1)), axis=0) for m in (0, 0, 0.3))

    def pvalue(*samples):
        if test == "two":
            return mm.two_sample_test(*samples, n_permutations=199, rng=0).pvalue
        return mm.k_sample_test(
            [*samples, np.sort(rng.normal(size=(1100, 1)), axis=0)], n_permutations=199, rng=0
        ).pvalue

    assert pvalue(x, same) > 0.05
    assert pvalue(x, moved) <= 0.01


@pytest.mark.slow
def test_levels_of_units():
    """300 data sets of unequal samples with rows left over: rejections at .1 within 99 % bounds."""
    rng, ps = np.random.default_rng(5), []
    for seed in range(300):
        x, y = rng.standard_t(3, size=(1501, 1)), rng.standard_t(3, size=(603, 1))
        ps.append(mm.two_sample_test(x, y, "median", n_permutations=99, rng=seed).pvalue)
    assert 17 <= np.sum(np.array(ps) <= 0.1) <= 44
