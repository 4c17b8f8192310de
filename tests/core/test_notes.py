"""Warnings name the user's line, whatever lies between; of parts of one call there is one about each column."""

import dask.dataframe as dd
import numpy as np
import pandas
import pytest

import meanmap as mm
from meanmap import estimators
from meanmap.core.notes import in_few

# Dask calls pandas in a way that its newest versions advise against.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")
A = np.random.default_rng(0).normal(size=60)
FRAME = pandas.DataFrame({"a": A, "b": A**2 + 0.1 * A})
ODD = pandas.DataFrame({"a": [1e3, 0.0] * 3, "b": [np.nan, 1e4] * 3})
GAPS = np.where(np.arange(60) < 2, np.nan, A)
KERNEL = mm.kernels.RBF(1.0)
NETWORK = mm.bp.BayesianNetwork([("a", "b")])
FEATURES = estimators.FourierFeatures(n_components=4, random_state=0).fit(FRAME)
CALLS = {
    "embed": lambda: mm.embed(GAPS, KERNEL, missing="drop"),
    "posterior": lambda: mm.embeddings.posterior_embedding(GAPS, KERNEL, missing="drop"),
    "later": lambda: mm.embed(FRAME, KERNEL)(ODD[["a", "b"]].fillna(0.0)),
    "first batch": lambda: mm.stats.TwoSampleBet.of(GAPS, A, missing="drop", rng=0),
    "design": lambda: mm.ep.models.robust_regression(np.where(np.arange(60) % 9 == 1, -999.0, A), A),
    "fit": lambda: estimators.FourierFeatures(n_components=4).fit(np.where(np.arange(60) % 9 == 1, -999.0, A)[:, None]),
    "wrapped by scikit-learn": lambda: FEATURES.transform(ODD.fillna(0.0)),
    "impute": lambda: NETWORK.fit(FRAME).impute(ODD, rng=0),
    "sample": lambda: NETWORK.fit(FRAME).sample(2, {"a": 1e3}, rng=0),
    "counterfactual": lambda: NETWORK.fit(FRAME).counterfactual({"a": 0.0, "b": 0.0}, {"a": 1e3}),
    "drawn tables": lambda: mm.bp.DependencyNetwork().fit(FRAME).impute(ODD, draws=1, rng=0),
}

ODDITIES = "far outside|far from all other|left out"


@pytest.mark.parametrize("call", CALLS)
def test_warnings_are_at_the_line_that_called(call):
    with pytest.warns(UserWarning, match=ODDITIES) as found:
        CALLS[call]()
    lines = {(each.filename, each.lineno) for each in found}
    assert lines == {(__file__, CALLS[call].__code__.co_firstlineno)}


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_partitions_warn_once_of_each_column_where_they_were_asked_for(scheduler):
    tree = mm.KernelGraph([("a", "b")]).fit(FRAME)
    lazy, again = (tree.impute(dd.from_pandas(frame, npartitions=3)) for frame in (ODD, ODD.assign(b=np.nan)))
    with pytest.warns(UserWarning, match=ODDITIES) as found:
        [each.compute(scheduler=scheduler) for each in (lazy, lazy, again)]
    told = [str(each.message).partition(" has ")[0] for each in found]
    assert sorted(told) == ["frame['a']", "frame['a']", "frame['b']"]
    assert {each.filename for each in found} == {__file__}


def test_many_notes_that_differ_in_names_and_numbers_are_one():
    notes = [f"column {name!r} holds {k} odd values of the user's {name!r}." for k, name in enumerate("abcdef")]
    first = "column 'a' holds 0 odd values of the user's 'a'. The same is true of 'b', 'c', 'd' and 2 more."
    assert in_few([notes[0], "else.", *notes]) == [first, "else."]
    assert in_few(notes[:3]) == notes[:3]
    assert in_few(["seed 0"]) == ["seed 0"]
    short = [f"batch {k} is short" for k in range(4)]
    assert in_few(short) == ["batch 0 is short. The same is true of 3 more, with other numbers."]


def test_results_print_many_equal_notes_as_one():
    rng = np.random.default_rng(0)
    table = {f"c{k}": np.ones(40) for k in range(6)} | {"x": rng.normal(size=40), "arm": ["a", "b"] * 20}
    result = mm.two_sample_test(table, by="arm", n_permutations=19, rng=0)
    said = str(result)
    assert said.count("is constant over all samples") == 1
    assert "The same is true of 'c1', 'c2', 'c3' and 2 more." in said
    assert sum("is constant over all samples" in note for note in result.warnings) == 6
