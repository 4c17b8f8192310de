"""Gaps that go with other columns are named, and gaps at random are not."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binom, hypergeom

import meanmap as mm
from meanmap.bp.variables import Variables
from meanmap.core.tables.selection import _log_chances, selection_notes

ROWS = 600


def clinic(seed=0):
    """A cost that is zero in most rows, and its causes."""
    rng = np.random.default_rng(seed)
    severity = rng.gamma(4, 1, ROWS)
    pays = rng.random(ROWS) < 1 / (1 + np.exp(2.9 - 0.5 * severity))
    cost = np.where(pays, np.exp(5 + 1.3 * rng.normal(size=ROWS)), 0.0)
    return {
        "severity": severity,
        "cost": cost,
        "arm": rng.choice(["new", "old"], ROWS),
        "age": rng.normal(60, 12, ROWS),
    }


def notes(table, gone, of="severity", **settings):
    there = {name: np.ones(ROWS, bool) for name in table} | {of: ~np.asarray(gone)}
    return selection_notes(table, there, **settings)


def test_gaps_that_go_with_a_number_are_named_with_its_means():
    table = clinic()
    gone = (table["cost"] == 0) & (np.random.default_rng(1).random(ROWS) < 0.6)
    (note,) = notes(table, gone)
    means = f"{table['cost'].mean():.3g} in all rows and {table['cost'][~gone].mean():.3g}"
    assert note == (
        f"the gaps of 'severity' go with 'cost': its mean is {means} in those where 'severity' is known. Answers may "
        "hold only for rows without gaps, not for all."
    )


def test_gaps_that_go_with_labels_truth_values_and_times_are_named_with_what_differs():
    table = clinic()
    gone = (table["arm"] == "new") & (np.random.default_rng(1).random(ROWS) < 0.4)
    share, other = 100 * (table["arm"] == "new").mean(), 100 * (table["arm"][~gone] == "new").mean()
    words = f"in {share:.3g}% of all rows and in {other:.3g}% of those where 'severity' is known"
    assert f"go with 'arm': it is 'new' {words}" in notes(table, gone)[0]
    assert f"it is True {words}" in notes(table | {"arm": table["arm"] == "new"}, gone)[0]
    days = np.datetime64("2026-01-01") + np.arange(ROWS)
    (note,) = notes(table | {"age": days}, np.arange(ROWS) < 200)
    assert "with 'age': its mean is 2026-10-27 12:00 in all rows and 2027-02-04 12:00 in those" in note
    (note,) = notes(table | {"age": days - days[0]}, np.arange(ROWS) < 200)
    day = 24 * 3600
    assert f"its mean is {299.5 * day:.0f} s in all rows and {399.5 * day:.0f} s in those" in note


def test_a_share_is_named_where_means_agree():
    table = clinic() | {"age": np.linspace(-1, 1, ROWS)}
    (note,) = notes(table, np.abs(table["age"]) > 0.8)
    assert "'age': it is above" in note or "'age': it is at least" in note
    assert "in 98% of all rows and in 100%" in note or "in 2% of all rows and in 0%" in note or "in 90%" in note


def test_means_far_from_zero_have_the_digits_that_tell_them_apart():
    table = clinic() | {"age": 2010 + np.linspace(0, 1, ROWS)}
    (note,) = notes(table, np.arange(ROWS) < 150)
    assert "its mean is 2010.5 in all rows and 2010.6 in those" in note


def test_declared_kinds_decide_what_is_compared():
    codes = np.random.default_rng(3).choice([10, 20], ROWS)
    (note,) = notes(clinic() | {"age": codes}, codes == 10, kinds={"age": "label"})
    assert "'age': it is '10' in" in note
    assert "its mean is" in notes(clinic() | {"age": codes}, codes == 10)[0]


def test_only_what_is_asked_is_compared():
    table = clinic()
    gone = table["age"] > 65
    assert "with 'age'" in notes(table, gone)[0]
    assert notes(table, gone, against=["cost"]) == ()


def test_few_columns_are_named():
    table = {f"x{j}": np.arange(float(ROWS)) for j in range(9)}
    there = {name: np.arange(ROWS) >= (150 if j < 4 else 0) for j, name in enumerate(table)}
    found = selection_notes(table, there)
    assert len(found) == 3
    assert [note[:16] for note in found] == [f"the gaps of 'x{j}'" for j in range(3)]
    assert all("with 'x4'" in note and "They also go with 'x5', 'x6', 'x7' and 1 more." in note for note in found)


def test_small_differences_are_not_named_in_many_rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=400_000)
    there = rng.random(len(x)) > 0.2 + 0.01 * (x > 0)
    columns = {"x": x, "y": rng.normal(size=len(x))}
    assert selection_notes(columns, {"x": np.ones(len(x), bool), "y": there}) == ()


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5, 0.97])
def test_gaps_at_random_are_not_named(share):
    named, tables = 0, 200
    for seed in range(tables):
        table = clinic(seed) | {"rare": np.random.default_rng(seed).poisson(0.02, ROWS)}
        rng = np.random.default_rng([seed, 7])
        gone = {name: rng.random(ROWS) < share for name in ("severity", "cost", "arm")}
        there = {name: ~gone.get(name, np.zeros(ROWS, bool)) for name in table}
        named += bool(selection_notes(table, there))
    assert named <= binom.ppf(0.999, tables, 0.001)


def test_chances_are_at_least_exact_ones_and_close():
    rng = np.random.default_rng(0)
    for _ in range(100):
        n = int(rng.integers(5, 400))
        hits = rng.random((n, 1)) < rng.random()
        known = rng.random((n, 1)) < np.where(hits, rng.random(), rng.random())
        if not 0 < known.sum() < n or not 0 < hits.sum() < n:
            continue
        law = hypergeom(n, int(hits.sum()), int(known.sum()))
        both = int((hits & known).sum())
        exact = min(1.0, 2 * min(law.cdf(both), law.sf(both - 1)))
        found = np.exp(_log_chances(known, hits)[0, 0])
        assert found >= exact * (1 - 1e-6)
        assert found <= 1.5 * exact or exact > 1e-4


def test_units_order_and_containers_do_not_matter():
    table = clinic()
    gone = (table["cost"] == 0) & (np.random.default_rng(1).random(ROWS) < 0.6)
    gaps = table | {"severity": np.where(gone, np.nan, table["severity"])}
    names, order = list(gaps), np.random.default_rng(2).permutation(ROWS)
    frames = [gaps, pd.DataFrame(gaps), pl.from_pandas(pd.DataFrame(gaps)), pd.DataFrame(gaps).iloc[order]]
    frames += [{name: gaps[name] for name in names[::-1]}, gaps | {"age": 1000 * gaps["age"], "cost": gaps["cost"]}]
    told = [
        [note for note in Variables.of(frame, names, 10**6, "pairwise").notes if "the gaps of" in note]
        for frame in frames
    ]
    assert len(told[0]) == 1
    assert all(each == told[0] for each in told)
    found = Variables.of(gaps | {"cost": 1000 * gaps["cost"]}, names, 10**6, "drop").notes
    means = [f"{1000 * each.mean():.0f}" for each in (gaps["cost"], gaps["cost"][~gone])]
    assert any(f"'severity' go with 'cost': its mean is {means[0]} in all rows and {means[1]} in" in n for n in found)


def ordered_for_the_sick(rng, n=300):
    """A severity that is mostly known where the cost is high."""
    severity = rng.normal(size=n)
    cost = 10 + 3 * severity + rng.normal(size=n)
    known = rng.random(n) < np.where(cost > 10, 0.95, 0.3)
    arm = rng.choice(["a", "b"], n)
    return {"severity": np.where(known, severity, np.nan), "cost": cost, "age": rng.normal(size=n), "arm": arm}


def selective(notes):
    return [note for note in notes if "gaps of 'severity' go with 'cost': its mean is " in note]


def test_tests_and_graphs_note_gaps_that_go_with_another_column():
    table = ordered_for_the_sick(np.random.default_rng(0))
    numbers = {name: table[name] for name in ("severity", "cost", "age")}
    first, second = ({name: column[k::2] for name, column in numbers.items()} for k in (0, 1))
    settings = {"missing": "drop", "n_permutations": 99, "rng": 0}
    assert len(selective(mm.two_sample_test(table, by="arm", **settings).warnings)) == 1
    apart = selective(mm.two_sample_test(first, second, **settings).warnings)
    assert [note[:3] for note in apart] == ["x: ", "y: "]
    x, y = {"severity": table["severity"]}, {"cost": table["cost"]}
    assert len(selective(mm.independence_test(x, y, **settings).warnings)) == 1
    z = {"age": table["age"]}
    assert len(selective(mm.conditional_independence_test(x, y, z, missing="drop", rng=0).warnings)) == 1
    assert len(selective(mm.structure.pc(numbers, missing="drop", rng=0).report.notes)) == 1
    for missing in ("pairwise", "drop"):
        tree = mm.structure.chow_liu(numbers, missing=missing, half_samples=0, rng=0)
        assert len(selective(tree.notes)) == 1


def test_gaps_at_random_have_no_note_in_tests():
    rng = np.random.default_rng(1)
    table = ordered_for_the_sick(rng)
    table["severity"] = np.where(rng.random(300) < 0.3, np.nan, table["cost"])
    assert not selective(mm.two_sample_test(table, by="arm", missing="drop", n_permutations=99, rng=0).warnings)
    arrays = np.column_stack([table["severity"], table["cost"]])
    result = mm.two_sample_test(arrays[:150], arrays[150:], missing="drop", n_permutations=99, rng=0)
    assert not any("go with" in note for note in result.warnings)
