"""Rows that pandas gives labels: what may belong together by label, and is paired by place, is refused."""

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
    "process": lambda: ep.models.gp_classification(FRAME[["a"]], OTHER > 0),
    "exposure": lambda: ep.models.poisson_regression(FRAME[["a"]], FRAME.b.abs().round(), exposure=OTHER.abs() + 1),
    "mapping": lambda: mm.independence_test({"a": FRAME.a}, OTHER),
    "embedding": lambda: mm.embed(FRAME.a, weights=OTHER.abs()),
    "operator": lambda: mm.embeddings.cross_covariance(FRAME.a, OTHER, mm.kernels.RBF(1.0), mm.kernels.RBF(1.0)),
    "bet": lambda: mm.stats.IndependenceBet.of(FRAME.a, OTHER),
    "likelihood": lambda: mm.bp.CentredLikelihood.fit(FRAME.a, OTHER),
    "likelihood by groups": lambda: mm.bp.CentredLikelihood.fit(FRAME.a, FRAME.b, groups=FRAME.index[::-1].to_series()),
    "likelihood with noise": lambda: mm.bp.NoiseLikelihood.fit(FRAME.a, OTHER),
    "learned likelihood": lambda: mm.bp.LearnedLikelihood.fit(FRAME.a, OTHER),
}

