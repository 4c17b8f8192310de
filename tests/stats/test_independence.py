import numpy as np
import pytest
import scipy.stats

import meanmap as mm
from meanmap.core.errors import ColumnError, EmptyError, KindError, ParameterError, ShapeError
from meanmap.core.rng import Rng
from meanmap.stats.independence import _permuted

FAILURE_RATE = 1e-5


def hsic_by_hand(k, other, unbiased):
    """Gretton et al. (2005), and Song et al. (2012) eq. 5, from the Gram matrices."""
    n = len(k)
    if not unbiased:
        h = np.eye(n) - 1 / n
        return np.trace(k @ h @ other @ h) / n**2
    k, other = k - np.diag(np.diag(k)), other - np.diag(np.diag(other))
    one = np.ones(n)
    inner = np.trace(k @ other) + k.sum() * other.sum() / ((n - 1) * (n - 2)) - 2 / (n - 2) * one @ k @ other @ one
    return inner / (n * (n - 3))


@pytest.mark.parametrize("statistic", ["biased", "unbiased"])
def test_the_feature_form_is_the_definition_for_every_permutation(statistic):
    rng = np.random.default_rng(0)
    phi, psi = rng.normal(size=(20, 4)), rng.normal(size=(20, 3))
    values = _permuted(phi, psi, statistic, 10, Rng(5))
    orders = np.tile(np.arange(20), (11, 1))
    orders[1:] = Rng(5).generator.permuted(orders[1:], axis=1)
    expected = [hsic_by_hand(phi @ phi.T, psi[o] @ psi[o].T, statistic == "unbiased") for o in orders]
    np.testing.assert_allclose(values, expected, rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("statistic", ["biased", "unbiased"])
def test_the_statistic_is_that_of_the_whole_gram_matrices(statistic):
    rng = np.random.default_rng(1)
    x = rng.normal(size=100)
    y = np.sin(2 * x) + 0.3 * rng.normal(size=100)
    kernels = mm.kernels.RBF(0.7), mm.kernels.RBF(0.5)
    result = mm.independence_test(x, y, kernels, statistic=statistic, rng=0)
    expected = hsic_by_hand(kernels[0](x), kernels[1](y), statistic == "unbiased")
    assert result.statistic == pytest.approx(expected, rel=1e-2)


def test_the_normalised_statistic_of_a_variable_with_itself_is_one():
    x = np.random.default_rng(2).normal(size=50)
    assert mm.independence_test(x, x, statistic="normalised", rng=0).statistic == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("null", ["permutation", "gamma", "spectral"])
def test_level(null):
    rng = np.random.default_rng(3)
    trials, rejections = 200, 0
    for trial in range(trials):
        x, y = rng.normal(size=(50, 2)), rng.exponential(size=50)
        rejections += mm.independence_test(x, y, null=null, n_permutations=199, rng=trial).reject(0.05)
    assert scipy.stats.binomtest(rejections, trials, 0.05).pvalue > FAILURE_RATE


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["biased", "unbiased", "normalised"])
def test_level_at_length(statistic):
    rng = np.random.default_rng(4)
    trials, rejections = 1000, 0
    for trial in range(trials):
        x, y = rng.normal(size=(60, 3)), rng.integers(0, 3, size=60).astype(str)
        rejections += mm.independence_test(x, y, statistic=statistic, n_permutations=199, rng=trial).reject(0.05)
    low, high = scipy.stats.binom.interval(0.99, trials, 0.05)
    assert low <= rejections <= high, rejections


def test_power_does_not_depend_on_units():
    rng = np.random.default_rng(5)
    x = rng.normal(size=150)
    y = np.sin(3 * x) + 0.3 * rng.normal(size=150)
    plain, rescaled = (mm.independence_test(x, c * y, rng=0) for c in (1, 1000))
    assert plain.pvalue == rescaled.pvalue < 0.01


def test_labels_and_tables():
    rng = np.random.default_rng(6)
    group = rng.integers(0, 2, size=80)
    height = rng.normal(2 * group, 1.0)
    assert mm.independence_test(np.where(group, "a", "b"), height, rng=0).reject(0.05)
    table = {"height": height, "age": rng.normal(size=80), "colour": rng.choice(["r", "g"], size=80)}
    assert mm.independence_test(np.where(group, "a", "b"), table, rng=0).reject(0.05)


def test_a_seed_repeats_everything():
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=30), rng.normal(size=30)
    first = mm.independence_test(x, y)
    assert mm.independence_test(x, y, rng=first.seed).pvalue == first.pvalue


@pytest.mark.parametrize(
    ("arguments", "settings", "error", "message"),
    [
        ((np.arange(4.0), np.arange(4.0)), {}, EmptyError, "expected at least 5"),
        ((np.arange(9.0), np.arange(8.0)), {}, ShapeError, "expected pairs"),
        ((np.arange(9.0), np.ones(9)), {"kernel": mm.kernels.RBF(1.0)}, ColumnError, "y is constant"),
        ((np.arange(9.0), np.arange(9.0)), {"kernel": "mean"}, KindError, "a pair"),
        ((np.arange(9.0), np.arange(9.0)), {"null": "wild"}, ParameterError, "expected one of"),
        ((np.arange(9.0), np.arange(9.0)), {"null": "gamma", "statistic": "unbiased"}, ParameterError, "biased"),
    ],
)
def test_bad_input(arguments, settings, error, message):
    with pytest.raises(error, match=message):
        mm.independence_test(*arguments, **settings)
