"""Rows that follow each other as a series does are told of; independent rows in any order that says nothing are not."""

import datetime

import numpy as np
import pandas as pd
import pytest

import meanmap as mm
from meanmap.core.errors import EmptyError
from meanmap.core.tables.order import alike_in_order, may_be_ids


def series(seed, n=200, carried=0.9):
    """An autoregression of variance one."""
    rng = np.random.default_rng([seed, 5])
    x = rng.normal(size=n)
    for i in range(1, n):
        x[i] = carried * x[i - 1] + np.sqrt(1 - carried**2) * x[i]
    return x


NOISE = np.random.default_rng(0).normal(size=200)
SAID = "consecutive rows of"


def independent(seed):
    """Tables of independent rows, in the orders that tables have."""
    rng = np.random.default_rng([seed, 6])
    n, d, kind = int(rng.choice([30, 60, 200, 1000])), int(rng.choice([1, 2, 5])), seed % 12
    x = rng.normal(size=(n, d))
    if kind == 0:
        return x
    if kind == 1:
        return rng.standard_cauchy(size=(n, d))
    if kind == 2:
        return rng.integers(0, 3, (n, d))
    if kind == 3:
        return rng.poisson(0.05, (n, d))
    if kind == 4:
        return {"group": np.sort(rng.choice(list("abc"), n)), "x": x[:, 0]}
    if kind == 5:
        group = np.sort(rng.integers(0, 6, n))
        return {"group": group, "x": x[:, 0] + 3 * group}
    if kind == 6:
        age = np.sort(x[:, 0])
        return {"age": age, "height": age + x[:, -1]}
    if kind == 7:
        return np.where(rng.random((n, d)) < 0.9, 0.0, x)
    if kind == 8:
        return {
            "label": rng.choice(list("abcdef"), n, p=[0.8, 0.1, 0.05, 0.03, 0.01, 0.01]),
            "rare": rng.random(n) < 0.05,
        }
    if kind == 9:
        return np.exp(3 * x)
    if kind == 10:
        return x.round(0)
    group = np.repeat(np.arange(n // 5), 5)
    return {"group": group.astype(str), "x": rng.normal(size=len(group)) + 3 * rng.normal(size=n // 5)[group]}


def test_a_column_without_rows_holds_no_ids():
    assert not may_be_ids(np.zeros(0))
    with pytest.raises(EmptyError, match="x is empty"):
        mm.two_sample_test({"a": np.zeros(0), "g": np.array([], str)}, {"a": np.arange(60.0), "g": list("uv") * 30})


def test_tables_of_independent_rows_are_let_be():
    told = [seed for seed in range(480) if alike_in_order([independent(seed)], ["x"])]
    assert len(told) <= 4, told  # 1%; 2 of 6000 tables of other seeds were told of


@pytest.mark.parametrize(
    "made",
    [
        lambda x: x,
        lambda x: 1e6 * x.astype(np.float32),
        lambda x: np.exp(3 * x),
        lambda x: np.round(x, 1).tolist(),
        lambda x: pd.DataFrame({"noise": NOISE, "x": x}),
        lambda x: {"regime": np.where(x > 0, "high", "low")},
        lambda x: np.repeat(NOISE, 2),
    ],
)
def test_series_are_told_of_in_every_unit_and_container(made):
    (note,) = alike_in_order([made(series(0))], ["x"])
    assert note.startswith(f"{SAID} x")


@pytest.mark.parametrize("made", [lambda x: x, np.exp, lambda x: pd.DataFrame({"noise": NOISE, "x": x})])
def test_series_that_alternate_are_told_of(made):
    (note,) = alike_in_order([made(series(0, carried=-0.9))], ["x"])
    assert note.startswith("consecutive rows of x depend on each other (they correlate by -0.")
    assert note.endswith(
        "or test the residuals of structure.prewhiten. Rows that were only put in such an order do no harm."
    )


def test_labels_and_levels_that_take_turns_are_a_design():
    assert alike_in_order([{"group": ["a", "b"] * 100, "dose": np.tile([0.0, 2.0, 1.0, 3.0], 50)}], ["x"]) == ()


def test_the_correlation_is_that_of_ranks_of_neighbours():
    x = series(1)
    ranks = x.argsort().argsort() - 99.5
    size = (np.sum(ranks[1:] * ranks[:-1]) / 199 + np.var(ranks) / 199) / np.var(ranks)
    (note,) = alike_in_order([{"a": x}], ["x"])
    assert f"(they correlate by {size:.2f} in 'a')" in note
    assert f"clusters={min(20, round(5 * (1 + size) / (1 - size)))}" in note


def test_columns_without_a_name_are_counted():
    (note,) = alike_in_order([np.column_stack([NOISE, series(1)])], ["x"])
    assert " in column 1)" in note


def test_two_variables_must_be_series():
    x, y = series(0), series(1)
    assert alike_in_order([x, NOISE], ["x", "y"], paired=True) == ()
    (note,) = alike_in_order([x, y], ["x", "y"], paired=True)
    assert note.startswith(f"{SAID} x and y")
    assert alike_in_order([{"a": x, "b": NOISE}], ["table"], paired=True) == ()
    (note,) = alike_in_order([{"a": x, "b": y, "c": NOISE}], ["table"], paired=True)
    assert note.startswith(f"{SAID} a and b")
    (note,) = alike_in_order([x, y, NOISE], ["x", "y", "z"])
    assert note.startswith(f"{SAID} x and y")


def test_columns_that_count_the_rows_are_named():
    days = np.arange("2026-01-01", "2026-07-20", dtype="M8[D]")
    for counter, what in ((np.arange(200), "whole numbers one by one"), (days, "times in equal steps")):
        (note,) = alike_in_order([{"id": counter, "x": series(0)}], ["x"])
        assert note.startswith(f"column 'id' of x holds {what}, as a clock or an id does")
    assert alike_in_order([np.linspace(0, 1, 200)], ["x"]) == ()


def test_whatever_is_no_table_is_left_to_others():
    for odd in (
        np.zeros((0, 2)),
        [],
        [[1.0], [1.0, 2.0]],
        {"a": NOISE, "b": NOISE[:50]},
        np.zeros((5, 5, 5)),
        NOISE[:15],
    ):
        assert alike_in_order([odd], ["x"]) == ()


def test_of_many_rows_blocks_are_looked_at():
    x = series(2, 30_000)
    assert alike_in_order([x], ["x"])
    assert not alike_in_order([np.random.default_rng(0).permutation(x)], ["x"])


FEW = {"n_permutations": 99, "rng": 0}


@pytest.mark.parametrize(
    "ask",
    [
        lambda x, y: mm.two_sample_test(x, y, **FEW),
        lambda x, y: mm.k_sample_test([x, y], **FEW),
        lambda x, y: mm.independence_test(x, y, **FEW),
        lambda x, y: mm.joint_independence_test([x, y], **FEW),
        lambda x, y: mm.conditional_independence_test(x, y, NOISE, **FEW),
        lambda x, y: mm.test("x ~ y", {"x": x, "y": y}, rng=0),
        lambda x, y: mm.two_sample_effect(x, y, rng=0),
        lambda x, y: mm.closeness_test(x, y, 0.5, rng=0),
        lambda x, y: mm.independence_effect(x, y, rng=0),
        lambda x, y: mm.conditional_independence_effect(x, y, NOISE, rng=0),
        lambda x, y: mm.pc({"x": x, "y": y}, rng=0).report,
        lambda x, y: mm.chow_liu({"x": x, "y": y}, rng=0),
    ],
)
@pytest.mark.parametrize("carried", [0.9, -0.9])
def test_what_gives_pvalues_tells_of_them(ask, carried):
    x, y = series(0, carried=carried), series(1, carried=carried)
    for order, expected in ((np.arange(200), True), (np.random.default_rng(3).permutation(200), False)):
        found = ask(x[order], y[order])
        notes = [*getattr(found, "warnings", ()), *getattr(found, "notes", ())]
        assert any("consecutive rows of" in note for note in notes) == expected


def test_clusters_answer_it():
    x, y = series(0), series(1)
    for result in (
        mm.two_sample_test(x, y, clusters=20, **FEW),
        mm.independence_test(x, y, clusters=20, **FEW),
        mm.conditional_independence_test(x, y, NOISE, clusters=5, **FEW),
    ):
        assert not any(SAID in note for note in result.warnings)
        assert result.pvalue > 0.01


def test_lists_of_dates_are_clocks_as_their_columns_are():
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(i) for i in range(200)]
    expected = alike_in_order([pd.Series(pd.to_datetime(days))], ["x"])
    assert "x holds times in equal steps" in expected[0]
    for held in (days, list(np.array(days, dtype="datetime64[D]")), [day - days[0] for day in days]):
        assert alike_in_order([held], ["x"]) == expected


def test_ids_of_the_groups_of_a_table_are_no_series():
    """Ids of two arms rise with gaps, and copies of a few rows lie at the end: they "correlated by 1.00", twice."""
    rng = np.random.default_rng(0)
    ids = 1_000_000 + np.arange(2000)
    arm = rng.random(2000) < 0.5
    samples = [
        {"user": np.r_[ids[of], ids[of][:3]], "size": np.r_[size := rng.normal(size=of.sum()), size[:3]]}
        for of in (arm, ~arm)
    ]
    (note,) = alike_in_order(samples, ["x", "y"])
    assert note.startswith("column 'user' of x and y holds whole numbers that rise from row to row, as a clock")
    walks = [{"size": rng.normal(size=300).cumsum()} for _ in range(2)]
    (note,) = alike_in_order([{**walk, "other": rng.normal(size=300)} for walk in walks], ["x", "y"])
    assert note.count("in 'size'") == 1
