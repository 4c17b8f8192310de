"""What functions advise in Python's words is advised at the command line in its own."""

import re

import numpy as np
import pytest
from typer.testing import CliRunner

from meanmap.cli.commands import app
from meanmap.cli.wording import in_options
from meanmap.core.language import at_command_line
from meanmap.core.tables.written import Written
from meanmap.core.tables.zones import one_zone

KNOWN = {
    name: f"--{name}"
    for name in (
        *("missing", "kinds", "within", "clusters", "weights", "permutations"),
        *("margin", "decimal", "labels", "required"),
    )
}
# An argument of Python's with a value, or none.
PYTHON = re.compile(
    r"(?<!-)\b(missing|kinds|within|clusters|weights|by|n_permutations|decimal)=|pandas|\.str\.|\.astype|put nan"
)


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.mark.parametrize(
    ("python", "typed"),
    [
        ("pass missing='drop'.", "pass --missing drop."),
        ("pass missing=[-999].", "pass --missing=-999."),
        ("pass missing=['?', -9].", "pass --missing '?,-9'."),
        ("pass missing=['NaT'].", "pass --missing NaT,."),
        ("say so: kinds={'b': 'label'}.", "say so: --kinds b=label."),
        ("kinds={\"it's\": 'label'}", "--kinds 'it'\"'\"'s=label'"),
        ("kinds={'sun, really': 'label'}", "--kinds '\"sun, really=label\"'"),
        ("kinds={'size': ('low', 'high')}", "--kinds 'size=low<high'"),
        ("Pass clusters=10 for blocks, or within= with", "Pass --clusters 10 for blocks, or --within with"),
        ("the two-sample test of n_permutations=99", "the two-sample test of --permutations 99"),
        ("kernel=mm.kernels.RBF(1.0) and rng=0", "kernel=mm.kernels.RBF(1.0) and rng=0"),
        ("margin=0.3.", "--margin 0.3."),
        ("say so: decimal=','", "say so: --decimal ,"),
        ("labels: labels=['zip code'].", "labels: --labels 'zip code'."),
        ("required=[('a', 'b'), ('a', 'c d')] adds", "--required 'a>b,a>c d' adds"),
        ("site=3 and x=missing", "site=3 and x=missing"),
    ],
)
def test_arguments_become_options(python, typed):
    assert in_options(python, KNOWN) == typed
    assert in_options("pass missing='drop'", {"level": "--level"}) == "pass missing='drop'"


@pytest.mark.parametrize(
    ("python", "typed"),
    [
        ("level is 3.0; expected a number between 0 and 1.", "--level is 3.0; expected a number between 0 and 1."),
        ("run_length is 0.0; expected a number from 4.", "--run-length is 0.0; expected a number from 4."),
        ("required names 'q'; the columns are 'a'.", "--required names 'q'; the columns are 'a'."),
        ("within has 1 values; expected one for each row.", "--within has 1 values; expected one for each row."),
        ("the kernel of x is 'foo'; expected 'median'.", "--kernel is 'foo'; expected 'median'."),
        ("kernel_x is 'foo'; expected 'median'.", "--kernel is 'foo'; expected 'median'."),
        ("a kind is 'foo'; expected one of 'label'.", "a kind in --kinds is 'foo'; expected one of 'label'."),
        ("x is a table; expected one column.", "x is a table; expected one column."),
        ("the level is high.", "the level is high."),
    ],
)
def test_errors_name_the_option_that_was_typed(python, typed):
    names = ("level", "run_length", "required", "within", "kernel", "kinds", "x")
    assert in_options(python, {name: f"--{name.replace('_', '-')}" for name in names}) == typed


def test_what_cannot_be_typed_is_not_expected(farm):
    asked = ["test", "independence", farm, "--x", "sun", "--y", "water", "--kernel", "foo"]
    assert "--kernel is 'foo'; expected 'median', 'learned', or no such option." in run(*asked).output


def test_remedies_are_for_the_language_that_is_spoken():
    """Said where the message is made: what pandas does is no help at a shell."""
    for words, typed in (
        (["1.5", "2.5", "?", *map(str, range(9))], "convert it"),
        ([f"2026-01-{day:02}" for day in range(1, 13)], "convert it, or say so with kinds={'a': 'time'}"),
        ([f"{day}.5 kg" for day in range(12)], "remove the unit and convert it"),
    ):
        written = Written.of(words)
        assert "pandas" in written.note("a", "a") or ".str" in written.note("a", "a")
        with at_command_line():
            said = written.note("a", "a")
        assert said.endswith(f"counts as labels: {typed}. If labels are meant, say so with kinds={{'a': 'label'}}.")
    with at_command_line(), pytest.raises(TypeError, match=r"as in 2026-01-31T12:30Z, or remove the zone from x\.$"):
        raise one_zone("x", "y")


@pytest.fixture
def farm(tmp_path):
    rng = np.random.default_rng(0)
    n = 60
    columns = {
        "sun": rng.normal(size=n).cumsum().round(6),
        "water": rng.normal(size=n).cumsum().round(6),
        "age": np.r_[rng.integers(20, 60, n - 4), [-999] * 4],
        "zip": [f"0{i % 17:03}" for i in range(n)],
        "paid": [f"${i}.5" for i in range(n)],
        "odd": [f"{i}.5" if i else "?" for i in range(n)],
        "day": [f"2026-01-{1 + i % 28:02}" for i in range(n)],
        "mass": [f"{i}.25 kg" for i in range(n)],
        "site": rng.permutation(np.arange(n) // 3),
        "gap": ["" if i == 3 else i % 7 for i in range(n)],
        "group": ["p", "q"] * (n // 2),
    }
    path = tmp_path / "farm.csv"
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    "asked",
    [
        ["schema", "FARM"],
        ["schema", "FARM", "--columns", "sun,paid,day,mass,zip", "--json"],
        ["test", "two-sample", "FARM", "--by", "group", "--permutations", "19"],
        ["test", "two-sample", "FARM", "--by", "group", "--permutations", "19", "--json"],
        ["test", "sun + water ~ age + paid + day + mass", "FARM", "--permutations", "19"],
        ["test", "independence", "FARM", "--x", "sun", "--y", "water", "--permutations", "19", "--effect", "--json"],
        ["test", "conditional", "FARM", "--x", "sun", "--y", "age", "--z", "site", "--permutations", "19"],
        ["test", "independence", "FARM", "--x", "sun", "--y", "gap", "--missing", "raise"],
        ["test", "independence", "FARM", "--x", "sun", "--y", "gap", "--missing", "category"],
        ["test", "sun ~ gap", "FARM", "--kinds", "gap=numbr"],
    ],
)
def test_no_command_that_has_the_option_says_it_in_python(farm, asked):
    found = run(*(str(farm) if each == "FARM" else each for each in asked))
    assert not isinstance(found.exception, Exception | None) or isinstance(found.exception, SystemExit | None)
    assert not PYTHON.findall(found.output), found.output


def test_a_page_says_it_so_too(farm, tmp_path):
    page = tmp_path / "page.html"
    asked = ["test", "sun ~ age", farm, "--permutations", "19", "--report", page]
    assert run(*asked).exit_code == 0
    assert "pass --missing=-999" in page.read_text()
    assert run("test", "sun ~ age", farm, "--missing=-999", "--permutations", "19").exit_code == 0
