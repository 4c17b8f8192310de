"""Pictures of graphs."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

__all__ = ["draw"]

# Points: the radius of a node, which arrows stop short of.
MARGIN = 19


def draw(
    graph: Any,
    axes: Any = None,
    *,
    positions: Mapping[Hashable, Any] | None = None,
    labels: Mapping[tuple, str] | None = None,
) -> Any:
    """Draw a NetworkX graph; an edge that a DiGraph has in both directions is a line without a head.

    Parameters
    ----------
    graph : networkx.Graph or networkx.DiGraph
        What to draw.
    axes : matplotlib Axes, optional
        Where; by default a new figure.
    positions : mapping from names to (x, y), optional
        By default distances on the page follow those along edges (Kamada & Kawai 1989).
    labels : mapping from pairs to text, optional
        What is written at edges.
    """
    if axes is None:
        from matplotlib.figure import Figure

        side = 3.5 + 0.25 * len(graph)
        axes = Figure(figsize=(1.3 * side, side), layout="constrained").subplots()
    places = _places(graph) if positions is None else {name: np.asarray(positions[name], float) for name in graph}
    arrows = graph.is_directed()
    for a, b in graph.edges:
        line = not arrows or graph.has_edge(b, a)
        if line and arrows and list(graph).index(a) > list(graph).index(b):
            continue  # its other direction was drawn
        style = {"arrowstyle": "-" if line else "-|>", "shrinkA": MARGIN, "shrinkB": MARGIN, "mutation_scale": 14}
        style |= {"color": "C7" if line else "C0", "linewidth": 1.6}
        axes.annotate("", places[b], places[a], arrowprops=style)
        text = (labels or {}).get((a, b)) or (labels or {}).get((b, a))
        if text:
            box = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"}
            axes.text(*(0.5 * (places[a] + places[b])), text, fontsize=7, ha="center", va="center", bbox=box)
    for name, place in places.items():
        box = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": "C7"}
        axes.text(*place, str(name), ha="center", va="center", bbox=box)
    points = np.array(list(places.values()))
    axes.update_datalim(points)
    axes.set_axis_off()
    axes.margins(0.15)
    axes.autoscale_view()
    return axes


def _places(graph: Any) -> dict[Hashable, np.ndarray]:
    """Positions by distances along edges, the parts of a graph side by side."""
    import networkx

    places, left = {}, 0.0
    for part in networkx.connected_components(graph.to_undirected()):
        names = [name for name in graph if name in part]
        found = networkx.kamada_kawai_layout(graph.to_undirected().subgraph(names), scale=len(names) ** 0.5)
        low = min(place[0] for place in found.values())
        places |= {name: np.array([found[name][0] - low + left, found[name][1]]) for name in names}
        left = max(places[name][0] for name in names) + 1.2
    return {name: places[name] for name in graph}
