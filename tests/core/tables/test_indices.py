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
    assert mm.two_sample_test(x, y, weights=weights.set_axis(range(1, 61)), rng=0).pvalue == wanted
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
