"""One policy for missing values, the same for every container."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pytest
import scipy.sparse

import meanmap as mm
from meanmap.core.errors import ColumnError, EmptyError, KindError, NonFiniteError, ParameterError
from meanmap.core.tables.missing import settle, settle_pieces

GAPS = {"age": [31.0, None, 19.0, 47.0, 5.0, np.nan], "town": ["a", "b", None, "a", "b", "b"]}
AGES = np.array(GAPS["age"], float)
UNMASKED = pd.arrays.FloatingArray(AGES, np.zeros(6, bool))  # NaN that pandas does not call missing
CONTAINERS = [
    GAPS,
    pd.DataFrame(GAPS),
    pd.DataFrame(GAPS, index=[3, 3, 3, 1, 1, 1]),
    pd.DataFrame({"age": pd.array(GAPS["age"], dtype="Float64"), "town": pd.Categorical(GAPS["town"])}),
    pl.DataFrame(GAPS, strict=False),
    pd.DataFrame({"age": UNMASKED, "town": GAPS["town"]}),
    pd.DataFrame({"age": pd.arrays.ArrowExtensionArray(pyarrow.array(AGES)), "town": GAPS["town"]}),
    {"age": np.ma.array([31.0, -1.0, 19.0, 47.0, 5.0, np.nan], mask=[0, 1, 0, 0, 0, 0]), "town": GAPS["town"]},
]


@pytest.mark.parametrize("data", CONTAINERS)
def test_rows_are_dropped_and_told_by_column(data):
    (kept,), (note,) = settle([data], ["x"], "drop")
    table = mm.Table.of(kept)
    assert table.names == ("age", "town")
    assert table["age"].tolist() == [31.0, 47.0, 5.0]
    assert table["town"].tolist() == ["a", "a", "b"]
    assert note == "3 of 6 rows of x were left out: a value is missing in 'age' (2), 'town' (1)."
    (same,), notes = settle([data], ["x"], "raise")
    assert same is data
    assert notes == ()


@pytest.mark.parametrize("data", CONTAINERS)
def test_missing_labels_are_a_label_and_missing_numbers_are_refused(data):
    with pytest.raises(KindError, match=r"x\['age'\] has 2 missing numbers; missing='category' is for labels"):
        settle([data], ["x"], "category")
    towns = data[["town"]] if hasattr(data, "columns") else {"town": data["town"]}
    (filled,), (note,) = settle([towns], ["x"], "category")
    assert mm.Table.of(filled)["town"].tolist() == ["a", "b", "(missing)", "a", "b", "b"]
    assert note == "missing values of x are a label, '(missing)': 'town' (1)."


def test_pairs_are_dropped_together_and_arrays_stay_arrays():
    x, y = np.array([1.0, np.nan, 3.0, 4.0]), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, np.nan], [7.0, 8.0]])
    (first, second), notes = settle([x, y], ["x", "y"], "drop", paired=True)
    assert first.tolist() == [1.0, 4.0]
    assert second.tolist() == [[1.0, 2.0], [7.0, 8.0]]
    told = "2 of 4 rows of x and y were left out: a value is missing in x (1), column 1 (1) of y."
    assert notes == (told,)
    sparse = scipy.sparse.csr_array(np.eye(3))
    assert settle([sparse], ["x"], "drop")[0][0] is sparse


TESTS = [
    lambda missing, **g: mm.two_sample_test(FRAME, FRAME, n_permutations=99, rng=0, missing=missing),
    lambda missing, **g: mm.k_sample_test([FRAME, FRAME], n_permutations=99, rng=0, missing=missing),
    lambda missing, **g: mm.independence_test(FRAME[["a"]], FRAME["b"], n_permutations=99, rng=0, missing=missing),
    lambda missing, **g: mm.conditional_independence_test(
        FRAME["a"], FRAME["b"], FRAME["c"], n_permutations=99, rng=0, missing=missing
    ),
    lambda missing, **g: mm.stats.joint_independence_test(FRAME, n_permutations=99, rng=0, missing=missing),
]
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(40, 3)), columns=["a", "b", "c"])
FRAME.iloc[[3, 5], 1] = np.nan


@pytest.mark.parametrize("test", TESTS)
def test_every_test_has_the_policy(test):
    result = test("drop")
    assert set(result.sizes) == {38}
    assert any("2 of 40 rows of" in warning and "left out" in warning for warning in result.warnings)
    with pytest.raises(NonFiniteError):
        test("raise")
    with pytest.raises(KindError, match="missing='category' is for labels"):
        test("category")
    with pytest.raises(ParameterError, match="missing is 'ignore'; expected one of 'raise', 'drop', 'category'"):
        test("ignore")


def test_dropping_is_what_a_user_would_do():
    whole = FRAME.dropna()
    expected = mm.two_sample_test(whole, whole + 1.0, n_permutations=99, rng=0)
    found = mm.two_sample_test(FRAME, FRAME + 1.0, n_permutations=99, rng=0, missing="drop")
    assert (found.statistic, found.pvalue) == (expected.statistic, expected.pvalue)


def test_monitors_have_it_too():
    monitor = mm.stats.DriftMonitor.of(pd.concat([FRAME] * 2), n_permutations=19, rng=0, missing="drop")
    assert "4 of 80 rows of reference were left out: a value is missing in 'b' (4)." in monitor.notes
    later = monitor.step(FRAME)
    assert "2 of 40 rows of batch were left out: a value is missing in 'b' (2)." in later.notes


def test_too_few_rows_say_why():
    few = pd.DataFrame({"a": [1.0, 2.0] + [np.nan] * 9})
    with pytest.raises(EmptyError, match=r"9 of 11 rows of x were left out: .* 'a' \(9\), and 2 are left; expected at"):
        mm.two_sample_test(few, FRAME[["a"]], missing="drop")
    gone = {"a": np.arange(30.0), "b": np.full(30, np.nan)}
    said = (
        r"missing in 'b' \(30\), and 0 are left; expected at least 5\. To keep these rows, leave out columns that are"
    )
    with pytest.raises(EmptyError, match=said):
        mm.two_sample_test(gone | {"b": np.arange(30.0)}, gone, missing="drop")
    with pytest.raises(ParameterError, match="in memory"):
        mm.two_sample_test(iter([FRAME]), iter([FRAME]), missing="drop")


def test_samples_without_columns_are_called_by_their_names():
    x, y = np.array([1.0, np.nan, 3.0]), np.array([1.0, 2.0, 3.0])
    assert settle((x, y), ("x", "y"), "drop", True)[1] == (
        "1 of 3 rows of x and y was left out: a value is missing in x (1).",
    )
    assert settle_pieces((x, y), ("x", "y"), "drop")[1] == {"x": 1}


MASKED = np.ma.array(np.arange(80.0).reshape(40, 2) % 7, mask=np.arange(80).reshape(40, 2) == 7)
MASKED.data[3, 1] = 1e5


@pytest.mark.parametrize(
    "ask",
    [
        lambda: mm.two_sample_test(MASKED, MASKED.data, rng=0),
        lambda: mm.embed(MASKED),
        lambda: mm.DriftMonitor.of(MASKED, rng=0),
        lambda: mm.pc(MASKED, rng=0),
        lambda: mm.kernels.RBF(1.0)(MASKED),
        lambda: mm.estimators.ConditionalMeanRegressor().fit(MASKED, np.arange(40.0)),
        lambda: mm.estimators.ConditionalMeanRegressor().fit(MASKED.filled(0.0), np.arange(40.0)).predict(MASKED),
    ],
)
def test_what_is_masked_is_refused_where_nothing_may_be_missing(ask):
    """NumPy shows what lies under a mask to whoever asks for a plain array."""
    with pytest.raises(ValueError, match=r"masked|nan|NaN"):
        ask()


def test_what_is_masked_is_missing():
    gone = MASKED.filled(np.nan)
    assert mm.two_sample_test(MASKED, MASKED.data, missing="drop", n_permutations=99, rng=0).sizes == (39, 40)
    for fit in (lambda x: mm.KernelGraph([(0, 1)]).fit(x).schema, lambda x: mm.bp.DependencyNetwork().fit(x).impute(x)):
        assert str(fit(MASKED)) == str(fit(gone))
    imputer = mm.estimators.KernelGraphImputer
    np.testing.assert_array_equal(imputer().fit_transform(MASKED), imputer().fit_transform(gone))
    labels = {"a": np.ma.array(["u", "v"] * 20, mask=[1] + [0] * 39)}
    times = {"a": np.ma.array(np.arange(40).astype("M8[D]"), mask=[1] + [0] * 39)}
    for table in (labels, times, {"a": MASKED[:, 1]}, {"a": np.ma.array(range(40), mask=[1] + [0] * 39)}):
        (kept,), (note,) = settle([table], ["x"], "drop")
        assert len(mm.Table.of(kept)) == 39
        assert "1 of 40 rows" in note


@pytest.mark.parametrize("values", [np.full(40, np.nan), [None] * 40, pd.Series([pd.NA] * 40, dtype="string")])
def test_columns_of_nothing_are_one_label_where_missing_is_one(values):
    """They were said to be empty, with 40 rows."""
    b = np.random.default_rng(0).normal(size=40)
    result = mm.two_sample_test({"a": values, "b": b}, {"a": values, "b": -b}, missing="category", rng=0)
    assert any("column 'a' is constant over all samples" in note for note in result.warnings)
    words = ["u", "v"] * 20
    gone = mm.two_sample_test({"a": words, "b": b}, {"a": values, "b": b}, missing="category", rng=0)
    assert gone.pvalue < 0.01
    with pytest.raises(ColumnError, match="y is constant"):
        mm.independence_test(b, values, missing="category")
    for x, y, named in ((b, values, ("y", "x")), ({"a": values, "b": b}, {"a": b, "b": b}, (r"x\['a'\]", r"y\['a'\]"))):
        with pytest.raises(KindError, match="{} has no observed values, and {} holds numbers".format(*named)):
            mm.two_sample_test(x, y, missing="category")


TRUTHS = [
    lambda b: b,
    lambda b: pd.Series(b, dtype="boolean"),
    lambda b: pd.Series(b, dtype=object),
    lambda b: pl.Series(b),
    lambda b: b.tolist(),
]


@pytest.mark.parametrize("held", TRUTHS)
def test_truth_values_are_labels_beside_gaps_wherever_these_are(held):
    """A sample with gaps had labels, another had truth values, and they could not be compared."""
    generator = np.random.default_rng(0)
    truth, other = (generator.random((2, 40)) < 0.5).tolist()
    gaps = {"b": [None, None, *truth[2:]]}
    words = {"b": ["?", "?", *map(str, truth[2:])]}
    expected = mm.two_sample_test(words, {"b": list(map(str, other))}, n_permutations=99, rng=0).pvalue
    for x, y in ((gaps, {"b": held(np.array(other))}), (pd.DataFrame(gaps), pd.DataFrame({"b": other}))):
        assert mm.two_sample_test(x, y, missing="category", n_permutations=99, rng=0).pvalue == expected


def test_monitors_read_truth_values_with_gaps_before_or_after_them():
    generator = np.random.default_rng(0)
    whole, gaps = {"b": generator.random(60) < 0.5}, {"b": [None, True, False] * 20}
    first = mm.DriftMonitor.of(whole, missing="category", n_permutations=99, rng=0).step(gaps)
    assert "batch['b'] has 1 label not in the reference, such as '(missing)'." in first.notes
    second = mm.DriftMonitor.of(gaps, missing="category", n_permutations=99, rng=0).step(whole)
    assert len(second.pvalues) == 1


def test_a_later_column_of_nothing_is_said_to_be_that():
    """It was said to hold labels, and to be converted."""
    monitor = mm.DriftMonitor.of({"a": np.arange(60.0) % 7}, missing="category", n_permutations=19, rng=0)
    expected = r"batch\['a'\] has no observed values, and missing='category' makes a label of gaps; expected a count"
    with pytest.raises(KindError, match=expected):
        monitor.step({"a": np.full(25, np.nan)})


def test_a_variable_without_columns_is_named_once():
    words = np.array(["u", None, "v"], dtype=object)
    assert settle([words], ["y"], "category")[1] == ("missing values of y are a label, '(missing)' (1).",)


def test_many_lost_rows_are_said_to_be_kept_by_leaving_columns_out():
    table = {"a": [1.0, None] * 20, "b": [1.0, 2.0] * 20}
    (note,) = settle([table], ["x"], "drop")[1]
    assert note.endswith("in 'a' (20). To keep these rows, leave out columns that are not needed.")
    (note,) = settle([{"a": table["a"]}], ["x"], "drop")[1]
    assert note.endswith("in 'a' (20).")
    (note,) = settle([{name: column + [1.0] * 400 for name, column in table.items()}], ["x"], "drop")[1]
    assert note.endswith("in 'a' (20).")
