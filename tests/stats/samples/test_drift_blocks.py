"""Columns of several numbers in each row: times of day, which are points on a circle, and vectors."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import meanmap as mm
from meanmap.cli.commands import app
from meanmap.core.errors import KindError, ShapeError
from meanmap.stats.samples.drift_circles import parts_of
from meanmap.stats.samples.drift_columns import Rows, moved_columns


def shifts(rng, n, night=0.0):
    """Times of day of work, a part of it at night, beside two columns that never change."""
    hours = np.where(rng.random(n) < night, rng.integers(0, 6, n), rng.integers(8, 20, n))
    hhmm = [f"{hour:02d}:{minute:02d}" for hour, minute in zip(hours, rng.integers(0, 60, n), strict=True)]
    return pd.DataFrame({"hhmm": hhmm, "v": rng.normal(5, 1, n), "w": rng.exponential(1, n)})


def vectors(rng, n, shift=0.0):
    return {"emb": rng.normal(size=(n, 8)) + shift * np.eye(8)[0], "v": rng.normal(size=n)}


def watched(draw, amount, **options):
    monitor = mm.DriftMonitor.of(draw(600), rng=0, **options)
    for batch in range(1, 9):
        monitor = monitor.step(draw(60, amount * (batch >= 5)))
    return monitor


@pytest.mark.parametrize("missing", ["raise", "drop"])
@pytest.mark.parametrize("seed", [1302, 1303])
def test_a_time_of_day_that_changed_is_named_by_its_hours(seed, missing):
    """The alarms said "no column clearly by itself", and one of them named 'w'."""
    rng = np.random.default_rng(seed)
    found = watched(lambda n, night=0.0: shifts(rng, n, night), 0.25, kinds={"hhmm": "time of day"}, missing=missing)
    told = found.to_dict()
    assert found.alarms[0] in (5, 6)
    assert all(each["changed"].startswith("hhmm = ") for each in told["each alarm"])
    assert "lasts" in told["answer"]
    assert "hhmm = 0" in told["answer"]
    rows = told["compared"][0]["columns"]
    (mean,) = [row for row in rows if row["what"] == "mean hhmm"]
    assert mean["reference"][:3] in ("13:", "14:")
    night = [row for row in rows if row["what"] in ("hhmm = 00:00 to 03:00", "hhmm = 03:00 to 06:00")]
    assert [row["reference"] for row in night] == [0.0, 0.0]
    assert {row["column"] for row in rows} == {"hhmm", "v", "w"}
    assert "█" in str(found).partition("hhmm = 0")[2].partition("\n")[0]
    assert "counts as labels" not in str(found)


def test_a_time_of_day_that_moved_is_named_by_its_mean():
    rng = np.random.default_rng(0)

    def tables(n, later=0.0):
        minutes = np.round(rng.normal(60 * (23.5 + later), 60, n)).astype(int) % 1440
        return {"at": [f"{minute // 60:02d}:{minute % 60:02d}" for minute in minutes], "v": rng.normal(size=n)}

    found = watched(tables, 1.0, kinds={"at": "time of day"})
    assert found.to_dict()["each alarm"][-1]["changed"].startswith("mean at 23:")
    (mean,) = [row for row in found.to_dict()["compared"][-1]["columns"] if row["what"] == "mean at"]
    assert mean["batches"].startswith("00:")
    assert mean["difference"]["low"] <= 1.0 <= mean["difference"]["high"]


@pytest.mark.parametrize("missing", ["raise", "drop"])
@pytest.mark.parametrize("gap", [False, True])
def test_a_vector_that_changed_is_named(gap, missing):
    if gap and missing == "raise":
        return
    rng = np.random.default_rng(1401)

    def tables(n, shift=0.0):
        found = vectors(rng, n, shift)
        found["v"] = np.where(rng.random(n) < 0.05 * gap, np.nan, found["v"])
        return found

    found = watched(tables, 0.8, missing=missing)
    told = found.to_dict()
    assert found.alarms[0] in (5, 6)
    assert all(each["changed"].startswith("distribution of emb") for each in told["each alarm"])
    assert "distribution of emb" in told["answer"]
    assert found.to_dict()["compared"][0]["columns"][0]["column"] == "emb"


def test_saved_monitors_have_these_rows_too(tmp_path):
    rng = np.random.default_rng(3)
    found = watched(lambda n, night=0.0: shifts(rng, n, night), 0.25, kinds={"hhmm": "time of day"})
    mm.save(found, tmp_path / "monitor.mm")
    assert str(mm.load(tmp_path / "monitor.mm")) == str(found)


def test_without_drift_rows_of_vectors_and_times_are_as_rarely_small_as_others():
    """P-values are corrected for the number of columns: one table in twenty has one below .05."""
    small = 0
    for seed in range(60):
        rng = np.random.default_rng([seed, 5])
        angles = rng.uniform(0, 2 * np.pi, 260)
        columns = {"at": np.stack([np.cos(angles), np.sin(angles)], axis=1), **vectors(rng, 260)}
        parts = ({name: column[some] for name, column in columns.items()} for some in (slice(200), slice(200, 260)))
        before, here = (Rows(part, circles={"at": "time of day"}) for part in parts)
        rows = moved_columns(before, here, seed)
        assert {row["column"] for row in rows} >= {"at", "emb", "v"}
        small += min(row["pvalue"] for row in rows) <= 0.05
    assert small <= 9  # 3 are expected; more than 9 in one of 3000 runs


@pytest.mark.parametrize(
    ("kind", "turn", "part"),
    [
        ("time of day", 0.125, "03:00 to 06:00"),
        ("time of week", 4 / 7, "Monday"),
        ("time of year", 0.0, "Jan"),
        ("time of year", 0.5, "Jul"),
        ("angle", 0.99, "5.5 to 6.28"),
    ],
)
def test_parts_begin_with_their_first_moment(kind, turn, part):
    angle = 2 * np.pi * turn
    assert parts_of(np.array([[np.cos(angle), np.sin(angle)]]), kind).tolist() == [part]


def test_the_command_names_it_and_does_not_ask_for_a_kind_that_was_given(tmp_path):
    rng = np.random.default_rng(1301)
    shifts(rng, 600).to_csv(tmp_path / "reference.csv", index=False)
    files = [tmp_path / f"b{batch}.csv" for batch in range(1, 8)]
    for batch, file in enumerate(files, start=1):
        shifts(rng, 60, 0.2 * (batch >= 5)).to_csv(file, index=False)
    state = ["--state", str(tmp_path / "state.mm")]

    def told(*more):
        typed = ["drift", str(tmp_path / "reference.csv"), *map(str, more), "--seed", "0"]
        return CliRunner().invoke(app, [*typed, "--kinds", "hhmm=time of day"]).stdout

    found = told(*files)
    assert "hhmm = " in found.splitlines()[0]
    assert "counts as labels" not in found + told(files[0], *state) + told(files[1], *state)


@pytest.mark.parametrize("missing", ["raise", "drop"])
def test_columns_of_other_lengths_are_refused_by_name(missing):
    """NumPy spoke of an inhomogeneous shape, and a kernel of a lengthscale with 9 entries."""
    rng = np.random.default_rng(0)
    monitor = mm.DriftMonitor.of(vectors(rng, 100), missing=missing, rng=0)
    batch = vectors(rng, 20)
    with pytest.raises(ShapeError, match=r"the columns of batch differ in length: {'emb': 20, 'v': 19}"):
        monitor.step({**batch, "v": batch["v"][1:]})
    said = r"batch\['emb'\] holds blocks of 5 numbers; expected blocks of 8 numbers, as in the reference"
    with pytest.raises(KindError, match=said):
        monitor.step({**batch, "emb": batch["emb"][:, :5]})
    with pytest.raises(ShapeError, match="the columns of reference differ in length"):
        mm.DriftMonitor.of({**batch, "v": batch["v"][1:]}, missing=missing, rng=0)
