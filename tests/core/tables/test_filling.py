"""Gaps that are filled keep what their column is, whichever library the table is from."""

import numpy as np
import pandas as pd
import pytest

import meanmap as mm
from meanmap.core.tables.filling import columns_of, filled
from meanmap.core.tables.missing import present

FOUND = {"when": (np.array([0, 2]), np.array(["2020-01-01T06:30:01", "2020-07-02"], dtype="M8[ns]"))}


@pytest.mark.parametrize("unit", ["s", "ms", "ns"])
def test_times_of_pandas_keep_their_unit(unit):
    there = np.array(["NaT", "2021-01-01", "NaT"], dtype=f"M8[{unit}]")
    result = filled(pd.DataFrame({"when": there}), FOUND)["when"]
    assert result.dtype == there.dtype
    expected = np.array(["2020-01-01T06:30:01", "2021-01-01", "2020-07-02"], dtype="M8[ns]")
    np.testing.assert_array_equal(result.to_numpy().astype("M8[ns]"), expected)
    long = {"lasts": (np.array([1]), np.array([90], dtype="m8[s]").astype("m8[ns]"))}
    spans = filled(pd.DataFrame({"lasts": np.array([5, "NaT"], dtype=f"m8[{unit}]")}), long)["lasts"]
    assert spans.tolist() == [pd.Timedelta(5, unit), pd.Timedelta(seconds=90)]


def test_times_with_a_zone_are_those_instants():
    """Half past six in Greenwich is half past seven in Berlin in winter; in summer two hours lie between."""
    column = pd.to_datetime(["NaT", "2021-01-01", "NaT"]).tz_localize("Europe/Berlin")
    result = filled(pd.DataFrame({"when": column}), FOUND)["when"]
    assert result.dtype == column.dtype
    assert [str(time) for time in result] == [
        "2020-01-01 07:30:01+01:00", "2021-01-01 00:00:00+01:00", "2020-07-02 02:00:00+02:00",
    ]  # fmt: skip


def test_times_of_polars_stay_times():
    polars = pytest.importorskip("polars", reason="polars is not installed here")
    there = polars.Series("when", np.array(["NaT", "2021-01-01", "NaT"], dtype="M8[ms]"))
    for column in (there, there.dt.replace_time_zone("Europe/Berlin"), there.cast(polars.Date)):
        result = filled(polars.DataFrame({"when": column}), FOUND)["when"]
        assert result.dtype == column.dtype
        assert result[1] == column[1]
        assert [time.day for time in result] == [1, 1, 2]


@pytest.mark.filterwarnings("ignore:.*(further out than|relies on)")
def test_a_network_fills_gaps_among_times():
    """In days, hours after a number; each kind of table comes back as it came."""
    x = np.random.default_rng(0).normal(size=60)
    when = np.datetime64("2024-03-01", "s") + (86400 * x).astype("m8[s]")
    frame = pd.DataFrame({"x": x, "when": when})
    model = mm.KernelGraph([("x", "when")]).fit(frame)
    gaps = frame.assign(when=frame["when"].where(np.arange(60) % 5 > 0))
    result = model.impute(gaps)["when"]
    assert result.dtype == frame["when"].dtype
    assert abs(result - frame["when"]).median() < pd.Timedelta(hours=12)


WHOLE = [3, None, -2]


def containers():
    """A column of whole numbers with a gap in each kind of table, and the type that it keeps."""
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    for kind in ("Int64", "Int8", "int64[pyarrow]"):
        yield pd.DataFrame({"n": pd.array(WHOLE, dtype=kind)}), kind
    yield pd.DataFrame({"n": WHOLE}), "float64"
    yield polars.DataFrame({"n": WHOLE}), "Int64"
    yield polars.DataFrame({"n": WHOLE}, schema={"n": polars.Int16}), "Int16"
    yield arrow.table({"n": WHOLE}), "int64"
    yield {"n": WHOLE}, "int64"
    yield {"n": np.ma.masked_array([3, 0, -2], [0, 1, 0])}, "int64"
    yield {"n": pd.array(WHOLE, dtype="Int64")}, "int64"
    yield {"n": polars.Series(WHOLE)}, "int64"
    yield {"n": [3.0, float("nan"), -2.0]}, "float64"


def kept(table, column):
    return table["n"].to_pylist() if hasattr(table, "set_column") else list(column)


def test_whole_numbers_keep_their_type():
    for table, kind in containers():
        result = filled(table, {"n": (np.array([1]), np.array([7]))})
        assert type(result) is type(table)
        assert str(getattr(result["n"], "dtype", getattr(result["n"], "type", None))) == kind
        assert kept(result, result["n"]) == [3, 7, -2]


