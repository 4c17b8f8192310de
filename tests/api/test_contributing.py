"""CONTRIBUTING points at names that exist."""

import re
from importlib import import_module
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
ROWS = [
    line.split("|")[1:3] for line in TEXT.split("## Where is it decided?")[1].splitlines() if line.startswith("| ")
][1:]
NAMES = [name for _, answer in ROWS for name in re.findall(r"`([\w.]+\.[\w.]+)`", answer)]


def found(name):
    """A module, or an attribute of one, however deep."""
    parts = f"meanmap.{name}".split(".")
    for length in range(len(parts), 0, -1):
        try:
            value = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            value = getattr(value, part)
        return value
    raise AssertionError(name)


@pytest.mark.parametrize("name", NAMES)
def test_answers_point_at_names(name):
    assert found(name) is not None


def test_twelve_questions_have_an_answer():
    assert len(ROWS) >= 12
    assert all(re.search(r"`[\w.]+`", answer) for _, answer in ROWS)


def test_recipes_that_are_marked_are_followed():
    recipes = (Path(__file__).parents[1] / "recipes" / "test_recipes.py").read_text()
    table = TEXT.split("## Recipes")[1].split("## Where")[0].split("|---", 1)[1]
    assert 8 <= table.count("✓") <= recipes.count("\ndef test_")
