"""The result of the PC algorithm, with the evidence."""

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from meanmap.core.notes import note_lines
from meanmap.core.report import Report
from meanmap.core.tables.schema import Schema
from meanmap.graphs import PDAG
from meanmap.graphs.edge_table import EdgeTable

__all__ = ["CONTRADICTS", "NARROWLY", "DiscoveredGraph"]

# How the note on a collider that was not drawn goes on.
CONTRADICTS = " contradicts another collider or prior knowledge: "
# How the note on an edge with a p-value near the level goes on.
NARROWLY = " was removed narrowly: "


@dataclass(frozen=True, eq=False, repr=False)
class DiscoveredGraph(EdgeTable, PDAG):
    """A partially directed graph learned from data, with the evidence for each edge.

    Attributes
    ----------
    names, directed, undirected, doubted :
        The graph, as in `mm.graphs.PDAG`.
    pvalues : mapping from pairs of names to float
        For each edge (both orders of names) the largest p-value of any of its tests: how close the edge was to being
        removed. Edges that were required are not tested and not listed.
    adjusted : mapping from pairs of names to float
        These p-values after Holm's correction for the number of pairs that were tested: if edges above a level are left
        out, the probability of any false edge is at most that level, provided that the sets that separate variables
        were among those tested. For more than 32 columns 10,000 permutations are too few at level .05; then the report
        notes how many are needed.
    separators : mapping from pairs of names to tuples of names
        For each pair that is not adjacent, the conditioning set given which it was found independent. Pairs that were
        forbidden are not listed.
    support : mapping from pairs of names to float
        The share of half-samples in which the edge was found, and `arrows` the share in which it had this direction.
        Empty unless asked for.
    arrows : mapping from pairs (from, to) to float
    report : Report
        The number of tests, which answers contradict each other, and which edges were removed narrowly.
    seed : int or None
        `rng=result.seed` repeats the run.
    schema : Schema or None
        How the columns of the table were read.
    """

    pvalues: Mapping[tuple, float] = field(default_factory=dict)
    adjusted: Mapping[tuple, float] = field(default_factory=dict)
    separators: Mapping[tuple, tuple] = field(default_factory=dict)
    support: Mapping[tuple, float] = field(default_factory=dict)
    arrows: Mapping[tuple, float] = field(default_factory=dict)
    report: Report = field(default_factory=lambda: Report("not run", False, 0))
    seed: int | None = None
    schema: Schema | None = None

    def no_path(self, cause: Hashable, effect: Hashable) -> tuple[str, ...]:
        """As of any graph, with the test that removed the edge, and notes on both variables: that it was narrow, and
        contradictions.
        """
        told = super().no_path(cause, effect)
        given = self.separators.get((cause, effect), self.separators.get((effect, cause)))
        if given is not None:
            names = f"given {', '.join(map(repr, given))}" if given else "without conditioning on anything"
            found = f"pc removed the edge between {cause!r} and {effect!r} because they were found independent {names}"
            told += (f"{found}, which can fail where an effect is weak or is cancelled by others.",)
        for note in self.report.notes:
            variables, found, _ = re.split(f"({CONTRADICTS}|{NARROWLY}|$)", note, maxsplit=1)
            if found and {str(cause), str(effect)} <= set(re.split(" [→←—] ", variables)):
                told += (f"pc noted that {note}",)
        return told

    def _known(self) -> dict[str, Mapping[tuple, float]]:
        tested = {"p-value": self.pvalues, "after Holm's correction": self.adjusted}
        same = {pair: self.arrows.get(pair, 0.0) for pair in self.named("directed")} if self.arrows else {}
        return {**tested, "support": self.support, "same direction": same}

    def _meaning(self) -> str:
        halves = " The support is the share of half-samples in which the edge was found." if self.support else ""
        return (
            "An arrow from a to b means that a is a cause of b, provided that no common cause of two columns is "
            "missing from the table and that there are no feedback loops; a line without a head means that the tests "
            "do not determine the direction. The p-value of an edge is the largest of its tests: the smaller it is, "
            "the further the edge was from being removed. Holm's correction allows for the number of pairs tested. A "
            "column that depends on two others only jointly, as on whether they agree, has no line to either." + halves
        )

    def known_edges(self) -> list[tuple[Hashable, Hashable, dict[str, Any]]]:
        """As for a PDAG, with pvalue and adjusted of each edge, and support and arrow if they were requested."""
        tested = {"pvalue": self.pvalues, "adjusted": self.adjusted}
        halves = {"support": self.support, "arrow": self.arrows} if self.support else {}
        edges = super().known_edges()
        for a, b, known in edges:
            known.update({name: found[a, b] for name, found in tested.items() if (a, b) in found})
            known.update({name: found.get((a, b), 0.0) for name, found in halves.items()})
        return edges

    def to_networkx(self) -> Any:
        """As for a PDAG, with the attributes of each edge; `arrow` is that of its own direction."""
        graph = super().to_networkx()
        if self.support:
            for pair, known in graph.edges.items():
                known["arrow"] = self.arrows.get(pair, 0.0)
        return graph

    def _labels(self) -> dict[tuple, str]:
        if not self.support:
            return {}
        labels = {
            (a, b): f"{self.support.get((a, b), 0):.0%} ({self.arrows.get((a, b), 0):.0%} →)"
            for a, b in self.named("directed")
        }
        return labels | {(a, b): f"{self.support.get((a, b), 0):.0%}" for a, b in self.named("undirected")}

    @property
    def _title(self) -> str:
        return "Causes, as far as the data show them"

    def _support(self) -> Mapping[tuple, float]:
        """The support of an arrow's direction, or of the edge if it has no direction."""
        if not self.support:
            return {}
        undirected = {pair: self.support.get(pair, 0.0) for pair in self.named("undirected")}
        return undirected | {pair: self.arrows.get(pair, 0.0) for pair in self.named("directed")}

    def __str__(self) -> str:
        lines = [super().__str__(), *(f"  {name}: {value:g}" for name, value in self.report.measures.items())]
        return "\n".join([*lines, *note_lines(self.report.notes)])
