"""Answers that rest on values of parents that no row has together are noted, others are not."""

import numpy as np
import pytest

import meanmap as mm
from meanmap.bp.conditionals.seen_together import SeenTogether

NOTE = "hardly any row"


def always_treated(seed, n):
    """In site d all are treated, and only there the effect is large: no row says so."""
    rng = np.random.default_rng(seed)
    site, x, noise = rng.choice(list("abcd"), n, p=[0.4, 0.3, 0.2, 0.1]), *rng.normal(size=(2, n))
    t = np.where(site == "d", 1, rng.integers(2, size=n))
    return {"site": site, "x": x, "t": t, "y": x + t * np.where(site == "d", 5.0, 1.0) + noise}


def side_by_side(seed, n):
    """Two causes with correlation .92."""
    s, *e = np.random.default_rng(seed).normal(size=(4, n))
    a, b = s + 0.3 * e[0], s + 0.3 * e[1]
    return {"s": s, "a": a, "b": b, "y": a - b + 0.5 * a * b + e[2]}


def noted(report):
    return [note for note in report.notes if NOTE in note]


@pytest.fixture(scope="module")
def treated():
    arrows = [("site", "t"), ("x", "t"), ("site", "y"), ("x", "y"), ("t", "y")]
    return mm.bp.BayesianNetwork(arrows).fit(always_treated(0, 1000))


@pytest.fixture(scope="module")
def beside():
    return mm.bp.BayesianNetwork([("s", "a"), ("s", "b"), ("a", "y"), ("b", "y")]).fit(side_by_side(1, 800))


def test_a_group_that_is_always_treated_is_noted_where_it_is_not(treated):
    """do(t = 0) in site d is 6 for a truth of 0: nothing but the note says that no row is like this."""
    (note,) = noted(treated.do({"t": 0}, ["y"], rng=0).report)
    assert "% of draws 'site' has values that hardly any row has together with that of 't'" in note
    assert 5 <= int(note.split()[1].rstrip("%")) <= 15
    (note,) = noted(treated.do({"t": 0}, ["y"], evidence={"site": "d"}, rng=0).report)
    assert note.startswith("hardly any row has such values of 'site' and 't' together: 'y' is extrapolated")
    for answer in (treated.do({"t": 1}, ["y"], rng=0), treated.query({"site": "d"}, ["y"], rng=0)):
        assert not noted(answer.report)


def test_counterfactuals_say_so_too(treated):
    row = {"site": "d", "x": 0.0, "t": 1, "y": 5.0}
    with pytest.warns(UserWarning, match="hardly any row has such values of 'site' and 't' together"):
        treated.counterfactual(row, {"t": 0})
    treated.counterfactual(row | {"site": "a"}, {"t": 0})


def test_numbers_that_go_together_are_noted_apart(beside):
    for values in ({"a": 1.0, "b": -1.0}, {"a": 2.0, "b": -2.0}, {"a": 1.0}):
        assert noted(beside.do(values, ["y"], rng=0).report)
    for values in ({"a": 1.0, "b": 1.0}, {"a": 0.0, "b": 0.2}, {"s": 1.0}):
        assert not noted(beside.do(values, ["y"], rng=0).report)


def test_tables_of_labels_are_judged_as_well():
    rows = always_treated(2, 600)
    table = {"site": rows["site"], "t": np.array(["no", "yes"])[rows["t"]], "y": np.where(rows["y"] > 1, "u", "v")}
    model = mm.bp.BayesianNetwork([("site", "t"), ("site", "y"), ("t", "y")]).fit(table)
    assert noted(model.do({"t": "no"}, ["y"]).report)
    assert noted(model.query({"t": "no", "site": "d"}, ["y"]).report)
    assert not noted(model.do({"t": "yes"}, ["y"]).report)


def test_units_and_order_do_not_matter_and_numbers_between_rows_are_as_their_neighbours():
    rng = np.random.default_rng(3)
    dose, z = rng.choice([0.0, 1.0, 2.0, 5.0], 500), rng.normal(size=500)
    parents = {"dose": dose[:, None], "z": z[:, None]}
    asked = {"dose": np.array([[1.0], [1.5], [3.5], [9.0]]), "z": np.array([[3.0], [3.0], [0.0], [0.0]])}
    seen = SeenTogether.of(parents)
    assert not seen.unlike("dose", "z", asked).any()
    beside = SeenTogether.of({"dose": dose[:, None], "z": (z + 3 * dose)[:, None]})
    assert beside.unlike("dose", "z", asked).tolist() == [False, False, True, True]
    other = {"z": (z + 3 * dose)[::-1, None] * 100, "dose": np.exp(dose[::-1, None])}
    at = {"dose": np.exp(asked["dose"]), "z": asked["z"] * 100}
    assert SeenTogether.of(other).unlike("dose", "z", at).tolist() == [False, False, True, True]


def test_one_parent_is_never_alone():
    assert SeenTogether.of({"a": np.zeros((3, 1))}).parents == {}


def test_rows_of_a_table_that_contradict_themselves_are_noted_by_any_column_given_all_others():
    """b is nearly a, and of gaps nothing is said; new rows of the same law have no note."""
    rows = side_by_side(7, 300)
    rows["b"] = rows["a"] + 0.1 * rows["b"]
    rows["b"][:20] = np.nan
    model = mm.bp.DependencyNetwork().fit(rows)
    (note,) = noted(model.query({"a": 1.5, "b": -1.5}, ["y", "s"]).report)
    assert note.startswith("hardly any row has such values of 'a' and 'b' together: 'y' and 's' are extrapolated, with")
    asked = {"a": [1.5, 1.5, 1.5], "b": [1.5, -1.5, None]}
    (note,) = noted(model.predict(asked, ["y"]).report)
    assert note.startswith("in 1 of 3 rows: hardly any row has such values of 'a' and 'b' together: 'y' is")
    new = side_by_side(8, 200)
    new["b"] = new["a"] + 0.1 * new["b"]
    assert sum(int(note.split()[1].rstrip("%")) for note in noted(model.predict(new, ["y"]).report)) <= 2
