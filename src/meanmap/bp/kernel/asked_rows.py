"""Rows of a table that a fitted tree answers for: which cells are observed, and their messages to neighbours."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meanmap.bp.edges.samples import NodeSample
from meanmap.bp.evidence.kernel_evidence import read_values
from meanmap.bp.kernel.round_messages import QUERIES_AT_ONCE, RoundMessages
from meanmap.bp.kernel.row_messages import RowMessages
from meanmap.bp.kernel.support import Asked, Support, evidence_notes
from meanmap.core.arrays import check_lengths
from meanmap.core.door import Door
from meanmap.core.errors import InputError
from meanmap.core.meant import nearly, no_column_of
from meanmap.core.points import count, rows, slices
from meanmap.core.tables.marks import columns_without_marks
from meanmap.graphs import Rooted

__all__ = ["AskedRows"]

# Rows are answered in blocks whose messages to all nodes are about this many numbers.
MOST_NUMBERS = 4_000_000


@dataclass(frozen=True, eq=False)
class AskedRows:
    """B rows with cells missing anywhere.

    Attributes
    ----------
    model : FittedKernelGraph
    tree : Rooted or None
        None of a graph with cycles.
    points : dict
        The values of each node that was seen in any row, B of them or one for all, any value where a cell is missing.
    there : array (n, B) of bool
        Which cells are there.
    columns : tuple of int
        The nodes that the table has a column for.
    notes : tuple of str
        What is odd about values.
    called : Asked
        The rows as notes call them.
    """

    model: Any
    tree: Rooted | None
    points: dict[int, Any]
    there: np.ndarray
    columns: tuple[int, ...]
    notes: tuple[str, ...]
    called: Asked

    @classmethod
    def of(
        cls,
        model: Any,
        tree: Rooted | None,
        columns: Mapping[str, Any],
        argument: str,
        door: Door,
        hidden: Collection[int] = (),
    ) -> "AskedRows":
        """Read the columns of a table, except those of hidden nodes and those that are not variables."""
        graph = model.graph
        known = {name: columns[str(name)] for name in graph.names if str(name) in columns}
        if not known:
            raise no_column_of(argument, columns, graph.names)
        known = columns_without_marks(known, argument, model.samples.marks)
        nodes = tuple(graph.index(name) for name in known)
        seen = {name: column for name, column in known.items() if graph.index(name) not in hidden}
        heard = read_values(graph, model.samples.nodes.__getitem__, seen, door, True, argument)
        number = check_lengths({name: len(column) for name, column in known.items()}, argument)
        heard = replace(heard, notes=(*heard.notes, *nearly(columns, graph.names, argument)))
        return cls._of(model, tree, heard, nodes, Asked(number, argument, "rows"))

    @classmethod
    def single(cls, model: Any, tree: Rooted | None, evidence: Any, door: Door) -> "AskedRows":
        """Read one row from single values by name."""
        heard = read_values(model.graph, model.samples.nodes.__getitem__, evidence, door)
        if heard.functions or heard.sizes:
            name = next(iter(heard.sizes), None) or model.graph.names[next(iter(heard.functions))]
            raise InputError(
                f"evidence[{name!r}] is not a single value; for many rows pass a table, such as a DataFrame."
            )
        return cls._of(model, tree, heard, tuple(heard.values), Asked(1))

    @classmethod
    def _of(cls, model: Any, tree: Rooted | None, heard: Any, nodes: tuple[int, ...], called: Asked) -> "AskedRows":
        there = np.zeros((model.graph.size, called.size), dtype=bool)
        for node in heard.values:
            there[node] = heard.there.get(node, True)
        return cls(model, tree, heard.values, there, nodes, heard.notes, called)

    @property
    def size(self) -> int:
        """The number of rows, B."""
        return self.there.shape[1]

    def doubts(self, wanted: Iterable[int]) -> list[str]:
        """Notes on values with few data behind them, in rows in which any of these nodes is to be found."""
        order, start = self.model.graph.outgoing
        asking, notes = ~self.there[list(wanted)].all(axis=0), []
        for node, points in self.points.items():
            those, leaving = np.flatnonzero(self.there[node] & asking), order[start[node] : start[node + 1]].tolist()
            if len(those) and leaving:
                seen = rows(points, those)
                data = Support.least(Support.at(self.model.likelihoods[e], seen) for e in leaving)
                name, sample = self.model.graph.names[node], self.model.samples.nodes[node]
                notes += evidence_notes(name, sample, seen, data, self.called)
        return [*notes, *self.model.samples.together(self.model.graph, self.points, self.there & asking)]

    def parts(self) -> Iterator[tuple[slice, RowMessages | RoundMessages]]:
        """Some rows at a time, with their messages inwards; around cycles, with all messages."""
        if self.tree is not None:
            yield from self.walks(self.tree)
            return
        for part in slices(max(self.size, 1), QUERIES_AT_ONCE):
            yield part, RoundMessages(self.model, self.there[:, part], self._features(part))

    def walks(self, tree: Rooted) -> Iterator[tuple[slice, RowMessages]]:
        """Some rows at a time, with their messages inwards along a tree."""
        samples: list[NodeSample] = self.model.samples.nodes
        counts = np.array([sample.count for sample in samples])
        step = int(np.clip(MOST_NUMBERS // counts.sum(), 1, self.size)) if self.size else 1
        for part in slices(max(self.size, 1), step):
            yield part, RowMessages(tree, self.model, counts, self.there[:, part], self._features(part))

    def _features(self, part: slice) -> dict[int, np.ndarray]:
        """φ_t(x̄) of each directed edge that leaves a node that was seen."""
        order, start = self.model.graph.outgoing
        found = {}
        for node, points in self.points.items():
            some = points if count(points) == 1 else points[part]
            for e in order[start[node] : start[node + 1]].tolist():
                found[e] = self.model.likelihoods[e].observed.at(some)
        return found
