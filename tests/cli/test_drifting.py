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


def test_pvalues_are_those_of_the_monitor(folder):
    import meanmap as mm

    found = run(folder / "reference.csv", folder / "days" / "day0.csv", "--seed", 3, "--json")
    reference, batch = (pd.read_csv(folder / name) for name in ("reference.csv", "days/day0.csv"))
    monitor = mm.DriftMonitor.of(reference[["weight", "site"]], rng=3).step(batch[["weight", "site"]])
    assert json.loads(found.stdout)["batches"][0]["pvalue"] == pytest.approx(monitor.pvalues[0])


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
