"""`meanmap test`: answers, exit codes and files, as a script would see them."""

import datetime
import errno
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import polars
import pytest
from typer.testing import CliRunner

import meanmap
import meanmap as mm
from meanmap.cli import inputs, pages
from meanmap.cli.commands import app
from meanmap.cli.options import refusals


def run(*arguments, stdin=None):
    return CliRunner().invoke(app, ["test", *map(str, arguments)], input=stdin)


def write(path, **columns):
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    first = write(tmp_path / "first.csv", a=x, b=rng.normal(size=60))
    second = write(tmp_path / "second.csv", b=rng.normal(size=50), a=rng.normal(2.0, 1.0, size=50))
    table = write(
        tmp_path / "table.csv",
        x=x,
        y=x**2,
        z=rng.normal(size=60),
        group=np.repeat(["u", "v", "w"], 20),
        sex=[0, 1] * 30,
    )
    return first, second, table


def test_two_files_with_columns_in_any_order(files):
    first, second, _ = files
    found = json.loads(run("two-sample", first, second, "--seed", 3, "--json").stdout)
    read = [np.genfromtxt(path, delimiter=",", names=True) for path in (first, second)]
    x, y = (np.stack([array["a"], array["b"]], axis=1) for array in read)
    expected = mm.two_sample_test(x, y, rng=3)
    assert (found["pvalue"], found["statistic"], found["seed"]) == (expected.pvalue, expected.statistic, 3)
    assert found["reject"] is True


def test_groups_of_one_file(files):
    table = files[2]
    found = run("two-sample", table, "--by", "sex", "--columns", "x,z", "--labels", "sex", "--seed", 0)
    assert found.exit_code == 0
    assert found.stdout.startswith("Do sex=0 and sex=1 come from the same distribution? No evidence of a difference")
    found = run("two-sample", table, "--by", "group", "--columns", "x", "--json", "--seed", 0)
    assert json.loads(found.stdout)["sizes"] == [20, 20, 20]


def test_several_groups_of_one_file_say_which_differ(tmp_path):
    rng, path, page = np.random.default_rng(0), tmp_path / "arms.csv", tmp_path / "page.html"
    lines = [f"{'abc'[k % 3]},{rng.normal(60 + 9 * (k % 3 == 2), 5):.2f},{rng.normal():.3f}" for k in range(120)]
    path.write_text("\n".join(["arm,time,other", *lines]))
    found = run("two-sample", path, "--by", "arm", "--seed", 0, "--report", page).stdout
    assert "in arm=b, 6" in found
    assert "in arm=c, a difference of " in found
    assert "p-values   time 0.002, other " in found
    assert "p-value, corrected for all columns" in page.read_text()
    assert "arm=a and arm=c" in page.read_text()


def test_independence_and_conditional_independence(files):
    found = run("independence", files[2], "--x", "x", "--y", "y", "--seed", 0)
    assert "Are x and y independent? No: rejected at level 0.05" in found.stdout
    found = run("conditional", files[2], "--x", "z", "--y", "y", "--z", "x,group", "--seed", 0, "--json")
    assert json.loads(found.stdout)["question"] == "Are z and y independent, given x,group?"


def test_strata_and_clusters(files, tmp_path):
    _, second, table = files
    found = json.loads(run("two-sample", table, "--by", "sex", "--columns", "x", "--within", "group", "--json").stdout)
    assert "within strata" in found["method"]
    found = run("independence", table, "--x", "x", "--y", "y", "--within", "group", "--clusters", "5", "--json")
    assert "HSIC within strata of 12 clusters" in json.loads(found.stdout)["method"]
    sides = ("--x", "x", "--y", "y", "--z", "sex", "--within", "group", "--clusters", "5")
    found = json.loads(run("conditional", table, *sides, "--json").stdout)
    assert "test within strata of 12 clusters" in found["method"]
    found = run("independence", table, "--x", "x", "--y", "y", "--clusters", "group,sex", "--json")
    assert "HSIC of 6 clusters" in json.loads(found.stdout)["method"]
    weighted = run("two-sample", second, second, "--columns", "a", "--weights", "b", "--json")
    assert "weights has negative" in weighted.stderr


def test_a_page_of_clusters_has_pvalues_of_columns_and_no_shares(tmp_path):
    """Shares are those of independent rows of equal weight."""
    user = np.repeat(np.arange(200), 3)
    rng = np.random.default_rng(0)
    arm = np.where(user % 2 == 0, "A", "B")
    columns = {"user": user, "arm": arm, "y": rng.normal(size=600) + (arm == "B"), "z": rng.normal(size=600)}
    path, page = write(tmp_path / "visits.csv", **columns), tmp_path / "page.html"
    run("two-sample", path, "--by", "arm", "--clusters", "user", "--seed", 0, "--report", page)
    said = page.read_text()
    assert "y most of all" in said
    assert "for single columns, by ranks, corrected" in said
    assert "near zero does not contribute" not in said
    run("two-sample", path, "--by", "arm", "--columns", "y,z", "--seed", 0, "--report", page)
    assert "near zero does not contribute" in page.read_text()


def test_effects(files):
    first, second, table = files
    found = run("two-sample", first, second, "--effect", "--seed", 0)
    assert "difference between first.csv and second.csv, with 95% intervals" in found.stdout
    found = json.loads(run("independence", table, "--x", "x", "--y", "y", "--effect", "--json", "--seed", 0).stdout)
    assert found["effect"]["correlation"][1] > 0
    asked = ["conditional", table, "--x", "x", "--y", "y", "--z", "z", "--effect", "--json", "--seed", 0]
    assert json.loads(run(*asked).stdout)["effect"]["method"] == "dependence of x and y given z"
    found = json.loads(run("two-sample", table, "--by", "group", "--columns", "x", "--effect", "--json").stdout)
    assert found["effect"]["method"] == "difference between 3 samples"


