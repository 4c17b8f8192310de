"""Standard deviations that differ: closed forms, intervals that hold, and where they are said."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, levene

import meanmap as mm
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.samples.cells import Cells
from meanmap.stats.samples.comparing import differences, differences_of_all
from meanmap.stats.samples.deviations import _log_deviation, clear_ratio, deviations_of

FAILURE_RATE = 1e-5


def pages(rng, spread=3.0, n=400):
    return rng.normal(6, 2, n), rng.normal(6, spread, n)


def test_the_jackknife_is_that_of_leaving_out_each_row():
    x = np.random.default_rng(0).exponential(size=30)
    without = np.array([np.log(np.delete(x, i).std(ddof=1)) for i in range(30)])
    expected = np.sqrt(29 / 30 * np.sum((without - without.mean()) ** 2))
    assert _log_deviation(x) == pytest.approx((np.log(x.std(ddof=1)), expected))


def test_a_change_of_spread_alone_is_said_in_the_units_of_the_data():
    """It was a shift of all columns by .46 standard deviations."""
    x, y = pages(np.random.default_rng(0))
    for result in (mm.two_sample_test(x, y, n_permutations=99, rng=0), mm.two_sample_effect(x, y, rng=0)):
        (found,) = result.differences
        assert not found.clear
        assert found.shown
        assert found.deviations == pytest.approx((x.std(ddof=1), y.std(ddof=1)))
        assert found.ratio.estimate == pytest.approx(y.std(ddof=1) / x.std(ddof=1))
        assert 1.3 < found.ratio.low < 1.5 < found.ratio.high < 1.75
        assert f"; standard deviations {found.spread}" in str(result)
        said = json.loads(json.dumps(result.to_dict()))["differences"][0]
        assert said["ratio of deviations"]["low"] == found.ratio.low
    assert "not a difference of means" in str(mm.two_sample_effect(x, y, rng=0))


def test_a_column_that_differs_in_spread_alone_comes_first_among_many():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 300, 12))
    y[:, 7] *= 2
    names = [f"m{k}" for k in range(12)]
    result = mm.two_sample_test(*(pd.DataFrame(each, columns=names) for each in (x, y)), n_permutations=99, rng=0)
    assert [each.column for each in result.differences if each.ratio is not None] == ["m7"]
    assert result.differences[0].column == "m7"
    assert "for 12 comparisons, and those of standard deviations for 12" in str(result)
    head, first, *_ = result._tables()[0]
    assert (head[4], first[4]) == ("standard deviations", result.differences[0].spread)
    frame = result.differences.to_frame()
    assert frame.ratio_low[0] == result.differences[0].ratio.low
    assert frame.ratio.notna().sum() == 1


def test_of_several_samples_pairs_whose_spread_differs_are_named():
    rng = np.random.default_rng(2)
    (x, y), z = pages(rng), rng.normal(6, 2, 400)
    found = mm.k_sample_test({"a": x, "b": y, "c": z}, n_permutations=99, rng=0).differences
    assert {each.names for each in found if each.ratio is not None} == {("a", "b"), ("b", "c")}
    assert found.rows()[0][-1] == "standard deviations"


LAWS = {
    "normal": (lambda rng, n: rng.normal(size=n), 1.0),
    "skewed": (lambda rng, n: rng.exponential(size=n), 1.0),
    "heavy tails": (lambda rng, n: rng.standard_t(3, n), np.sqrt(3)),
    "costs": (lambda rng, n: np.exp(rng.normal(size=n)), np.sqrt(np.e * (np.e - 1))),
    "counts": (lambda rng, n: rng.poisson(3, n).astype(float), np.sqrt(3)),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("other", ["the same", "normal"])
def test_what_is_said_of_spreads_holds(law, other):
    """Of 300 pairs of samples with equal or other spreads at most 5% get an interval without the true ratio."""
    rng, wrong = np.random.default_rng(3), 0
    (draw, sd), (draw_other, sd_other) = LAWS[law], LAWS[law if other == "the same" else other]
    for trial in range(300):
        factor = (1.0, 1.6)[trial % 2]
        found = clear_ratio(draw(rng, 120), factor * draw_other(rng, 80), 0.05)
        wrong += found is not None and not found[0].low <= factor * sd_other / sd <= found[0].high
    assert wrong <= binom.ppf(1 - FAILURE_RATE, 300, 0.05)


def test_a_clear_spread_is_as_often_seen_as_by_a_test_of_variances():
    rng, seen, peer = np.random.default_rng(4), 0, 0
    for _ in range(100):
        x, y = rng.normal(size=200), 1.3 * rng.normal(size=200)
        seen += clear_ratio(x, y, 0.05) is not None
        peer += levene(x, y).pvalue < 0.05
    assert seen >= peer - 5


def test_spreads_hold_together_over_columns():
    rng, wrong = np.random.default_rng(5), 0
    for _ in range(200):
        x, y = rng.normal(size=(2, 100, 5))
        named = ({f"c{k}": each[:, k] for k in range(5)} for each in (x, y))
        wrong += any(each.ratio is not None for each in differences(*named))
    assert wrong <= binom.ppf(0.999, 200, 0.05)


@pytest.mark.parametrize(
    "values",
    [np.arange(60) % 2, np.full(60, 3.0), np.r_[np.zeros(59), 1.0], np.r_[np.zeros(58), 1.0, 2.0]],
    ids=["two values", "constant", "one other", "two others"],
)
def test_columns_without_a_spread_of_their_own_are_not_judged(values):
    assert clear_ratio(np.random.default_rng(6).normal(0, 9, 60), values.astype(float), 0.05) is None


def test_units_do_not_matter_even_where_squares_overflow():
    x, y = pages(np.random.default_rng(7))
    (plain,), (wild,) = differences({"a": x}, {"a": y}), differences({"a": 1e145 * x}, {"a": 1e145 * y})
    assert wild.ratio.low == pytest.approx(plain.ratio.low)
    assert wild.deviations == pytest.approx(tuple(1e145 * sd for sd in plain.deviations))


def of_pairs(n):
    return Exchange(np.tile(np.arange(n), 2), np.arange(2 * n), np.ones(2 * n))


def of_clusters(n, size):
    return Exchange(np.zeros(n, int), np.arange(n) // size, np.ones(n))


def test_spreads_of_pairs_and_clusters_are_those_of_the_rows():
    x, y = pages(np.random.default_rng(8), n=100)
    for design in (of_pairs(100), of_clusters(200, 1), of_clusters(200, 2)):
        (found,) = differences_of_all({"x": {"a": x}, "y": {"a": y}}, design=design)
        least = x.std(ddof=1), y.std(ddof=1)
        assert found.deviations == pytest.approx(least, rel=0.01)
        assert found.ratio.estimate == pytest.approx(least[1] / least[0], rel=0.01)
        assert found.ratio.low > 1


def test_spreads_within_strata_give_each_stratum_one_weight():
    """One sample has most rows in one stratum: pooled, it has another spread although it has none within strata."""
    rng = np.random.default_rng(9)
    strata = np.r_[np.repeat([0, 1], [380, 20]), np.repeat([0, 1], 200)]
    values = rng.normal(20.0 * strata, 1.0)
    design = Exchange(strata, np.arange(800), np.ones(800))
    x, y = values[:400], values[400:]
    assert y.std() > 2 * x.std()
    first, second = deviations_of(x, y, Cells.of((400, 400), design))
    assert first == pytest.approx(second, rel=0.1)
    assert differences_of_all({"x": {"a": x}, "y": {"a": y}}, design=design)[0].ratio is None


def test_spreads_are_not_compared_with_few_clusters_and_this_is_said():
    x, y = pages(np.random.default_rng(8), n=100)
    found = differences_of_all({"x": {"a": x}, "y": {"a": y}}, design=of_clusters(200, 4))
    assert found[0].ratio is None
    assert "standard deviations are not compared with fewer than 40 independent rows, clusters" in found.intervals


@pytest.mark.parametrize("design", ["clusters", "pairs", "weights"])
def test_what_is_said_of_spreads_holds_under_designs(design):
    """Of 300 pairs of samples that depend within their clusters or pairs, at most 5% miss the true ratio."""
    rng, wrong = np.random.default_rng(10), 0
    for trial in range(300):
        if design == "pairs":
            exchange, shared = of_pairs(120), np.tile(rng.normal(size=120), 2)
        else:
            exchange, shared = of_clusters(240, 3), np.repeat(rng.normal(size=80), 3)
        values = shared + rng.normal(size=240)
        if design == "weights":
            exchange = Exchange(exchange.strata, np.arange(240), rng.uniform(0.2, 2.0, 240))
            values = rng.exponential(size=240)
        factor = (1.0, 1.6)[trial % 2]
        cells = Cells.of((120, 120), exchange)
        found = clear_ratio(values[:120], factor * values[120:], 0.05, cells)
        wrong += found is not None and not found[0].low <= factor <= found[0].high
    assert wrong <= binom.ppf(1 - FAILURE_RATE, 300, 0.05)


@pytest.mark.parametrize("several", [False, True])
def test_a_test_under_a_design_names_the_column_whose_spread_differs(several):
    rng = np.random.default_rng(11)
    user = np.repeat(np.arange(150), 2)
    arm = np.array(["a", "b", "c"])[user % (3 if several else 2)]
    load = rng.normal(0.0, np.where(arm == "b", 2.0, 1.0))
    table = {"arm": arm, "user": user, "load": load, "z": rng.normal(size=300)}
    test = mm.k_sample_test if several else mm.two_sample_test
    result = test(table, by="arm", clusters="user", n_permutations=99, rng=0)
    assert [each.column for each in result.differences if each.ratio is not None] == ["load"] * (1 + several)
    assert "standard deviations" in str(result)
