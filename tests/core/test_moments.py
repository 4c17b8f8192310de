"""Times: what is written with a zone and without, and what is finer than microseconds."""

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import meanmap as mm
from meanmap.core.arrays import plain
from meanmap.core.errors import KindError
from meanmap.core.foreign import unmasked
from meanmap.core.moments import Zoned, in_one_unit, is_clock, is_time, is_zoned, seconds, times_in
from meanmap.core.tables.kinds import as_kind

FEW = {"n_permutations": 99, "rng": 0}
NAIVE = [f"2026-01-01T{hour:02d}:00" for hour in (*range(24), *range(12))]
ZONED = [word + "+02:00" for word in NAIVE]


@pytest.mark.parametrize("kind", ["time", "time of day"])
def test_texts_with_a_zone_beside_texts_without_are_refused(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x, y in ((NAIVE, ZONED), (ZONED, np.array(NAIVE, "datetime64[us]")), (pd.to_datetime(ZONED), NAIVE)):
            with pytest.raises(KindError, match=r"with a zone, and .* without one"):
                mm.two_sample_test({"t": x}, {"t": y}, kinds={"t": kind}, **FEW)
        with pytest.raises(KindError, match=r"x\['t'\] holds times with a zone and times without one"):
            mm.two_sample_test({"t": NAIVE[:9] + ZONED}, {"t": ZONED}, kinds={"t": kind}, **FEW)
        schema = mm.Schema.of({"t": ZONED}, kinds={"t": kind})
        with pytest.raises(KindError, match=r"data\['t'\] holds times without one"):
            schema.read({"t": NAIVE})
        with pytest.raises(KindError, match="with a zone, and"):
            mm.Schema.of({"t": ZONED}, {"t": NAIVE}, kinds={"t": kind})


def test_a_time_is_the_same_in_any_zone_and_any_writing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for words in (
            ["2026-01-31T12:30Z"],
            ["2026-01-31 14:30+02:00"],
            ["2026-01-31T07:00-0530"],
            ["2026-01-31T13:30+01"],
        ):
            found = times_in(np.array(words), "x")
            assert isinstance(found, Zoned)
            assert found.astype(str).tolist() == ["2026-01-31T12:30:00.000000"]
        assert type(times_in(np.array(NAIVE), "x")) is np.ndarray
    assert not any(map(is_time, ("2026-01-31Z", "20260131", "12:30Z", "2026-01-31T12:30+2")))


def test_arrow_and_arrays_of_it_keep_their_zone():
    arrow = pytest.importorskip("pyarrow")
    moments = [datetime.datetime(2026, 1, 1, hour) for hour in range(24)]
    naive = arrow.table({"t": moments})
    zoned = arrow.table({"t": arrow.array(moments, arrow.timestamp("us", "Europe/Berlin"))})
    frames = [zoned, zoned.to_pandas(types_mapper=pd.ArrowDtype), zoned.to_pandas(), pl.from_arrow(zoned)]
    for frame in frames:
        mm.two_sample_test(frame, zoned, **FEW)
        for other in (naive, naive.to_pandas(types_mapper=pd.ArrowDtype)):
            with pytest.raises(KindError, match="with a zone, and"):
                mm.two_sample_test(frame, other, **FEW)
        assert is_zoned(mm.Table.of(frame).columns["t"])


def nanoseconds(of):
    return np.datetime64("2026-01-01", "ns") + np.asarray(of) * np.timedelta64(1, "ns")


def test_nanoseconds_that_matter_are_not_cut_without_a_word():
    rng = np.random.default_rng(0)
    x, y = (nanoseconds(rng.integers(low, low + 300, 40)) for low in (0, 200))
    for x_in, y_in in (({"t": x}, {"t": y}), (pd.DataFrame({"t": x}), pd.DataFrame({"t": y})), (x, y)):
        with pytest.raises(KindError, match=r"times with nanoseconds.* durations keep nanoseconds"):
            mm.two_sample_test(x_in, y_in, **FEW)
    start = np.datetime64("2026-01-01", "ns")
    assert mm.two_sample_test({"t": x - start}, {"t": y - start}, **FEW).pvalue < 0.05
    # As labels all digits count, and times of both samples are one label if they are one time.
    labels = mm.Schema.of({"t": x}, {"t": y}, kinds={"t": "label"})["t"]
    assert labels.distinct == len(np.unique(np.r_[x, y]))
    few = nanoseconds([0, 5000, 5001]), nanoseconds([0, 5000, 9000])
    assert mm.Schema.of({"t": few[0]}, {"t": few[1]}, kinds={"t": "label"})["t"].distinct == 4


def test_nanoseconds_that_say_nothing_do_no_harm():
    days = nanoseconds([86_400 * 10**9 * day + 123 for day in range(30)])
    assert in_one_unit(days, "x").dtype == "datetime64[us]"
    assert np.diff(seconds(days)).tolist() == [86_400.0] * 29


def test_masked_whole_numbers_are_whole_and_masked_truth_values_are_truth_values():
    mask = np.arange(40) % 5 == 0
    long = np.ma.array(2**60 + np.arange(40) % 8 * 3, mask=mask)
    y = np.where(np.arange(40) % 8 < 4, 1.0, -1.0) + np.random.default_rng(0).normal(0, 0.1, 40)
    listed = [None if gone else int(v) for v, gone in zip(long.data, mask, strict=True)]
    few = {"kinds": {"c": "label"}, "missing": "drop", **FEW}
    expected = mm.independence_test({"c": listed}, y, **few).pvalue
    assert mm.independence_test({"c": long}, y, **few).pvalue == expected == 0.01
    assert mm.Schema.of({"c": long}, kinds={"c": "label"})["c"].distinct == 8
    assert unmasked(long) is long
    truth = np.ma.array(y > 0, mask=mask)
    assert mm.Schema.of({"c": truth})["c"].kind == "boolean"
    assert mm.independence_test(truth, y, missing="drop", **FEW).statistic == pytest.approx(
        mm.independence_test({"c": truth}, y, missing="drop", **FEW).statistic
    )
    assert plain(unmasked(truth), "x").tolist()[:2] == [None, True]


def test_a_clock_of_twelve_hours_is_read():
    """It was compared as free text, and NumPy warned of time zones."""
    words = np.array(["2026-03-01 7:18 PM", "2026-03-01 12:05 AM", "31.1.2026 1:02:03 p.m."])
    expected = np.array(["2026-03-01T19:18", "2026-03-01T00:05", "2026-01-31T13:02:03"], "datetime64[us]")
    np.testing.assert_array_equal(times_in(words, "x"), expected)
    assert not any(map(is_time, ("7:18 PM", "2026-03-01 PM", "2026-03-01 19:18 PM", "2026-03-01 0:18 AM")))


def test_a_time_of_day_alone_is_read_as_one():
    """One part knew that 7:18 PM is a time, and another could not read it."""
    words = np.array(["7:18 PM", "12:00 am", "12:30 p.m.", "23:59:30", "0:05"])
    hours = np.array([19 + 18 / 60, 0, 12.5, 24 - 30 / 3600, 5 / 60])
    angle = 2 * np.pi * hours / 24
    expected = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    np.testing.assert_allclose(as_kind(words, "time of day", "x"), expected, atol=1e-12)
    with pytest.raises(KindError, match="cannot be read as a time"):
        as_kind(np.array(["7:18 PM", "soon"]), "time of day", "x")
    for other in ("24:00", "7:60", "13:00 pm", "0:10 am", "7:18:60", "7"):
        assert not is_clock(other)