FIRST, SECOND = FRAME[["a", "site"]][:30], FRAME[["a", "site"]][30:]
OF_SAMPLES = {
    "two": lambda **said: mm.two_sample_test(FIRST, SECOND, rng=0, **said),
    "two by kinds": lambda **said: mm.two_sample_test(FIRST, SECOND, kinds={"site": "label"}, rng=0, **said),
    "two mappings": lambda **said: mm.two_sample_test(dict(FIRST), dict(SECOND), rng=0, **said),
    "k": lambda **said: mm.k_sample_test([FIRST, SECOND], rng=0, **said),
    "effect of two": lambda **said: mm.two_sample_effect(FIRST, SECOND, rng=0, **said),
    "effect of two by kinds": lambda **said: mm.two_sample_effect(
        FIRST, SECOND, kinds={"site": "label"}, rng=0, **said
    ),
    "effect of k": lambda **said: mm.k_sample_effect({"one": FIRST, "two": SECOND}, rng=0, **said),
    "closeness": lambda **said: mm.closeness_test(FIRST, SECOND, margin=0.5, rng=0, **said),
}
BESIDE = {
    "weights": FRAME.c.abs() + 0.1,
    "within": pd.Series(["u", "v"] * 30),
    "clusters": pd.Series(np.arange(60) // 2),
}


@pytest.mark.parametrize("argument", BESIDE)
@pytest.mark.parametrize("ask", OF_SAMPLES.values(), ids=OF_SAMPLES)
def test_what_is_given_for_each_row_of_samples_is_in_their_order(ask, argument):
    """Weights of 120 rows in another order made p .031 of .242."""
    with pytest.raises(ColumnError, match=rf"in another order.* Pass {argument}.loc\[pandas.concat\(.*\).index\]"):
        ask(**{argument: BESIDE[argument].iloc[::-1]})


def test_samples_and_their_weights_in_the_same_order_are_tested():
    weights = BESIDE["weights"]
    wanted = mm.two_sample_test(FIRST, SECOND, weights=weights.to_numpy(), rng=0).pvalue
    x, y, shuffled = FIRST, SECOND, weights.sample(frac=1, random_state=0)
    assert mm.two_sample_test(x, y, weights=weights, rng=0).pvalue == wanted
    assert mm.two_sample_test(x, y, weights=shuffled.loc[pd.concat([x, y]).index], rng=0).pvalue == wanted
    named = weights.set_axis([f"row {i}" for i in range(60)])
    assert mm.two_sample_test(x, y, weights=named, rng=0).pvalue == wanted
    numbered = y.reset_index(drop=True)
    assert mm.two_sample_test(x, numbered, weights=weights, rng=0).pvalue == wanted


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


DATES = pd.Series(rng.normal(size=60), index=pd.date_range("2020", periods=60))
LONG = pd.DataFrame({"x": rng.normal(size=300), "y": rng.normal(size=300)})
OTHER_LABELS = {
    "parts of one frame": lambda: mm.independence_test(LONG.x[:150], LONG.y[150:]),
    "tables": lambda: mm.independence_test(LONG[["x"]][:150], LONG[["y"]][150:]),
    "dates and names": lambda: mm.independence_test(DATES, FRAME.b.set_axis([f"row {i}" for i in range(60)])),
    "conditional": lambda: mm.conditional_independence_test(LONG.x[:150], LONG.y[:150], LONG.x[150:]),
    "jointly": lambda: mm.joint_independence_test([LONG.x[:150], LONG.y[:150], LONG.x[150:]]),
    "columns": lambda: mm.pc({"x": LONG.x[:150], "y": LONG.y[150:]}),
    "tree": lambda: mm.chow_liu({"x": LONG.x[:150], "y": LONG.y[150:]}),
    "table": lambda: mm.Table.of({"x": LONG.x[:150], "y": LONG.y[150:]}),
    "condition": lambda: mm.condition(LONG.x[:150], LONG.y[150:]),
    "within": lambda: mm.independence_test(FRAME.a, FRAME.b, within=FRAME.site.set_axis(range(60, 120))),
    "regression": lambda: ep.models.logistic_regression(LONG[["x"]][:150], LONG.y[150:] > 0),
    "weights": lambda: mm.two_sample_test(FIRST, SECOND, weights=BESIDE["weights"].set_axis(range(60, 120))),
}
SOME_LABELS = {
    "lag": lambda: mm.independence_test(LONG.x[:-1], LONG.y[1:]),
    "lag of dates": lambda: mm.independence_test(DATES[:-2], DATES[2:]),
    "numbered from 1": lambda: mm.independence_test(FRAME.a, FRAME.b.set_axis(range(1, 61))),
    "columns": lambda: mm.pc({"x": LONG.x[:-1], "y": LONG.y[1:]}),
    "table": lambda: mm.Table.of({"x": LONG.x[:-1], "y": LONG.y[1:]}),
    "condition": lambda: mm.condition(LONG.x[:-1], LONG.y[1:]),
    "rows left out of one": lambda: mm.independence_test(LONG.x.drop([3, 7]), LONG.y.drop([4, 9])),
    "and numbered again": lambda: mm.independence_test(LONG.x.drop([3, 7]), LONG.y.drop([4, 9]).reset_index(drop=True)),
}


@pytest.mark.parametrize("ask", OTHER_LABELS.values(), ids=OTHER_LABELS)
def test_other_labels_are_refused(ask):
    """Two halves of one frame had a p-value of .71."""
    with pytest.raises(
        ColumnError, match=r"other labels than those of .* paired by position. Pass .*\.to_numpy\(\) if the positions"
    ):
        ask()


@pytest.mark.parametrize("ask", SOME_LABELS.values(), ids=SOME_LABELS)
def test_labels_that_are_partly_the_same_are_refused(ask):
    with pytest.raises(ColumnError, match=r"other labels than those of .* Join both by label first, or pass .*\.to_n"):
        ask()


def test_a_lag_by_position_is_tested():
    walk = pd.Series(np.cumsum(rng.normal(size=200)))
    assert mm.independence_test(walk[:-1], walk[1:].to_numpy(), rng=0).pvalue < 0.002


@pytest.mark.parametrize(
    "y",
    [
        FRAME.b.to_numpy(),
        FRAME.b.copy(),
        FRAME.b.set_axis(range(60)),
        FRAME.b.set_axis(pd.Index(range(60), dtype="Int64")),
        FRAME.b.set_axis([f"row {i}" for i in range(60)]),
        FRAME.b.set_axis(DATES.index),
        FRAME.b.set_axis(pd.MultiIndex.from_product([range(30), ["u", "v"]])),
    ],
)
def test_rows_whose_labels_say_nothing_else_are_paired_by_place(y):
    found = mm.independence_test(FRAME.a, y, rng=0)
    assert found.pvalue < 0.002
    assert not any("index" in note for note in found.warnings)


def test_samples_are_no_pairs():
    assert 0 < mm.two_sample_test(FRAME.a, OTHER, rng=0).pvalue <= 1
    assert 0 < mm.k_sample_test([FRAME.a, OTHER, FRAME.c], rng=0).pvalue <= 1
