"""Charts of the columns of tables: histograms of groups of rows, and pairs of columns against each other."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from meanmap.core.tables.kinds import family_of
from meanmap.core.values import label_shown
from meanmap.plots.facts import Axis, Chart, Control, Mark, Panel
from meanmap.plots.ranges import TAILED, bulk

__all__ = ["Columns", "groups_chart", "pairs_chart", "single"]

Columns = Mapping[str, np.ndarray]

# At most this many columns are drawn, and bars of labels.
MOST_COLUMNS, MOST_LABELS = 40, 12
MOST_BINS, LEAST_BINS = 40, 8
# Numbers are drawn at their values if each has this many rows on average.
LEAST_ROWS = 5
# For pairs: columns on each side, and points.
MOST_SIDES, MOST_POINTS = 5, 400
# Of columns that are constant in nine of ten rows this share of the rows is cut at each end.
TAIL = 0.005
# Bars of more groups would hide one another: lines are drawn.
MOST_BARS = 3


class _Read(NamedTuple):
    """A column as numbers, with the names of its labels if it has any."""

    values: list[np.ndarray]
    axis: Axis
    whole: bool = False


def groups_chart(title: str, groups: Mapping[str, Columns], first: Sequence[str] = ()) -> Chart | None:
    """How each column is distributed in each group of rows; `first` are columns to begin with.

    Examples
    --------
    >>> chart = groups_chart("Heights", {"a": {"height": np.arange(9.0)}, "b": {"height": np.arange(5.0)}})
    >>> [mark.series for mark in chart.panels[0].marks]
    ['a', 'b']
    """
    tables = list(groups.values())
    names = [name for name in dict.fromkeys([*first, *tables[0]]) if all(name in table for table in tables)]
    read = {name: _read(name, [table[name] for table in tables]) for name in names[:MOST_COLUMNS]}
    found = {name: _at_values(each) for name, each in read.items() if each is not None}
    if not found:
        return None
    panels = tuple(_histogram(each, list(groups)) for each in found.values())
    return Chart(title, panels, (Control("Column", tuple(found)),) if len(found) > 1 else ())


def pairs_chart(title: str, across: Columns, upwards: Columns) -> Chart | None:
    """Columns against each other, row by row."""
    sides = []
    for columns in (across, upwards):
        read = {name: _read(name, [values]) for name, values in list(columns.items())[:MOST_SIDES]}
        sides.append({name: each for name, each in read.items() if each is not None})
    if not all(sides):
        return None
    panels = tuple(_scatter(x, y) for x in sides[0].values() for y in sides[1].values())
    controls = (Control("Horizontal", tuple(sides[0])), Control("Vertical", tuple(sides[1])))
    return Chart(title, panels, controls if len(panels) > 1 else ())


def single(columns: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Columns of one number or label a row: those that are wider are taken apart."""
    found = {}
    for name, column in columns.items():
        values = np.asarray(column)
        if values.ndim == 1:
            found[str(name)] = values
        elif values.ndim == 2:
            found |= {f"{name}[{j}]": values[:, j] for j in range(values.shape[1])}
    return found


def _read(name: str, parts: Sequence[np.ndarray]) -> _Read | None:
    """One column in all groups as numbers; None for texts that are nearly all different."""
    families = {family_of(part) for part in parts}
    if families == {"time"}:
        times = [part.astype("datetime64[ms]").astype(float) for part in parts]
        return _Read(
            [np.where(np.isnat(p), np.nan, t) for p, t in zip(parts, times, strict=True)], Axis(name, time=True)
        )
    if families == {"number"}:
        values = [part.astype(float) for part in parts]
        finite = np.concatenate([each[np.isfinite(each)] for each in values])
        whole = bool(len(finite)) and bool(np.all(finite == np.round(finite))) and np.ptp(finite) < MOST_BINS
        return _Read(values, Axis(name), whole) if len(finite) else None
    texts = [np.array([label_shown(each) for each in part.tolist()], dtype=object) for part in parts]
    labels, counts = np.unique(np.concatenate(texts).astype(str), return_counts=True)
    if len(labels) > max(MOST_LABELS, sum(map(len, parts)) / 3):
        return None
    kept = sorted(labels[np.argsort(-counts, kind="stable")[:MOST_LABELS]].tolist())
    more = len(labels) - len(kept)
    places = {label: place for place, label in enumerate(kept)}
    codes = [np.array([places.get(str(each), len(kept)) for each in part], float) for part in texts]
    ticks = [
        *((float(place), label) for label, place in places.items()),
        *([(float(len(kept)), f"{more} more")] * bool(more)),
    ]
    return _Read(codes, Axis(name, ticks=tuple(ticks)))


