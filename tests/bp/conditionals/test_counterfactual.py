"""What would have been, against laws in which it is known; and what no data can tell refused."""

import numpy as np
import pandas as pd
import pytest

import meanmap as mm
from meanmap.core.errors import InputError, KindError

ARROWS = [("z", "x"), ("z", "y"), ("x", "y")]
CASES = np.random.default_rng(9).normal(size=(3, 25))


def linear(z, e, f, x=None):
    x = z + e if x is None else x
    return {"z": z, "x": x, "y": x + 2 * z + f}


def louder(z, e, f, x=None):
    """The noise of y grows with x: added as it was it would be too small, or too large."""
    x = 0.7 * z + 0.7 * e if x is None else x
    return {"z": z, "x": x, "y": x + z + np.exp(0.5 * x) * f}


def growing(z, e, f, x=None):
    """A spread that grows ten times along x: the leaves of a forest are too wide for it."""
    x = 1.5 * np.abs(0.7 * z + 0.7 * e) if x is None else np.abs(x)
    return {"z": z, "x": x, "y": x + (0.3 + x) * f}


@pytest.fixture(scope="module")
def model():
    return mm.bp.BayesianNetwork(ARROWS).fit(linear(*np.random.default_rng(0).normal(size=(3, 1000))))


@pytest.mark.parametrize(("law", "bound"), [(linear, 0.12), (louder, 0.25), (growing, 0.4)])
def test_values_are_those_that_would_have_been(law, bound):
    """Errors that are a tenth of the noise, and up to a third where noise and line are both to be learned;
    the mean is zero within four standard errors."""
    fitted = mm.bp.BayesianNetwork(ARROWS).fit(law(*np.random.default_rng(2).normal(size=(3, 1000))))
    was = law(*CASES)
    ends = (0.1, 3.0) if law is growing else (-1.5, 1.5)
    other = np.clip(was["x"] + np.where(CASES[1] > 0, -1, 1), *ends)
    truth = law(*CASES, x=other)["y"]
    found = [
        fitted.counterfactual({name: column[i] for name, column in was.items()}, {"x": other[i]})
        for i in range(len(other))
    ]
    error = np.array([each["y"] for each in found]) - truth
    assert np.sqrt(np.mean(error**2)) < bound < 0.5 * np.std(truth - was["y"])
    assert abs(error.mean()) < 4 * error.std() / 5
    assert [each["z"] for each in found] == was["z"].tolist()


def test_nothing_changes_where_nothing_is_changed(model):
    row = {"x": 0.3, "y": 50.0, "z": -1.0}
    with pytest.warns(UserWarning, match=r"'y'\] has 1 value far outside"):
        same = model.counterfactual(row, {"x": 0.3})
    assert same == pytest.approx({"y": 50.0, "z": -1.0}, abs=1e-12)
    with pytest.warns(UserWarning, match=r"'y'\] has 1 value far outside"):
        far = model.counterfactual(row, {"x": 1.3})  # noise beyond all that was seen stays beyond it
    assert far["y"] == pytest.approx(51, abs=1)
    assert model.counterfactual({"y": 2.0, "x": 0.3, "z": 0.1}, {"y": 5.0}) == pytest.approx({"x": 0.3, "z": 0.1})


def test_a_row_of_a_table_is_taken_as_it_is(model):
    """With columns that are no variables, and gaps that do not matter."""
    row = {"x": 0.3, "y": 1.0, "z": -1.0}
    expected = model.counterfactual(row, {"x": 1.0}, ["y"])
    table = pd.DataFrame([{"patient": 7, **row, "city": "Ulm"}])
    for case in (table.iloc[0], table, table.to_dict("records")[0]):
        assert model.counterfactual(case, {"x": 1.0}, ["y"]) == expected
    assert model.counterfactual(table, {"x": 1.0}) == {**expected, "z": -1.0}
    gap = table.assign(y=np.nan).iloc[0]
    assert model.counterfactual(gap, {"x": 1.0}) == {"z": -1.0}
    with pytest.raises(InputError, match="row has no value of 'y'"):
        model.counterfactual(gap, {"x": 1.0}, ["y"])
    with pytest.warns(UserWarning, match="its column 'Z' is not used"):
        model.counterfactual({"x": 0.3, "Z": 1.0}, {"x": 1.0}, ["x"][:0])
    with pytest.raises(InputError, match="expected some of the model's columns: "):
        model.counterfactual({"patient": 7}, {"x": 1.0})
    with pytest.raises(InputError, match="no node 'patient'"):
        model.counterfactual(row, {"patient": 7})
    with pytest.raises(KindError, match=r"row\['x'\] has 2 values"):
        model.counterfactual(pd.concat([table, table]), {"x": 1.0})


def test_what_is_not_identified_is_refused(model):
    with pytest.raises(InputError, match=r"no value of 'z'; the counterfactual of 'y' needs its own value.*do\(\)"):
        model.counterfactual({"x": 0.0, "y": 1.0}, {"x": 1.0})
    with pytest.raises(InputError, match="no value of 'y'"):
        model.counterfactual({"x": 0.0, "z": 1.0}, {"x": 1.0}, ["y"])
    with pytest.raises(InputError, match=r"no value of 'z', which stays unchanged; query\(\)"):
        model.counterfactual({"x": 0.0, "y": 1.0}, {"y": 1.0}, ["z"])
    with pytest.raises(InputError, match="values is empty"):
        model.counterfactual({"x": 0.0, "y": 1.0}, {})
    data = linear(*np.random.default_rng(0).normal(size=(3, 60)))
    half = mm.bp.BayesianNetwork(mm.graphs.PDAG.of([("x", "y"), ("x", "z")], [("y", "z")])).fit(data)
    with pytest.raises(InputError, match=r"the edge 'y' — 'z' has no direction, and the counterfactual of '[yz]'"):
        half.counterfactual({"x": 0.0, "y": 1.0, "z": 0.0}, {"x": 1.0}, ["y"])
    labels = {"x": data["x"], "y": np.where(data["y"] > 0, "up", "down")}
    with pytest.raises(InputError, match=r"'y' is a label, and 'x' would change its probabilities.*do\(\)"):
        mm.bp.BayesianNetwork([("x", "y")]).fit(labels).counterfactual({"x": 0.0, "y": "up"}, {"x": 1.0})
