"""Nodes of a lattice around the posterior mode, where there are up to four components."""

from heapq import heappop, heappush, nsmallest
from itertools import product

import numpy as np

from meanmap.core import progress
from meanmap.ep.linear.coordinates import Coordinates
from meanmap.ep.linear.problem import Height, Problem
from meanmap.ep.linear.sites import Settled

__all__ = ["APART", "Place", "lattice", "steps_of"]

# Coordinates of a node are all integer or all half-integer multiples of a step, in standard deviations: in three and
# four dimensions this takes half as many nodes as a square lattice of the same error. For a Normal the trapezium rule
# underestimates variances by Σ k² exp(−k²/2) / d, a sum over the nearest points k of the dual lattice, which have
# length 2π / h for lines h apart: .005 in two dimensions and .011 in three for h = 1.5, and .009 in four for h = 1.45
# (.06 for 1.65: 90% intervals covered 86%). One component has twice as many: with rare labels effects vary by more
# between nodes than they are uncertain at each. Nodes this far below the best one, in log probability, are dropped.
APART = {1: 0.75, 2: 1.5 * 2**0.5, 3: 1.5 * 2**0.5, 4: 1.45 * 2**0.5}
_DEPTH = 7.0

# A point, the log of the volume that it represents (in standard deviations), and the fit at the point.
Place = tuple[np.ndarray, float, Height]
_Node = tuple[int, ...]


def steps_of(size: int) -> list[_Node]:
    """From a node of the lattice to its neighbours, in half spacings."""
    steps = [tuple(2 * side * int(j == axis) for j in range(size)) for axis in range(size) for side in (-1, 1)]
    return steps + (list(product((-1, 1), repeat=size)) if size > 1 else [])


def lattice(
    problem: Problem, chart: Coordinates, mode: np.ndarray, axes: np.ndarray, best: Settled | None
) -> dict[_Node, Place]:
    """Points of a lattice with non-negligible evidence, from the centre outwards. A point is evaluated if value and
    gradient at a neighbour, with half the curvature at the mode, predict enough probability.

    Where several points are evaluated together, those that wait are evaluated with the next one.
    """
    size = len(mode)
    apart = APART[size]
    steps, volume = np.array(steps_of(size)), size * np.log(apart) - (np.log(2) if size > 1 else 0.0)
    moved = apart / 2 * steps
    lost = (moved**2).sum(1) / 4
    found: dict[_Node, Place] = {}
    ahead: dict[_Node, Place] = {}
    middle: _Node = (0,) * size
    waiting: list[tuple[float, _Node, _Node]] = [(-np.inf, middle, middle)]
    top, failed = -np.inf, list[float]()
    most, together = problem.most_nodes, problem.together

    while waiting and len(found) < most:
        short, at, near = heappop(waiting)
        if at in found or -short < top - _DEPTH:
            continue
        if at not in ahead:
            due = {at: near}
            for other, one, beside in nsmallest(together - 1, waiting) if together > 1 else ():
                if one not in found and one not in ahead and -other >= top - _DEPTH:
                    due.setdefault(one, beside)
            starts = [found[beside][2].settled if beside in found else best for beside in due.values()]
            places = mode + apart / 2 * np.array(list(due)) @ axes.T
            heights = problem.heights_at(chart, places, starts)
            ahead |= {key: (place, volume, height) for key, place, height in zip(due, places, heights, strict=True)}
        found[at] = ahead.pop(at)
        progress.beside(f"{len(found)} nodes")
        height = found[at][2]
        top = max(top, height.value)
        if not np.isfinite(height.value):
            failed.append(-short)
        promised = height.value + moved @ (axes.T @ height.gradient) - lost
        enough = (promised >= top - _DEPTH) & (height.value >= top - 2 * _DEPTH)
        neighbours = map(tuple, (np.array(at) + steps[enough]).tolist())
        for beside, value in zip(neighbours, promised[enough].tolist(), strict=True):
            if beside not in found:
                heappush(waiting, (-value, beside, at))
    heights = np.array([height.value for _, _, height in found.values()]) - top
    outside = float(np.exp(np.array(failed) - top).sum())
    problem.beyond = outside / (outside + float(np.exp(heights).sum()))
    if len(found) == most:
        problem.late = float(np.exp(heights[int(0.8 * most) :]).sum() / np.exp(heights).sum())
    return found
