"""A number that follows from others, such as a total, and evidence about all of them, off by rounding or wrong."""

import numpy as np
import pandas as pd
import pytest

import meanmap as mm


@pytest.fixture(scope="module")
def model():
    random = np.random.default_rng(0)
    a = random.normal(10, 2, 500)
    b = 5 + a / 2 + random.normal(size=500)
    table = {"a": a, "b": b, "c": a + b, "y": a + b + random.normal(size=500)}
    return mm.bp.BayesianNetwork([("a", "b"), ("a", "c"), ("b", "c"), ("c", "y")]).fit(table)


def test_what_follows_from_others_is_noted_by_the_fit(model):
    (note,) = model.notes
    assert note.startswith("'c' follows from 'a', 'b' without noise")
    assert model.query({"a": 10.0}, ["c"], rng=0).report.notes[0] == note


def test_a_total_and_its_parts_give_one_another_also_where_rounded(model):
    """Its other part was one of the 500 rows, or none; its score was −1e25 where it was off by rounding."""
    forwards = model.query({"a": 10.0, "b": 10.0}, ["c"], rng=0)["c"]
    assert forwards.mean() == pytest.approx(20, abs=1e-6)
    table = pd.DataFrame({"a": [10.0, 10.003, np.nan], "c": [20.0, 20.0, 20.0], "b": [np.nan, np.nan, 10.0]})
    for target, name, row, truth in (("b", "a", 0, 10.0), ("b", "a", 1, 9.997), ("a", "b", 2, 10.0)):
        seen = {name: table.loc[row, name], "c": 20.0}
        queried = model.query(seen, [target], rng=0)[target]
        predicted = model.predict(table.iloc[[row]], [target], rng=0)[target]
        for found in (queried, predicted[0]):
            assert found.mean() == pytest.approx(truth, abs=0.005)
            assert 0 < found.sd() < 0.01
    with pytest.warns(UserWarning, match="draws agree"):
        filled = model.impute(table, rng=0)
    np.testing.assert_allclose(filled["a"] + filled["b"], [20, 20, 20], atol=0.005)
    right, rounded, wrong = model.score({"a": [10.0] * 3, "b": [10.0] * 3, "c": [20.0, 20.003, 21.0]})
    assert right - 2 < rounded < right
    assert right - 20 < wrong < right - 15  # one row must not outweigh all others


def test_totals_that_contradict_their_parts_are_noted(model):
    wrong = "'c' is 21, but by all other rows 20 follows from 'a', 'b': one of these is wrong"
    seen = {"a": 10.0, "b": 10.0, "c": 21.0}
    assert any(note.startswith(wrong) for note in model.query(seen, ["y"], rng=0).report.notes)
    table = pd.DataFrame([seen, {**seen, "c": 20.001}])
    assert any("in 1 of 2 rows" in note and wrong in note for note in model.predict(table, ["y"], rng=0).report.notes)
    with pytest.warns(UserWarning, match=wrong):
        model.counterfactual({**seen, "y": 20.0}, {"a": 11.0})
    assert model.counterfactual({"a": 10.0, "b": 10.0, "c": 20.0, "y": 20.0}, {"b": 11.0})["c"] == pytest.approx(21)
    # A total that is set no longer follows from its parts.
    assert not any(
        wrong in note for note in model.do({"c": 21.0}, ["y"], evidence={"a": 10.0, "b": 10.0}, rng=0).report.notes
    )
    assert model.do({"a": 10.0, "b": 11.0}, ["c"], rng=0)["c"].mean() == pytest.approx(21, abs=1e-6)
