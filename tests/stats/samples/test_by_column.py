"""Means and shares of each column of two tables, against known values and over many data sets."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, ttest_ind

import meanmap as mm
from meanmap.stats.samples.comparing import differences
from meanmap.stats.samples.two_sample import samples_called


def tables(rng, n=200, m=100):
    sites = np.array(["north", "south", "east"])
    first = pd.DataFrame({"weight": rng.normal(70, 12, n), "site": rng.choice(sites, n), "paid": rng.random(n) < 0.3})
    second = pd.DataFrame(
        {"weight": rng.normal(80, 12, m), "site": rng.choice([*sites, "west"], m), "paid": rng.random(m) < 0.3}
    )
    return first, second


def test_means_have_the_interval_of_welch():
    first, second = tables(np.random.default_rng(0))
    (weight,) = differences(first[["weight"]], second[["weight"]])
    expected = ttest_ind(second["weight"], first["weight"], equal_var=False).confidence_interval(0.95)
    assert weight.first == pytest.approx(first["weight"].mean())
    assert weight.medians == pytest.approx((first["weight"].median(), second["weight"].median()))
    assert (weight.difference.low, weight.difference.high) == pytest.approx((expected.low, expected.high))


def test_the_clearest_difference_comes_first_and_is_printed():
    first, second = tables(np.random.default_rng(1))
    result = mm.two_sample_test(first, second, rng=0)
    assert [(each.column, each.label) for each in result.differences][:2] == [("weight", None), ("site", "west")]
    assert result.differences[1].first == 0
    assert "column     site = west: 0% in x, " in str(result)
    assert "column     mean weight: " in str(result)
    assert "column     paid = True: " in str(result)  # nothing clear, and the third of three
    assert "column     site = north: " not in str(result)
    assert "more in result.differences" in str(result)
    said = json.loads(json.dumps(result.to_dict()))["differences"]
    assert {each["column"] for each in said} == {"weight", "site", "paid"}


def test_all_clear_differences_are_printed_and_else_those_of_five_columns():
    rng = np.random.default_rng(8)
    names = [f"c{k}" for k in range(9)]
    x, y = (pd.DataFrame(rng.normal(size=(80, 9)), columns=names) for _ in range(2))
    for clear, shown in ((9, 9), (2, 5)):
        moved = y + np.where(np.arange(9) < clear, 3.0, 0.0)
        result = mm.two_sample_test(x, moved, n_permutations=99, rng=0)
        assert sum(each.clear for each in result.differences) == clear
        assert str(result).count("column     mean c") == shown


def test_an_interval_beside_a_test_that_does_not_reject_is_called_weak():
    """Both hold their levels; where they disagree one sentence says so."""
    seen = []
    for seed in range(60):
        x, y = np.random.default_rng(seed).normal(size=(2, 40, 3)) + np.array([[[0.0]], [[0.35]]]) * [1, 0, 0]
        result = mm.two_sample_test(*({f"c{k}": each[:, k] for k in range(3)} for each in (x, y)), rng=0)
        weak = result.pvalue > 0.05 and any(each.clear for each in result.differences)
        assert ("does not reject, but an interval excludes zero" in str(result)) == weak
        seen.append(weak)
    assert any(seen)


def test_differences_are_printed_as_a_table_also_after_they_were_saved(tmp_path):
    """It was a tuple in one line of two thousand characters."""
    samples = [
        {name: table[name].to_numpy() for name in ("weight", "paid")} for table in tables(np.random.default_rng(1))
    ]
    with samples_called("before", "after"):
        result = mm.two_sample_test(*samples, n_permutations=99, rng=0)
    mm.save(result, tmp_path / "result.mm")
    for found in (result.differences, mm.load(tmp_path / "result.mm").differences):
        head, *lines = str(found).splitlines()
        assert head.split(maxsplit=3) == ["what", "before", "after", f"after minus before ({found.level})"]
        assert lines[0].startswith("mean weight  ")
        assert len(lines) == len(found) == len(found.to_frame())
        assert max(map(len, lines)) < 120
        assert found[:1].each == (found[0],)
    assert found.to_frame().estimate[0] == found[0].difference.estimate


def test_without_a_clear_difference_rates_are_said_all_the_same():
    rng = np.random.default_rng(6)
    visits = pd.DataFrame({"arm": rng.choice(["A", "B"], 400), "bought": rng.choice(["no", "yes"], 400)})
    result = mm.test("bought ~ arm", visits, rng=0)
    (bought,) = result.differences
    shares = [(visits.bought[visits.arm == arm] == "yes").mean() for arm in "AB"]
    assert (bought.first, bought.second) == pytest.approx(tuple(shares))
    assert "column     bought = yes: " in str(result)


def test_intervals_hold_together():
    """All intervals of a data set hold in 95%: of 400 equal pairs of laws, 99.9% bounds."""
    rng, wrong = np.random.default_rng(2), 0
    for _ in range(400):
        first, second = tables(rng, 60, 40)
        second["weight"] -= 10
        second["site"] = rng.choice(first["site"].unique(), 40)
        wrong += any(each.clear for each in differences(first, second))
    assert wrong <= binom.ppf(0.999, 400, 0.05)


def test_times_differ_in_days():
    first = pd.DataFrame({"when": pd.date_range("2026-01-01", periods=9, freq="h")})
    second = first + pd.Timedelta(days=2)
    (when,) = differences(first, second)
    assert when.difference.estimate == pytest.approx(2)
    assert str(when).startswith("mean when: 2026-01-01T04:00 in x, 2026-01-03T04:00 in y, a difference of 2 (")


def test_groups_of_one_table_are_called_by_their_names():
    first, second = tables(np.random.default_rng(3))
    whole = pd.concat([first.assign(farm="old"), second.assign(farm="new")])
    assert " in farm=old, " in str(mm.two_sample_test(whole, by="farm", rng=0))


@pytest.mark.parametrize("of", [mm.two_sample_test, mm.two_sample_effect])
def test_columns_of_arrays_are_compared_as_those_of_tables(of):
    first, second = tables(np.random.default_rng(4))
    (named,) = of(first[["weight"]], second[["weight"]], rng=0).differences
    (alone,) = of(first["weight"].to_numpy(), second["weight"].to_numpy(), rng=0).differences
    (column,) = of(first[["weight"]].to_numpy(), second[["weight"]].to_numpy(), rng=0).differences
    assert (alone.column, column.column) == ("value", "column 0")
    assert alone.difference == column.difference == named.difference


def test_arrays_with_very_many_columns_are_not_compared_one_by_one():
    x, y = np.random.default_rng(0).normal(size=(2, 20, 101))
    assert not mm.two_sample_test(x, y, n_permutations=99, rng=0).differences
    assert len(mm.two_sample_test(x[:, :100], y[:, :100], n_permutations=99, rng=0).differences) == 100


def test_units_order_and_containers_do_not_matter():
    import polars as pl

    first, second = tables(np.random.default_rng(5))
    plain = differences(first, second)
    assert differences(pl.from_pandas(first), pl.from_pandas(second)) == plain
    shuffled = differences(first.sample(frac=1, random_state=0)[["site", "paid", "weight"]], second)
    for each, other in zip(plain, shuffled, strict=True):
        assert (each.column, each.label) == (other.column, other.label)
        assert each.difference.low == pytest.approx(other.difference.low)
    grams = differences(first.assign(weight=1000 * first["weight"]), second.assign(weight=1000 * second["weight"]))
    assert [each.clarity for each in grams] == pytest.approx([each.clarity for each in plain])


def test_numbers_have_as_many_digits_as_tell_them_apart():
    values = np.random.default_rng(0).normal(1e12, 1, 50)
    (found,) = differences({"a": values}, {"a": values + 3})
    _, first, second, _ = found.cells()
    assert first != second
    assert "medians 1e+12 and 1e+12" not in str(found)


@pytest.mark.parametrize(("labels", "said"), [(("ja", "nein"), "ja"), (("no", "yes"), "yes"), (("bus", "car"), "bus")])
def test_of_two_labels_the_one_that_says_yes_or_the_rarer_is_compared(labels, said):
    one, other = (np.repeat(labels, counts) for counts in ((10, 30), (15, 25)))
    (found,) = differences({"a": one}, {"a": other})
    assert (found.label, found.first, found.second) == (said, (one == said).mean(), (other == said).mean())


def test_the_lines_say_that_intervals_are_simultaneous():
    """They are wider than Welch's, and the line did not say why."""
    first, second = tables(np.random.default_rng(7))
    result = mm.two_sample_test(first, second, n_permutations=99, rng=0)
    number = len(result.differences)
    assert str(result).count("simultaneous") == 1
    assert f"intervals  95%, simultaneous for {number} comparisons" in str(result)
    assert f"y minus x (95%, simultaneous for {number} comparisons)" in str(result.differences)
    assert str(result.differences[:1]).splitlines()[0].endswith(f"simultaneous for {number} comparisons)")
    (head, *_) = result._tables()[0]
    assert head[3] == f"y minus x (95%, simultaneous for {number} comparisons)"
    alone = mm.two_sample_test(first[["weight"]], second[["weight"]], n_permutations=99, rng=0)
    assert "intervals  95%; differences are y minus x\n" in f"{alone}\n"
    assert "simultaneous" not in str(alone)


