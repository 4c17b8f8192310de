"""The page of a graph: drawn, with a table of its edges."""

from collections.abc import Mapping, Sequence
from typing import Any

from meanmap.graphs.drawing import MAJORITY, hanging
from meanmap.graphs.graph import Graph
from meanmap.plots.facts import Chart, Page, Section
from meanmap.plots.networks import Link, network_chart

__all__ = ["graph_page", "plain_page"]


def _graph_chart(graph: Graph) -> Chart | None:
    """An undirected graph; a forest hangs from its centres."""
    links = [Link(int(a), int(b)) for a, b in graph.edges]
    return network_chart("The graph", graph.names, links, hanging(graph) if graph.is_forest and len(links) else None)


def plain_page(graph: Graph) -> Page:
    """The page of an undirected graph without attributes."""
    chart = _graph_chart(graph)
    rows = (("from", "to"), *((str(a), str(b)) for a, b in graph.named_edges))
    said = f"{graph.size} nodes, {len(graph.edges)} lines."
    facts = {"names": list(graph.names), "edges": [list(pair) for pair in graph.named_edges]}
    return Page(
        "A graph", "", (Section("The graph", said, charts=() if chart is None else (chart,), tables=(rows,)),), facts
    )


def graph_page(
    graph: Any,
    pairs: Sequence[tuple],
    directed: Sequence[bool],
    known: Mapping[str, Mapping[tuple, float]],
    said: str,
    meaning: str = "",
    title: str = "A graph",
) -> Page:
    """The page of a graph from its edges as pairs of names, whether each is an arrow, and named numbers for pairs.
    `meaning` explains edges and numbers; notes are taken from the lines of `said`.
    """
    number = {name: i for i, name in enumerate(graph.names)}
    known = {what: values for what, values in known.items() if len(values)}

    def of(what: str, a: Any, b: Any) -> float | None:
        return known[what].get((a, b), known[what].get((b, a)))

    rows, links, facts = [], [], []
    for (a, b), arrow in zip(pairs, directed, strict=True):
        values = {what: value for what in known if (value := of(what, a, b)) is not None}
        text = "".join(f"\n{what} {_cell(value)}" for what, value in values.items())
        weak = "support" in known and values.get("support", 0.0) < MAJORITY
        links.append(Link(number[a], number[b], arrow, text, weak))
        rows.append((str(a), "→" if arrow else "—", str(b), *(_cell(values[k]) if k in values else "" for k in known)))
        facts.append({"from": a, "to": b, "directed": bool(arrow), **values})
    chart = network_chart("The graph", graph.names, links)
    count = sum(map(bool, directed))
    kinds = (count, "arrow"), (len(pairs) - count, "line")
    of_each = [f"{number} {what}{'s' * (number != 1)}" for number, what in kinds if number or not pairs]
    notes = (
        ("note",),
        *((line.removeprefix("  note: "),) for line in said.splitlines() if line.startswith("  note: ")),
    )
    table = (("from", "edge", "to", *known), *rows)
    large = "The graph is too large to be drawn: its edges are listed. " if chart is None else ""
    text = f"{large}{meaning}".strip()
    section = Section(
        "The graph",
        f"{len(graph.names)} nodes, {' and '.join(of_each)}.",
        text,
        charts=() if chart is None else (chart,),
        tables=(table, notes),
    )
    return Page(title, "", (section,), {"names": list(graph.names), "edges": facts})


def _cell(value: float) -> str:
    return ("no", "yes")[value] if isinstance(value, bool) else f"{value:.3g}"
