"""Charts of graphs: nodes, and edges with their attributes."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, shortest_path

from meanmap.plots.facts import Axis, Chart, Mark, Panel

__all__ = ["MOST_NODES", "Link", "network_chart"]

# Larger graphs are listed and not drawn, and not asked for beliefs, as their messages take long.
MOST_NODES, STEPS = 150, 200
# Nodes without edges in a row.
MOST_IN_A_ROW = 6


class Link(NamedTuple):
    """An edge between two nodes by number, and its label."""

    first: int
    second: int
    directed: bool = False
    text: str = ""
    weak: bool = False


def network_chart(
    title: str, names: Sequence[Any], links: Sequence[Link], places: Mapping[Any, tuple[float, float]] | None = None
) -> Chart | None:
    """A graph with its names; edges found in less than half of the tries (weak) are dashed. None for large graphs.

    Examples
    --------
    >>> chart = network_chart("Causes", ["rain", "street"], [Link(0, 1, directed=True)])
    >>> [(mark.kind, list(mark.text)) for mark in chart.panels[0].marks]
    [('links', ['rain → street']), ('nodes', ['rain', 'street'])]
    """
    if not 0 < len(names) <= MOST_NODES:
        return None
    at = _places(len(names), links) if places is None else np.array([places[name] for name in names], float)
    marks = []
    for directed in (False, True):
        for weak in (False, True):
            chosen = [each for each in links if (each.directed, each.weak) == (directed, weak)]
            if chosen:
                ends = at[[each.first for each in chosen]], at[[each.second for each in chosen]]
                sides = {"x1": ends[0][:, 0], "y1": ends[0][:, 1], "x2": ends[1][:, 0], "y2": ends[1][:, 1]}
                arrow = " → " if directed else " — "
                said = [f"{names[each.first]}{arrow}{names[each.second]}{each.text}" for each in chosen]
                marks.append(Mark("links", sides, "", said, 0 if directed else 6, weak, directed))
    nodes = {"x": at[:, 0], "y": at[:, 1], "above": _above(at, links)}
    marks.append(Mark("nodes", nodes, "", [str(name) for name in names], 0))
    return Chart(title, (Panel(Axis(), Axis(), tuple(marks)),))


def _above(at: np.ndarray, links: Sequence[Link]) -> np.ndarray:
    """Whether the name of each node is written above it (1) or below (0): where fewer edges end, above all arrows."""
    pull = np.zeros(len(at))
    for each in links:
        step = at[each.second] - at[each.first]
        steep = float(step[1] * abs(step[1])) / max(float(step @ step), 1e-12)
        pull[each.first] += steep
        pull[each.second] -= (1 + each.directed) * steep
    return (pull <= 1e-9).astype(float)


def _places(size: int, links: Sequence[Link]) -> np.ndarray:
    """Distances on the page follow those along edges: SMACOF (Gansner, Koren & North 2004), parts side by side, each
    as wide as it can lie and with most arrows to the right; nodes without edges stand in a row below.
    """
    ends = np.array([(each.first, each.second) for each in links], np.int32).reshape(-1, 2)  # as older SciPy wants
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(size, size)).tocsr()
    number, part = connected_components(graph, directed=False)
    found, left = np.zeros((size, 2)), 0.0
    alone = np.bincount(part)[part] == 1
    for k in range(number):
        members = np.flatnonzero(part == k)
        if alone[members[0]]:
            continue
        far = shortest_path(graph[members][:, members], directed=False, unweighted=True)
        found[members] = _lying(_stressed(far))
        heads = [
            found[each.second, 0] - found[each.first, 0] for each in links if each.directed and part[each.first] == k
        ]
        found[members, 0] *= -1.0 if sum(heads) < 0 else 1.0
        found[members] -= found[members].min(axis=0) - [left, 0.0]
        left = float(found[members, 0].max()) + 1.2
    return _rows_below(found, alone, max(left - 1.2, 1.0))


def _rows_below(found: np.ndarray, alone: np.ndarray, wide: float) -> np.ndarray:
    """With nodes without edges in rows below the others."""
    row, place = np.divmod(np.arange(alone.sum()), MOST_IN_A_ROW)
    across = np.minimum(alone.sum() - MOST_IN_A_ROW * row, MOST_IN_A_ROW)
    found[alone] = np.stack([wide * (place + 0.5) / np.maximum(across, 1), -0.8 * (1.0 + row)], axis=1)
    return found


def _lying(at: np.ndarray) -> np.ndarray:
    """Turned so that the direction in which it is longest is horizontal."""
    at = at - at.mean(axis=0)
    turn = np.linalg.eigh(at.T @ at)[1][:, ::-1]
    return at @ (turn * np.where(turn[0] < 0, -1.0, 1.0))


def _stressed(far: np.ndarray) -> np.ndarray:
    n = len(far)
    turn = 2 * np.pi * np.arange(n) / max(n, 1)
    at = np.stack([1.3 * np.cos(turn), np.sin(turn)], axis=1) * max(float(far.max(initial=0.0)), 1.0) / 2
    if n < 2:
        return at * 0
    with np.errstate(divide="ignore"):
        weights = np.where(far > 0, far**-2.0, 0.0)
    inverse = np.linalg.pinv(np.diag(weights.sum(1)) - weights)
    for _ in range(STEPS):
        apart = np.linalg.norm(at[:, None] - at[None], axis=2)
        pull = np.where(apart > 1e-9, -weights * far / np.maximum(apart, 1e-9), 0.0)
        np.fill_diagonal(pull, 0.0)
        np.fill_diagonal(pull, -pull.sum(1))
        at = inverse @ (pull @ at)
    return at
