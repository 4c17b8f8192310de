"""Rows that are copies, as a join leaves them, are told of; rows that agree by chance or by design are not."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import meanmap as mm
from meanmap.core.tables.doubts import copied_columns, copied_rows

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(60, 3))
FRAME = pd.DataFrame(ROWS, columns=list("abc")).assign(label=RNG.choice(list("uv"), 60))
TWICE = FRAME.iloc[np.repeat(np.arange(60), 2)]
SAID = (
    "60 of 120 rows of x repeat another row in every column, but count as independent: if they are copies, remove them."
)


@pytest.mark.parametrize(
    "made",
    [
        lambda rows: rows,
        lambda rows: rows.sample(frac=1, random_state=0),
        lambda rows: rows[["label", "c", "a", "b"]],
        lambda rows: rows.assign(a=rows["a"] * 1e6),
        lambda rows: rows.astype({"a": np.float32, "label": "category"}),
        lambda rows: pl.DataFrame(rows.to_dict("list")),
        lambda rows: rows.to_dict("list"),
        lambda rows: rows[["a", "b"]].to_numpy(),
        lambda rows: rows[["a", "b"]].to_numpy().tolist(),
    ],
)
def test_copies_are_counted_in_every_container_and_order(made):
    assert copied_rows([made(TWICE)], ["x"]) == (SAID,)
    assert copied_rows([made(FRAME)], ["x"]) == ()


def ordinary():
    """Tables of which no row is a copy, though some agree."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        x = rng.normal(size=(300, 3))
        yield x
        yield x.round(1)
        yield x[:, :2].round(1)
        yield np.where(rng.random((300, 1)) < 0.5, 0.0, x)
        yield np.where(rng.random((300, 3)) < 0.9, 0.0, x)
        yield rng.integers(0, 3, (300, 2)).astype(float)
        yield np.repeat(rng.integers(0, 1000, (150, 2)), 2, axis=0)
        yield np.column_stack([np.repeat(x[:100, 0], 3), x[:, 1]])
        yield rng.choice([0.25, 0.5, 0.75], (300, 3))
        yield np.r_[x, x[:2]]
        yield np.column_stack([x[:, 0].round(1), 1.8 * x[:, 0].round(1) + 32, np.exp(x[:, 0].round(1))])
        yield np.column_stack([x[:, 0].round(2), (x[:, 0] + 0.05 * x[:, 1]).round(2)])
        yield x[:8].repeat(2, axis=0)


def grouped():
    """Larger tables as logs and registers are: rounded numbers, few labels, zeros, covariates of groups; no copies."""
    for seed in range(6):
        rng = np.random.default_rng([seed, 2])
        x, group = rng.normal(size=(8000, 3)), rng.integers(0, 60, 8000)
        labels = {"device": rng.choice(["a", "b", "c"], 8000), "buys": rng.choice(["no", "yes"], 8000, p=[0.9, 0.1])}
        revenue = np.where(labels["buys"] == "yes", np.exp(x[:, 0]).round(1), 0.0)
        yield labels | {"revenue": revenue, "seconds": np.exp(x[:, 1]).round(1)}
        yield labels | {"width": x[:, 0].round(1), "height": x[:, 1].round(1)}
        yield labels | {"width": x[group, 0].round(2), "height": x[group, 1].round(2), "score": x[:, 2].round(1)}
        yield {"dose": rng.choice(np.arange(0.5, 10, 1.0), 8000), "heat": rng.choice(np.arange(0.25, 5, 0.5), 8000)}
        yield {"a": rng.integers(0, 3, 8000) + 0.5, "b": rng.integers(0, 4, 8000) + 0.25, **labels}


def test_no_row_of_larger_tables_without_copies_is_called_one():
    for table in grouped():
        assert copied_rows([pd.DataFrame(table)], ["x"]) == (), table


