"""Tests of closeness: level at the boundary, power on both sides, margins in words, and a million rows."""

import re

import numpy as np
import pytest
import scipy.stats

import meanmap as mm
from meanmap.core.errors import InputError, KindError, ParameterError
from meanmap.stats.samples.moved import moved_further

KERNEL = mm.kernels.RBF(1.5)
FAILURE_RATE = 1e-5


def pair(seed, n, shift):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)), rng.normal(shift, 1.0, size=(n, 2))


def rejections(claim, shift, margin, trials, n, seed):
    tests = (mm.closeness_test(*pair([seed, t], n, shift), margin, KERNEL, claim=claim, rng=t) for t in range(trials))
    return sum(test.reject() for test in tests)


def test_level_and_power():
    """The truth at the margin, and on either side of it."""
    most = scipy.stats.binom.ppf(1 - FAILURE_RATE, 25, 0.05)
    for claim, power in (("close", 0.0), ("far", 0.8)):
        assert rejections(claim, 0.4, 0.4, 25, 150, seed=0) <= most
        assert rejections(claim, power, 0.4, 25, 150, seed=1) > 20


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 400])
@pytest.mark.parametrize("margin", [0.1, 0.5])
@pytest.mark.parametrize("claim", ["close", "far"])
def test_level_at_the_boundary(claim, margin, n):
    found = rejections(claim, margin, margin, 1000, n, seed=2)
    print(f"closeness, {claim}, margin {margin}, n = {n}: {found} of 1000")
    assert found <= scipy.stats.binom.ppf(0.99, 1000, 0.05), found


def test_a_margin_of_two_samples():
    x, y = pair(3, 300, 0.3)
    apart, alike = pair(4, 300, 1.0), pair(5, 300, 0.2)
    assert mm.closeness_test(x, y, apart, KERNEL, rng=0).reject()
    assert not mm.closeness_test(x, y, alike, KERNEL, rng=0).reject()
    result = mm.closeness_test(x, y, apart, KERNEL, rng=0)
    assert "closer than the two reference samples are: shown at level 0.05" in str(result)


def test_a_margin_of_labels_is_a_share():
    rng = np.random.default_rng(6)
    x, y = rng.choice(["a", "b"], 2000, p=[0.5, 0.5]), rng.choice(["a", "b"], 2000, p=[0.52, 0.48])
    assert mm.closeness_test(x, y, 0.1, unit="share", rng=0).reject()
    assert not mm.closeness_test(x, y, 0.005, unit="share", rng=0).reject()
    with pytest.raises(KindError, match="no numeric column to shift: pass unit='share'"):
        mm.closeness_test(x, y, 0.1, rng=0)


def test_the_margin_has_no_unit():
    x, y = pair(7, 100, 0.2)
    one, other = (mm.closeness_test(x * unit, y * unit, 0.3, rng=0) for unit in (1.0, 1e6))
    assert one.pvalue == pytest.approx(other.pvalue, rel=1e-5)


@pytest.mark.slow
def test_a_million_rows_of_harmless_change():
    """A shift of a hundredth: seen by the test of equality, and no reason for alarm."""
    rng = np.random.default_rng(8)
    x, y = rng.normal(size=(10**6, 2)), rng.normal(0.01, 1.0, size=(10**6, 2))
    assert mm.two_sample_test(x, y, rng=0).pvalue < 1e-3
    assert mm.closeness_test(x, y, claim="far", rng=0).pvalue > 0.5
    assert mm.closeness_test(x, y, rng=0).pvalue < 1e-3


X, Y = pair(9, 20, 0.0)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"claim": "equal"}, ParameterError, "claim is 'equal'; expected 'close' or 'far'"),
        ({"unit": "mmd"}, ParameterError, "expected 'shift' or 'share'"),
        ({"margin": -1}, ParameterError, "expected a positive number"),
        ({"margin": 1.0, "unit": "share"}, ParameterError, "expected a share of rows below 1"),
        ({"margin": "small"}, ParameterError, "expected a number, such as 0.1, or two samples"),
        ({"margin": (X, X)}, InputError, "they give no margin"),
    ],
)
def test_errors(options, error, message):
    with pytest.raises(error, match=message):
        mm.closeness_test(X, Y, rng=0, **options)


def contaminated(rng, n):
    """One row of twenty is ten times as far out: the standard deviation is 2.44."""
    return np.where(rng.uniform(size=n) < 0.05, 10.0, 1.0) * rng.normal(size=n)


@pytest.mark.slow
def test_far_from_rows_without_the_tails_of_the_others_keeps_the_level_or_is_told():
    silent, repeats, shift = 0, 60, 0.5 * np.sqrt(0.95 + 5.0)
    for seed in range(repeats):
        rng = np.random.default_rng([14, seed])
        x, y = contaminated(rng, 60), contaminated(rng, 150) + shift
        found = mm.closeness_test(x, y, margin=0.5, claim="far", rng=0)
        silent += found.pvalue <= 0.05 and not found.warnings
    assert silent <= scipy.stats.binom.isf(1e-5, repeats, 0.05)  # 11; was 14


def test_tails_that_only_the_second_sample_shows_are_told():
    rng = np.random.default_rng(0)
    x, usual, far = (rng.normal(size=n) for n in (60, 142, 8))
    y = np.r_[usual, 10 * far]
    said = "y has heavy tails that the rows of x do not show"
    assert any(said in text for text in mm.closeness_test(x, y, 0.5, claim="far", rng=0).warnings)
    for other in (
        mm.closeness_test(x, y, 0.5, rng=0),
        mm.closeness_test(x, y, 0.2, claim="far", unit="share", rng=0),
        mm.closeness_test(x, usual, 0.5, claim="far", rng=0),
    ):
        assert not any(said in text for text in other.warnings)


def test_nothing_is_close_if_one_column_moved_further_than_the_margin():
    """A shift of all columns includes one by a standard deviation of a heavy tail, beside which one is not seen."""
    rng = np.random.default_rng(5)

    def sample(by):
        cost = np.where(rng.random(800) < 0.3, rng.lognormal(5, 1.3, 800), 0.0)
        return {"seconds": rng.normal(60 * by, 60, 800), "cost": cost, "revenue": rng.lognormal(4, 1.2, 800)}

    found = mm.closeness_test(sample(0.0), sample(1.0), margin=0.2, rng=0)
    assert found.pvalue == 1
    (note,) = (each for each in found.warnings if each.startswith("not close"))
    assert re.search(r"by more than 0.2 standard deviations: seconds by (0.9|1|1.1)\d?$", note)
    assert mm.closeness_test(sample(0.0), sample(0.0), margin=0.2, rng=0).reject()


def test_the_mean_of_a_column_at_the_margin_seldom_counts_as_further():
    rng = np.random.default_rng(6)
    further = 0
    for _ in range(300):
        x, y = rng.normal(size=(200, 3)), rng.normal([0.3, 0.0, 0.0], 1.0, size=(250, 3))
        further += bool(moved_further(x, y, ("x", "y"), 0.3))
    assert further <= scipy.stats.binom.isf(FAILURE_RATE, 300, 0.05 / 3)
