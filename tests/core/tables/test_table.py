"""Tables, from everything that has columns."""

import datetime
import re

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

import meanmap as mm
from meanmap import Table
from meanmap.core import ColumnError, EmptyError, KindError, NonFiniteError, ShapeError
from meanmap.core.moments import seconds

pytestmark = pytest.mark.oldest

HEIGHTS, COLOURS = [1.5, 2.0, 1.75], ["red", "blue", "red"]


@pytest.mark.parametrize(
    "data",
    [
        {"height": HEIGHTS, "colour": COLOURS},
        {"height": np.array(HEIGHTS, dtype=np.float32), "colour": np.array(COLOURS)},
        pd.DataFrame({"height": HEIGHTS, "colour": COLOURS}),
        pd.DataFrame({"height": pd.array(HEIGHTS, dtype="Float64"), "colour": pd.Categorical(COLOURS)}),
        pd.DataFrame({"height": HEIGHTS, "colour": pd.array(COLOURS, dtype="string")}),
        pd.DataFrame({"height": HEIGHTS, "colour": np.array(COLOURS, dtype=object)}),
        pd.DataFrame({"height": HEIGHTS, "colour": COLOURS}, index=[7, 7, 9]),
        pl.DataFrame({"height": HEIGHTS, "colour": COLOURS}),
        pl.DataFrame({"height": HEIGHTS, "colour": COLOURS}, schema={"height": pl.Float32, "colour": pl.Categorical}),
        pl.DataFrame({"height": HEIGHTS, "colour": COLOURS}, schema_overrides={"colour": pl.Enum(["red", "blue"])}),
        np.array(list(zip(HEIGHTS, COLOURS, strict=True)), dtype=[("height", float), ("colour", "U4")]),
        Table.of({"height": HEIGHTS, "colour": COLOURS}),
    ],
    ids=lambda data: type(data).__module__.split(".")[0] + "." + type(data).__name__,
)
def test_every_kind_of_table_reads_alike(data):
    table = Table.of(data)
    assert Table.looks_like_one(data)
    assert table.names == tuple(table) == tuple(Table.names_in(data)) == ("height", "colour")
    assert len(table) == 3
    assert table["height"].dtype == np.float64
    assert table["height"].tolist() == HEIGHTS
    assert table["colour"].tolist() == COLOURS
    assert table.is_real("height")
    assert not table.is_real("colour")
    assert repr(table) == "Table(3 rows: height, colour [labels])"


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (pd.array([1, 2], dtype="Int64"), [1.0, 2.0]),
        (pd.array([1, 2], dtype="UInt8"), [1.0, 2.0]),
        (pl.Series([1, 2], dtype=pl.UInt16), [1.0, 2.0]),
        (pd.Series([0.5, 1.5], dtype="Sparse[float]"), [0.5, 1.5]),
    ],
)
def test_numbers_of_all_types(column, values):
    table = Table.of({"a": column})
    assert table.is_real("a")
    assert table["a"].tolist() == values


@pytest.mark.parametrize("column", [pd.Categorical([1, 2]), pd.Series([1, 2], dtype="category"), np.array(["1", "2"])])
def test_categories_that_look_like_numbers_are_labels(column):
    table = Table.of({"a": column})
    assert not table.is_real("a")
    assert table["a"].tolist() == ["1", "2"]


@pytest.mark.parametrize(
    "column", [[True, False], pd.array([True, False], dtype="boolean"), pl.Series([True, False]), np.array([1, 0]) > 0]
)
def test_truth_values_are_labels_that_count_as_numbers_where_these_are_asked_for(column):
    table = Table.of({"a": column})
    assert not table.is_real("a")
    assert table["a"].tolist() == [True, False]
    assert table.matrix().tolist() == [[1.0], [0.0]]
    assert repr(table) == "Table(2 rows: a [true or false])"


ZONE = datetime.timezone(datetime.timedelta(hours=2))


