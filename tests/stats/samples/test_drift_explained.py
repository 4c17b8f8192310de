"""What a monitor says of its batches: which columns moved and by how much, copies, added columns, and odd values."""

import json
import re

import numpy as np
import pandas
import pytest
from typer.testing import CliRunner

import meanmap as mm
from meanmap.cli.commands import app
from meanmap.core.errors import EmptyError, NonFiniteError
from meanmap.stats.samples import drift_columns, drift_copies, drift_pool, drift_start

UNITS = pytest.approx


def rows(rng, n, shift=0.0):
    frame = pandas.DataFrame({"temp": rng.normal(20 + shift, 3, n), "press": rng.normal(100, 5, n)})
    return frame.assign(site=rng.choice(["north", "south"], n))


@pytest.fixture(scope="module")
def watched():
    """A monitor after two quiet batches, and what it has seen."""
    rng = np.random.default_rng(0)
    reference, quiet = rows(rng, 400), [rows(rng, 60), rows(rng, 60)]
    monitor = mm.DriftMonitor.of(reference, missing="drop", n_permutations=99, rng=0)
    for batch in quiet:
        monitor = monitor.step(batch)
    return monitor, reference, quiet


def test_each_alarm_names_the_columns_that_moved_and_by_how_much(watched, tmp_path):
    monitor, reference, _ = watched
    hot = rows(np.random.default_rng(1), 60, 30.0)
    after = monitor.step(hot)
    assert after.alarms == (3,)
    (drift,) = after.to_dict()["compared"]
    first = drift["columns"][0]
    assert (drift["batches"], first["what"], first["clear"]) == ("batch 3", "mean temp", True)
    assert first["reference"] == UNITS(reference.temp.mean())
    assert first["batches"] == UNITS(hot.temp.mean())
    assert first["difference"]["low"] < hot.temp.mean() - reference.temp.mean() < first["difference"]["high"]
    assert first["over time"] == UNITS([*(b.temp.mean() for b in watched[2]), hot.temp.mean()])
    assert first["pvalue"] < 0.01
    for said in (str(after), repr(after), after._repr_html_()):
        assert "mean temp" in said
        assert f"{hot.temp.mean():.4g}" in said
    page = after.page(tmp_path / "page.html").read_text()
    assert "Which columns differ: batch 3" in page
    json.dumps(after.to_dict())
    mm.save(after, tmp_path / "monitor")
    assert str(mm.load(tmp_path / "monitor")) == str(after)
    assert "mean temp" not in str(monitor)
    assert "60 of 60 values of batch['temp'] are outside of" in str(after)


def test_a_column_that_loses_cells_is_named_with_shares(watched):
    monitor, _, _ = watched
    holes = rows(np.random.default_rng(2), 60)
    holes.loc[:39, "press"] = np.nan
    first = monitor.step(holes).to_dict()["compared"][0]["columns"][0]
    assert (first["what"], first["reference"], first["batches"]) == ("missing press", 0, UNITS(40 / 60))


def test_copies_are_noted(watched, tmp_path):
    monitor, reference, quiet = watched
    advice = "a copy of known rows says nothing about new ones. If it is a mistake, leave this batch out."
    mm.save(monitor, tmp_path / "monitor")
    for each in (monitor, mm.load(tmp_path / "monitor")):
        assert f"60 of 60 rows are also in batch 1: {advice}" in each.step(quiet[0].sample(frac=1)).notes
        half = pandas.concat([quiet[1][:40], rows(np.random.default_rng(3), 20)])
        assert f"40 of 60 rows are also in batch 2: {advice}" in each.step(half).notes
        assert f"50 of 50 rows are also in the reference: {advice}" in each.step(reference[:50]).notes
    assert not any("also in" in note for note in monitor.step(rows(np.random.default_rng(4), 60)).notes)


