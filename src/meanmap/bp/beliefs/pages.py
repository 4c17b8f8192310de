"""Pages of beliefs: densities with means and intervals, probabilities of labels, and evidence to be moved."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from meanmap.bp.beliefs.densities import Density
from meanmap.bp.beliefs.label_belief import LabelBelief
from meanmap.core.domains import holds_vectors
from meanmap.core.points import in_columns
from meanmap.core.tables.kinds import family_of
from meanmap.core.values import label_text
from meanmap.embeddings.points import PointEmbedding
from meanmap.plots.facts import Axis, Chart, Control, Mark, Page, Panel, Section
from meanmap.plots.paged import Paged

__all__ = ["QueriedPage", "beliefs_page"]

# So many targets and queries are shown; densities are drawn at so many points.
MOST_TARGETS, MOST_QUERIES, POINTS = 40, 20, 60
# Of a network, so many variables, and values of the evidence.
MOST_VARIABLES, LEVELS = 6, (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95)
INTERVAL = (0.025, 0.975)


def beliefs_page(beliefs: Any, brief: bool) -> Page:
    """Each belief; with several queries those one after the other. Brief: of the first query."""
    shown = list(beliefs)[:MOST_TARGETS]
    found = {name: _numbers(name, beliefs[name], beliefs.labels) for name in shown}
    found = {name: queries for name, queries in found.items() if queries}
    found = dict(sorted(found.items(), key=lambda item: "observed" in item[1][0]))  # what was asked comes first
    number = min((len(queries) for queries in found.values()), default=0)
    number = min(number, 1 if brief else MOST_QUERIES)
    panels = tuple(_panel(name, queries[k]) for name, queries in found.items() for k in range(number))
    controls = [Control("Belief about", tuple(map(str, found)))] if len(found) > 1 else []
    if number > 1:
        controls.append(Control("Query", tuple(f"{k + 1}" for k in range(number)), slider=True))
    chart = (Chart("Beliefs", panels, tuple(controls)),) if panels else ()
    rows = [(str(name), str(k + 1), _said(queries[k])) for name, queries in found.items() for k in range(number)]
    tables = (("belief about", "query", "in numbers"), *rows), (("note",), *((each,) for each in beliefs.report.notes))
    facts = {str(name): [_plain(query) for query in queries[:number]] for name, queries in found.items()}
    section = Section(
        "Beliefs", f"{beliefs.report.status[:1].upper()}{beliefs.report.status[1:]}.", charts=chart, tables=tables
    )
    return Page("Beliefs", "", (section,), {"beliefs": facts, "report": beliefs.report.to_dict()})


class QueriedPage(Paged):
    """A network with a page: its graph, and beliefs given evidence that is moved."""

    graph: Any

    def _as_page(self, brief: bool = False) -> Page:
        drawn = self.graph._as_page().sections[0]
        if brief:
            return Page(f"{type(self).__name__}", "", (drawn,))
        chart = query_chart(self, self.graph.names)
        text = "Beliefs were computed beforehand, at quantiles of what is believed without evidence."
        moved = [] if chart is None else [Section("Move the evidence", "", text, charts=(chart,))]
        return Page("A network that answers queries", "", (drawn, *moved), self.graph._as_page().facts)


def query_chart(model: Any, names: Any) -> Chart | None:
    """Beliefs about each variable given values of each other, computed beforehand: a slider moves the evidence."""
    prior = model.query({})
    names = [name for name in names if _numbers(name, prior[name], prior.labels)][:MOST_VARIABLES]
    if len(names) < 2:
        return None
    panels, places = [], tuple(f"{each:g}" for each in LEVELS)
    for given in names:
        values, said = _values(_numbers(given, prior[given], prior.labels)[0])
        beliefs = model.query({given: values}, [name for name in names if name != given])
        for target in names:
            queries = _known(values) if target == given else _numbers(target, beliefs[target], beliefs.labels)
            for k in range(len(LEVELS)):
                at = k * len(said) // len(LEVELS)
                panels.append(_panel(target, queries[at], f"Given {given} = {said[at]}: "))
    controls = (
        Control("Evidence about", tuple(map(str, names))),
        Control("Belief about", tuple(map(str, names)), first=1),
        Control("Quantile of the evidence", places, slider=True, first=len(LEVELS) // 2),
    )
    return Chart("Move the evidence", tuple(panels), controls)


def _values(numbers: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Values of the evidence, one for each level or label, and how they are written."""
    if "probabilities" in numbers:
        labels = list(numbers["probabilities"])
        return np.array(labels), [label_text(each) for each in labels]
    values = np.array([float(f"{each:.4g}") for each in numbers["levels"]])
    return values, [f"{each:.4g}" for each in values]


