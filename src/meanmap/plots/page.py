"""One self-contained HTML page from titled sections of text, numbers, charts and pictures."""

import base64
import html
import io
import json
import math
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from meanmap.core.errors import ParameterError
from meanmap.core.saved.files import to_write, write_whole
from meanmap.plots.facts import Chart, Control, Page, Section
from meanmap.plots.sketch import COLOURS, sketch

__all__ = ["Section", "as_json", "fragment", "made_by", "page_to_write", "png_of", "render", "write_page"]

# Figures wider than this many times their height have panels side by side.
WIDE = 2.2
# Numbers do not break at spaces; longer cells that begin with a digit are sentences, which do.
LONGEST_NUMBER = 24
# In tables with more columns numbers break, too: a value and its error stand on two lines.
MOST_UNBROKEN = 5
# A page of more sections begins with a list of them.
MOST_WITHOUT_LIST = 4
# How a page says that it is one.
MADE = '<meta name="generator" content="meanmap">'
ENDINGS = (".html", ".htm")


def made_by() -> str:
    """The versions that a page was made with, as its footer says them."""
    return f"meanmap {sys.modules['meanmap'].__version__}, Python {platform.python_version()}"


def render(title: str, lead: str, sections: Sequence[Section], footer: str = "", facts: Mapping[str, Any] = {}) -> str:
    """The page as one HTML document with its pictures inside, and the script of its charts if it has any.

    Examples
    --------
    >>> page = render("A page", "What it is about.", [Section("First", "It is 1 < 2.")])
    >>> "It is 1 &lt; 2." in page
    True
    """
    charts = [chart for section in sections for chart in section.charts]
    before = [sum(len(section.charts) for section in sections[:i]) for i in range(len(sections))]
    parts = [_section(section, i, first) for i, (section, first) in enumerate(zip(sections, before, strict=True), 1)]
    listed = sections if len(sections) > MOST_WITHOUT_LIST else []
    links = "".join(f'<li><a href="#part-{i}">{html.escape(part.title)}</a></li>\n' for i, part in enumerate(listed, 1))
    whole = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
{MADE}
<title>{html.escape(title)}</title>
<link rel="icon" href="data:,">
<style>{_asset("page.css")}</style>
</head>
<body>
<a class="skip" href="#part-1">Skip to the first section</a>
<main>
<h1>{html.escape(title)}</h1>
<p>{html.escape(lead)}</p>
{f'<nav aria-label="Sections"><ul>{links}</ul></nav>' if links else ""}
{chr(10).join(parts)}
<footer>{html.escape(footer)}</footer>
</main>
{_scripts(charts, facts)}</body>
</html>
"""
    return _writable(whole)


def page_to_write(path: str | Path) -> None:
    """Refuse a name under which no page can be written, before there is one.

    Raises
    ------
    ParameterError
        If the name does not end in .html, or something else is in the file.
    """
    target = to_write(path)
    if target.suffix.lower() not in ENDINGS:
        raise ParameterError(f"path is {path}; expected a name that ends in {' or '.join(ENDINGS)}.")
    if not target.parent.is_dir():
        raise ParameterError(f"the folder {target.parent} does not exist; create it first.")
    if target.exists() and target.stat().st_size and MADE.encode() not in target.read_bytes()[:2000]:
        raise ParameterError(f"{path} exists and is not a page of meanmap; choose another name, or delete it first.")


def write_page(path: str | Path, page: Page, footer: str = "") -> Path:
    """Write a page to a file, new or a page that was written before, and return its path.

    Raises
    ------
    ParameterError
        If the name does not end in .html, or something else is in the file.
    """
    page_to_write(path)
    return write_whole(path, render(page.title, page.lead, page.sections, footer, page.facts))


def fragment(page: Page) -> str:
    """The first picture and the tables of a page, for notebooks: without scripts."""
    parts = [f"<p><b>{html.escape(page.title)}</b> {html.escape(page.lead)}</p>"]
    for section in page.sections:
        drawn = [_drawn(chart) for chart in section.charts[:1]]
        parts += [f"<p>{html.escape(section.answer)}</p>" if section.answer else "", *drawn]
        parts += [_plain_table(rows) for rows in section.tables if len(rows) > 1]
    return _writable(f'<div class="meanmap">{"".join(parts)}</div>')


def png_of(figure: Any) -> bytes:
    """A matplotlib Figure as the bytes of a PNG."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=144, bbox_inches="tight")
    return picture.getvalue()


