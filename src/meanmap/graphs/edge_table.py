"""Edges as rows of a table, with their attributes."""

from typing import Any

import numpy as np

from meanmap.core.values import frame_of

__all__ = ["EdgeTable", "edge_rows"]


class EdgeTable:
    """A result whose `known_edges`, pairs of names with their attributes, become the rows of a frame."""

    def to_frame(self) -> Any:
        """A pandas frame with a row for each edge: from, to, and its attributes."""
        rows = edge_rows(self)
        names = dict.fromkeys(["from", "to", *(name for row in rows for name in row)])
        return frame_of({name: [row.get(name, np.nan) for row in rows] for name in names})


def edge_rows(graph: Any) -> list[dict[str, Any]]:
    """Each edge once, with its attributes, in the order of the nodes."""
    number = {name: at for at, name in enumerate(graph.names)}
    found = []
    for a, b, data in graph.known_edges():
        ends = (a, b) if data.get("directed") else sorted((a, b), key=number.__getitem__)
        found.append(dict(zip(("from", "to"), ends, strict=True)) | data)
    return sorted(found, key=lambda row: number[row["from"]])
