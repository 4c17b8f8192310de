"""One wild cell of a table decides nothing in any model of tables, and is named."""

import warnings

import numpy as np
import pandas
import pytest

import meanmap as mm
from meanmap.core.errors import NonFiniteError

ROWS = 300


def table(wild):
    r = np.random.default_rng(3)
    x = r.normal(size=ROWS)
    y = x + 0.3 * r.normal(size=ROWS)
    x[3] = 1e4 if wild else np.nan
    return x, y


def graph(x, y):
    found = mm.KernelGraph([("x", "y")]).fit({"x": x, "y": y}).query({"y": 0.2}, ["x"])
    return found["x"].mean(), found.report.notes


def pairs(x, y):
    found = mm.KernelGraph([("x", "y")]).fit({("x", "y"): (x, y)}).query({"y": 0.2}, ["x"])
    return found["x"].mean(), found.report.notes


def dependency(x, y):
    frame = pandas.DataFrame({"x": x, "y": y})
    found = mm.bp.DependencyNetwork().fit(frame).predict({"y": [0.2]}, targets=["x"])
    return found["x"].mean()[0], found.report.notes


def network(x, y):
    found = mm.bp.BayesianNetwork([("y", "x")]).fit({"x": x, "y": y}).query({"y": 0.2}, ["x"], rng=0)
    return found["x"].mean(), found.report.notes


def field(x, y):
    found = mm.KernelField([("a", "b")], relations=["r"]).fit({"r": (x, y)}).query({"b": 0.2}, ["a"])
    return found["a"].mean(), ()


MODELS = {
    "KernelGraph": graph,
    "KernelGraph of pairs": pairs,
    "DependencyNetwork": dependency,
    "BayesianNetwork": network,
    "KernelField": field,
}


@pytest.mark.parametrize("name", MODELS)
def test_a_wild_cell_counts_as_missing_and_is_named(name):
    """`KernelGraph` answered 28.2 for 0, `DependencyNetwork` 66."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found, notes = MODELS[name](*table(wild=True))
    expected, without = MODELS[name](*table(wild=False))
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    told = [str(each.message) for each in said] + list(notes)
    assert sum("10000 in row 3" in note for note in told) == 1
    assert not any("10000" in note for note in without)


def test_what_is_not_finite_is_told_of_its_column():
    y = np.where(np.arange(60) == 3, np.inf, 0.5 * np.arange(60))
    with pytest.raises(NonFiniteError, match=r"data\['y'\] holds 1 value"):
        mm.bp.BayesianNetwork([("z", "y")]).fit({"z": np.arange(60.0), "y": y})


def test_one_column_gets_one_note():
    """A nine-like wild cell is left out, and not also called a number; codes that many rows hold are still named."""
    rng = np.random.default_rng(3)
    x = rng.normal(100, 10, 300)
    table = {"x": np.r_[x, 999], "y": np.r_[x, 100] + rng.normal(size=301)}
    (note,) = [note for note in graph(table["x"], table["y"])[1] if "999" in note]
    assert "this cell counts as missing" in note
    table["x"][:20] = -999
    table["x"][-1] = 1e6
    said = [note for note in graph(table["x"], table["y"])[1] if "'x'" in note]
    assert any("-999 in 20 of 300 rows" in note for note in said)
    assert any("1e+06 in row 300" in note for note in said)


def test_wild_cells_of_two_columns_of_a_frame_lie_in_different_rows():
    """The rows that were left had other labels, and `fit` refused to pair them by position."""
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"x": rng.normal(size=60), "y": rng.normal(size=60)})
    frame.loc[3, "x"], frame.loc[9, "y"] = 1e4, -1e4
    fitted = mm.BayesianNetwork([("x", "y")]).fit(frame)
    assert sum("standard deviations from all others" in note for note in fitted.notes) == 2
