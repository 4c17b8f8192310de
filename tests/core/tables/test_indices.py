"""Rows that pandas gives labels: what belongs together by label, and is paired by place, is refused or told of."""

import numpy as np
import pandas as pd
import pytest

import meanmap as mm
from meanmap import ep
from meanmap.core.errors import ColumnError

rng = np.random.default_rng(0)
FRAME = pd.DataFrame({"a": rng.normal(size=60), "c": rng.normal(size=60), "site": ["u", "v", "w"] * 20})
FRAME["b"] = FRAME.a + 0.3 * rng.normal(size=60)
OTHER = FRAME.b.sort_values()
IN_ANOTHER_ORDER = {
    "independence": lambda: mm.independence_test(FRAME.a, OTHER),
    "effect": lambda: mm.independence_effect(FRAME.a, OTHER),
    "tables": lambda: mm.independence_test(FRAME[["a"]], FRAME[["b"]].iloc[::-1]),
    "conditional": lambda: mm.conditional_independence_test(FRAME.a, FRAME.b, FRAME.c.sort_values()),
    "conditional effect": lambda: mm.conditional_independence_effect(FRAME.a, FRAME.b, FRAME.c.sort_values()),
    "jointly": lambda: mm.joint_independence_test([FRAME.a, FRAME.c, OTHER]),
    "within": lambda: mm.independence_test(FRAME.a, FRAME.b, within=FRAME.site.sample(frac=1, random_state=0)),
    "clusters": lambda: mm.independence_test(FRAME.a, FRAME.b, clusters=FRAME.site.iloc[::-1]),
    "columns": lambda: mm.pc({"a": FRAME.a, "b": OTHER}),
    "tree": lambda: mm.chow_liu({"a": FRAME.a, "b": OTHER}),
    "condition": lambda: mm.condition(FRAME.a, OTHER),
    "regression": lambda: ep.models.poisson_regression(FRAME[["a"]], OTHER.abs().round()),
    "labels": lambda: ep.models.logistic_regression(FRAME[["a"]], OTHER > 0),
}


@pytest.mark.parametrize("ask", IN_ANOTHER_ORDER.values(), ids=IN_ANOTHER_ORDER)
def test_the_same_labels_in_another_order_are_refused(ask):
    """p was .34 to .99 for a pair that goes together."""
    with pytest.raises(
        ColumnError, match=r"in another order, but rows are paired by position. Pass .*\.loc\[.*\.index\]"
    ):
        ask()


def test_both_remedies_work():
    right = mm.independence_test(FRAME.a, FRAME.b, rng=0)
    assert mm.independence_test(FRAME.a, OTHER.loc[FRAME.a.index], rng=0).pvalue == right.pvalue < 0.002
    assert mm.independence_test(FRAME.a, OTHER.to_numpy(), rng=0).pvalue > 0.01
    twice = pd.Series(FRAME.a.to_numpy(), index=np.repeat(range(30), 2))
    with pytest.raises(ColumnError, match=r"Pass y.sort_index\(\) and x.sort_index\(\), or y.to_numpy\(\)"):
        mm.independence_test(twice, twice.iloc[::-1])


def test_labels_in_other_places_are_told_of():
    """As where two columns were filtered, each by itself."""
    series = pd.Series(rng.normal(size=60), index=pd.date_range("2020", periods=60))
    said = mm.independence_test(series[:-2], series[2:], rng=0).warnings
    assert any(note.startswith("56 labels of rows (the index) are at different positions in y and x") for note in said)


@pytest.mark.parametrize(
    "y",
    [
        FRAME.b.to_numpy(),
        FRAME.b.copy(),
        FRAME.b.set_axis(range(60)),
        FRAME.b.set_axis(range(100, 160)),
        FRAME.b.set_axis([f"row {i}" for i in range(60)]),
        FRAME.b.set_axis(range(1, 61)),
    ],
)
def test_rows_whose_labels_say_nothing_else_are_paired_by_place(y):
    found = mm.independence_test(FRAME.a, y, rng=0)
    assert found.pvalue < 0.002
    assert not any("index" in note for note in found.warnings)


def test_samples_are_no_pairs():
    assert 0 < mm.two_sample_test(FRAME.a, OTHER, rng=0).pvalue <= 1
    assert 0 < mm.k_sample_test([FRAME.a, OTHER, FRAME.c], rng=0).pvalue <= 1
