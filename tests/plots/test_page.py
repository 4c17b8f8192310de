"""Pages that everyone can read: marked up, reachable by keyboard, with enough contrast."""

import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from matplotlib.figure import Figure

from meanmap.plots.facts import Section
from meanmap.plots.page import render

STYLE = (files("meanmap.plots") / "charting" / "page.css").read_text("utf-8")


def figure():
    made = Figure(figsize=(1, 1))
    made.subplots().plot([1, 2])
    return made


SECTIONS = [
    Section(f"Part {i} <of> many", "It came out.", code="meanmap demo", figures=((figure(), 'A line, "rising"'),),
            tables=((("name", "value"), ("a", "1"), ("b", "2")),))
    for i in range(6)
]  # fmt: skip


class Page(HTMLParser):
    """What a reader of the page meets, in order; a place where a word may break is no such thing."""

    def __init__(self, text):
        super().__init__()
        self.met, self.open = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        if tag == "wbr":
            return
        self.met.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "img", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def all(self, tag):
        return [found for name, found in self.met if name == tag]


def test_a_page_is_marked_up():
    page = Page(render("A page", "What it is about.", SECTIONS))
    assert page.all("html") == [{"lang": "en"}]
    assert "width=device-width" in page.all("meta")[1]["content"]
    assert len(page.all("main")) == len(page.all("h1")) == 1
    assert [image["alt"] for image in page.all("img")] == ['A line, "rising"'] * 6
    scopes = [cell["scope"] for cell in page.all("th")]
    assert scopes == ["col", "col", "row", "row"] * 6
    assert [cell.get("class") for cell in page.all("td")] == ["number"] * 12  # numbers stand below each other
    facts, script = page.all("script")  # what sorts tables, but no library where nothing is drawn
    assert facts == {"type": "application/json", "id": "facts"}
    assert script == {}


def test_a_page_is_walked_through_by_keyboard():
    page = Page(render("A page", "What it is about.", SECTIONS))
    ids = [section["id"] for section in page.all("section")]
    assert len(set(ids)) == 6
    links = [link["href"] for link in page.all("a")]
    assert links == ["#part-1", *(f"#{name}" for name in ids)]  # the first skips the list
    assert all(pre["tabindex"] == "0" for pre in page.all("pre"))
    regions = page.all("div")
    assert all((div["tabindex"], div["role"]) == ("0", "region") and div["aria-label"] for div in regions)
    assert len({div["aria-label"] for div in regions}) == 6
    assert ":focus-visible { outline: 3px" in STYLE
    assert "outline: none" not in STYLE
    assert not Page(render("A page", "Short.", SECTIONS[:2])).all("nav")


def luminance(colour):
    """Relative luminance (WCAG 2.2)."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first, second):
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_of_known_colours():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_stands_out(scheme):
    colours = [dict(re.findall(r"--(\w+): (#\w{6})", block)) for block in re.findall(r":root \{(.*?)\}", STYLE)]
    assert len(colours) == 2
    chosen = colours[scheme]
    assert set(chosen) == {"ink", "paper", "line", "soft", "link"}
    for text in ("ink", "link"):
        for ground in ("paper", "soft"):
            assert contrast(chosen[text], chosen[ground]) >= 4.5, (text, ground)


def test_pictures_with_panels_side_by_side_scroll_on_small_screens():
    wide = Figure(figsize=(4, 1))
    wide.subplots(1, 3)
    narrow, scrolled = (render("A", "B", [Section("C", "D", figures=((made, "drawn"),))]) for made in (figure(), wide))
    assert 'class="wide"' not in narrow
    assert Page(scrolled).all("div") == [
        {"class": "wide", "role": "region", "aria-label": "a wide picture", "tabindex": "0"}
    ]


def test_heads_of_tables_break_within_names():
    """A page broke "arm=co|ntrol" on a small screen."""
    page = render("x", "", [Section("x", "", tables=((("what", "arm=control", "p-value"), ("unit_price", "1", "2")),))])
    assert ">arm=<wbr>control<" in page
    assert ">unit_<wbr>price<" in page
    assert ">p-value<" in page
