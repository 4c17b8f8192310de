"""Pages of effects, of scores of arrows, and of how well columns are predicted."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from meanmap.core.notes import note_table
from meanmap.core.values import label_shown
from meanmap.graphs.pages import graph_page
from meanmap.plots.facts import Axis, Chart, Mark, Page, Panel, Section
from meanmap.plots.intervals import MOST, intervals_chart
from meanmap.plots.ranges import bulk

__all__ = ["effect_page", "held_out_page", "scores_page"]

# The answer names the largest changes of shares, of at most this many labels.
MOST_SAID = 3
AS_OBSERVED = "The picture shows rows as they were observed, without adjustment."


def effect_page(effect: Any) -> Page:
    """The data as observed, then differences with intervals, and the distributions of the outcome in both arms."""
    labels = [label_shown(label) for label in effect.labels]
    found = {f"share of {label_shown(label)}": effect.difference(label) for label in effect.labels}
    found = found or {"mean": effect.difference(), "median": effect.quantiles()}
    numbers = np.array([(each.value, *each.interval()) for each in found.values()])
    unit = "difference of shares" if labels else f"difference of {effect.on}"
    middle, low, high = numbers.T
    names = [f"{effect.of} = {label_shown(value)}" for value in (effect.from_, effect.to)]
    data = () if effect.shown is None else effect.shown.charts()
    charts = (
        intervals_chart("The effect", list(found), middle, low, high, f"{unit}, with 90% interval", from_zero=True),
        _arms(effect, labels, names),
    )
    rows = [(name, f"{v:.4g}", f"{a:.4g} to {b:.4g}") for name, (v, a, b) in zip(found, numbers, strict=True)]
    table = (("difference of", "estimate", "90% interval"), *rows)
    basis = [f"{line[:1].upper()}{line[1:]}." for line in effect._basis()]
    seen = AS_OBSERVED if effect.adjusted else ""
    text = " ".join(filter(None, (seen, "" if effect.shown is None else effect.shown.note)))
    sections = (
        Section("The answer", _answer(effect, found), text, charts=data, tables=(note_table(effect.notes),)),
        Section("The effect", "", " ".join(basis), charts=charts, tables=(table,)),
    )
    return Page(f"The effect of {effect.of} on {effect.on}", "", sections, effect.to_dict())


def _answer(effect: Any, found: Mapping[str, Any]) -> str:
    """The change of the mean, or of the shares that change most, in a sentence."""
    largest = sorted(found, key=lambda name: -abs(found[name].value))[:MOST_SAID]
    shown = largest if effect.labels else ["mean"]
    changes = []
    for name in shown:
        low, high = found[name].interval()
        what = f"the {name}" if effect.labels else f"the {name} of {effect.on}"
        changes.append(f"{what} by {found[name].value:.3g} (90% interval {low:.3g} to {high:.3g})")
    values = f"{label_shown(effect.to)} rather than {label_shown(effect.from_)}"
    low, high = found[shown[0]].interval()
    unclear = " The interval contains 0." if not effect.labels and low < 0 < high else ""
    return f"Setting {effect.of} to {values} changes {', '.join(changes)}.{unclear}"


def _arms(effect: Any, labels: list[str], names: list[str]) -> Chart:
    """Shares of labels, or the probability of values up to each; long tails are cut."""
    marks, limits, note = [], None, ""
    if not labels:
        low, fifth, last, high = (float(each) for each in np.quantile(effect.arms[0].at, [0.0, 0.05, 0.95, 1.0]))
        limits = bulk(fifth, last, low, high)
        note = "" if limits == (low, high) else f"Values lie between {low:.4g} and {high:.4g}."
    for i, (arm, name) in enumerate(zip(effect.arms, names, strict=True)):
        if labels:
            left = np.arange(len(labels)) - 0.4 + 0.4 * i
            marks.append(Mark("bars", {"x1": left, "x2": left + 0.4, "y": arm.average.value}, name, colour=i))
        else:
            marks.append(Mark("line", {"x": arm.at, "y": arm.below.value}, name, colour=i))
    axis = Axis(str(effect.on), ticks=tuple((float(k), label) for k, label in enumerate(labels)), limits=limits)
    upwards = Axis("share" if labels else "probability of values up to this", limits=(0.0, 1.0))
    return Chart(f"{effect.on} in both arms", (Panel(axis, upwards, tuple(marks), note),))


def scores_page(scores: Any) -> Page:
    """The graph with the gain of each arrow, and gains with two standard errors."""
    pairs = [*scores.graph.named("directed"), *scores.graph.named("undirected")]
    arrows = [i < len(scores.graph.directed) for i in range(len(pairs))]
    gain = {pair: each.mean for pair, each in scores.arrows.items()}
    error = {pair: each.error for pair, each in scores.arrows.items()}
    worth = {pair: bool(each.mean > 2 * each.error) for pair, each in scores.arrows.items()}
    page = graph_page(
        scores.graph, pairs, arrows, {"gain": gain, "error": error, "more than two errors": worth}, str(scores)
    )
    names = [f"{a} → {b}" for a, b in gain]
    means, errors = np.array(list(gain.values())), np.array(list(error.values()))
    label = "gain in nats per held-out row ± 2 errors"
    chart = intervals_chart("Gains of arrows", names, means, means - 2 * errors, means + 2 * errors, label)
    rows = [(str(name), str(each), str(scores.lines.get(name, ""))) for name, each in scores.nodes.items()]
    table = (("variable", "gain by its parents", "by a line with normal noise"), *rows)
    said = f"Gains in log density per held-out row: {sum(worth.values())} of {len(worth)} exceed two standard errors."
    gains = Section("Gains", said, charts=(chart,) if names else (), tables=(table,))
    return Page("How much each arrow improves predictions", "", (*page.sections, gains), page.facts)


def held_out_page(held_out: Mapping[Any, Mapping[str, float]], notes: Any) -> Page:
    """A page of prediction errors of each column in held-out rows, relative to one prediction for all rows."""
    names = [str(name) for name in held_out][:MOST]
    places = -np.arange(len(names), dtype=float)
    share = [each["this"] / each["alone"] if each["alone"] else np.nan for each in held_out.values()][: len(names)]
    most = 1.05 * max([1.0, *(each for each in share if np.isfinite(each))])
    said = [f"{name}: {value:.3g}" for name, value in zip(names, share, strict=True)]
    marks = (
        Mark("rules", {"x": [1.0]}, "the same for every row", colour=6, dashed=True),
        Mark("dots", {"x": share, "y": places}, "this network", said),
    )
    ticks = tuple(zip(places.tolist(), names, strict=True))
    chart = Chart(
        "Errors in held-out rows", (Panel(Axis("error, relative", limits=(0.0, most)), Axis(ticks=ticks), marks),)
    )
    kinds = list(dict.fromkeys(kind for each in held_out.values() for kind in each))
    rows = (
        (str(name), *(f"{each[kind]:.4g}" if kind in each else "" for kind in kinds)) for name, each in held_out.items()
    )
    tables = (("column", *kinds), *rows), note_table(notes)
    text = "Smaller is better: at 1 the other columns do not help."
    section = Section("How well columns are predicted", "", text, charts=(chart,), tables=tables)
    facts = {"held_out": {str(name): dict(each) for name, each in held_out.items()}}
    return Page("A dependency network", "", (section,), facts)
