"""Plots of a fitted formula: estimates with intervals, and observed beside simulated responses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.errors import ParameterError
from meanmap.core.pictures import new_axes
from meanmap.plots.facts import Axis, Chart, Mark, Panel
from meanmap.plots.intervals import intervals_chart
from meanmap.stats.shown import Shown

__all__ = ["Check", "Ranges", "data_charts", "draw_each"]

# Names of more rows than this cannot be read; responses with more distinct values than this are drawn as a distribution
# function, at this many points.
_NAMED, _VALUES, _PLACES = 60, 12, 60
# Level of the intervals of simulated responses.
_LEVEL = 0.95


@dataclass(frozen=True)
class Ranges:
    """Estimates (n,) with intervals and names, under a title."""

    title: str
    names: Sequence[str]
    middle: np.ndarray
    low: np.ndarray
    high: np.ndarray
    label: str

    @classmethod
    def of(cls, title: str, rows: list[tuple[Any, float, float, float, float]], confidence: float) -> "Ranges":
        """From names, estimates, standard deviations and interval ends."""
        names, middle, _, low, high = map(list, zip(*rows, strict=True))
        label = f"estimate and {100 * confidence:g}% interval"
        return cls(title, list(map(str, names)), np.array(middle), np.array(low), np.array(high), label)

    @property
    def inches(self) -> float:
        """Height of the plot."""
        return 0.9 + (0.22 * len(self.names) if len(self.names) <= _NAMED else 5.0)

    def draw(self, ax: Any) -> None:
        """Draw the rows, the first at the top."""
        rows = np.arange(len(self.names))
        if len(rows) and min(self.low) < 0 < max(self.high):
            ax.axvline(0, color="0.6", lw=0.8)
        ax.hlines(rows, self.low, self.high, color="C0", lw=1.5 if len(rows) <= _NAMED else 0.6)
        ax.plot(self.middle, rows, "o", color="C0", ms=4 if len(rows) <= _NAMED else 1.5)
        if len(rows) <= _NAMED:
            ax.set(yticks=rows, yticklabels=self.names)
        else:
            ax.set(yticks=[], ylabel=f"{len(rows)} rows, from the top")
        ax.set(title=self.title, xlabel=self.label, ylim=(len(rows) - 0.5, -0.5))

    def chart(self) -> Chart:
        """The plot as data for a page; only the first rows if there are many."""
        return intervals_chart(self.title, self.names, self.middle, self.low, self.high, self.label)


def data_charts(response: str, frame: Any, names: Sequence[str]) -> tuple[Chart, ...]:
    """The response against each column that explains it."""
    if response not in frame:
        return ()
    across = [name for name in names if name in frame and name != response]
    shown = Shown.of((frame[across], frame[[response]]), ("columns", response), paired=True) if across else None
    return () if shown is None else shown.charts()


def draw_each(ranges: Sequence[Ranges], ax: Any) -> Any:
    """Draw one plot for each, side by side; return an array of their matplotlib Axes."""
    if ax is None:
        ax = new_axes(4.2 * len(ranges), max(each.inches for each in ranges), len(ranges))
    places = np.atleast_1d(ax)
    if len(places) != len(ranges):
        raise ParameterError(f"ax has {len(places)} entries; expected one for each of {len(ranges)} pictures.")
    for each, place in zip(ranges, places, strict=True):
        each.draw(place)
    return places


@dataclass(frozen=True)
class Check:
    """Shares of responses equal to, or up to, each value: observed ones, and intervals of simulated ones."""

    values: tuple[Any, ...]
    single: bool
    observed: np.ndarray
    low: np.ndarray
    high: np.ndarray
    response: str

    @classmethod
    def of(cls, response: str, observed: np.ndarray, simulated: np.ndarray, weights: np.ndarray, levels: tuple) -> Any:
        """Compute shares from responses (n,), simulated responses (draws, n), and row weights; labels have levels.

        Rows whose simulated responses are nan, as their predictions are, are left out.
        """
        told = np.ones(len(observed), bool) if levels else ~np.isnan(simulated).any(0)
        observed, simulated, weights = observed[told], simulated[:, told], weights[told]
        values, share = levels or tuple(np.unique(observed).tolist()), weights / weights.sum()
        single = bool(levels) or len(values) <= _VALUES
        if not single:
            values = tuple(np.linspace(observed.min(), observed.max(), _PLACES).tolist())

        def shares(rows: np.ndarray) -> np.ndarray:
            return np.array([((rows == value) if single else (rows <= value)) @ share for value in values])

        tails = [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2]
        low, high = np.quantile(shares(simulated), tails, axis=1)
        return cls(values, single, shares(observed), low, high, response)

    @property
    def _labels(self) -> tuple[str, str, str]:
        what = "share of rows" if self.single else "share of rows up to the value"
        return what, "observed", f"{_LEVEL:.0%} of simulated responses"

    def draw(self, ax: Any) -> Any:
        """Draw few distinct values side by side, and many as a distribution function."""
        ax = new_axes(5, 3.5) if ax is None else ax
        what, observed, simulated = self._labels
        if self.single:
            places = np.arange(len(self.values))
            ax.vlines(places, self.low, self.high, color="0.75", lw=9, label=simulated)
            ax.plot(places, self.observed, "o", color="C0", label=observed)
            ax.set(xticks=places, xticklabels=list(map(_written, self.values)), xlim=(-0.6, len(places) - 0.4))
            ax.set_ylim(0, None)
        else:
            ax.fill_between(self.values, self.low, self.high, color="0.8", label=simulated)
            ax.plot(self.values, self.observed, color="C0", label=observed)
        ax.set(xlabel=self.response, ylabel=what)
        ax.legend(fontsize="small")
        return ax

    def chart(self) -> Chart:
        """The plot as data for a page."""
        what, observed, simulated = self._labels
        if self.single:
            places = np.arange(len(self.values), dtype=float)
            ticks = tuple((float(-at), _written(value)) for at, value in enumerate(self.values))
            ranges = Mark("ranges", {"y": -places, "x1": self.low, "x": (self.low + self.high) / 2, "x2": self.high},
                          simulated, colour=6)  # fmt: skip
            marks = (ranges, Mark("dots", {"x": self.observed, "y": -places}, observed))
            panel = Panel(Axis(what), Axis(self.response, ticks=ticks), marks)
        else:
            line = {"x": self.values, "y": self.observed}
            band = Mark("band", {"x": self.values, "y1": self.low, "y2": self.high}, simulated, colour=6)
            panel = Panel(Axis(self.response), Axis(what), (band, Mark("line", line, observed)))
        return Chart("Observed and simulated responses", (panel,))


def _written(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
