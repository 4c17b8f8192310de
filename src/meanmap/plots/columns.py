"""Charts of the columns of tables: histograms of groups of rows, and pairs of columns against each other."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from meanmap.core.language import in_percent
from meanmap.core.tables.kinds import family_of
from meanmap.core.values import label_shown
from meanmap.plots.facts import Axis, Chart, Control, Mark, Panel
from meanmap.plots.ranges import TAILED, bulk

__all__ = ["Columns", "Tally", "groups_chart", "pairs_chart"]

# By name; values of each row, or their tallies.
Columns = Mapping[str, Any]

# At most this many columns are drawn, and bars of labels.
MOST_COLUMNS, MOST_LABELS = 40, 12
MOST_BINS, LEAST_BINS = 40, 8
# Of more values than a few times as many, from files, some stand for their neighbours.
MOST_VALUES = 16_384
# Numbers are drawn at their values if each has this many rows on average.
LEAST_ROWS = 5
# For pairs: columns on each side, and points.
MOST_SIDES, MOST_POINTS = 5, 400
# Of columns that are constant in nine of ten rows this share of the rows is cut at each end.
TAIL = 0.005
# Bars of more groups would hide one another: lines are drawn.
MOST_BARS = 3


class Tally(NamedTuple):
    """The values of a column, and the number of rows of each."""

    values: np.ndarray
    rows: np.ndarray

    @classmethod
    def of(cls, column: "np.ndarray | Tally") -> "Tally":
        """The tally of a column with all of its rows."""
        return column if isinstance(column, Tally) else cls(*np.unique(column, return_counts=True))

    def joined(self, column: np.ndarray) -> "Tally":
        """With more rows. Of very many numbers or times each stands for those of up to one row in `MOST_VALUES`."""
        values, at = np.unique(np.concatenate([self.values, column]), return_inverse=True)
        rows = np.bincount(at, np.append(self.rows, np.ones(len(column)))).astype(int)
        if len(values) < 4 * MOST_VALUES or family_of(values) not in ("number", "time"):
            return Tally(values, rows)
        bucket = (np.cumsum(rows) - rows / 2) // (rows.sum() / MOST_VALUES)
        bucket[0], bucket[-1] = -1, MOST_VALUES  # the ends stay
        _, first, which = np.unique(bucket, return_index=True, return_inverse=True)
        return Tally(values[first + (np.bincount(which) - 1) // 2], np.bincount(which, rows).astype(int))


class _Read(NamedTuple):
    """Tallies of a column as numbers, with the names of its labels if it has any."""

    parts: list[Tally]
    axis: Axis
    whole: bool = False

    @property
    def known(self) -> list[Tally]:
        """Without missing numbers."""
        return [Tally(values[there], rows[there]) for values, rows in self.parts for there in [np.isfinite(values)]]

    def with_values(self, values: Sequence[np.ndarray], axis: Axis) -> "_Read":
        """A column of other values in these rows."""
        return _Read([part._replace(values=each) for part, each in zip(self.parts, values, strict=True)], axis)


def groups_chart(title: str, groups: Mapping[str, Columns], first: Sequence[str] = ()) -> Chart | None:
    """How all rows of each group are distributed in each column; `first` are columns to begin with.

    Examples
    --------
    >>> chart = groups_chart("Heights", {"a": {"height": np.arange(9.0)}, "b": {"height": np.arange(5.0)}})
    >>> [mark.series for mark in chart.panels[0].marks]
    ['a', 'b']
    """
    tables = list(groups.values())
    names = [name for name in dict.fromkeys([*first, *tables[0]]) if all(name in table for table in tables)]
    read = {name: _read(name, [Tally.of(table[name]) for table in tables]) for name in names[:MOST_COLUMNS]}
    found = {name: _at_values(each) for name, each in read.items() if each is not None}
    if not found:
        return None
    panels = tuple(_histogram(each, list(groups)) for each in found.values())
    return Chart(title, panels, (Control("Column", tuple(found)),) if len(found) > 1 else ())


def pairs_chart(title: str, across: Columns, upwards: Columns) -> Chart | None:
    """Columns against each other, row by row."""
    sides = []
    for columns in (across, upwards):
        rows = {name: Tally(values, np.ones(len(values))) for name, values in list(columns.items())[:MOST_SIDES]}
        read = {name: _read(name, [each]) for name, each in rows.items()}
        sides.append({name: each for name, each in read.items() if each is not None})
    if not all(sides):
        return None
    panels = tuple(_scatter(x, y) for x in sides[0].values() for y in sides[1].values())
    controls = (Control("Horizontal", tuple(sides[0])), Control("Vertical", tuple(sides[1])))
    return Chart(title, panels, controls if len(panels) > 1 else ())


def _read(name: str, parts: Sequence[Tally]) -> _Read | None:
    """One column in all groups as numbers; None for texts that are nearly all different."""
    families = {family_of(part.values) for part in parts}
    found = _Read(list(parts), Axis(name))
    if families == {"time"}:
        times = [part.values.astype("datetime64[ms]") for part in parts]
        return found.with_values([np.where(np.isnat(t), np.nan, t.astype(float)) for t in times], Axis(name, time=True))
    if families == {"number"}:
        found = found.with_values([part.values.astype(float) for part in parts], Axis(name))
        finite = np.concatenate([part.values for part in found.known])
        whole = bool(len(finite)) and bool(np.all(finite == np.round(finite))) and np.ptp(finite) < MOST_BINS
        return found._replace(whole=whole) if len(finite) else None
    texts = [np.array([label_shown(each) for each in part.values.tolist()], dtype=str) for part in parts]
    labels, places = np.unique(np.concatenate(texts), return_inverse=True)
    rows = np.concatenate([part.rows for part in parts])
    if len(labels) > max(MOST_LABELS, rows.sum() / 3):
        return None
    often = np.argsort(-np.bincount(places, rows, len(labels)), kind="stable")[:MOST_LABELS]
    kept = np.sort(often)
    place = np.full(len(labels), len(kept), float)
    place[kept] = np.arange(len(kept))
    more = len(labels) - len(kept)
    ticks = [(float(k), str(label)) for k, label in enumerate(labels[kept])]
    ticks += [(float(len(kept)), f"{more} more")] * bool(more)
    codes = np.split(place[places], np.cumsum([len(part.values) for part in parts])[:-1])
    return found.with_values(codes, Axis(name, ticks=tuple(ticks)))


def _at_values(read: _Read) -> _Read:
    """Numbers that take few values as labels, whose bars stand at the values; others unchanged."""
    if read.axis.ticks or read.axis.time:
        return read
    known = np.unique(np.concatenate([part.values for part in read.known]))
    if not len(known) <= min(MOST_LABELS, sum(part.rows.sum() for part in read.known) / LEAST_ROWS):
        return read
    codes = [
        np.where(np.isfinite(part.values), np.searchsorted(known, part.values), np.nan).astype(float)
        for part in read.parts
    ]
    ticks = tuple((float(place), f"{value:.6g}") for place, value in enumerate(known.tolist()))
    return read.with_values(codes, replace(read.axis, ticks=ticks))


def _histogram(read: _Read, groups: Sequence[str]) -> Panel:
    parts = read.known
    if read.axis.ticks:
        edges = np.arange(len(read.axis.ticks) + 1) - 0.5
        note, wide = "", 0.8 / len(parts)
        ends = [(edges[:-1] + 0.1 + i * wide, edges[:-1] + 0.1 + (i + 1) * wide) for i in range(len(parts))]
    else:
        edges, note = _edges(parts, read)
        ends = [(edges[:-1], edges[1:])] * len(parts)
    marks = []
    for i, (name, each, (left, right)) in enumerate(zip(groups, parts, ends, strict=True)):
        shares = 100 * np.histogram(each.values, edges, weights=each.rows)[0] / max(each.rows.sum(), 1)
        if len(parts) > MOST_BARS and not read.axis.ticks:
            marks.append(Mark("line", {"x": (left + right) / 2, "y": shares}, name, colour=i))
        else:
            marks.append(Mark("bars", {"x1": left, "x2": right, "y": shares}, name, colour=i))
    return Panel(read.axis, Axis("% of rows"), tuple(marks), note)


def _edges(parts: Sequence[Tally], read: _Read) -> tuple[np.ndarray, str]:
    """Bins in which long tails do not squash the rest, and a sentence about the rows beyond."""
    pooled, rows = (np.concatenate(each) for each in zip(*parts, strict=True))
    low, high = float(pooled.min()), float(pooled.max())
    if read.whole:
        return np.arange(low, high + 2) - 0.5, ""
    inner, note = _inner(parts), ""
    if inner != (low, high):
        beyond = rows[(pooled < inner[0]) | (pooled > inner[1])].sum() / rows.sum()
        ends = [_said(read.axis, end) for end in (*inner, low, high)]
        note = (
            f"{in_percent(float(beyond))}% of rows lie outside of {ends[0]} to {ends[1]} and are not drawn; "
            f"all lie between {ends[2]} and {ends[3]}."
        )
    inside = (pooled >= inner[0]) & (pooled <= inner[1])
    first, third = _quantiles(Tally(pooled[inside], rows[inside]), [0.25, 0.75])
    width = 2 * (third - first) / max(rows[inside].sum(), 1) ** (1 / 3)
    number = (inner[1] - inner[0]) / width if width > 0 else LEAST_BINS
    if inner[1] <= inner[0]:
        inner = inner[0] - 0.5, inner[0] + 0.5
    return np.linspace(*inner, int(np.clip(number, LEAST_BINS, MOST_BINS)) + 1), note


def _inner(parts: Sequence[Tally]) -> tuple[float, float]:
    """Between which numbers all groups are drawn."""
    pooled = np.concatenate([part.values for part in parts])
    low, high = float(pooled.min()), float(pooled.max())
    found = [_quantiles(each, [TAIL, 0.05, 0.95, 1 - TAIL]) for each in parts if len(each.values)]
    ends = [bulk(b, c, low, high) if c > b else (a, d) for a, b, c, d in found]
    inner = float(min(a for a, _ in ends)), float(max(b for _, b in ends))
    return inner if inner[1] - inner[0] < TAILED * (high - low) else (low, high)


def _quantiles(part: Tally, q: Sequence[float]) -> np.ndarray:
    return np.quantile(part.values, q, weights=part.rows, method="inverted_cdf")


def _scatter(x: _Read, y: _Read) -> Panel:
    ends, notes = [], []
    rows = np.isfinite(x.parts[0].values) & np.isfinite(y.parts[0].values)
    places = []
    generator = np.random.default_rng(0)
    for read in (x, y):
        values = read.parts[0].values[rows]
        # Labels are spread, so that rows of the same labels do not hide each other.
        places.append(values + 0.5 * (generator.random(len(values)) - 0.5) if read.axis.ticks else values)
        ends.append(
            (-np.inf, np.inf) if read.axis.ticks or not len(values) else _inner([Tally(values, np.ones(len(values)))])
        )
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
