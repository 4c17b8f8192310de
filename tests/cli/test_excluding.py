"""--exclude leaves columns out, in every command that takes all columns of a file."""

import json

import numpy as np
import polars
import pytest
from typer.testing import CliRunner

import meanmap as mm
from meanmap.cli.commands import app


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    columns = {"name": [f"u{k}" for k in range(60)], "x": x, "y": x + rng.normal(size=60), "arm": ["A", "B"] * 30}
    polars.DataFrame(columns).write_csv(tmp_path / "t.csv")
    polars.DataFrame(columns).write_parquet(tmp_path / "part-1.parquet")
    polars.DataFrame(columns).write_parquet(tmp_path / "part-2.parquet")
    return tmp_path / "t.csv"


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def found(*arguments):
    return json.loads(run(*arguments, "--json").stdout)


def same(first, second):
    """Answers but for the notes on how files were read."""
    return all(first[key] == second[key] for key in ("pvalue", "statistic"))


def test_groups_of_one_file(table):
    left = found("test", "two-sample", table, "--by", "arm", "--exclude", "name,y", "--seed", 0)
    asked = found("test", "two-sample", table, "--by", "arm", "--columns", "x", "--seed", 0)
    assert same(left, asked)
    assert [each["column"] for each in left["differences"]] == ["x"]
    said = run("test", "two-sample", table, "--by", "arm", "--exclude", "name,y", "--seed", 0).output
    assert " in arm=A, " in said


def test_two_files_also_in_pieces(table):
    parts = str(table.parent / "part-*.parquet")
    for files in ((table, table), (parts, table)):
        left = found("test", "two-sample", *files, "--exclude", "name,arm", "--seed", 0)
        assert same(left, found("test", "two-sample", *files, "--columns", "x,y", "--seed", 0))


def test_a_dot_in_a_question_stands_for_what_is_left(table):
    left = found("test", ". ~ arm", table, "--exclude", "name", "--seed", 0)
    assert same(left, found("test", "x + y ~ arm", table, "--seed", 0))


def test_graphs_and_descriptions(table):
    tree = found("discover", table, "--method", "tree", "--exclude", "name", "--seed", 0)
    assert tree == found("discover", table, "--method", "tree", "--columns", "x,y,arm", "--seed", 0)


def test_drift(table):
    left = found("drift", table, table, "--exclude", "name,arm", "--seed", 0)
    asked = found("drift", table, table, "--columns", "x,y", "--seed", 0)
    assert left["batches"] == asked["batches"]


def test_a_column_that_counts_the_rows_is_named_with_what_to_type(table):
    polars.read_csv(table).with_row_index("my id").write_csv(table)
    said = run("test", "two-sample", table, table, "--exclude", "name", "--seed", 0).output
    assert "'my id' only identifies the rows and is left out; to use it, pass --kinds 'my id=number'" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("two-sample", "--by", "arm", "--exclude", "nam"), "no column 'nam' (did you mean 'name'?)"),
        (("two-sample", "--by", "arm", "--exclude", "x", "--columns", "x,y"), "--exclude leaves out 'x'"),
        (("two-sample", "--by", "arm", "--exclude", "arm"), "--exclude leaves out 'arm'"),
    ],
)
def test_what_cannot_be_left_out_is_refused_in_words(table, arguments, said):
    result = run("test", arguments[0], table, *arguments[1:])
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_rows_that_share_an_id_that_is_set_apart_are_copies(table, tmp_path):
    """Labels and whole numbers alone agree by chance; with the id of the row they do not."""
    rng = np.random.default_rng(1)
    columns = {"user": [f"u{k}" for k in range(200)], "buys": rng.choice(["no", "yes"], 200), "arm": ["A", "B"] * 100}
    frame = polars.DataFrame(columns | {"pages": rng.poisson(3, 200)})
    for rows, said in ((frame, 0), (polars.concat([frame, frame[:7]]), 1)):
        rows.write_csv(tmp_path / "copied.csv")
        output = run("test", "two-sample", tmp_path / "copied.csv", "--by", "arm", "--seed", 0).output
        note = "7 of 207 rows of copied.csv repeat another row in every column, 'user' too"
        assert " ".join(output.split()).count(note.replace("copied.csv", str(tmp_path / "copied.csv"))) == said, output