def costs(rng, n, share=0.7, mean=0.0):
    return np.where(rng.random(n) < share, 0.0, rng.lognormal(mean, 0.5, n))


def test_a_column_that_is_mostly_zeros_is_compared_by_the_share_of_zeros_and_by_the_mean_of_the_others():
    rng = np.random.default_rng(0)
    x, y = costs(rng, 500), costs(rng, 500, 0.6, 0.2)
    found = differences({"cost": x}, {"cost": y})
    by = {(each.label, each.without): each for each in found}
    assert set(by) == {(None, None), ("0", None), (None, "0")}
    assert by["0", None].difference.estimate == pytest.approx((y == 0).mean() - (x == 0).mean())
    expected = ttest_ind(y[y > 0], x[x > 0], equal_var=False).confidence_interval(1 - 0.05 / 3)
    others = by[None, "0"]
    assert (others.first, others.second) == (pytest.approx(x[x > 0].mean()), pytest.approx(y[y > 0].mean()))
    assert (others.difference.low, others.difference.high) == pytest.approx((expected.low, expected.high))
    assert str(by["0", None]).startswith("cost = 0: ")
    assert str(others).startswith("mean cost where not 0: ")
    assert others.to_dict()["without"] == "0"
    lines = str(mm.two_sample_test({"cost": x}, {"cost": x[::-1]}, n_permutations=99, rng=0)).splitlines()
    assert sum(line.startswith("  column") for line in lines) == 3  # although none is clear


