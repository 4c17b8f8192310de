"""Differences of columns within strata and pairs, of clusters and of weighted rows: closed forms, and coverage."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import meanmap as mm
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.samples.comparing import differences_of_all

FAILURE_RATE = 1e-5


def ends(found):
    return found.difference.estimate, found.difference.low, found.difference.high


def design(strata=None, units=None, weights=None, n=0):
    strata, units = np.zeros(n, int) if strata is None else strata, np.arange(n) if units is None else units
    return Exchange(strata, units, np.ones(n) if weights is None else weights)


def test_pairs_have_the_interval_of_a_paired_t_test():
    rng = np.random.default_rng(0)
    base = rng.normal(0, 3, 40)
    pairs = pd.DataFrame({"arm": np.repeat(["a", "b"], 40), "person": np.tile([f"p{k}" for k in range(40)], 2)})
    pairs["x"] = np.r_[base, base + 1] + rng.normal(size=80)
    result = mm.two_sample_test(pairs, by="arm", within="person", rng=0)
    (found,) = result.differences
    test = scipy.stats.ttest_rel(pairs["x"][40:], pairs["x"][:40])
    assert ends(found) == pytest.approx((pairs["x"][40:].mean() - pairs["x"][:40].mean(), *test.confidence_interval()))
    assert "within strata" in str(result)
    assert "a difference of" in str(result)
    (same,) = mm.two_sample_effect(pairs, by="arm", within="person", rng=0).differences
    assert ends(same) == pytest.approx(ends(found))


def test_clusters_of_one_size_have_the_interval_of_their_means():
    rng = np.random.default_rng(1)
    values = np.repeat(rng.normal(size=30), 4) + rng.normal(size=120)
    sold = {"first": {"sales": values[:60]}, "second": {"sales": values[60:]}}
    (found,) = differences_of_all(sold, design=design(units=np.repeat(np.arange(30), 4), n=120))
    means = values.reshape(30, 4).mean(axis=1)
    test = scipy.stats.ttest_ind(means[15:], means[:15], equal_var=False).confidence_interval()
    assert ends(found) == pytest.approx((means[15:].mean() - means[:15].mean(), *test))


def test_a_design_that_says_nothing_changes_means_not_at_all():
    rng = np.random.default_rng(2)
    parts = {"a": {"x": rng.normal(size=30)}, "b": {"x": rng.normal(size=20)}}
    (plain,), (designed,) = differences_of_all(parts), differences_of_all(parts, design=design(n=50))
    assert ends(designed) == pytest.approx(ends(plain))
    assert designed.medians == plain.medians


def test_strata_that_confound_are_left_out_of_the_difference():
    rng = np.random.default_rng(3)
    mobile = rng.random(2000) < 0.5
    arm = np.where(rng.random(2000) < np.where(mobile, 0.2, 0.8), "a", "b")
    paid = 5.0 * mobile - 0.5 * (arm == "b") + rng.normal(size=2000)
    table = pd.DataFrame({"arm": arm, "device": np.where(mobile, "mobile", "desk"), "paid": paid})
    (overall, *_) = mm.two_sample_test(table[["arm", "paid"]], by="arm", rng=0).differences
    (within,) = mm.two_sample_test(table, by="arm", within="device", rng=0).differences
    assert overall.difference.low > 1
    assert within.difference.low < -0.5 < within.difference.high < 0
    written = [
        (len(a) * len(b) / len(rows), b.mean() - a.mean())
        for _, rows in table.groupby("device")
        for a, b in [[rows["paid"][rows["arm"] == arm] for arm in "ab"]]
    ]
    sizes, each = np.array(written).T
    assert within.difference.estimate == pytest.approx(np.average(each, weights=sizes))


@pytest.mark.parametrize("kind", ["ragged clusters", "pairs", "weights", "shares", "strata of few rows", "zeros"])
def test_intervals_cover(kind):
    """90% intervals of 300 tables, by their binomial bound."""
    rng, held, number = np.random.default_rng(4), 0, 300
    for _ in range(number):
        truth = 0.5
        if kind == "pairs":
            base = rng.exponential(size=25)
            x, y = base + rng.normal(size=25), base + truth + 2 * rng.normal(size=25)
            how = design(strata=np.tile(np.arange(25), 2), n=50)
        elif kind == "weights":
            w = rng.uniform(0.5, 2, 80)
            x, y = rng.normal(size=40), truth + rng.normal(size=40)
            how = design(weights=w, n=80)
        elif kind == "strata of few rows":
            level = rng.normal(0, 4, 12)
            x, y = np.repeat(level, 2) + rng.normal(size=24), np.repeat(level, 3) + truth + 2 * rng.normal(size=36)
            how = design(strata=np.r_[np.repeat(np.arange(12), 2), np.repeat(np.arange(12), 3)], n=60)
        else:
            sizes = rng.integers(1, 8, 40)
            units = np.repeat(np.arange(40), sizes)
            effect = rng.normal(size=40)[units] + rng.normal(size=len(units))
            first = sizes[:20].sum()
            x, y = effect[:first], effect[first:] + truth
            how = design(units=units, n=len(units))
            if kind == "shares":
                x, y, truth = x > 0, y > 0.5, 0.0
            if kind == "zeros":
                x, y, truth = np.where(x > 0.3, x, 0.0), np.where(y > 0.8, y - 0.5, 0.0), 0.0
        found = differences_of_all({"x": {"a": x}, "y": {"a": y}}, 0.9, how)
        held += all(each.difference.low <= truth <= each.difference.high for each in found)
    low, high = scipy.stats.binom.ppf([FAILURE_RATE, 1 - FAILURE_RATE], number, 0.9)
    assert low <= held
    assert held <= high or kind == "zeros"  # where several intervals hold together


def test_a_share_of_zero_has_an_interval():
    parts = {"a": {"bought": np.zeros(40, bool)}, "b": {"bought": np.r_[np.ones(1, bool), np.zeros(39, bool)]}}
    for units in (np.arange(80), np.repeat(np.arange(20), 4)):
        (found,) = differences_of_all(parts, design=design(units=units, n=80))
        assert found.difference.low < 0 < found.difference.estimate < found.difference.high


def test_too_few_clusters_and_designs_of_the_users_own_have_none():
    class Own(Exchange):
        """Says nothing of which rows depend on one another."""

    rng = np.random.default_rng(5)
    parts = {"a": {"x": rng.normal(size=40)}, "b": {"x": rng.normal(size=40)}}
    assert not differences_of_all(parts, design=design(units=np.repeat(np.arange(8), 10), n=80))
    assert not differences_of_all(parts, design=Own(np.zeros(80, int), np.arange(80), np.ones(80)))


def test_samples_that_share_no_stratum_are_not_compared():
    rng = np.random.default_rng(6)
    site = [*["west"] * 20, *["west", "east"] * 20, *["east"] * 20]
    doses = pd.DataFrame({"dose": np.repeat(["none", "half", "whole"], [20, 40, 20]), "site": site})
    doses["effect"] = rng.normal(size=80)
    found = mm.k_sample_test(doses, by="dose", within="site", rng=0).differences
    assert {each.names for each in found} == {("dose=half", "dose=none"), ("dose=half", "dose=whole")}


def test_values_within_strata_are_called_adjusted_and_stand_beside_those_of_all_rows():
    """An arm had another mean in each pair of arms, without a word, and the picture showed a third one."""
    rng = np.random.default_rng(5)
    mobile = rng.random(600) < 0.5
    arm = np.where(rng.random(600) < np.where(mobile, 0.2, 0.8), "a", "b")
    paid = 5.0 * mobile - 0.9 * (arm == "b") + rng.normal(size=600)
    table = pd.DataFrame({"arm": arm, "device": np.where(mobile, "mobile", "desk"), "paid": paid})
    result = mm.two_sample_test(table, by="arm", within="device", n_permutations=99, rng=0)
    (found,) = result.differences
    raw = table.groupby("arm")["paid"].mean()
    assert found.unadjusted == pytest.approx((raw["a"], raw["b"]))
    assert f"unadjusted {raw['a']:.4g} and {raw['b']:.4g}" in str(result)
    assert "values are adjusted to the strata or weights" in str(result)
    (head, row) = result.differences.tables()[0]
    assert row[head.index("unadjusted")] == found.as_they_are
    page = result._as_page()
    assert "The picture shows all rows as they are" in page.sections[0].text
    assert page.sections[0].answer.endswith(found.sentence())


def test_rounding_errors_are_no_difference():
    """All people had the same visits, so that means were equal but for 1e-16: 11 of 100 such tables "differed"."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        who = np.repeat(np.arange(60), 4)
        arm = np.repeat(rng.random(60) < 0.5, 4)
        table = {"dose": np.tile([0.1, 0.7, 1.3, 2.9], 60), "age": rng.normal(size=240)}
        samples = {str(k): {name: each[arm == k] for name, each in table.items()} for k in (False, True)}
        units = np.concatenate([who[~arm], who[arm]])
        design = Exchange(np.zeros(240, int), units, np.ones(240))
        (dose,) = (each for each in differences_of_all(samples, design=design) if each.column == "dose")
        assert (dose.difference.low, dose.difference.estimate, dose.difference.high) == (0, 0, 0)
        assert not dose.shown