def _known(values: np.ndarray) -> list[dict[str, Any]]:
    """The belief about the evidence itself."""
    if family_of(values) == "number" and np.issubdtype(values.dtype, np.floating):
        return [{"mean": float(value), "observed": True} for value in values]
    each = values.tolist()
    return [{"probabilities": {label: float(label == one) for label in each}} for one in each]


def _numbers(name: Hashable, belief: Any, labels: Mapping[Hashable, Any]) -> list[dict[str, Any]]:
    """Each query's belief in numbers; none of what is neither a number nor a label."""
    if not isinstance(belief, PointEmbedding | Density):
        each = np.atleast_2d(np.asarray(belief, float))
        return [{"probabilities": dict(enumerate(row.tolist()))} for row in each[:MOST_QUERIES]]
    if isinstance(belief, LabelBelief) or name in labels:
        found: dict[Any, Any] = {}
        known = belief.labels if isinstance(belief, LabelBelief) else labels[name]
        held: Any = belief
        weights = np.atleast_2d(np.asarray(held.weights))
        for i, label in enumerate(known):
            found[label] = found.get(label, 0.0) + weights[..., i]
        return [
            {"probabilities": {label: float(np.atleast_1d(p)[k]) for label, p in found.items()}}
            for k in range(min(len(weights), MOST_QUERIES))
        ]
    if isinstance(belief, PointEmbedding):
        points = belief.points
        if not (holds_vectors(belief.kernel.domain) and in_columns(points) and points.shape[1] == 1):
            return []
        if len(points) == 1 or (belief.batch and len(points) == belief.batch[0]):
            return [{"mean": float(value), "observed": True, "levels": [float(value)]} for value in points[:, 0]]
    queries = [belief[i] for i in range(min(belief.batch[0], MOST_QUERIES))] if belief.batch else [belief]
    return [_of_number(one) for one in queries]


def _of_number(one: Any) -> dict[str, Any]:
    low, first, last, high = (float(each) for each in np.ravel(one.quantile([0.001, *INTERVAL, 0.999])))
    grid = np.linspace(low - 0.05 * (high - low), high + 0.05 * (high - low), POINTS)
    levels = [float(each) for each in np.ravel(one.quantile(list(LEVELS)))]
    mean, sd = float(np.ravel(one.mean())[0]), float(np.ravel(one.sd())[0])
    density = np.ravel(one.density(grid))
    return {"mean": mean, "sd": sd, "interval": (first, last), "grid": grid, "density": density, "levels": levels}


def _panel(name: Hashable, numbers: Mapping[str, Any], before: str = "") -> Panel:
    note = before + _said(numbers)
    if "probabilities" in numbers:
        each = numbers["probabilities"]
        places = np.arange(len(each), dtype=float)
        ticks = tuple((float(at), label_text(label)) for at, label in enumerate(each))
        bars = Mark("bars", {"x1": places - 0.4, "x2": places + 0.4, "y": list(each.values())})
        return Panel(Axis(str(name), ticks=ticks), Axis("probability", limits=(0.0, 1.0)), (bars,), note)
    mean = Mark("rules", {"x": [numbers["mean"]]}, "observed" if "observed" in numbers else "mean", colour=1)
    if "observed" in numbers:
        half = max(0.5 * abs(numbers["mean"]), 1e-3)
        limits = numbers["mean"] - half, numbers["mean"] + half
        return Panel(Axis(str(name), limits=limits), Axis("density"), (mean,), note)
    density = Mark("area", {"x": numbers["grid"], "y": numbers["density"]}, "density")
    ends = Mark("rules", {"x": list(numbers["interval"])}, "95 % interval", colour=2, dashed=True)
    return Panel(Axis(str(name)), Axis("density"), (density, mean, ends), note)


def _said(numbers: Mapping[str, Any]) -> str:
    if "probabilities" in numbers:
        best = sorted(numbers["probabilities"].items(), key=lambda item: -item[1])[:5]
        return ", ".join(f"{label_text(label)} {value:.3g}" for label, value in best)
    if "observed" in numbers:
        return f"observed: {numbers['mean']:.4g}"
    low, high = numbers["interval"]
    return f"mean {numbers['mean']:.4g}, sd {numbers['sd']:.3g}, 95 % interval {low:.4g} to {high:.4g}"


def _plain(numbers: Mapping[str, Any]) -> dict[str, Any]:
    if "probabilities" in numbers:
        return {"probabilities": {label_text(label): value for label, value in numbers["probabilities"].items()}}
    return {name: numbers[name] for name in ("mean", "sd", "interval", "observed") if name in numbers}