@pytest.mark.parametrize(
    "column",
    [1 + np.arange(40) % 2, np.arange(40) % 3 * 1.0, np.r_[np.zeros(30), np.full(10, 2.0)]],
    ids=["two values", "less than half", "two values, one rare"],
)
def test_other_columns_of_numbers_are_compared_by_their_means_only(column):
    (only,) = differences({"a": column}, {"a": column})
    assert (only.label, only.without) == (None, None)


def test_a_sample_with_one_other_value_has_no_mean_of_the_others():
    zeros = np.zeros(20)
    found = differences({"a": np.r_[zeros, 1.0]}, {"a": np.r_[zeros, 2.0, 3.0]})
    assert {(each.label, each.without) for each in found} == {(None, None), ("0", None)}


@pytest.mark.parametrize("kind", [int, float])
def test_zeros_and_ones_are_compared_by_their_share(kind):
    """Welch's interval of the means was (-.0196 to .0593) of .0198, could leave -1 to 1, and had medians 0 and 0."""
    control, treatment = np.repeat([0, 1], [300, 6]).astype(kind), np.repeat([0, 1], [280, 14]).astype(kind)
    (found,) = differences({"bought": control}, {"bought": treatment})
    (truth,) = differences({"bought": control > 0}, {"bought": treatment > 0})
    assert (found.label, found.medians, found.deviations) == ("1", None, None)
    assert found.difference == truth.difference
    assert str(found).startswith("bought = 1: 1.96% in x, 4.76% in y, a difference of 2.8 (")
    (few,) = differences({"bought": [0, 0, 0]}, {"bought": [1, 1, 1]})
    assert few.difference.high <= 1


