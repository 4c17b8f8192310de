"""A learned graphical model: evidence in, beliefs out."""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from meanmap.bp.beliefs.beliefs import Beliefs, in_words
from meanmap.bp.beliefs.gain import Gain
from meanmap.bp.beliefs.pages import QueriedPage
from meanmap.bp.edges.floors import FLOOR
from meanmap.bp.edges.learning import LikelihoodEdge, MessageEdge
from meanmap.bp.edges.samples import NodeSample, Samples
from meanmap.bp.engine.messages import Given
from meanmap.bp.engine.operators import Factored
from meanmap.bp.engine.propagate import Engine, Propagation
from meanmap.bp.evidence.kernel_evidence import Evidence, read_evidence
from meanmap.bp.evidence.observed import Observed
from meanmap.bp.kernel.belief_weights import Arriving, Factor, MessageWeights, factors_of
from meanmap.bp.kernel.many_rows import ManyRows
from meanmap.bp.kernel.round_messages import QUERIES_AT_ONCE
from meanmap.bp.kernel.support import Support, learning_notes, query_report
from meanmap.core.door import Door
from meanmap.core.meant import no_column
from meanmap.core.points import bucket, on_device, slices
from meanmap.core.report import Report
from meanmap.core.synonyms import own_words
from meanmap.core.tables.filling import columns_of
from meanmap.core.tables.missing import present, take
from meanmap.core.threads import one_blas_thread
from meanmap.core.types import Axes, Data, Seed
from meanmap.embeddings.points import PointEmbedding
from meanmap.graphs import Graph
from meanmap.graphs.drawing import draw_forest
from meanmap.graphs.rooted import informed
from meanmap.graphs.schedules import Schedule

__all__ = ["FittedKernelGraph"]


