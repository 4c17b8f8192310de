"""One self-contained HTML page from titled sections of text, numbers and figures."""

import base64
import html
import io
from dataclasses import dataclass
from typing import Any

__all__ = ["Section", "png_of", "render"]

# Pictures wider than this many times their height have panels side by side.
WIDE = 2.2
# A page of more sections begins with a list of them.
MOST_WITHOUT_LIST = 4

STYLE = """
:root { color-scheme: light dark; --ink: #1c2733; --paper: #ffffff; --line: #d5dce4; --soft: #f3f6f9; --link: #0b5394; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6ebf0; --paper: #12181f; --line: #33404d; --soft: #1b242d; --link: #8ec1f5; }
  figure img { background: #ffffff; }
}
body { margin: 0; background: var(--paper); color: var(--ink); font: 1rem/1.55 system-ui, sans-serif; }
main { max-width: 54rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; } h2 { margin-top: 2.8rem; font-size: 1.35rem; }
a { color: var(--link); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
.skip { position: absolute; left: -100rem; } .skip:focus { left: 1rem; top: .5rem; background: var(--paper); }
nav ul { padding-left: 1.2rem; } nav li { margin: .25rem 0; }
.answer { font-weight: 600; }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: 6px; padding: .8rem; overflow-x: auto;
  white-space: pre-wrap; overflow-wrap: anywhere; }
figure { margin: 1.2rem 0; } figure img { max-width: 100%; height: auto; border-radius: 6px; }
figcaption { font-size: .92rem; }
.wide { overflow-x: auto; }
@media (max-width: 40rem) { .wide img { max-width: none; width: 44rem; } }
.scroll { overflow-x: auto; margin: .9rem 0; }
table { border-collapse: collapse; }
th, td { vertical-align: top; border-bottom: 1px solid var(--line); padding: .35rem .8rem; text-align: left; }
tbody th { font-weight: normal; } .number { text-align: right; font-variant-numeric: tabular-nums; }
footer { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: 1rem; font-size: .92rem; }
"""


@dataclass(frozen=True)
class Section:
    """One titled part of a page.

    Attributes
    ----------
    title : str
        Its heading.
    answer : str
        What came out, in a sentence.
    text : str
        A paragraph of explanation.
    code : str
        What to type to get it.
    figures : tuple of (matplotlib Figure or bytes, str)
        Pictures (bytes: a PNG), each with a caption that also serves those who cannot see it.
    tables : tuple of tuples
        Tables, each a tuple of rows of which the first is the header; empty ones are left out.
    """

    title: str
    answer: str
    text: str = ""
    code: str = ""
    figures: tuple[tuple[Any, str], ...] = ()
    tables: tuple[tuple[tuple[str, ...], ...], ...] = ()


def render(title: str, lead: str, sections: list[Section], footer: str = "") -> str:
    """The page as one HTML document with its pictures inside.

    Examples
    --------
    >>> page = render("A page", "What it is about.", [Section("First", "It is 1 < 2.")])
    >>> "It is 1 &lt; 2." in page
    True
    """
    body = "\n".join(_section(section, number) for number, section in enumerate(sections, start=1))
    listed = sections if len(sections) > MOST_WITHOUT_LIST else []
    links = "".join(f'<li><a href="#part-{i}">{html.escape(part.title)}</a></li>\n' for i, part in enumerate(listed, 1))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title>
<link rel="icon" href="data:,">
<style>{STYLE}</style>
</head>
<body>
<a class="skip" href="#part-1">Skip to the first section</a>
<main>
<h1>{html.escape(title)}</h1>
<p>{html.escape(lead)}</p>
{f'<nav aria-label="Sections"><ul>{links}</ul></nav>' if links else ""}
{body}
<footer>{html.escape(footer)}</footer>
</main>
</body>
</html>
"""


def png_of(figure: Any) -> bytes:
    """A matplotlib Figure as the bytes of a PNG."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=144, bbox_inches="tight")
    return picture.getvalue()


def _section(section: Section, number: int) -> str:
    parts = [f'<section id="part-{number}">\n<h2>{html.escape(section.title)}</h2>']
    if section.answer:
        parts.append(f'<p class="answer">{html.escape(section.answer)}</p>')
    if section.text:
        parts.append(f"<p>{html.escape(section.text)}</p>")
    if section.code:
        parts.append(f'<pre tabindex="0"><code>{html.escape(section.code)}</code></pre>')
    parts += [_table(rows, section.title) for rows in section.tables if len(rows) > 1]
    parts += [_figure(figure, caption) for figure, caption in section.figures]
    return "\n".join([*parts, "</section>"])


def _table(rows: tuple[tuple[str, ...], ...], title: str) -> str:
    marks = [' class="number"' if all(map(_is_number, column)) else "" for column in zip(*rows[1:], strict=True)]
    head = "".join(f'<th scope="col"{mark}>{html.escape(cell)}</th>' for cell, mark in zip(rows[0], marks, strict=True))
    body = "".join(
        f'<tr><th scope="row"{marks[0]}>{html.escape(first)}</th>'
        + "".join(f"<td{mark}>{html.escape(cell)}</td>" for cell, mark in zip(others, marks[1:], strict=True))
        + "</tr>\n"
        for first, *others in rows[1:]
    )
    # A wide table scrolls by itself, also with the keyboard.
    what = html.escape(f"{title}: {', '.join(rows[0])}")
    return (
        f'<div class="scroll" role="region" aria-label="{what}" tabindex="0">\n'
        f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )


def _is_number(cell: str) -> bool:
    """Whether digits stand at its beginning, or nothing is in it."""
    return cell.lstrip("−-+<> ")[:1].isdigit() or not cell.strip(" -–")


def _figure(figure: object, caption: str) -> str:
    png = figure if isinstance(figure, bytes) else png_of(figure)
    image = f'<img src="data:image/png;base64,{base64.b64encode(png).decode()}" alt="{html.escape(caption)}">'
    if _is_wide(png):  # on a small screen it scrolls, rather than shrink until nothing can be read
        image = f'<div class="wide" role="region" aria-label="a wide picture" tabindex="0">{image}</div>'
    return f"<figure>{image}<figcaption>{html.escape(caption)}</figcaption></figure>"


def _is_wide(png: bytes) -> bool:
    """Whether a picture has panels side by side; its size is in the header of the file."""
    width, height = (int.from_bytes(png[start : start + 4], "big") for start in (16, 20))
    return width > WIDE * height