@pytest.mark.parametrize(("most", "forgotten"), [(100, [True, True, False, False]), (30, [True, False])])
def test_rows_of_old_batches_are_forgotten(monkeypatch, most, forgotten):
    """A batch of more rows than are remembered is remembered; a first one of a million ended in an IndexError."""
    monkeypatch.setattr(drift_copies, "MOST_REMEMBERED", most)
    rng = np.random.default_rng(5)
    batches = [[rng.normal(size=40)] for _ in forgotten]
    copies = drift_copies.Copies.of([rng.normal(size=50)])
    for number, batch in enumerate(batches, 1):
        copies = copies.step(batch, number)
        assert copies.find(batch) == (number, 40, 40, True)
    assert [copies.find(batch) is None for batch in batches] == forgotten


def test_added_columns_are_named_once_and_cost_no_rows(watched):
    plain = rows(np.random.default_rng(6), 60)
    after = watched[0].step(plain.assign(extra=np.nan))
    assert after.notes == ("batch has the column 'extra', which the reference lacks: it is not watched.",)
    assert after.pvalues[-1] == watched[0].step(plain).pvalues[-1]


@pytest.mark.parametrize("missing", ["raise", "drop"])
def test_batches_without_rows_or_with_an_infinite_value_are_refused_in_words(watched, missing):
    monitor = watched[0] if missing == "drop" else mm.DriftMonitor.of(watched[1], n_permutations=19, rng=0)
    batch = rows(np.random.default_rng(7), 60)
    with pytest.raises(EmptyError, match=r"^batch is empty; expected at least"):
        monitor.step(batch[:0])
    batch.loc[3, "temp"] = np.inf
    with pytest.raises(NonFiniteError, match=r"^batch\['temp'\] holds 1 value"):
        monitor.step(batch)


def test_arrays_have_columns_by_number_and_bags_have_none():
    rng = np.random.default_rng(8)
    after = mm.DriftMonitor.of(rng.normal(size=(200, 2)), n_permutations=19, rng=0).step(rng.normal([0, 9], 1, (60, 2)))
    assert after.to_dict()["compared"][0]["columns"][0]["what"] == "mean column 1"
    assert "mean column 1" in str(after)


@pytest.mark.parametrize("within", [None, "kind"])
def test_long_batches_are_compared_and_explained_by_rows_drawn_at_random(monkeypatch, within):
    # A batch of 10^5 rows ended in "these samples were too large to be kept".
    monkeypatch.setattr(drift_start, "MOST_KEPT", 1000)
    monkeypatch.setattr(drift_pool, "GROWS_TO", 1000)
    monkeypatch.setattr(drift_columns, "MOST_TESTED", 500)
    draw = np.random.default_rng(5)

    def rows(n, shift=0.0):
        return pandas.DataFrame({"x": draw.normal(shift, 1, n), "kind": draw.choice(["a", "b"], n)})

    reference, long = rows(30_000), rows(30_000, 0.5)
    monitor = mm.DriftMonitor.of(reference, within=within, n_permutations=200, rng=0)
    assert len(monitor.pool) == 1000
    for _ in range(4):
        monitor = monitor.step(rows(20_000))
    assert min(monitor.pvalues) > 0.001
    assert len(monitor.pool) == 1000
    monitor = monitor.step(long)
    assert monitor.pvalues[-1] < 0.01
    if within is None:
        assert monitor.alarms == (5,)
        first = monitor.record.compared()[0][1][0]
        assert first["column"] == "x"
        assert first["batches"] == pytest.approx(long.x.mean(), abs=4 * 20_000**-0.5)


def test_a_monitor_of_one_batch_draws_a_point():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(100, 2))
    page = mm.DriftMonitor.of(rows, n_permutations=19, rng=0).step(rng.normal(size=(50, 2)))._as_page()
    (panel,) = page.sections[0].charts[0].panels
    assert [mark.kind for mark in panel.marks if mark.series == "evidence since the last alarm"] == ["dots"]
    assert panel.x.ticks == ((1.0, "1"),)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_columns_of_a_batch_of_a_few_rows_are_shown_without_pvalues(watched, size, tmp_path):
    """The page and the command line ended in "y has 3 points; expected at least 5"."""
    few = rows(np.random.default_rng(9), size).assign(temp=[20.0, 22.0, 24.0, 26.0][:size])
    page = watched[0].step(few).page(tmp_path / "page.html").read_text()
    assert "mean temp" in page
    (shown,) = watched[0].step(few).record.compared(last=True)
    first = next(each for each in shown[1] if each["what"] == "mean temp")
    assert (first["batches"], first["pvalue"]) == (UNITS(few.temp.mean()), None)


