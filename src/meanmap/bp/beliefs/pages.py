"""Pages of beliefs: densities with means and intervals, probabilities of labels, and evidence to be moved."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from meanmap.bp.beliefs.label_belief import LabelBelief
from meanmap.core.notes import note_table
from meanmap.core.tables.kinds import family_of
from meanmap.core.values import label_shown
from meanmap.embeddings.points import PointEmbedding
from meanmap.plots.beliefs import (
    LEVELS,
    MOST_QUERIES,
    BeliefPaged,
    belief_facts,
    belief_panel,
    belief_text,
    of_labels,
)
from meanmap.plots.facts import Chart, Control, Page, Section
from meanmap.plots.networks import MOST_NODES
from meanmap.plots.paged import Paged

__all__ = ["QueriedPage", "beliefs_page"]

# The most targets shown, and the most variables of a network; larger graphs, whose messages take long, show none.
MOST_TARGETS, MOST_VARIABLES = 40, 6
# More variables with evidence are not in the title.
MOST_GIVEN = 5


def beliefs_page(beliefs: Any, brief: bool) -> Page:
    """A page of all beliefs, query by query; `brief` includes only the first query."""
    shown = list(beliefs)[:MOST_TARGETS]
    found = {name: _numbers(name, beliefs[name], beliefs.labels) for name in shown}
    found = {name: queries for name, queries in found.items() if queries}
    found = dict(sorted(found.items(), key=lambda item: "observed" in item[1][0]))  # targets first, then evidence
    number = min((len(queries) for queries in found.values()), default=0)
    number = min(number, 1 if brief else MOST_QUERIES)
    panels = tuple(belief_panel(name, queries[k]) for name, queries in found.items() for k in range(number))
    controls = [Control("Belief about", tuple(map(str, found)))] if len(found) > 1 else []
    if number > 1:
        controls.append(Control("Query", tuple(f"{k + 1}" for k in range(number)), slider=True))
    chart = (Chart("Beliefs", panels, tuple(controls)),) if panels else ()
    rows = [(str(name), str(k + 1), belief_text(queries[k])) for name, queries in found.items() for k in range(number)]
    tables = (
        (("belief about", "query", "in numbers"), *rows),
        note_table(beliefs.report.notes),
    )
    facts = {str(name): [belief_facts(query) for query in queries[:number]] for name, queries in found.items()}
    status = f"{beliefs.report.status[:1].upper()}{beliefs.report.status[1:]}."
    section = Section("Beliefs", _answer(found, number), status, charts=chart, tables=tables)
    return Page(_title(found, beliefs.given), "", (section,), {"beliefs": facts, "report": beliefs.report.to_dict()})


def _title(found: Mapping[Hashable, Any], known: Sequence[str]) -> str:
    given = [*known] or [str(name) for name, queries in found.items() if "observed" in queries[0]]
    return f"Beliefs given {', '.join(given)}" if 0 < len(given) <= MOST_GIVEN else "Beliefs"


def _answer(found: Mapping[Hashable, Any], number: int) -> str:
    """The first belief of a single query, in a sentence."""
    if number != 1:
        return ""
    name, (numbers, *_) = next(iter(found.items()))
    return f"Belief about {name}: {belief_text(numbers)}."


class QueriedPage(Paged):
    """A network with a page: its graph, and beliefs given evidence that is moved."""

    graph: Any

    def _answers_of_page(self, evidence: Mapping[Any, Any], targets: Any = None) -> Any:
        model: Any = self
        return model.query(evidence, targets)

    def _picture(self) -> Page:
        """The part of the page that needs no query."""
        return self.graph._as_page()

    def _variables_of_page(self) -> Any:
        return self.graph.names

    def _times_of_page(self) -> Collection[Any]:
        """Times and durations, whose beliefs are in seconds: evidence about them is not moved."""
        return ()

    def _as_page(self, brief: bool = False) -> Page:
        drawn, names = self._picture(), self._variables_of_page()
        names = [name for name in names if name not in self._times_of_page()]
        if brief:
            return Page(f"{type(self).__name__}", "", drawn.sections[:1])
        chart = query_chart(self._answers_of_page, names) if len(names) <= MOST_NODES else None
        text = "Beliefs were computed beforehand, at quantiles of the beliefs without evidence."
        moved = [] if chart is None else [Section("Move the evidence", "", text, charts=(chart,))]
        return Page("A network that answers queries", "", (*drawn.sections, *moved), drawn.facts)


def query_chart(query: Any, names: Any) -> Chart | None:
    """Beliefs about each variable given values of each other, computed beforehand: a slider moves the evidence."""
    prior = query({})
    names = [name for name in names if _numbers(name, prior[name], prior.labels)][:MOST_VARIABLES]
    if len(names) < 2:
        return None
    panels, places = [], tuple(f"{each:g}" for each in LEVELS)
    for given in names:
        values, said = _values(_numbers(given, prior[given], prior.labels)[0])
        beliefs = query({given: values}, [name for name in names if name != given])
        for target in names:
            queries = _known(values) if target == given else _numbers(target, beliefs[target], beliefs.labels)
            for k in range(len(LEVELS)):
                at = k * len(said) // len(LEVELS)
                panels.append(belief_panel(target, queries[at], f"Given {given} = {said[at]}: "))
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
        return np.array(labels), [label_shown(each) for each in labels]
    values = np.array([float(f"{each:.4g}") for each in numbers["levels"]])
    return values, [f"{each:.4g}" for each in values]


def _known(values: np.ndarray) -> list[dict[str, Any]]:
    """The belief about the evidence itself."""
    if family_of(values) == "number" and np.issubdtype(values.dtype, np.floating):
        return [{"mean": float(value), "observed": True} for value in values]
    each = values.tolist()
    return [{"probabilities": {label: float(label == one) for label in each}} for one in each]


def _numbers(name: Hashable, belief: Any, labels: Mapping[Hashable, Any]) -> list[dict[str, Any]]:
    """A summary of each query's belief in numbers; empty for variables that are neither numbers nor labels."""
    if not isinstance(belief, BeliefPaged):
        each = np.atleast_2d(np.asarray(belief, float))
        return [{"probabilities": dict(enumerate(row.tolist()))} for row in each[:MOST_QUERIES]]
    if name in labels and isinstance(belief, PointEmbedding) and not isinstance(belief, LabelBelief):
        return of_labels(labels[name], np.asarray(belief.weights))
    return belief._in_numbers()
