"""`meanmap discover` and `meanmap graph`: from a file to a graph, a model and answers."""

import json
import re

import networkx
import numpy as np
import pytest
from typer.testing import CliRunner

import meanmap as mm
from meanmap.cli.commands import app


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture(scope="module")
def farm(tmp_path_factory):
    """Growth has two causes and one effect; the class follows from the harvest."""
    rng = np.random.default_rng(0)
    sun, water = rng.normal(size=(2, 200))
    growth = np.tanh(sun) + np.abs(water) + 0.2 * rng.normal(size=200)
    harvest = growth**2 + 0.5 * rng.normal(size=200)
    rows = zip(sun, water, growth, harvest, np.where(harvest > 1.0, "rich", "poor"), strict=True)
    path = tmp_path_factory.mktemp("farm") / "farm.csv"
    path.write_text("sun,water,growth,harvest,class\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def model(farm):
    path = farm.parent / "farm.meanmap"
    found = run("graph", "fit", farm, "-o", path, "--edges", "growth-harvest,harvest-class")
    assert found.stdout.endswith("growth-harvest, harvest-class\n")
    return path


@pytest.fixture(scope="module")
def holes(tmp_path_factory):
    """Sixty rows, two of them whole: two of three values are there."""
    rng = np.random.default_rng(1)
    a = rng.normal(size=60)
    table = np.column_stack([a, a + 0.2 * rng.normal(size=60), a > 0]).astype(object)
    table[:, 2] = np.where(table[:, 2], "yes", "no")
    table[np.arange(58), np.arange(58) % 3] = ""
    path = tmp_path_factory.mktemp("holes") / "holes.csv"
    path.write_text("a,b,c\n" + "".join(",".join(map(str, row)) + "\n" for row in table))
    return path


def test_each_pair_of_columns_leaves_out_its_own_rows(holes, tmp_path):
    dropped = run("discover", holes, "--method", "tree")
    assert dropped.exit_code == 2
    assert f"only 2 rows of {holes} are left: 58 of 60 rows" in dropped.stderr
    tree = run("discover", holes, "--method", "tree", "--missing", "pairwise", "--json")
    found = json.loads(tree.stdout)
    assert len(found["edges"]) == 2
    told = "rows of table are left out where a value of the pair is missing: 'a' (20), 'b' (19), 'c' (19)."
    assert told in found["notes"]
    fitted = run("graph", "fit", holes, "-o", tmp_path / "m.meanmap", "--missing", "pairwise", "--edges", "a-b,b-c")
    assert "are left out where a value of the pair is missing: 'a' (20), 'b' (19), 'c' (19)." in fitted.stdout
    pc = run("discover", holes, "--missing", "pairwise")
    assert "--missing is 'pairwise'; expected drop, category or raise" in pc.stderr


def test_a_time_of_day_is_evidence_and_a_target(tmp_path):
    rng = np.random.default_rng(0)
    hours = rng.integers(0, 24, 120)
    warm = np.cos(2 * np.pi * (hours - 14) / 24) + 0.1 * rng.normal(size=120)
    path, model = tmp_path / "warm.csv", tmp_path / "m.meanmap"
    path.write_text("at,warm\n" + "".join(f"{h:02}:30,{w}\n" for h, w in zip(hours, warm, strict=True)))
    run("graph", "fit", path, "-o", model, "--kinds", "at=time of day")
    assert float(re.search("warm: mean (\\S+),", run("graph", "query", model, "--given", "at=14:00").stdout)[1]) > 0.8
    found = run("graph", "query", model, "--given", "warm=1", "--report", tmp_path / "page.html")
    assert re.search(r"at: mean cosine -0\.\d+, mean sine -0\.\d+", found.stdout)


def test_an_error_about_what_is_left_says_what_was_left_out(tmp_path):
    """Where b is there, a does not vary."""
    path = tmp_path / "left.csv"
    path.write_text("a,b\n" + "".join(f"{i if i < 30 else 7},{'' if i < 30 else i * i}\n" for i in range(50)))
    found = run("test", "independence", path, "--x", "a", "--y", "b")
    assert found.exit_code == 2
    assert "constant" in found.stderr
    assert "30 of 50 rows" in found.stderr
    assert "a value is missing in 'b' (30)" in found.stderr


ARROWS = [("sun", "growth"), ("water", "growth")]


def test_discover_finds_causes(farm, tmp_path):
    arguments = ["discover", farm, "--columns", "sun,water,growth", "--seed", 0]
    found = json.loads(
        run(*arguments, "--json", "--graphml", tmp_path / "a.graphml", "--plot", tmp_path / "a.png").stdout
    )
    assert sorted((edge["from"], edge["to"]) for edge in found["edges"]) == ARROWS
    assert sorted(networkx.read_graphml(tmp_path / "a.graphml").edges) == ARROWS
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert "sun → growth" in run(*arguments, "--report", tmp_path / "a.html").stdout
    page = (tmp_path / "a.html").read_text()
    assert "<td>growth</td>" in page
    assert '"kind":"nodes"' in page
    assert "no common cause of two columns is missing" in page
    assert "after Holm" in page


def test_what_is_known_is_kept(farm):
    found = run("discover", farm, "--columns", "sun,growth", "--seed", 0, "--tiers", "growth/sun", "--json")
    assert [(edge["from"], edge["to"]) for edge in json.loads(found.stdout)["edges"]] == [("growth", "sun")]
    found = run("discover", farm, "--columns", "sun,growth", "--forbidden", "sun>growth,growth>sun", "--json")
    assert json.loads(found.stdout)["edges"] == []


def test_an_edge_without_direction_is_listed_once(farm):
    found = run("discover", farm, "--columns", "sun,growth", "--seed", 0, "--json")
    (edge,) = json.loads(found.stdout)["edges"]
    assert (edge["from"], edge["to"], edge["directed"]) == ("sun", "growth", False)


def test_pvalues_of_edges_are_shown_with_the_correction_for_their_number(farm):
    asked = ("discover", farm, "--columns", "sun,growth,water", "--seed", 0)
    edges = json.loads(run(*asked, "--json").stdout)["edges"]
    assert all(0 < edge["pvalue"] <= edge["adjusted"] <= 1 for edge in edges)
    standing = sum(edge["adjusted"] <= 0.05 for edge in edges)
    assert f"edges at this level after Holm's correction: {standing}" in run(*asked).stdout


def test_a_tree_joins_everything(farm):
    found = json.loads(
        run("discover", farm, "--method", "tree", "--columns", "water,growth,class", "--json", "--seed", 0).stdout
    )
    assert len(found["edges"]) == 2
    assert all(edge["weight"] > 0 for edge in found["edges"])


def test_queries_are_those_of_the_model(farm, model):
    found = json.loads(run("graph", "query", model, "--given", "growth=2", "--json").stdout)["beliefs"]
    fitted = mm.load(model)
    beliefs = fitted.query({"growth": 2.0})
    assert list(found) == ["harvest", "class"]
    assert found["harvest"]["mean"] == pytest.approx(float(beliefs["harvest"].mean()), rel=1e-9)
    assert 3.0 < found["harvest"]["mean"] < 5.0
    assert found["class"]["rich"] > 0.9
    assert sum(found["class"].values()) == pytest.approx(1.0)


def test_labels_as_evidence_and_pictures(model, tmp_path):
    picture = tmp_path / "q.svg"
    found = run("graph", "query", model, "--given", "class=poor", "--target", "harvest,growth", "--plot", picture)
    assert found.stdout.startswith("harvest: mean ")
    assert "<svg" in picture.read_text()
    run("graph", "query", model, "--given", "class=poor", "--target", "harvest", "--report", tmp_path / "q.html")
    assert "Beliefs given class=poor" in (tmp_path / "q.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["discover", "FARM", "--method", "magic"], "expected pc or tree"),
        (
            ["discover", "FARM", "--required", "sun-growth"],
            "--required has 'sun-growth', which is not an arrow; expected cause>effect",
        ),
        (["discover", "FARM", "--required", "moon>growth"], "moon"),
        (["discover", "FARM", "--method", "tree", "--tiers", "sun"], "are for --method pc"),
        (
            ["graph", "fit", "FARM", "-o", "OUT", "--edges", "sun>growth"],
            "--edges has 'sun>growth', which is not an edge; expected a-b",
        ),
        (["graph", "fit", "FARM", "-o", "OUT", "--edges", "sun-moon"], "has no column 'moon'"),
        (["graph", "query", "FARM"], "not written by mm.save"),
        (["graph", "query", "nowhere"], "nowhere: No such file or directory"),
        (["graph", "query", "MODEL", "--given", "growth"], "expected name=value"),
        (["graph", "query", "MODEL", "--given", "moon=1"], "with a name among growth, harvest, class"),
        (["graph", "query", "MODEL", "--given", "growth=tall"], "growth is a number; got 'tall'"),
        (["graph", "query", "MODEL", "--given", "class=middle"], "class has no label 'middle'; it has poor, rich"),
        (["graph", "query", "MODEL", "--target", "moon"], "moon"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(farm, model, tmp_path, arguments, said):
    names = {"FARM": farm, "MODEL": model, "OUT": tmp_path / "out"}
    found = run(*(names.get(each, each) for each in arguments))
    assert found.exit_code == 2, found.exception
    assert found.stdout == ""
    assert found.stderr.count("\n") == 1
    assert said in found.stderr
    assert not (tmp_path / "out").exists()


def test_what_is_known_is_said_once_and_in_numbers(model):
    name = mm.load(model).graph.names[0]
    for value in ("1_0", "٣"):
        found = run("graph", "query", model, "--given", f"{name}={value}")
        assert (found.exit_code, "is a number; got" in found.stderr) == (2, True), found.stderr
    found = run("graph", "query", model, "--given", f"{name}=1", "--given", f"{name}=2")
    assert (found.exit_code, f"names {name} twice" in found.stderr) == (2, True), found.stderr


def test_names_with_separators_are_quoted_in_tiers_arrows_and_edges(farm, tmp_path):
    """A column called "sun h/week" could not be given a tier."""
    path = tmp_path / "names.csv"
    path.write_text(farm.read_text().replace("sun,water", '"sun h/week","water, l>d-e"', 1))
    options = ["--columns", 'sun h/week,growth,"water, l>d-e"', "--seed", 0, "--json"]
    tiers = '"sun h/week","water, l>d-e"/growth'
    found = run("discover", path, *options, "--tiers", tiers)
    assert found.exit_code == 0, found.stderr
    arrows = {(edge["from"], edge["to"]) for edge in json.loads(found.stdout)["edges"]}
    assert arrows == {("sun h/week", "growth"), ("water, l>d-e", "growth")}
    unquoted = run("discover", path, *options, "--tiers", "sun h/week/growth")
    assert unquoted.exit_code == 2
    assert "--tiers has 'sun h', which is only a part of a name: quote the name, '\"sun h/week\"'" in unquoted.stderr
    known = run("discover", path, *options, "--required", '"water, l>d-e">growth')
    assert ("water, l>d-e", "growth") in {(e["from"], e["to"]) for e in json.loads(known.stdout)["edges"]}
    fitted = run("graph", "fit", path, "-o", tmp_path / "m", "--edges", 'growth-harvest,"water, l>d-e"-growth')
    assert fitted.exit_code == 0, fitted.stderr