def test_few_copies_among_many_rows_are_counted():
    """Sixty rows of 8060 that were exported twice, with numbers of one decimal, were passed over in silence."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "arm": rng.choice(["A", "B"], 8000),
            "buys": rng.choice(["no", "yes"], 8000, p=[0.9, 0.1]),
            "revenue": np.where(rng.random(8000) < 0.1, np.exp(rng.normal(3.5, 1, 8000)).round(2), 0.0),
            "load": np.exp(rng.normal(6, 0.5, 8000)).round(),
            "seconds": rng.gamma(2, 60, 8000).round(1),
            "scrolled": (100 * rng.beta(2, 2, 8000)).round(1),
        }
    )
    assert copied_rows([table], ["x"]) == ()
    for copies in (3, 60):
        (note,) = copied_rows([pd.concat([table, table[:copies]])], ["x"])
        assert note.startswith(f"{copies} of {8000 + copies} rows of x repeat another row in every column")
    (note,) = copied_rows([np.r_[ROWS, ROWS[:10]]], ["x"])
    assert note.startswith("10 of 70 rows")


def test_rows_that_agree_by_chance_are_let_be():
    for table in ordinary():
        assert copied_rows([table], ["x"]) == (), table


def test_what_cannot_be_compared_is_left_to_those_who_refuse_it():
    whole = {"a": TWICE["a"].to_numpy(), "b": TWICE["b"].to_numpy()}
    for strange in (TWICE["c"].to_numpy() + 1j, np.zeros(120, "V8")):
        assert copied_rows([whole | {"c": strange}], ["x"]) == ()
    for odd in (np.zeros((0, 3)), {"a": [], "b": []}, {"a": ROWS[:, 0], "b": ROWS[:30, 1]}, [], [[1.0], [1.0, 2.0]]):
        assert copied_rows([odd], ["x"]) == ()


def test_rows_of_several_variables_are_compared_together():
    x, y = TWICE["a"], TWICE["b"]
    (note,) = copied_rows([x, y], ["x", "y"], paired=True)
    assert note.startswith("60 of 120 rows of x and y repeat")
    assert copied_rows([x, RNG.normal(size=120)], ["x", "y"], paired=True) == ()
    apart = copied_rows([x, y], ["x", "y"])
    assert [note[: len("each value of x occurs 2 times")] for note in apart] == [
        "each value of x occurs 2 times",
        "each value of y occurs 2 times",
    ]


def test_values_of_one_column_that_are_all_there_as_often():
    x = RNG.normal(size=40)
    (note,) = copied_rows([np.tile(x, 3)], ["x"])
    assert note == "each value of x occurs 3 times, but rows count as independent: if they are copies, remove them."
    others = [x, np.tile(x[:10], 3), np.r_[x, x[:5]], np.tile(np.linspace(0, 1, 30), 2), np.tile(np.arange(40), 2)]
    assert not any(copied_rows([other], ["x"]) for other in others)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_of_one_column_that_are_there_at_random(dtype):
    """Without a word 20 values of 100 rows in each sample were rejected always."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=20).astype(dtype)[rng.integers(20, size=100)]
        (note,) = copied_rows([x], ["x"])
        assert "rows of x have exactly the value of another row, but rows count as independent" in note
    (note,) = copied_rows([np.r_[ROWS[:, 0], ROWS[:, 0], ROWS[:5, 0]].astype(dtype)], ["x"])
    assert note.startswith("125 of 125 rows of x have exactly the value of another row")
    x, y = (rng.normal(size=20)[rng.integers(20, size=100)] for _ in range(2))
    assert "value of another row" in " ".join(mm.two_sample_test(x, y, n_permutations=19, rng=0).warnings)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_of_one_column_that_agree_by_chance_are_let_be(dtype):
    for seed in range(20):
        rng = np.random.default_rng([seed, 1])
        x, counts = rng.normal(size=300), rng.poisson(30, 300) + 1.0
        rounded = x.round(1)
        tables = [x, rounded, rounded * 2.54, (rounded - rounded.mean()) / rounded.std(), x.round(2), 1000 + x.round(1)]
        tables += [counts, np.log(counts), np.log1p(counts), np.sqrt(counts), np.log10(counts), 1 / counts]
        tables += [(counts - counts.mean()) / counts.std(), rng.integers(1, 8, 300) / rng.integers(8, 12, 300)]
        tables += [np.geomspace(1, 7, 25)[rng.integers(25, size=300)], np.where(rng.random(300) < 0.4, 0.37137, x)]
        tables += [rng.integers(0, 90, 300) / 3, (1e4 * np.exp(x / 4)).round(-2), 1 / 3 + rng.integers(0, 20, 300)]
        assert [k for k, each in enumerate(tables) if copied_rows([each.astype(dtype)], ["x"])] == []


