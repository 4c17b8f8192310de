"""`meanmap drift`: alarms, exit codes, and what is said of columns."""

import errno
import json
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from meanmap.cli.commands import app


def rows(rng, n, shift=0.0, stranger=False):
    site = rng.choice(["north", "south"], n)
    site[: n // 4 * stranger] = "west"
    when = pd.date_range("2026-01-01", periods=n, freq="min")
    return pd.DataFrame({"weight": rng.normal(70 + shift, 12, n).round(1), "site": site, "when": when})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("farm"), np.random.default_rng(0)
    (folder / "days").mkdir()
    rows(rng, 400).to_csv(folder / "reference.csv", index=False)
    for day in range(6):
        late = day >= 3
        rows(rng, 60, 20.0 * late, stranger=late).to_csv(folder / "days" / f"day{day}.csv", index=False)
    return folder


def run(*arguments):
    return CliRunner().invoke(app, ["drift", *map(str, arguments)])


def test_an_alarm_names_batches_and_columns_and_exits_with_one(folder, tmp_path):
    found = run(folder / "reference.csv", folder / "days", "--seed", 0, "--report", tmp_path / "page.html")
    assert found.exit_code == 1
    assert "No: alarm at day3.csv" in found.stdout
    assert "site = west" in found.stdout
    assert "column's p-value" in found.stdout  # beside the share of one label
    assert "▁▁▁" in found.stdout
    assert "'when' holds dates or times as text and is left out" in found.stdout
    assert "mean weight" in (tmp_path / "page.html").read_text()
    assert len((tmp_path / "page.html").read_bytes()) < 1e6


def test_quiet_batches_exit_with_zero(folder):
    found = run(folder / "reference.csv", folder / "days" / "day[0-2].csv", "--seed", 0)
    assert found.exit_code == 0
    assert "No alarm in 3 batches." in found.stdout


def test_json_holds_the_same(folder):
    found = run(folder / "reference.csv", folder / "days", "--seed", 0, "--json")
    said = json.loads(found.stdout)
    assert said["alarms"][0] == "day3.csv"
    assert [each["batch"] for each in said["batches"]] == [f"day{day}.csv" for day in range(6)]
    west = next(each for each in said["compared"][-1]["columns"] if each["what"] == "site = west")
    assert west["over time"] == pytest.approx([0, 0, 0, 0.25, 0.25, 0.25])
    assert west["pvalue"] <= 0.05
    assert west["reference"] == 0
    assert west["difference"]["low"] < west["difference"]["estimate"] == west["batches"] < west["difference"]["high"]


def test_files_of_a_folder_and_of_a_pattern_come_in_the_order_of_their_numbers(folder, tmp_path):
    for day, other in ((9, 0), (10, 1), (100, 2)):
        (tmp_path / f"day{day}.csv").write_text((folder / "days" / f"day{other}.csv").read_text())
    for batches in (tmp_path, tmp_path / "day*.csv"):
        said = json.loads(run(folder / "reference.csv", batches, "--seed", 0, "--json").stdout)
        assert [each["batch"] for each in said["batches"]] == ["day9.csv", "day10.csv", "day100.csv"]


def test_pvalues_are_those_of_the_monitor(folder):
    import meanmap as mm

    found = run(folder / "reference.csv", folder / "days" / "day0.csv", "--seed", 3, "--json")
    reference, batch = (pd.read_csv(folder / name) for name in ("reference.csv", "days/day0.csv"))
    monitor = mm.DriftMonitor.of(reference[["weight", "site"]], rng=3).step(batch[["weight", "site"]])
    assert json.loads(found.stdout)["batches"][0]["pvalue"] == pytest.approx(monitor.pvalues[0])


def test_a_file_with_fewer_than_two_rows_is_not_judged_and_errors_name_the_file(folder, tmp_path):
    pd.read_csv(folder / "days" / "day0.csv").head(1).to_csv(tmp_path / "one.csv", index=False)
    (tmp_path / "none.csv").write_text("weight,site,when\n")
    found = run(folder / "reference.csv", tmp_path / "one.csv", tmp_path / "none.csv", folder / "days" / "day0.csv")
    assert found.exit_code == 2  # it was 0: an empty file, of an export that failed, was only noted
    assert "Not judged: one.csv, none.csv, see below." in found.stdout
    assert "one.csv: the file has 1 row; expected at least 2." in found.stdout
    assert "in 1 batch." in found.stdout
    pd.DataFrame({"weight": ["heavy", "light"], "site": ["north"] * 2, "when": ["2026-01-01"] * 2}).to_csv(
        tmp_path / "words.csv", index=False
    )
    wrong = run(folder / "reference.csv", tmp_path / "words.csv")
    assert wrong.exit_code == 2
    assert "words.csv" in wrong.stderr
    assert run(folder / "reference.csv", tmp_path / "one.csv").exit_code == 2


def test_columns_that_never_vary_do_not_drift(tmp_path):
    for name, n in (("reference", 50), ("batch", 10)):
        pd.DataFrame({"a": np.ones(n)}).to_csv(tmp_path / f"{name}.csv", index=False)
    found = run(tmp_path / "reference.csv", tmp_path / "batch.csv", "--seed", 0)
    assert found.exit_code == 0, found.stderr
    assert "No alarm in" in found.stdout


def test_strata_have_no_table_of_columns_together(folder):
    found = run(folder / "reference.csv", folder / "days" / "day[0-2].csv", "--within", "site", "--seed", 0)
    assert "mean weight" not in found.stdout
    assert "columns are not compared one by one" in found.stdout


def test_a_column_whose_spread_alone_drifts_comes_first(tmp_path):
    rng = np.random.default_rng(5)
    pd.DataFrame(rng.normal(size=(400, 3)), columns=list("abc")).to_csv(tmp_path / "reference.csv", index=False)
    wide = pd.DataFrame(rng.normal(size=(200, 3)) * [1, 3, 1], columns=list("abc"))
    wide.to_csv(tmp_path / "wide.csv", index=False)
    found = run(tmp_path / "reference.csv", tmp_path / "wide.csv", "--seed", 0, "--json")
    columns = json.loads(found.stdout)["compared"][0]["columns"]
    assert [each["what"] for each in columns][:3] == ["sd b", "mean b", "median b"]
    assert columns[0]["batches"] > 2.5


def lossy(folder, name, rng, n, day, lost=0.02):
    """Two numbers, of which one may lose cells, with a date as Germans write it, a time in words and a random id."""
    when = pd.Timestamp("2026-01-01") + pd.to_timedelta(
        day * 1440 + rng.integers(0, 1440 * (1 + 29 * (day == 0)), n), "min"
    )
    frame = pd.DataFrame({"weight": rng.normal(70, 12, n), "height": rng.normal(170, 9, n)})
    frame["date"], frame["at"] = when.strftime("%d.%m.%Y"), when.strftime("%b %d, %Y %I:%M %p")
    frame["id"], frame["order"] = (
        [f"u{rng.bytes(4).hex()}" for _ in range(n)],
        1000 * day + np.cumsum(rng.integers(1, 9, n)),
    )
    frame.loc[rng.random(n) < lost, "weight"] = np.nan
    frame.to_csv(folder / name, index=False)


@pytest.fixture(scope="module")
def losing(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("losing"), np.random.default_rng(1)
    lossy(folder, "reference.csv", rng, 400, 0)
    for day in range(1, 9):
        lossy(folder, f"day{day}.csv", rng, 60, 40 + day, {6: 0.5, 7: 0.5, 8: 1.0}.get(day, 0.02))
    return folder


def test_dates_in_any_form_and_ids_are_set_apart_and_quiet(losing):
    found = run(losing / "reference.csv", losing / "day[1-5].csv", "--seed", 0)
    assert found.exit_code == 0, found.stdout
    said = " ".join(found.stdout.split())
    for name, what, kind in (
        ("date", "holds dates or times as text", "time"),
        ("at", "holds dates or times as text", "label"),
        ("id", "only identifies the rows", "label"),
        ("order", "only identifies the rows", "number"),
    ):
        assert said.count(f"note: {name!r} {what} and is left out; to use it, pass --kinds {name}={kind}") == 1
    assert "not in the reference" not in found.stdout
    assert found.stdout.count(" batches were left out") <= 1


def test_a_column_that_loses_cells_raises_an_alarm(losing):
    found = run(losing / "reference.csv", losing / "day*.csv", "--seed", 0, "--json")
    said = json.loads(found.stdout)
    assert (found.exit_code, said["alarms"]) == (1, ["day6.csv", "day7.csv", "day8.csv"])
    assert [each["batches"] for each in said["compared"]] == ["day6.csv", "day7.csv", "day8.csv"]
    first, *_ = said["compared"][-1]["columns"]
    assert first["what"] == "missing weight"
    assert first["batches"] > 0.9
    assert first["pvalue"] < 1e-6
    assert first["over time"][-3:] == pytest.approx([0.5, 0.5, 1.0], abs=0.15)
    shown = run(losing / "reference.csv", losing / "day*.csv", "--seed", 0).stdout
    assert "missing values" in shown
    assert "the alarm is about missing values: 'weight' is missing in" in shown


@pytest.mark.parametrize("kind", ["codes in CSV", "whole numbers in Parquet"])
def test_codes_and_gaps_among_whole_numbers_count_as_missing(kind, tmp_path):
    rng = np.random.default_rng(0)
    for name, n, lost in (("reference", 200, 0.02), ("batch", 60, 0.6)):
        there = rng.random(n) >= lost
        count = pd.Series(rng.poisson(9, n), dtype="Int64").where(there, pd.NA)
        frame = pd.DataFrame({"count": count, "x": rng.normal(size=n)})
        if kind == "codes in CSV":
            frame.fillna(-999).to_csv(tmp_path / f"{name}.csv", index=False)
        else:
            frame.to_parquet(tmp_path / f"{name}.parquet")
    ending, more = (".csv", ["--missing=-999"]) if kind == "codes in CSV" else (".parquet", [])
    found = run(tmp_path / f"reference{ending}", tmp_path / f"batch{ending}", "--seed", 0, "--json", *more)
    assert found.exit_code == 1, found.output
    assert json.loads(found.stdout)["compared"][0]["columns"][0]["what"] == "missing count"


def test_a_state_goes_on_where_it_stopped(losing, tmp_path):
    """Two runs say of each batch what one does, and files that were seen are not counted again."""
    days = [losing / f"day{day}.csv" for day in range(1, 7)]
    whole = json.loads(run(losing / "reference.csv", *days, "--seed", 0, "--json").stdout)
    state = ["--state", tmp_path / "farm.state", "--json"]
    first = run(losing / "reference.csv", *days[:3], "--seed", 0, *state)
    assert first.exit_code == 0
    assert (tmp_path / "farm.state").stat().st_size < 1e5
    second = run(losing / "reference.csv", *days, *state)
    said = json.loads(second.stdout)
    assert (second.exit_code, said["alarms"]) == (1, whole["alarms"])
    for one, other in zip(said["batches"], whole["batches"], strict=True):
        assert one == other | {key: pytest.approx(other[key]) for key in ("pvalue", "evidence")}
    assert "3 files were read by an earlier run and skipped" in said["notes"]
    third = run(losing / "reference.csv", *days, "--state", tmp_path / "farm.state")
    assert third.exit_code == 1  # until later batches show that the drift has ended
    assert "There is no new batch after day6.csv. The drift since day6.csv (batch 6 of 6) lasts" in third.stdout


@pytest.mark.parametrize("output", ["foreign page", "full disk"])
def test_an_alarm_that_no_output_reported_is_reported_by_the_next_run(output, losing, tmp_path, monkeypatch):
    """The state was saved before the answer: the next run had no new batch, no alarm and the exit code 0."""
    days, state = [losing / f"day{day}.csv" for day in range(1, 7)], ["--state", tmp_path / "farm.state", "--seed", 0]
    if output == "foreign page":
        page = tmp_path / "own.html"
        page.write_text("my own page")
        failed = run(losing / "reference.csv", *days, *state, "--report", page)
        assert "is not a page of meanmap" in failed.stderr
        assert page.read_text() == "my own page"
    else:
        with monkeypatch.context() as patched:

            def full(*_, **__):
                raise OSError(errno.ENOSPC, "No space left on device")

            patched.setattr("typer.echo", full)
            failed = CliRunner().invoke(app, ["drift", *map(str, (losing / "reference.csv", *days, *state))])
    assert failed.exit_code != 0
    assert not failed.stdout
    assert not (tmp_path / "farm.state").exists()
    told = run(losing / "reference.csv", *days, *state)
    assert told.exit_code == 1
    assert "No: alarm at" in told.stdout


def test_the_name_of_the_state_is_checked_before_any_work(tmp_path):
    """Of a reference that does not exist: the refusal of the name comes first."""
    found = run(tmp_path / "none.csv", tmp_path / "none.csv", "--state", tmp_path / "no" / "state")
    assert found.exit_code == 2
    assert f"the folder {tmp_path / 'no'} does not exist; create it first" in found.stderr


def test_a_state_of_another_run_is_refused(losing, tmp_path):
    state = ["--state", tmp_path / "farm.state"]
    assert run(losing / "reference.csv", losing / "day1.csv", *state).exit_code == 0
    for changed, words in (
        ([losing / "reference.csv", losing / "day2.csv", "--run-length", 50], "was written with run length 1000"),
        ([losing / "day3.csv", losing / "day2.csv"], "was written with a reference other than"),
    ):
        found = run(*changed, *state)
        assert found.exit_code == 2
        assert words in found.stderr
    (tmp_path / "other").write_bytes((losing / "day1.csv").read_bytes())
    found = run(losing / "reference.csv", losing / "day2.csv", "--state", tmp_path / "other")
    assert (found.exit_code, found.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none*.csv"], "no file matches"),
        (["days/day0.csv", "--columns", "wieght"], "did you mean 'weight'"),
        (["days/day0.csv", "--run-length", "2"], "expected a number from 4 to 1e6"),
        (["missing.csv"], "missing.csv"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(folder, monkeypatch, arguments, words):
    monkeypatch.chdir(folder)
    found = run("reference.csv", *arguments)
    assert found.exit_code == 2
    assert words in found.stderr
    assert found.stderr.count("\n") == 1


def test_every_alarm_is_explained_from_where_its_drift_began(tmp_path):
    """The table showed the last alarm only, and joined a quiet batch to those that drifted."""
    rng = np.random.default_rng(2)

    def write(name, n, mean=0.0, spread=1.0, lost=0.0):
        frame = pd.DataFrame({"a": rng.normal(mean, 1, n), "b": rng.normal(0, spread, n)})
        frame.loc[rng.random(n) < lost, "a"] = np.nan
        frame.to_csv(tmp_path / f"{name}.csv", index=False)

    write("reference", 3000, lost=0.05)
    write("b1", 40, lost=0.05)
    write("b2", 40, mean=3.0, lost=0.05)
    write("b3", 40, lost=0.05)
    write("b4", 40, spread=9.0, lost=0.05)
    found = run(tmp_path / "reference.csv", tmp_path / "b?.csv", "--seed", 1, "--json")
    said = json.loads(found.stdout)
    assert said["alarms"] == ["b2.csv", "b4.csv"]
    assert said["batches"][2]["evidence"] == 0
    assert [each["batches"] for each in said["compared"]] == ["b2.csv", "b4.csv"]
    firsts = [next(row for row in each["columns"] if row["what"] == "mean a") for each in said["compared"]]
    assert firsts[0]["difference"]["estimate"] == pytest.approx(3, abs=0.5)
    assert abs(firsts[1]["difference"]["estimate"]) < 0.6
    told = run(tmp_path / "reference.csv", tmp_path / "b?.csv", "--seed", 1, "--report", tmp_path / "p.html").stdout
    assert told.count("column's p-value") == 2
    page = (tmp_path / "p.html").read_text()
    assert "Which columns differ: b2.csv" in page
    assert "Which columns differ: b4.csv" in page
    assert ">b3<" in page.split("<svg")[1].split("</svg>")[0]  # along the axis, without the ending of files
    assert page.index("Which columns differ") < page.index(">Notes<")


@pytest.mark.parametrize("seed", [0, 2])
def test_a_clean_batch_with_some_evidence_is_no_part_of_a_sudden_change(seed, tmp_path):
    """Temperatures in Fahrenheit differed by the mean of both: the interval excluded the truth."""
    rng = np.random.default_rng(seed)
    pd.DataFrame({"celsius": rng.normal(10, 6, 3000)}).to_csv(tmp_path / "reference.csv", index=False)
    pd.DataFrame({"celsius": rng.normal(10.5, 6, 300)}).to_csv(tmp_path / "b1.csv", index=False)
    pd.DataFrame({"celsius": 1.8 * rng.normal(10, 6, 300) + 32}).to_csv(tmp_path / "b2.csv", index=False)
    found = run(tmp_path / "reference.csv", tmp_path / "b?.csv", "--seed", 1, "--json", "--run-length", 100)
    said = json.loads(found.stdout)
    assert said["batches"][0]["evidence"] > 0
    (only,) = said["compared"]
    assert only["batches"] == "b2.csv"
    assert only["columns"][0]["difference"]["estimate"] == pytest.approx(40, abs=2.5)


def test_a_sensor_that_sticks_for_half_of_the_rows_is_recognised(tmp_path):
    rng = np.random.default_rng(4)
    pd.DataFrame({"a": rng.normal(1013, 8, 3000).round(1)}).to_csv(tmp_path / "reference.csv", index=False)
    stuck = rng.normal(1013, 8, 300).round(1)
    stuck[:150] = 1011.4
    pd.DataFrame({"a": stuck}).to_csv(tmp_path / "b1.csv", index=False)
    said = json.loads(run(tmp_path / "reference.csv", tmp_path / "b1.csv", "--seed", 1, "--json").stdout)
    rows = {each["what"]: each for each in said["compared"][0]["columns"]}
    assert rows["sd a"]["batches"] == pytest.approx(stuck.std(ddof=1), rel=1e-9)
    assert rows["share of a = 1011.4"]["batches"] >= 0.5
    assert rows["share of a = 1011.4"]["reference"] < 0.02


@pytest.mark.parametrize("seed", [0, 1])
def test_a_stuck_column_comes_before_those_that_are_related_to_it(seed, tmp_path):
    """All tied on the smallest p-value, as relations to the stuck column broke: those that were well came first."""
    rng = np.random.default_rng(seed)
    for name, n in (("reference", 1000), ("b1", 200)):
        heat = rng.normal(21, 4, n)
        pressure = rng.normal(1013, 8, n) + 0.5 * (heat - 21)
        frame = pd.DataFrame({"copy": pressure, "heat": heat, "pressure": pressure, "flow": rng.gamma(2, 15, n)})
        if name == "b1":
            frame["pressure"] = 1012.87
        frame.round(2).to_csv(tmp_path / f"{name}.csv", index=False)
    found = run(tmp_path / "reference.csv", tmp_path / "b1.csv", "--seed", 0, "--json")
    columns = json.loads(found.stdout)["compared"][0]["columns"]
    assert columns[0]["pvalue"] < 1e-100  # that of the rows with one value
    stuck = [each for each in columns if each["column"] == "pressure"]
    assert columns[: len(stuck)] == stuck
    rows = {each["what"]: each for each in stuck}
    assert rows["share of pressure = 1012.87"]["clear"] is True
    assert rows["sd pressure"]["clear"] is True
    assert rows["sd pressure"]["batches"] == 0  # and not 1e-13, by rounding
    assert rows["median pressure"]["clear"] is None  # not tested


def test_notes_of_many_files_are_one_and_counts_are_sums(tmp_path):
    """Ten batches had ten notes on semicolons, and the rows that the first one lost stood for all."""
    rng = np.random.default_rng(4)
    for name, n in (("reference", 300), *((f"b{k}", 50) for k in range(4))):
        frame = pd.DataFrame({"a": rng.normal(size=n).round(3), "b": rng.normal(size=n).round(3), "unit": "bar"})
        frame.loc[: 2 if name == "b0" else 4, "a"] = np.nan
        frame.loc[10:11, "b"] = np.nan
        frame.to_csv(tmp_path / f"{name}.csv", sep=";", index=False)
    found = run(tmp_path / "reference.csv", tmp_path / "b?.csv", "--seed", 0)
    assert found.stdout.count("semicolons") == 1
    assert "reference.csv and 4 more: the file is separated by semicolons" in found.stdout
    assert "26 of 200 rows of 4 batches were left out: a value is missing in 'a' (18), 'b' (8)" in found.stdout
    assert "rows of batch were left out" not in found.stdout
    assert "'unit'" not in found.stdout
    assert found.stdout.splitlines()[2].split()[:5] == ["batch", "rows", "left", "out", "p-value"]
    batches = json.loads(run(tmp_path / "reference.csv", tmp_path / "b?.csv", "--json").stdout)["batches"]
    assert [each["left out"] for each in batches] == [5, 7, 7, 7]


def test_a_batch_without_its_usual_gaps_is_named(tmp_path):
    """12% missing, and then none: no alarm, but not a word either."""
    rng = np.random.default_rng(5)
    for name, n, lost in (("reference", 800, 0.12), ("b1", 200, 0.12), ("b2", 200, 0.0)):
        frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
        frame.loc[rng.random(n) < lost, "a"] = np.nan
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    found = run(tmp_path / "reference.csv", tmp_path / "b?.csv", "--seed", 0)
    assert found.exit_code == 0
    (note,) = [line for line in found.stdout.splitlines() if "fewer values are missing" in line]
    assert "b2.csv: fewer values are missing, which raises no alarm: 'a' in 0% of the rows, 1" in note


def test_evidence_below_the_limit_is_said_with_the_exit_code(tmp_path):
    rng = np.random.default_rng(6)
    pd.DataFrame({"a": rng.normal(size=400)}).to_csv(tmp_path / "reference.csv", index=False)
    pd.DataFrame({"a": rng.normal(0.75, 1, size=60)}).to_csv(tmp_path / "b1.csv", index=False)
    found = run(tmp_path / "reference.csv", tmp_path / "b1.csv", "--seed", 0)
    assert found.exit_code == 0
    assert "No alarm in 1 batch (exit code 0). Closest to one is b1.csv, with evidence " in found.stdout
    assert re.search(r"\d\.\d\d, of 7\.\d\d for an alarm \(p = 0\.0", found.stdout), found.stdout
    pd.DataFrame({"a": rng.normal(3.0, 1, size=60)}).to_csv(tmp_path / "b2.csv", index=False)
    both = run(tmp_path / "reference.csv", tmp_path / "b1.csv", tmp_path / "b2.csv", "--seed", 0)
    assert both.exit_code == 1
    assert re.search(r"No: alarm at b2\.csv\. Small p-values, but no alarm, at b1\.csv \(p = 0\.0", both.stdout)


def test_ids_of_hexadecimal_digits_and_truth_values_as_zeros_and_ones_are_read(tmp_path):
    """A few ids such as 236418490e095734 read as numbers, and the whole run was refused; from Parquet they were ids."""
    rng = np.random.default_rng(7)

    def ids(n):
        return ["".join(rng.choice(list("0123456789abcdef"), 16)) for _ in range(n - 1)] + ["236418490e095734"]

    table = {
        n: pd.DataFrame({"session": ids(n), "a": rng.normal(size=n), "paid": rng.random(n) < 0.5}) for n in (300, 60)
    }
    table[300].to_csv(tmp_path / "reference.csv", index=False)
    table[60].astype({"paid": int}).to_csv(tmp_path / "b1.csv", index=False)
    found = run(tmp_path / "reference.csv", tmp_path / "b1.csv", "--seed", 0)
    assert found.exit_code == 0, found.output
    assert "'session' only identifies the rows and is left out" in found.stdout
    assert "paid = True" in found.stdout


def written(folder, rng, name, n, shift=0.0):
    frame = pd.DataFrame({"a": rng.normal(5 + shift, 1, n).round(3), "b": rng.normal(size=n).round(3)})
    frame.to_csv(folder / f"{name}.csv", index=False)
    return frame


def test_one_odd_cell_costs_its_batch_and_no_other(tmp_path):
    """It stopped the whole run, and no batch was judged."""
    rng = np.random.default_rng(6)
    written(tmp_path, rng, "reference", 400)
    for k in range(4):
        frame = written(tmp_path, rng, f"b{k}", 60, 3.0 * (k == 3)).astype(object)
        if k == 1:
            frame.loc[7, "a"] = "abc"
            frame.to_csv(tmp_path / "b1.csv", index=False)
    asked = [tmp_path / "reference.csv", tmp_path / "b[012].csv", "--seed", 0, "--state", tmp_path / "state"]
    found = run(*asked)
    assert found.exit_code == 2
    assert "No alarm in 2 batches. Not judged: b1.csv, see below." in found.stdout
    (note,) = [line for line in found.stdout.splitlines() if "'abc'" in line]
    assert "b1.csv" in note
    assert note.endswith("This batch was not judged")
    plain = json.loads(run(tmp_path / "reference.csv", tmp_path / "b?.csv", "--seed", 0, "--json").stdout)
    assert plain["alarms"] == ["b3.csv"]
    assert list(plain["not judged"]) == ["b1.csv"]
    assert run(tmp_path / "reference.csv", tmp_path / "b?.csv", "--seed", 0).exit_code == 1  # an alarm is more urgent
    only = run(tmp_path / "reference.csv", tmp_path / "b1.csv", "--seed", 0)
    assert only.exit_code == 2
    assert "'abc'" in only.stderr
    written(tmp_path, rng, "b1", 60)  # repaired
    again = run(*asked)
    assert again.exit_code == 0
    assert "2 files were read by an earlier run and skipped" in again.stdout
    assert "in 1 batch" in again.stdout


def test_a_later_run_with_nothing_new_but_an_unreadable_file_answers_all_the_same(tmp_path):
    """It was one line of error, without a table, in every later run."""
    rng = np.random.default_rng(12)
    written(tmp_path, rng, "reference", 400)
    written(tmp_path, rng, "b0", 60)
    written(tmp_path, rng, "b1", 60).astype(object).assign(a="abc").to_csv(tmp_path / "b1.csv", index=False)
    asked = [tmp_path / "reference.csv", tmp_path / "b?.csv", "--seed", 0, "--state", tmp_path / "state"]
    assert run(*asked).exit_code == 2
    for _ in range(2):
        later = run(*asked)
        assert later.exit_code == 2
        assert "There is no new batch after b0.csv. Not judged: b1.csv, see below." in later.stdout
        assert re.search(r"^  b0.csv +60 ", later.stdout, re.MULTILINE)
        assert re.search(r"note: .*'abc'.* This batch was not judged$", later.stdout, re.MULTILINE)
    assert list(json.loads(run(*asked, "--json").stdout)["not judged"]) == ["b1.csv"]
    written(tmp_path, rng, "b2", 60, 3.0)
    assert re.search(r"No: alarm at b2\.csv\. At b2\.csv: mean a .* Not judged: b1\.csv", run(*asked).stdout)


def test_copies_of_the_reference_and_of_parts_of_earlier_batches_are_named(tmp_path):
    rng = np.random.default_rng(7)
    reference = written(tmp_path, rng, "reference", 400)
    first = written(tmp_path, rng, "b1", 60)
    first[:50].to_csv(tmp_path / "b2.csv", index=False)
    reference[:50].to_csv(tmp_path / "b3.csv", index=False)
    written(tmp_path, rng, "b4", 60)
    found = run(tmp_path / "reference.csv", tmp_path / "b?.csv", "--seed", 0)
    notes = [line for line in found.stdout.splitlines() if "rows are also in" in line]
    assert [note.split("a copy")[0].strip() for note in notes] == [
        "note: b2.csv: 50 of 50 rows are also in b1.csv:",
        "note: b3.csv: 50 of 50 rows are also in reference.csv:",
    ]
    assert found.exit_code == 0


@pytest.mark.parametrize("runs", ["one run", "two runs"])
def test_a_file_with_all_rows_of_an_earlier_batch_is_named_and_not_judged(runs, tmp_path):
    """A later run skipped it without its name, and with exit code 0: a frozen pipeline looked healthy for ever."""
    rng = np.random.default_rng(7)
    written(tmp_path, rng, "reference", 400)
    for name in ("b1", "b2"):
        written(tmp_path, rng, name, 60)
    state = ["--seed", 0, *(["--state", tmp_path / "state"] if runs == "two runs" else [])]
    if runs == "two runs":
        assert run(tmp_path / "reference.csv", tmp_path / "b?.csv", *state).exit_code == 0
    (tmp_path / "b3.csv").write_bytes((tmp_path / "b1.csv").read_bytes())
    found = run(tmp_path / "reference.csv", tmp_path / "b?.csv", *state)
    assert found.exit_code == 2
    assert "Not judged: b3.csv, see below." in found.stdout
    assert "note: b3.csv holds the same rows as b1.csv: " in found.stdout
    assert re.search(r"^  b2.csv +60 ", found.stdout, re.MULTILINE)
    assert not re.search(r"^  b3.csv +60 ", found.stdout, re.MULTILINE)
    if runs == "two runs":
        assert "2 files were read by an earlier run and skipped" in found.stdout
        again = run(tmp_path / "reference.csv", tmp_path / "b?.csv", *state)  # the copy was told
        assert again.exit_code == 0
        assert "3 files were read by an earlier run and skipped" in again.stdout


def test_files_of_one_name_in_two_folders_are_two_files(tmp_path):
    rng = np.random.default_rng(7)
    written(tmp_path, rng, "reference", 400)
    for day in ("day1", "day2"):
        (tmp_path / day).mkdir()
    written(tmp_path / "day1", rng, "part", 60)
    asked = [tmp_path / "reference.csv", tmp_path / "day*" / "part.csv", "--seed", 0, "--state", tmp_path / "state"]
    assert run(*asked).exit_code == 0
    (tmp_path / "day2" / "part.csv").write_bytes((tmp_path / "day1" / "part.csv").read_bytes())
    found = run(*asked)
    assert found.exit_code == 2
    assert "day2/part.csv holds the same rows as day1/part.csv" in found.stdout


def test_the_state_and_its_files_may_move_together(tmp_path):
    rng = np.random.default_rng(7)
    (tmp_path / "here").mkdir()
    written(tmp_path / "here", rng, "reference", 400)
    written(tmp_path / "here", rng, "b1", 60)
    for place in ("here", "there"):
        if place == "there":
            (tmp_path / "here").rename(tmp_path / "there")
        folder = tmp_path / place
        found = run(folder / "reference.csv", folder / "b?.csv", "--seed", 0, "--state", folder / "state")
        assert found.exit_code == 0
    assert "1 file was read by an earlier run and skipped" in found.stdout


def test_standard_input_is_new_in_every_run(tmp_path):
    """Its name, and not its content, told that it had been read: every later run skipped it."""
    rng = np.random.default_rng(7)
    written(tmp_path, rng, "reference", 400)
    for number in (1, 2):
        rows = written(tmp_path, rng, "b1", 60).to_csv(index=False)
        asked = [tmp_path / "reference.csv", "-", "--seed", 0, "--state", tmp_path / "state"]
        found = CliRunner().invoke(app, ["drift", *map(str, asked)], input=rows)
        assert found.exit_code == 0
        assert len(re.findall(r"^  - +60 ", found.stdout, re.MULTILINE)) == number


def test_small_files_that_agree_by_chance_are_judged_in_later_runs_too(tmp_path):
    rng = np.random.default_rng(8)
    for name, n in (("reference", 400), ("b1", 9)):
        columns = {"site": rng.choice(["n", "s"], n), "count": rng.poisson(2, n)}
        pd.DataFrame(columns).to_csv(tmp_path / f"{name}.csv", index=False)
    asked = [tmp_path / "reference.csv", tmp_path / "b?.csv", "--seed", 0, "--state", tmp_path / "state"]
    assert run(*asked).exit_code == 0
    (tmp_path / "b2.csv").write_bytes((tmp_path / "b1.csv").read_bytes())
    found = run(*asked)
    assert found.exit_code == 0
    assert "in 1 batch" in found.stdout


def test_rows_that_agree_by_chance_are_no_copies(tmp_path):
    rng = np.random.default_rng(8)
    for name, n in (("reference", 400), ("b1", 60), ("b2", 60)):
        columns = {"site": rng.choice(["n", "s"], n), "count": rng.poisson(2, n)}
        pd.DataFrame(columns).to_csv(tmp_path / f"{name}.csv", index=False)
    assert "rows are also in" not in run(tmp_path / "reference.csv", tmp_path / "b?.csv", "--seed", 0).stdout


def test_of_many_alarms_the_first_is_explained(tmp_path):
    """Tables of the last five only: of six alarms the first one is wanted. Nothing was said about the second."""
    rng = np.random.default_rng(9)
    written(tmp_path, rng, "reference", 400)
    for k in range(7):
        written(tmp_path, rng, f"b{k}", 60, 3.0 * (k > 0))
    said = json.loads(run(tmp_path / "reference.csv", tmp_path / "b?.csv", "--seed", 0, "--json").stdout)
    assert said["alarms"] == [f"b{k}.csv" for k in range(1, 7)]
    assert said["not judged"] == {}
    assert [each["batches"] for each in said["compared"]] == ["b1.csv", "b3.csv", "b4.csv", "b5.csv", "b6.csv"]
    kept = "tables of all columns are kept for the first and the last 4 of 6 alarms; for another one run meanmap test "
    assert f"{kept}two-sample with the reference and its file" in said["notes"]
    assert [each["batches"] for each in said["each alarm"]] == said["alarms"]
    asked = [tmp_path / "reference.csv", tmp_path / "b?.csv", "--seed", 0]
    shown = run(*asked, "--report", tmp_path / "page.html").stdout
    for each in said["each alarm"]:
        assert re.search(rf"^  {each['batches']}  {re.escape(each['changed'])}$", shown, re.M)
        assert re.match("mean .* → ", each["changed"])
        assert each["changed"] in (tmp_path / "page.html").read_text()


def test_a_reference_of_which_no_row_has_a_time_and_everything_else_is_read(tmp_path):
    """Columns that are not watched cost no rows."""
    rng = np.random.default_rng(10)
    for name, n in (("reference", 200), ("b1", 60)):
        frame = written(tmp_path, rng, name, n)
        days = pd.date_range("2026-01-01", periods=n).strftime("%Y-%m-%d").to_numpy(object)
        one, other = (np.where(np.arange(n) % 2 == k, days, None) for k in (0, 1))
        frame.assign(opened=one, closed=other).to_csv(tmp_path / f"{name}.csv", index=False)
    found = run(tmp_path / "reference.csv", tmp_path / "b1.csv", "--seed", 0)
    assert found.exit_code == 0, found.output
    assert found.stdout.count("holds dates or times as text and is left out") == 2
    assert "were left out" not in found.stdout


def test_a_column_that_is_mostly_zeros_has_a_row_for_its_zeros(tmp_path):
    rng = np.random.default_rng(11)
    for name, n, share in (("reference", 600, 0.7), ("b1", 200, 0.2)):
        paid = np.where(rng.random(n) < share, 0.0, rng.lognormal(2, 0.5, n).round(2))
        pd.DataFrame({"paid": paid}).to_csv(tmp_path / f"{name}.csv", index=False)
    said = json.loads(run(tmp_path / "reference.csv", tmp_path / "b1.csv", "--seed", 0, "--json").stdout)
    rows = {each["what"]: each for each in said["compared"][0]["columns"]}
    assert rows["paid = 0"]["difference"]["estimate"] == pytest.approx(-0.5, abs=0.12)
    assert rows["mean paid where not 0"]["over time"] == []


def test_a_column_that_the_reference_lacks_is_named_once(tmp_path):
    rng = np.random.default_rng(12)
    written(tmp_path, rng, "reference", 400)
    for name in ("b1", "b2"):
        written(tmp_path, rng, name, 60).assign(extra=1.5).to_csv(tmp_path / f"{name}.csv", index=False)
    found = run(tmp_path / "reference.csv", tmp_path / "b?.csv", "--seed", 0)
    assert found.exit_code == 0
    note = "note: b1.csv and 1 more: batch has the column 'extra', which the reference lacks: it is not watched."
    assert found.stdout.count("'extra'") == found.stdout.count(note) == 1


def test_a_column_without_values_hides_no_other(tmp_path):
    """Six batches lacked a column, and from the third on another one came in other units: it was never named."""
    rng = np.random.default_rng(0)

    def parts(n, unit=1.0, lost=False):
        humidity = np.full(n, np.nan) if lost else rng.normal(50, 5, n)
        return pd.DataFrame({"length": unit * rng.normal(2, 0.1, n), "humidity": humidity, "temp": rng.normal(size=n)})

    parts(600).to_csv(tmp_path / "reference.csv", index=False)
    for day in range(1, 7):
        parts(100, 1000.0 if day > 2 else 1.0, True).to_csv(tmp_path / f"b{day}.csv", index=False)
    found = run(tmp_path / "reference.csv", tmp_path / "b*.csv", "--seed", 0, "--json")
    said = json.loads(found.stdout)
    assert said["alarms"] == ["b1.csv", "b3.csv", "b4.csv", "b5.csv", "b6.csv"]
    assert [each["left out"] for each in said["batches"]] == [0] * 6
    second = said["compared"][1]["columns"]
    assert {row["column"] for row in second if row["clear"]} == {"humidity", "length"}
    (told,) = [note for note in said["notes"] if "the alarm is about missing values" in note]
    assert told.startswith("b1.csv: ")


def test_a_corrected_file_of_an_earlier_run_is_said_to_count_as_the_newest(tmp_path):
    rng = np.random.default_rng(8)
    for name, n in (("reference", 400), ("b1", 60), ("b2", 60)):
        written(tmp_path, rng, name, n)
    asked = [tmp_path / "reference.csv", tmp_path / "b?.csv", "--seed", 0, "--state", tmp_path / "state"]
    assert "changed since an earlier run" not in run(*asked).stdout
    written(tmp_path, rng, "b1", 60)
    found = " ".join(run(*asked).stdout.split())
    assert "1 file was read by an earlier run and skipped" in found
    assert "b1.csv has changed since an earlier run read it: it counts as a new batch after all others" in found
    assert "changed since an earlier run" not in run(*asked).stdout


def test_a_reference_without_a_complete_row_names_the_columns_that_lack_values(tmp_path):
    rng = np.random.default_rng(0)
    rows(rng, 400).assign(rare=np.nan).assign(rare=lambda each: each["rare"].where(each.index > 9, 1.0)).to_csv(
        tmp_path / "few.csv", index=False
    )
    found = run(tmp_path / "few.csv", tmp_path / "few.csv")
    assert found.exit_code == 2
    said = " ".join(found.output.split())
    assert "10 of 400 rows of the reference have no missing value; expected at least 40" in said
    assert "'rare' (98%): leave columns out with --exclude" in said
