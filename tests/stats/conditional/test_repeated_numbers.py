"""Numbers in z that repeat are conditioned on as numbers and as labels, which is one hypothesis."""

import numpy as np
import pytest

import meanmap as mm
from meanmap.core.errors import ShapeError
from meanmap.stats.conditional.variables import read_given


def sites(seed, number=40, rows=8):
    """Sites with an effect each on x and on y, which have nothing else in common; numbers of sites in no order."""
    rng = np.random.default_rng([seed, 39])
    site, effect = np.repeat(np.arange(number), rows), rng.normal(size=number)
    x, y = effect[site] + rng.normal(size=(2, number * rows))
    return {"x": x, "y": y, "site": rng.permutation(number)[site]}


def test_sites_that_are_numbers_are_labels_too():
    tables = [sites(seed) for seed in range(8)]
    found = [mm.test("x ~ y | site", table, n_permutations=99, rng=0) for table in tables]
    assert sum(result.pvalue <= 0.05 for result in found) <= 3  # fails once in 2000 times; it was 8
    table = tables[0]
    shifted = dict(table, y=table["y"] + 0.5 * table["x"])
    assert mm.test("x ~ y | site", shifted, n_permutations=99, rng=0).pvalue <= 0.05


def test_whatever_asks_about_z_reads_it_so():
    table = sites(1)
    graph = mm.pc({name: table[name] for name in ("x", "y", "site")}, rng=0)
    assert not any({"x", "y"} == set(edge) for edge in (*graph.directed, *graph.undirected))
    assert mm.conditional_independence_effect("x", "y", "site", data=table, rng=0).correlation.low == 0.0
    for method in ("residuals", "features"):
        options = {"method": method, "n_permutations": 99, "rng": 0}
        assert mm.conditional_independence_test("x", "y", "site", data=table, **options).pvalue > 0.02


def test_sites_beside_another_column():
    table = sites(2)
    rng = np.random.default_rng(0)
    time = rng.normal(size=len(table["x"]))
    x, y = table["x"] + np.sin(2 * time), table["y"] + time**2
    given = {"time": time, "site": table["site"] * 2.54}
    assert mm.conditional_independence_test(x, y, given, n_permutations=99, rng=0).pvalue > 0.02
    assert mm.conditional_independence_test(x, y + 0.5 * table["x"], given, n_permutations=99, rng=0).pvalue <= 0.02


