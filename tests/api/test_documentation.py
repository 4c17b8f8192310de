"""What the documentation shows runs as it is shown, and its pages point at what is there."""

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import meanmap

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [path for path in sorted(DOCS.glob("*.rst")) if ">>> " in path.read_text(encoding="utf-8")]
SCRIPTS = sorted((DOCS / "examples").glob("*/plot_*.py"))


def test_there_is_something_to_test():
    assert {"index", "choosing", "ecosystem"} <= {path.stem for path in PAGES}
    assert len(SCRIPTS) > 20


# The four snippets of the first page are those of the README, which run by day.
SLOW = {"index": pytest.mark.slow}


@pytest.mark.parametrize("page", [pytest.param(p, marks=SLOW.get(p.stem, ()), id=p.stem) for p in PAGES])
def test_snippets_of_a_page(page):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    found = doctest.testfile(str(page), module_relative=False, optionflags=flags, encoding="utf-8")
    assert found.attempted > 3
    assert not found.failed


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.rst")), ids=lambda path: path.stem)
def test_code_blocks_are_python(page):
    """What cannot be run here, because it needs another package, can at least be read."""
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"\.\. code-block:: python\n\n((?:   .*\n|\n)+)", text):
        compile(re.sub(r"^   ", "", block, flags=re.MULTILINE), str(page), "exec")


def test_lines_of_what_else_there_is_run():
    text = (DOCS / "lines.rst").read_text(encoding="utf-8")
    (block,) = re.findall(r"\.\. code-block:: python\n\n((?:   .*\n|\n)+)", text)
    exec(compile(re.sub(r"^   ", "", block, flags=re.MULTILINE), "lines.rst", "exec"), {})


def test_every_page_is_reached():
    """A page that no table of contents names is lost, and one that is named and missing breaks the build."""
    text = (DOCS / "index.rst").read_text(encoding="utf-8")
    named = set(re.findall(r"^   ([a-z/_]+)$", text, re.MULTILINE))
    pages = {path.stem for path in DOCS.glob("*.*") if path.suffix in (".rst", ".md")} - {"index"}
    assert {name for name in named if "/" not in name} == pages


def test_every_name_of_the_top_level_is_on_the_page_of_the_reference():
    text = (DOCS / "api" / "index.rst").read_text(encoding="utf-8")
    listed = {name.rpartition(".")[2] for name in re.findall(r"^   (meanmap[\w.]+)$", text, re.MULTILINE)}
    assert set(meanmap.__all__) <= listed


def test_commands_of_the_documentation_have_help():
    """Every command line in the pages names a command and options that there are."""
    from typer.testing import CliRunner

    from meanmap.cli.commands import app

    text = (DOCS / "commands.rst").read_text(encoding="utf-8")
    lines = [shlex.split(line.strip()) for line in text.splitlines() if line.startswith("   meanmap ")]
    assert len(lines) > 10
    for words in lines:
        command = []
        for word in words[1:]:
            if not re.fullmatch(r"[a-z][a-z-]*", word) or CliRunner().invoke(app, [*command, word, "--help"]).exit_code:
                break
            command.append(word)
        told = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "200"}).output
        missing = [word for word in words if word.startswith("--") and word not in told]
        assert command
        assert not missing, (words, missing)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_examples_and_tutorials_run(script, tmp_path):
    """Each in a process of its own, as a reader runs it."""
    environment = {**os.environ, "MPLBACKEND": "Agg", "JAX_PLATFORMS": "cpu"}
    found = subprocess.run([sys.executable, script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


@pytest.mark.slow
def test_the_picture_is_drawn_from_the_snippets(tmp_path):
    pictures = (DOCS / "pictures.py").read_text(encoding="utf-8")
    names: dict = {"__file__": str(DOCS / "pictures.py"), "__name__": "pictures"}
    exec(compile(pictures, "pictures.py", "exec"), names)
    names["TARGET"] = tmp_path / "four.png"
    assert len(names["snippets"]()) == 4
    names["main"]()
    assert names["TARGET"].stat().st_size > 20_000
