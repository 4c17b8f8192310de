"""The package brings its commands to `meanmap`, and is of its version."""

import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

import meanmap
import meanmap_papers
from meanmap.cli.commands import app
from meanmap_papers.registry import PAPERS, all_experiments, matching

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


def test_words_choose_what_is_listed():
    found = CliRunner().invoke(app, ["list", "Song2010", "fig"])
    assert found.exit_code == 0, found.stderr
    assert [line.split()[0] for line in found.stdout.splitlines() if " min  " in line] == [
        "trees-figure-1",
        "trees-figure-2",
    ]
    assert [line for line in found.stdout.splitlines() if line in PAPERS.values()] == [PAPERS["trees"]]
    none = CliRunner().invoke(app, ["list", "proteins of mice"])
    assert none.exit_code == 2
    assert "no figure has 'proteins of mice' in its name, title or place; `meanmap list` shows all" in none.stderr


@pytest.mark.parametrize(
    ("asked", "named"),
    [("figure 4c", "messages-compound-gamma"), ("4", "messages-compound-gamma"), ("song2010", "trees-figure-1")],
)
def test_a_figure_is_suggested_by_its_number_or_its_paper(asked, named):
    refused = CliRunner().invoke(app, ["reproduce", asked])
    assert refused.exit_code == 2
    assert f"there is no figure {asked!r} (did you mean " in refused.stderr
    assert repr(named) in refused.stderr


@pytest.mark.parametrize("asked", ["", "c", "!?"])
def test_nothing_is_suggested_for_no_words(asked):
    assert matching(asked) == []
