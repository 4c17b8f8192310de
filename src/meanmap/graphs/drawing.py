"""Drawing graphs."""

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from meanmap.core.extras import optional
from meanmap.core.pictures import new_axes
from meanmap.core.types import Axes
from meanmap.graphs.graph import Graph
from meanmap.graphs.rooted import Rooted

if TYPE_CHECKING:
    import networkx

    from meanmap.graphs.partial import PDAG

__all__ = ["MAJORITY", "draw", "draw_forest", "hanging"]

# Edges with less support are drawn dashed.
MAJORITY = 0.5


def draw(
    graph: "Graph | PDAG",
    ax: Axes | None = None,
    *,
    positions: Mapping[Hashable, Any] | None = None,
    labels: Mapping[tuple, str] | None = None,
    support: Mapping[tuple, float] | None = None,
) -> Any:
    """Draw a graph; an edge without a direction has no arrowheads.

    Parameters
    ----------
    graph : Graph or PDAG
        The graph.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    positions : mapping from names to (x, y), optional
        By default distances in the figure approximate path lengths (Kamada & Kawai 1989).
    labels : mapping from pairs to text, optional
        Labels of edges.
    support : mapping from pairs to float, optional
        The proportion of half-samples in which an edge was found; edges below one half are dashed.
    """
    with optional("drawing a graph"):
        import matplotlib  # noqa: F401  # before NetworkX, which comes with its extra
    shown = graph.to_networkx()
    if ax is None:
        side = 3.5 + 0.25 * len(shown)
        ax = new_axes(1.3 * side, side)
    places = _places(shown) if positions is None else {name: np.asarray(positions[name], float) for name in shown}
    boxes = {}
    for name, place in places.items():
        style = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": "C7"}
        boxes[name] = ax.text(place[0], place[1], str(name), ha="center", va="center", bbox=style).get_bbox_patch()
    number = {name: i for i, name in enumerate(shown)}
    for a, b in shown.edges:
        line = not shown.is_directed() or shown.has_edge(b, a)
        if line and shown.is_directed() and number[a] > number[b]:
            continue  # the other direction is drawn
        style = {"arrowstyle": "-" if line else "-|>", "patchA": boxes[a], "patchB": boxes[b], "mutation_scale": 14}
        style |= {"color": "C7" if line else "C0", "linewidth": 1.6, "shrinkA": 1, "shrinkB": 1}
        if support and support.get((a, b), support.get((b, a), 0.0)) < MAJORITY:
            style["linestyle"] = "dashed"
        ax.annotate("", tuple(places[b]), tuple(places[a]), arrowprops=style)
        text = (labels or {}).get((a, b)) or (labels or {}).get((b, a))
        if text:
            style = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"}
            x, y = 0.5 * (places[a] + places[b])
            ax.text(x, y, text, fontsize=7, ha="center", va="center", bbox=style)
    points = np.array(list(places.values()))
    ax.update_datalim(points)
    ax.set_axis_off()
    ax.margins(0.15)
    ax.autoscale_view()
    return ax


def _places(graph: "networkx.Graph") -> dict[Hashable, np.ndarray]:
    """Positions from path lengths, with the components of a graph side by side."""
    with optional("drawing a graph"):
        import networkx

    places, left = {}, 0.0
    for part in networkx.connected_components(graph.to_undirected()):
        names = [name for name in graph if name in part]
        found = networkx.kamada_kawai_layout(graph.to_undirected().subgraph(names), scale=len(names) ** 0.5)
        low = min(place[0] for place in found.values())
        places |= {name: np.array([found[name][0] - low + left, found[name][1]]) for name in names}
        left = max(places[name][0] for name in names) + 1.2
    return {name: places[name] for name in graph}


def draw_forest(graph: Graph, ax: Axes | None = None, **written: Any) -> Any:
    """Draw a graph; a forest is drawn from its centres down, leaves side by side and each parent above its children."""
    return draw(graph, ax, positions=hanging(graph) if graph.is_forest else None, **written)


def hanging(graph: Graph) -> dict[Hashable, tuple[float, float]]:
    """Positions of the nodes of a forest: each above its children, leaves side by side."""
    tree = Rooted.at(graph)
    children: dict[int, list[int]] = {}
    for node in tree.order.tolist():
        children.setdefault(int(tree.parent[node]), []).append(node)
    outwards, stack = [], list(children.get(-1, []))
    while stack:
        outwards.append(stack.pop())
        stack += children.get(outwards[-1], [])
    across, leaves = np.zeros(graph.size), 0
    for node in outwards[::-1]:  # children before their parents, the nodes of a branch together
        if node in children:
            ends = across[children[node]]
            across[node] = (ends.min() + ends.max()) / 2
        else:
            across[node], leaves = leaves, leaves + 1
    return {name: (float(across[i]), -float(tree.depth[i])) for i, name in enumerate(graph.names)}