def test_which_group_minus_which_is_said_and_the_order_of_categories_is_kept():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"group": np.repeat(["new", "old"], 40), "y": rng.normal(size=80)})
    ordered = frame.assign(group=pd.Categorical(frame["group"], ["old", "new"]))
    for table, kinds, first, second in (
        (frame, None, "new", "old"),
        (ordered, None, "old", "new"),
        (frame, {"group": ("old", "new")}, "old", "new"),
    ):
        result = mm.two_sample_test(table, by="group", kinds=kinds, n_permutations=99, rng=0)
        assert f"differences are group={second} minus group={first}" in str(result)
        assert f"group={second} minus group={first} (95%)" in str(result.differences)
    several = mm.k_sample_test({name: {"y": rng.normal(size=20)} for name in "cba"}, n_permutations=99, rng=0)
    assert "differences are second minus first" in str(several)
    assert [each.names for each in several.differences[:1]] != [("a", "b")]


def test_each_row_of_the_frame_says_which_quantity_it_is():
    """There were two rows of a column of amounts, of all and of those not 0, that nothing told apart, and no rank
    correlation, median or number of rows, although the printed table and lines have them."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(2, 600))
    tables = []
    for k, r in enumerate((0.0, 0.8)):
        a = rng.normal(size=600)
        table = {"a": a * (1 + k), "b": r * a + np.sqrt(1 - r**2) * z[k], "cost": costs(rng, 600)}
        tables.append(pd.DataFrame(table | {"site": rng.choice(["n", "s", "e"], 600)}))
    tables[0].loc[:99, "a"] = np.nan
    result = mm.two_sample_test(*tables, missing="drop", n_permutations=99, rng=0)
    frame, found = result.differences.to_frame(), result.differences
    assert not frame[["column", "quantity"]].duplicated().any()
    assert list(frame.quantity[: len(found)]) == [each.quantity for each in found]
    assert {"mean", "mean where not 0", "share of 0", "share of missing values", "share of n"} < {*frame.quantity}
    (related,) = frame[frame.quantity == "rank correlation"].to_dict("records")
    assert (related["column"], related["estimate"]) == ("a and b", found.relations[0].estimate)
    a = frame[(frame.column == "a") & (frame.quantity == "mean")].iloc[0]
    (of_a,) = (each for each in found if (each.column, each.quantity) == ("a", "mean"))
    assert (a.first_median, a.second_median) == of_a.medians
    assert (a.first_sd, a.second_sd, a.ratio) == (*of_a.deviations, of_a.ratio.estimate)
    b = frame[(frame.column == "b") & (frame.quantity == "mean")].iloc[0]
    assert (b.first_rows, b.second_rows) == (600, 600)
    said = json.loads(json.dumps(result.to_dict()))
    assert [each["quantity"] for each in said["differences"]] == [each.quantity for each in found]
    effect = mm.two_sample_effect(*tables, missing="drop", rng=0)
    assert effect.to_dict()["correlations"] == said["correlations"]


def test_labels_that_are_counted_are_all_there():
    """A label without a clear difference was in no list, although intervals were simultaneous for it, too."""
    rng = np.random.default_rng(0)
    countries = ["DE", "AT", "CH", "FR", "IT"]
    x, y = (pd.DataFrame({"country": rng.choice(countries, 500)}) for _ in range(2))
    found = mm.two_sample_test(x, y, n_permutations=99, rng=0).differences
    assert {each.label for each in found} == {*countries}
    assert len(found) == found.comparisons == 5