def test_fractions_among_whole_numbers_make_floats():
    for table, _ in containers():
        result = filled(table, {"n": (np.array([1]), np.array([0.5]))})
        assert kept(result, result["n"]) == [3.0, 0.5, -2.0]


def test_whole_numbers_stay_within_their_type():
    small = filled(pd.DataFrame({"n": pd.array(WHOLE, dtype="Int8")}), {"n": (np.array([1]), np.array([300]))})
    assert small["n"].tolist() == [3, 127, -2]


def test_other_columns_of_arrow_stay_as_they_are():
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"n": WHOLE, "k": ["u", None, "v"], "other": [1, 2, 3]})
    result = filled(table, {"k": (np.array([1]), np.array(["u"]))})
    assert result.column("n").equals(table.column("n"))
    assert result["k"].to_pylist() == ["u", "u", "v"]
    times = arrow.table({"when": arrow.array([None, 10, None], arrow.timestamp("s", "Europe/Berlin"))})
    assert filled(times, FOUND)["when"].type == times["when"].type


@pytest.mark.parametrize("kind", ["Categorical", "Enum"])
def test_labels_of_polars_stay_labels(kind):
    polars = pytest.importorskip("polars", reason="polars is not installed here")
    dtype = polars.Enum(["low", "mid", "high"]) if kind == "Enum" else polars.Categorical()
    there = polars.Series("size", ["low", None, "high", None], dtype=dtype)
    result = filled(polars.DataFrame({"size": there}), {"size": (np.array([1, 3]), np.array(["high", "mid"]))})["size"]
    assert result.dtype == there.dtype
    assert result.to_list() == ["low", "high", "high", "mid"]


def test_a_label_that_a_column_cannot_hold_makes_it_text():
    """As where a model has learned from another table."""
    polars = pytest.importorskip("polars", reason="polars is not installed here")
    new = {"size": (np.array([1]), np.array(["huge"]))}
    there = polars.Series("size", ["low", None], dtype=polars.Enum(["low", "mid"]))
    assert filled(polars.DataFrame({"size": there}), new)["size"].to_list() == ["low", "huge"]
    column = pd.Categorical(["low", None], ["low", "mid"])
    assert filled(pd.DataFrame({"size": column}), new)["size"].tolist() == ["low", "huge"]


@pytest.mark.filterwarnings("ignore:.*(further out than|relies on)")
def test_imputed_labels_keep_their_kind():
    polars = pytest.importorskip("polars", reason="polars is not installed here")
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    labels = polars.Series(np.where(x > 0, "up", "down")).cast(polars.Enum(["down", "up"]))
    model = mm.KernelGraph([("x", "g")]).fit(polars.DataFrame({"x": x, "g": labels}))
    gaps = polars.DataFrame({"x": [1.0, -1.0], "g": polars.Series(["up", None], dtype=labels.dtype)})
    assert model.impute(gaps)["g"].dtype == labels.dtype
    assert model.impute(gaps)["g"].to_list() == ["up", "down"]


def columns_of_every_type():
    """Columns without gaps, and the kind that each is declared as, if any."""
    rng = np.random.default_rng(3)
    whole, words = rng.integers(0, 3, 60), np.array(["low", "mid", "high"])[rng.integers(0, 3, 60)]
    days = np.datetime64("2024-01-01", "s") + (86400 * whole).astype("m8[s]")
    levels = ("low", "mid", "high")
    return {
        "levels": (pd.Series(words, dtype=object), levels),
        "levels of text": (pd.Series(words, dtype="string"), levels),
        "whole levels": (pd.Series(whole, dtype="Int64"), (0, 1, 2)),
        "rank": (pd.Series(pd.Categorical(words, levels, ordered=True)), "rank"),
        "whole labels": (pd.Series(whole, dtype="Int64"), "label"),
        "labels that are floats": (pd.Series(whole.astype(float)), "label"),
        "categories": (pd.Series(pd.Categorical(words, [*levels, "never"])), None),
        "categories of whole numbers": (pd.Series(pd.Categorical(whole)), None),
        "categories of truth values": (pd.Series(pd.Categorical(whole > 0)), None),
        "truth values": (pd.Series(whole > 0, dtype="boolean"), None),
        "truth values as objects": (pd.Series(whole > 0, dtype=object), None),
        "Python's dates": (pd.Series([day.date() for day in days.tolist()], dtype=object), None),
        "times": (pd.Series(days), None),
        "times in a zone": (pd.Series(days).dt.tz_localize("Europe/Berlin"), None),
        "durations": (pd.Series(days - days[0]), None),
        "short floats": (pd.Series(whole / 7, dtype="Float32"), None),
    }


