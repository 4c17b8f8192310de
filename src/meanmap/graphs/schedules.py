"""Schedules: the order in which messages are sent. They are small values that the engine of `bp` carries out. On a tree
two passes, inwards and outwards, make every message final. On a graph with cycles messages are sent repeatedly until
they stop changing, and the order determines how soon.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from meanmap.core.errors import KindError
from meanmap.core.settings import whole_number
from meanmap.graphs.graph import Graph
from meanmap.graphs.rooted import Rooted

__all__ = [
    "Flooding",
    "Residual",
    "Schedule",
    "Sequential",
    "Splash",
    "Sweeps",
    "TwoPass",
    "as_schedule",
    "breadth_first",
    "layers",
]


class Schedule(ABC):
    """The order in which messages are sent: `run` takes a `bp.engine.MessagePassing` and returns `Sent` messages. A
    custom schedule overrides `run`; `passing.silence()`, `passing.sweep(messages)` and `passing.sent(messages, steps,
    changes)` are enough to write one.
    """

    # The name of a step in reports.
    unit: ClassVar[str] = "sweeps"
    # Whether single nodes send, which needs a table of their incoming messages; whether the graph must be a forest.
    single_nodes: ClassVar[bool] = False
    forests_only: ClassVar[bool] = False
    # Whether it can be part of a larger compiled program, and differentiated.
    compiled: ClassVar[bool] = False

    @abstractmethod
    def run(self, passing: object) -> Any:
        """Send messages until they converge."""

    def rounds(self, graph: Graph) -> Iterator[list[np.ndarray]] | None:
        """Directed edges that send simultaneously, group by group, in rounds; None if messages determine the order."""
        del graph
        return None


def as_schedule(value: object) -> Schedule:
    """A schedule, checked."""
    if not isinstance(value, Schedule):
        raise KindError(
            f"schedule is {value!r}; expected one of mm.graphs.TwoPass(), mm.graphs.Flooding(), "
            "mm.graphs.Sequential(), mm.graphs.Residual(), mm.graphs.Splash(), or a custom mm.graphs.Schedule."
        )
    return value


@dataclass(frozen=True)
class TwoPass(Schedule):
    """Inwards to a root and outwards again: exact on trees, refused on graphs with cycles."""

    unit = "passes"
    forests_only = True
    compiled = True

    def run(self, passing: Any) -> Any:
        """Run two passes: inwards and outwards."""
        return passing.two_passes()

    def rounds(self, graph: Graph) -> Iterator[list[np.ndarray]]:
        """One round: from the leaves inwards, level by level, and out again."""
        tree = Rooted.at(graph)
        levels = [np.flatnonzero(tree.depth == i) for i in range(1, int(tree.depth.max()) + 1)]
        yield [tree.to_parent[level] for level in levels[::-1]] + [tree.from_parent[level] for level in levels]


@dataclass(frozen=True)
class Sweeps(Schedule):
    """Repeated sweeps, with at most `max_sweeps` times as many messages as the graph has directed edges."""

    max_sweeps: int = 100

    def __post_init__(self):
        whole_number(self.max_sweeps, "max_sweeps")


@dataclass(frozen=True)
class Flooding(Sweeps):
    """All messages at once, from those of the previous sweep. The fastest sweep; often needs damping.

    Parameters
    ----------
    max_sweeps : int
    mesh : jax.sharding.Mesh, optional
        Devices among which nodes are divided: each sends the messages of its own nodes, and messages between devices
        are exchanged once per sweep. Images are divided into strips of rows.
    """

    mesh: Any = None
    compiled = True

    def run(self, passing: Any) -> Any:
        """Run sweeps until messages converge."""
        return passing.flood(self.max_sweeps, self.mesh)

    def rounds(self, graph: Graph) -> Iterator[list[np.ndarray]]:
        """All edges in each round."""
        for _ in range(self.max_sweeps):
            yield [np.arange(2 * len(graph.edges))]


@dataclass(frozen=True)
class Sequential(Sweeps):
    """Node after node, each sending all its messages from the latest ones; forwards and backwards in turn.

    Nodes are visited in the order of the graph. Nodes that are not adjacent are processed simultaneously, with the same
    result.
    """

    single_nodes = True

    def run(self, passing: Any) -> Any:
        """Run sweeps until messages converge."""
        return passing.node_by_node(self.max_sweeps)

    def rounds(self, graph: Graph) -> Iterator[list[np.ndarray]]:
        """Layer after layer of nodes that are not adjacent, forwards and backwards in turn."""
        order, start = graph.outgoing
        groups = [np.concatenate([order[start[i] : start[i + 1]] for i in layer]) for layer in layers(graph)]
        for sweep in range(self.max_sweeps):
            yield groups if sweep % 2 == 0 else groups[::-1]


@dataclass(frozen=True)
class Residual(Sweeps):
    """Always the messages that would change most: residual belief propagation (Elidan, McGraw & Koller 2006).

    Parameters
    ----------
    at_once : int
        The number of messages sent together: 1 is the published algorithm, more is faster on parallel hardware.
    """

    at_once: int = 1
    unit = "messages"
    single_nodes = True

    def __post_init__(self):
        super().__post_init__()
        whole_number(self.at_once, "at_once")

    def run(self, passing: Any) -> Any:
        """Message after message."""
        return passing.most_changed_first(self.max_sweeps, self.at_once)


@dataclass(frozen=True)
class Splash(Sweeps):
    """Two passes on a tree around the node whose messages changed most (Gonzalez, Low & Guestrin 2009).

    Parameters
    ----------
    splash_size : int
        The number of nodes of the breadth-first tree.
    """

    splash_size: int = 32
    unit = "splashes"
    single_nodes = True

    def __post_init__(self):
        super().__post_init__()
        whole_number(self.splash_size, "splash_size")

    def run(self, passing: Any) -> Any:
        """Splash after splash."""
        return passing.splashes(self.max_sweeps, self.splash_size)


def layers(graph: Graph) -> list[np.ndarray]:
    """Groups of nodes without adjacent nodes, such that group after group gives the same result as node after node. A
    node is in the group after the latest of its neighbours with smaller numbers.
    """
    order, start = graph.outgoing
    neighbours = graph.targets[order].tolist()
    level = [0] * graph.size
    for i in range(graph.size):
        level[i] = max((level[j] + 1 for j in neighbours[start[i] : start[i + 1]] if j < i), default=0)
    levels = np.array(level)
    by_level = np.argsort(levels, kind="stable")
    return np.split(by_level, np.cumsum(np.bincount(levels))[:-1])


def breadth_first(graph: Graph, root: int, size: int) -> np.ndarray:
    """The first `size` nodes from `root` outwards."""
    order, start = graph.outgoing
    found, queue = {root: None}, [root]
    for node in queue:
        for neighbour in graph.targets[order[start[node] : start[node + 1]]].tolist():
            if len(found) == size:
                return np.array(list(found))
            if neighbour not in found:
                found[neighbour] = None
                queue.append(neighbour)
    return np.array(list(found))
