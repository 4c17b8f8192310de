"""What the source keeps to: docstrings that stand alone, types that say something, a map that is read in minutes."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TREES = {path: ast.parse(path.read_text()) for path in sorted((ROOT / "src").rglob("*.py"))}


def functions(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_no_docstring_needs_its_neighbour():
    """One or two words, or "the same" as something else, tell a reader nothing who comes by a search."""
    short = []
    for path, tree in TREES.items():
        for node in [*functions(tree), *(n for n in ast.walk(tree) if isinstance(n, ast.ClassDef))]:
            text = ast.get_docstring(node) or "has none at all"
            if len(text.split()) <= 2 or text.startswith("The same"):
                short.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {text.splitlines()[0]}")
    assert not short, "\n".join(short)


def test_few_parameters_are_of_any_type():
    found = []
    for tree in TREES.values():
        for node in functions(tree):
            arguments = node.args
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
            found += [ast.unparse(each.annotation) for each in every if each is not None and each.annotation]
    loose = sum(not {"Any", "Points"}.isdisjoint(each.split(" | ")) for each in found)
    assert loose < 0.08 * len(found), f"{loose} of {len(found)} parameters are of type Any, or of points of any kind"


def test_what_came_is_asked_in_core_alone():
    """Above the door nobody asks what a thing is: a list of what is left outside of `core`, which only gets shorter."""
    asks = re.compile(r"looks_like_one|dtype\.kind|\bis_sparse\(|\bis_file\(|\bis_dask\b|\bhasattr\(")
    rooms = [path for path in TREES if "core" not in path.parts]
    found = [line for path in rooms for line in path.read_text().splitlines() if asks.search(line)]
    found = [line.strip() for line in found if not line.startswith(("from ", "def "))]
    assert len(found) < 30, "\n".join(found)


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_tables_are_read_at_a_glance(page):
    cells = [cell for line in (ROOT / page).read_text().splitlines() if line[:1] == "|" for cell in line.split("|")]
    assert max(map(len, cells)) < 400
    named = {name for cell in cells for name in re.findall(r"`(src/meanmap/[\w/]+)/?`", cell)}
    assert all((ROOT / name).exists() for name in named)


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks"])
def test_no_module_has_the_name_of_a_folder_of_modules_beside_it(folder):
    """Which of the two is imported would depend on what was imported before."""
    modules = {path.with_suffix("") for path in (ROOT / folder).rglob("*.py")}
    assert not modules & {path.parent for path in modules}


def test_tests_draw_the_same_numbers_in_every_run():
    """A test that fails once in a thousand runs cannot be looked into if nobody knows its seed."""
    unseeded = "default_rng" + "()"
    assert not [path for path in sorted((ROOT / "tests").rglob("*.py")) if unseeded in path.read_text()]
