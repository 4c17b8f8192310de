"""Pages of simulated power, of corrected p-values and of bets."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from meanmap.plots.facts import Axis, Chart, Mark, Page, Panel, Section
from meanmap.plots.intervals import MOST

__all__ = ["WHERE", "adjusted_page", "bet_page", "power_page", "rejection_page"]

LEVEL, POWER = 0.05, 0.8
# Axes of more batches have a scale.
MOST_NUMBERED = 12
# A bet keeps no rows to compare columns with.
WHERE = "To see which columns differ, and by how much, pass all rows to two_sample_effect."


def rejection_page(result: Any) -> Page:
    """The share of p-values below each level, with the band of calibrated tests."""
    u, half = np.linspace(0, 1, 101), result.band()
    share = np.searchsorted(np.sort(result.pvalues), u, side="right") / max(result.repeats, 1)
    band = {"x": u, "y1": np.maximum(u - half, 0), "y2": np.minimum(u + half, 1)}
    marks = (
        Mark("band", band, "95% of calibrated tests", colour=6),
        Mark("line", {"x": u, "y": share}, f"{result.repeats} p-values"),
        Mark("rules", {"x": [result.level]}, f"level {result.level:g}", colour=1, dashed=True),
    )
    panel = Panel(Axis("u", limits=(0.0, 1.0)), Axis("share of p-values ≤ u", limits=(0.0, 1.0)), marks)
    first, *rest = str(result).splitlines()
    first, text = (f"{each[:1].upper()}{each[1:]}." for each in (first, "; ".join(map(str.strip, rest))))
    section = Section("The answer", first, text, charts=(Chart("Calibration", (panel,)),))
    return Page("How often a test rejects", "", (section,), result.to_dict())


def power_page(curve: Any) -> Page:
    """Rejection rates with their intervals against the number of points."""
    rates = np.array([each.rate for each in curve.rates])
    low, high = np.array([each.interval() for each in curve.rates]).reshape(-1, 2).T
    said = [f"n = {n}: {rate:.3g}" for n, rate in zip(curve.sizes, rates, strict=True)]
    marks = (
        Mark("band", {"x": curve.sizes, "y1": low, "y2": high}, "95% interval"),
        Mark("line", {"x": curve.sizes, "y": rates}, "rejection rate", said),
        Mark("dots", {"x": curve.sizes, "y": rates}, "", said),
        Mark("rules", {"y": [each.level for each in curve.rates[:1]]}, "level", colour=6, dashed=True),
    )
    panel = Panel(Axis("number of points", log=True), Axis("rejection rate", limits=(0.0, 1.0)), marks)
    rows = zip(curve.sizes, rates, low, high, strict=True)
    table = (("points", "rate", "95% interval"), *((f"{n}", f"{r:.3f}", f"{a:.3f} to {b:.3f}") for n, r, a, b in rows))
    needed = curve.needed(POWER)
    answer = f"Power {POWER:g} " + ("is not reached." if needed is None else f"at {needed} points.")
    section = Section("The answer", answer, charts=(Chart("Power", (panel,)),), tables=(table,))
    return Page("Power of a test", "", (section,), {**curve.to_dict(), "needed": needed})


def adjusted_page(found: Any) -> Page:
    """Corrected p-values, the smallest on top."""
    named: Mapping[Any, float] = dict(sorted(found.pvalues.items(), key=lambda item: item[1]))
    names, values = [str(name) for name in named][:MOST], list(named.values())
    rejected = [name for name, value in named.items() if value <= LEVEL]
    places = -np.arange(len(names), dtype=float)
    said = [f"{name}: {value:.3g}" for name, value in zip(names, values, strict=False)]
    marks = (
        Mark("rules", {"x": [LEVEL]}, f"level {LEVEL:g}", colour=1, dashed=True),
        Mark("dots", {"x": values[: len(names)], "y": places}, "", said),
    )
    ticks = tuple(zip(places.tolist(), names, strict=True))
    note = "" if len(names) == len(values) else f"{len(names)} of {len(values)} tests are drawn."
    panel = Panel(Axis("adjusted p-value", limits=(0.0, 1.0)), Axis(ticks=ticks), marks, note)
    table = (("hypothesis", "adjusted p-value"), *((str(name), f"{value:.4g}") for name, value in named.items()))
    answer = f"{len(rejected)} of {len(named)} hypotheses are rejected at level {LEVEL:g}."
    section = Section(
        "The answer", answer, f"{found.method}.", charts=(Chart("Adjusted p-values", (panel,)),), tables=(table,)
    )
    return Page("Several tests at once", "", (section,), found.to_dict())


def bet_page(bet: Any) -> Page:
    """The e-value after each batch."""
    batches, logs = np.arange(1, len(bet.log_evalues) + 1), bet.log_evalues / np.log(10)
    said = [f"batch {k}: e-value {10.0**value:.3g}" for k, value in zip(batches, np.minimum(logs, 300), strict=True)]
    marks = (
        Mark("line", {"x": batches, "y": logs}, "log₁₀ e-value", said),
        Mark("dots", {"x": batches, "y": logs}, "", said),
        Mark("rules", {"y": [np.log10(1 / LEVEL)]}, f"rejected at level {LEVEL:g}", colour=1, dashed=True),
    )
    ticks = tuple((float(k), str(k)) for k in batches) if len(batches) <= MOST_NUMBERED else ()
    chart = Chart("Evidence after each batch", (Panel(Axis("batch", ticks), Axis("log₁₀ e-value"), marks),))
    facts = {"evalue": bet.evalue, "pvalue": bet.pvalue, "log_evalues": bet.log_evalues, "seed": bet.seed}
    text = "The p-value is valid however often you look at it. The first batch is only used for learning."
    if bet.pvalue <= LEVEL and not bet.paired:
        text += f" {WHERE}"
    null = "independence" if bet.paired else "the hypothesis of equal distributions"
    verdict = "rejected" if bet.pvalue <= LEVEL else "not rejected"
    said = f"the e-value is {bet.evalue:.4g} and the anytime-valid p-value {bet.pvalue:.4g}"
    number = f"{len(batches)} batch{'es' * (len(batches) != 1)}"
    answer = f"After {number} {said}: {null} is {verdict} at level {LEVEL:g}."
    title = f"A test of {'independence' if bet.paired else 'equal distributions'} by betting"
    return Page(title, "", (Section("The answer", answer, text, charts=(chart,)),), facts)