def test_a_column_that_is_another_one_rounded():
    x = RNG.normal(size=60)
    for y, expected in (
        (x.copy(), "y equals x:"),
        (x.round(1), "y is x rounded to 1 decimal:"),
        ((10 * x).round(), None),
        (x + 1e-3, None),
        ((x > 0) * 1.0, None),
        (RNG.normal(size=60), None),
    ):
        notes = copied_columns([x, y], ["x", "y"])
        assert [note.startswith(expected) for note in notes] == [True] if expected else notes == ()
    (note,) = copied_columns([{"a": (10 * x).round().astype(int)}, {"b": 10 * x, "c": x}], ["x", "y"])
    assert note.startswith("column 'a' of x is column 'b' of y rounded to whole numbers")
    result = mm.independence_test(x, x.round(2), n_permutations=19, rng=0)
    assert any("y is x rounded to 2 decimals" in text for text in result.warnings)


FEW = {"n_permutations": 19, "rng": 0}


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: mm.two_sample_test(x, FRAME, **FEW),
        lambda x: mm.k_sample_test([x, FRAME, FRAME], **FEW),
        lambda x: mm.independence_test(x[["a"]], x[["b"]], **FEW),
        lambda x: mm.joint_independence_test(x, **FEW),
        lambda x: mm.conditional_independence_test(x["a"], x["b"], x["c"], rng=0),
        lambda x: mm.test("a ~ b", x, rng=0),
        lambda x: mm.chow_liu(x),
        lambda x: mm.pc(x, rng=0),
    ],
)
def test_what_gives_pvalues_tells_of_them(ask):
    for table, expected in ((TWICE, True), (FRAME, False)):
        found = ask(table)
        notes = [*getattr(found, "warnings", ()), *getattr(getattr(found, "report", None), "notes", ())]
        notes += getattr(found, "notes", ())
        assert any("repeat another row" in note for note in notes) == expected


def test_copies_make_pvalues_small():
    """Why they are told of: nothing depends on anything, and all is rejected."""
    tables = (np.random.default_rng(seed).normal(size=(60, 2)).repeat(3, axis=0) for seed in range(20))
    assert all(mm.independence_test(t[:, :1], t[:, 1:], n_permutations=99, rng=0).pvalue < 0.05 for t in tables)


def test_a_sample_that_is_another_again_is_told_of():
    x = np.random.default_rng(12).normal(size=(60, 2))
    said = "y holds exactly the rows of x"
    for found in (
        mm.two_sample_test(x, x.copy(), n_permutations=19, rng=0),
        mm.two_sample_effect({"a": x[:, 0], "b": x[:, 1]}, {"a": x[:, 0], "b": x[:, 1]}, rng=0),
        mm.closeness_test(x, x, 0.3, rng=0),
    ):
        assert sum(said in text for text in found.warnings) == 1
    labels = np.random.default_rng(13).integers(0, 2, 60)
    for y in (x[::-1], x + np.array([0, 1e-9]), x[:, :1].repeat(2, axis=1)):
        assert not any(said in text for text in mm.two_sample_test(x, y, n_permutations=19, rng=0).warnings)
    assert not any("again" in text for text in mm.two_sample_test(labels, labels, n_permutations=19, rng=0).warnings)


def test_copies_of_rows_with_one_measurement_are_seen_by_all_their_columns():
    rng = np.random.default_rng(8)
    table = pd.DataFrame({"age": rng.integers(20, 80, 60), "site": list("abcdef") * 10, "score": rng.normal(size=60)})
    (note,) = copied_rows([pd.concat([table] * 4, ignore_index=True)], ["x"])
    assert note.startswith("180 of 240 rows of x repeat another row in every column")
    joined = pd.DataFrame({"order": np.arange(240), "score": np.repeat(table["score"].to_numpy(), 4)})
    assert copied_rows([table], ["x"]) == copied_rows([joined], ["x"]) == ()
