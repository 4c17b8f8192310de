"""Pages of effects, of scores of arrows, and of how well columns are predicted."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from meanmap.core.notes import note_table
from meanmap.core.values import label_text
from meanmap.graphs.pages import graph_page
from meanmap.plots.facts import Axis, Chart, Mark, Page, Panel, Section
from meanmap.plots.intervals import MOST, intervals_chart

__all__ = ["effect_page", "held_out_page", "scores_page"]

# Of so many labels the changes of their shares are in the answer, the largest ones.
MOST_SAID = 3


def effect_page(effect: Any) -> Page:
    """Differences with their intervals, and the distributions of the outcome in both arms."""
    labels = [label_text(label) for label in effect.labels]
    found = {f"share of {label_text(label)}": effect.difference(label) for label in effect.labels}
    found = found or {"mean": effect.difference(), "median": effect.quantiles()}
    numbers = np.array([(each.value, *each.interval()) for each in found.values()])
    unit = "difference of shares" if labels else f"difference of {effect.on}"
    middle, low, high = numbers.T
    charts = [intervals_chart("The effect", list(found), middle, low, high, f"{unit}, with 90 % interval")]
    names = [f"{effect.of} = {label_text(value)}" for value in (effect.from_, effect.to)]
    charts.append(_arms(effect, labels, names))
    rows = [(name, f"{v:.4g}", f"{a:.4g} to {b:.4g}") for name, (v, a, b) in zip(found, numbers, strict=True)]
    table = (("difference of", "estimate", "90 % interval"), *rows)
    head, *rest = str(effect).splitlines()
    said = [line.strip() for line in rest[len(found) :] if not line.startswith("  note: ")]
    more = "; ".join(said)
    text = f"{head[:1].upper()}{head[1:]}. {more[:1].upper()}{more[1:]}."
    notes = note_table(effect.notes)
    title = f"The effect of {effect.of} on {effect.on}"
    section = Section(
        "The answer",
        _answer(effect, found),
        text,
        charts=tuple(charts),
        tables=(table, notes),
    )
    return Page(title, "", (section,), effect.to_dict())


def _answer(effect: Any, found: Mapping[str, Any]) -> str:
    """The change of the mean, or of the shares that change most, in a sentence."""
    largest = sorted(found, key=lambda name: -abs(found[name].value))[:MOST_SAID]
    shown = largest if effect.labels else ["mean"]
    changes = []
    for name in shown:
        low, high = found[name].interval()
        what = f"the {name}" if effect.labels else f"the {name} of {effect.on}"
        changes.append(f"{what} by {found[name].value:.3g} (90 % interval {low:.3g} to {high:.3g})")
    values = f"{label_text(effect.to)} rather than {label_text(effect.from_)}"
    return f"Setting {effect.of} to {values} changes {', '.join(changes)}."


def _arms(effect: Any, labels: list[str], names: list[str]) -> Chart:
    """Shares of labels, or the probability of values up to each."""
    marks = []
    for i, (arm, name) in enumerate(zip(effect.arms, names, strict=True)):
        if labels:
            left = np.arange(len(labels)) - 0.4 + 0.4 * i
            marks.append(Mark("bars", {"x1": left, "x2": left + 0.4, "y": arm.average.value}, name, colour=i))
        else:
            marks.append(Mark("line", {"x": arm.at, "y": arm.below.value}, name, colour=i))
    axis = Axis(str(effect.on), ticks=tuple((float(k), label) for k, label in enumerate(labels)))
    upwards = Axis("share" if labels else "probability of values up to this", limits=(0.0, 1.0))
    return Chart(f"{effect.on} in both arms", (Panel(axis, upwards, tuple(marks)),))


def scores_page(scores: Any) -> Page:
    """The graph with the gain of each arrow, and gains with two standard errors."""
    pairs = [*scores.graph.named("directed"), *scores.graph.named("undirected")]
    arrows = [i < len(scores.graph.directed) for i in range(len(pairs))]
    gain = {pair: each.mean for pair, each in scores.arrows.items()}
    error = {pair: each.error for pair, each in scores.arrows.items()}
    worth = {pair: float(each.mean > 2 * each.error) for pair, each in scores.arrows.items()}
    page = graph_page(
        scores.graph, pairs, arrows, {"gain": gain, "error": error, "more than two errors": worth}, str(scores)
    )
    names = [f"{a} → {b}" for a, b in gain]
    means, errors = np.array(list(gain.values())), np.array(list(error.values()))
    label = "gain in nats per held-out row ± 2 errors"
    chart = intervals_chart("Gains of arrows", names, means, means - 2 * errors, means + 2 * errors, label)
    rows = [(str(name), str(each), str(scores.lines.get(name, ""))) for name, each in scores.nodes.items()]
    table = (("variable", "gain by its parents", "by a line with normal noise"), *rows)
    gains = Section("Gains", "", charts=(chart,) if names else (), tables=(table,))
    return Page("Scores of arrows", "", (*page.sections, gains), page.facts)


def held_out_page(held_out: Mapping[Any, Mapping[str, float]], notes: Any) -> Page:
    """A page of prediction errors of each column in held-out rows, relative to one prediction for all rows."""
    names = [str(name) for name in held_out][:MOST]
    places = -np.arange(len(names), dtype=float)
    share = [each["this"] / each["alone"] if each["alone"] else np.nan for each in held_out.values()][: len(names)]
    said = [f"{name}: {value:.3g}" for name, value in zip(names, share, strict=True)]
    marks = (
        Mark("rules", {"x": [1.0]}, "the same for every row", colour=6, dashed=True),
        Mark("dots", {"x": share, "y": places}, "this network", said),
    )
    ticks = tuple(zip(places.tolist(), names, strict=True))
    chart = Chart("Errors in held-out rows", (Panel(Axis("error, relative"), Axis(ticks=ticks), marks),))
    kinds = list(dict.fromkeys(kind for each in held_out.values() for kind in each))
    rows = (
        (str(name), *(f"{each[kind]:.4g}" if kind in each else "" for kind in kinds)) for name, each in held_out.items()
    )
    tables = (("column", *kinds), *rows), note_table(notes)
    text = "Smaller is better: at 1 the other columns do not help."
    section = Section("How well columns are predicted", "", text, charts=(chart,), tables=tables)
    facts = {"held_out": {str(name): dict(each) for name, each in held_out.items()}}
    return Page("A dependency network", "", (section,), facts)
