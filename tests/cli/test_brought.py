"""Commands of other packages stand beside ours, and the ones of the papers are named where they are not there."""

import pytest
import typer
from typer.testing import CliRunner

from meanmap.cli import brought
from meanmap.cli.commands import app


class Entry:
    """An entry point that loads a function."""

    def __init__(self, name, function):
        self.name, self.load = name, lambda: function


def greet(name: str = "you") -> None:
    """Greet somebody."""
    typer.echo(f"hello {name}")


@pytest.fixture
def entries(monkeypatch):
    """Which packages are installed, said by a test."""
    found = []
    monkeypatch.setattr(brought, "entry_points", lambda group: found if group == "meanmap.commands" else [])
    brought._brought.cache_clear()
    yield found
    brought._brought.cache_clear()


def test_a_command_of_another_package_is_run_and_listed(entries):
    entries.append(Entry("greet", greet))
    assert CliRunner().invoke(app, ["greet", "--name", "Ada"]).stdout == "hello Ada\n"
    assert "Greet somebody." in CliRunner().invoke(app, ["--help"]).stdout


@pytest.mark.parametrize("name", ["list", "reproduce"])
def test_without_the_papers_their_commands_say_what_to_install(entries, name):
    found = CliRunner().invoke(app, [name])
    assert found.exit_code == 2
    assert "pip install ./papers" in found.stderr
    assert "reproduce" not in CliRunner().invoke(app, ["--help"]).stdout


def test_a_command_that_nobody_has_is_refused(entries):
    found = CliRunner().invoke(app, ["lst"])
    assert found.exit_code == 2
    assert found.stderr.startswith("meanmap: `meanmap` has no command 'lst'; it has 'schema', ")
    assert found.stderr.count("\n") == 1
