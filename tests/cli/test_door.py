"""What every command shares: how it fails, what it may write, what a terminal is shown."""

import io
import json
import os
import subprocess
import sys
import zipfile

import numpy as np
import polars
import pytest
import typer
from typer.testing import CliRunner

from meanmap.cli import main
from meanmap.cli.commands import app
from meanmap.cli.options import Command, refusals

TEST = ["test", "independence", "FILE", "--x", "x", "--y", "y"]


def run(*arguments, **options):
    return CliRunner().invoke(app, list(map(str, arguments)), **options)


def refused(found) -> str:
    """The one line of a refusal."""
    assert found.exit_code == 2, (found.exception, found.stdout)
    assert found.stdout == ""
    assert found.stderr.count("\n") == 1
    return found.stderr


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.csv"
    rng = np.random.default_rng(0)
    path.write_text("x,y\n" + "".join(f"{a!r},{b!r}\n" for a, b in rng.normal(size=(30, 2)).tolist()))
    return path


def commands(group, path=()):
    for name, each in group.commands.items():
        if hasattr(each, "commands"):
            yield from commands(each, (*path, name))
        else:
            yield " ".join((*path, name)), each


def test_every_command_has_the_door():
    found = dict(commands(typer.main.get_command(app)))
    assert len(found) > 10
    assert [name for name, each in found.items() if not isinstance(each, Command)] == []


def archive(**members) -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return whole.getvalue()


def parquet(**columns) -> bytes:
    whole = io.BytesIO()
    polars.DataFrame(columns).write_parquet(whole)
    return whole.getvalue()


def saved(array) -> bytes:
    whole = io.BytesIO()
    np.save(whole, array)
    return whole.getvalue()


BAD = {
    "a long cell": (".csv", b"x,y\n" + b"1" * 140_000 + b",2\n"),
    "an open quote": (".csv", b'x,y\n1,"2\n3,4\n'),
    "a list": (".parquet", parquet(x=[[1.0]], y=[1.0])),
    "bytes": (".parquet", parquet(x=[b"\xff"], y=[1.0])),
    "no rows": (".parquet", parquet(x=[], y=[])),
    "no columns": (".parquet", parquet()),
    "no rows of NumPy": (".npy", saved(np.zeros((0, 3)))),
    "a mad header": (".npy", b"\x93NUMPY\x01\x00\x76\x00" + b"(" * 117 + b"\n"),
    "text": (".npz", archive(x=b"text", y=saved(np.zeros(3)))),
    "three axes": (".npz", archive(x=saved(np.zeros((3, 2, 2))), y=saved(np.zeros(3)))),
    "packed": (".csv", b"\x1f\x8b\x08\x00"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_one_line_and_exit_code_2(name, tmp_path):
    ending, content = BAD[name]
    path = tmp_path / f"bad{ending}"
    path.write_bytes(content)
    assert "bug in meanmap" not in refused(run(*(path if part == "FILE" else part for part in TEST)))


@pytest.mark.parametrize("name", [name for name, _ in commands(typer.main.get_command(app))])
def test_an_option_that_a_command_lacks_is_one_line_with_those_it_has(name):
    said = refused(run(*name.split(), "--outptu", "x"))
    assert said.startswith(f"meanmap: `meanmap {name}` has no option '--outptu'")
    assert "--help'" in said or " more." in said


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (
            "demo --sed 3",
            "`meanmap demo` has no option '--sed' (did you mean '--seed'?); it has '--output', '--seed', ",
        ),
        ("graph fit a.csv -o", "option '-o' requires an argument; `meanmap graph fit --help` shows what to type"),
        ("graph ft", "`meanmap graph` has no command 'ft' (did you mean 'fit'?); it has 'fit', 'query', 'draw'."),
        ("--verson", "`meanmap` has no option '--verson' (did you mean '--version'?)"),
        ("test two-sample", "missing argument 'first'; `meanmap test two-sample --help` shows what to type"),
        ("ep foo a.csv", "invalid value for 'model': 'foo' is not one of 'logistic'"),
        ("operators --names", "`meanmap operators` has no option '--names'"),
    ],
)
def test_what_was_mistyped_is_one_line(typed, said):
    assert refused(run(*typed.split())).startswith(f"meanmap: {said}")


def test_more_draws_than_fit(data):
    said = refused(run(*(data if part == "FILE" else part for part in TEST), "--permutations", 100_000_000))
    assert "expected a whole number of at least 19 and at most 1000000" in said


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (KeyError("moon"), "a bug in meanmap, please report it: KeyError: 'moon' (test_door.py, line"),
        (MemoryError("Unable to allocate 44.7 GiB"), "there is not enough memory: Unable to allocate 44.7 GiB"),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory"), "there is not enough memory: RESOURCE_EXHAUSTED"),
        (PermissionError(13, "Permission denied", "a.csv"), "a.csv: Permission denied"),
        (
            ValueError("two\nlines \x1b[31m"),
            r"a bug in meanmap, please report it: ValueError: two lines \x1b[31m (test_door.py, line",
        ),
    ],
)
def test_whatever_goes_wrong_is_one_line(problem, said, capsys):
    with pytest.raises(typer.Exit) as found, refusals():
        raise problem
    assert found.value.exit_code == 2
    line = capsys.readouterr().err
    assert line.startswith(f"meanmap: {said}")
    assert line.count("\n") == 1


