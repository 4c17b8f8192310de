"""Units of rows: the statistic of rows but for pairs inside of units, and exact permutations."""

import numpy as np
import pytest

import meanmap as mm
from meanmap.core.door import Door
from meanmap.features.base import transformed
from meanmap.features.lowrank import Nystrom
from meanmap.kernels import Laplace
from meanmap.stats.permutations import CentredFeatures, CentredGram, permuted_mmd
from meanmap.stats.samples.samples import read_samples
from meanmap.stats.samples.units import Units

SIZES = 1303, 904


def units(sizes=SIZES, seed=0):
    return Units.of(sizes, np.random.default_rng(seed))


@pytest.mark.parametrize(
    "sizes", [SIZES, (1000, 1), (700, 400), (999, 1000), (1000, 1000), (5000, 7001), (20_000, 260)]
)
def test_units_hold_each_row_once_and_rows_of_one_sample(sizes):
    found = units(sizes)
    assert sorted(np.concatenate([part.ravel() for part in found.members])) == list(range(sum(sizes)))
    groups, start = np.repeat(np.arange(len(sizes)), sizes), 0
    for part in found.members:
        labels = found.labels[start : start + len(part)]
        assert (groups[part] == labels[:, None]).all()
        start += len(part)
    lengths = [part.shape[1] for part in found.members]
    assert lengths in ([lengths[0]], [lengths[0], lengths[0] + 1])


def test_there_are_as_many_units_of_more_rows():
    """So that cost does not fall where they get one row more."""
    for size in (500, 501, 999, 1000, 1499, 9000):
        assert 1000 <= sum(units((size, size)).sizes) <= 1002


def test_few_rows_are_units_of_their_own_and_nothing_is_drawn():
    generator = np.random.default_rng(0)
    found = Units.of((700, 300), generator)
    assert found.alone
    assert generator.random() == np.random.default_rng(0).random()
    assert Units.of((30_000, 250), generator).alone  # of a small sample many units stay


def test_units_of_one_size_are_exchanged_among_themselves():
    found = units()
    labels = found.exchanged(50, np.random.default_rng(1))
    assert [part.shape[1] for part in found.members] == [2, 3]
    ends = len(found.members[0]), len(found.labels)
    for start, end in zip((0, ends[0]), ends, strict=True):
        assert (np.bincount(labels[7, start:end]) == np.bincount(found.labels[start:end])).all()
        assert not (labels[1, start:end] == labels[2, start:end]).all()
    assert (labels[0] == found.labels).all()


def test_the_statistic_is_that_of_rows_without_pairs_inside_of_units():
    rng = np.random.default_rng(0)
    x = np.sort(rng.normal(size=(2000, 2)), axis=0)  # of sorted rows, too
    found, kernel = Units.of((1200, 800), rng), Laplace(1.0)
    gram = np.asarray(kernel(x))
    unit = np.empty(len(x), int)
    unit[found.members[0]] = np.arange(len(found.labels))[:, None]
    groups = np.repeat([0, 1], (1200, 800))
    apart = unit[:, None] != unit[None]

    def mean(a, b):
        pairs = (groups[:, None] == a) & (groups[None] == b) & apart
        return gram[pairs].mean()

    expected = mean(0, 0) + mean(1, 1) - 2 * mean(0, 1)
    z = (found.labels[None] == 0).astype(np.float32)
    got = permuted_mmd(
        CentredGram(found.gram(gram[np.ix_(found.order, found.order)])), z, found.sizes[0], unbiased=True
    ).values[0]
    np.testing.assert_allclose(got, expected, atol=1e-8)


def test_statistics_of_units_of_two_sizes_are_unbiased_too():
    """Of 200 data sets under the hypothesis, within three standard errors."""
    rng, values = np.random.default_rng(3), []
    for _ in range(200):
        found, x = Units.of((670, 530), rng), rng.normal(size=1200)
        sums = found.means(np.stack([x, x**2], axis=1))
        z = (found.labels[None] == 0).astype(np.float32)
        values.append(permuted_mmd(CentredGram(sums @ sums.T), z, found.sizes[0], unbiased=True).values[0])
    assert abs(np.mean(values)) < 3 * np.std(values) / np.sqrt(200)


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
    by_gram = permuted_mmd(
        CentredGram(found.gram(gram[np.ix_(found.order, found.order)])), z, found.sizes[0], True
    ).values
    np.testing.assert_allclose(by_features, by_gram, atol=1e-8)


@pytest.mark.parametrize("columns", [3, 12])
def test_pairs_of_columns_are_those_of_rows_summed_over_units(columns):
    rng = np.random.default_rng(5)
    found, x = units(), rng.normal(size=(sum(SIZES), columns))
    with Door() as door:
        scores = read_samples((x[: SIZES[0]], x[SIZES[0] :]), "xy", None, rng, door, fusing=True).scores
    assert scores is not None
    assert scores._apart(found) == (columns == 12)
    one_by_one = Units.of_rows(SIZES)
    rows, means = (scores.features_of_pairs(np.random.default_rng(0), each) for each in (one_by_one, found))
    np.testing.assert_allclose(means, found.means(rows), atol=1e-10)
    gram = scores.of_pairs[np.ix_(found.order, found.order)]
    np.testing.assert_allclose(scores._gram_of_pairs(found), found.gram(gram), atol=1e-10)


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
    """300 data sets of unequal samples with rows left over: rejections at .1 within 99% bounds."""
    rng, ps = np.random.default_rng(5), []
    for seed in range(300):
        x, y = rng.standard_t(3, size=(901, 1)), rng.standard_t(3, size=(603, 1))
        ps.append(mm.two_sample_test(x, y, "median", n_permutations=99, rng=seed).pvalue)
    assert 17 <= np.sum(np.array(ps) <= 0.1) <= 44
