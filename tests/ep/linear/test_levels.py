"""What is said of labels: how many rows have each, which are unknown in new rows, and text in place of numbers."""

import warnings

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("formulae")

from meanmap.core.errors import ColumnError, ParameterError
from meanmap.ep.linear import fit


def table(rows=90):
    rng = np.random.default_rng(4)
    school = np.array([f"S {100 + k}" for k in range(6)])[np.arange(rows) % 6]
    town = np.array(["Bergen", "Oslo", "Trondheim"])[rng.integers(0, 3, rows)]
    x = rng.normal(size=rows)
    passed = np.where(rng.uniform(size=rows) < 0.6, "ja", "nein").astype(object)
    return pd.DataFrame({"y": x + rng.normal(size=rows), "x": x, "town": town, "school": school, "passed": passed})


DATA = table()


def test_a_third_label_is_named_with_its_row():
    data = DATA.copy()
    data.loc[17, "passed"] = "jaa"
    ja, nein = ((data.passed == label).sum() for label in ("ja", "nein"))
    words = rf"holds 3 labels: 'nein' \({nein} rows\), 'ja' \({ja} rows\), 'jaa' \(1 row: 17\); expected two, or the"
    with pytest.raises(ParameterError, match=words):
        fit("passed ~ x", data, "bernoulli")
    data.loc[3, "x"] = np.nan  # rows are those of the table, not of what is left
    with pytest.raises(ParameterError, match=r"'jaa' \(1 row: 17\)"):
        fit("passed ~ x", data, "bernoulli", missing="drop")


def test_many_labels_are_not_all_listed():
    labels = [f"l{k}" for k in range(9) for _ in range(12 - k)]
    data = {"y": labels, "x": np.random.default_rng(0).normal(size=len(labels))}
    with pytest.raises(ParameterError, match=r"9 labels: 'l0' \(12 rows\), .*'l3' \(9 rows\), 3 more, 'l7' \(5 rows\)"):
        fit("y ~ x", data, "bernoulli")


def test_numbers_with_decimal_commas_are_shown_with_what_to_type():
    commas = DATA.assign(y=[f"{value:.2f}".replace(".", ",") for value in DATA.y])
    with pytest.raises(ParameterError, match=rf"numbers with a comma, '{commas.y[0]}' in row 0: .*decimal=','"):
        fit("y ~ x", commas)
    commas.loc[40, "y"] = "4,5o"
    with pytest.raises(ParameterError, match=r"\(but for '4,5o'\), '4,5o' in row 40: "):
        fit("y ~ x", commas)
    predictor = DATA.assign(x=[f"{value:.3f}" for value in DATA.x])
    predictor.loc[12, "x"] = "1.2o"
    assert any("'1.2o' in row 12, read as" in note for note in fit("y ~ x", predictor).report.notes)


def test_unknown_levels_are_refused_with_the_known_ones_closest_first():
    new = pd.DataFrame({"x": [0.0, 1.0], "town": ["Oslo", "Trondhem"], "school": "S 100"})
    words = r"column 'town' of data holds 'Trondhem' in row 1, a level .* expected 'Trondheim', '\w+', '\w+'\."
    for formula in ("y ~ x + town", "y ~ x + C(town) + (1 | school)", "y ~ x + (1 + town | school)"):
        with pytest.raises(ColumnError, match=words):
            fit(formula, DATA).predict(new)