def test_columns_are_numbers_first_and_their_values_last():
    number, label = np.arange(96) % 6, np.array(["a", "b"])[np.arange(96) // 48]
    read = read_given({"number": number, "label": label, "other": np.sqrt(np.arange(96))})
    assert read.numbers.shape == (96, 2)
    assert read.indicators.shape == (96, 8)
    assert (read.single, read.doubled) == (4, 6)
    of_values = read.columns[:, read.single :]
    np.testing.assert_allclose(of_values, (number[:, None] == np.arange(6)) - 1 / 6)
    strata = read.within(np.arange(96) % 3)
    assert (strata.single, strata.doubled) == (7, 6)
    np.testing.assert_array_equal(strata.columns[:, strata.single :], of_values)


@pytest.mark.parametrize("rows_of", [lambda i: i % 2, lambda i: i % 13, lambda i: i * 1.0, lambda i: i // 5 * 5])
def test_two_values_and_values_with_few_rows_are_numbers_alone(rows_of):
    number = rows_of(np.arange(96))
    read = read_given(number)
    assert read.doubled == read.indicators.shape[1] == 0


def test_values_that_are_too_many_are_told():
    number = np.arange(2010) % 201
    read = read_given({"shop": number, "kind": np.arange(2010) % 3})
    assert read.doubled == 3
    (note,) = read.notes
    assert "column 'shop' of z has 201 different numbers, each in 10 rows on average" in note
    assert "within=" in note


@pytest.mark.parametrize("number", [12, 250])
def test_numbers_with_enough_rows_each_are_strata_in_which_questions_are_exact(number):
    """Regressions on 12 sites of 8 rows rejected up to .19 of true null hypotheses, and on 250 sites .7 and more."""
    tables = [sites(seed, number) for seed in range(20 if number < 100 else 5)]
    found = [mm.test("x ~ y | site", table, n_permutations=99, rng=0) for table in tables]
    assert all("within" in result.method for result in found)
    assert sum(result.pvalue <= 0.05 for result in found) <= 4  # fails once in 300 times
    table = tables[0]
    as_labels = mm.test("x ~ y | site", table, kinds={"site": "label"}, n_permutations=99, rng=0)
    assert found[0].pvalue == as_labels.pvalue
    shifted = dict(table, y=table["y"] + 0.8 * table["x"])
    assert mm.test("x ~ y | site", shifted, n_permutations=99, rng=0).pvalue <= 0.05


def test_why_says_what_becomes_of_numbers():
    table = sites(0)
    table |= {"half": table["site"] % 2, "few": np.arange(320) // 5, "smooth": np.linspace(0, 1, 320)}
    text = np.char.add("s", table["few"].astype(str))
    why = mm.test("x ~ y | site", table, n_permutations=19, rng=0).why
    assert "within each 'site'" in why[-1]
    why = mm.test("x ~ y | site, smooth", table, n_permutations=19, rng=0).why
    assert why[0].endswith("because 'site' and 'smooth' after | hold numbers, too many for strata.")
    assert why[1].endswith("'site' as a number, and of each of its 40 values separately, is removed.")
    assert "within each 'half'" in mm.test("x ~ y | half", table, n_permutations=19, rng=0).why[-1]
    assert len(mm.test("x ~ y | few, smooth", table, n_permutations=19, rng=0).why) == 2
    why = mm.test("x ~ y | few", dict(table, few=text), n_permutations=19, rng=0).why
    assert why[0].endswith("'few' after | makes strata of fewer than 6 rows on average.")


@pytest.mark.slow
@pytest.mark.parametrize("law", ["sites", "counts", "years"])
def test_level_with_numbers_that_repeat(law):
    rejected, repeats = 0, 300
    for seed in range(repeats):
        rng = np.random.default_rng([seed, 40])
        if law == "sites":
            z = np.arange(240) % 30
            x, y = rng.normal(size=30)[z] + rng.normal(size=(2, 240))
        else:
            z = rng.poisson(3, size=200) if law == "counts" else rng.integers(1990, 2010, size=200)
            u = (z - z.mean()) / z.std()
            x, y = np.sin(u) + rng.normal(size=200), u**2 + rng.normal(size=200)
        rejected += mm.conditional_independence_test(x, y, z, n_permutations=199, rng=seed).pvalue <= 0.05
    assert rejected <= 29  # the .9995 quantile of binomial(300, .05)


@pytest.mark.parametrize("number", [12, 63])
def test_the_conditional_test_itself_is_exact_given_numbers_that_repeat(number):
    """Regressions rejected up to .19 of true null hypotheses given 12 sites of 8 rows, and .30 given 63."""
    tables = [sites(seed, number) for seed in range(100, 140 if number < 50 else 115)]
    found = [mm.conditional_independence_test("x", "y", "site", data=t, n_permutations=99, rng=0) for t in tables]
    rejected = sum(result.pvalue <= 0.05 for result in found)
    assert rejected <= (7 if number < 50 else 4)  # the .998 quantiles of binomial(40, .05) and (15, .05)
    assert all("within strata" in result.method for result in found)
    assert f"z has {number} different values, each in 8 rows on average" in found[0].warnings[-1]
    assert "method='kci'" in found[0].warnings[-1]


def test_pc_asks_within_sites():
    found = [mm.pc({name: sites(seed, 63)[name] for name in ("x", "y", "site")}, rng=0) for seed in range(6)]
    joined = [{"x", "y"} in map(set, (*graph.directed, *graph.undirected)) for graph in found]
    assert sum(joined) <= 2  # fails once in 400 times


def test_counts_that_act_as_numbers_lose_little_power():
    found = {"auto": 0, "kci": 0}
    for seed in range(40):
        rng = np.random.default_rng([seed, 42])
        z = rng.poisson(3, 200)
        x = z + rng.normal(size=200)
        y = z + 0.3 * (x - z) + rng.normal(size=200)
        for method in found:
            result = mm.conditional_independence_test(x, y, z, method=method, n_permutations=99, rng=0)
            found[method] += result.pvalue <= 0.05
    assert found["auto"] >= found["kci"] - 8  # two standard errors of a difference of .1 and .9


def test_strata_of_a_design_and_values_of_z_are_strata_together():
    rng = np.random.default_rng(0)
    z, within = np.arange(240) % 3, np.arange(240) // 120
    x = y = rng.normal(size=6)[3 * within + z]
    x, y = x + rng.normal(size=240), y + rng.normal(size=240)
    result = mm.conditional_independence_test(x, y, z, within=within, n_permutations=99, rng=0)
    assert "within strata" in result.method
    assert result.pvalue > 0.02
    assert "6 different values, each in 40 rows" in result.warnings[-1]
    with pytest.raises(ShapeError, match=r"x has 239, y has 240, z has 240 points"):
        mm.conditional_independence_test(x[:-1], y, z)


def test_codes_with_few_rows_are_regressed_on_and_the_other_reading_is_told():
    table = sites(0, 60, 3)
    result = mm.conditional_independence_test("x", "y", "site", data=table, rng=0)
    (note,) = (each for each in result.warnings if "different whole numbers" in each)
    assert note.startswith("z has 60 different whole numbers, each in 3.0 rows on average, and counts as a number")
    other = mm.independence_test("x", "y", within="site", data=table, rng=0)
    assert other.pvalue > 0.05 > result.pvalue
    assert note.endswith("ask independence_test(x, y, within=z).")


def test_a_last_site_with_fewer_rows_leaves_strata():
    """Sites of eight rows but the last were below a bound of eight on average, and .34 of true nulls rejected."""
    found = rejected = 0
    for seed in range(30):
        rng = np.random.default_rng([seed, 43])
        site, effect = np.arange(100) // 8, rng.normal(size=(13, 10))
        x, y = effect[site] + rng.normal(size=(2, 100, 10))
        result = mm.conditional_independence_test(x, y, rng.permutation(13)[site], n_permutations=99, rng=0)
        found, rejected = found + ("within strata" in result.method), rejected + (result.pvalue <= 0.05)
    assert found == 30
    assert rejected <= 6  # fails once in 300 times


def test_codes_that_are_left_to_regressions_are_told_of():
    """Wherever rows are not permuted within them: beside numbers, with clusters, in effects and among many rows."""
    table = sites(3, number=40, rows=6)
    x, y, z = table["x"], table["y"], table["site"]
    wide = {"time": np.random.default_rng(0).normal(size=len(z)), "site": z}
    result = mm.conditional_independence_test(x, y, wide, n_permutations=99, rng=0)
    (note,) = (each for each in result.warnings if "different whole numbers" in each)
    assert note.startswith("column 'site' of z has 40 different whole numbers, each in 6.0 rows on average, and is")
    assert note.endswith("If they are codes (of sites, people), pass them as within=, too.")
    within = mm.conditional_independence_test(x, y, wide, within=z, n_permutations=99, rng=0)
    assert not any("different whole numbers" in each for each in within.warnings)
    people = np.repeat(np.arange(120), 2)
    for found in (
        mm.conditional_independence_test(x, y, z, clusters=people, n_permutations=99, rng=0),
        mm.conditional_independence_effect(x, y, z, rng=0),
    ):
        assert any(each.startswith("z has 40 different whole numbers") for each in found.warnings)
    inside = mm.conditional_independence_effect(x, y, z, within=z, rng=0)
    assert not any("different whole numbers" in each for each in inside.warnings)
    assert inside.correlation.low == 0.0


@pytest.mark.parametrize(
    ("rows", "said"), [(6000, "within=z)."), (21_000, "within=z) of whole sites, 20000 rows at most.")]
)
def test_codes_of_many_rows_are_told_of(rows, said):
    table = sites(4, number=rows // 6, rows=6)
    result = mm.conditional_independence_test("x", "y", "site", data=table, n_permutations=99, rng=0)
    (note,) = (each for each in result.warnings if "different whole numbers" in each)
    assert note.startswith(f"z has {rows // 6} different whole numbers, each in 6 rows on average, and is regressed on")
    assert note.endswith(said)
    numbers = dict(table, site=table["site"] + table["x"].round(1))
    found = mm.conditional_independence_test("x", "y", "site", data=numbers, n_permutations=99, rng=0)
    assert not any("different whole numbers" in each for each in found.warnings)
