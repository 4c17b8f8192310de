"""One line, and the test that fits it."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import meanmap as mm
from meanmap.core.errors import ColumnError, KindError, ParameterError
from meanmap.stats.asking.grammar import Question

RNG = np.random.default_rng(0)
N = 96
SITE = np.repeat(["p", "q", "r"], 32)
FARM = pd.DataFrame(
    {
        "site": SITE,
        "new seed": np.tile(["no", "yes"], N // 2),
        "sun": RNG.normal(size=N) + 2.0 * (SITE == "r"),
        "water": RNG.normal(size=N),
        "plot": np.arange(N) % 4,
        "name": [f"plot {i}" for i in range(N)],
    }
)
FARM["harvest"] = FARM["water"] + 2.0 * (SITE == "r") + (FARM["new seed"] == "yes") + 0.5 * RNG.normal(size=N)
FEW = {"n_permutations": 99, "rng": 0}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a ~ b", (("a",), ("b",), ())),
        ("a+b~c", (("a", "b"), ("c",), ())),
        ("a, b ~ c | d , `e f`", (("a", "b"), ("c",), ("d", "e f"))),
        (". ~ a | d", (("b", "c", "e f"), ("a",), ("d",))),
        ("`a` ~ .", (("a",), ("b", "c", "d", "e f"), ())),
    ],
)
def test_lines(line, expected):
    found = Question.read(line, ["a", "b", "c", "d", "e f"])
    assert (found.left, found.right, found.given) == expected


@pytest.mark.parametrize(
    "line", ["a", "a ~", "~ a", "a ~ b ~ c", "a | b", "a ~ b | ", "a b ~ c", "a ~ `b", "", "a ~ + b"]
)
def test_lines_that_are_none(line):
    with pytest.raises(ParameterError, match='expected a question such as "harvest ~ sun"'):
        Question.read(line, ["a", "b", "c"])


def groups(value):
    return FARM[FARM["new seed"] == value][["harvest"]]


# What is asked, and the call that answers it.
CHOICES = {
    "harvest ~ `new seed`": lambda: mm.two_sample_test(groups("no"), groups("yes"), **FEW),
    "`new seed` ~ harvest": lambda: mm.two_sample_test(groups("no"), groups("yes"), **FEW),
    "harvest ~ site": lambda: mm.k_sample_test(FARM[["harvest", "site"]], by="site", **FEW),
    "harvest ~ sun": lambda: mm.independence_test(FARM[["harvest"]], FARM[["sun"]], **FEW),
    "harvest ~ sun | site": lambda: mm.independence_test(FARM[["harvest"]], FARM[["sun"]], within=FARM.site, **FEW),
    "harvest ~ `new seed` | site": lambda: mm.two_sample_test(
        FARM[["harvest", "new seed", "site"]], by="new seed", within="site", **FEW
    ),
    "harvest ~ sun | water": lambda: mm.conditional_independence_test(
        FARM[["harvest"]], FARM[["sun"]], FARM[["water"]], **FEW
    ),
    "harvest ~ sun | water, site": lambda: mm.conditional_independence_test(
        FARM[["harvest"]], FARM[["sun"]], FARM[["water", "site"]], **FEW
    ),
}


@pytest.mark.parametrize("line", CHOICES)
def test_the_test_that_fits(line):
    found, expected = mm.test(line, FARM, **FEW), CHOICES[line]()
    assert found.pvalue == expected.pvalue
    assert type(found) is type(expected)
    assert found.why[0].split(",")[0] in ("two_sample_test", "k_sample_test", "independence_test") or "|" in line
    assert "assumes" in found.why[-1]
    assert found.why[0] in str(found)
    assert found.to_dict()["why"] == list(found.why)


def test_numbers_become_groups_if_one_says_so():
    plain = mm.test("harvest ~ plot", FARM, **FEW)
    assert any("kinds={'plot': 'label'} makes them groups" in line for line in plain.why)
    assert "4-sample test" in mm.test("harvest ~ plot", FARM, kinds={"plot": "label"}, **FEW).method


def test_two_numbers_are_two_groups_unless_they_are_declared_numbers():
    """`harvest ~ treated`, with treated as 0 or 1, was a question of independence without differences or intervals."""
    table = {"harvest": FARM["harvest"].to_numpy(), "treated": (FARM["new seed"] == "yes").to_numpy(float)}
    found = mm.test("harvest ~ treated", table, **FEW)
    assert found.pvalue == mm.two_sample_test(table, by="treated", **FEW).pvalue
    assert found.why[0].startswith("two_sample_test, because 'treated' holds 2 numbers")
    assert found.differences[0].column == "harvest"
    assert "independence" in mm.test("harvest ~ treated", table, kinds={"treated": "number"}, **FEW).method
    assert mm.test("treated ~ harvest", table, **FEW).pvalue == found.pvalue


def test_text_and_rare_labels_are_no_groups():
    assert "independence" in mm.test("sun ~ name", FARM, **FEW).method


def test_rows_that_miss_a_stratum_are_left_out():
    holes = FARM.copy()
    holes.loc[[0, 40], "site"] = None
    found = mm.test("harvest ~ sun | site", holes, missing="drop", **FEW)
    assert "2 of 96 rows of the table were left out: a value is missing in 'site' (2)." in found.warnings
    kept = FARM.drop(index=[0, 40])
    assert found.pvalue == mm.test("harvest ~ sun | site", kept, **FEW).pvalue
    kept = mm.test("harvest ~ sun | site", holes, missing="category", **FEW)
    assert any("are a label" in warning for warning in kept.warnings)


def test_strata_and_clusters_beside_the_line():
    found = mm.test(". ~ `new seed`", FARM.drop(columns=["name", "plot"]), within="site", **FEW)
    assert found.columns == ("sun", "water", "harvest")
    assert "within each 'site'" in found.why[-1]
    assert "blocks of 4 rows" in mm.test("sun ~ water", FARM, clusters=4, **FEW).why[-1]
    given = mm.test("sun ~ harvest | water", FARM, within="site", clusters=2, **FEW)
    assert "within strata of 48 clusters" in given.method
    assert "blocks of rows are independent" in given.why[-1]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: mm.test("harvest ~ rain", FARM), ColumnError, "no column 'rain'; it has 'site'"),
        (lambda: mm.test("harvest ~ new seed", FARM), ParameterError, "into backticks: `new seed`"),
        (lambda: mm.test("new+seed ~ sun", FARM.rename(columns={"new seed": "new+seed"})), ColumnError, "`new.seed`"),
        (lambda: mm.test("sun ~ sun", FARM), ParameterError, "names 'sun' twice"),
        (lambda: mm.test("a ~ b", np.zeros((9, 2))), KindError, "the data have no names"),
        (lambda: mm.test("sun ~ .", FARM[["sun"]]), ParameterError, "leaves no column for the dot"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("question", "data", "expected"),
    [
        ("0 ~ 1", pd.DataFrame(np.eye(9)), "no names: name the columns of the DataFrame with text"),
        (FARM, "sun ~ water", "the question 'sun ~ water' comes second; expected the question first, then the table"),
        ("sun ~ water", FARM.to_dict("records"), "no names: make a table of these mappings, as pandas.DataFrame does"),
        ("sun ~ water", np.eye(9), "no names: pass a DataFrame"),
    ],
)
def test_data_without_names_are_answered_with_what_gives_them_some(question, data, expected):
    with pytest.raises(KindError, match=expected):
        mm.test(question, data)


LINES = ("harvest ~ sun", "harvest ~ sun | water", "harvest ~ sun | site", ". ~ site", "harvest ~ `new seed`")


@pytest.mark.parametrize("way", ["lazy", "narwhals", "a file", "Dask"])
@pytest.mark.parametrize("line", LINES)
def test_tables_that_lie_elsewhere_are_asked_like_those_in_memory(line, way, tmp_path):
    frame = pl.from_pandas(FARM)
    if way == "a file":
        frame.write_parquet(tmp_path / "farm.parquet")
    ways = {
        "lazy": lambda: frame.lazy(),
        "narwhals": lambda: pytest.importorskip("narwhals").from_native(frame.lazy()),
        "a file": lambda: tmp_path / "farm.parquet",
        "Dask": lambda: pytest.importorskip("dask.dataframe").from_pandas(FARM, npartitions=3),
    }
    found, plain = mm.test(line, ways[way](), **FEW), mm.test(line, FARM, **FEW)
    assert (found.pvalue, found.statistic) == (plain.pvalue, plain.statistic)
    assert found.why == plain.why


def test_of_tables_that_lie_elsewhere_only_what_is_asked_about_is_read():
    def refused(_: object) -> float:
        raise AssertionError("this column was read")

    lazy = pl.from_pandas(FARM).lazy().with_columns(pl.col("plot").map_elements(refused, return_dtype=pl.Float64))
    found = mm.test("sun ~ water", lazy, within="site", kinds={"plot": "label"}, **FEW)
    assert found.pvalue == mm.test("sun ~ water", FARM, within="site", kinds={"plot": "label"}, **FEW).pvalue
    with pytest.raises(ColumnError, match="clusters names 'town', and the table has no column 'town'"):
        mm.test("sun ~ water", lazy, clusters="town")
    with pytest.raises(ColumnError, match="no column 'rain'; it has 'site'"):
        mm.test("harvest ~ rain", lazy)


def test_iterators_have_no_names_to_ask_about():
    with pytest.raises(KindError, match="data is a generator; expected a table with names of columns"):
        mm.test("sun ~ water", (FARM for _ in range(1)))