def test_a_margin(files):
    first, second, table = files
    found = run("two-sample", first, second, "--margin", "5", "--seed", 0)
    asked = "Do first.csv and second.csv differ by less than a shift of all columns by {} standard deviations?"
    assert f"{asked.format(5)} Yes: shown at level 0.05, p = " in found.stdout
    assert "closer than after a shift of all columns by 5 standard deviations: shown" in found.stdout
    refused = run("two-sample", table, "--by", "group", "--margin", "1")
    assert "--margin needs two samples, and there are 3" in refused.stderr
    # The samples are two standard deviations apart: a large p-value is no sign that they are close.
    found = run("two-sample", first, second, "--margin", "0.3", "--seed", 0)
    assert f"{asked.format(0.3)} Not shown at level 0.05, p = " in found.stdout


def test_what_there_is_no_evidence_of(files, tmp_path):
    """Independence is not rejected for want of dependence, and samples for want of a difference."""
    table = files[2]
    for asked in (
        ["independence", table, "--x", "x", "--y", "z"],
        ["conditional", table, "--x", "x", "--y", "z", "--z", "sex"],
        ["x ~ z", table],
        ["x ~ z | sex", table],
    ):
        page = tmp_path / "page.html"
        found = run(*asked, "--seed", 0, "--permutations", 99, "--report", page)
        assert "? No evidence of dependence: not rejected at level 0.05" in found.stdout, found.output
        assert "No evidence of dependence" in page.read_text()
    for asked in (["two-sample", table, "--by", "sex", "--columns", "x"], ["x ~ sex", table, "--labels", "sex"]):
        found = run(*asked, "--seed", 0, "--permutations", 99)
        assert "? No evidence of a difference: not rejected at level 0.05" in found.stdout, found.output


def test_effects_and_margins_within_strata(files):
    asked = ["two-sample", files[2], "--by", "sex", "--within", "group", "--columns", "x", "--seed", 0, "--json"]
    plain, within = (json.loads(run(*each, "--effect").stdout)["effect"] for each in (asked[:4] + asked[6:], asked))
    assert plain["distance"] != within["distance"]
    assert json.loads(run(*asked, "--margin", "5").stdout)["pvalue"] < 0.05


def test_a_question_in_a_line(files):
    table = files[2]
    found = run("y ~ x | group", table, "--seed", 0, "--permutations", 99)
    assert "Are y and x independent, given group? No: rejected at level 0.05" in found.stdout
    assert "independence_test, because neither side is one column of groups" in found.stdout
    found = json.loads(run("x ~ group", table, "--json", "--permutations", 99).stdout)
    assert found["why"][0].startswith("k_sample_test, because 'group' holds 3 labels")
    assert json.loads(run("ask", "x ~ z", table, "--clusters", "5", "--json").stdout)["why"]
    assert "has no column 'rain'" in run("x ~ rain", table).stderr


def test_a_question_leaves_out_rows_for_its_own_columns_only(tmp_path):
    rng = np.random.default_rng(0)
    arm, x = np.repeat(["A", "B"], 30), rng.normal(size=60)
    path = write(tmp_path / "gaps.csv", arm=arm, x=["", *x[1:]], town=["u", "v"] * 30, note=["fine", ""] * 30)
    asked = ["x ~ arm | town", path, "--seed", 0, "--permutations", 99, "--json"]
    found = json.loads(run(*asked).stdout)
    expected = mm.test("x ~ arm | town", {"x": x[1:], "arm": arm[1:], "town": (["u", "v"] * 30)[1:]},
                       n_permutations=99, rng=0)  # fmt: skip
    assert (found["pvalue"], found["sizes"]) == (expected.pvalue, [29, 30])
    assert found["warnings"][0] == "1 of 60 rows of the table was left out: a value is missing in 'x' (1)."
    piped = run("ask", "x ~ arm", "-", "--within", "town", *asked[2:], stdin=path.read_text())
    assert json.loads(piped.stdout)["sizes"] == [29, 30]
    assert "has no column 'hen'" in run("x ~ arm", path, "--within", "hen").stderr