class FittedKernelGraph(QueriedPage, ManyRows):
    """A `KernelGraph` with learned operators, ready for queries.

    Attributes
    ----------
    graph : Graph
    samples : Samples
        The points of each node and the pairs of each edge.
    chosen : dict
        For each directed edge (t, s) the chosen settings: the ridge and the multiple of the median distance of the
        message operator and of the likelihood operator, their ranks, and the share of the kernels that these leave out.
    schema : Schema or None
        The kinds of the variables; evidence of another kind is refused, and odd values are noted in the report.
    """

    def __init__(
        self,
        graph: Graph,
        samples: Samples,
        messages: tuple[MessageEdge, ...],
        likelihoods: tuple[LikelihoodEdge, ...],
        schedule: Schedule | None = None,
    ):
        self.graph, self.samples, self.messages, self.likelihoods = graph, samples, messages, likelihoods
        self.chosen = {
            (graph.names[t], graph.names[s]): {
                "ridge": message.ridge,
                "median_multiple": message.receiver.multiple,
                "rank": message.receiver.values.shape[1],
                "left_out": message.receiver.left_out,
                "likelihood_ridge": likelihood.ridge,
                "likelihood_median_multiple": likelihood.receiver.multiple,
                "likelihood_rank": min(likelihood.inner.shape),
                "likelihood_left_out": max(likelihood.receiver.left_out, likelihood.observed.left_out),
            }
            for t, s, message, likelihood in zip(graph.sources, graph.targets, messages, likelihoods, strict=True)
        }
        self.schedule = schedule

    @cached_property
    def _engine(self) -> Engine:
        return Engine(self.graph, np.arange(len(self.messages)), self.schedule)

    @cached_property
    def _operators(self) -> Factored:
        """The operators of all edges as NumPy arrays, which can be pickled."""
        return Factored.of([(edge.into, edge.out) for edge in self.messages], self._inside.shape[1])

    @cached_property
    def _counts(self) -> np.ndarray:
        """The number of points of each node."""
        return np.array([node.count for node in self.samples.nodes])

    @cached_property
    def _inside(self) -> np.ndarray:
        """Ones at the points of each node (n, L), zeros where messages are filled up."""
        return (np.arange(bucket(int(self._counts.max()))) < self._counts[:, None]).astype(float)

    @property
    def node_samples(self) -> list[NodeSample]:
        """The sample of each variable."""
        return list(self.samples.nodes)

    @property
    def pair_counts(self) -> list[int]:
        """The number of pairs of each edge."""
        return [len(pair) for pair in self.samples.pairs]

    def _times_of_page(self) -> Collection[Any]:
        return [name for name, node in zip(self.graph.names, self.samples.nodes, strict=True) if node.timed]

    @one_blas_thread()
    @own_words
    def query(
        self,
        evidence: Mapping[Any, Any] | None = None,
        targets: Iterable[Hashable] | None = None,
        *,
        floor: float | None = FLOOR,
        damping: float | None = None,
        tolerance: float | None = None,
        counting: float | None = None,
        rng: Seed = None,
    ) -> Beliefs[PointEmbedding]:
        """The belief about each target given evidence.

        Parameters
        ----------
        evidence : mapping from names to values, row of a table, or table with a row for each query
            A value of the variable: a number, a vector, a label, a rotation. With one more axis, B values are B
            queries at once, and single ones are repeated for all of them. A function from points (as the kernel reads
            them, plain numbers as (n,)) to (n,) is a likelihood; an embedding of a sample or distribution is one, too.
            Other columns of a table, or of a row such as `table.iloc[0]`, are ignored.
        targets : names, optional
            All variables unless given.
        floor : float or None
            Values of a message below this share of its largest are raised to it; of messages from a variable that was
            seen, below this share of their mean.
        damping, tolerance, counting
            For graphs with cycles, as of `FittedKernelField.query`; by default no damping.
        rng
            As of other models of tables; nothing is drawn here.

        Returns
        -------
        Beliefs
            Embeddings with all their read-outs: `beliefs["s"].mean()`, `.density(grid)`, `.quantile(q)`, `.mode()`,
            `.sample(n, rng)`, `.expect(f)`; `.ratio(points)`, p(x | evidence) / p(x) at any points, whose largest value
            among candidates is retrieval; `beliefs.report` says how much data they rest on.

        Notes
        -----
        Cost O(|E| N r) for a query. A branch without evidence sends nothing, and an observed variable hides what is
        behind it (section 2.1).
        """
        numbered = self.numbered(targets)
        names, nodes = tuple(numbered), list(numbered.values())
        with Door() as door:
            seen = read_evidence(self.graph, self.samples, evidence, door)
            observed = Observed.of(self.graph, self.likelihoods, seen)
            weights: list[np.ndarray] = []
            functions: dict[int, list[Arriving]] = {node: [] for node in nodes}
            found = []
            for part, here in self.propagated(observed, floor, damping or 0.0, tolerance, counting):
                number = part.stop - part.start
                messages = np.asarray(here.messages)[:, :number]
                weights.append(np.asarray(here.beliefs)[nodes, :number])
                for node, parts in functions.items():
                    parts.append(self._arriving(node, observed, part, messages))
                found.append(replace(here, messages=None, beliefs=None))
            values = np.concatenate(weights, axis=1)
            answers = {
                name: self.belief(node, values[i], seen, factors_of(functions[node], seen.size), floor)
                for i, (name, node) in enumerate(zip(names, nodes, strict=True))
            }
            report = self.report(answers, observed, found, floor)
        labels = {
            name: known
            for name, node in zip(names, nodes, strict=True)
            if (known := self.samples.nodes[node].labels) is not None and node not in seen.points
        }
        known = (
            evidence if isinstance(evidence, Mapping) else dict.fromkeys(self.graph.names[node] for node in seen.points)
        )
        return Beliefs(names, answers.__getitem__, report, labels=labels, given=in_words(known))

    def propagated(
        self,
        observed: Observed,
        floor: float | None,
        damping: float = 0.0,
        tolerance: float | None = None,
        counting: float | None = None,
    ) -> Iterator[tuple[slice, Propagation]]:
        """Messages and beliefs in values, for a few queries at a time: their indices, and the results."""
        settings = {"damping": damping, "floor": floor, "tolerance": tolerance, "counting": counting}
        for part in slices(observed.seen.size, QUERIES_AT_ONCE):
            given, own = self._prepared(observed, part, floor)
            yield part, self._engine.run(on_device(self._operators), on_device(own), given, **settings)

    def report(
        self,
        beliefs: Mapping[Hashable, PointEmbedding],
        observed: Observed,
        found: list[Propagation],
        floor: float | None,
    ) -> Report:
        """The support of beliefs: for each observation, that of the edge of its node with the fewest data."""
        leaving: dict[Hashable, list[Support]] = {}
        for e, phi in observed.features.items():
            leaving.setdefault(self.graph.names[self.graph.sources[e]], []).append(Support.of(self.likelihoods[e], phi))
        support = {name: Support.least(found) for name, found in leaving.items()}
        ranks = [message.receiver.values.shape[1] for message in self.messages]
        notes = learning_notes(self.graph, self.samples, self.likelihoods)
        everywhere = np.ones((self.graph.size, observed.seen.size), dtype=bool)
        notes += self.samples.together(self.graph, observed.seen.points, everywhere)
        return query_report(self.graph, self.samples, beliefs, observed.seen, support, found, floor, ranks, notes)

    def _prepared(self, observed: Observed, part: slice, floor: float | None) -> tuple[Given, np.ndarray]:
        """Known messages and the nodes' own factors for some queries, padded to a number of a short list."""
        number = part.stop - part.start
        size = number if number == 1 else bucket(number)
        graph, seen, most = self.graph, observed.seen, self._inside.shape[1]
        own = np.repeat(self._inside[:, None], size, axis=1)
        for node, values in seen.likelihoods.items():
            own[node, :, : values.shape[-1]] *= values
        known = np.repeat(~self._informed(seen)[:, None], size, axis=1)
        known[:, number:] = True  # what fills up to `size` sends nothing
        values = np.ones((len(graph.sources), size, most))
        for e in observed.features:
            message = observed.message(e, part, floor)
            known[e] = True
            values[e, : size if len(message) == 1 else number, : message.shape[1]] = message
        return Given(*on_device((known, values))), own

    def _informed(self, seen: Evidence) -> np.ndarray:
        """Behind which directed edges there may be evidence."""
        if self._tree is None:
            return np.ones(len(self.messages), dtype=bool)
        there = np.zeros(self.graph.size, dtype=bool)
        there[[*seen.points, *seen.likelihoods]] = True
        return informed(self._tree, there)

    def _arriving(self, node: int, observed: Observed, part: slice, messages: np.ndarray) -> Arriving:
        """The messages that a node receives, as coordinates and coefficients, from the values (2 |E|, B, L) of all."""
        order, start = self.graph.outgoing
        seen, against, there = observed.seen, self.graph.against, self._informed(observed.seen)
        found = []
        for back in order[start[node] : start[node + 1]]:
            e, sender = int(against[back]), int(self.graph.targets[back])
            if not there[e]:
                continue
            if sender in seen.points:
                found.append((self.likelihoods[e].receiver, observed.coefficients(e, part), True))
                continue
            product = seen.likelihoods.get(sender, np.ones(self._counts[sender]))
            for other in order[start[sender] : start[sender + 1]]:
                if other != e:
                    product = product * messages[against[other], :, : self._counts[sender]]
            found.append((self.messages[e].receiver, np.atleast_2d(product) @ self.messages[e].into, False))
        return found

    def belief(
        self,
        node: int,
        weights: np.ndarray,
        seen: Evidence,
        factors: tuple[Factor, ...] | None = None,
        floor: float | None = FLOOR,
    ) -> PointEmbedding:
        """The embedding Σ w_i k(x_i, ·) / Σ w_i; a point where the variable was seen."""
        sample = self.samples.nodes[node]
        if node in seen.points:
            number = len(seen.queries(node))
            points = seen.points[node]
            source: Any = np.eye(number) if seen.batched and number > 1 else np.ones((seen.size, 1))
        else:
            points, source = sample.points, weights[:, : sample.count]
            source = source / source.sum(axis=-1, keepdims=True)
            if factors is not None:
                source = MessageWeights.of(source, factors, sample, seen.functions.get(node), floor)
        beliefs = sample.belief(points, source, None if node in seen.points else sample.narrow)
        return beliefs if seen.batched else beliefs[0]

    def gains(self, frame: Data) -> dict[tuple, Gain]:
        """The gain of each edge on held-out rows, in nats per row: the log density of both of its
        ends together less those of each alone.

        Parameters
        ----------
        frame : table
            New rows, as `score` takes them.

        Returns
        -------
        dict
            A `Gain` for each edge: below two standard errors the edge does not help, or there are too few rows.

        Examples
        --------
        >>> import numpy as np
        >>> import meanmap as mm
        >>> a, noise, c = np.random.default_rng(0).normal(size=(3, 400))
        >>> table = {"a": a, "b": a + noise, "c": c}
        >>> model = mm.KernelGraph([("a", "b"), ("b", "c")]).fit({name: x[:300] for name, x in table.items()})
        >>> gains = model.gains({name: x[300:] for name, x in table.items()})
        >>> gains["a", "b"].mean > 2 * gains["a", "b"].error, gains["b", "c"].mean > 2 * gains["b", "c"].error
        (True, False)
        """
        columns, found = columns_of(frame), {}
        for pair in self.graph.named_edges:
            lacking = next((name for name in pair if str(name) not in columns), None)
            if lacking is not None:
                raise no_column("frame", lacking, columns)
            ends = {name: columns[str(name)] for name in pair}
            both = np.flatnonzero(np.logical_and(*(present(column) for column in ends.values())))
            ends = {name: take(column, both) for name, column in ends.items()}
            first, second = (self.score({name: ends[name]}) for name in pair)
            found[pair] = Gain.of(self.score(ends), first + second)
        return found

    def plot(self, ax: Axes | None = None, *, gains: Mapping[tuple, Gain] | None = None) -> Any:
        """Draw the graph, with what `gains` found at edges, dashed below two errors; returns the matplotlib Axes."""
        labels = {pair: f"{gain.mean:.2g}" for pair, gain in (gains or {}).items()}
        support = {pair: float(gain.mean > 2 * gain.error) for pair, gain in (gains or {}).items()}
        return draw_forest(self.graph, ax, labels=labels, support=support)
