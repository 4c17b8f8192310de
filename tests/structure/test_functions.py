"""Learners of structure say which columns were made from one another, name rows, or count them."""

import numpy as np
import pytest

import meanmap as mm
from meanmap.core.errors import KindError
from meanmap.structure.functions import functions_of_one, functions_told


def table(n=150):
    """An effect b of a, and something else."""
    rng = np.random.default_rng(15)
    a = rng.normal(size=n)
    return {"a": a, "b": a + 0.7 * rng.normal(size=n), "d": rng.normal(size=n)}


COPIES = {
    "linear": lambda a: 2 * a + 1,
    "cube": lambda a: a**3,
    "exponential": np.exp,
    "ranks": lambda a: a.argsort().argsort() // 2,  # ranks without ties would be taken for numbers of rows
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
        "size is a function of a, or nearly: given a it is independent of all others, so edges of size may"
    )


def test_strong_effects_are_no_copies():
    for seed in range(20):
        rng = np.random.default_rng([seed, 15])
        a, noise = rng.normal(size=(2, 150))
        columns = {"a": a, "b": a + 0.14 * noise, "code": rng.integers(0, 3, 150), "label": rng.choice(list("uv"), 150)}
        columns["gaps"] = np.where(rng.random(150) < 0.2, np.nan, columns["b"])
        assert functions_of_one(columns) == [("b", "gaps"), ("gaps", "b")]


@pytest.mark.parametrize("search", [mm.chow_liu, mm.pc])
@pytest.mark.parametrize("ids", [np.arange(150), np.array([f"r{i}" for i in range(150)])])
def test_ids_are_left_out_unless_they_are_named(search, ids):
    def notes(found):
        return found.notes if search is mm.chow_liu else found.report.notes

    data = {**table(), "id": ids}
    found, kind = search(data, rng=0), "number" if ids.dtype.kind == "i" else "label"
    note = f"'id' only identifies the rows and is left out; to use it, pass kinds={{'id': {kind!r}}}."
    assert (list(found.names), note in notes(found)) == (list(table()), True)
    kept = search(data, kinds={"id": kind}, rng=0)
    assert (list(kept.names), note in notes(kept)) == ([*table(), "id"], False)
    assert not any("'id'" in said and "standard deviations" in said for said in notes(kept))
    assert not notes(search(table(), rng=0))


def test_ids_that_arrows_name_are_not_left_out():
    data = {**table(), "id": np.arange(150)}
    first = next(iter(table()))
    assert "id" in mm.pc(data, forbidden=[(first, "id")], rng=0).names
    assert "id" in mm.pc(data, tiers=[["id"], [first]], rng=0).names
    with pytest.raises(KindError, match="required is 3; expected a list"):
        mm.pc(data, required=3, rng=0)


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


def test_a_label_is_a_function_of_a_number_where_each_label_has_an_interval():
    rng = np.random.default_rng(3)
    size = rng.normal(size=60)
    label = np.where(size > 0.2, "large", "small")
    assert functions_of_one({"size": size, "label": label}) == [("label", "size")]
    assert functions_of_one({"size": size, "label": np.digitize(size, [-1, 0, 1])}) == [("label", "size")]
    one = label.copy()
    one[np.argmin(size)] = "large"
    rounded = np.where(size > 0, 1.0 * np.ceil(size), 0.0)  # zero has both labels
    for a, b in ((size, one), (rounded, label), (size, rng.permutation(label)), (size[:19], label[:19])):
        assert functions_of_one({"size": a, "label": b}) == []


def test_pc_keeps_the_cause_of_a_label_that_is_a_function_of_a_number():
    # Given the amount spent "bought" is known, and given "bought" the amount tells nothing of the cause: both of its
    # edges were removed without a note.
    for seed in range(2):
        rng = np.random.default_rng([9, seed])
        cause = rng.normal(size=600)
        bought = rng.random(600) < 1 / (1 + np.exp(-1.5 * cause))
        spent = np.where(bought, np.exp(3 + 0.4 * rng.normal(size=600)), 0.0)
        graph = mm.pc({"cause": cause, "bought": np.where(bought, "yes", "no"), "spent": spent}, rng=0)
        edges = {frozenset(graph.names[i] for i in edge) for edge in graph.undirected}
        assert edges == {frozenset({"cause", "bought"}), frozenset({"bought", "spent"})}


def test_pc_says_that_an_edge_is_missing_where_two_variables_take_each_others_place():
    # By the answers of this test b and c each separate the other from a.
    def test(x, y, z):
        return 0.9 if z and x[0] == 0 else 0.001

    graph = mm.pc({"a": [0.0, 1, 0, 1], "b": [1.0, 0, 1, 1], "c": [2.0, 1, 1, 0]}, test=test)
    said = "a depends on b and on c, but was found independent of b given c, and of c given b"
    assert said in " ".join(graph.report.notes)
