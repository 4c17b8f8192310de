"""The common part of all fitted models: a graph, a schema, and queries with the same arguments."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from meanmap.bp.beliefs.beliefs import Beliefs
from meanmap.bp.edges.samples import NodeSample
from meanmap.bp.rows import each_asked
from meanmap.core.tables.schema import Schema
from meanmap.graphs import Graph

__all__ = ["FittedModel"]


class FittedModel(ABC):
    """A fitted graphical model, ready for queries.

    Other arguments of queries have the same names in every model: `floor`, `damping`, `tolerance` and `counting` of
    messages, `rng` where something is drawn.
    """

    graph: Graph

    @property
    @abstractmethod
    def node_samples(self) -> list[NodeSample]:
        """The points that were seen of each variable, or of each kind of variables."""

    @property
    @abstractmethod
    def pair_counts(self) -> list[int]:
        """The number of pairs from which each edge, or each direction of a relation, was learned."""

    @abstractmethod
    def query(
        self,
        evidence: Mapping[Any, Any] | None = None,
        targets: Iterable[Hashable] | None = None,
        *,
        damping: float | None = None,
    ) -> Beliefs:
        """The belief about each target given evidence."""

    @property
    def schema(self) -> Schema | None:
        """The kinds of variables, or None if a sample has none."""
        return Schema.joined([sample.schema for sample in self.node_samples])

    def numbered(self, targets: Iterable[Hashable] | None) -> dict[Hashable, int]:
        """The targets with their numbers, all variables unless some are given."""
        names = self.graph.names if targets is None else targets if isinstance(targets, str) else tuple(targets)
        return dict(zip(names, each_asked(names, self.graph.index), strict=True))

    def __repr__(self) -> str:
        counts = self.pair_counts
        shown = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
        return f"{type(self).__name__}({self.graph!r}, {shown} pairs per edge)"