def as_json(value: object) -> str:
    """JSON that may stand in a script: no tag ends within it, and what is not finite is null.

    Examples
    --------
    >>> as_json({"</script>": float("nan")})
    '{"\\\\u003c/script\\\\u003e":null}'
    """
    text = json.dumps(_finite(value), separators=(",", ":"), allow_nan=False, default=str)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _finite(value: object) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set):
        return [_finite(each) for each in value]
    if isinstance(value, np.ndarray | np.generic):
        return _finite(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _writable(text: str) -> str:
    """With a mark in the place of halves of characters, which no file holds, and of zeros, which no page shows."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\N{REPLACEMENT CHARACTER}")


@cache
def _asset(name: str) -> str:
    return files("meanmap.plots").joinpath("charting", name).read_text("utf-8").strip()


def _scripts(charts: Sequence[Chart], facts: Mapping[str, Any]) -> str:
    said = {"facts": facts, "charts": [chart.plain() for chart in charts], "colours": COLOURS}
    libraries = ("d3.min.js", "plot.min.js") if charts else ()
    scripts = [f"<script>{_asset(name)}</script>" for name in (*libraries, "page.js")]
    return "\n".join([f'<script type="application/json" id="facts">{as_json(said)}</script>', *scripts, ""])


def _section(section: Section, number: int, first_chart: int) -> str:
    parts = [f'<section id="part-{number}">\n<h2>{html.escape(section.title)}</h2>']
    if section.answer:
        parts.append(f'<p class="answer">{html.escape(section.answer)}</p>')
    parts += [_chart(chart, i) for i, chart in enumerate(section.charts, first_chart)]
    if section.text:
        parts.append(f"<p>{html.escape(section.text)}</p>")
    if section.code:
        parts.append(f'<pre tabindex="0"><code>{html.escape(section.code)}</code></pre>')
    parts += [_table(rows, section.title) for rows in section.tables if len(rows) > 1]
    parts += [_figure(figure, caption) for figure, caption in section.figures]
    return "\n".join([*parts, "</section>"])


def _chart(chart: Chart, number: int) -> str:
    """Its controls and its first panel; the script draws all panels."""
    controls = "".join(_control(control, f"chart-{number}-{i}") for i, control in enumerate(chart.controls))
    return f"""<figure class="chart" data-chart="{number}">
<figcaption><b>{html.escape(chart.title)}</b></figcaption>
{f'<div class="controls">{controls}</div>' if controls else ""}
<div class="drawing">{sketch(chart, chart.first)}</div>
<p class="said" aria-hidden="true"></p>
<p class="note" aria-live="polite">{html.escape(chart.panels[chart.first].note)}</p>
<details><summary>Values as a table</summary><div class="values"></div></details>
</figure>"""


def _control(control: Control, name: str) -> str:
    label = f'<label for="{name}">{html.escape(control.label)}</label>'
    if control.slider:
        first, last = html.escape(control.choices[control.first]), len(control.choices) - 1
        return (
            f'<span class="control">{label}<input id="{name}" type="range" min="0" max="{last}" '
            f'value="{control.first}" aria-valuetext="{first}"><output for="{name}">{first}</output></span>'
        )
    listed = "".join(
        f'<option value="{i}"{" selected" * (i == control.first)}>{html.escape(each)}</option>'
        for i, each in enumerate(control.choices)
    )
    return f'<span class="control">{label}<select id="{name}">{listed}</select></span>'


def _drawn(chart: Chart) -> str:
    note = chart.panels[chart.first].note
    shown = ", ".join(f"{each.label.lower()} {each.choices[each.first]}" for each in chart.controls)
    said = f"{chart.title}{': ' if shown else ''}{shown}. {note}"
    return f"<p>{html.escape(said)}</p>{sketch(chart, chart.first)}"


def _plain_table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = ["".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row)
                   for row, tag in zip(rows, ["th", *["td"] * len(rows[1:])], strict=True)]  # fmt: skip
    listed = "".join(f"<tr>{row}</tr>" for row in body)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{listed}</tbody></table>"


def _table(rows: Sequence[Sequence[str]], title: str) -> str:
    marks = [_mark(column) for column in zip(*rows[1:], strict=True)]
    head = "".join(f'<th scope="col"{mark}>{_breakable(cell)}</th>' for cell, mark in zip(rows[0], marks, strict=True))
    body = "".join(
        f'<tr><th scope="row"{marks[0]}>{_breakable(first)}</th>'
        + "".join(f"<td{mark}>{html.escape(cell)}</td>" for cell, mark in zip(others, marks[1:], strict=True))
        + "</tr>\n"
        for first, *others in rows[1:]
    )
    # A wide table scrolls inside its frame, also with the keyboard.
    what = html.escape(f"{title}: {', '.join(rows[0])}")
    kind = "sortable many" if len(rows[0]) > MOST_UNBROKEN else "sortable"
    sorts = "" if rows[0][0] in ("what", "note") and len(rows[0]) < 3 else f' class="{kind}"'
    return (
        f'<div class="scroll" role="region" aria-label="{what}" tabindex="0">\n'
        f"<table{sorts}><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )


def _breakable(cell: str) -> str:
    """The head of a column or row, which breaks on a small screen between words and within names such as arm=new."""
    return re.sub(r"(?<=\w)([=._/])(?=\w)", r"\1<wbr>", html.escape(cell))


def _mark(column: Sequence[str]) -> str:
    """The class of a column of numbers, or of bars, that do not break."""
    if all(map(_is_number, column)):
        return ' class="number"'
    return ' class="bars"' if all("▁" <= character <= "█" for cell in column for character in cell) else ""


def _is_number(cell: str) -> bool:
    """Whether a cell begins with a digit and is no sentence, or is empty."""
    return (cell.lstrip("−-+<> ")[:1].isdigit() and len(cell) <= LONGEST_NUMBER) or not cell.strip(" -–")


def _figure(figure: object, caption: str) -> str:
    png = figure if isinstance(figure, bytes) else png_of(figure)
    image = f'<img src="data:image/png;base64,{base64.b64encode(png).decode()}" alt="{html.escape(caption)}">'
    if _is_wide(png):  # on a small screen it scrolls instead of shrinking until nothing can be read
        image = f'<div class="wide" role="region" aria-label="a wide picture" tabindex="0">{image}</div>'
    return f"<figure>{image}<figcaption>{html.escape(caption)}</figcaption></figure>"


def _is_wide(png: bytes) -> bool:
    """Whether a picture has panels side by side, by the size in the file's header."""
    width, height = (int.from_bytes(png[start : start + 4], "big") for start in (16, 20))
    return width > WIDE * height
