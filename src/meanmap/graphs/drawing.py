"""A picture of a graph."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from meanmap.graphs.graph import Graph
from meanmap.graphs.rooted import Rooted

__all__ = ["draw_graph"]

# Names are written while they can be told apart.
MOST_NAMES = 60


def draw_graph(graph: Graph, axes: Any = None, colours: Mapping[Hashable, str] | None = None) -> Any:
    """Draw nodes and edges; returns the matplotlib Axes.

    A forest hangs from its centres, each depth on a line of its own; other graphs are laid out by springs.

    Parameters
    ----------
    graph : Graph
        Up to 60 nodes get their names.
    axes : matplotlib Axes, optional
        A new figure's unless given.
    colours : mapping from names to colours, optional
        Light grey where none is given.
    """
    import networkx

    if axes is None:
        from matplotlib.figure import Figure

        axes = Figure(figsize=(5, 3.5), layout="constrained").subplots()
    numbers = networkx.Graph()
    numbers.add_nodes_from(range(graph.size))
    numbers.add_edges_from(graph.edges.tolist())
    if graph.is_forest:
        places = _hanging(graph)
    else:
        places = networkx.spring_layout(numbers, seed=0)
    named = graph.size <= MOST_NAMES
    colours = colours or {}
    networkx.draw_networkx(
        numbers,
        places,
        ax=axes,
        labels={i: str(name) for i, name in enumerate(graph.names)} if named else {},
        node_size=700 if named else 10,
        node_color=[colours.get(name, "lightgrey") for name in graph.names],
        edge_color="grey",
        font_size=9,
    )
    axes.margins(0.15)
    axes.set_axis_off()
    return axes


def _hanging(graph: Graph) -> dict[int, tuple[float, float]]:
    """Leaves side by side, each other node above the middle of its children."""
    tree = Rooted.at(graph)
    inner = set(tree.parent.tolist())
    across, leaves = np.zeros(graph.size), 0
    below: dict[int, list[float]] = {}
    for node in _depth_first(tree):
        if node in inner:
            across[node] = float(np.mean([min(below[node]), max(below[node])]))
        else:
            across[node], leaves = leaves, leaves + 1
        below.setdefault(int(tree.parent[node]), []).append(float(across[node]))
    return {node: (float(across[node]), -float(tree.depth[node])) for node in range(graph.size)}


def _depth_first(tree: Rooted) -> list[int]:
    """Children before their parents, the nodes of a branch together."""
    children: dict[int, list[int]] = {}
    for node in tree.order.tolist():
        children.setdefault(int(tree.parent[node]), []).append(node)
    outwards, stack = [], list(children.get(-1, []))
    while stack:
        node = stack.pop()
        outwards.append(node)
        stack += children.get(node, [])
    return outwards[::-1]
