"""Edges as rows of a table, with their attributes."""

from typing import Any

import numpy as np

from meanmap.core.values import frame_of

__all__ = ["EdgeTable", "edge_rows"]


class EdgeTable:
    """A result with `to_networkx`, whose edges are rows of a frame."""

    def to_frame(self) -> Any:
        """A pandas frame with a row for each edge: from, to, and all attributes in `to_networkx`."""
        rows = edge_rows(self)
        names = dict.fromkeys(["from", "to", *(name for row in rows for name in row)])
        return frame_of({name: [row.get(name, np.nan) for row in rows] for name in names})


def edge_rows(graph: Any) -> list[dict[str, Any]]:
    """Each edge once, with its attributes; undirected edges are marked."""
    found: dict[Any, dict[str, Any]] = {}
    for a, b, data in graph.to_networkx().edges(data=True):
        known = {name: value for name, value in data.items() if value is not None}
        found.setdefault((a, b) if data.get("directed") else frozenset((a, b)), {"from": a, "to": b, **known})
    return list(found.values())
