"""Wild cells: which are, which are not, where they stand among gaps, and how they are named."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest

import meanmap as mm
from meanmap.core.tables import wild
from meanmap.core.tables.wild import MOST, WildCells, wild_notes, without_wild_cells

ROWS = 500


def column(seed=0):
    return np.random.default_rng(seed).normal(size=ROWS)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_wild_cells_are_found_in_any_unit_and_the_farthest_comes_first(unit):
    x = 3 + column()
    x[[7, 40]] = 50, -2000
    found = WildCells.of(unit * x)
    assert found.rows.tolist() == [40, 7]
    np.testing.assert_allclose(found.times, np.abs([-2003, 47]), rtol=0.1)
    assert WildCells.of(unit * np.clip(x, -12, 12)) is None


def test_what_is_no_slip_is_not_wild():
    """As many as make a group, a scale of few values, few rows, a skewed column."""
    x = column()
    x[: MOST + 1] = 1e4
    assert WildCells.of(x) is None
    assert WildCells.of(np.r_[np.tile([0.0, 1.0, 2.0], 50), 1e4]) is None
    assert WildCells.of(np.r_[column()[:15], 1e4]) is None
    assert WildCells.of(np.exp(column())) is None


def test_rows_are_those_of_the_column_as_it_came():
    x = [None, *column().tolist()]
    x[5] = 1e6
    wild, note = without_wild_cells(x, "data['x']")
    assert np.flatnonzero(wild).tolist() == [5]
    assert note.startswith("data['x'] holds 1e+06 in row 5 (counted from 0), 1,000,000 standard deviations from all")
    assert note.endswith("If such values are right, learn from its logarithm or its rank.")
    assert "To keep it, pass kinds={'x': 'number'}." in without_wild_cells(x, "data['x']", "x")[1]
    days = np.datetime64("2024-01-01") + np.arange(40)
    days[3] = np.datetime64("9999-12-31")
    wild, note = without_wild_cells(days, "data['day']")
    assert np.flatnonzero(wild).tolist() == [3]
    assert "9999-12-31" in note
    assert "mean" not in note
    assert "To keep it, pass kinds={'day': 'time'}" in without_wild_cells(days, "data['day']", "day")[1]
    for other in (list("ab") * 30, np.tile([True, False], 30), np.zeros((60, 2))):
        assert not without_wild_cells(other, "x")[0].any()


def test_in_tests_a_wild_cell_is_named_with_its_sample_and_what_to_type():
    """Only cells that look like codes were: 48213.7 among values around 5 had no note."""
    x, y = 5 + column(0), 5 + column(1)
    y[17] = 48213.7
    (note,) = wild_notes([{"a": x}, {"a": y}], ["x", "y"])
    assert note.startswith("column 'a' of x and y holds 48213.7 in row 17 of y (counted from 0), 50,000 standard dev")
    assert note.endswith(
        "this cell counts as a number here, and as missing in networks. If it is wrong, correct it, or pass "
        "missing=[48213.7]."
    )
    assert not wild_notes([{"a": x}, {"a": y}], ["x", "y"], ["a"])
    assert not wild_notes([{"a": x}], ["x"])
    y[17] = 99999
    assert not wild_notes([{"a": x}, {"a": y}], ["x", "y"])  # a code, with a note of its own
    gaps = [None, *x.tolist(), 1e6]
    assert "1e+06 in row 501 (counted from 0)" in wild_notes([{"a": gaps}], ["x"])[0]


def test_rows_are_those_of_the_users_table_although_others_are_left_out():
    """The note named row 39 for row 40 if one row before it was left out."""
    x, y = column(0)[:80], column(1)[:80]
    x[40], y[3] = 1e6, np.nan
    settings = {"missing": "drop", "n_permutations": 99, "rng": 0}
    beside = {"a": column(2)[:80], "b": column(3)[:80]}
    found = [
        mm.independence_test(x, y, **settings),
        mm.independence_effect(x, y, missing="drop", rng=0),
        mm.two_sample_test({"a": x, "b": y}, beside, **settings),
    ]
    assert all(sum("1e+06 in row 40" in note for note in each.warnings) == 1 for each in found)
    strata = np.r_[["lost"], np.repeat(["u", "v"], [40, 39])].astype(object)
    strata[0] = None  # the design leaves out a row too
    with_design = mm.independence_test(x, y, within=strata, **settings)
    assert not any("in row" in note for note in with_design.warnings)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_the_unit_of_another_variable_does_not_matter(unit):
    """Values of x and y were pooled: beside a y of large numbers a wild cell of x had no note."""
    x, y = column(0)[:80], unit * column(1)[:80]
    x[40] = 1e6
    (note,) = (each for each in mm.independence_test(x, y, rng=0).warnings if "standard deviations from" in each)
    assert note.startswith("x holds 1e+06 in row 40 (counted from 0)")


@pytest.mark.parametrize("cell", [48213.7, 99999.0])
@pytest.mark.parametrize("gap", [None, -1.0])
def test_a_gap_elsewhere_in_its_row_hides_no_wild_cell(cell, gap):
    """Means of columns are those of all rows that have them: 99999 moved a mean from 53 to 119 without a word."""
    x = {"a": 5 + column(0)[:80], "b": column(1)[:80]}
    y = {"a": 5 + column(2)[:80], "b": column(3)[:80]}
    x["a"][40], x["b"][40] = cell, np.nan if gap is None else gap
    missing = "drop" if gap is None else [gap]
    for found in (mm.two_sample_test(x, y, missing=missing, rng=0), mm.two_sample_effect(x, y, missing=missing, rng=0)):
        assert sum(f"missing=[{cell:g}" in note for note in found.warnings) == 1
        assert not any("-1" in note for note in found.warnings)


@pytest.mark.parametrize("function", ["two", "several", "independent", "effect", "dependence"])
def test_functions_where_wild_cells_count_say_so_once(function):
    x, y = 5 + column(0)[:80], 5 + column(1)[:80]
    wild = y.copy()
    wild[17] = 48213.7

    def notes(other):
        made = {
            "two": lambda: mm.two_sample_test({"a": x}, {"a": other}, n_permutations=99, rng=0),
            "several": lambda: mm.k_sample_test([{"a": x}, {"a": other}], n_permutations=99, rng=0),
            "independent": lambda: mm.independence_test(x, other, n_permutations=99, rng=0),
            "effect": lambda: mm.two_sample_effect({"a": x}, {"a": other}, rng=0),
            "dependence": lambda: mm.independence_effect(x, other, rng=0),
        }
        return made[function]().warnings

    assert sum("48213.7 in row 17" in note for note in notes(wild)) == 1
    assert not any("in row" in note for note in notes(y))


def claims(seed=2, n=200):
    """Costs that are zero in most rows; of these seeds the largest one is far from all others."""
    rng = np.random.default_rng(seed)
    arm = np.where(rng.random(n) < 0.5, "a", "b")
    return arm, np.where(rng.random(n) < 0.85, 0, rng.lognormal(5, 1.3, n)).round(2)


@pytest.mark.parametrize("seed", [2, 45])
@pytest.mark.filterwarnings("ignore")
def test_the_largest_of_amounts_that_are_mostly_zero_counts(seed):
    """It was missing by default, and with it most of the mean."""
    arm, cost = claims(seed)
    wild, note = without_wild_cells(cost, "data['cost']", "cost")
    assert not wild.any()
    assert "this cell counts as a number, as amounts that are mostly zero have such tails. If it is wrong" in note
    assert note[:60] == wild_notes([{"cost": cost}], ["data"])[0].replace("column 'cost' of data", "data['cost']")[:60]
    network = mm.BayesianNetwork([("arm", "cost")])
    effect = network.effect({"arm": arm, "cost": cost}, "cost", of="arm", from_="a", to="b", rng=0)
    expected = cost[arm == "b"].mean() - cost[arm == "a"].mean()
    assert effect.difference().value == pytest.approx(expected, rel=0.01)


def test_slips_among_amounts_that_are_mostly_zero_are_wild():
    _, cost = claims(0)
    for slip in (1e7, 1e12):
        assert without_wild_cells(np.r_[cost, slip], "cost")[0].sum() == 1
    assert without_wild_cells(np.r_[cost, -1e4], "cost")[0].sum() == 1
    for unit in (1e-6, 1.0, 1e6):
        assert WildCells.of(unit * claims()[1]).tail


def test_amounts_that_are_mostly_zero_rarely_have_wild_cells():
    found = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        cells = WildCells.of(np.r_[np.zeros(170), rng.lognormal(5, rng.uniform(0.5, 2), 30)])
        found += cells is not None and not cells.tail
    assert binomtest(found, 400, 0.005, alternative="greater").pvalue > 1e-5


@pytest.mark.parametrize("sigma", [1.2, 2.0])
def test_the_tail_of_positive_amounts_is_not_called_wrong(sigma):
    """Of lognormal columns with σ = 2 one in ten had a cell "40 standard deviations from all others"."""
    rng = np.random.default_rng(18_200_030)
    draws = [np.exp(sigma * rng.normal(size=200)) for _ in range(300)]
    assert sum(WildCells.of(each) is not None for each in draws) <= binom.ppf(1 - 1e-5, 300, 0.005)
    slips = [np.r_[each, np.exp(8 * sigma) * np.median(each)] for each in draws]
    assert all(WildCells.of(each).rows.tolist() == [200] for each in slips[:50])


def test_slips_in_positive_columns_are_found_on_their_own_scale():
    rng = np.random.default_rng(18_200_031)
    for draw in (lambda: rng.normal(10, 2, 200), lambda: rng.poisson(4, 200) + 1.0, lambda: rng.uniform(1, 9, 200)):
        for _ in range(20):
            values = draw()
            assert WildCells.of(np.r_[values, 20 * np.median(values)]).rows.tolist() == [200]
    waits = rng.exponential(size=(50, 200))
    assert sum(WildCells.of(np.r_[each, 1000 * np.median(each)]) is not None for each in waits) == 50


@pytest.mark.parametrize("values", ["normal", "skewed", "two heaps"])
@pytest.mark.parametrize("cells", [[], [300.0], [-300.0, 60.0], [300.0] * MOST, [300.0] * (MOST + 1)])
def test_long_columns_are_read_in_part_only_where_that_proves_that_none_is_wild(values, cells, monkeypatch):
    rng = np.random.default_rng(3)
    x = rng.exponential(size=20_000) if values == "skewed" else rng.normal(size=20_000)
    x += np.where(values == "two heaps", 8.0 * (rng.random(20_000) < 0.5), 0.0)
    x[rng.permutation(20_000)[: len(cells)]] = cells
    found = WildCells.of(x)
    monkeypatch.setattr(wild, "LONG", np.inf)
    whole = WildCells.of(x)
    assert (found is None) == (whole is None)
    if whole is not None and found is not None:
        np.testing.assert_array_equal(found.rows, whole.rows)
