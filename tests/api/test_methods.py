"""The pages about methods name calls that exist, with arguments that they have."""

import inspect
import re
from pathlib import Path

import pytest

import meanmap as mm

PAGES = sorted((Path(__file__).parents[2] / "docs" / "methods").glob("*.rst"))
ROOMS = {"mm": mm, "ep": mm.ep, "bp": mm.bp}
CALL = re.compile(r"\b(mm|ep|bp)((?:\.[A-Za-z_]+)+)(?:\(([^()]*)\))?")


def test_there_is_a_page_for_each_paper():
    assert [page.stem for page in PAGES] == ["index", "kernel-learning", "loopy", "messages", "trees"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_calls_exist(page):
    for room, path, arguments in CALL.findall(page.read_text(encoding="utf-8")):
        found = ROOMS[room]
        for name in path.strip(".").split("."):
            found = getattr(found, name)
        named = re.findall(r"(\w+)=", arguments)
        assert not named or set(named) <= set(inspect.signature(found).parameters), (page.name, path, named)