def _at_values(read: _Read) -> _Read:
    """Numbers that take few values as labels, whose bars stand at the values; others unchanged."""
    if read.axis.ticks or read.axis.time:
        return read
    numbers = np.concatenate([each[np.isfinite(each)] for each in read.values])
    known = np.unique(numbers)
    if not len(known) <= min(MOST_LABELS, len(numbers) / LEAST_ROWS):
        return read
    codes = [np.where(np.isfinite(each), np.searchsorted(known, each), np.nan) for each in read.values]
    ticks = tuple((float(place), f"{value:.6g}") for place, value in enumerate(known.tolist()))
    return _Read(codes, replace(read.axis, ticks=ticks))


def _histogram(read: _Read, groups: Sequence[str]) -> Panel:
    values = [each[np.isfinite(each)] for each in read.values]
    if read.axis.ticks:
        edges = np.arange(len(read.axis.ticks) + 1) - 0.5
        note, wide = "", 0.8 / len(values)
        ends = [(edges[:-1] + 0.1 + i * wide, edges[:-1] + 0.1 + (i + 1) * wide) for i in range(len(values))]
    else:
        edges, note = _edges(values, read)
        ends = [(edges[:-1], edges[1:])] * len(values)
    marks = []
    for i, (name, each, (left, right)) in enumerate(zip(groups, values, ends, strict=True)):
        shares = 100 * np.histogram(each, edges)[0] / max(len(each), 1)
        if len(values) > MOST_BARS and not read.axis.ticks:
            marks.append(Mark("line", {"x": (left + right) / 2, "y": shares}, name, colour=i))
        else:
            marks.append(Mark("bars", {"x1": left, "x2": right, "y": shares}, name, colour=i))
    return Panel(read.axis, Axis("% of rows"), tuple(marks), note)


def _edges(values: Sequence[np.ndarray], read: _Read) -> tuple[np.ndarray, str]:
    """Bins in which long tails do not squash the rest, and a sentence about the rows beyond."""
    pooled = np.concatenate(values)
    low, high = float(pooled.min()), float(pooled.max())
    if read.whole:
        return np.arange(low, high + 2) - 0.5, ""
    inner, note = _inner(values), ""
    if inner != (low, high):
        beyond = np.mean((pooled < inner[0]) | (pooled > inner[1]))
        ends = [_said(read.axis, end) for end in (*inner, low, high)]
        note = (
            f"{100 * beyond:.2g} % of rows lie outside of {ends[0]} to {ends[1]} and are not drawn; "
            f"all lie between {ends[2]} and {ends[3]}."
        )
    inside = pooled[(pooled >= inner[0]) & (pooled <= inner[1])]
    width = 2 * np.subtract(*np.quantile(inside, [0.75, 0.25])) / max(len(inside), 1) ** (1 / 3)
    number = (inner[1] - inner[0]) / width if width > 0 else LEAST_BINS
    if inner[1] <= inner[0]:
        inner = inner[0] - 0.5, inner[0] + 0.5
    return np.linspace(*inner, int(np.clip(number, LEAST_BINS, MOST_BINS)) + 1), note


def _inner(values: Sequence[np.ndarray]) -> tuple[float, float]:
    """Between which numbers all groups are drawn."""
    pooled = np.concatenate(values)
    low, high = float(pooled.min()), float(pooled.max())
    found = [np.quantile(each, [TAIL, 0.05, 0.95, 1 - TAIL]) for each in values if len(each)]
    ends = [bulk(b, c, low, high) if c > b else (a, d) for a, b, c, d in found]
    inner = float(min(a for a, _ in ends)), float(max(b for _, b in ends))
    return inner if inner[1] - inner[0] < TAILED * (high - low) else (low, high)


def _scatter(x: _Read, y: _Read) -> Panel:
    ends, notes = [], []
    rows = np.isfinite(x.values[0]) & np.isfinite(y.values[0])
    places = []
    generator = np.random.default_rng(0)
    for read in (x, y):
        values = read.values[0][rows]
        # Labels are spread, so that rows of the same labels do not hide each other.
        places.append(values + 0.5 * (generator.random(len(values)) - 0.5) if read.axis.ticks else values)
        ends.append((-np.inf, np.inf) if read.axis.ticks or not len(values) else _inner([values]))
    inside = np.all([(p >= a) & (p <= b) for p, (a, b) in zip(places, ends, strict=True)], axis=0)
    if beyond := int(np.sum(~inside)):
        notes.append(f"{beyond} of {len(inside)} rows lie further out and are not drawn.")
    kept = np.flatnonzero(inside)
    if len(kept) > MOST_POINTS:
        notes.append(f"{MOST_POINTS} of {len(kept)} rows are drawn.")
        kept = kept[np.linspace(0, len(kept) - 1, MOST_POINTS).round().astype(int)]
    dots = {"x": places[0][kept], "y": places[1][kept]}
    return Panel(x.axis, y.axis, (Mark("dots", dots),), " ".join(notes))


def _said(axis: Axis, value: float) -> str:
    return str(np.datetime64(int(value), "ms").astype("datetime64[m]")) if axis.time else f"{value:.4g}"