@pytest.mark.parametrize(
    "column",
    [
        np.array(["1970-01-02", "1970-01-01"], "datetime64[D]"),
        pd.to_datetime(["1970-01-02", "1970-01-01"]),
        pd.Series(pd.to_datetime(["1970-01-02 02:00", "1970-01-01 02:00"])).dt.tz_localize(ZONE),
        [datetime.date(1970, 1, 2), datetime.date(1970, 1, 1)],
        [datetime.datetime(1970, 1, 2, 2, tzinfo=ZONE), datetime.datetime(1970, 1, 1, 2, tzinfo=ZONE)],
        pl.Series([datetime.date(1970, 1, 2), datetime.date(1970, 1, 1)]),
        np.array([86400, 0], "timedelta64[s]"),
        [datetime.timedelta(days=1), datetime.timedelta(0)],
    ],
)
def test_dates_and_durations_are_seconds(column):
    table = Table.of({"a": column})
    assert table.is_real("a")
    assert table.columns["a"].dtype.kind in "mM"
    assert table.matrix().tolist() == [[86400.0], [0.0]]


def test_arrays_of_text_are_tables_of_labels():
    assert repr(Table.of([["a", "b"], ["c", "d"]])) == "Table(2 rows: x0 [labels], x1 [labels])"


def test_trees_keep_the_order_of_columns():
    table = Table.of({"z": [1.0, 2.0], "a": [3.0, 4.0], "m": ["u", "v"]})
    first = jax.tree.map(lambda column: column[:1], table)
    assert first.names == ("z", "a", "m")
    assert first.matrix(["z", "a"]).tolist() == [[1.0, 3.0]]


def test_plain_arrays_get_names():
    assert Table.of([[1, 2, 3], [4, 5, 6]]).names == ("x0", "x1", "x2")
    assert Table.of([1.0, 2.0]).names == ("x0",)
    table = Table.of(jnp.ones((2, 2)))
    assert isinstance(table["x1"], jax.Array)
    assert isinstance(table.matrix(), jax.Array)
    assert jax.jit(lambda x: Table.of(x).matrix())(jnp.ones((2, 2))).shape == (2, 2)


def test_blocks_and_mixed_arrays():
    table = Table.of({"position": np.arange(6.0).reshape(3, 2), "mass": jnp.ones(3)})
    assert repr(table) == "Table(3 rows: position [2 wide], mass)"
    assert isinstance(table.matrix(), jax.Array)
    assert Table.of({"position": np.arange(6.0).reshape(3, 2), "mass": [1, 2, 3]}).matrix().shape == (3, 3)


def test_select_by_name_or_number_and_in_order():
    table = Table.of({"a": [1, 2], "b": [3, 4], "c": ["u", "v"]})
    assert table.select(["b", "a"]).names == ("b", "a")
    assert table.select([2, 0]).names == ("c", "a")
    assert table.matrix(["b", "a"]).tolist() == [[3, 1], [4, 2]]
    with pytest.raises(ColumnError, match="table has no column 'z'; it has 'a', 'b', 'c'"):
        table.select(["z"])
    with pytest.raises(ColumnError, match="people has no column 'z'"):
        table.select(["z"], "people")
    with pytest.raises(ColumnError, match="table has no column 3; it has 3, from 0"):
        table.select([3])
    with pytest.raises(
        ColumnError, match=r"has columns that are not numeric: 'c'. Leave them out, or use mm.default_kernel"
    ):
        table.matrix()


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame])
def test_columns_that_are_not_used_are_not_looked_at(make):
    data = make({"a": [1.0, 2.0], "holes": [None, 1.0], "day": [datetime.date(2026, 1, 1)] * 2})
    assert Table.of(data, only=["a"]).matrix().tolist() == [[1], [2]]
    with pytest.raises(ColumnError, match="no column 'b'"):
        Table.of(data, only=["b"])


def test_reading_copies():
    mine = np.ones(3)
    table = Table.of({"a": mine})
    mine[0] = 5
    assert table["a"].tolist() == [1, 1, 1]


