"""Cells and labels of a table that change what a formula says: each is named."""

import re

import numpy as np
import pandas as pd
import pytest

import meanmap as mm
from meanmap.core.errors import ColumnError, InputError


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


def test_the_tail_of_counts_is_judged_by_logarithms():
    """A clean negative binomial table had "93 robust standard deviations from all others"."""
    rng = np.random.default_rng(265)
    x = rng.normal(size=150)
    y = rng.poisson(np.exp(0.5 + x) * rng.gamma(0.3, 1 / 0.3, 150))
    frame = pd.DataFrame({"x": x, "y": y})
    assert y.max() == 349

    def named(family):
        notes = mm.fit("y ~ x", frame, family=family).report.notes
        return [note for note in notes if "robust standard deviations from all others" in note]

    assert not named("negativebinomial")
    assert named("gaussian")
    frame.loc[7, "y"] = 100_000
    assert named("negativebinomial")[0].startswith("'y' is 100000 in row 7, ")


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


@pytest.mark.parametrize("name", ["hours (all)", "points", "started", "exposure"])
def test_codes_for_missing_values_are_named_wherever_a_formula_has_numbers(name):
    rng = np.random.default_rng(1)
    frame = table().assign(started=rng.normal(size=120), exposure=rng.uniform(1.0, 2.0, 120))
    frame.loc[rng.permutation(120)[:25], name] = -999.0
    notes = mm.fit("points ~ `hours (all)` + I(started ** 2) + offset(exposure)", frame).report.notes
    (note,) = (each for each in notes if "-999" in each)
    assert note.startswith(f"column {name!r} of data holds -999 in 25 of 120 rows (21%), far from all other values")
    assert note.endswith("if it stands for a missing value, write NaN instead and pass missing='drop'.")


def test_a_wild_cell_beside_codes_is_named_in_its_row_and_codes_of_groups_are_groups():
    frame = table().assign(number=np.arange(120) % 12 + 1)
    frame.loc[[*range(20, 45)], "points"] = -999.0
    frame.loc[60, "points"] = 800.0
    frame.loc[[*range(5)], "number"] = -999
    found = mm.fit("points ~ `hours (all)` + (1 | number)", frame)
    of_points, wild, of_groups = (each for each in found.report.notes if "points" in each or "number" in each)
    assert "holds -999 in 25 of 120 rows" in of_points
    assert wild.startswith("'points' is 800 in row 60, ")
    assert "holds -999 in 5 of 120 rows" in of_groups
    assert "it counts as a group: if" in of_groups
    assert of_points in str(found)


def test_labels_written_in_two_ways_are_named_with_what_to_type():
    frame = table().assign(site=["north", "north ", "South", "south"] * 30)
    said = "column 'site' of data has the labels 'South' and 'south' (and 1 more), which differ only in spaces or "
    for formula in ("points ~ site", "points ~ 1 + (1 | site)"):
        (note,) = (each for each in mm.fit(formula, frame).report.notes if "'site'" in each)
        assert note.startswith(said)
        assert ".str.strip().str.lower()" in note
    (note,) = (
        each for each in mm.fit("points ~ site", frame.astype({"site": "category"})).report.notes if "'site'" in each
    )
    assert note.startswith(said)


def test_a_column_of_text_and_numbers_is_named():
    frame = table().assign(land=["a", 1.5] * 60)
    for formula in ("points ~ land", "points ~ 1 + (1 | land)"):
        with pytest.raises(
            ColumnError, match=r"column 'land' of data holds text, such as 'a', and numbers, such as 1\.5"
        ):
            mm.fit(formula, frame)


@pytest.mark.parametrize(
    ("formula", "hint"),
    [
        ("points ~", "a term is missing at its end"),
        ("points ~ land +", "missing at its end"),
        ("~ land", "no response"),
    ],
)
def test_half_a_formula_says_what_is_missing(formula, hint):
    with pytest.raises(InputError, match=hint):
        mm.fit(formula, table())


@pytest.mark.parametrize("column", ["points", "hours (all)", "land", "sure"])
@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_a_missing_cell_of_a_nullable_column_is_like_any_other(column, backend):
    """NA was a TypeError, even with missing="drop"."""
    if backend == "pyarrow":
        pytest.importorskip("pyarrow")
    frame = table().assign(land=np.resize(["a", "b", "c"], 120), sure=np.resize([True, False, False, True], 120))
    formula = "points ~ `hours (all)` + sure + (1 | land)"
    nullable = frame.convert_dtypes(dtype_backend=backend)
    nullable.loc[3, column] = pd.NA
    with pytest.raises(InputError, match=rf"missing values in '{re.escape(column)}' \(1\)"):
        mm.fit(formula, nullable)
    found = mm.fit(formula, nullable, missing="drop")
    assert found.left_out == 1
    np.testing.assert_allclose(found.mean, mm.fit(formula, frame.drop(index=3)).mean, rtol=1e-9)


def test_numbers_are_no_groups_where_those_of_the_fit_are_text():
    """They counted as new groups without a word; text for numbers was refused."""
    frame = table().assign(land=[str(k % 10) for k in range(120)])
    found = mm.fit("points ~ 1 + (1 | land)", frame)
    for new in ([1, 2], [1.0, 2.0], [91, 92]):
        with pytest.raises(ColumnError, match=rf"'land' are {new[0]:g} here, and '[01]' in the data of the fit: give"):
            found.predict({"land": new})
    assert len(found.predict({"land": "1"})) == 1  # a dictionary of single values is one row
    with pytest.raises(InputError, match="no rows; expected at least one"):
        found.predict({"land": []})


def test_columns_that_share_a_name_with_a_constant_or_a_parameter_are_refused():
    """A column called Intercept vanished, and one called sigma was printed twice."""
    frame = table().rename(columns={"hours (all)": "Intercept"}).assign(sigma=table()["hours (all)"])
    with pytest.raises(ColumnError, match="a column of this name: rename"):
        mm.fit("points ~ Intercept", frame)
    with pytest.raises(ColumnError, match="'sigma' has the name of a parameter of gaussian responses: rename"):
        mm.fit("points ~ sigma", frame)
    assert mm.fit("passed ~ sigma", frame, family="bernoulli").to_frame().index.tolist() == ["Intercept", "sigma"]


def test_columns_that_vary_by_their_rounding_are_not_called_constant():
    rng = np.random.default_rng(3)
    table = {"y": rng.normal(size=40), "x": 1e12 + 0.1 * rng.normal(size=40), "g": np.repeat(list("abcdefgh"), 5)}
    for formula in ("y ~ x", "y ~ 1 + (1 + x | g)"):
        with pytest.raises(ColumnError, match=r"'x' varies by [\d.]+ around 1e\+12.*subtract a constant"):
            mm.fit(formula, table)