def test_groups_spelled_otherwise_are_noted_as_new():
    found = fit("y ~ x + (1 | school)", DATA)
    for asked in ("s 100", "S 1O0", "S-100", " S100"):
        with pytest.warns(UserWarning, match=f"group '{asked}' of 'school' counts as new; if 'S 100' of the fit is me"):
            found.predict({"x": [0.0], "school": [asked]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.predict({"x": [0.0, 0.0], "school": ["S 106", "S 100"]})
    slopes = fit("y ~ x + (1 + x | school)", DATA)
    with pytest.warns(UserWarning, match="'x' is 50 in row 0, far outside the data"):
        slopes.predict({"x": [50.0], "school": ["S 100"]})


def test_a_combination_of_labels_that_no_row_has_keeps_its_prior():
    """It was refused: "is 0 in all rows: the intercept covers that"."""
    rng = np.random.default_rng(6)
    data = pd.DataFrame({"a": rng.choice(["a1", "a2", "a3"], 200), "b": rng.choice(["b1", "b2"], 200)})
    data = data[(data.a != "a3") | (data.b != "b2")].reset_index(drop=True)
    data["y"] = (data.a == "a2") * 1.0 - (data.b == "b2") + rng.normal(size=len(data))
    found = fit("y ~ a * b", data)
    (note,) = found.report.notes
    assert note.startswith("no row has the combination 'a[a3]:b[b2]': its effect is that of the prior")
    shown = found.to_frame()
    np.testing.assert_allclose(shown.loc["a[a3]:b[b2]", ["estimate", "sd"]], [0, 2.5 * data.y.std(ddof=0)], atol=1e-6)
    # The others are as in the model of the cells that there are, and a prediction for this one says that nobody knows.
    data["cell"] = data.a + data.b
    cells = fit("y ~ cell", data).predict(data)
    np.testing.assert_allclose(found.predict(data).estimate, cells.estimate, atol=0.01)
    assert found.predict({"a": ["a3"], "b": ["b2"]})["sd"][0] > 2 * data.y.std()
    with pytest.raises(ColumnError, match=r"is -?0 in all rows"):
        fit("y ~ x + I(0 * x)", DATA)


def test_weights_that_are_precisions_get_a_word_and_say_what_to_type():
    rng = np.random.default_rng(8)
    data = DATA.assign(w=rng.uniform(0.2, 5, len(DATA)))
    (note,) = fit("y ~ x", data, weights="w").report.notes
    assert f"here {data.w.sum():g} in place of 90, but are not whole numbers" in note
    assert "as in lme4, divide them by their mean" in note
    scaled = data.assign(w=data.w / data.w.mean())
    found = fit("y ~ x", scaled, weights="w")
    assert not found.report.notes
    assert "weights sum to 90" in str(found)
    # Weighted least squares, with the number of rows as they are, under weak priors.
    design, w = np.stack([np.ones(90), data.x], axis=1), scaled.w.to_numpy()
    inverse = np.linalg.inv(design.T @ (w[:, None] * design))
    effects = inverse @ design.T @ (w * data.y)
    sigma = np.sqrt((w * (data.y - design @ effects) ** 2).sum() / 88)
    shown = found.to_frame()
    np.testing.assert_allclose(shown.estimate["x"], effects[1], atol=0.01)
    np.testing.assert_allclose(shown.sd["x"], sigma * np.sqrt(inverse[1, 1]), rtol=0.02)
    np.testing.assert_allclose(shown.estimate["sigma"], sigma, rtol=0.02)
    assert not fit("y ~ x", data.assign(w=2.0), weights="w").report.notes


def test_sums_as_coding_of_labels():
    """`Sum` was looked for among the columns."""
    plain, coded = fit("y ~ town", DATA).to_frame(), fit("y ~ C(town, Sum)", DATA)
    assert "compared with" not in str(coded)
    shown = coded.to_frame()
    effects = np.append(0.0, plain.estimate[plain.index.str.startswith("town[")])
    np.testing.assert_allclose(shown.loc["Intercept", "estimate"], plain.estimate.iloc[0] + effects.mean(), atol=0.02)
    left = [name for name in shown.index if name.startswith("C(town")]
    np.testing.assert_allclose(shown.loc[left, "estimate"], (effects - effects.mean())[: len(left)], atol=0.03)
    with pytest.raises(ColumnError, match=r"no column 'Sum'"):
        fit("y ~ Sum", DATA)
