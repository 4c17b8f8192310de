"""One contract for the three models of a table: the same calls, meanings, refusals and notes."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import norm
from sklearn.neighbors import KNeighborsRegressor

import meanmap as mm
from meanmap.core.errors import InputError, KindError, NonFiniteError, ShapeError

ARROWS = [("a", "b"), ("a", "k")]
UNFITTED = {
    "KernelGraph": mm.KernelGraph(ARROWS),
    "DependencyNetwork": mm.bp.DependencyNetwork([KNeighborsRegressor(10)]),
    "BayesianNetwork": mm.bp.BayesianNetwork(ARROWS),
}
ROWS = 200


def table(**columns):
    """b = a + noise, both of variance one; k is mostly the sign of a; two values of b are missing."""
    a, noise, other = np.random.default_rng(0).normal(size=(3, ROWS))
    k = np.where(a + 0.3 * other > 0, "up", "down")
    return pd.DataFrame({"a": a, "b": a + noise, "k": k} | columns).assign(b=lambda t: t["b"].mask(t.index < 2))


@pytest.fixture(scope="module", params=UNFITTED)
def unfitted(request):
    return UNFITTED[request.param]


@pytest.fixture(scope="module")
def model(unfitted):
    return unfitted.fit(table())


def test_a_score_is_the_density_of_the_cells_that_are_there(model):
    b = np.linspace(-2.0, 2.0, 9)
    scores = model.score({"b": b})
    np.testing.assert_allclose(scores, norm.logpdf(b, 0, np.sqrt(2)), atol=0.5)
    gaps = model.score(pd.DataFrame({"k": None, "a": np.nan, "b": b}))
    np.testing.assert_allclose(gaps, scores, rtol=1e-9)
    assert model.score({"a": [np.nan], "b": [np.nan]}).tolist() == [0]


def test_columns_of_evidence_are_as_many_queries(model):
    """Draws of a network are fewer in each of several queries than in one."""
    beliefs = model.query({"a": [1.0, -1.0], "k": "up"}, ["b"], rng=0)
    singly = [model.query({"a": a, "k": "up"}, ["b"], rng=0)["b"].mean() for a in (1.0, -1.0)]
    np.testing.assert_allclose(beliefs["b"].mean(), singly, atol=0.15)
    frame = model.query(pd.DataFrame({"a": [1.0, -1.0], "k": "up"}), ["b"], rng=0)
    np.testing.assert_array_equal(frame["b"].mean(), beliefs["b"].mean())
    row = model.query(pd.DataFrame({"a": [1.0], "k": "up"}).iloc[0], ["b"], rng=0)
    assert row["b"].mean() == singly[0]
    with pytest.raises(ShapeError, match=r"evidence has different numbers of queries: \{'a': 2, 'b': 3\}"):
        model.query({"a": [1.0, 2.0], "b": [1.0, 2.0, 3.0]})


def test_rows_of_a_table_may_have_other_columns_and_gaps(model):
    """In a mapping that was written for the call every name counts."""
    frame = pd.DataFrame({"patient": [1, 2], "a": [1.0, -1.0], "b": [np.nan, 0.5], "k": ["up", "down"]})
    own = model.query({"a": 1.0, "k": "up"}, ["b"], rng=0)["b"].mean()
    assert model.query(frame.iloc[0], ["b"], rng=0)["b"].mean() == own
    several = model.query(frame[["patient", "a", "k"]], ["b"], rng=0)["b"].mean()
    np.testing.assert_array_equal(several, model.query(frame[["a", "k"]], ["b"], rng=0)["b"].mean())
    beliefs = model.query(frame.iloc[0].rename({"k": "K"}), ["b"], rng=0)
    assert any("its column 'K' is not used: is it meant?" in note for note in beliefs.report.notes)
    assert model.sample(3, frame.iloc[0], rng=0)["a"].tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(InputError, match="'patient'"):
        model.query({"patient": 1, "a": 1.0}, ["b"])
    with pytest.raises(InputError, match=r"evidence has 'patient'; expected some of the model's columns: 'a', 'b'"):
        model.query(frame.iloc[0][["patient"]], ["b"])


def test_evidence_that_says_nothing_is_refused_in_the_same_words(model):
    with pytest.raises(InputError, match=r"evidence\['a'\] is missing \(nan\); leave out what is not known"):
        model.query({"a": np.nan}, ["b"])
    with pytest.raises(InputError, match=r"\['k'\] has a label that none of the 200 rows of the data has; .*'up'"):
        model.query({"k": "sideways"}, ["b"])
    with pytest.raises(InputError, match="'z'"):
        model.query({"z": 1.0}, ["b"])
    with pytest.raises(InputError, match="'z'"):
        model.predict({"a": [1.0]}, ["z"])
    with pytest.raises(InputError, match=r"frame has .*; expected some of the model's columns: 'a', 'b'"):
        model.impute({"z": [1.0]})


def test_evidence_about_all_variables_leaves_none_to_ask_about(model):
    everything = {"a": 1.0, "b": 1.0, "k": "up"}
    if isinstance(model, mm.bp.results.FittedKernelGraph):
        assert model.query(everything)["a"].mean() == pytest.approx(1.0)
        return
    with pytest.raises(InputError, match="every variable has a value: none is left to ask about"):
        model.query(everything)


def test_functions_are_taken_or_refused_in_words(model):
    def likelihood(a):
        return norm.pdf(a, 1.0, 0.05)

    if isinstance(model, mm.bp.results.FittedKernelGraph):
        assert model.query({"a": likelihood}, ["b"])["b"].mean() == pytest.approx(1.0, abs=0.3)
        return
    with pytest.raises(KindError, match=r"\['a'\] is a function; expected a value\. .* mm.KernelGraph takes"):
        model.query({"a": likelihood}, ["b"])


def test_likelihoods_of_labels_are_refused_with_advice_that_gives_the_answer(model):
    """Means of b given the labels are ±.76, and both labels have half of the rows."""
    likelihood = {"up": 0.4, "down": 1.2}
    weights, series = np.array(list(likelihood.values())), pd.Series(likelihood)
    tree = isinstance(model, mm.bp.results.FittedKernelGraph)
    said = "a function of an array of values" if tree else "weighted by likelihood times probability of the value"
    for form in (likelihood, weights, weights.tolist(), series):
        with pytest.raises(KindError, match=rf"evidence\['k'\] is .*; expected a value.*{said}"):
            model.query({"k": form}, ["b"])
    before = model.query(None, ["k"], rng=0).probabilities("k")
    shares = np.array([likelihood[label] * before[label] for label in likelihood])
    each = model.query({"k": list(likelihood)}, ["b"], rng=0)["b"].mean()
    averaged = shares @ each / shares.sum()
    if tree:
        found = model.query({"k": lambda labels: [likelihood[label] for label in labels]}, ["b"])
        assert found["b"].mean() == pytest.approx(averaged, abs=0.02)
    assert averaged == pytest.approx(-0.38, abs=0.2)


def test_rows_are_filled_and_drawn_alike(model):
    frame = pd.DataFrame({"a": [1.5, np.nan], "b": [1.5, -2.0], "k": [None, "down"], "other": [1, 2]})
    whole = model.impute(frame, rng=0)
    assert whole["k"].tolist() == ["up", "down"]
    assert whole["a"][1] == pytest.approx(-1.2, abs=0.4)
    assert whole["other"].tolist() == [1, 2]
    beliefs = model.predict(frame, ["a"], rng=0)
    assert beliefs["a"].mean()[1] == pytest.approx(whole["a"][1], abs=1e-6)
    drawn = model.sample(30, {"a": 1.5}, rng=0)
    assert set(drawn["a"].tolist()) == {1.5}
    assert drawn["b"].mean() == pytest.approx(1.5, abs=0.6)
    rows = model.sample(3, frame[["a", "b", "k"]], rng=0)
    assert {rows[name].shape for name in "abk"} == {(2, 3)}
    assert rows["b"].tolist() == [[1.5] * 3, [-2.0] * 3]
    assert rows["k"][1].tolist() == ["down"] * 3


def test_what_is_odd_is_a_note_and_without_a_report_a_warning(model):
    far = r"\['a'\] has 1 value far outside"
    assert any("evidence['a'] has 1 value far outside" in n for n in model.query({"a": 1e6}, ["b"], rng=0).report.notes)
    assert any("frame['a'] has 1 value far out" in n for n in model.predict({"a": [1e6]}, ["b"], rng=0).report.notes)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        model.sample(2, {"a": 1e6}, rng=0)
        model.impute({"a": [1e6, 0.0], "b": [np.nan, np.nan]})
    assert [re.search(far, str(each.message)) is not None for each in warned].count(True) == 2
    assert {each.filename for each in warned} == {__file__}


def test_rows_of_a_table_have_the_notes_of_their_queries(model):
    """Each note once, with the number of rows; where there is no report, as a warning."""
    row, usual = {"a": 2.9, "b": -3.1}, {"a": 0.1, "b": 0.2}
    asked = model.query(row, ["k"], rng=0).report.notes
    frame = {name: [usual[name], row[name], row[name]] for name in row}
    found = model.predict(frame, ["k"], rng=0).report.notes
    own = [note for note in asked if note not in found]
    named = [note.replace("evidence[", "frame[").replace("1 of 1 queries", "2 of 3 rows") for note in own]
    kernel, network = (
        isinstance(model, getattr(mm.bp.results, f"Fitted{kind}")) for kind in ("KernelGraph", "BayesianNetwork")
    )
    assert len(own) >= kernel + network
    expected = named if kernel else [f"in 2 of 3 rows: {note}" for note in own]
    assert [note for note in found if note not in asked] == expected
    gaps = {**frame, "k": [None, "down", None]}
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        model.impute(gaps, rng=0)
        model.sample(2, row, rng=0)
    told = [str(each.message) for each in warned]
    assert set(told) >= {note.replace("2 of 3", "1 of 3") for note in expected} | set(own)


def test_missing_values_are_seen_to_as_asked(unfitted):
    notes = unfitted.fit(table(), missing="drop").query({"a": 1.0}, ["b"], rng=0).report.notes
    assert "2 of 200 rows of data were left out: a value is missing in 'b' (2)." in notes
    pairs = unfitted.fit(table()).predict({"a": [1.0]}, ["b"], rng=0).report.notes
    used = {
        "KernelGraph": "left out where a value of the pair is missing",
        "DependencyNetwork": "used for each column that they have, whatever others are missing",
        "BayesianNetwork": "left out of what is learned about a variable where it or one of its parents is missing",
    }
    assert f"rows of data are {used[type(unfitted).__name__]}: 'b' (2)." in pairs
    with pytest.raises(NonFiniteError, match=r"data has missing values in 'b' \(2\)"):
        unfitted.fit(table(), missing="raise")
    gaps = table().assign(k=lambda t: t["k"].mask(t.index % 5 == 0), b=0.0 + np.arange(ROWS) % 7)
    filled = unfitted.fit(gaps, missing="category").query({"a": 1.0}, ["k"], rng=0)
    assert len(filled["k"].probabilities()) == 3
    with pytest.raises(ValueError, match="missing is 'never'"):
        unfitted.fit(table(), missing="never")


@pytest.mark.parametrize("missing", ["pairwise", "drop"])
def test_gaps_that_go_with_another_column_are_noted_with_every_answer(unfitted, missing):
    gone = (table()["a"] > 0) & (np.arange(ROWS) % 3 > 0)
    gaps = table().assign(b=lambda t: t["b"].mask(gone))
    beliefs = unfitted.fit(gaps, missing=missing).query({"k": "up"}, ["a"], rng=0)
    (note,) = (note for note in beliefs.report.notes if "the gaps of" in note)
    there = gaps["b"].notna()
    means = f"{gaps['a'].mean():.3g} in all rows and {gaps['a'][there].mean():.3g} in those where 'b' is known"
    every = isinstance(unfitted, mm.bp.DependencyNetwork) and missing == "pairwise"  # which learns from all rows
    ending = "" if every else " Answers may hold only for rows without gaps, not for all."
    assert note == f"the gaps of 'b' go with 'a': its mean is {means}. They also go with 'k'.{ending}"
    assert note in str(beliefs)


def test_numbers_that_are_labels_are_read_as_they_are_told_to_be(unfitted):
    k = np.where(table()["a"] > 0, 10, 20)
    fitted = unfitted.fit(table(k=k), kinds={"k": "label"})
    chances = fitted.query({"a": 1.5}, ["k"], rng=0)["k"].probabilities()
    assert chances["10"] > 0.8
    assert chances["10"] + chances["20"] == pytest.approx(1)
    assert fitted.query({"k": 10}, ["a"], rng=0)["a"].mean() > 0.4
    with pytest.raises(InputError, match="'z'"):
        unfitted.fit(table(), kinds={"z": "label"})


@pytest.mark.parametrize(
    ("kind", "instead"),
    [
        ("angle", "its sector as a label"),
        ("time of day", "its hour as a label"),
        ("time of week", r"its weekday as a label, for example pd.to_datetime\(data\['c'\]\).dt.day_name\(\)"),
        ("time of year", "its month as a label"),
    ],
)
def test_points_on_a_circle_are_taken_or_refused_in_words(unfitted, kind, instead):
    circle = np.linspace(0, 300, ROWS)
    given = circle if kind == "angle" else np.datetime64("2024-01-01T07:00") + circle.astype("m8[h]")
    data, kinds = table(c=given), {"c": kind}
    if isinstance(unfitted, mm.KernelGraph):
        model = mm.KernelGraph([*ARROWS, ("b", "c")]).fit(data, kinds=kinds)
        assert model.query({"b": 1.0}, ["c"])["c"].mean().shape == (2,)
        with pytest.raises(KindError, match=f"'c' is an? {kind}, a point on a circle, which is not filled in"):
            model.impute({"b": [1.0, 0.0], "c": [None, data["c"][1]]})
        return
    said = rf"data\['c'\] is declared as an? {kind}, a point on a circle; expected numbers, .*Pass {instead}"
    if isinstance(unfitted, mm.bp.BayesianNetwork):
        unfitted = mm.bp.BayesianNetwork([*ARROWS, ("c", "a"), ("c", "b")])
        with pytest.raises(KindError, match=said):
            unfitted.effect(data, "b", of="a", from_=0.0, to=1.0, kinds=kinds)
    with pytest.raises(KindError, match=said):
        unfitted.fit(data, kinds=kinds)


def test_texts_are_no_times_and_what_to_type_is_said(unfitted):
    data = table(c=np.datetime64("2024-01-01") + np.arange(ROWS))
    if not isinstance(unfitted, mm.bp.DependencyNetwork):
        unfitted = type(unfitted)([*ARROWS, ("a", "c")])
    said = (
        r"\['c'\] holds labels, such as '2024-02-01'; expected times, as the data have, such as np.datetime64\('2024-02"
    )
    model = unfitted.fit(data)
    with pytest.raises(KindError, match="evidence" + said):
        model.query({"c": "2024-02-01"}, ["a"])
    with pytest.raises(KindError, match="frame" + said):
        model.impute({"c": ["2024-02-01", None], "a": [None, 1.0]})


def test_what_may_stand_for_a_missing_value_is_noted(unfitted):
    marked = table()
    marked.loc[5:9, "a"] = -999.0
    fitted = unfitted.fit(marked)
    for beliefs in (fitted.query({"b": 0.0}, ["k"], rng=0), fitted.predict({"b": [0.0]}, ["k"], rng=0)):
        assert sum("'a' of data holds -999 in 5 of 200 rows" in note for note in beliefs.report.notes) == 1


COUNTS = np.random.default_rng(5).poisson(np.exp(1 + 0.6 * table()["a"].to_numpy())) * 3 + np.arange(ROWS) % 2


def test_whole_numbers_are_filled_with_whole_ones(unfitted):
    """The nearest to the mean, not below 0 where none was; in their type; unless they are declared to be numbers."""
    frame = table(b=pd.Series(COUNTS, dtype="Int64").mask(np.arange(ROWS) % 7 == 0))
    counts, fitted = frame["b"], unfitted.fit(frame)
    whole = fitted.impute(frame, rng=0)["b"]
    means = fitted.predict(frame.drop(columns="b"), ["b"], rng=0)["b"].mean()
    assert str(whole.dtype) == "Int64"
    gaps = counts.isna().to_numpy()
    assert whole[~gaps].tolist() == counts[~gaps].tolist()
    assert whole[gaps].tolist() == np.maximum(np.rint(means[gaps]), 0).tolist()
    free = unfitted.fit(frame, kinds={"b": "number"}).impute(frame, rng=0)["b"]
    assert (free[gaps] != np.rint(free[gaps])).any()


@pytest.mark.filterwarnings("ignore:.*(far from all data|further out|relies on|outside the range)")
@pytest.mark.parametrize(
    ("of", "low", "high"),
    [
        (np.exp, 0, np.inf),
        (lambda a: -np.exp(a), -np.inf, 0),
        (lambda a: 1 / (1 + np.exp(-2 * a)), 0, 1),
    ],
    ids=["positive", "negative", "share"],
)
def test_fills_stay_within_what_a_column_can_be(unfitted, of, low, high):
    """Signs are those that were seen, and shares are shares, also beyond all rows, where lines go on."""
    a = table()["a"].to_numpy()
    asked = {"a": np.linspace(-4, 4, 17), "b": np.full(17, np.nan)}
    filled = unfitted.fit({"a": a, "b": of(a), "k": table()["k"]}).impute(asked)
    assert ((low <= filled["b"]) & (filled["b"] <= high)).all()


def test_drawn_whole_numbers_are_whole():
    frame = table(b=pd.Series(COUNTS, dtype="Int64").mask(np.arange(ROWS) % 7 == 0))
    drawn = UNFITTED["DependencyNetwork"].fit(frame).impute(frame, draws=2, rng=0)
    assert all(str(each["b"].dtype) == "Int64" and each["b"].min() >= 0 for each in drawn)
    assert drawn[0]["b"].tolist() != drawn[1]["b"].tolist()


@pytest.mark.filterwarnings("ignore:.*(further out than|relies on)")
def test_marks_of_missing_values_are_filled_in(unfitted):
    """Marks that `fit` was told of stand for missing values in what is asked, too."""
    rng = np.random.default_rng(3)
    a = rng.normal(size=ROWS)
    data = table(a=np.where(a > 1.5, 1e12, a)).assign(b=a + rng.normal(size=ROWS))
    model = unfitted.fit(data, missing=[1e12])
    marked = data["a"] == 1e12
    whole = model.impute(data)
    assert whole["a"].max() < 10
    np.testing.assert_array_equal(whole["a"][~marked], data["a"][~marked])
    np.testing.assert_allclose(model.score(data), model.score(data.assign(a=data["a"].mask(marked))), rtol=1e-9)


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.DataFrame, dict, lambda t: np.column_stack(list(t.values()))])
def test_numbers_of_single_precision_stay_so(convert):
    a, noise = np.random.default_rng(4).normal(size=(2, ROWS)).astype(np.float32)
    data = convert({"0": a, "1": np.where(noise > 1, np.nan, a + noise).astype(np.float32)})
    model = mm.bp.DependencyNetwork([KNeighborsRegressor(10)]).fit(data)
    for whole in [model.impute(data), *model.impute(data, draws=2, rng=0)]:
        column = whole["1"] if not isinstance(whole, np.ndarray) else whole[:, 1]
        assert np.asarray(column).dtype == np.float32
        assert not np.isnan(np.asarray(column)).any()
