"""Charts as still pictures (SVG) without a script: for notebooks, and for pages where scripts do not run."""

import html
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.plots.facts import Axis, Chart

__all__ = ["COLOURS", "sketch"]

# Each has a contrast of three to one with white and with black paper.
COLOURS = ("#3b82c4", "#d2691e", "#2a9d8f", "#9b6dd7", "#a97b0a", "#c2557a", "#6b7280")
WIDTH, LETTER, MOST_LETTERS = 640, 6.6, 32
# Where names along an axis would be shorter, some are left out.
LEAST_LETTERS = 5


def sketch(chart: Chart, panel: int = 0) -> str:
    """One panel of a chart as SVG.

    Examples
    --------
    >>> from meanmap.plots.facts import Mark, Panel
    >>> line = Panel(Axis("time"), Axis("height"), (Mark("line", {"x": [0, 1], "y": [2, 3]}),))
    >>> "<polyline" in sketch(Chart("Growth", (line,)))
    True
    """
    shown = chart.panels[panel]
    marks = [mark.plain() for mark in shown.marks]
    bare = not shown.x.label and not shown.x.ticks
    named = {mark["series"]: _colour(mark) for mark in marks if mark["series"]}
    listed = bool(shown.y.ticks) and any(mark.kind == "ranges" for mark in shown.marks)
    height = 340.0 if bare else max(0.0 if listed else 250.0, 26.0 * len(shown.y.ticks) + 70)
    letters = max((len(_short(text)) for _, text in shown.y.ticks), default=8)
    left, right = (30.0, WIDTH - 30.0) if bare else (10 + LETTER * max(letters, 4), WIDTH - 16.0)
    bottom, top = (height - 20, 20.0) if bare else (height - 40, 26.0)
    x = _Scale.of(shown.x, marks, "x", left, right)
    y = _Scale.of(shown.y, marks, "y", bottom, top)
    parts = [] if bare else [*_along(shown.x, x, bottom), *_upwards(shown.y, y, left, right)]
    parts += [part for mark in marks for part in _drawn(mark, x, y)]
    where = right
    for name, colour in list(named.items())[::-1]:
        where -= LETTER * len(_short(name)) + 26
        parts.append(f'<rect x="{where:.1f}" y="3" width="10" height="10" fill="{colour}"/>')
        parts.append(_text(where + 14, 12, name, "start"))
    said = html.escape(f"{chart.title}. {shown.note}")
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{said}" font-size="12" fill="currentColor" '
        f'font-family="system-ui, sans-serif" style="width:100%;max-width:{WIDTH}px;height:auto;display:block">'
        f"{''.join(parts)}</svg>"
    )


