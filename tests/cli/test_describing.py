"""What columns are read as, on the command line."""

import pytest
from typer.testing import CliRunner

from meanmap.cli.commands import app

ROWS = [
    "day,size,code,x",
    *(f"2026-01-{day:02},{'low' if day % 3 else 'high'},{day % 4},{day}.5" for day in range(1, 25)),
]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("\n".join([*ROWS, "2026-02-01,low,1,"]) + "\n")
    return path


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_a_schema_is_printed(table):
    plain = run("schema", table).output
    assert "25 rows, 4 columns" in plain
    assert "day   text    25 values: 2026-01-01" in plain
    assert "code  count   0 to 3, median 1, scale 1, 4 values" in plain
    assert "x     number  1.5 to 24.5, median 13, scale 7, 1 missing" in plain
    assert "left out" not in plain
    assert "column 'day' is text that looks like dates, such as '2026-01-01', and counts as labels" in plain
    assert (
        "counts as labels: convert it, or say so with --kinds day=time. If labels are meant, say so with --kinds"
        in plain
    )
    told = run("schema", table, "--kinds", "day=time,size=low<high,code=label").output
    assert "day   time    2026-01-01T00:00:00 to 2026-02-01T00:00:00" in told
    assert "size  rank    2 values: low < high" in told
    assert "code  label   4 values: 0, 1, 2, 3" in told
    assert "looks like dates" not in told
    assert '"kind": "count"' in run("schema", table, "--json").output


def test_gaps_are_counted_by_column_and_leave_out_no_row(tmp_path):
    """A row with a gap in one column counts in all others; it was left out."""
    path = tmp_path / "gaps.csv"
    lines = [f"{i},{'' if i % 2 else i},{'NA' if i % 3 else 'low'}," for i in range(12)]
    path.write_text("\n".join(["a,b,c,d", *lines]) + "\n")
    plain = run("schema", path, "--kinds", "d=label").output
    assert "12 rows, 3 columns" in plain
    assert "a  count  0 to 11" in plain
    assert "b  count  0 to 10, median 5, scale 4, 6 values, 6 missing" in plain
    assert "c  label  1 value: low, 8 missing" in plain
    assert "note: column 'd' is empty, and is left out" in plain
    assert '"missing": 6' in run("schema", path, "--json").output
    path.write_text("a,b\n,\n,\n")
    found = run("schema", path)
    assert (found.exit_code, "has no observed values" in found.output) == (2, True)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("${:,}", "numbers with a sign such as $ or %, such as '$1,040', and counts as labels: remove signs"),
        ("{:,}", "numbers with a comma, such as '1,040', and counts as labels: read the file with --decimal ,"),
        ("{} kg", "numbers with a unit, such as '1040 kg', and counts as labels: remove the unit"),
        ("{0}/12/2026", "dates with the day or the month first, such as '1/12/2026', and counts as labels"),
        (
            "2026-01-{0:02}",
            "dates, such as '2026-01-01', and counts as labels: convert it, or say so with --kinds pay=time",
        ),
    ],
)
def test_numbers_and_dates_that_are_read_as_labels_are_told_of(tmp_path, written, said):
    path = tmp_path / "table.csv"
    values = range(1, 29) if "0" in written else range(1040, 2200, 50)
    path.write_text("\n".join(["pay,x", *(f'"{written.format(value)}",{value % 7}' for value in values)]) + "\n")
    found = run("schema", path)
    assert found.exit_code == 0, found.output
    assert found.output.count(f"is text that looks like {said}") == 1, found.output
    assert "looks like" not in run("schema", path, "--labels", "pay").output
    found = run("test", "x ~ pay", path)
    assert (found.exit_code, found.stdout) == (2, "")
    assert f"is text that looks like {said.replace(', and counts as labels', '')}" in found.output
    asked = run("test", "x ~ pay", path, "--labels", "pay")
    assert (asked.exit_code, "looks like" in asked.output) == (0, False)


def test_a_graph_keeps_what_its_columns_are(table, tmp_path):
    model = tmp_path / "model.meanmap"
    found = run("graph", "fit", table, "-o", model, "--edges", "day-x,x-code", "--kinds", "day=time,code=label")
    assert found.exit_code == 0, found.output
    asked = run("graph", "query", model, "--given", "day=2026-01-10", "--target", "x")
    assert "x: mean" in asked.output
    assert "cannot be read as a time" in run("graph", "query", model, "--given", "day=soon").output


def test_columns_that_are_left_out_are_told(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["a,b,flat", *(f"{i % 7},{(i * i) % 11},3" for i in range(40))]) + "\n")
    told = "column 'flat' is constant: nothing depends on it, and it is left out."
    assert told in run("graph", "fit", path, "-o", tmp_path / "model.meanmap").output
    for method in ("tree", "pc"):
        assert told in run("discover", path, "--method", method).output
        assert told in run("discover", path, "--method", method, "--json").output


@pytest.mark.parametrize("option", ["--labels", "--kinds"])
def test_columns_that_are_set_apart_may_be_told_what_they_are(tmp_path, option):
    path = tmp_path / "table.csv"
    path.write_text(
        "\n".join(["group,site,a,b", *(f"{i % 2},{i % 3},{i % 7},{(i * i) % 11}" for i in range(60))]) + "\n"
    )
    told = [option, "group,site" if option == "--labels" else "group=label,site=label", "--seed", 0]
    for asked in (
        ["test", "two-sample", path, "--by", "group", "--within", "site"],
        ["test", "independence", path, "--x", "a,group", "--y", "b", "--within", "site"],
        ["test", "a ~ group", path, "--within", "site"],
    ):
        found = run(*asked, *told)
        assert found.exit_code == 0, found.output