@pytest.mark.parametrize(("form", "number"), [("by", 2), ("by", 3), ("question", 2), ("question", 3), ("files", 2)])
def test_columns_are_compared_on_the_same_rows_as_in_python(tmp_path, number, form):
    """Rows with a gap in one column were left out of the comparison of all others."""
    rng = np.random.default_rng(18_200_013)
    arm = np.repeat(["A", "B", "C"][:number], 60)
    table = {
        "arm": arm,
        "user": np.arange(arm.size) // 4,
        "x": rng.normal(size=arm.size),
        "y": rng.normal(size=arm.size),
    }
    for name, share in (("x", 0.1), ("y", 0.3)):
        table[name][rng.random(arm.size) < share] = np.nan
    cells = {name: np.array(["" if each != each else each for each in values]) for name, values in table.items()}
    path = write(tmp_path / "all.csv", **cells)
    parts = [{name: values[arm == each] for name, values in table.items() if name != "arm"} for each in np.unique(arm)]
    more = {"missing": "drop", "n_permutations": 99, "rng": 0}
    if form in ("by", "clusters", "within"):
        design = {} if form == "by" else {form: "user"}
        asked = [
            "two-sample",
            path,
            "--by",
            "arm",
            "--effect",
            *(f"--{name}={column}" for name, column in design.items()),
        ]
        expected = (mm.two_sample_test if number == 2 else mm.k_sample_test)(table, by="arm", **design, **more)
    elif form == "question":
        asked, expected = ["x + y ~ arm", path], mm.test("x + y ~ arm", table, **more)
    else:
        paths = [write(tmp_path / f"{k}.csv", **{name: column[arm == part] for name, column in cells.items()})
                 for k, part in enumerate("AB")]  # fmt: skip
        asked = ["two-sample", *paths, "--columns", "x,y", "--effect"]
        expected = mm.two_sample_test(*({"x": part["x"], "y": part["y"]} for part in parts), **more)
    found = json.loads(run(*asked, "--permutations", 99, "--seed", 0, "--json").stdout)
    assert found["pvalue"] == expected.pvalue
    shown = [[each | {"samples": 0} for each in one["differences"]] for one in (found, expected.to_dict())]
    assert shown[0] == json.loads(json.dumps(shown[1]))


def test_a_page_tells_of_labels_and_of_the_effect(tmp_path):
    rng = np.random.default_rng(0)
    paths = [
        write(tmp_path / name, v=rng.normal(size=60), town=np.repeat(["u", "v"], [share, 60 - share]))
        for name, share in (("a.csv", 50), ("b.csv", 5))
    ]
    page = tmp_path / "page.html"
    assert run("two-sample", *paths, "--effect", "--seed", 0, "--report", page).exit_code == 0
    assert "town most of all" in page.read_text()
    assert "rows that would have to change" in page.read_text()
    assert ", for the difference to vanish" in page.read_text()
    alone = [write(tmp_path / f"town_{i}.csv", town=["u", "v"] * 9 + ["uv"[i]] * 30) for i in range(2)]
    assert run("two-sample", *alone, "--seed", 0, "--report", page).exit_code == 0
    assert '"label":"town"' in page.read_text()  # the axis of its picture


def test_exit_codes(files):
    first, second, _ = files
    assert run("two-sample", first, second).exit_code == 0
    assert run("two-sample", first, second, "--fail-on-reject").exit_code == 1
    assert run("two-sample", first, first, "--fail-on-reject").exit_code == 0


def test_the_level_is_the_users(files):
    found = run("independence", files[2], "--x", "x", "--y", "z", "--level", 0.999, "--seed", 0, "--json")
    assert json.loads(found.stdout)["level"] == 0.999


def test_rows_with_missing_values_are_told(files, tmp_path):
    path = write(tmp_path / "gaps.csv", a=[1.0, "", *range(20)], b=[*range(20), "NA", 3])
    found = run("independence", path, "--x", "a", "--y", "b", "--seed", 0)
    assert f"2 of 22 rows of {path} were left out: a value is missing in 'a' (1), 'b' (1)" in found.stdout
    found = run("independence", path, "--x", "a", "--y", "b", "--missing", "raise")
    assert (found.exit_code, found.stdout) == (2, "")
    assert "missing values in the column 'a', first in row 2" in found.stderr


def test_missing_labels_can_be_a_label(tmp_path):
    path = write(tmp_path / "gaps.csv", a=range(20), b=["u", "", "v", "u"] * 5)
    found = run("independence", path, "--x", "a", "--y", "b", "--missing", "category", "--json")
    assert found.exit_code == 0
    found = run("independence", path, "--x", "a", "--y", "b", "--missing", "raise")
    assert "missing values in the column 'b', first in row 2" in found.stderr
    found = run("independence", path, "--x", "a", "--y", "b", "--missing", "never")
    assert "--missing is 'never'; expected drop, category or raise; or codes" in found.stderr


def test_too_few_rows_say_what_was_left_out(tmp_path):
    path = write(tmp_path / "gaps.csv", a=[1, 2, "", "", "", ""], b=[1, 2, 3, 4, 5, ""])
    found = run("independence", path, "--x", "a", "--y", "b")
    assert found.exit_code == 2
    assert f"only 2 rows of {path} are left: 4 of 6 rows" in found.stderr
    assert "a value is missing in 'a' (4), 'b' (1)" in found.stderr


def test_files_that_hold_a_column_as_numbers_and_as_text_are_refused(tmp_path):
    first = write(tmp_path / "first.csv", zip=range(10), b=range(10))
    second = write(tmp_path / "second.csv", zip=[f'"{n},5"' for n in range(10)], b=range(10))
    found = run("two-sample", first, second)
    assert (found.exit_code, found.stdout) == (2, "")
    assert "looks like numbers with a comma: read the file with --decimal , if the comma" in found.stderr
    assert "--labels zip" in found.stderr
    assert run("two-sample", first, second, "--labels", "zip").exit_code == 0


def test_units_do_not_matter_unless_asked(tmp_path):
    rng = np.random.default_rng(0)
    paths = [write(tmp_path / f"{i}.csv", a=rng.normal(i, 1, 40), b=rng.normal(0, 1000, 40)) for i in (0, 1)]
    assert run("two-sample", *paths, "--fail-on-reject", "--seed", 0).exit_code == 1
    assert run("two-sample", *paths, "--fail-on-reject", "--no-scale", "--seed", 0).exit_code == 0