def test_columns_that_a_command_names_are_not_set_apart(tmp_path):
    """Clusters of mostly one row look like ids, and an outcome may count."""
    rng = np.random.default_rng(0)
    people = [f"p{k}" for k in range(40)]
    frame = polars.DataFrame({"who": [*people, people[0]], "arm": ["a", "b"] * 20 + ["a"], "x": rng.normal(size=41)})
    frame.write_csv(tmp_path / "t.csv")
    asked = run("test", "two-sample", tmp_path / "t.csv", "--by", "arm", "--clusters", "who", "--seed", 0)
    assert asked.exit_code == 0, asked.output
    assert "is left out; to use it" not in asked.output
    polars.DataFrame({"day": range(1, 42), "x": rng.normal(size=41)}).write_csv(tmp_path / "u.csv")
    fitted = run("ep", "robust", tmp_path / "u.csv", "--y", "day")
    assert fitted.exit_code == 0, fitted.output


def test_a_gap_in_a_column_that_is_left_out_costs_no_row(tmp_path):
    """Dates of half of the rows left half of the people out, and then the dates."""
    rng = np.random.default_rng(2)
    days = [f"2026-01-{1 + k % 28:02}" if k % 2 else "" for k in range(80)]
    frame = polars.DataFrame({"day": days, "arm": ["a", "b"] * 40, "x": rng.normal(size=80)})
    frame.with_row_index("user").write_csv(tmp_path / "t.csv")
    asked = run("test", "two-sample", tmp_path / "t.csv", "--by", "arm", "--seed", 0)
    assert asked.exit_code == 0, asked.output
    assert "samples    40, 40" in asked.output
    assert "were left out: a value is missing" not in asked.output
    assert "'day' holds dates or times as text and is left out" in asked.output
    kept = run("test", "two-sample", tmp_path / "t.csv", "--by", "arm", "--seed", 0, "--kinds", "day=time")
    assert "were left out: a value is missing in 'day' (40)" in " ".join(kept.output.split())


def test_ids_are_left_out_in_the_same_words_in_python(tmp_path):
    rng = np.random.default_rng(3)
    frame = polars.DataFrame({"x": rng.normal(size=80), "arm": ["a", "b"] * 40}).with_row_index("user")
    frame.write_csv(tmp_path / "t.csv")
    shell = run("test", "two-sample", tmp_path / "t.csv", "--by", "arm", "--seed", 0, "--json")
    python = mm.two_sample_test(frame, by="arm", rng=0)
    (note,) = python.warnings
    said = "'user' only identifies the rows and is left out; to use it, pass "
    assert note == f"{said}kinds={{'user': 'number'}}."
    assert f"{said}--kinds user=number" in json.loads(shell.stdout)["notes"]
    assert json.loads(shell.stdout)["pvalue"] == python.pvalue
    named = run("test", "two-sample", tmp_path / "t.csv", "--by", "arm", "--seed", 0, "--columns", "user,x")
    assert "is left out" not in named.output
    assert "mean user: " in named.output


def test_a_time_of_day_alone_is_left_out_with_a_kind_that_reads_it(tmp_path):
    rng = np.random.default_rng(4)
    hours = [f"{1 + k % 12}:{k % 60:02} {'AP'[k % 2]}M" for k in range(80)]
    polars.DataFrame({"at": hours, "arm": ["a", "b"] * 40, "x": rng.normal(size=80)}).write_csv(tmp_path / "t.csv")
    asked = ["test", "two-sample", tmp_path / "t.csv", "--by", "arm", "--seed", 0]
    said = run(*asked).output
    assert "'at' holds dates or times as text and is left out; to use it, pass --kinds 'at=time of day'" in said
    used = run(*asked, "--kinds", "at=time of day")
    assert used.exit_code == 0, used.output
    assert "is left out" not in used.output