@dataclass(frozen=True)
class _Scale:
    """From numbers to places on the page."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    @classmethod
    def of(cls, axis: Axis, marks: list[dict[str, Any]], side: str, start: float, end: float) -> "_Scale":
        seen = [value for mark in marks for name in (side, f"{side}1", f"{side}2") for value in mark.get(name, ())]
        if side == "y" and any(mark["kind"] in ("bars", "area") for mark in marks):
            seen.append(0.0)
        seen += [place for place, _ in axis.ticks]
        low, high = axis.limits or ((min(seen), max(seen)) if seen else (0.0, 1.0))
        if axis.log and low > 0:
            return cls(math.log10(low), max(math.log10(high), math.log10(low) + 0.1), start, end, True)
        room = 0.6 if axis.ticks else 0.0 if axis.limits else 0.04 * (high - low)
        low, high = low - room * (low != 0 or bool(axis.ticks)), high + room
        return cls(low, high, start, end) if high > low else cls(low - 0.5, high + 0.5, start, end)

    def __call__(self, value: float) -> float:
        value = math.log10(max(value, 1e-300)) if self.log else value
        return self.start + (self.end - self.start) * (value - self.low) / (self.high - self.low)

    def ticks(self, axis: Axis, number: int) -> list[tuple[float, str]]:
        """Places with names, those of the axis or round numbers."""
        if axis.ticks:
            return list(axis.ticks)
        if self.log:
            powers = 10.0 ** np.arange(math.floor(self.low), math.floor(self.high) + 1)
            units = (1, 2, 5) if self.high - self.low < 2 else (1,)
            values = [float(power * unit) for power in powers for unit in units]
            inside = [each for each in values if self.low - 1e-9 <= math.log10(each) <= self.high + 1e-9]
            return [(each, f"{each:g}") for each in inside]
        rough = (self.high - self.low) / number
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * unit for unit in (1, 2, 5, 10) if power * unit >= rough * 0.999)
        places = step * np.arange(math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9) + 1)
        if axis.time:
            return [(float(p), str(np.datetime64(int(p), "ms").astype("datetime64[D]"))) for p in places]
        return [(float(place), f"{place:.6g}") for place in places]


def _along(axis: Axis, scale: _Scale, bottom: float) -> list[str]:
    parts = [_line(scale.start, bottom, scale.end, bottom, "currentColor", 'opacity="0.4"')]
    ticks = scale.ticks(axis, 6)
    letters = (scale.end - scale.start) / max(len(ticks), 1) / LETTER
    every = math.ceil(LEAST_LETTERS / letters) if axis.ticks else 1
    most = int(min(letters * every, 14)) if axis.ticks else 14
    for i, (place, text) in enumerate(ticks):
        parts.append(_line(scale(place), bottom, scale(place), bottom + 4, "currentColor", 'opacity="0.4"'))
        if i % every == 0:
            parts.append(_text(scale(place), bottom + 17, text, "middle", most))
    return [*parts, _text((scale.start + scale.end) / 2, bottom + 34, axis.label, "middle", 90)]


def _upwards(axis: Axis, scale: _Scale, left: float, right: float) -> list[str]:
    parts = [] if axis.ticks else [_text(4, 12, axis.label, "start")]
    for place, text in scale.ticks(axis, 4):
        parts.append(_text(left - 6, scale(place) + 4, text, "end"))
        parts.append(_line(left, scale(place), right, scale(place), "currentColor", 'opacity="0.12"'))
    return parts


def _drawn(mark: dict[str, Any], x: _Scale, y: _Scale) -> list[str]:
    colour = _colour(mark)
    dash = 'stroke-dasharray="5 4"' if mark.get("dashed") else ""

    def columns(*names: str) -> list[tuple[float, ...]]:
        scales = [x if name.startswith("x") else y for name in names]
        return [tuple(s(v) for s, v in zip(scales, row, strict=True)) for row in zip(*(mark[n] for n in names))]  # noqa: B905

    match mark["kind"]:
        case "bars":
            base = y(0.0)
            return [
                f'<rect x="{a:.1f}" y="{min(h, base):.1f}" width="{max(b - a, 0.5):.1f}" height="{abs(base - h):.1f}" '
                f'fill="{colour}" fill-opacity="0.5"/>'
                for a, b, h in columns("x1", "x2", "y")
            ]
        case "line":
            points = " ".join(f"{a:.1f},{b:.1f}" for a, b in columns("x", "y"))
            return [f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2" {dash}/>']
        case "area":
            places = columns("x", "y")
            if not places:
                return []
            there = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
            ends = f"{places[0][0]:.1f},{y(0.0):.1f} {there} {places[-1][0]:.1f},{y(0.0):.1f}"
            return [f'<polygon points="{ends}" fill="{colour}" fill-opacity="0.25" stroke="{colour}"/>']
        case "band":
            upper, lower = columns("x", "y2"), columns("x", "y1")[::-1]
            points = " ".join(f"{a:.1f},{b:.1f}" for a, b in [*upper, *lower])
            return [f'<polygon points="{points}" fill="{colour}" fill-opacity="0.2"/>']
        case "dots":
            return [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}" fill-opacity="0.6"/>'
                    for a, b in columns("x", "y")]  # fmt: skip
        case "ranges":
            return [
                f'{_line(a, h, b, h, colour)}<circle cx="{m:.1f}" cy="{h:.1f}" r="4" fill="{colour}"/>'
                for a, m, b, h in columns("x1", "x", "x2", "y")
            ]
        case "rules" if "x" in mark:
            return [_line(a, y.start, a, y.end, colour, dash) for (a,) in columns("x")]
        case "rules":
            return [_line(x.start, b, x.end, b, colour, dash) for (b,) in columns("y")]
        case "links":
            return [
                _line(a, b, c, d, colour, f'stroke-width="1.6" {dash}')
                + (_head(a, b, c, d, colour) if mark.get("arrow") else "")
                for a, b, c, d in columns("x1", "y1", "x2", "y2")
            ]
        case _:  # nodes
            return [
                f'<circle cx="{a:.1f}" cy="{b:.1f}" r="6" fill="{colour}"/>'
                + _name(a, b - 10 if above else b + 20, _short(said, 24))
                for (a, b), above, said in zip(columns("x", "y"), mark["above"], mark["text"], strict=True)
            ]


def _name(x: float, y: float, text: str) -> str:
    """The name of a node, within the page."""
    half = LETTER * len(text) / 2
    return _text(min(max(x, half + 2), WIDTH - half - 2), y, text, "middle")


def _colour(mark: dict[str, Any]) -> str:
    return COLOURS[mark.get("colour", 0) % len(COLOURS)]


def _head(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    """The head of an arrow, before the node where it ends."""
    size = math.hypot(x2 - x1, y2 - y1) or 1.0
    a, b = (x2 - x1) / size, (y2 - y1) / size
    tip, back = (x2 - 8 * a, y2 - 8 * b), (x2 - 18 * a, y2 - 18 * b)
    corners = (tip, (back[0] - 5 * b, back[1] + 5 * a), (back[0] + 5 * b, back[1] - 5 * a))
    return f'<polygon points="{" ".join(f"{u:.1f},{v:.1f}" for u, v in corners)}" fill="{colour}"/>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, more: str = "") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" {more}/>'


def _text(x: float, y: float, text: str, anchor: str, most: int = MOST_LETTERS) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(_short(text, most))}</text>'


def _short(text: str, most: int = MOST_LETTERS) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
