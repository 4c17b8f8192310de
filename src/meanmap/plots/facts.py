"""What a page shows: sentences, tables of words, and charts as data, which are drawn in two ways."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Axis", "Chart", "Control", "Mark", "Page", "Panel", "Section"]

# Digits of drawn numbers; facts keep all digits.
DIGITS = 6


@dataclass(frozen=True)
class Section:
    """One titled part of a page.

    Attributes
    ----------
    title : str
        Its heading.
    answer : str
        The result, in a sentence.
    text : str
        A paragraph of explanation.
    code : str
        What to type to get it.
    figures : tuple of (matplotlib Figure or bytes, str)
        Pictures (bytes: a PNG), each with a caption that also serves those who cannot see it.
    tables : tuple of tuples
        Tables, each a tuple of rows of which the first is the header; empty ones are left out.
    charts : tuple of Chart
        What can be pointed at.
    """

    title: str
    answer: str
    text: str = ""
    code: str = ""
    figures: tuple[tuple[Any, str], ...] = ()
    tables: tuple[tuple[tuple[str, ...], ...], ...] = ()
    charts: "tuple[Chart, ...]" = ()


@dataclass(frozen=True)
class Page:
    """All of a page: its title, a sentence, sections, and the facts as plain values."""

    title: str
    lead: str
    sections: tuple[Section, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Axis:
    """What an axis measures; `ticks` are places with names, where it has no scale of numbers.

    On an axis of times, numbers are milliseconds since 1970. Without a label and ticks the axis is not drawn.
    """

    label: str = ""
    ticks: tuple[tuple[float, str], ...] = ()
    time: bool = False
    limits: tuple[float, float] | None = None
    log: bool = False


@dataclass(frozen=True)
class Mark:
    """Things of one kind, whose coordinates are arrays.

    Bars have x1, x2, y; lines, areas and dots have x, y; bands have x, y1, y2; ranges have y, x1, x, x2; rules have x
    or y; links have x1, y1, x2, y2; nodes have x, y, and 1 where their names are above them. `text` says what each
    thing is, and labels nodes.
    """

    kind: str
    places: Mapping[str, Any]
    series: str = ""
    text: Sequence[str] = ()
    colour: int = 0
    dashed: bool = False
    arrow: bool = False

    def plain(self) -> dict[str, Any]:
        """It as values for JSON, without what is not finite."""
        places = {name: np.asarray(each, float) for name, each in self.places.items()}
        kept = np.all([np.isfinite(each) for each in places.values()], axis=0)
        found = {name: [float(f"{value:.{DIGITS}g}") for value in each[kept]] for name, each in places.items()}
        text = [said for said, keep in zip(self.text, kept, strict=True) if keep] if self.text else []
        flags = {"colour": self.colour, "dashed": self.dashed, "arrow": self.arrow}
        return {
            "kind": self.kind,
            "series": self.series,
            "text": text,
            **{k: v for k, v in flags.items() if v},
            **found,
        }


@dataclass(frozen=True)
class Panel:
    """What a chart shows under one choice; `note` is a sentence about it."""

    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    note: str = ""


@dataclass(frozen=True)
class Control:
    """What can be chosen, from a list or, for what is in order, along a slider; `first` is what is shown at first."""

    label: str
    choices: tuple[str, ...]
    slider: bool = False
    first: int = 0


@dataclass(frozen=True)
class Chart:
    """A picture as data, with a panel for each combination of choices, those of the last control fastest."""

    title: str
    panels: tuple[Panel, ...]
    controls: tuple[Control, ...] = ()

    @property
    def first(self) -> int:
        """The panel that is shown at first."""
        number = 0
        for control in self.controls:
            number = number * len(control.choices) + control.first
        return number

    def plain(self) -> dict[str, Any]:
        """It as values for JSON."""
        return {
            "title": self.title,
            "controls": [{"label": c.label, "choices": list(c.choices), "slider": c.slider} for c in self.controls],
            "panels": [
                {"x": _axis(each.x), "y": _axis(each.y), "note": each.note, "marks": [m.plain() for m in each.marks]}
                for each in self.panels
            ],
        }


def _axis(axis: Axis) -> dict[str, Any]:
    found = {"label": axis.label, "ticks": axis.ticks, "time": axis.time, "limits": axis.limits, "log": axis.log}
    return {name: value for name, value in found.items() if value}
