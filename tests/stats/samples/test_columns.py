"""One kernel for each column beside those of all: found without Gram matrices, and what they see."""

import numpy as np
import pytest
import scipy.stats

import meanmap as mm
from meanmap.core.tables.column import robust_scales
from meanmap.stats.collections import MOST_COLUMNS, column_kernels
from meanmap.stats.permutations import CentredGram, assignments, permuted_mmd
from meanmap.stats.samples import feature_statistics, k_sample
from meanmap.stats.samples.columns import column_statistics
from meanmap.stats.samples.k_sample import between_groups

RNG = np.random.default_rng(12)
POOLED = np.column_stack([RNG.normal(size=40), np.round(RNG.normal(size=40)), RNG.standard_cauchy(40) * 1e6])


@pytest.mark.parametrize("unbiased", [True, False])
def test_one_pass_along_a_line_is_the_gram_matrix(unbiased):
    """With ties and heavy tails; Gram matrices sum in single precision."""
    kernels = column_kernels(POOLED, robust_scales(POOLED))
    z = assignments(15, 25, 30, RNG)
    found, norms = column_statistics(kernels, POOLED, lambda gram: permuted_mmd(gram, z, 15, unbiased))
    for kernel, permuted, norm in zip(kernels, found, norms, strict=True):
        gram = CentredGram(kernel(POOLED))
        expected = permuted_mmd(gram, z, 15, unbiased)
        np.testing.assert_allclose(permuted.values, expected.values, atol=2 * expected.rounding + 1e-12)
        assert norm == pytest.approx(gram.norm, rel=1e-12)


def test_many_blocks_are_one(monkeypatch):
    kernels = column_kernels(POOLED, robust_scales(POOLED))
    z = assignments(15, 25, 30, RNG)

    def found():
        return column_statistics(kernels, POOLED, lambda gram: permuted_mmd(gram, z, 15, True))[0]

    whole = found()
    monkeypatch.setattr("meanmap.stats.samples.columns.AT_ONCE", 3)
    for one, other in zip(whole, found(), strict=True):
        np.testing.assert_array_equal(one.values, other.values)


def test_groups_in_one_pass_are_those_of_the_gram_matrix():
    kernels = column_kernels(POOLED, robust_scales(POOLED))
    labels = RNG.permuted(np.tile(np.repeat([0, 1, 2], [10, 12, 18]), (9, 1)), axis=1)
    found, _ = column_statistics(kernels, POOLED, lambda gram: between_groups(gram, labels, (10, 12, 18)))
    for kernel, permuted in zip(kernels, found, strict=True):
        expected = between_groups(CentredGram(kernel(POOLED)), labels, (10, 12, 18))
        np.testing.assert_allclose(permuted.values, expected.values, atol=2 * expected.rounding + 1e-12)


def test_each_column_that_varies_and_differs_has_a_kernel():
    def number(*columns):
        pooled = np.column_stack(columns)
        return len(column_kernels(pooled, robust_scales(pooled)))

    a, b, c = POOLED.T
    assert number(a, b, c) == 3
    assert number(a, b, a, np.ones(40)) == 2
    assert number(a) == number(a, a) == number(a, np.ones(40)) == 0
    assert number(*RNG.normal(size=(MOST_COLUMNS + 1, 40))) == 0


def test_one_wide_column_of_ten_is_seen():
    """Measured on other data sets: seen in .92 of them, without kernels for single columns in .68."""
    seen = 0
    for trial in range(40):
        x, y = np.random.default_rng([4, trial]).normal(size=(2, 100, 10))
        y[:, 3] *= 2
        seen += mm.two_sample_test(x, y, n_permutations=199, rng=0).reject(0.05)
    assert seen >= scipy.stats.binom.ppf(1e-3, 40, 0.92)


def test_one_wide_column_of_ten_is_seen_among_three_samples():
    """Measured on other data sets: seen in .83 of them, without kernels for single columns in .45."""
    seen = 0
    for trial in range(40):
        x, y, z = np.random.default_rng([6, trial]).normal(size=(3, 70, 10))
        y[:, 3] *= 2
        seen += mm.k_sample_test([x, y, z], n_permutations=199, rng=0).reject(0.05)
    assert seen >= scipy.stats.binom.ppf(1e-3, 40, 0.83)


@pytest.mark.parametrize("test", ["two_sample_test", "k_sample_test"])
def test_features_have_a_kernel_for_each_column_too(test, monkeypatch):
    """What is for more than 3000 points, on fewer."""
    for module in (feature_statistics, k_sample):
        monkeypatch.setattr(module, "LANDMARKS", 40)
    monkeypatch.setattr(k_sample, "WHOLE", 100)
    x, y = np.random.default_rng(7).normal(size=(2, 150, 8))
    y[:, 3] *= 2.2
    few = {"n_permutations": 199, "rng": 0}
    if test == "two_sample_test":
        result = mm.two_sample_test(x, y, statistic="features", **few)
        alone = mm.two_sample_test(x, y, result.kernel, statistic="features", **few)
    else:
        result = mm.k_sample_test([x, y], **few)
        alone = mm.k_sample_test([x, y], result.kernel, **few)
    assert "one for each of 8 columns" in result.method
    assert "one for each" not in alone.method
    assert result.pvalue == pytest.approx(1 / 200)


def test_the_column_that_differs_is_the_witness():
    x, y = RNG.normal(size=(2, 80, 6))
    result = mm.two_sample_test(x, y * [1, 1, 4, 1, 1, 1], n_permutations=99, rng=0)
    assert "fused over 5 kernels and one for each of 6 columns" in result.method
    shares = result.driving_columns(rng=0)
    assert max(shares, key=shares.__getitem__) == "column 2"
    assert np.isfinite(result.witness(x)).all()


def test_columns_of_any_size_are_compared():
    x, y = RNG.normal(size=(2, 20, 3)) * [1e-161, 1e150, 1.0]
    assert 0 < mm.two_sample_test(x, y, n_permutations=99, rng=0).pvalue <= 1


@pytest.mark.slow
def test_level_with_a_kernel_for_each_column():
    rejected = sum(
        mm.two_sample_test(
            *np.random.default_rng([5, t]).exponential(size=(2, 30, 7)), n_permutations=99, rng=t
        ).reject(0.05)
        for t in range(1000)
    )
    low, high = scipy.stats.binom.interval(0.99, 1000, 0.05)
    assert low <= rejected <= high, rejected
