"""A learned graphical model: evidence in, beliefs out."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from meanmap.bp.beliefs import Beliefs
from meanmap.bp.kernel_evidence import Evidence, likelihood_at, read_evidence
from meanmap.bp.learning import LikelihoodEdge, MessageEdge
from meanmap.bp.messages import Given
from meanmap.bp.operators import Factored
from meanmap.bp.propagate import Engine, Propagation
from meanmap.bp.samples import Samples
from meanmap.bp.support import Support, query_report
from meanmap.core.door import Door
from meanmap.core.errors import InputError
from meanmap.core.points import bucket, count, rows
from meanmap.core.report import Report
from meanmap.embeddings.points import PointEmbedding
from meanmap.graphs import Graph, Rooted
from meanmap.graphs.rooted import informed
from meanmap.kernels.reading import check_alike, read_points

__all__ = ["FLOOR", "FittedKernelGraph", "raised"]

# Queries are answered this many at a time: enough for large matrix products, and one program serves any number.
QUERIES_AT_ONCE = 128
# Learned messages dip below zero where the truth is nearly zero. Values are raised to this share of the largest.
FLOOR = 1e-3


class FittedKernelGraph:
    """A `KernelGraph` with learned operators, ready for queries.

    Attributes
    ----------
    graph : Graph
    samples : Samples
        The points of each node and the pairs of each edge.
    chosen : dict
        For each directed edge (t, s) what was chosen: the ridge and the multiple of the median distance of the message
        operator and of the likelihood operator, and their ranks.
    """

    def __init__(
        self,
        graph: Graph,
        samples: Samples,
        messages: tuple[MessageEdge, ...],
        likelihoods: tuple[LikelihoodEdge, ...],
        schedule: Any = None,
    ):
        self.graph, self.samples, self.messages, self.likelihoods = graph, samples, messages, likelihoods
        self.chosen = {
            (graph.names[t], graph.names[s]): {
                "ridge": message.ridge,
                "median_multiple": message.receiver.multiple,
                "rank": message.receiver.values.shape[1],
                "likelihood_ridge": likelihood.ridge,
                "likelihood_median_multiple": likelihood.receiver.multiple,
                "likelihood_rank": min(likelihood.inner.shape),
            }
            for t, s, message, likelihood in zip(graph.sources, graph.targets, messages, likelihoods, strict=True)
        }
        self._counts = np.array([node.count for node in samples.nodes])
        self._operators = _operators(messages, bucket(int(self._counts.max())))
        self._engine = Engine(graph, self._operators, np.arange(len(messages)), schedule)
        self._tree = Rooted.at(graph) if graph.is_forest else None

    def query(
        self,
        evidence: Mapping[Any, Any] | None = None,
        targets: Iterable[Hashable] | None = None,
        *,
        floor: float | None = FLOOR,
        damping: float = 0.0,
    ) -> Beliefs:
        """The belief about each target given evidence.

        Parameters
        ----------
        evidence : mapping from names to values
            A value of the variable: a number, a vector, a label, a rotation. With one more axis, B values are B
            queries at once, and single ones are repeated for all of them. A function from points (as the kernel reads
            them, plain numbers as (n,)) to (n,) is a likelihood; an embedding of a sample or distribution is one, too.
        targets : names, optional
            All variables unless given.
        floor : float or None
            Values of a message below this share of its largest are raised to it.
        damping : float
            For graphs with cycles.

        Returns
        -------
        Beliefs
            Embeddings with all their read-outs: `beliefs["s"].mean()`, `.density(grid)`, `.quantile(q)`, `.mode()`,
            `.sample(n, rng)`, `.expect(f)`; `beliefs.report` says how much stands behind them.

        Notes
        -----
        Cost O(|E| N r) for a query. A branch without evidence sends nothing, and an observed variable hides what is
        behind it (section 2.1).
        """
        names = tuple(self.graph.names if targets is None else targets)
        nodes = [self.graph.index(name) for name in names]
        with Door() as door:
            seen = read_evidence(self.graph, self.samples, evidence or {}, door)
            weights: list[np.ndarray] = []
            found = []
            for number, part in self.propagated(seen, floor, damping):
                weights.append(np.asarray(part.beliefs[np.array(nodes)])[:, :number])
                found.append(part)
            beliefs = np.concatenate(weights, axis=1)
            answers = {
                name: self.belief(node, beliefs[i], seen)
                for i, (name, node) in enumerate(zip(names, nodes, strict=True))
            }
            report = self.report(answers, seen, found, floor)
        return Beliefs(names, answers.__getitem__, report)

    def ratio(
        self,
        target: Hashable,
        points: Any,
        evidence: Mapping[Any, Any] | None = None,
        *,
        floor: float | None = FLOOR,
    ) -> Any:
        """p(x | evidence) / p(x) at any points x of `target`, in the data or not: (m,), or (B, m) for B queries.

        The product of the messages that `target` receives, as functions, scaled to average one over its data. Retrieval
        is its largest value among candidates: `model.ratio("english", candidates, {"french": text}).argmax(-1)`.

        Parameters
        ----------
        target : name
            A variable without a value in the evidence.
        points : points
            m points, as the kernel of `target` reads them.
        evidence, floor
            As for `query`.

        Notes
        -----
        Song, Gretton & Guestrin (2010), algorithm 1, the last product, at points that were not learned from.
        """
        node = self.graph.index(target)
        sample = self.samples.nodes[node]
        with Door() as door:
            seen = read_evidence(self.graph, self.samples, evidence or {}, door)
            if node in seen.points:
                raise InputError(f"{target!r} is given in the evidence; expected a target that was not observed.")
            at = read_points(sample.kernel, points, f"the points of {target!r}", door)
            check_alike(at, sample.points, f"the points of {target!r}", "the data")
            own = likelihood_at(sample, (evidence or {}).get(target), at, door)
            ratios = []
            for number, found in self.propagated(seen, floor):
                done = sum(len(part) for part in ratios)
                messages = np.asarray(found.messages)[:, :number]
                here, there = self._arriving(node, at, seen, messages, slice(done, done + number), floor)
                ratios.append(there * own / np.mean(here, axis=-1, keepdims=True))
            ratio = np.concatenate(ratios)
            return ratio if seen.batched else ratio[0]

    def propagated(
        self, seen: Evidence, floor: float | None, damping: float = 0.0
    ) -> Iterator[tuple[int, Propagation]]:
        """Messages and beliefs in values, for a few queries at a time: how many, and what was found."""
        sent = self._observed_messages(seen)
        for start in range(0, seen.size, QUERIES_AT_ONCE):
            part = slice(start, min(start + QUERIES_AT_ONCE, seen.size))
            number = part.stop - part.start
            size = number if number == 1 else bucket(number)
            given, own = self._prepared(seen, sent, part, size, floor)
            yield number, self._engine.run(jnp.asarray(own), given, damping=damping, floor=floor)

    def _observed_messages(self, seen: Evidence) -> dict[int, np.ndarray]:
        """What observed nodes send along each of their edges, (B or 1, N_s)."""
        order, start = self.graph.outgoing
        sent = {}
        for node, points in seen.points.items():
            for e in order[start[node] : start[node + 1]]:
                edge = self.likelihoods[e]
                sent[int(e)] = edge.observed.at(points) @ edge.matrix
        return sent

    def report(
        self, beliefs: Mapping[Hashable, PointEmbedding], seen: Evidence, found: list[Propagation], floor: float | None
    ) -> Report:
        """What stands behind beliefs: for each observation, the edge of its node that draws on the fewest data."""
        order, start = self.graph.outgoing
        support = {}
        for node, points in seen.points.items():
            name = self.graph.names[node]
            edges = order[start[node] : start[node + 1]]
            each = [Support.of(name, self.likelihoods[e], points) for e in edges]
            if each:
                support[name] = min(each, key=lambda one: one.size.min())
        ranks = [message.receiver.values.shape[1] for message in self.messages]
        return query_report(self.graph, beliefs, seen, support, found, floor, ranks)

    def _prepared(
        self, seen: Evidence, sent: dict[int, np.ndarray], part: slice, size: int, floor: float | None
    ) -> tuple[Given, np.ndarray]:
        """Known messages and the nodes' own factors for some queries, padded to `size` of them."""
        graph, most = self.graph, self._operators.into.shape[1]
        own = np.zeros((graph.size, size, most))
        for node, size_there in enumerate(self._counts):
            own[node, :, :size_there] = 1.0
        for node, values in seen.likelihoods.items():
            own[node, :, : values.shape[-1]] *= values
        known = np.zeros((len(graph.sources), size), dtype=bool)
        known[:, part.stop - part.start :] = True  # what fills up to `size` sends nothing
        values = np.ones((len(graph.sources), size, most))
        if self._tree is not None:
            there = np.zeros(graph.size, dtype=bool)
            there[[*seen.points, *seen.likelihoods]] = True
            known |= ~informed(self._tree, there)[:, None]
        for e, message in sent.items():
            rows = message if len(message) == 1 else message[part]
            known[e] = True
            values[e, : len(rows) if len(message) > 1 else size, : message.shape[1]] = raised(rows, floor)
        return Given(jnp.asarray(known), jnp.asarray(values)), own

    def _arriving(
        self, node: int, at: Any, seen: Evidence, messages: np.ndarray, part: slice, floor: float | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The product of own factor and messages of a node at its points, (B, N), and that of messages at others."""
        graph, edges = self.graph, len(self.graph.edges)
        order, start = graph.outgoing
        here = np.ones((messages.shape[1], self._counts[node])) * seen.likelihoods.get(node, 1.0)
        there = np.ones((messages.shape[1], count(at)))
        for back in order[start[node] : start[node + 1]]:
            e, sender = int(back + edges) % (2 * edges), int(graph.targets[back])
            arriving = messages[e, :, : self._counts[node]]
            if (arriving == 1).all():  # nothing is known behind this edge
                continue
            if sender in seen.points:
                likelihood = self.likelihoods[e]
                points = seen.points[sender]
                points = points if count(points) == 1 else rows(points, part)
                receiver, coefficients = likelihood.receiver, likelihood.observed.at(points) @ likelihood.inner
            else:
                known = np.ones((messages.shape[1], self._counts[sender])) * seen.likelihoods.get(sender, 1.0)
                for other in np.flatnonzero(graph.targets == sender):
                    if other != back:
                        known = known * messages[other, :, : self._counts[sender]]
                receiver, coefficients = self.messages[e].receiver, known @ self.messages[e].into
            top = np.max(coefficients @ receiver.values.T, axis=-1, keepdims=True)
            value = coefficients @ receiver.at(at).T / top
            here, there = here * arriving, there * (value if floor is None else np.maximum(value, floor))
        return here, there

    def belief(self, node: int, weights: np.ndarray, seen: Evidence) -> PointEmbedding:
        """The embedding Σ w_i k(x_i, ·) / Σ w_i; a point where the variable was seen."""
        sample = self.samples.nodes[node]
        if node in seen.points:
            number = len(seen.queries(node))
            points = seen.points[node]
            weights = np.eye(number) if seen.batched and number > 1 else np.ones((seen.size, 1))
        else:
            points, weights = sample.points, weights[:, : sample.count]
            weights = weights / weights.sum(axis=-1, keepdims=True)
        return PointEmbedding(sample.kernel, points, weights if seen.batched else weights[0], sample.flat)

    def __repr__(self) -> str:
        pairs = [len(pair) for pair in self.samples.pairs]
        shown = f"{min(pairs)}" if min(pairs) == max(pairs) else f"{min(pairs)} to {max(pairs)}"
        return f"FittedKernelGraph({self.graph!r}, {shown} pairs an edge)"


def _operators(messages: tuple[MessageEdge, ...], most: int) -> Factored:
    """All edges' operators, padded to the most points and the highest rank, rounded up to sizes of a short list."""
    rank = bucket(max((edge.out.shape[0] for edge in messages), default=1))
    into, out = np.zeros((len(messages), most, rank)), np.zeros((len(messages), rank, most))
    for e, edge in enumerate(messages):
        into[e, : edge.into.shape[0], : edge.into.shape[1]] = edge.into
        out[e, : edge.out.shape[0], : edge.out.shape[1]] = edge.out
    return Factored(into, out)


def raised(message: np.ndarray, floor: float | None) -> np.ndarray:
    """An observed node's message scaled to largest value 1 and floored; ones where nothing positive is left."""
    top = message.max(axis=-1, keepdims=True)
    scaled = message / np.where(top > 0, top, 1)
    return np.where(top > 0, scaled if floor is None else np.maximum(scaled, floor), 1.0)
