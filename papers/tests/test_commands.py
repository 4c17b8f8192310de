"""The package brings its commands to `meanmap`, and is of its version."""

import tomllib
from pathlib import Path

from typer.testing import CliRunner

import meanmap
import meanmap_papers
from meanmap.cli.commands import app
from meanmap_papers.registry import all_experiments

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))


def test_both_packages_are_of_one_version():
    assert meanmap_papers.__version__ == meanmap.__version__
    assert PROJECT["project"]["dependencies"] == [f"meanmap[plots,cli,sampling,data]=={meanmap.__version__}"]


def test_the_figures_are_listed():
    found = CliRunner().invoke(app, ["list"])
    assert found.exit_code == 0, found.stderr
    lines = found.stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(all_experiments())
    assert all(each.source in line for each, line in zip(all_experiments().values(), lines, strict=True))
