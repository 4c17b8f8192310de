"""The commands of the README and of "one line for each thing", typed on files made on the spot."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from meanmap.cli.commands import app

ROOT = Path(__file__).parents[2]
README = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
LINES = (ROOT / "docs" / "lines.rst").read_text(encoding="utf-8")
# Commands stand in backticks in the README, and alone on an indented line of the page.
NAMED = re.findall(r"`(meanmap [a-z][^`]*)`", README)
LISTED = re.findall(r"^   (meanmap .*)$", LINES, flags=re.MULTILINE)
COMMANDS = list(dict.fromkeys(NAMED + LISTED))


def write(path, **columns):
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")


def test_commands_are_found():
    assert len(NAMED) >= 3
    assert len(LISTED) >= 8


@pytest.mark.slow
def test_commands_of_the_readme(tmp_path, monkeypatch):
    """All but `reproduce`, whose experiments are tested one by one."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    sun, water = rng.normal(size=(2, 150))
    growth = np.tanh(sun) + np.abs(water) + 0.2 * rng.normal(size=150)
    harvest = growth**2 + 0.5 * rng.normal(size=150)
    kind = np.where(harvest > 1.0, "rich", "poor")
    write(tmp_path / "before.csv", a=sun, b=water)
    write(tmp_path / "after.csv", a=sun + 1.0, b=water)
    write(tmp_path / "farm.csv", **{"sun": sun, "water": water, "growth": growth, "harvest": harvest, "class": kind})
    for command in COMMANDS:
        if command.startswith("meanmap reproduce"):
            continue
        found = CliRunner().invoke(app, shlex.split(command.removeprefix("meanmap "), comments=True))
        assert found.exit_code == 0, (command, found.output, found.exception)
    for made in ("difference.html", "causes.png", "farm.meanmap", "answers.png"):
        assert (tmp_path / made).stat().st_size > 1000


def test_what_to_cite_for_one_part():
    found = CliRunner().invoke(app, ["cite", "trees"])
    assert [line.split("{")[1].rstrip(",") for line in found.stdout.splitlines() if line.startswith("@")] == [
        "meanmap",
        "song2010",
    ]
    wrong = CliRunner().invoke(app, ["cite", "forests"])
    assert wrong.exit_code == 2
    assert "no part 'forests'; expected one of meanmap, learning, trees, loopy, messages" in wrong.output


def test_what_to_cite():
    found = CliRunner().invoke(app, ["cite"])
    assert found.stdout.count("@") == 5
    assert found.stdout.count("{") == found.stdout.count("}")
