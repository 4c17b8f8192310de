"""What columns mean is decided once, printed, saved, and checked against what comes later."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

import meanmap as mm
from meanmap import Schema
from meanmap.core import ColumnError, KindError, NonFiniteError, ParameterError, ShapeError
from meanmap.core.tables.column import robust_scales

DAYS = ["2026-01-01", "2026-01-03", "2026-01-02", "2026-01-06"]
PEOPLE = pd.DataFrame(
    {
        "zip": [10115, 80331, 10115, 50667],
        "age": [31.5, None, 19.0, 47.0],
        "day": pd.to_datetime(DAYS),
        "town": pd.Categorical([1, None, 1, 2]),
        "member": [True, False, True, True],
    }
)


def test_a_schema_says_what_the_columns_are():
    schema = Schema.of(PEOPLE, kinds={"zip": "label"})
    assert schema.names == ("zip", "age", "day", "town", "member")
    assert [column.kind for column in schema.columns] == ["label", "number", "time", "label", "boolean"]
    assert [column.missing for column in schema.columns] == [0, 1, 0, 1, 0]
    assert [column.distinct for column in schema.columns] == [3, 3, 4, 2, 2]
    age = schema["age"]
    assert (age.low, age.centre, age.high, age.scale) == (19.0, 31.5, 47.0, 15.5)
    assert schema["zip"].labels == ("10115", "50667", "80331")
    assert schema["day"].scale == 2.5 * 86400
    assert "age     number   19 to 47, median 31.5, scale 15.5, 1 missing" in str(schema)
    assert "day     time     2026-01-01T00:00:00 to 2026-01-06T00:00:00" in str(schema)
    assert Schema.of(np.arange(40).astype(str))["x0"].kind == "text"
    assert Schema.of({"a": np.zeros((3, 2))})["a"].kind == "vector"


def test_a_schema_is_saved(tmp_path):
    schema = Schema.of(PEOPLE, kinds={"zip": "label"})
    loaded = mm.load(mm.save(schema, tmp_path / "schema.meanmap"))
    assert str(loaded) == str(schema)
    assert loaded.read(PEOPLE.dropna()).names == schema.names


def test_several_samples_are_read_together():
    frame = PEOPLE.drop(columns="town")
    schema = Schema.of(frame, frame[["member", "day", "age", "zip"]].assign(age=[70.0, 1.0, 2.0, 3.0]))
    assert schema.names == tuple(frame.columns)
    assert schema.rows == 8
    assert (schema["age"].low, schema["age"].high) == (1.0, 70.0)
    assert schema["age"].missing == 1
    assert Schema.of(np.zeros((3, 2)), pd.DataFrame(np.ones((2, 2)))).rows == 5


def test_later_tables_are_read_in_the_order_of_the_schema():
    schema = Schema.of({"b": [1.0, 2.0], "a": ["u", "v"], "c": [True, False]})
    later = pl.DataFrame({"extra": [1], "c": [False], "a": ["w"], "b": [1000]})
    table = schema.read(later, "batch")
    assert table.names == ("b", "a", "c")
    assert table["a"].tolist() == ["w"]
    assert schema.notes(table, "batch") == (
        "batch['b'] has 1 value far outside 1 to 2, such as 1000.",
        "batch['a'] has 1 label never seen before, such as 'w'.",
    )
    assert schema.notes(schema.read({"a": ["u"], "b": [1.5], "c": [True]})) == ()


CODES = [10115, 80331]


@pytest.mark.parametrize("column", [CODES, np.array(CODES, float), [*map(str, CODES)], pd.Categorical(CODES)])
def test_labels_by_override_are_the_same_in_every_dtype(column):
    schema = Schema.of({"zip": [10115, 80331, 50667]}, kinds={"zip": "label"})
    assert schema.read({"zip": column})["zip"].tolist() == ["10115", "80331"]


def test_overrides_say_what_numbers_and_times_are():
    noon = [datetime.datetime(2026, 1, 1, 12), datetime.datetime(2026, 5, 5, 18)]
    kinds = {"angle": "angle", "when": "time of day", "text": "number", "day": "time"}
    data = {"angle": [0.0, np.pi / 2], "when": noon, "text": ["1.5", "2"], "day": ["1970-01-01", "1970-01-02"]}
    table = Schema.of(data, kinds=kinds).read(data)
    np.testing.assert_allclose(table["angle"], [[1, 0], [0, 1]], atol=1e-12)
    np.testing.assert_allclose(table["when"], [[-1, 0], [0, -1]], atol=1e-9)
    assert table["text"].tolist() == [1.5, 2.0]
    assert table.matrix(["day"]).tolist() == [[0.0], [86400.0]]


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            {"a": [1, 2]},
            {"a": ["1", "2"]},
            r"x\['a'\] holds numbers, such as 1, and y\['a'\] holds labels",
        ),
        ({"a": [1.5]}, {"a": ["1,5"]}, r"y\['a'\] looks like numbers with a comma.*decimal=','"),
        ({"a": [True]}, {"a": ["True"]}, r"x\['a'\] holds truth values.*y\['a'\] holds true and false as text"),
        ({"a": [True]}, {"a": [2]}, r"holds truth values, such as True, and y\['a'\] holds numbers"),
        ({"a": pd.to_datetime(DAYS)}, {"a": DAYS}, r"holds times, such as 2026-01-01.*looks like dates.*to_datetime"),
        ({"a": pd.to_datetime(DAYS)}, {"a": [1.0]}, "holds times"),
        ({"a": pd.Categorical([1, 2])}, {"a": [1, 2]}, r"x\['a'\] holds labels, such as '1'.*kinds={'a': 'label'}"),
        ({"a": [1.0]}, {"a": np.zeros((1, 2))}, "blocks of 2 numbers"),
    ],
)
def test_columns_of_different_kinds_are_refused(first, second, message):
    with pytest.raises(KindError, match=message):
        Schema.of(first, second, names=("x", "y"))
    with pytest.raises(KindError, match=r"batch\['a'\] holds"):
        Schema.of(first).read(second, "batch")


def test_zeros_and_ones_are_read_as_the_truth_values_of_an_earlier_table():
    """They were refused, with the advice to convert them first."""
    (read,) = Schema.of({"a": [True, False]}).read({"a": [1, 0, 1]}, "batch").columns.values()
    assert read.tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Schema.of(), ParameterError, "no sample"),
        (
            lambda: Schema.of({"a": [1]}, kinds={"b": "label"}),
            ColumnError,
            "kinds names 'b'; the columns of table are 'a'",
        ),
        (
            lambda: Schema.of({"a": [1]}, kinds={"a": "zip"}),
            ParameterError,
            "a kind is 'zip'; expected one of",
        ),
        (lambda: Schema.of({"a": ["u"]}, kinds={"a": "number"}), KindError, r"table\['a'\] holds 'u', which cannot"),
        (lambda: Schema.of({"a": [2.0]}, kinds={"a": "time"}), KindError, "expected times, or text"),
        (
            lambda: Schema.of({"a": [1]}, {"b": [1]}),
            ColumnError,
            r"samples\[1\] has no column 'a', which sampl",
        ),
        (
            lambda: Schema.of({"a": [1]}, {"a": [1], "b": [1]}),
            ColumnError,
            r"samples\[0\] has no column 'b', which",
        ),
        (lambda: Schema.of({"a": [1], "b": [2]}, np.ones((3, 2))), ColumnError, r"'a', 'b'.*samples\[1\] is an array"),
        (lambda: Schema.of(np.ones((3, 2)), np.ones((3, 1))), ShapeError, r"samples\[1\] has 1 column; expected 2"),
        (lambda: Schema.of({"a": [1]}).read({"b": [1]}, "batch"), ColumnError, "batch has no column 'a'"),
        (lambda: Schema.of({"a": [1]}).read(np.ones((1, 1)), "batch"), ColumnError, "batch is an array"),
        (lambda: Schema.of({"a": [1]}).read({"a": [np.nan]}, "batch"), NonFiniteError, r"batch\['a'\] holds 1"),
        (lambda: Schema.of({"a": [1]})["b"], ColumnError, "the schema has no column 'b'"),
    ],
)
def test_what_does_not_fit_is_explained(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_scales_are_medians_of_distances_whatever_the_order():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 3)) * [1.0, 1e-6, 1e6]
    scales = robust_scales(x)
    np.testing.assert_allclose(scales, np.sqrt(2) * 0.6745 * np.array([1.0, 1e-6, 1e6]), rtol=0.06)
    assert (robust_scales(x[::-1]) == scales).all()
    wild = x.copy()
    wild[:40] = 1e150
    np.testing.assert_allclose(robust_scales(wild), scales, rtol=0.05)
    rare = np.zeros((4000, 2))
    rare[17, 0] = 3.0
    assert robust_scales(rare).tolist() == [3.0, 0.0]
    small = rng.integers(0, 9, size=(30, 1)).astype(float)
    distances = np.abs(small - small.T)[np.triu_indices(30, 1)]
    assert robust_scales(small)[0] == np.median(distances)
