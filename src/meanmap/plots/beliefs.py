"""Beliefs about one number or label in pictures: densities with means and intervals, probabilities of labels."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from meanmap.core.values import label_shown, label_text
from meanmap.plots.facts import Axis, Chart, Control, Mark, Page, Panel, Section
from meanmap.plots.paged import Paged
from meanmap.plots.ranges import bulk

__all__ = [
    "LEVELS",
    "MOST_QUERIES",
    "BeliefPaged",
    "belief_facts",
    "belief_page",
    "belief_panel",
    "belief_text",
    "of_labels",
    "of_number",
]

# Numbers of queries shown and of points at which densities are drawn, and the quantiles along which evidence moves.
MOST_QUERIES, POINTS, LEVELS = 20, 60, (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95)
INTERVAL = (0.025, 0.975)
NOT_DRAWN = "It is not a distribution of numbers or of labels, so there is no density to draw."


class BeliefPaged(Paged):
    """A belief with a page: its mean, interval and density, or the probabilities of labels."""

    def _in_numbers(self) -> list[dict[str, Any]]:
        """Each query's belief in numbers; none if it is neither about a number nor about labels."""
        raise NotImplementedError

    def _as_page(self, brief: bool = False) -> Page:
        queries = self._in_numbers()[: 1 if brief else MOST_QUERIES]
        return (
            belief_page(queries) if queries else Page("A belief", "", (Section("The belief", repr(self), NOT_DRAWN),))
        )


def belief_page(queries: Sequence[Mapping[str, Any]]) -> Page:
    """One belief, for one query or several."""
    several = len(queries) > 1
    controls = (Control("Query", tuple(f"{k + 1}" for k in range(len(queries))), slider=True),) if several else ()
    chart = Chart("The belief", tuple(belief_panel("value", each) for each in queries), controls)
    rows = (("query", "in numbers"), *((f"{k + 1}", belief_text(each)) for k, each in enumerate(queries)))
    said = f"{len(queries)} queries." if several else ""
    section = Section("The belief", said, charts=(chart,), tables=(rows,) if several else ())
    return Page("A belief", "", (section,), {"belief": [belief_facts(each) for each in queries]})


def of_labels(labels: Sequence[Any], weights: np.ndarray) -> list[dict[str, Any]]:
    """The probability of each label for each query, from weights (..., n) of points whose labels may repeat."""
    found: dict[Any, Any] = {}
    weights = np.atleast_2d(weights)
    for i, label in enumerate(labels):
        found[label] = found.get(label, 0.0) + weights[..., i]
    number = min(len(weights), MOST_QUERIES)
    return [{"probabilities": {label: float(p[k]) for label, p in found.items()}} for k in range(number)]


def of_number(one: Any) -> dict[str, Any]:
    """One belief about a number, by its own quantiles, mean, sd and density."""
    low, first, last, high = (float(each) for each in np.ravel(one.quantile([0.001, *INTERVAL, 0.999])))
    if low == high:
        return {"mean": low, "observed": True, "levels": [low]}
    fifth, most = (float(each) for each in np.ravel(one.quantile([0.05, 0.95])))
    ends = bulk(fifth, most, low, high)
    low, high = min(ends[0], first), max(ends[1], last)
    grid = np.linspace(low - 0.05 * (high - low), high + 0.05 * (high - low), POINTS)
    levels = [float(each) for each in np.ravel(one.quantile(list(LEVELS)))]
    mean, sd = float(np.ravel(one.mean())[0]), float(np.ravel(one.sd())[0])
    density = np.ravel(one.density(grid))
    return {"mean": mean, "sd": sd, "interval": (first, last), "grid": grid, "density": density, "levels": levels}


def belief_panel(name: Hashable, numbers: Mapping[str, Any], before: str = "") -> Panel:
    """A belief drawn, with a sentence that begins with `before`."""
    note = before + belief_text(numbers)
    if "probabilities" in numbers:
        each = numbers["probabilities"]
        places = np.arange(len(each), dtype=float)
        ticks = tuple((float(at), label_shown(label)) for at, label in enumerate(each))
        bars = Mark("bars", {"x1": places - 0.4, "x2": places + 0.4, "y": list(each.values())})
        return Panel(Axis(str(name), ticks=ticks), Axis("probability", limits=(0.0, 1.0)), (bars,), note)
    mean = Mark("rules", {"x": [numbers["mean"]]}, "observed" if "observed" in numbers else "mean", colour=1)
    if "observed" in numbers:
        half = max(0.5 * abs(numbers["mean"]), 1e-3)
        limits = numbers["mean"] - half, numbers["mean"] + half
        return Panel(Axis(str(name), limits=limits), Axis("density"), (mean,), note)
    density = Mark("area", {"x": numbers["grid"], "y": numbers["density"]}, "density")
    ends = Mark("rules", {"x": list(numbers["interval"])}, "95% interval", colour=2, dashed=True)
    return Panel(Axis(str(name)), Axis("density"), (density, mean, ends), note)


def belief_text(numbers: Mapping[str, Any]) -> str:
    """A belief in a line."""
    if "probabilities" in numbers:
        best = sorted(numbers["probabilities"].items(), key=lambda item: -item[1])[:5]
        return ", ".join(f"{label_shown(label)} {value:.3g}" for label, value in best)
    if "observed" in numbers:
        return f"observed: {numbers['mean']:.4g}"
    low, high = numbers["interval"]
    said = f"mean {numbers['mean']:.4g}, sd {numbers['sd']:.3g}, 95% interval {low:.4g} to {high:.4g}"
    return said + "".join(f", {value:.4g} with probability {p:.2g}" for value, p in numbers.get("shares", {}).items())


def belief_facts(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """A belief as plain values."""
    if "probabilities" in numbers:
        return {"probabilities": {label_text(label): value for label, value in numbers["probabilities"].items()}}
    shares = {"shares": {f"{value:g}": p for value, p in numbers["shares"].items()}} if numbers.get("shares") else {}
    return {name: numbers[name] for name in ("mean", "sd", "interval", "observed") if name in numbers} | shares
