"""The package brings its commands to `meanmap`, and is of its version."""

import tomllib
from pathlib import Path

from typer.testing import CliRunner

import meanmap
import meanmap_papers
from meanmap.cli.commands import app
from meanmap_papers.registry import PAPERS, all_experiments

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))


def test_both_packages_are_of_one_version():
    assert meanmap_papers.__version__ == meanmap.__version__
    assert PROJECT["project"]["dependencies"] == [f"meanmap[plots,cli,sampling,data]=={meanmap.__version__}"]


def test_the_figures_are_listed():
    found = CliRunner().invoke(app, ["list"])
    assert found.exit_code == 0, found.stderr
    first, *lines = found.stdout.splitlines()
    assert "minutes at the scale quick" in first
    assert [line for line in lines if line in PAPERS.values()] == list(PAPERS.values())
    listed = {line.split()[0]: line for line in lines if " min  " in line}
    assert list(listed) == list(all_experiments())
    assert all(listed[id].endswith(f"  {each.title} ({each.place})") for id, each in all_experiments().items())
    assert {id for id, line in listed.items() if line[29] == "*"} == {
        id for id, each in all_experiments().items() if each.data
    }
    assert listed["messages-compound-gamma"].endswith("(figure 4)")
    assert listed["loopy-stereo"].endswith("(ours)")
    assert max(map(len, lines)) <= 128
