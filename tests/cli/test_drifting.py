"""`meanmap drift`: alarms, exit codes, and what is said of columns."""

import json

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
    assert "No: alarm at day4.csv" in found.stdout
    assert "site = west" in found.stdout
    assert "▁▁▁" in found.stdout
    assert " to day4.csv" in found.stdout  # from where drift may have begun
    assert "when: times or row numbers" in found.stdout
    assert "mean weight" in (tmp_path / "page.html").read_text()
    assert len((tmp_path / "page.html").read_bytes()) < 1e6


def test_quiet_batches_exit_with_zero(folder):
    found = run(folder / "reference.csv", folder / "days" / "day[0-2].csv", "--seed", 0)
    assert found.exit_code == 0
    assert "No evidence of drift in 3 batches." in found.stdout


def test_json_holds_the_same(folder):
    found = run(folder / "reference.csv", folder / "days", "--seed", 0, "--json")
    said = json.loads(found.stdout)
    assert said["alarms"][0] == "day4.csv"
    assert [each["batch"] for each in said["batches"]] == [f"day{day}.csv" for day in range(6)]
    west = next(each for each in said["columns"] if each["what"] == "site = west")
    assert west["over time"] == pytest.approx([0, 0, 0, 0.25, 0.25, 0.25])
    assert west["pvalue"] <= 0.05


def test_files_of_a_folder_and_of_a_pattern_come_in_the_order_of_their_numbers(folder, tmp_path):
    for day in (9, 10, 100):
        (tmp_path / f"day{day}.csv").write_text((folder / "days" / "day0.csv").read_text())
    for batches in (tmp_path, tmp_path / "day*.csv"):
        said = json.loads(run(folder / "reference.csv", batches, "--seed", 0, "--json").stdout)
        assert [each["batch"] for each in said["batches"]] == ["day9.csv", "day10.csv", "day100.csv"]


def test_pvalues_are_those_of_the_monitor(folder):
    import meanmap as mm

    found = run(folder / "reference.csv", folder / "days" / "day0.csv", "--seed", 3, "--json")
    reference, batch = (pd.read_csv(folder / name) for name in ("reference.csv", "days/day0.csv"))
    monitor = mm.DriftMonitor.of(reference[["weight", "site"]], rng=3).step(batch[["weight", "site"]])
    assert json.loads(found.stdout)["batches"][0]["pvalue"] == pytest.approx(monitor.pvalues[0])


def test_a_file_with_one_row_is_skipped_and_errors_name_the_file(folder, tmp_path):
    pd.read_csv(folder / "days" / "day0.csv").head(1).to_csv(tmp_path / "one.csv", index=False)
    (tmp_path / "none.csv").write_text("weight,site,when\n")
    found = run(folder / "reference.csv", tmp_path / "one.csv", tmp_path / "none.csv", folder / "days" / "day0.csv")
    assert found.exit_code == 0
    assert "one.csv and 1 more: fewer than 2 rows, so it is skipped." in found.stdout
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
    found = run(tmp_path / "reference.csv", tmp_path / "batch.csv")
    assert found.exit_code == 0, found.stderr
    assert "No evidence of drift" in found.stdout


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
    columns = json.loads(found.stdout)["columns"]
    assert [each["what"] for each in columns][:2] == ["mean b", "sd b"]
    assert float(columns[1]["batches"]) > 2.5


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
