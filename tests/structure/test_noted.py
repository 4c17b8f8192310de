"""Learners of structure say which columns were made from one another, name rows, or count them."""

import numpy as np
import pytest

import meanmap as mm
from meanmap.structure.noted import functions_of_one, functions_told


def table(n=150):
    """An effect b of a, and something else."""
    rng = np.random.default_rng(15)
    a = rng.normal(size=n)
    return {"a": a, "b": a + 0.7 * rng.normal(size=n), "d": rng.normal(size=n)}


COPIES = {
    "linear": lambda a: 2 * a + 1,
    "cube": lambda a: a**3,
    "exponential": np.exp,
    "ranks": lambda a: a.argsort().argsort(),
    "rounded": lambda a: a.round(1),
    "falling": lambda a: -np.tanh(a),
}


@pytest.mark.parametrize("made", COPIES.values(), ids=COPIES.keys())
def test_both_learners_tell_of_copies_of_any_shape(made):
    data = table()
    data["a2"] = made(data["a"])
    said = "a and a2 are functions of each other, or nearly"
    assert sum(said in note for note in mm.pc(data, rng=0).report.notes) == 1
    assert sum(said in note for note in mm.chow_liu(data, rng=0).notes) == 1


def test_what_is_made_from_another_but_does_not_tell_it():
    data = table()
    pairs = functions_of_one({"size": np.abs(data["a"]), **data})
    assert pairs == [("size", "a")]
    (said,) = functions_told(pairs)
    assert said.startswith(
        "size is a function of a, or nearly: given a it is independent of all, and edges of size may"
    )


def test_strong_effects_are_no_copies():
    for seed in range(20):
        rng = np.random.default_rng([seed, 15])
        a, noise = rng.normal(size=(2, 150))
        columns = {"a": a, "b": a + 0.14 * noise, "code": rng.integers(0, 3, 150), "label": rng.choice(list("uv"), 150)}
        columns["gaps"] = np.where(rng.random(150) < 0.2, np.nan, columns["b"])
        assert functions_of_one(columns) == [("b", "gaps"), ("gaps", "b")]


def test_the_tree_tells_of_ids_clocks_and_names_of_rows():
    data = table()
    named = mm.chow_liu({**data, "id": [f"r{i}" for i in range(150)]}, rng=0).notes
    assert any("nearly every row of column 'id' has its own label" in note for note in named)
    counted = mm.chow_liu({**data, "id": np.arange(150)}, rng=0).notes
    assert any(note.startswith("column 'id' holds whole numbers one by one") for note in counted)
    assert not mm.chow_liu(data, rng=0).notes


def test_names_of_rows_have_no_values_far_from_others():
    notes = mm.pc({**table(), "id": [f"r{i}" for i in range(150)]}, rng=0).report.notes
    assert any("column 'id' of table holds texts" in note for note in notes)
    assert not any("standard deviations" in note for note in notes)


def test_a_gap_in_a_constant_column_costs_no_row():
    """A remark in a tenth of the rows, always the same one, left a tenth of the rows."""
    rng = np.random.default_rng(5)
    a = rng.normal(size=100)
    table = {"a": a, "b": a + rng.normal(size=100), "remark": [None if k % 10 else "see below" for k in range(100)]}
    found = mm.pc(table, missing="drop", kinds={"remark": "label"}, rng=0)
    assert found.names == ("a", "b")
    assert "column 'remark' is constant: nothing depends on it, and it is left out." in found.report.notes
    assert not any("were left out: a value is missing" in note for note in found.report.notes)
    assert found.pvalues == mm.pc({name: table[name] for name in "ab"}, rng=0).pvalues