FRAME = pd.DataFrame({"a": [1.0, 2.0]})


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ({}, ColumnError, "table has no columns"),
        (pd.DataFrame(), ColumnError, "table has no columns"),
        ({"a": []}, EmptyError, "table is empty"),
        (pd.DataFrame({"a": []}), EmptyError, "table is empty"),
        ({"a": [1, 2], "b": [1]}, ShapeError, "the columns of table differ in length: {'a': 2, 'b': 1}"),
        (
            pd.concat([FRAME, FRAME], axis=1),
            ColumnError,
            "table has more than one column called 'a'. Rename one of them",
        ),
        ({1: [1.0], "1": [2.0]}, ColumnError, "more than one column called '1'"),
        (
            {"a": [1.0, None]},
            NonFiniteError,
            r"table\['a'\] has 1 missing value. Drop those rows or fill them in first\.$",
        ),
        (
            {"a": [1.0, np.nan]},
            NonFiniteError,
            r"table\['a'\] holds 1 value that is not finite: nan at row 1",
        ),
        ({"a": [np.inf, 1]}, NonFiniteError, "not finite"),
        (pd.DataFrame({"a": [1.0, np.nan]}), NonFiniteError, r"table\['a'\] has 1 missing"),
        (pd.DataFrame({"a": ["u", None]}), NonFiniteError, r"table\['a'\] has 1 missing"),
        (pd.DataFrame({"a": pd.array([1, pd.NA], dtype="Int64")}), NonFiniteError, r"table\['a'\] has 1 missing"),
        (pd.DataFrame({"a": pd.Categorical(["u", None])}), NonFiniteError, r"table\['a'\] has 1 missing"),
        (pl.DataFrame({"a": [1, None]}), NonFiniteError, r"table\['a'\] has 1 missing"),
        (pl.DataFrame({"a": ["u", None]}), NonFiniteError, r"table\['a'\] has 1 missing"),
        (
            pl.DataFrame({"a": [1.0, float("nan")]}),
            NonFiniteError,
            r"table\['a'\] holds 1 value that is not finite",
        ),
        ({"a": np.ma.array([1.0, 2.0], mask=[0, 1])}, NonFiniteError, r"table\['a'\] has 1 missing"),
        ({"a": [datetime.time(1, 2)]}, KindError, r"table\['a'\] holds Python objects such as datetime.time"),
        ({"a": [datetime.date(2026, 1, 1), None]}, NonFiniteError, r"table\['a'\] has 1 missing"),
        (pd.DataFrame({"a": pd.to_datetime(["2026-01-01", None])}), NonFiniteError, r"table\['a'\] has 1 missing"),
        ({"a": [1j, 2]}, KindError, r"table\['a'\] holds complex numbers"),
        (
            {"a": np.array([1, 2], dtype=object)},
            KindError,
            r"table\['a'\] holds numbers as Python objects.*astype\(float\)",
        ),
        ({"a": [[1, 2], [3]]}, ShapeError, r"table\['a'\] is ragged"),
        ({"a": np.array([["u"], ["v"]])}, ShapeError, r"table\['a'\] has shape \(2, 1\); expected one label per row"),
        ({"a": np.zeros((1, 1, 1))}, ShapeError, r"table\['a'\] has shape \(1, 1, 1\); expected \(n,\) or a block"),
        ({"a": 1.0}, ShapeError, r"table\['a'\] has shape \(\)"),
        (
            np.zeros((2, 2, 2)),
            ShapeError,
            r"table has shape \(2, 2, 2\); expected a table: \(n, d\), a DataFrame or a dict of columns",
        ),
        (3.0, ShapeError, r"table has shape \(\)"),
        (None, KindError, "table is None"),
        ("data.csv", KindError, "table is the text 'data.csv'.*pandas.read_csv"),
        (scipy.sparse.eye_array(2), KindError, "table is a sparse matrix, which has no named columns"),
        ([["a", object()]], KindError, "table holds Python objects"),
    ],
)
def test_what_cannot_be_read_is_explained(data, error, message):
    with pytest.raises(error, match=message):
        Table.of(data)


def test_what_cannot_be_read_from_jax_is_explained():
    with pytest.raises(ShapeError, match=r"table\['a'\] has shape \(\)"):
        Table.of({"a": jnp.ones(())})
    with pytest.raises(NonFiniteError, match=r"table\['a'\] holds 1 value"):
        Table.of({"a": jnp.array([1.0, jnp.nan])})


