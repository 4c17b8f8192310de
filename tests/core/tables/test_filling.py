"""Gaps that are filled keep what their column is, whichever library the table is from."""

import numpy as np
import pandas as pd
import pytest

import meanmap as mm
from meanmap.core.tables.filling import filled

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
