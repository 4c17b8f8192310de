"""Pages of results: one file, facts that are Python's numbers, names that stay text, and files that are ours."""

import json
import re

import numpy as np
import pytest

import meanmap as mm
from meanmap.core.errors import ParameterError
from meanmap.plots.columns import groups_chart, pairs_chart
from meanmap.plots.facts import Axis, Chart, Control, Mark, Page, Panel, Section
from meanmap.plots.networks import Link, network_chart
from meanmap.plots.page import fragment, render, write_page
from meanmap.plots.sketch import sketch
from tests.plots.test_page import Page as Reader

NAMES = [
    "</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", '"><svg onload=alert(1)>', "' onclick='x",
    "<!-- x", "]]>", "&amp;", "&lt;b&gt;", "a<b", "{{x}}", "${alert(1)}", "`x`", "\\u003c", "a\nb", "\u202egnihsif",
    "עברית", "🦄", "e\u0301", "a\u2028b", "__proto__", "null",
]  # fmt: skip


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(0)
    first, second = (
        {"age": rng.normal(40 + s, 5, 80), "income": rng.lognormal(9, 2, 80), "site": rng.choice(list("ab"), 80)}
        for s in (0, 6)
    )
    return mm.two_sample_test(first, second, rng=0, n_permutations=99)


def facts_of(path):
    text = path.read_text("utf-8")
    (found,) = re.findall(r'<script type="application/json" id="facts">(.*?)</script>', text, re.DOTALL)
    return json.loads(found)


def test_a_page_is_one_small_file_with_the_facts_of_python(result, tmp_path):
    path = result.page(tmp_path / "difference.html")
    assert path == tmp_path / "difference.html"
    text = path.read_text("utf-8")
    assert len(text.encode()) < 1e6
    reader = Reader(text)
    assert not [each for each in reader.met if {"src", "href"} & set(each[1]) and each[0] not in ("a", "link")]
    assert [each["href"] for each in reader.all("link")] == ["data:,"]
    assert facts_of(path)["facts"] == json.loads(json.dumps(result.to_dict()))


def test_the_first_picture_is_the_data(result, tmp_path):
    chart, null = facts_of(result.page(tmp_path / "a.html"))["charts"]
    assert chart["controls"][0]["choices"] == ["age", "site", "income"]
    assert sum(null["panels"][0]["marks"][0]["y"]) == 99
    bars = chart["panels"][0]["marks"]
    assert [mark["series"] for mark in bars] == ["x", "y"]
    ages = result.shown.columns(0)["age"]
    counts, _ = np.histogram(ages, [*bars[0]["x1"], bars[0]["x2"][-1]])
    np.testing.assert_allclose(bars[0]["y"], 100 * counts / 80, atol=1.3)  # edges are rounded


def test_long_tails_do_not_squash_the_rest():
    rng = np.random.default_rng(0)
    values = np.append(rng.normal(size=2000), 1e6)
    (panel,) = groups_chart("a", {"x": {"v": values}}).panels
    assert panel.marks[0].places["x2"].max() < 10
    assert panel.note.startswith("0.05% of rows lie outside of ")
    assert "and 1e+06" in panel.note
    heavy = np.exp(rng.normal(0.0, 1.6, 400))
    (panel,) = groups_chart("a", {"x": {"v": heavy}}).panels
    assert panel.marks[0].places["y"].max() < 50  # in bars of the whole range it was 70% and more
    (panel,) = pairs_chart("a", {"v": values}, {"w": rng.normal(size=2001)}).panels
    assert np.max(panel.marks[0].places["x"]) < 10
    assert "rows lie further out and are not drawn" in panel.note


def test_constant_columns_missing_numbers_and_many_labels():
    columns = {"one": np.ones(9), "gap": np.array([np.nan, *range(8)]), "id": np.array([f"r{i}" for i in range(90)])}
    chart = groups_chart("a", {"x": {**columns, "town": np.array([f"t{i % 20}" for i in range(90)])}})
    assert chart.controls[0].choices == ("one", "gap", "town")
    assert chart.panels[2].x.ticks[-1] == (12.0, "8 more")
    np.testing.assert_allclose(np.sum(chart.panels[2].marks[0].places["y"]), 100)
    assert groups_chart("a", {"x": {"id": columns["id"]}}) is None


@pytest.mark.parametrize("groups", [2, 4])
def test_numbers_of_few_values_have_a_bar_at_each(groups):
    """A line between 0 and 1 said that half of the rows were at one half, and the axis began at -0.5."""
    arms = {f"arm {k}": {"converted": np.repeat([0.0, 1.0, np.nan], [90 - k, 10 + k, 3])} for k in range(groups)}
    (panel,) = groups_chart("a", arms).panels
    assert panel.x.ticks == ((0.0, "0"), (1.0, "1"))
    assert {mark.kind for mark in panel.marks} == {"bars"}
    for k, mark in enumerate(panel.marks):
        np.testing.assert_allclose(mark.places["y"], [90 - k, 10 + k])