@pytest.mark.parametrize(("frame", "way"), [(pd.DataFrame, "to_pandas"), (pl.DataFrame, "to_polars")])
def test_frames_come_in_and_go_out(frame, way):
    data = frame({"height": [1.5, 2.0, 1.0], "colour": ["red", "blue", "red"]})
    out = getattr(Table.of(data), way)()
    assert isinstance(out, frame)
    assert list(out.columns) == ["height", "colour"]
    assert out["height"].to_list() == [1.5, 2.0, 1.0]
    assert out["colour"].to_list() == ["red", "blue", "red"]
    block = getattr(Table.of({"image": np.eye(2)}), way)()
    assert list(block.columns) == ["image[0]", "image[1]"]
    assert block.to_numpy().tolist() == np.eye(2).tolist()


@pytest.mark.parametrize("first", [datetime.date(1500, 2, 3), datetime.date(9999, 12, 31)])
def test_times_far_away_are_what_they_are(first):
    """Nanoseconds would wrap them around, to 2084 and 1816."""
    days = [first, datetime.date(2026, 1, 1)]
    for made in (
        days,
        np.array(days, "M8[D]"),
        np.array(days, "M8[s]"),
        pl.Series(days),
        pd.Series(np.array(days, "M8[s]")),
    ):
        read = Table.of({"day": made}).columns["day"]
        assert read.tolist() == [datetime.datetime.combine(day, datetime.time()) for day in days]
        np.testing.assert_array_equal(seconds(read), seconds(np.array(days, "M8[s]")))
    text = mm.Schema.of({"day": list(map(str, days))}, kinds={"day": "time"})
    assert text["day"].low == seconds(np.array(days, "M8[s]")).min()


def test_durations_that_cannot_be_held_are_refused():
    assert Table.of({"age": np.array([1, 200], "m8[Y]")}).columns["age"].dtype == "m8[ns]"
    with pytest.raises(NonFiniteError, match=r"table\['age'\] holds 1 durations? .* \(400 years\) at row 1"):
        Table.of({"age": np.array([1, 400], "m8[Y]")})


@pytest.mark.parametrize("word", ["20260131", "18-07-26", "now", "today", "NaT", "12026-01-01", "31.13.2026"])
def test_text_that_numpy_reads_as_another_time_is_refused(word):
    with pytest.raises(KindError, match=f"'{word}', which cannot be read as a time"):
        mm.Schema.of({"day": ["2026-01-31", word]}, kinds={"day": "time"})


@pytest.mark.parametrize("word", ["nan", "inf", "1,5", "?"])
def test_text_that_is_no_finite_number_is_refused(word):
    with pytest.raises(KindError, match=f"'{re.escape(word)}', which cannot be read as a number"):
        mm.Schema.of({"size": ["1.5", word]}, kinds={"size": "number"})


def test_long_ids_as_objects_are_not_sent_through_floats():
    ids = np.array([10**18, 10**18 + 1], dtype=object)
    with pytest.raises(KindError, match=r"Convert it first, for example with .astype\(int\)"):
        mm.Table.of({"id": ids})
    with pytest.raises(KindError, match=r"Convert it first, for example with .astype\(float\)"):
        mm.Table.of({"id": np.array([1, 2.5], dtype=object)})


@pytest.mark.parametrize(
    ("column", "typed"),
    [
        (dict(enumerate(range(30))), r"is a dict; expected one column, as a list or an array: pass pandas.DataFrame"),
        ({"b": list(range(30))}, r"is a dict; .* pass \w+\['a'\], if that is the table"),
        (set(range(30)), r"is a set; .* pass list\(\w+\['a'\]\), if the order of rows does not matter"),
    ],
)
def test_a_dict_or_a_set_is_not_a_column(column, typed):
    table, plain = {"c": list(range(30)), "a": column}, {"c": list(range(30)), "a": list(range(30))}
    asked = {
        "x": (lambda: mm.two_sample_test(table, plain), lambda: mm.independence_test(table, plain)),
        "reference": (lambda: mm.DriftMonitor.of(table),),
        "data": (lambda: mm.KernelGraph([("a", "c")]).fit(table), lambda: mm.fit("c ~ a", table)),
        "table": (lambda: mm.pc(table), lambda: mm.default_kernel(table)),
        "the table": (lambda: mm.test("a ~ c", table),),
    }
    for argument, calls in asked.items():
        for call in calls:
            with pytest.raises(KindError, match=rf"^{argument}\['a'\] {typed}"):
                call()