def test_python_m_is_the_same_command():
    done = subprocess.run([sys.executable, "-m", "meanmap", "--version"], capture_output=True, text=True, check=True)
    assert meanmap.__version__ in done.stdout


def test_picture_and_page(files, tmp_path):
    first, second, _ = files
    picture, page = tmp_path / "null.svg", tmp_path / "page.html"
    assert run("two-sample", first, second, "--plot", picture, "--report", page, "--seed", 1).exit_code == 0
    assert picture.read_text().lstrip().startswith("<?xml")
    text = page.read_text()
    for expected in (
        "Do first.csv and second.csv",
        "Where they differ",
        "Which columns differ",
        "a most of all",
        "--seed 1",
    ):
        assert expected in text


def test_a_page_needs_no_package_of_pictures(files, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(pages, "find_spec", lambda name: None)
    page = tmp_path / "page.html"
    assert run("two-sample", *files[:2], "--report", page, "--seed", 1).exit_code == 0
    assert "Which columns differ" in page.read_text()
    assert "The witness function" not in page.read_text()


def test_pages_of_mixed_tables_and_of_samples_too_large_to_keep(tmp_path):
    rng = np.random.default_rng(1)
    names = [write(tmp_path / f"{i}.csv", a=rng.normal(i, 1, 40), town=rng.choice(["Ulm", "Bonn"], 40)) for i in (0, 1)]
    page = tmp_path / "page.html"
    assert run("two-sample", *names, "--seed", 0, "--report", page).exit_code == 0
    assert "a most of all" in page.read_text()
    for path in names:
        np.save(path.with_suffix(".npy"), rng.normal(size=(11_000, 2)))
    large = [path.with_suffix(".npy") for path in names]
    alike = [write(tmp_path / f"alike {i}.csv", a=rng.normal(size=40), b=rng.normal(size=40)) for i in (0, 1)]
    found = run("two-sample", *alike, "--seed", 0, "--report", page)
    assert "not rejected" in found.stdout
    assert "most of all" not in page.read_text()
    assert run("two-sample", *large, "--seed", 0, "--report", page).exit_code == 0
    assert "most of all" not in page.read_text()


@pytest.mark.parametrize(
    ("pvalues", "said"),
    [
        ({"a": 0.3, "b": 0.003, "c": 0.02}, "b most of all."),
        ({"a": 0.3, "b": 0.3, "c": 0.7}, "No single column differs clearly."),
    ],
)
def test_a_page_names_the_column_with_the_smallest_pvalue(pvalues, said, monkeypatch):
    """Within strata all shares may be zero, and the page named the first column."""
    rng = np.random.default_rng(0)
    x, y = ({name: rng.normal(shift, 1, 40) for name in "abc"} for shift in (0, 1))
    result = meanmap.two_sample_test(x, y, rng=0)
    monkeypatch.setattr(type(result), "driving_columns", lambda *_, **__: dict.fromkeys("abc", 0.0))
    monkeypatch.setattr(type(result), "column_pvalues", lambda *_, **__: pvalues)
    *_, section = pages._differences(result, 0.05, {"x": x, "y": y})
    assert section.answer == said
    assert [row[0] for row in section.tables[0][1:]] == sorted(pvalues, key=pvalues.__getitem__)


def test_columns_are_listed_once(tmp_path):
    """A page said "and 6 more on the page of --report", and the columns of tests were repeated by their effects."""
    rng = np.random.default_rng(18_200_020)
    table = {"arm": ["control", "treatment"] * 100, **{f"c{k}": rng.normal(size=200) + k % 2 for k in range(9)}}
    table["c1"][::2] -= 1
    table["c2"][:40] = np.nan
    path, page = tmp_path / "table.csv", tmp_path / "page.html"
    pd.DataFrame(table).to_csv(path, index=False)
    said = run("two-sample", path, "--by", "arm", "--effect", "--seed", 0, "--report", page).stdout
    assert said.count("mean c1: ") == said.count(" more on the page of --report") == 1
    assert "distance of embeddings " in said
    page = page.read_text()
    assert "on the page of --report" not in page
    assert page.count(">mean c1</th>") == 1
    assert page.count(">missing c2</th>") == 1
    assert page.count(">p-value</th>") == 2  # of the test, and of the columns
    assert "p-value, corrected for all columns" not in page
    assert "arm=<wbr>control" in page
    assert "shares of missing values by all rows, all else by complete rows" in page


def test_standard_input(files):
    first, second, _ = files
    found = run("two-sample", "-", second, "--json", "--seed", 2, stdin=first.read_text())
    assert found.exit_code == 0
    assert (
        json.loads(found.stdout)["pvalue"]
        == json.loads(run("two-sample", first, second, "--json", "--seed", 2).stdout)["pvalue"]
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["two-sample", "FIRST"], "give a second file, or --by"),
        (["two-sample", "FIRST", "SECOND", "--by", "a"], "give a second file, or --by"),
        (["two-sample", "FIRST", "nowhere.csv"], "nowhere.csv: No such file or directory"),
        (["two-sample", "FIRST", "TABLE"], "has a column 'a'; choose columns that both have"),
        (["two-sample", "FIRST", "SECOND", "--columns", "q"], "has no column 'q'; it has 'a', 'b'"),
        (["two-sample", "FIRST", "SECOND", "--kernel", "best"], "kernel"),
        (["two-sample", "FIRST", "SECOND", "--null", "none"], "null is 'none'"),
        (["two-sample", "FIRST", "SECOND", "--level", "2"], "expected a number between 0 and 1"),
        (["two-sample", "FIRST", "SECOND", "--plot", "FIRST.what"], "a name that ends in .png or .svg"),
        (["two-sample", "FIRST", "SECOND", "--report", "x.pdf"], "x.pdf; expected a name that ends in .html"),
        (["two-sample", "FIRST", "SECOND", "--within", ""], "--within is empty"),
        (["two-sample", "FIRST", "SECOND", "--columns", " "], "--columns is empty"),
        (["two-sample", "FIRST", "SECOND", "--kinds", "x=label,x=number"], "--kinds declares x twice"),
        (["two-sample", "FIRST", "SECOND", "--labels", "x", "--kinds", "x=number"], "as a label and as 'number'"),
        (["two-sample", "-", "-"], "standard input can be only one of the samples"),
        (["two-sample", "TABLE", "--by", "nothing"], "has no column 'nothing'"),
        (["two-sample", "TABLE", "--by", "group", "--null", "gamma"], "with 3 groups the null is permutation"),
        (["two-sample", "TABLE", "--by", "y"], "has 1 row; expected at least 5 in each group: leave such rows out."),
        (["two-sample", "TABLE", "--by", "group", "--within", "zz"], "has no column 'zz' (did you mean 'z'?)"),
        (["two-sample", "TABLE", "--by", "group", "--clusters", "x,zz"], "has no column 'zz' (did you mean 'z'?)"),
        (["two-sample", "TABLE", "--by", "group", "--weights", "zz"], "has no column 'zz' (did you mean 'z'?)"),
        (["two-sample", "TABLE", "--by", "group", "--within", "group"], "'group' of --by defines the samples"),
        (["two-sample", "FIRST", "SECOND", "--within", "zz"], "first.csv has no column 'zz'; it has 'a', 'b'"),
        (["two-sample", "TABLE", "--by", "group", "--within", "z", "--exclude", "z"], "--exclude leaves out 'z'"),
        (["independence", "TABLE", "--x", "x", "--y", "z", "--kinds", "sex"], "'sex'; expected name=kind, such as"),
        (["independence", "TABLE", "--x", "x", "--y", "z", "--kinds", "sexx=label"], "has no column 'sexx'"),
        (["independence", "TABLE", "--x", "x", "--y", "group", "--kinds", "group=u<v"], "'w', which is not a level"),
        (["independence", "TABLE", "--x", "x", "--y", "x"], "'x' is named twice"),
        (["independence", "TABLE", "--x", "x", "--y", "y", "--missing", "fill"], "'fill'; expected drop, category"),
        (["conditional", "TABLE", "--x", "x", "--y", "y", "--z", "z", "--method", "magic"], "magic"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_exit_code_2(files, arguments, said):
    names = dict(zip(["FIRST", "SECOND", "TABLE"], map(str, files), strict=True))
    found = run(*(names.get(each, each.replace("FIRST", names["FIRST"])) for each in arguments))
    assert found.exit_code == 2
    assert found.stdout == ""
    assert found.stderr.count("\n") == 1
    assert said in found.stderr


def test_a_reader_that_has_enough_is_no_bad_input():
    """`meanmap ... | head`: the pipe breaks, and typer ends the program without a word."""
    with pytest.raises(BrokenPipeError), refusals():
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")


@pytest.mark.parametrize(
    "arguments",
    [
        ["test", "independence", "FILE", "--x", "x", "--y", "y", "--report", "nowhere/a.html"],
        ["test", "independence", "FILE", "--x", "x", "--y", "y", "--plot", "nowhere/a.png"],
        ["learn-kernel", "FILE", "-o", "nowhere/a.meanmap"],
        ["discover", "FILE", "--graphml", "nowhere/a.graphml"],
        ["graph", "fit", "FILE", "-o", "nowhere/a.meanmap"],
        ["graph", "draw", "FILE", "-o", "nowhere/a.png"],
        ["demo", "--output", "nowhere/a.html"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]) + arguments[-2],
)
def test_a_folder_that_is_not_there_is_said_before_any_work(files, arguments):
    found = CliRunner().invoke(app, [str(files[2]) if part == "FILE" else part for part in arguments])
    assert found.exit_code == 2
    assert found.stderr == "meanmap: the folder nowhere does not exist; create it first.\n"


def test_a_level_that_no_pvalue_reaches_is_refused(files):
    result = run("independence", files[2], "--x", "x", "--y", "z", "--level", 0.01, "--permutations", 50)
    assert result.exit_code == 2
    assert "--permutations is 50; expected a whole number of at least 99, which level 0.01 needs" in result.output


def test_ids_and_dates_are_set_apart_unless_their_kind_is_declared(tmp_path):
    """An identifier is alike in both samples and hides that another column is not; dates as text are labels."""
    rng = np.random.default_rng(0)
    for name in ("before", "after"):
        values = rng.normal(size=30).tolist()
        rows = "".join(f"{k},u{k}-{name},{k}.1.2026,{k % 24}:30,{v!r}\n" for k, v in enumerate(values, 1))
        (tmp_path / f"{name}.csv").write_text(f"user,key,day,hour,value\n{rows}")
    files = [str(tmp_path / name) for name in ("before.csv", "after.csv")]

    def asked(*more):
        shown = CliRunner().invoke(app, ["test", "two-sample", *files, "--permutations", "99", "--seed", "0", *more])
        assert shown.exit_code == 0, shown.output
        return shown.stdout

    whole, alone = asked(), asked("--columns", "value")
    assert [line for line in whole.splitlines() if "statistic" in line or "p-value" in line] == [
        line for line in alone.splitlines() if "statistic" in line or "p-value" in line
    ]
    assert "is left out; to use it" not in alone
    for name, what, kind in (
        ("user", "only identifies the rows", "number"),
        ("key", "only identifies the rows", "label"),
        ("day", "holds dates or times as text", "time"),
        ("hour", "holds dates or times as text", "time of day"),
    ):
        pair = f"'{name}={kind}'" if " " in kind else f"{name}={kind}"
        assert whole.count(f"{name!r} {what} and is left out; to use it, pass --kinds {pair}") == 1
        assert f"{name!r} " + what not in asked("--kinds", f"{name}={kind}")
    assert "mean day: 2026-01-15T12:00" in asked("--kinds", "day=time")


def test_help_begins_with_what_to_do_and_says_when_to_use_something_else():
    shown = " ".join(CliRunner().invoke(app, ["--help"]).stdout.split())
    assert "Compare samples, find causes" in shown
    assert "meanmap test two-sample before.csv after.csv" in shown
    assert "Other tools are better if only means matter" in shown


def test_several_parquet_files_are_one_sample(tmp_path):
    rng = np.random.default_rng(0)
    frames = {}
    for name, shift in (("before", 0.0), ("after", 0.05)):
        frames[name] = polars.DataFrame({"a": rng.normal(shift, 1, 12_000), "b": rng.integers(0, 3, 12_000)})
        (tmp_path / name).mkdir()
        for i in range(3):
            frames[name][4000 * i : 4000 * (i + 1)].write_parquet(tmp_path / name / f"{i}.parquet")
    settings = {"n_permutations": 99, "rng": 0, "missing": "drop"}
    patterns = [tmp_path / name / "*.parquet" for name in frames]
    options = "--permutations", 99, "--seed", 0, "--json"
    found = json.loads(run("two-sample", *patterns, *options, "--labels", "b").stdout)
    expected = mm.two_sample_test(*frames.values(), kinds={"b": "label"}, **settings)
    assert (found["pvalue"], found["statistic"], found["sizes"]) == (expected.pvalue, expected.statistic, [12_000] * 2)
    found = json.loads(run("two-sample", tmp_path / "before", patterns[1], "--columns", "a", *options).stdout)
    chosen = [frame.select("a") for frame in frames.values()]
    assert found["pvalue"] == mm.two_sample_test(*chosen, **settings).pvalue
    few = "two-sample", tmp_path / "before", "--permutations", 19
    assert "both samples are the same 3 files: no difference can be found" in run(*few, patterns[0]).stdout
    told = run(*few, tmp_path / "before" / "[01].parquet").stdout
    assert "before/0.parquet, " in told
    assert "before/1.parquet are in both samples and hide differences" in told
    assert "both samples" not in run(*few, patterns[1]).stdout
    frames["after"].select("a").write_parquet(tmp_path / "after.parquet")
    refused = run("two-sample", tmp_path / "before", tmp_path / "after.parquet")
    assert refused.exit_code == 2
    assert "has a column 'b'; choose columns that both have, with --columns" in refused.stderr


def test_several_parquet_files_are_one_table(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.normal(size=21_000)
    frame = polars.DataFrame({"a": x, "b": x**2 + 9 * rng.normal(size=21_000), "c": rng.integers(0, 3, 21_000)})
    frame = frame.with_columns(polars.when(polars.int_range(21_000) != 5).then("a").alias("a"))
    (tmp_path / "day").mkdir()
    for i in range(3):
        frame[7000 * i : 7000 * (i + 1)].write_parquet(tmp_path / "day" / f"{i}.parquet")
    options = "--permutations", 99, "--seed", 0, "--json"
    found = json.loads(
        run("independence", tmp_path / "day", "--x", "a,c", "--y", "b", *options, "--labels", "c").stdout
    )
    settings = {"n_permutations": 99, "rng": 0, "missing": "drop"}
    expected = mm.independence_test(frame.select("a", "c"), frame.select("b"), kinds={"c": "label"}, **settings)
    assert (found["pvalue"], found["statistic"], found["sizes"]) == (expected.pvalue, expected.statistic, [20_999])
    twice = run("independence", tmp_path / "day", "--x", "a", "--y", "a")
    assert "the column 'a' is named twice among the variables" in twice.stderr
    pattern = tmp_path / "day" / "[01].parquet"
    monkeypatch.delattr(inputs, "read_columns")  # which reads them whole
    found = run("conditional", pattern, "--x", "a", "--y", "b", "--z", "c", *options, "--labels", "c")
    given, some = json.loads(found.stdout), (frame[:14_000].select(name) for name in "abc")
    whole = mm.conditional_independence_test(*some, kinds={"c": "label"}, **settings)
    assert (given["pvalue"], given["statistic"], given["sizes"]) == (whole.pvalue, whole.statistic, [13_999])


def test_files_are_read_by_one_grammar(tmp_path):
    rng = np.random.default_rng(0)
    ids, shift = 10**18 + np.arange(200) % 2, np.arange(200) % 2
    sales = shift + rng.normal(size=200)
    rows = [f"{key};{value:.3f};2026".replace(".", ",") for key, value in zip(ids, sales, strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(["shop;sales;year", *rows, "?;1,5;2026"]))
    found = run("two-sample", tmp_path / "a.csv", "--by", "shop", "--columns", "sales", "--missing", "?,-999", "--json")
    said = json.loads(found.stdout)
    assert said["sizes"] == [100, 100]
    assert said["reject"]
    assert sum("decimal comma" in note or "separated by semicolons" in note for note in said["notes"]) == 2
    (tmp_path / "b.csv").write_text("a,b\n" + "".join(f'"{i},5",{i}\n' for i in range(20)))
    found = run("independence", tmp_path / "b.csv", "--x", "a", "--y", "b", "--decimal", ",")
    assert "No: rejected" in found.stdout
    found = run("independence", tmp_path / "b.csv", "--x", "a", "--y", "b", "--decimal", ";")
    assert "--decimal is ';'; expected . or ," in found.stderr


def test_times_of_parquet_are_times_with_or_without_a_zone(tmp_path):
    hours = polars.datetime_range(datetime.datetime(2026, 1, 1), datetime.datetime(2026, 1, 4), "1h", eager=True)
    for name, column in (("a", hours), ("b", hours.dt.offset_by("2d")), ("c", hours.dt.replace_time_zone("UTC"))):
        polars.DataFrame({"t": column}).write_parquet(tmp_path / f"{name}.parquet")
    found = run("two-sample", tmp_path / "a.parquet", tmp_path / "b.parquet", "--json")
    assert json.loads(found.stdout)["reject"]
    found = run("two-sample", tmp_path / "a.parquet", tmp_path / "c.parquet")
    assert found.exit_code == 2
    assert "c.parquet['t'] holds times with a zone, and " in found.stderr


def test_kinds_say_what_columns_of_two_files_are_before_they_are_compared(tmp_path):
    for name, first in (("a", "010"), ("b", "110")):
        (tmp_path / f"{name}.csv").write_text("z\n" + "\n".join([first] + [str(i) for i in range(111, 150)]) + "\n")
    found = run("two-sample", tmp_path / "a.csv", tmp_path / "b.csv", "--kinds", "z=number", "--seed", 0)
    assert found.exit_code == 0, found.stderr
    assert "say so with" not in found.stdout
    days = [datetime.date(2026, 1, 1) + datetime.timedelta(days=i) for i in range(40)]
    write(tmp_path / "t.csv", t=days)
    polars.DataFrame({"t": days}).write_parquet(tmp_path / "t.parquet")
    found = run("two-sample", tmp_path / "t.csv", tmp_path / "t.parquet", "--kinds", "t=time", "--seed", 0)
    assert found.exit_code == 0, found.stderr


def test_kinds_may_be_those_of_columns_that_are_not_used(files, tmp_path):
    table, parts = files[2], tmp_path / "parts"
    kinds = ("--kinds", "sex=label,z=angle", "--seed", 0)
    used = ("--x", "x", "--y", "y", *kinds)
    parts.mkdir()
    frame = polars.read_csv(table)
    for k in (0, 1):
        frame[30 * k : 30 * k + 30].write_parquet(parts / f"{k}.parquet")
    for arguments in (
        ("independence", table, *used),
        ("independence", table, *used, "--within", "group", "--effect"),
        ("independence", table, *used, "--within", "sex"),
        ("independence", parts, *used),
        ("conditional", table, *used, "--z", "group"),
        ("y ~ x", table, *kinds),
        ("two-sample", table, "--by", "group", "--columns", "x,y", *kinds),
        ("two-sample", table, table, "--columns", "x,y", *kinds),
        ("two-sample", parts, parts, "--columns", "x,y", *kinds),
    ):
        found = run(*arguments)
        assert found.exit_code == 0, (arguments, found.stderr)
    for said in (("--kinds", "sexx=label"), ("--kinds", "sexx=number"), ("--labels", "sexx")):
        for arguments in (
            ("independence", table, "--x", "x", "--y", "y"),
            ("two-sample", table, table, "--columns", "x,y"),
            ("two-sample", parts, parts, "--columns", "x,y"),
        ):
            found = run(*arguments, *said)
            assert (found.exit_code, "no column 'sexx'" in found.stderr) == (2, True), (arguments, found.stderr)


def test_files_whose_columns_differ_are_compared_by_those_that_all_have(tmp_path):
    rng = np.random.default_rng(0)
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        for k, more in enumerate(({}, {"extra": np.arange(20)})):
            columns = {"x": rng.normal(size=20), "g": ["u", "v"] * 10, "y": rng.normal(size=20), **more}
            polars.DataFrame(columns).write_parquet(tmp_path / folder / f"{k}.parquet")
    one, two = tmp_path / "one", tmp_path / "two"
    for arguments in (
        ("two-sample", one, two, "--columns", "x,g"),
        ("two-sample", one, two, "--columns", "x,g", "--effect"),
        ("two-sample", one, "--by", "g", "--columns", "x"),
        ("independence", one, "--x", "x", "--y", "g"),
        ("independence", one, "--x", "x", "--y", "y", "--within", "g"),
        ("x ~ g", one),
    ):
        found = run(*arguments, "--seed", 0)
        assert found.exit_code == 0, (arguments, found.stderr)
    for arguments in (("two-sample", one, two), ("two-sample", one, "--by", "g", "--labels", "g")):
        found = run(*arguments)
        assert (found.exit_code, "name the columns that all files have" in found.stderr) == (2, True), found.stderr


def test_blocks_of_no_rows_are_refused(files):
    found = run("independence", files[2], "--x", "x", "--y", "y", "--clusters", "0")
    assert (found.exit_code, "clusters is 0" in found.stderr) == (2, True), found.stderr


def test_columns_whose_names_hold_a_comma(tmp_path):
    rng = np.random.default_rng(0)
    path = write(tmp_path / "table.csv", **{'"sun, really"': rng.normal(size=40), "b": rng.normal(size=40)})
    found = run("independence", path, "--x", '"sun, really"', "--y", "b")
    assert found.exit_code == 0, found.output
    found = run("independence", path, "--x", "sun, really", "--y", "b")
    assert "has no column 'sun'; 'sun, really' holds a comma: write '\"sun, really\"'" in found.stderr


def test_what_is_missing_or_twice_is_said(files, tmp_path):
    first, _, table = files
    rng = np.random.default_rng(0)
    path = write(tmp_path / "gaps.csv", l=["", *["u", "v"] * 20], b=rng.normal(size=41))
    found = run("independence", path, "--x", "l", "--y", "b", "--missing", "category")
    assert "are a label, '(missing)': 'l' (1)" in found.stdout
    assert "no difference can be found" in run("two-sample", first, first).stdout
    assert "no difference can be found" not in run("two-sample", first, files[1]).stdout
    found = run("two-sample", table, "--by", "group", "--columns", "group")
    assert "has nothing to compare besides 'group' of --by: name other columns with --columns." in found.stderr
    found = run("two-sample", table, "--by", "sex", "--columns", "x", "--weights", "group")
    assert "weights are labels, such as 'u'; expected numbers" in found.stderr
    found = CliRunner().invoke(app, ["ep", "logistic", str(table), "--y", "x", "--x", "z"])
    assert "for other numbers `meanmap ep robust`" in found.stderr


def test_a_space_is_declared_at_the_command_line(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a b\n" + "\n".join(f"{i % 7} {i % 5}" for i in range(30)) + "\n")
    refused = run("two-sample", path, path)
    assert "say --delimiter ' ', or --labels 'a b' if each line is one label" in refused.stderr
    assert "not rejected" in run("two-sample", path, path, "--delimiter", " ").stdout
    path.write_text("a;b\n" + "\n".join(f"{i + 1} 250;{i % 5}" for i in range(30)) + "\n")
    assert "looks like" not in run("two-sample", path, path, "--thousands", " ").output
    assert "--thousands is empty" in run("two-sample", path, path, "--thousands", "").stderr


def test_thousands_are_declared_at_the_command_line(tmp_path):
    rng = np.random.default_rng(0)
    price = [f'"{value:,.2f}"' for value in rng.lognormal(7, 1, 80)]
    arm = np.repeat(["A", "B"], 40)
    path = tmp_path / "prices.csv"
    path.write_text("arm,price\n" + "".join(f"{a},{p}\n" for a, p in zip(arm, price, strict=True)))
    refused = run("two-sample", path, "--by", "arm")
    assert "',' separates its thousands, say so: --thousands ," in refused.stderr
    found = run("two-sample", path, "--by", "arm", "--thousands", ",", "--seed", 0)
    assert found.exit_code == 0, found.stderr
    assert "mean price" in found.stdout
    refused = run("two-sample", path, "--by", "arm", "--thousands", "_")
    assert "--thousands is '_'; expected , . ' or a space" in refused.stderr


def test_samples_have_their_names_in_all_lines(tmp_path):
    """Notes and the effect called them x and y."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"arm": np.repeat(["A", "B"], 60), "score": rng.normal(size=120), "same": 1.0})
    table.loc[3, "score"] = 99999
    table.to_csv(tmp_path / "table.csv", index=False)
    found = run("two-sample", tmp_path / "table.csv", "--by", "arm", "--effect", "--seed", 0)
    assert "column 'score' of arm=A and arm=B holds 99999 in 1 of 120 rows" in found.stdout
    assert "difference between arm=A and arm=B, with 95% intervals" in found.stdout
    for name in "ab":
        table[["score"]].to_csv(tmp_path / f"{name}.csv", index=False)
    found = run("two-sample", tmp_path / "a.csv", tmp_path / "b.csv", "--seed", 0)
    assert "b.csv holds exactly the rows of a.csv" in found.stdout


def test_gaps_that_go_with_another_column_are_noted(tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "clinic.csv"
    cost = rng.normal(size=300)
    known = rng.random(300) < np.where(cost > 0, 0.95, 0.3)
    rows = [f"{'ab'[k % 2]},{cost[k]:.3f},{f'{rng.normal():.3f}' if known[k] else ''}" for k in range(300)]
    path.write_text("\n".join(["arm,cost,severity", *rows]))
    for asked in (["two-sample", path, "--by", "arm"], ["cost ~ severity", path]):
        assert "warning    the gaps of 'severity' go with 'cost': its mean is " in run(*asked, "--seed", 0).stdout


def test_a_file_with_points_beside_a_decimal_comma_says_which_option_does_it(tmp_path):
    """It was "looks like numbers: convert it", of a file that is right: --decimal , was typed for the other one."""
    rng = np.random.default_rng(0)
    for name, mark in (("comma", ","), ("point", ".")):
        cells = [f"{a:.4f};{b:.2f}".replace(".", mark) for a, b in rng.normal(20, 3, size=(60, 2))]
        (tmp_path / f"{name}.csv").write_text("\n".join(["x;y", *cells]) + "\n")
    found = run("two-sample", tmp_path / "comma.csv", tmp_path / "point.csv", "--decimal", ",")
    assert found.exit_code == 2
    assert "looks like numbers: convert it (with --decimal , decimal points are not read)" in found.output
    assert run("two-sample", tmp_path / "comma.csv", tmp_path / "point.csv").exit_code == 0
