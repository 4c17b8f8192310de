"""The conda recipes say what pyproject.toml says: versions, requirements, entry points and licences."""

import re
import tomllib
from pathlib import Path

import pytest

import meanmap

HOUSE = Path(__file__).parents[2]
PACKAGES = {"meanmap": HOUSE, "meanmap-papers": HOUSE / "papers"}


def project(name):
    return tomllib.loads((PACKAGES[name] / "pyproject.toml").read_text(encoding="utf-8"))


def listed(text, *keys):
    """The entries of a list in a recipe, under these keys."""
    lines = text.splitlines()
    place = depth = 0
    for key in keys:
        place = next(i for i in range(place, len(lines)) if lines[i].strip() == f"{key}:")
        depth = len(lines[place]) - len(lines[place].lstrip())
        place += 1
    found = []
    for line in lines[place:]:
        if line.strip() and len(line) - len(line.lstrip()) <= depth:
            break
        found.append(line.strip().removeprefix("- "))
    return [each for each in found if each]


def required(requirements):
    """Names and bounds, with the extras of meanmap as what they bring."""
    extras = project("meanmap")["project"]["optional-dependencies"]
    found = set()
    for each in requirements:
        name, more, bound = re.fullmatch(r"([\w-]+)(?:\[([\w,]+)\])?(.*)", each).groups()
        if bound or not more:
            found.add(f"{name} {bound}".strip())
        for extra in (more or "").split(",") if name == "meanmap" else ():
            found |= required(extras[extra]) if extra else set()
    return found


@pytest.mark.parametrize("name", PACKAGES)
def test_recipes_say_what_the_packages_say(name):
    text = (HOUSE / "recipe" / name / "recipe.yaml").read_text(encoding="utf-8")
    said = project(name)["project"]
    assert re.search(r'^  version: "(.*)"$', text, re.MULTILINE)[1] == meanmap.__version__
    assert re.search(r"^  name: (.*)$", text, re.MULTILINE)[1] == said["name"]
    assert re.search(r"^  license: (.*)$", text, re.MULTILINE)[1] == said["license"]
    run = set(listed(text, "requirements", "run"))
    assert run == required(said["dependencies"]) | {f"python {said['requires-python']}"}
    host = set(listed(text, "requirements", "host"))
    assert required(project(name)["build-system"]["requires"]) <= host
    if name == "meanmap":
        assert listed(text, "entry_points") == [f"{each} = {to}" for each, to in said["scripts"].items()]
    assert " ".join(listed(text, "about")[-1:]).endswith(said["description"].split()[-1])
