"""Cells and labels of a table that change what a formula says: each is named."""

import numpy as np
import pandas as pd
import pytest

import meanmap as mm
from meanmap.core.errors import ColumnError


def table(n=120):
    rng = np.random.default_rng(0)
    hours = rng.normal(size=n)
    points = 50 + 4 * hours + rng.normal(0.0, 6.0, n)
    passed = points + rng.normal(0.0, 6.0, n) > 50
    return pd.DataFrame({"hours (all)": hours, "points": points, "passed": np.where(passed, "ja", "nein"), "land": "x"})


def test_one_wild_cell_is_named_and_others_are_not():
    frame = table()
    quiet = mm.fit("points ~ `hours (all)`", frame)
    assert not quiet.report.notes
    frame.loc[7, "points"] *= 10
    (note,) = mm.fit("points ~ `hours (all)`", frame).report.notes
    assert note.startswith(f"'points' is {frame.points[7]:g} in row 7, ")
    assert "robust standard deviations from all others" in note


def test_of_two_labels_the_one_that_says_yes_is_modelled_and_named():
    frame = table()
    found = mm.fit("passed ~ `hours (all)`", frame, family="bernoulli")
    assert found.mean[1] > 0
    assert "probability of passed[ja]" in str(found)
    swapped = frame.assign(passed=pd.Categorical(frame.passed, categories=["ja", "nein"]))
    declared = mm.fit("passed ~ `hours (all)`", swapped, family="bernoulli")
    assert "probability of passed[nein]" in str(declared)
    np.testing.assert_allclose(declared.mean, -found.mean, atol=1e-6)
    asked = mm.fit('passed["nein"] ~ `hours (all)`', frame, family="bernoulli")
    np.testing.assert_allclose(asked.mean, declared.mean, atol=1e-6)


def test_constant_labels_and_dates_as_text_are_named():
    frame = table().assign(day=[f"{day % 28 + 1}.6.2026" for day in range(120)])
    (note,) = mm.fit("points ~ `hours (all)` + land", frame).report.notes
    assert note == "'land' is 'x' in all rows, so the data do not show its effect"
    (note,) = mm.fit("points ~ day", frame).report.notes
    assert note == "'day' holds dates or times as text, read as 28 labels"


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("points ~ hours", "if 'hours (all)' is meant, type `hours (all)` in backticks"),
        ("points ~ lend", "did you mean 'land'?"),
    ],
)
def test_a_name_that_is_not_there_says_what_to_type(formula, said):
    with pytest.raises(ColumnError, match="data has no column") as found:
        mm.fit(formula, table())
    assert said in str(found.value)


def test_numbers_with_one_odd_cell_are_named():
    frame = table()
    frame["hours"] = frame["hours (all)"].map("{:.3f}".format)
    frame.loc[5, "hours"] = "1.2o"
    (note,) = mm.fit("points ~ hours", frame).report.notes
    assert note.startswith("'hours' is text that looks like numbers (but for '1.2o'), '1.2o' in row 5, read as ")