@pytest.mark.parametrize("option", ["--report", "--plot"])
def test_what_is_read_is_not_written_over(data, tmp_path, option):
    arguments = [data if part == "FILE" else part for part in TEST]
    before = data.read_bytes()
    assert "data.csv; expected a name that ends in" in refused(run(*arguments, option, data))
    end = {"--report": "html", "--plot": "png"}[option]
    (tmp_path / f"link.{end}").symlink_to(data)
    os.link(data, tmp_path / f"hard.{end}")
    for path in (tmp_path / f"link.{end}", tmp_path / f"hard.{end}", tmp_path / ".." / tmp_path.name / f"link.{end}"):
        assert f"{option} would replace {path}, which is read" in refused(run(*arguments, option, path))
    assert data.read_bytes() == before
    assert "which --plot writes; name another" in refused(
        run(*arguments, "--plot", tmp_path / "new", "--report", tmp_path / "new")
    )
    assert not (tmp_path / "new").exists()


def test_devices_and_folders_are_refused_before_any_work(data, tmp_path):
    for path, said in (("/dev/null", "/dev/null is a device"), (tmp_path, "is a folder; expected the name of a file")):
        assert said in refused(run("learn-kernel", data, "-o", path))


def test_column_names_do_not_command_the_terminal(data):
    data.write_text(data.read_text().replace("x,y", "x\x1b[31m,y\u202e", 1))
    found = run("test", "independence", data, "--x", "x\x1b[31m", "--y", "y\u202e", "--permutations", 19)
    assert found.exit_code == 0
    assert r"Are x\x1b[31m and y\u202e independent?" in found.stdout
    assert "\x1b" not in found.stdout
    assert "\x1b" not in refused(run("test", "independence", data, "--x", "\x1b[2J", "--y", "y"))


def test_json_gives_facts_first_and_draws_on_request(data):
    arguments = [*(data if part == "FILE" else part for part in TEST), "--permutations", 19, "--seed", 0, "--json"]
    facts = json.loads(run(*arguments).stdout)
    assert list(facts)[:5] == ["question", "level", "reject", "statistic", "pvalue"]
    assert "null_draws" not in facts
    everything = json.loads(run(*arguments, "--draws").stdout)
    assert list(everything)[-1] == "null_draws"
    assert len(everything.pop("null_draws")) == 19
    assert everything == facts


def test_pictures_need_no_windows(monkeypatch):
    """An odd MPLBACKEND made matplotlib fail before it drew anything."""
    monkeypatch.setenv("MPLBACKEND", "odd")
    monkeypatch.setattr(sys, "argv", ["meanmap", "--version"])
    with pytest.raises(SystemExit):
        main()
    assert os.environ["MPLBACKEND"] == "agg"


def test_words_that_the_terminal_lacks_are_spelled_out(monkeypatch, data):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "argv", ["meanmap", "cite"])
    with pytest.raises(SystemExit):
        main()
    stream.write("x → y")
    stream.flush()
    assert stream.buffer.getvalue().endswith(b"x \\u2192 y")  # pyright: ignore[reportAttributeAccessIssue]


def test_a_column_that_looks_like_a_formula_has_its_page(data, tmp_path):
    data.write_text(data.read_text().replace("x,y", "$x^$,y", 1))
    for command in (["test", "independence", data, "--x", "$x^$", "--y", "y"], ["discover", data, "--method", "tree"]):
        found = run(*command, "--report", tmp_path / "page.html")
        assert found.exit_code == 0, found.stderr


def test_standard_output_is_no_file(data, tmp_path):
    command = [
        sys.executable,
        "-c",
        "from meanmap.cli import main; main()",
        "test",
        "independence",
        str(data),
        "--x",
        "x",
        "--y",
        "y",
    ]
    with (tmp_path / "out").open("w") as out:
        found = subprocess.run(
            [*command, "--report", "/dev/stdout"], stdout=out, stderr=subprocess.PIPE, text=True, check=False
        )
    assert found.returncode == 2
    assert "/dev/stdout is a device, a pipe or a socket; expected the name of a file" in found.stderr
    assert (tmp_path / "out").read_text() == ""


def test_an_option_given_twice_is_refused(tmp_path):
    """The last one silently replaced the first."""
    file = tmp_path / "t.csv"
    file.write_text("a\n-\n-999\n3\n")
    said = refused(run("schema", file, "--missing=-", "--missing", "-999"))
    assert (
        "--missing is given 2 times; expected it once; pass several values as one list, such as --missing=a,b" in said
    )
    assert "--decimal is given 2 times; expected it once" in refused(run("schema", file, "--decimal=.", "--decimal=,"))