def test_two_values_as_often_as_each_other_have_no_kurtosis_below_one():
    # The square root of a negative variance, with NumPy's warning, in a batch of a few rows.
    two, many = np.array([1.0, 1.0, 3.0, 3.0]), np.tile([0.0, 1.0], 500)
    assert not drift_columns._spreads_differ(two, two + 1e-9)
    assert drift_columns._spreads_differ(many, 3 * many)


def test_a_rare_new_label_is_named_from_the_first_alarm():
    """Its simultaneous interval contains zero, and its column's p-value is .002: "no column clearly by itself"."""
    named = []
    for seed in (410, 413, 414):
        rng = np.random.default_rng(seed)

        def rows(n, share, rng=rng):
            city = np.where(rng.random(n) < share, "ES", rng.choice(["DE", "FR", "AT"], n, p=[0.6, 0.3, 0.1]))
            return {"a": rng.normal(size=n), "b": rng.exponential(size=n), "city": city}

        monitor = mm.DriftMonitor.of(rows(1000, 0.0), rng=seed)
        assert monitor.to_dict()["lasting"] is None
        assert monitor.to_dict()["each alarm"] == []
        for k in range(8):
            monitor = monitor.step(rows(150, 0.05 if k > 2 else 0.0))
        alarms = monitor.to_dict()["each alarm"]
        named += [each["changed"].startswith("city = ") for each in alarms]
        # It is one drift, which goes on, whatever other column is named by chance.
        assert set(monitor.alarms[1:]) <= set(monitor.repeats)
    assert len(named) >= 9
    assert all(named)


def test_the_answer_names_what_changed_also_when_the_drift_has_ended(tmp_path):
    rng = np.random.default_rng(5)
    monitor = mm.DriftMonitor.of(rows(rng, 500), rng=0)
    rows(rng, 500).to_csv(tmp_path / "reference.csv", index=False)
    for batch in range(1, 9):
        here = rows(rng, 100, 4.0 * (batch == 2))
        here.to_csv(tmp_path / f"b{batch}.csv", index=False)
        monitor = monitor.step(here)
        if batch == 2:
            assert monitor.to_dict()["lasting"]["pvalue"] is None
            assert "The drift since batch 2 lasts: mean temp 2" in monitor.to_dict()["answer"]
    assert monitor.lasting is None
    said = r"The drift since {} \(mean temp 2\S* → 2\S*\) has ended: {} to \S+ look as before it\.$"
    assert re.search(said.format("batch 2", r"batches \d"), monitor.to_dict()["answer"])
    files = [tmp_path / f"b{batch}.csv" for batch in range(1, 9)]

    def told(*paths):
        return CliRunner().invoke(app, ["drift", *map(str, [tmp_path / "reference.csv", *paths]), "--seed", "0"]).stdout

    assert re.search(r"No: alarm at b2\.csv\. At b2\.csv: mean temp 2\S* → 2", told(*files[:2]))
    ended = said.format(r"b2\.csv", r"b\d\.csv")
    assert re.search(r"No: alarm at b2\.csv\. " + ended, told(*files), re.MULTILINE)
    # With a state file the alarm is in another run, and the run in which the drift ends says so, once.
    state = ["--state", str(tmp_path / "state.mm")]
    days = [told(file, *state).splitlines()[0] for file in files]
    assert [bool(re.search(r"No alarm in 1 batch\. " + ended, day)) for day in days].count(True) == 1
    assert sum("has ended" in day for day in days) == 1


def test_a_span_of_time_that_changed_is_named():
    """It has no row of means: "no column clearly by itself"."""
    rng = np.random.default_rng(1503)

    def rows_of(n, times=1.0):
        return pandas.DataFrame(
            {"dur": pandas.to_timedelta(rng.exponential(60 * times, n), unit="s"), "v": rng.normal(size=n)}
        )

    monitor = mm.DriftMonitor.of(rows_of(600), rng=0)
    for batch in range(1, 6):
        monitor = monitor.step(rows_of(60, 1.0 + 2 * (batch > 3)))
    assert monitor.to_dict()["each alarm"][0]["changed"].startswith("distribution of dur")


