"""The command line on files of any content: an answer, or one line and exit code 2.

By day a few examples; MEANMAP_TEST_PROFILE=night and -m "slow or not slow" search for long.
"""

import io
import json

import numpy as np
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from meanmap.cli.commands import app

CELLS = [
    "1",
    "-2.5",
    "1e308",
    "1e-320",
    "nan",
    "",
    "a",
    "b",
    "é",
    '"',
    '"a,b"',
    "1,5",
    "\x00",
    "\x1b[31m",
    "9" * 400,
    "2020-01-01",
]
DRAWS = ["--permutations", "19", "--seed", "0"]
COMMANDS = [
    ["test", "two-sample", "FILE", "OTHER", *DRAWS],
    ["test", "two-sample", "FILE", "--by", "b", *DRAWS],
    ["test", "independence", "FILE", "--x", "a", "--y", "b", *DRAWS, "--json"],
    ["test", "conditional", "FILE", "--x", "x0", "--y", "x1", "--z", "x2", *DRAWS],
    ["discover", "FILE", "--seed", "0", "--json"],
]
SLOW = [
    ["ep", "logistic", "FILE", "--y", "b", "--json"],
    ["learn-kernel", "FILE", "--seed", "0"],
    ["discover", "FILE", "--method", "tree", "--seed", "0"],
    ["graph", "query", "FILE", "--given", "a=1"],
    ["operators", "card", "FILE"],
]


@st.composite
def texts(draw) -> bytes:
    """A table as text, some cells of which are not what they should be."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    names = draw(st.sampled_from([["a", "b"], ["a", "b", "c"], ["1", "2"], ["a", "a"], ["\x1b[2J", "b"], []]))
    rows = [[repr(value) for value in row] for row in rng.normal(size=(30, len(names) or 2)).round(3).tolist()]
    for _ in range(draw(st.integers(0, 3))):
        row = rows[rng.integers(len(rows))]
        row[rng.integers(len(row))] = draw(st.sampled_from(CELLS))
    mark = draw(st.sampled_from([",", ",", ";", "\t"]))
    lines = [mark.join(row) for row in ([names] if names else []) + rows]
    return draw(st.sampled_from(["\n", "\r\n"])).join(lines).encode(draw(st.sampled_from(["utf-8", "utf-8", "utf-16"])))


def whole_files() -> dict[str, bytes]:
    """Good files of each kind."""
    columns = dict(zip("abc", np.random.default_rng(0).normal(size=(3, 30)).round(3), strict=True))
    found = {kind: io.BytesIO() for kind in (".npy", ".npz", ".parquet")}
    np.save(found[".npy"], np.stack(list(columns.values()), axis=1))
    np.savez_compressed(found[".npz"], **columns)
    polars.DataFrame(columns).write_parquet(found[".parquet"])
    return {kind: content.getvalue() for kind, content in found.items()}


WHOLE = whole_files()


@st.composite
def files(draw) -> tuple[str, bytes]:
    """An ending and a content, most often of a damaged file."""
    if draw(st.booleans()):
        return draw(st.sampled_from([".csv", ".csv", ".tsv", ".txt", ".parquet"])), draw(texts())
    kind = draw(st.sampled_from(sorted(WHOLE)))
    content = bytearray(WHOLE[kind])
    for _ in range(draw(st.integers(0, 6))):
        content[draw(st.integers(0, len(content) - 1))] = draw(st.integers(0, 255))
    cut = draw(st.sampled_from([None, None, 1, 10, len(content) // 2, -1]))
    return draw(st.sampled_from([kind, kind, kind, ".csv"])), bytes(content[:cut])


def check(command: list[str], one: tuple[str, bytes], other: tuple[str, bytes], folder) -> None:
    named = {"FILE": one, "OTHER": other}
    for name, (ending, content) in named.items():
        (folder / f"{name}{ending}").write_bytes(content)
    arguments = [str(folder / f"{part}{named[part][0]}") if part in named else part for part in command]
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code in (0, 2), found.exception
    assert "\x1b" not in found.stdout + found.stderr
    if found.exit_code == 2:
        assert found.stdout == ""
        assert found.stderr.count("\n") == 1
        assert "bug in meanmap" not in found.stderr
    elif "--json" in command:
        json.loads(found.stdout, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]))
@given(files(), files())
def test_an_answer_or_one_line(command, folder, one, other):
    check(command, one, other, folder)


@pytest.mark.slow
@settings(max_examples=3000)
@given(st.sampled_from(COMMANDS + SLOW), files(), files())
def test_many_at_random(folder, command, one, other):
    check(command, one, other, folder)
