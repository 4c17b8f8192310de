"""Pre-whitening: likelihoods and innovations against dense formulas, levels before and after, bad input."""

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import binom, multivariate_normal

import meanmap as mm
from meanmap.core.errors import ColumnError, EmptyError, InputError, ParameterError, ShapeError
from meanmap.structure import prewhiten
from meanmap.structure.prewhitening import CORRELATIONS, SHARES, _likelihoods


def autoregressive(generator, rows):
    return lfilter([1], [1, -0.9], generator.normal(size=rows + 100))[100:]


def seasonal(generator, rows):
    angles = 2 * np.pi * np.arange(rows) / rows
    waves = (generator.normal() * np.sin(k * angles + generator.uniform(0, 6)) for k in range(1, 8))
    return sum(waves) + 0.5 * generator.normal(size=rows)


@pytest.mark.parametrize("kind", CORRELATIONS)
def test_likelihoods_are_those_of_the_dense_gaussian(kind):
    generator = np.random.default_rng(0)
    when = np.sort(generator.uniform(0, 10, 25))
    series = generator.normal(size=(25, 2))
    kernel = CORRELATIONS[kind](np.abs(when[:, None] - when) / 2.0)
    values, vectors = np.linalg.eigh(kernel)
    found = _likelihoods(values, vectors.T @ series, vectors.sum(axis=0))
    for s in (0, 4, 7):
        covariance = SHARES[s] * kernel + (1 - SHARES[s]) * np.eye(25)
        inverse = np.linalg.inv(covariance)
        for j in range(2):
            mean = inverse.sum(axis=0) @ series[:, j] / inverse.sum()
            left = series[:, j] - mean
            variance = left @ inverse @ left / 25
            exact = multivariate_normal.logpdf(series[:, j], np.full(25, mean), variance * covariance)
            # Ours leaves out the constants of the normal density.
            assert found[s, j] == pytest.approx(exact + 25 / 2 * (1 + np.log(2 * np.pi / 25)), abs=1e-6)


def test_innovations_are_what_earlier_values_do_not_predict():
    """Each is (y − E[y | earlier]) / sd under one of the processes that are tried, computed by conditioning."""
    generator = np.random.default_rng(1)
    when = np.sort(generator.choice(60, 40, replace=False)).astype(float)
    series = np.sin(when / 5) + 0.3 * generator.normal(size=40)
    white = prewhiten(series, when)
    y = (series - series.mean()) / series.std()
    spacing = (when[-1] - when[0]) / 39
    agree = []
    for correlation in CORRELATIONS.values():
        for lengthscale in np.geomspace(spacing, 20 * spacing, 9):
            for share in SHARES:
                k = share * correlation(np.abs(when[:, None] - when) / lengthscale) + (1 - share) * np.eye(40)
                inverse = np.linalg.inv(k)
                left = y - inverse.sum(axis=0) @ y / inverse.sum()
                new = np.empty(40)
                for t in range(40):
                    weights = np.linalg.solve(k[:t, :t], k[:t, t]) if t else np.zeros(0)
                    new[t] = (left[t] - weights @ left[:t]) / np.sqrt(k[t, t] - weights @ k[:t, t])
                agree.append(np.abs(new / new.std() - white).max())
    assert min(agree) < 1e-6


def test_autoregression_finds_its_own_noise():
    noise = np.random.default_rng(2).normal(size=400)
    series = lfilter([1], [1, -0.6, 0.5], noise)
    white = prewhiten(series, method="ar")
    assert white.shape == (400,)
    assert np.corrcoef(white[20:], noise[20:])[0, 1] > 0.98


@pytest.mark.parametrize("method", ["gp", "ar"])
def test_order_names_and_kinds_are_kept(method):
    generator = np.random.default_rng(3)
    days = np.arange(60.0)
    table = {"day": days, "a": autoregressive(generator, 60), "b": seasonal(generator, 60)}
    white = prewhiten(table, "day", method=method)
    assert white.names == ("a", "b")
    order = generator.permutation(60)
    shuffled = prewhiten({name: column[order] for name, column in table.items()}, "day", method=method)
    np.testing.assert_allclose(shuffled["a"], white["a"][order], atol=1e-9)
    array = prewhiten(np.column_stack([table["a"], table["b"]]), method=method)
    np.testing.assert_allclose(array[:, 1], white["b"], atol=1e-9)
    # Units do not matter.
    np.testing.assert_allclose(prewhiten(1000 * table["a"] + 5, method=method), array[:, 0], atol=1e-8)


def rejections(make, method, seeds):
    found = []
    for seed in seeds:
        generator = np.random.default_rng(seed)
        x, y = (make(generator, 150) for _ in range(2))
        if method is not None:
            x, y = prewhiten(np.column_stack([x, y]), method=method).T
        found.append(mm.independence_test(x, y, n_permutations=99, rng=seed + 10_000).reject(0.05))
    return sum(found)


def test_levels_by_day():
    """Independent series: rejected in most of 20 data sets as they are, within bounds of .05 when pre-whitened."""
    assert rejections(autoregressive, None, range(20)) >= 10
    for method in ("gp", "ar"):
        assert rejections(autoregressive, method, range(20)) <= binom.ppf(1 - 1e-4, 20, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("make", [autoregressive, seasonal])
def test_levels_are_lost_before_and_kept_after(make):
    assert rejections(make, None, range(200)) > 100
    for method in ("gp", "ar"):
        assert rejections(make, method, range(200)) <= binom.ppf(1 - 1e-3, 200, 0.05)


def test_dependence_is_not_washed_out():
    generator = np.random.default_rng(4)
    x = autoregressive(generator, 200)
    y = np.tanh(x) + 0.5 * generator.normal(size=200)
    for method in ("gp", "ar"):
        a, b = prewhiten(np.column_stack([x, y]), method=method).T
        assert mm.independence_test(a, b, rng=0).pvalue < 0.01


def test_bad_input():
    good = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ParameterError, match="method is 'arma'"):
        prewhiten(good, method="arma")
    with pytest.raises(EmptyError, match="table has 10"):
        prewhiten(good[:10])
    with pytest.raises(EmptyError, match="at most 2000 for method='gp': pass method='ar'"):
        prewhiten(np.arange(2001.0))
    with pytest.raises(ColumnError, match="'b' is not a series of numbers"):
        prewhiten({"a": good[:, 0], "b": ["x", "y"] * 15})
    with pytest.raises(ColumnError, match="'b' is constant"):
        prewhiten({"a": good[:, 0], "b": np.ones(30)})
    with pytest.raises(ColumnError, match="no column 'day'"):
        prewhiten({"a": good[:, 0]}, "day")
    with pytest.raises(ShapeError, match=r"time has shape \(3,\); expected \(30,\)"):
        prewhiten(good, [1, 2, 3])
    with pytest.raises(InputError, match="not equally spaced"):
        prewhiten(good, np.arange(30) ** 2, method="ar")
    with pytest.raises(InputError, match="time is the same for every row"):
        prewhiten(good, np.zeros(30))