def as_tables(frame):
    """The same table in every library, and with columns as lists."""
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    yield frame
    yield frame.convert_dtypes(dtype_backend="pyarrow")
    yield polars.from_pandas(frame)
    yield arrow.Table.from_pandas(frame)
    yield {name: frame[name].to_numpy() for name in frame}
    yield {name: frame[name].tolist() for name in frame}


@pytest.mark.parametrize("name", columns_of_every_type())
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_is_filled_has_the_type_of_the_column(name):
    """Values of every gap are among those that the column has, as Python objects of the same type."""
    values, kind = columns_of_every_type()[name]
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"x": rng.normal(size=60), "c": values})
    whole = frame["c"].tolist()
    frame.loc[::6, "c"] = None
    for table in as_tables(frame) if kind != "rank" else [frame]:  # other libraries have no order, or another type
        model = mm.KernelGraph([("x", "c")]).fit(table, **({"kinds": {"c": kind}} if kind else {}))
        result = model.impute(table)
        before, after = table["c"], result["c"]
        assert type(result) is type(table)
        held = after.to_pylist() if hasattr(after, "to_pylist") else list(after)
        if not isinstance(before, list):
            types = [getattr(each, "type", None) or each.dtype for each in (before, after)]
            assert types[0] == types[1]
            known = before.to_pylist() if hasattr(before, "to_pylist") else list(before)
            assert {type(each) for each in held} == {type(each) for i, each in enumerate(known) if i % 6}
        assert not pd.isna(pd.Series(held, dtype=object)).any()
        if kind is not None or "values" in name or "categories" in name:
            assert set(held) <= set(whole)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_networks_fill_in_levels_and_whole_labels_as_they_came():
    """With the most probable, and with draws; levels that were declared are in order from the lowest."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=80)
    frame = pd.DataFrame({"x": x, "size": np.where(x > 0.5, "high", np.where(x > -0.5, "mid", "low")), "n": x.round()})
    frame["n"] = frame["n"].astype("Int64")
    whole = frame.copy()
    frame.loc[::5, "size"], frame.loc[1::5, "n"] = None, pd.NA
    kinds = {"size": ("low", "mid", "high"), "n": "label"}
    network = mm.bp.DependencyNetwork().fit(frame, kinds=kinds)
    arrows = mm.BayesianNetwork([("x", "size"), ("x", "n")]).fit(frame, kinds=kinds)
    for result in (network.impute(frame), *network.impute(frame, draws=2, rng=0), arrows.impute(frame, rng=0)):
        assert (result.dtypes == frame.dtypes).all()
        assert (result["size"] == whole["size"]).mean() > 0.9
        assert set(result["n"]) <= set(whole["n"])


def test_missing_labels_of_a_dictionary_of_arrow_are_missing():
    """NumPy makes the last label of them."""
    arrow = pytest.importorskip("pyarrow")
    column = arrow.array(["a", None, "b", "a"]).dictionary_encode()
    table = arrow.table({"c": column, "n": arrow.array([3, None, 5, 3]).dictionary_encode()})
    gaps = {name: present(each).tolist() for name, each in columns_of(table).items()}
    assert gaps == {"c": [True, False, True, True], "n": [True, False, True, True]}
    result = filled(table, {"c": (np.array([1]), np.array(["b"])), "n": (np.array([1]), np.array(["5"]))})
    assert result["c"].to_pylist() == ["a", "b", "b", "a"]
    assert result["n"].to_pylist() == [3, 5, 5, 3]
    assert result.schema == table.schema


def test_nan_in_a_list_of_texts_is_missing():
    """NumPy makes a text of it."""
    assert present(["a", float("nan"), "b"]).tolist() == [True, False, True]


def test_labels_that_no_cell_has_are_what_the_others_are():
    new = {"c": (np.array([1]), np.array(["7"]))}
    assert filled({"c": [3, None]}, new)["c"].tolist() == [3, 7]
    assert filled(pd.DataFrame({"c": [np.nan, np.nan]}), new)["c"].tolist()[1] == 7.0
    assert filled({"c": [True, None]}, {"c": (np.array([1]), np.array(["False"]))})["c"].tolist() == [True, False]
    words = {"c": (np.array([1]), np.array(["up"]))}
    assert filled(pd.DataFrame({"c": [1.0, np.nan]}), words)["c"].tolist() == [1.0, "up"]
