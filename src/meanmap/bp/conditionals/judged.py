"""Scores of arrows: each variable given its parents, judged on held-out rows."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.bp.beliefs.gain import Gain
from meanmap.bp.conditionals.columns import CodedColumn, CodedTable
from meanmap.bp.conditionals.given_parents import joined
from meanmap.bp.conditionals.laws import law_given, log_score
from meanmap.bp.conditionals.pages import scores_page
from meanmap.core.types import Axes
from meanmap.core.values import Value
from meanmap.graphs.drawing import draw
from meanmap.graphs.edge_table import EdgeTable
from meanmap.graphs.partial import PDAG
from meanmap.graphs.relevance import parents_by_name
from meanmap.plots.facts import Page
from meanmap.plots.paged import Paged

__all__ = ["ArrowScores", "judged"]


@dataclass(frozen=True, eq=False, repr=False)
class ArrowScores(Paged, EdgeTable, Value):
    """How much parents improve predictions, in nats per held-out row.

    Attributes
    ----------
    graph : PDAG
    nodes : dict
        For each variable with parents the `Gain` of knowing them all over knowing none.
    lines : dict
        For numbers the gain of a straight line with normal noise over knowing none.
    arrows : dict
        For each (parent, variable) the gain of knowing this parent beside the others: below two standard errors it does
        not help, or there are too few rows.
    """

    graph: PDAG
    nodes: Mapping[Hashable, Gain]
    lines: Mapping[Hashable, Gain]
    arrows: Mapping[tuple, Gain]

    def plot(self, ax: Axes | None = None) -> Any:
        """Draw the graph with the gain of each arrow, dashed below two errors; returns the matplotlib Axes."""
        labels = {pair: f"{gain.mean:.2g}" for pair, gain in self.arrows.items()}
        worth = {pair: float(gain.mean > 2 * gain.error) for pair, gain in self.arrows.items()}
        return draw(self.graph, ax, labels=labels, support=worth)

    def to_networkx(self) -> Any:
        """A `networkx.DiGraph` with `gain` and `error` on each edge."""
        graph = self.graph.to_networkx()
        graph.add_edges_from(self.known_edges())
        return graph

    @property
    def names(self) -> Sequence[Hashable]:
        """The variables of the graph."""
        return self.graph.names

    def known_edges(self) -> list[tuple[Hashable, Hashable, dict[str, Any]]]:
        """The arrows as pairs of names, with the gain of each and its standard error."""
        gains = {pair: {"gain": gain.mean, "error": gain.error} for pair, gain in self.arrows.items()}
        return [(a, b, known | gains.get((a, b), {})) for a, b, known in self.graph.known_edges()]

    def _as_page(self, brief: bool = False) -> Page:
        return scores_page(self)

    def __str__(self) -> str:
        lines = ["gains in log density per held-out row, relative to no parents"]
        for name, gain in self.nodes.items():
            line = f"  {name}: {gain}"
            lines.append(line + (f", of a line with normal noise {self.lines[name]}" if name in self.lines else ""))
            lines += [f"    {a} → {b}: {each}" for (a, b), each in self.arrows.items() if b == name]
        return "\n".join(lines)


def judged(graph: PDAG, table: CodedTable, raw: Mapping[Hashable, np.ndarray], folds: int) -> ArrowScores:
    """Score the arrows of a directed graph by cross-validation, from the numbers (n, width) of each variable."""
    numbers, nodes, lines, arrows = table.standardised(raw), {}, {}, {}
    for name, parents in parents_by_name(graph.names, graph.named("directed")).items():
        if not parents:
            continue
        column, y, inputs = table.columns[name], numbers[name], [numbers[p] for p in parents]
        there = ~np.isnan(np.concatenate([*inputs, y], axis=1)).any(axis=1)
        y, inputs = y[there], [each[there] for each in inputs]
        part = np.random.default_rng(0).permutation(len(y)) % folds
        whole = _left_out(inputs, y, part, column)
        none = _left_out([], y, part, column)
        nodes[name] = Gain.of(whole, none)
        if y.shape[1] == 1:
            lines[name] = Gain.of(_line(np.concatenate(inputs, axis=1), y[:, 0], part), none)
        for i, parent in enumerate(parents):
            less = none if len(parents) == 1 else _left_out([*inputs[:i], *inputs[i + 1 :]], y, part, column)
            arrows[parent, name] = Gain.of(whole, less)
    return ArrowScores(graph, nodes, lines, arrows)


def _left_out(inputs: Sequence[np.ndarray], values: np.ndarray, part: np.ndarray, column: CodedColumn) -> np.ndarray:
    found = np.empty(len(values))
    for p in np.unique(part):
        left = part == p
        law = law_given([each[~left] for each in inputs], values[~left], column)
        found[left] = log_score(law, column, joined([each[left] for each in inputs], int(left.sum())), values[left])
    return found


def _line(rows: np.ndarray, values: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Least squares, and normal noise of the same size everywhere."""
    found, design = np.empty(len(values)), np.column_stack([np.ones(len(values)), rows])
    for p in np.unique(part):
        left = part == p
        line = np.linalg.lstsq(design[~left], values[~left])[0]
        free = max(int((~left).sum()) - np.linalg.matrix_rank(design[~left]), 1)
        variance = max(float(np.sum((values[~left] - design[~left] @ line) ** 2)) / free, np.finfo(float).tiny)
        gap = values[left] - design[left] @ line
        found[left] = -0.5 * (gap**2 / variance + np.log(2 * np.pi * variance))
    return found
