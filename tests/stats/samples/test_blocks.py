import itertools

import numpy as np
import pytest
import scipy.stats

import meanmap as mm
from meanmap.core.errors import KindError
from meanmap.stats.samples import blocks

FAILURE_RATE = 1e-5


def block_mean_by_hand(kernel, x, y, length):
    """The unbiased MMD² of paired points in each block, from its definition, averaged."""
    values = []
    for start in range(0, len(x) // length * length, length):
        a, b = x[start : start + length], y[start : start + length]
        xx, yy, xy = kernel(a), kernel(b), kernel(a, b)
        pairs = itertools.permutations(range(length), 2)
        values.append(np.mean([xx[i, j] + yy[i, j] - xy[i, j] - xy[j, i] for i, j in pairs]))
    return np.mean(values)


@pytest.mark.parametrize(("statistic", "length"), [("linear", 2), ("block", 7)])
def test_the_statistic_is_its_definition(statistic, length):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 2)), rng.normal(0.5, 1.0, size=(55, 2))
    kernel = mm.kernels.RBF(1.0)
    result = mm.two_sample_test(x, y, kernel, statistic=statistic, rng=0)
    assert result.statistic == pytest.approx(block_mean_by_hand(kernel, x, y, length), abs=1e-6)
    assert f"blocks of {length} pairs" in result.method


def test_large_samples_are_cut_into_steps_that_change_nothing(monkeypatch):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 200))
    whole = mm.two_sample_test(x, y, mm.kernels.RBF(1.0), statistic="linear", null="normal", rng=0)
    monkeypatch.setattr(blocks, "POINTS", 30)
    cut = mm.two_sample_test(x, y, mm.kernels.RBF(1.0), statistic="linear", null="normal", rng=0)
    assert cut.statistic == pytest.approx(whole.statistic, abs=1e-8)
    np.testing.assert_allclose(cut.null.draws, whole.null.draws, atol=1e-8)


@pytest.mark.parametrize("statistic", ["linear", "block"])
def test_signs_have_the_spread_that_the_normal_limit_has(statistic):
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 2000))
    kernel = mm.kernels.RBF(1.0)
    spreads = [
        mm.two_sample_test(x, y, kernel, statistic=statistic, null=null, rng=0).null.draws.std()
        for null in ("wild", "normal")
    ]
    assert spreads[0] == pytest.approx(spreads[1], rel=0.25)


@pytest.mark.parametrize("null", ["wild", "normal"])
@pytest.mark.parametrize("statistic", ["linear", "block"])
def test_level_and_power(statistic, null):
    rng = np.random.default_rng(3)
    trials = 150
    rejected = {"same": 0, "other": 0}
    for trial in range(trials):
        x, y = rng.normal(size=(2, 100))
        for name, sample in (("same", y), ("other", 2.5 * y)):
            result = mm.two_sample_test(x, sample, statistic=statistic, null=null, n_permutations=199, rng=trial)
            rejected[name] += result.reject(0.05)
    assert scipy.stats.binomtest(rejected["same"], trials, 0.05).pvalue > FAILURE_RATE
    assert rejected["other"] > 3 * rejected["same"]


def test_auto_takes_signs_for_few_and_the_limit_for_many_pairs():
    x, y = np.random.default_rng(4).normal(size=(2, 30_000))
    assert mm.two_sample_test(x[:100], y[:100], statistic="linear", rng=0).null.exact
    assert not mm.two_sample_test(x, y, statistic="linear", rng=0).null.exact


def test_sparse_rows_are_refused():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    x = scipy_sparse.random(20, 5, density=0.5, rng=np.random.default_rng(0), format="csr")
    with pytest.raises(KindError, match="block statistics do not take"):
        mm.two_sample_test(x, x, mm.kernels.RBF(1.0), statistic="block")
