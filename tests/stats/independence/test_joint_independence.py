from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import meanmap as mm
from meanmap.core.errors import (
    ColumnError,
    EmptyError,
    InputError,
    KindError,
    NonFiniteError,
    ParameterError,
    ShapeError,
)
from meanmap.kernels import RBF
from meanmap.stats.independence import joint_independence, joint_permuted
from meanmap.stats.independence.joint_independence import _gamma, _joint, joint_independence_test
from meanmap.stats.independence.shifts import Shifts

FAILURE_RATE = 1e-5


def by_hand(grams):
    """Pfister et al. (2018), eq. 4, term by term."""
    n = len(grams[0])
    first = np.prod(grams, axis=0).sum() / n**2
    second = np.prod([gram.sum() / n**2 for gram in grams])
    third = 2 / n ** (len(grams) + 1) * np.prod([gram.sum(axis=1) for gram in grams], axis=0).sum()
    return first + second - third


@pytest.mark.parametrize("n", [8, 70, 131])
@pytest.mark.parametrize("d", [2, 3, 4])
def test_every_permutation_has_the_statistic_of_the_definition(n, d):
    rng = np.random.default_rng(n)
    grams = [RBF(1.0)(rng.normal(size=n)) for _ in range(d)]
    orders = [np.arange(n), *(rng.permutation(n) for _ in range(d - 1))]
    shifts = np.array([0, 1, n // 2, n - 1])
    expected = []
    for s in shifts:
        permuted = [np.roll(order, -k * s) for k, order in enumerate(orders)]
        expected.append(by_hand([gram[np.ix_(p, p)] for gram, p in zip(grams, permuted, strict=True)]))
    np.testing.assert_allclose(_joint(grams, orders, shifts).values, expected, atol=1e-13)


@pytest.mark.parametrize(("n", "d", "step"), [(23, 2, 1), (23, 3, 1), (40, 4, 3), (9, 6, 2)])
def test_means_of_products_are_those_of_each_permutation(n, d, step, monkeypatch):
    monkeypatch.setattr(joint_permuted, "TOGETHER", 5 * n)
    rng = np.random.default_rng(n)
    values = [rng.uniform(size=(4, n)) for _ in range(d)]
    orders = [np.arange(n), *(rng.permutation(n) for _ in range(d - 1))]
    whole, expected = n // step * step, []
    for s in range(n // step):
        moved = [np.r_[np.roll(order[:whole], -k * s * step), order[whole:]] for k, order in enumerate(orders)]
        expected.append(np.prod([v[:, order] for v, order in zip(values, moved, strict=True)], axis=0).mean(axis=1))
    for chosen in (np.arange(n // step), np.array([0, n // step - 1])):
        found = joint_permuted._means(values, orders, step, chosen)
        np.testing.assert_allclose(found, np.transpose(expected)[:, chosen], rtol=1e-12)


def test_landmarks_see_nearly_all_of_the_statistic(monkeypatch):
    """Under the same permutations; a part of an element is never longer than the whole."""
    rng = np.random.default_rng(6)
    a, b = rng.integers(0, 3, (2, 120))
    table = {"a": a.astype(str), "b": b.astype(str), "c": np.where(rng.uniform(size=120) < 0.4, a + b, a).astype(str)}
    monkeypatch.setattr(Shifts, "draw", staticmethod(partial(Shifts.draw, few=True)))
    whole = joint_independence_test(table, n_permutations=99, rng=0)
    monkeypatch.setattr(joint_independence, "MOST_WHOLE", 10)
    found = joint_independence_test(table, n_permutations=99, rng=0)
    assert found.method.endswith("dHSIC at 120 landmarks")
    assert 0.95 * whole.statistic < found.statistic < (1 + 1e-5) * whole.statistic
    assert (found.null.draws < (1 + 1e-4) * whole.null.draws).all()
    assert np.corrcoef(found.null.draws, whole.null.draws)[0, 1] > 0.95
    scaled = joint_independence_test(table, 1e9 * mm.kernels.Delta(), n_permutations=99, rng=0)
    assert scaled.pvalue == found.pvalue
    with pytest.raises(ColumnError, match="c is constant"):
        joint_independence_test({**table, "c": ["u"] * 120}, mm.kernels.Delta(), rng=0)


def test_two_variables_are_hsic():
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    y = x + rng.normal(size=60)
    joint = joint_independence_test([x, y], RBF(1.0), rng=0)
    assert joint.statistic == pytest.approx(mm.independence_test(x, y, RBF(1.0), rng=0).statistic, rel=1e-4)
    assert joint.reject()


def test_three_variables_that_are_independent_in_pairs():
    rng = np.random.default_rng(1)
    signs = rng.choice([-1.0, 1.0], size=(100, 2))
    table = {"a": signs[:, 0], "b": np.where(signs[:, 1] > 0, "up", "down"), "c": signs.prod(axis=1)}
    assert joint_independence_test(table, rng=0).pvalue < 0.01
    assert mm.independence_test(table["a"], table["c"], rng=0).pvalue > 0.01
    array = np.c_[signs, signs.prod(axis=1)]
    assert joint_independence_test(array, rng=0).pvalue < 0.01


def test_rescaling_changes_nothing():
    x, y, z = np.random.default_rng(2).normal(size=(3, 40))
    first = joint_independence_test([x, y, z + x], rng=0)
    assert joint_independence_test([1024 * x, y, (z + x) / 4096], rng=0).pvalue == first.pvalue
    assert joint_independence_test([x, y, z + x], rng=first.seed).statistic == first.statistic


def test_the_moments_of_the_limit_are_those_of_the_statistic():
    """Against 600 independent data sets: standard errors of about 2% and 7%."""
    rng = np.random.default_rng(3)
    n, d = 100, 3
    values = []
    for _ in range(600):
        grams = [RBF(1.0)(column) for column in rng.normal(size=(d, n))]
        values.append(n * by_hand(grams))
    draws = _gamma(grams, 100_000, rng).draws
    assert draws.mean() == pytest.approx(np.mean(values), rel=0.1)
    assert draws.std() == pytest.approx(np.std(values), rel=0.3)


def rejections(null, trials, n):
    rng = np.random.default_rng(4)
    found = 0
    for trial in range(trials):
        variables = [rng.normal(size=(n, 2)), rng.exponential(size=n), rng.integers(0, 3, n).astype(str)]
        found += joint_independence_test(variables, null=null, n_permutations=99, rng=trial).reject()
    return found


@pytest.mark.parametrize(("null", "most_whole"), [("permutation", 300), ("permutation", 10), ("gamma", 300)])
def test_level(null, most_whole, monkeypatch):
    monkeypatch.setattr(joint_independence, "MOST_WHOLE", most_whole)
    assert scipy.stats.binomtest(rejections(null, 150, 40), 150, 0.05).pvalue > FAILURE_RATE


@pytest.mark.slow
@pytest.mark.parametrize(("null", "most_whole"), [("permutation", 300), ("permutation", 10), ("gamma", 300)])
def test_level_at_length(null, most_whole, monkeypatch):
    monkeypatch.setattr(joint_independence, "MOST_WHOLE", most_whole)
    low, high = scipy.stats.binom.interval(0.99, 1000, 0.05)
    found = rejections(null, 1000, 100)
    assert low <= found <= high, found


LINE = np.arange(9.0)


def test_variables_that_do_not_vary_are_left_out_and_told():
    a, b = np.random.default_rng(5).normal(size=(2, 30))
    plain = joint_independence_test({"a": a, "b": b}, rng=0)
    found = joint_independence_test({"a": a, "flat": ["u"] * 30, "b": b}, rng=0)
    assert (found.pvalue, found.statistic) == (plain.pvalue, plain.statistic)
    assert "flat is constant: nothing depends on it, and it is left out." in found.warnings


@pytest.mark.parametrize(
    ("variables", "settings", "error", "message"),
    [
        ([LINE], {}, InputError, "expected at least 2"),
        ([LINE, LINE[:8], LINE], {}, ShapeError, r"variables\[1\] has 8"),
        ([LINE[:4], LINE[:4]], {}, EmptyError, "expected at least 5"),
        ({"a": LINE, "b": np.ones(9)}, {}, ColumnError, "b is constant"),
        ([LINE, np.ones(9)], {"kernel": RBF(1.0)}, ColumnError, r"variables\[1\] is constant"),
        ([LINE, LINE + np.nan], {}, NonFiniteError, r"variables\[1\]"),
        (LINE, {}, ShapeError, "expected a list of variables"),
        ([LINE, LINE], {"null": "bootstrap"}, ParameterError, "'auto', 'permutation', 'gamma', 'spectral'"),
        ([LINE, LINE, LINE], {"kernel": (None, None)}, KindError, "a sequence of 3"),
        ([LINE, LINE], {"kernel": (None, [RBF(1.0), RBF(2.0)])}, ParameterError, "2 kernels were given"),
        ([np.arange(5001.0)] * 2, {"null": "permutation"}, InputError, "at most 5000"),
    ],
)
def test_bad_input(variables, settings, error, message):
    with pytest.raises(error, match=message):
        joint_independence_test(variables, **settings)


def test_points_that_are_all_different_say_nothing():
    x = 100 * np.random.default_rng(0).normal(size=(3, 40))
    result = joint_independence_test(list(x), mm.kernels.RBF(1e-6), rng=0)
    assert result.pvalue == 1.0
    assert "the same under every permutation" in result.warnings[0]


def test_kernel_values_beyond_single_precision():
    x, y = np.random.default_rng(0).normal(size=(2, 40))
    large = joint_independence_test([1e25 * x, 1e25 * y], mm.kernels.Linear(), n_permutations=99, rng=0)
    plain = joint_independence_test([x, y], mm.kernels.Linear(), n_permutations=99, rng=0)
    assert large.pvalue == plain.pvalue
    assert large.statistic == pytest.approx(1e100 * plain.statistic, rel=1e-3)


def sites(n=60, seed=0):
    """Three variables that know of each other only by the site."""
    rng = np.random.default_rng(seed)
    site = rng.integers(0, 3, n)
    a, b, c = 2 * site + rng.normal(size=(3, n))
    return pd.DataFrame({"a": a, "b": b, "c": c, "site": site.astype(str)})


def test_the_statistic_within_strata_is_the_norm_of_the_mean_difference():
    frame, kernel = sites(12), mm.kernels.RBF(1.5)
    found = mm.joint_independence_test(frame, kernel, within="site", n_permutations=19, rng=0)
    grams = [np.asarray(kernel(frame[name].to_numpy())) for name in "abc"]
    whole = np.zeros(12**3)
    for site in frame["site"].unique():
        rows = np.flatnonzero(frame["site"] == site)
        weights = np.zeros((12, 12, 12))
        weights[rows, rows, rows] = 1 / len(rows)
        weights[np.ix_(rows, rows, rows)] -= 1 / len(rows) ** 3
        whole += len(rows) / 12 * weights.ravel()
    product = np.einsum("ia,jb,kc->ijkabc", *grams).reshape(12**3, 12**3)
    assert found.statistic == pytest.approx(whole @ product @ whole, rel=1e-4)
    assert "dHSIC within strata" in found.method


def test_what_strata_explain_is_no_dependence():
    rejected = {"none": 0, "site": 0}
    for seed in range(30):
        frame = sites(seed=seed)
        for within in rejected:
            table, said = (frame, "site") if within == "site" else (frame[["a", "b", "c"]], None)
            settings = {"within": said, "n_permutations": 39, "rng": 0}
            rejected[within] += mm.joint_independence_test(table, **settings).reject()
    assert rejected["none"] == 30
    assert rejected["site"] <= scipy.stats.binom.isf(1e-5, 30, 0.05), rejected
    frame = sites(seed=1)
    frame["c"] = frame["c"] + 2 * frame["a"]
    assert mm.joint_independence_test(frame, within="site", n_permutations=199, rng=0).pvalue < 0.02
    blocks = mm.joint_independence_test(frame[["a", "b", "c"]], clusters=3, n_permutations=39, rng=0)
    assert "of 20 clusters" in blocks.method
    with pytest.raises(ParameterError, match="leave out null="):
        mm.joint_independence_test(frame, within="site", null="gamma")
    with pytest.raises(ColumnError, match="within names 'town'"):
        mm.joint_independence_test(frame, within="town")
