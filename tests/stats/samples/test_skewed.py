"""Intervals and p-values of differences of means of few or very skewed values."""

import json

import numpy as np
import pytest
from scipy.stats import ttest_ind

import meanmap as mm
from meanmap.stats.samples.comparing import differences
from meanmap.stats.samples.skewed import law_of_means


def spent(rng, n, sigma=1.2):
    return np.where(rng.random(n) < 0.08, np.exp(3 + sigma * rng.normal(size=n)), 0.0)


def test_intervals_of_means_of_a_handful_of_skewed_values_hold():
    """A fifth of data sets without a difference had an interval that excludes zero, nearly all of means of 3 buyers."""
    excluded, sets = 0, 60
    for seed in range(sets):
        rng = np.random.default_rng([51, seed])
        found = differences(*({"revenue": spent(rng, n), "age": rng.normal(40, 12, n)} for n in (960, 40)))
        excluded += any(each.clear for each in found)
    assert excluded <= 8  # .05 of 60 are 3; P(9 or more) = .002


def test_permutations_hold_their_level_where_t_does_not():
    """Welch's p-values are below .01 in 7% of such data; p-values by permutation are uniform or larger."""
    pvalues = []
    for seed in range(120):
        rng = np.random.default_rng([52, seed])
        x, y = (np.exp(1.5 * rng.normal(size=n)) for n in (300, 10))
        clarity = (y.mean() - x.mean()) / np.sqrt(x.var(ddof=1) / 300 + y.var(ddof=1) / 10)
        pvalues.append(law_of_means(x, y, 9.0, 0.05).pvalue(clarity))
    below = np.mean(np.array(pvalues)[:, None] <= [0.05, 0.2, 0.5], axis=0)
    assert (below <= [0.05, 0.2, 0.5] + 3 * np.sqrt(np.array([0.05, 0.2, 0.5]) * [0.95, 0.8, 0.5] / 120)).all()
    assert below[1] > 0.08


@pytest.mark.parametrize("n", [12, 60])
def test_intervals_of_ordinary_columns_stay_those_of_welch(n):
    rng = np.random.default_rng(n)
    for draw in (rng.normal, lambda size: rng.normal(size=size) + 5 * (size == 900), rng.random):
        x, y = draw(size=900), draw(size=n)
        found = differences({"a": x}, {"a": y})[0]
        expected = ttest_ind(y, x, equal_var=False)
        assert found.pvalue == pytest.approx(expected.pvalue)
        ends = expected.confidence_interval(0.95)
        assert (found.difference.low, found.difference.high) == pytest.approx((ends.low, ends.high))


def test_with_too_few_values_there_is_no_interval():
    """There are 378 pairs of rows among 28: none is rare enough for an interval at this level."""
    x, y = np.exp(2 * np.random.default_rng(3).normal(size=26)), np.array([0.1, 0.2])
    found = differences({"revenue": x}, {"revenue": y}, confidence=0.999)[0]
    assert "(too few values for an interval)" in str(found)
    assert not found.clear
    said = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert said["low"] is None and said["high"] is None and said["estimate"] < 0  # noqa: PT018


def test_many_rows_are_permuted_in_units_and_signs_follow_the_samples():
    rng = np.random.default_rng(5)
    x, y = spent(rng, 30_000, 1.5), spent(rng, 2500, 1.5)
    one, other = law_of_means(x, y, 3000.0, 0.05), law_of_means(y, x, 3000.0, 0.05)
    assert one.draws is not None
    assert one.quantiles(0.05) == pytest.approx(tuple(-end for end in other.quantiles(0.05)[::-1]))
    assert one.quantiles(0.05)[0] < -2.1  # few large values: the lower tail is long


def test_a_single_column_of_numbers_has_a_pvalue_of_its_mean_and_no_advice_to_test_it_alone():
    """1.5% of one group spend fifteen times as much. Printed was: "test that column alone"."""
    rng = np.random.default_rng(1)
    group = np.where(rng.random(4000) < 0.5, "B", "A")
    x = np.exp(rng.normal(size=4000)) * np.where((group == "B") & (rng.random(4000) < 0.015), 15, 1)
    result = mm.test("x ~ group", {"x": x, "group": group}, n_permutations=99, rng=1)
    expected = ttest_ind(x[group == "B"], x[group == "A"], equal_var=False).pvalue
    assert result.pvalue > 0.05 > expected
    assert f"difference of means: p = {expected:.3g}; any difference: p = {result.pvalue:.3g}; these" in str(result)
    assert "weak evidence" not in str(result)
    assert result.to_dict()["differences"][0]["pvalue"] == pytest.approx(expected)
    assert f"Difference of means: p = {expected:.3g}" in result._as_page().sections[0].answer
    two = mm.two_sample_test({"x": x, "group": group, "z": rng.normal(size=4000)}, by="group", n_permutations=99, rng=1)
    assert all("pvalue" not in each for each in two.to_dict()["differences"])
    assert "difference of means: p" not in str(two)


def test_of_two_rows_that_say_the_same_the_plain_column_is_the_headline():
    """It was: "The share of rows with revenue = 0 is ... -10 points"."""
    for seed in range(10):  # rounding decided, so that it was wrong for six of ten data sets
        rng = np.random.default_rng(seed)
        bought = [rng.random(1500) < share for share in (0.08, 0.2)]
        found = differences(*({"revenue": np.where(b, rng.normal(20, 2, 1500), 0.0), "bought": b} for b in bought))
        assert next(each.column for each in found if each.label is not None) == "bought"
