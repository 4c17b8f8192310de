"""Each column is compared by all rows that have it; the test, and all columns together, by complete rows."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, ttest_ind
from typer.testing import CliRunner

import meanmap as mm
from meanmap.cli.commands import app

FAILURE_RATE = 1e-5


def visits(rng, n=600):
    arm = rng.choice(["a", "b"], n)
    table = pd.DataFrame({"arm": arm, "spent": rng.normal(20, 5, n) + 1.5 * (arm == "b"), "rating": rng.normal(size=n)})
    table["bought"] = rng.choice(["no", "yes"], n)
    table.loc[rng.random(n) < 0.4, "rating"] = np.nan
    table.loc[rng.random(n) < 0.1, "bought"] = None
    return table


@pytest.mark.parametrize("of", [mm.two_sample_test, mm.two_sample_effect])
def test_a_gap_in_one_column_costs_the_others_nothing(of):
    """Two of five rows were lost for what was spent, and its difference with them."""
    table = visits(np.random.default_rng(0))
    result = of(table, by="arm", missing="drop", rng=0)
    by = {each.column: each for each in result.differences if each.label is None}
    for name in ("spent", "rating"):
        x, y = (table[name][table["arm"] == arm].dropna() for arm in "ab")
        expected = ttest_ind(y, x, equal_var=False).confidence_interval(1 - 0.05 / 5)
        assert by[name].rows == (len(x), len(y))
        assert (by[name].difference.low, by[name].difference.high) == pytest.approx(tuple(expected))
        assert f"; {len(x)} and {len(y)} rows" in str(result)
    assert sum(result.sizes) == len(table.dropna())
    assert "; each column by all rows that have it, shares of missing values by all rows, all else" in str(result)
    said = json.loads(json.dumps(result.to_dict()))["differences"]
    assert {tuple(each["rows"]) for each in said} == {each.rows for each in result.differences}


def test_groups_samples_arrays_and_several_samples_agree():
    table = visits(np.random.default_rng(1)).drop(columns="bought")
    whole = mm.two_sample_test(table, by="arm", missing="drop", rng=0).differences
    x, y = (part.drop(columns="arm") for _, part in table.groupby("arm"))
    apart = mm.two_sample_test(x, y, missing="drop", rng=0).differences
    arrays = mm.two_sample_test(x.to_numpy(), y.to_numpy(), missing="drop", rng=0).differences
    several = mm.k_sample_test({"a": x, "b": y}, missing="drop", rng=0).differences
    for found in (apart, arrays, several):
        assert [(each.difference, each.rows) for each in found] == [(each.difference, each.rows) for each in whole]
    coded = table.fillna({"rating": -999})
    assert mm.two_sample_test(coded, by="arm", missing=[-999], rng=0).differences == whole


def test_without_gaps_nothing_is_said_of_rows():
    table = visits(np.random.default_rng(2)).dropna()
    result = mm.two_sample_test(table, by="arm", missing="drop", rng=0)
    assert {each.rows for each in result.differences} == {None}
    assert "complete rows" not in str(result)


def test_kinds_that_are_declared_hold_for_all_rows_of_a_column():
    table = visits(np.random.default_rng(3)).assign(zip=lambda t: np.where(t["spent"] > 20, 10115, 10117))
    result = mm.two_sample_test(table, by="arm", missing="drop", kinds={"zip": "label"}, rng=0)
    (found,) = (each for each in result.differences if each.column == "zip")
    assert found.label == "10115" or found.label == "10117"
    assert sum(found.rows) == len(table)


@pytest.mark.parametrize(
    "design",
    [{"within": "site"}, {"clusters": "user"}, {"within": "country", "clusters": "user"}, {"weights": "weight"}],
)
@pytest.mark.parametrize("way", ["by", "samples", "several", "effect"])
def test_with_a_design_each_column_is_compared_as_if_it_were_alone(design, way):
    rng = np.random.default_rng(18_200_009)
    table = visits(rng).assign(site=np.arange(600) % 3, user=np.arange(600) // 4, weight=rng.uniform(1, 2, 600))
    table["arm"] = rng.choice(["a", "b"], 150)[table["user"]]
    table["country"] = table["user"] % 2
    table.loc[rng.random(600) < 0.05, [*design.values()][-1]] = np.nan

    def differences(table):
        if way == "effect":
            return mm.two_sample_effect(table, by="arm", missing="drop", rng=0, **design).differences
        parts = {name: part.drop(columns="arm") for name, part in table.groupby("arm")}
        if way == "by":
            found = mm.two_sample_test(table, by="arm", missing="drop", n_permutations=99, rng=0, **design)
        elif way == "samples":
            found = mm.two_sample_test(*parts.values(), missing="drop", n_permutations=99, rng=0, **design)
        else:
            found = mm.k_sample_test(parts, missing="drop", n_permutations=99, rng=0, **design)
        return found.differences

    kept = ["arm", *design.values()]
    whole = differences(table[[*kept, "spent", "rating", "bought"]])
    assert [each.column for each in whole if each.of_gaps] == ["rating", "bought"] or way != "by"
    for found in whole:
        name = found.column
        (alone,) = (each for each in differences(table[[*kept, name]]) if each.of_gaps == found.of_gaps)
        expected = (alone.first, alone.second, alone.clarity)
        assert (found.first, found.second, found.clarity) == pytest.approx(expected, rel=1e-9)
        counted = kept if found.of_gaps else [*kept, name]
        assert found.rows == tuple(table.dropna(subset=counted).groupby("arm").size())
        assert alone.rows is None or alone.of_gaps


@pytest.mark.parametrize("design", ["clusters", "within"])
def test_a_design_that_is_no_column_leaves_complete_rows(design):
    table = visits(np.random.default_rng(18_200_010))
    parts = [part.drop(columns="arm").dropna() for _, part in table.groupby("arm")]
    said = 4 if design == "clusters" else np.arange(sum(map(len, parts))) % 3
    found = mm.two_sample_test(*parts, n_permutations=99, rng=0, **{design: said})
    assert {each.rows for each in found.differences} == {None}
    if design == "clusters":
        gappy = [part.drop(columns="arm") for _, part in table.groupby("arm")]
        found = mm.two_sample_test(*gappy, missing="drop", n_permutations=99, rng=0, clusters=4)
        assert {each.rows for each in found.differences} == {None}


def test_samples_too_large_for_one_matrix_have_differences_too():
    """Above 20,000 rows there were none."""
    table = pd.concat([visits(np.random.default_rng(seed), 5000) for seed in range(5)], ignore_index=True)
    x, y = (part.drop(columns="arm") for _, part in table.groupby("arm"))
    found = mm.two_sample_test(x, y, missing="drop", n_permutations=99, rng=0).differences
    (spent,) = (each for each in found if each.column == "spent")
    assert spent.rows == (len(x), len(y))
    assert spent.first == pytest.approx(x["spent"].mean())
    several = mm.k_sample_test({"x": x, "y": y}, missing="drop", n_permutations=99, rng=0).differences
    assert [each.difference for each in several] == [each.difference for each in found]


def test_gaps_at_random_leave_the_intervals_right():
    """90% intervals of 300 tables in which one column has gaps at random, by their binomial bounds."""
    from meanmap.stats.samples.comparing import differences_of_all
    from meanmap.stats.samples.own_rows import own_rows

    rng, held = np.random.default_rng(5), {"even": 0, "skewed": 0}
    for _ in range(300):
        samples = {}
        for name, n, truth in (("x", 60, 0.0), ("y", 40, 0.5)):
            even, skewed = rng.normal(size=n) + truth, rng.exponential(size=n) + truth
            even[rng.random(n) < 0.3] = np.nan
            samples[name] = {"even": even, "skewed": skewed}
        own = own_rows(list(samples.values()), list(samples), "drop", None, None)
        kept = {name: ~np.isnan(each["even"]) for name, each in samples.items()}
        whole = {name: {key: column[kept[name]] for key, column in each.items()} for name, each in samples.items()}
        found = differences_of_all(whole, 0.7, own=own)  # three intervals of 90%, one of missing values
        for each in (each for each in found if not each.of_gaps):
            assert (each.rows is None) == (each.column == "even")  # whose rows are the complete ones
            held[each.column] += each.difference.low <= 0.5 <= each.difference.high
    low, high = binom.ppf([FAILURE_RATE, 1 - FAILURE_RATE], 300, 0.9)
    assert all(low <= count <= high for count in held.values())


def two_arms(seed, gaps, n=3000):
    """Two arms without any difference but in the share of missing ages."""
    rng = np.random.default_rng(seed)
    arm = np.arange(n) % 2
    table = pd.DataFrame({"arm": np.where(arm, "new", "control"), "age": rng.normal(40, 9, n)})
    table["paid"] = rng.random(n) < 0.3
    table.loc[rng.random(n) < np.where(arm, *gaps[::-1]), "age"] = np.nan
    return table


@pytest.mark.parametrize("way", ["by", "samples", "several", "effect"])
def test_shares_of_missing_values_have_a_row(way):
    table = two_arms(18_200_011, (0.1, 0.2))
    parts = {name: part.drop(columns="arm") for name, part in table.groupby("arm")}
    result = {
        "by": lambda: mm.two_sample_test(table, by="arm", missing="drop", rng=0),
        "samples": lambda: mm.two_sample_test(*parts.values(), missing="drop", rng=0),
        "several": lambda: mm.k_sample_test(parts, missing="drop", rng=0),
        "effect": lambda: mm.two_sample_effect(table, by="arm", missing="drop", rng=0),
    }[way]()
    first = result.differences[0]
    shares = tuple(part["age"].isna().mean() for part in parts.values())
    assert (first.column, first.label, first.rows) == ("age", "(missing)", (1500, 1500))
    assert (first.first, first.second) == pytest.approx(shares)
    assert first.clear
    assert first.of_gaps
    assert result.differences.comparisons == 3
    assert "missing age: " in str(result)
    assert "The share of rows where age is missing is " in first.sentence()


def test_the_answer_says_that_the_test_does_not_compare_missing_values(tmp_path):
    """12 and 15% of 60,000 ages were missing without a word."""
    result = mm.two_sample_test(two_arms(18_200_011, (0.1, 0.2)), by="arm", missing="drop", rng=0)
    assert result.pvalue > 0.05
    said = "A column differs in all rows, complete or not: age (share of missing values), as intervals show (95%, "
    assert f"  answer     {said}" in str(result)
    result.page(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert said in page
    assert f"The test itself is of the {sum(result.sizes)} complete rows of 3000: not rejected at level 0.05" in page
    assert "The share of rows where age is missing is " in page
    assert "Evidence" not in page
    same = mm.two_sample_test(two_arms(18_200_012, (0.1, 0.1)), by="arm", missing="drop", rng=0)
    assert "age" in [each.column for each in same.differences if each.of_gaps]
    assert "complete or not" not in str(same)


def known_of_few(seed=0, n=1500):
    """Customers of two arms, a plan that only buyers have, and scores that vary more in one arm."""
    rng = np.random.default_rng(seed)
    arm, bought = rng.choice(["control", "new"], n), rng.random(n) < 0.05
    new = arm == "new"
    table = {"arm": arm, "score": rng.normal(size=n) * np.where(new, 1.5, 1.0), "visits": rng.poisson(4.0, n) + new}
    return pd.DataFrame(table | {"price": np.where(bought, rng.normal(size=n), np.nan)})


@pytest.mark.parametrize("door", ["two", "several", "ask"])
def test_where_gaps_leave_few_rows_the_answer_is_of_all(door, tmp_path):
    """It was "Weak evidence of a difference in complete rows" of a few rows, without p-values of columns."""
    table = known_of_few()
    if door == "several":
        table = pd.concat([table, table[table.arm == "new"].assign(arm="other")])
    kernel = mm.kernels.Laplace(0.001)  # of few rows the test sees nothing
    options = {"missing": "drop", "kernel": kernel, "n_permutations": 99, "rng": 0}
    of = {"two": mm.two_sample_test, "several": mm.k_sample_test}
    result = mm.test(". ~ arm", table, **options) if door == "ask" else of[door](table, by="arm", **options)
    assert result.pvalue > 0.05
    answer = result.to_dict()["answer"]
    assert answer.startswith("Columns differ in all rows, complete or not: ")
    assert "visits (mean)" in answer
    assert "score (standard deviation)" in answer
    assert f"The test itself is of the {sum(result.sizes)} complete rows of {len(table)}: not rejected" in answer
    assert f"  answer     {result.beyond_test()}\n" in str(result)
    assert "excludes zero" not in str(result)
    pvalues = result.column_pvalues(result.seed)
    assert pvalues["visits"] <= 0.05
    assert f"visits {pvalues['visits']:.3g}" in str(result).split("p-values")[1]
    result.page(tmp_path / "page.html")
    assert result.beyond_test() in (tmp_path / "page.html").read_text()


def test_the_answer_is_the_same_at_the_command_line_and_in_its_json(tmp_path):
    known_of_few().assign(visits=4).to_csv(tmp_path / "t.csv", index=False)
    typed = ["test", "two-sample", str(tmp_path / "t.csv"), "--by", "arm", "--seed", "0"]
    page = tmp_path / "page.html"
    printed = CliRunner().invoke(app, [*typed, "--report", str(page)]).output
    answer = json.loads(CliRunner().invoke(app, [*typed, "--json"]).stdout)["answer"]
    assert answer.startswith("A column differs in all rows, complete or not: score (standard deviation)")
    assert f"come from the same distribution? {answer}\n" in printed
    assert f"  answer     {answer}\n" in printed
    assert answer in page.read_text()


def test_columns_that_are_said_to_differ_in_all_rows_rarely_do_by_chance():
    """Two families of intervals, each of which is so far from zero in at most 1% of tables without any difference: 300
    tables.
    """
    from meanmap.stats.samples.comparing import differences_of_all
    from meanmap.stats.samples.own_rows import own_rows

    rng, said = np.random.default_rng(18_200_021), 0
    for _ in range(300):
        tables = []
        for n in rng.integers(60, 400, 2):
            table = {name: rng.normal(size=n) for name in "abc"} | {"cost": rng.exponential(size=n)}
            tables.append({name: np.where(rng.random(n) < 0.3, np.nan, each) for name, each in table.items()})
        own = own_rows(tables, ["x", "y"], "drop", None, None)
        complete = [pd.DataFrame(each).dropna() for each in tables]
        said += bool(differences_of_all(dict(zip("xy", complete, strict=True)), own=own).in_all_rows())
    assert said <= binom.ppf(0.999, 300, 0.02)


def test_missing_labels_that_are_a_label_are_called_missing():
    table = two_arms(18_200_013, (0.1, 0.2)).assign(town=lambda t: np.where(t["age"].isna(), None, "Bonn"))
    result = mm.two_sample_test(table[["arm", "town", "paid"]], by="arm", missing="category", rng=0)
    (found,) = (each for each in result.differences if each.column == "town")
    assert str(found).startswith(("missing town: ", "town = Bonn: "))
    assert result.pvalue <= 0.05  # the test compares them


def test_intervals_of_missing_values_hold():
    """95% intervals of 300 tables with unequal gaps, three comparisons each, by their binomial bounds."""
    from meanmap.stats.samples.comparing import differences_of_all
    from meanmap.stats.samples.own_rows import own_rows

    rng, held, together = np.random.default_rng(18_200_014), 0, 0
    for _ in range(300):
        samples = {}
        for name, n, gaps in (("x", 300, 0.1), ("y", 200, 0.15)):
            each = rng.normal(size=(n, 2))
            each[rng.random(n) < gaps, 0] = np.nan
            samples[name] = {"gappy": each[:, 0], "whole": each[:, 1]}
        own = own_rows(list(samples.values()), list(samples), "drop", None, None)
        kept = {name: ~np.isnan(each["gappy"]) for name, each in samples.items()}
        whole = {name: {key: column[kept[name]] for key, column in each.items()} for name, each in samples.items()}
        found = differences_of_all(whole, own=own)
        assert found.comparisons == 3
        right = [each.difference.low <= 0.05 * each.of_gaps <= each.difference.high for each in found]
        held += right[[each.of_gaps for each in found].index(True)]
        together += all(right)
    assert held >= binom.ppf(FAILURE_RATE, 300, 1 - 0.05 / 3)
    assert together >= binom.ppf(FAILURE_RATE, 300, 0.95)