def shop(rng, n, labels, new=0.0, kind=""):
    """A column of labels of which few rows have most, sometimes with a new one, and two columns of numbers."""
    shares = 1 / np.arange(1, labels + 1) ** 1.1
    sku = np.array([f"sku{k:03d}" for k in range(labels)])[rng.choice(labels, n, p=shares / shares.sum())]
    weight, some = rng.gamma(3, 10, n), rng.random(n) < 0.08
    weight = np.where(some, 30.0, weight) if kind == "default" else np.round(weight) if kind == "rounded" else weight
    return {"sku": np.where(rng.random(n) < new, "NEW", sku), "w": weight, "price": np.exp(rng.normal(3, 1.5, n))}


@pytest.mark.parametrize(("labels", "seed"), [(20, 39003), (30, 39003), (60, 39003), (200, 39004)])
def test_a_new_label_among_many_is_named(labels, seed):
    """The alarms said "no column clearly by itself", beside an interval that excluded zero and a p-value of 0.57."""
    rng = np.random.default_rng(seed)
    large = labels == 200
    n, m = (5000, 500) if large else (1500, 150)
    monitor = mm.DriftMonitor.of(shop(rng, n, labels), missing="drop", rng=seed)
    for batch in range(1, 4):
        monitor = monitor.step(shop(rng, m, labels, 0.12 * (batch >= 2)))
    told = monitor.to_dict()
    assert monitor.alarms[0] == 2
    assert all(each["changed"].startswith("sku = NEW 0% → ") for each in told["each alarm"])
    assert "sku = NEW 0% → " in told["answer"]
    first = told["compared"][0]["columns"][0]
    assert (first["what"], first["reference"], first["clear"]) == ("sku = NEW", 0.0, True)
    assert first["pvalue"] < 1e-6
    assert re.search(r"sku = NEW +\S+e-\d+ +0% ", str(monitor))


@pytest.mark.parametrize(("kind", "named"), [("default", "share of w = 30 0% → "), ("rounded", "share of w = ")])
@pytest.mark.parametrize("seed", [40001, 40002])
def test_a_value_in_many_rows_is_named(kind, named, seed):
    """Alarms with p-values of 1e-13 named no column, and no row of the table had the value."""
    rng = np.random.default_rng(seed)
    monitor = mm.DriftMonitor.of(shop(rng, 1500, 5), rng=seed)
    for batch in range(1, 5):
        monitor = monitor.step(shop(rng, 150, 5, kind=kind * (batch >= 3)))
    alarms = monitor.to_dict()["each alarm"]
    assert monitor.alarms[0] == 3
    assert all(each["changed"].startswith(named) for each in alarms)


@pytest.mark.slow
def test_columns_without_a_change_are_hardly_ever_named():
    """With many labels, zeros and heavy tails: in no more than 5% of tables, but for errors of the draws."""
    named, tables = 0, 60
    for seed in range(tables):
        rng = np.random.default_rng([73, seed])
        before, here = (drift_columns.Rows({**shop(rng, n, 60), "z": rng.poisson(0.5, n) * 1.0}) for n in (800, 150))
        rows = drift_columns.moved_columns(before, here, seed)
        named += any(row["pvalue"] <= 0.05 for row in rows)
    assert named <= 8


@pytest.mark.parametrize("seed", range(3))
def test_a_weaker_correlation_is_named_at_the_first_alarm(seed):
    """It said "no column clearly by itself" in three of three streams."""
    rng = np.random.default_rng([seed, 70])

    def rows(n, r):
        x = rng.normal(size=(n, 4))
        return {
            "temp": x[:, 0],
            "load": r * x[:, 0] + np.sqrt(1 - r * r) * x[:, 1],
            "u": x[:, 2],
            "pay": np.exp(x[:, 3]),
        }

    monitor = mm.DriftMonitor.of(rows(1000, 0.7), rng=seed)
    for _ in range(8):
        monitor = monitor.step(rows(200, 0.35))
        if monitor.alarm:
            break
    assert monitor.alarms
    assert "rank correlation of temp and load" in monitor.to_dict()["each alarm"][0]["changed"]