def test_what_is_not_a_page_is_not_written_over(result, tmp_path):
    path = tmp_path / "a.html"
    path.write_text("<p>a novel")
    with pytest.raises(ParameterError, match=r"a\.html exists and is not a page of meanmap; choose another name"):
        result.page(path)
    assert path.read_text() == "<p>a novel"
    path.unlink()
    result.page(path)
    result.page(path)  # over a page
    with pytest.raises(ParameterError, match=r"expected a name that ends in \.html or \.htm"):
        result.page(tmp_path / "a.txt")
    with pytest.raises(ParameterError, match="does not exist; create it first"):
        result.page(tmp_path / "nowhere" / "a.html")


@pytest.mark.parametrize("name", NAMES)
def test_names_stay_text(name, tmp_path):
    places = {"x": [0.0, 1.0], "y": [1.0, 2.0]}
    marks = (Mark("nodes", {**places, "above": [0.0, 1.0]}, name, (name, name)), Mark("line", places, name))
    panel = Panel(Axis(name), Axis(name, ticks=((1.0, name),)), marks, name)
    chart = Chart(name, (panel, panel), (Control(name, (name, name), slider=True),))
    plain = Chart("x", (Panel(Axis("x"), Axis("x"), marks[1:]),))
    table = (("what", name, name), (name, name, name))
    page = Page(name, name, (Section(name, name, name, name, tables=(table,), charts=(chart,)),), {name: name})
    text = write_page(tmp_path / "a.html", page).read_text("utf-8")
    usual = Page(
        "x", "x", (Section("x", "x", "x", "x", tables=((("what", "x", "x"), ("x", "x", "x")),), charts=(chart,)),)
    )
    tags = [tag for tag, _ in Reader(text).met]
    assert tags == [tag for tag, _ in Reader(render("x", "x", usual.sections)).met]
    assert tags.count("script") == 4
    assert not [key for _, attributes in Reader(text).met for key in attributes if key.startswith("on")]
    assert facts_of(tmp_path / "a.html")["facts"] == {name: name}
    shown = [tag for tag, _ in Reader(fragment(page)).met]
    assert "script" not in shown
    assert "img" not in shown
    assert sketch(plain).count("<") == sketch(plain).count(">")


def test_halves_of_characters_and_zeros_do_not_stop_a_page(tmp_path):
    page = Page("a\ud800b\0c", "", (Section("a", "b"),))
    assert "a?b\N{REPLACEMENT CHARACTER}c" in write_page(tmp_path / "a.html", page).read_text("utf-8")


def test_notebooks_show_the_picture_and_the_numbers_without_scripts(result):
    text = result._repr_html_()
    assert "<svg" in text
    assert "<script" not in text
    assert f"{result.pvalue:.4g}" in text
    assert len(text) < 30_000


def test_logarithmic_axes_and_what_is_not_finite_in_a_still_picture():
    marks = (Mark("line", {"x": [1.0, 2.0, np.nan], "y": [1.0, 1000.0, 5.0]}), Mark("rules", {"y": [10.0]}))
    text = sketch(Chart("a", (Panel(Axis("x"), Axis("y", log=True), marks),)))
    assert ">100</text>" in text
    assert "nan" not in text


def test_a_still_log_axis_has_several_ticks():
    marks = (Mark("line", {"x": [50, 100], "y": [0.2, 0.9]}),)
    drawn = sketch(Chart("Power", (Panel(Axis("points", log=True), Axis("rate"), marks),)))
    assert ">50<" in drawn
    assert ">100<" in drawn


def test_names_of_nodes_lie_where_fewer_arrows_end():
    """Arrowheads were hidden behind the names of the nodes at which they end."""
    chart = network_chart(
        "Causes", ["a", "b", "c"], [Link(0, 1, True), Link(2, 1, True)], {"a": (0, 1), "b": (0, 0), "c": (1, 2)}
    )
    nodes = chart.panels[0].marks[-1]
    assert nodes.places["above"].tolist() == [1, 0, 1]
    assert network_chart("One", ["a"], []).panels[0].marks[-1].places["above"].tolist() == [1]
    drawn = sketch(network_chart("Long", ["a name of many letters!", "b"], [Link(0, 1)]))
    (start,) = (float(x) for x in re.findall(r'<text x="([\d.]+)"[^>]*>a name', drawn))
    assert start >= 3.3 * 23  # all of it is inside
