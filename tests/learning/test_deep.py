"""The deep kernel against its formulas, and tests with it."""

import numpy as np
import pytest
import scipy.stats

import meanmap as mm
from meanmap.core.errors import ColumnError, EmptyError, KindError, ParameterError
from meanmap.learning.deep import LEAST_VARIANCE, learn_deep_kernel, power_ratio

FEW = {"n_permutations": 99, "rng": 0}


def ring(n, rng, inner):
    """Points on a ring in two of four columns: radii differ, and no column's law much."""
    angle, radius = rng.uniform(0, 2 * np.pi, n), np.where(rng.random(n) < 0.5, inner, 1.0)
    return np.c_[radius * np.cos(angle), radius * np.sin(angle), rng.normal(size=(n, 2))]


@pytest.fixture(scope="module")
def trained():
    rng = np.random.default_rng(0)
    x, y = ring(60, rng, 1.0), ring(60, rng, 0.3)
    return learn_deep_kernel(x, y, rng), x, y


def test_the_kernel_is_its_formula(trained):
    kernel, x, y = trained
    a, b = ((part - kernel.centre) / kernel.units for part in (x[:7], y[:5]))

    def network(part):
        for i, (weights, offset) in enumerate(zip(kernel.weights, kernel.offsets, strict=True)):
            part = part @ weights + offset
            part = np.log1p(np.exp(part)) if i < len(kernel.weights) - 1 else part
        return part

    def apart(p, q):
        return np.sum((p[:, None] - q) ** 2, axis=2)

    share = 1 / (1 + np.exp(-kernel.share))
    near = np.exp(-0.5 * apart(a, b) * np.exp(-2 * kernel.log_width))
    expected = ((1 - share) * np.exp(-0.5 * apart(network(a), network(b))) + share) * near
    np.testing.assert_allclose(kernel(x[:7], y[:5]), expected, atol=1e-9)
    np.testing.assert_allclose(kernel.diag(x[:3]), 1)


def test_what_is_climbed_is_the_ratio_of_the_paper(trained):
    kernel, x, y = trained
    k, m, across = kernel(x), kernel(y), kernel(x, y)
    h = k + m - across - across.T
    np.fill_diagonal(h, 0)
    variance = 4 * (np.mean(h.mean(axis=1) ** 2) - h.mean() ** 2)
    ratio = h.sum() / (60 * 59) / np.sqrt(variance + LEAST_VARIANCE / 60)
    assert float(power_ratio(kernel, x, y)) == pytest.approx(ratio, rel=1e-3)
    assert ratio > 0.3  # of 60 rows an untrained kernel has about zero


def test_half_of_the_rows_train_and_the_others_test():
    rng = np.random.default_rng(1)
    x, y = ring(120, rng, 1.0), ring(120, rng, 0.3)
    result = mm.two_sample_test(x, y, "deep", **FEW)
    assert result.sizes == (60, 60)
    assert "the deep kernel was trained on half of the rows, 120" in " ".join(result.warnings)
    assert result.pvalue == mm.two_sample_test(x, y, "deep", **FEW).pvalue < 0.05
    table = {name: {f"c{j}": part[:, j] for j in range(4)} for name, part in (("x", x), ("y", y))}
    assert mm.two_sample_test(table["x"], table["y"], "deep", **FEW).pvalue == result.pvalue


def test_the_level_is_kept():
    """What the kernel learned by chance it learned from rows that are not tested."""
    rng = np.random.default_rng(2)
    samples = (rng.normal(size=(2, 40, 3)) for _ in range(25))
    rejected = sum(
        mm.two_sample_test(x, y, "deep", n_permutations=39, rng=t).reject() for t, (x, y) in enumerate(samples)
    )
    assert rejected <= scipy.stats.binom.ppf(1 - 1e-4, 25, 0.05)


def test_what_a_network_cannot_read_is_refused():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(30, 2))
    with pytest.raises(ParameterError, match="kernel='deep' is for samples without within="):
        mm.two_sample_test(x, x, "deep", within=np.arange(60) % 2)
    with pytest.raises((ColumnError, KindError)):
        mm.two_sample_test({"a": ["u", "v"] * 10}, {"a": ["u", "v"] * 10}, "deep")
    with pytest.raises(EmptyError):
        mm.two_sample_test(x[:8], x, "deep")
