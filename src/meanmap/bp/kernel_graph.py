"""Graphical models learned from data: any variables that have a kernel, queried like a database."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from meanmap.bp.beliefs import Beliefs
from meanmap.bp.kernel_evidence import Evidence, read_evidence
from meanmap.bp.learning import CoordinateBook, LikelihoodEdge, MessageEdge, learn_likelihood, learn_message
from meanmap.bp.messages import Given
from meanmap.bp.operators import Factored
from meanmap.bp.propagate import Engine, low_note
from meanmap.bp.samples import Samples, read_samples
from meanmap.core.arrays import parameter
from meanmap.core.door import Door
from meanmap.core.errors import InputError, KindError
from meanmap.core.labels import Labels
from meanmap.core.points import bucket
from meanmap.core.progress import track
from meanmap.core.report import Report
from meanmap.embeddings.points import PointEmbedding
from meanmap.graphs import Graph, Rooted
from meanmap.graphs.rooted import check_forest, informed
from meanmap.kernels.base import Kernel

__all__ = ["FittedKernelGraph", "KernelGraph"]

# Queries are answered this many at a time: enough for large matrix products, and one program serves any number.
QUERIES_AT_ONCE = 128
# Learned messages dip below zero where the truth is nearly zero. Values are raised to this share of the largest.
FLOOR = 1e-3
# Below this share of k(x, x) a value is far from every point that was learned from: about four lengthscales.
NEAR = 1e-3
# A belief that rests on fewer points than this has little behind it.
FEW_POINTS = 3.0


class KernelGraph:
    """A tree of variables with kernels, whose edges are learned from data: nonparametric tree graphical models.

    Nothing is assumed but the tree: a variable may be a number, a vector, a label, a text, an angle, a rotation. Each
    edge becomes operators between the spaces of its two variables, and a query is belief propagation with them.

    Parameters
    ----------
    graph : Graph, NetworkX graph or list of edges
        A tree or forest.
    kernels : mapping from names to kernels, optional
        By default RBF with lengthscales chosen for each edge, Delta for labels, Rotation for rotations.
    ridge : float, optional
        λ of all operators. By default each has its own, of least held-out error.
    schedule : optional
        For a graph with cycles, such as `mm.graphs.Flooding()`; by default the graph must be a forest.

    Notes
    -----
    Song, Gretton & Guestrin (2010), algorithm 1, with the factors in the order of the errata. Messages are kept as
    values at the training points and travel through operators of low rank.

    Examples
    --------
    >>> import numpy as np
    >>> import meanmap as mm
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=300)
    >>> b = np.sin(2 * a) + 0.1 * rng.normal(size=300)
    >>> c = b**2 + 0.1 * rng.normal(size=300)
    >>> model = mm.KernelGraph([("a", "b"), ("b", "c")]).fit({"a": a, "b": b, "c": c})
    >>> beliefs = model.query({"a": 0.8}, targets=["c"])         # sin(1.6)² is nearly 1
    >>> bool(abs(beliefs["c"].mean() - 1) < 0.15)
    True
    """

    def __init__(
        self,
        graph: Any,
        *,
        kernels: Mapping[Any, Kernel] | None = None,
        ridge: float | None = None,
        schedule: Any = None,
    ):
        self.graph = Graph.of(graph)
        if schedule is None:
            check_forest(self.graph)
        self.kernels = dict(kernels or {})
        for name, kernel in self.kernels.items():
            self.graph.index(name)
            if not isinstance(kernel, Kernel):
                raise KindError(f"kernels[{name!r}] is {kernel!r}; expected a kernel such as mm.kernels.RBF(1.0).")
        self.ridge = None if ridge is None else float(parameter(ridge, "ridge", axes=0))
        self.schedule = schedule

    def fit(self, data: Any) -> "FittedKernelGraph":
        """Learn the operators of all edges.

        Parameters
        ----------
        data : table, or mapping from edges to pairs of samples
            A table with a column for each node: a DataFrame, a mapping from names to columns, or an (n, d) array for
            nodes 0 to d − 1; a column may be a block (n, k), labels or rotations. A row with a missing value is left
            out of the edges that meet it. Or `{("s", "t"): (xs, xt), ...}`: pairs for each edge, that need not be seen
            together with those of any other edge.

        Returns
        -------
        FittedKernelGraph

        Notes
        -----
        Cost O(N r²) for N pairs and rank r ≤ 300 for each edge, direction, lengthscale and ridge that is tried, and
        the Gram matrix of each node's points.
        """
        with Door() as door:
            samples = read_samples(self.graph, data, self.kernels, door)
            return FittedKernelGraph(self.graph, samples, self.ridge, self.schedule)

    def __repr__(self) -> str:
        return f"KernelGraph({self.graph!r})"


class FittedKernelGraph:
    """A `KernelGraph` with learned operators, ready for queries.

    Attributes
    ----------
    graph : Graph
    chosen : dict
        For each directed edge (t, s) what was chosen: the ridge and the multiple of the median distance of the message
        operator and of the likelihood operator.
    """

    def __init__(self, graph: Graph, samples: Samples, ridge: float | None, schedule: Any):
        self.graph, self.samples = graph, samples
        books = [CoordinateBook(node) for node in samples.nodes]
        edges = len(graph.edges)
        messages: list[MessageEdge] = []
        likelihoods: list[LikelihoodEdge] = []
        for e in track(range(2 * edges), "learning edges"):
            t, s = int(graph.sources[e]), int(graph.targets[e])
            pairs = samples.pairs[e % edges] if e < edges else samples.pairs[e - edges][:, ::-1]
            messages.append(learn_message(books[t], books[s], pairs, ridge))
            likelihoods.append(learn_likelihood(books[t], books[s], pairs, ridge))
        self._likelihoods = likelihoods
        self.chosen = {
            (graph.names[graph.sources[e]], graph.names[graph.targets[e]]): {
                "ridge": messages[e].ridge,
                "median_multiple": messages[e].multiple,
                "likelihood_ridge": likelihoods[e].ridge,
                "likelihood_median_multiple": likelihoods[e].multiple,
            }
            for e in range(2 * edges)
        }
        self._counts = np.array([node.count for node in samples.nodes])
        self._operators = _operators(messages, bucket(int(self._counts.max())))
        self._engine = Engine(graph, self._operators, np.arange(2 * edges), schedule)
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
            sent = self._observed_messages(seen)
            weights: list[np.ndarray] = []
            shares, reports = [], []
            for start in range(0, seen.size, QUERIES_AT_ONCE):
                part = slice(start, min(start + QUERIES_AT_ONCE, seen.size))
                number = part.stop - part.start
                size = number if number == 1 else bucket(number)
                given, own = self._prepared(seen, sent, part, size, floor)
                found = self._engine.run(jnp.asarray(own), given, damping=damping, floor=floor)
                weights.append(np.asarray(found.beliefs[np.array(nodes)])[:, :number])
                shares.append(float(found.low_share))
                reports.append(found.report)
            beliefs = np.concatenate(weights, axis=1)
        answers = {
            name: self._belief(node, beliefs[i], seen) for i, (name, node) in enumerate(zip(names, nodes, strict=True))
        }
        report = self._report(answers, nodes, seen, max(shares), floor, reports)
        return Beliefs(names, answers.__getitem__, report)

    def _observed_messages(self, seen: Evidence) -> dict[int, np.ndarray]:
        """What observed nodes send along each of their edges, (B or 1, N_s)."""
        order, start = self.graph.outgoing
        sent = {}
        for node, points in seen.points.items():
            for e in order[start[node] : start[node + 1]]:
                edge = self._likelihoods[e]
                phi = edge.coordinates.at(points)
                self._check_nearness(seen, node, phi, edge)
                sent[int(e)] = phi @ edge.matrix
        return sent

    def _check_nearness(self, seen: Evidence, node: int, phi: np.ndarray, edge: LikelihoodEdge) -> None:
        """Refuse labels that were never seen; note values far from everything that was.

        ‖φ(x)‖² is the part of k(x, x) that the data can see.
        """
        far = np.sum(phi**2, axis=1) < NEAR * np.sum(edge.coordinates.values**2) / len(edge.coordinates.values)
        name = self.graph.names[node]
        if far.any() and isinstance(edge.coordinates.kernel.domain, Labels):
            raise InputError(f"evidence[{name!r}] has a label that is not among the {self._counts[node]} of the data.")
        note = f"evidence[{name!r}] is far from all data in {int(far.sum())} of {len(far)} queries."
        if far.any() and note not in seen.notes:
            seen.notes.append(note)

    def _prepared(
        self, seen: Evidence, sent: dict[int, np.ndarray], part: slice, size: int, floor: float | None
    ) -> tuple[Given, np.ndarray]:
        """Known messages and the nodes' own factors for some queries, padded to `size` of them."""
        graph, most = self.graph, self._operators.into.shape[1]
        own = np.zeros((graph.size, size, most))
        for node, count in enumerate(self._counts):
            own[node, :, :count] = 1.0
        for node, values in seen.likelihoods.items():
            own[node, :, : values.shape[-1]] *= values
        known = np.zeros((len(graph.sources), size), dtype=bool)
        values = np.ones((len(graph.sources), size, most))
        if self._tree is not None:
            there = np.zeros(graph.size, dtype=bool)
            there[[*seen.points, *seen.likelihoods]] = True
            known |= ~informed(self._tree, there)[:, None]
        for e, message in sent.items():
            rows = message if len(message) == 1 else message[part]
            known[e] = True
            values[e, : len(rows) if len(message) > 1 else size, : message.shape[1]] = _raised(rows, floor)
        return Given(jnp.asarray(known), jnp.asarray(values)), own

    def _belief(self, node: int, weights: np.ndarray, seen: Evidence) -> PointEmbedding:
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

    def _report(
        self, answers: dict, nodes: list[int], seen: Evidence, share: float, floor: Any, reports: list[Report]
    ) -> Report:
        notes = list(seen.notes)
        if share > 0:
            notes.append(low_note(share, floor))
        components = self.graph.components
        reached = {int(components[i]) for i in (*seen.points, *seen.likelihoods)}
        for node in nodes:
            name = self.graph.names[node]
            if reached and int(components[node]) not in reached:
                notes.append(f"no evidence is connected to {name!r}: its belief is its prior.")
            elif node not in seen.points and (few := np.min(answers[name].effective_size)) < FEW_POINTS:
                notes.append(
                    f"the belief about {name!r} rests on {few:.1f} points: evidence is contradictory, or far from "
                    "the data."
                )
        first = reports[0]
        converged = all(report.converged for report in reports)
        return Report(first.status, converged, max(r.steps for r in reports), first.residuals, notes=tuple(notes))

    def __repr__(self) -> str:
        pairs = [len(pair) for pair in self.samples.pairs]
        shown = f"{min(pairs)}" if min(pairs) == max(pairs) else f"{min(pairs)} to {max(pairs)}"
        return f"FittedKernelGraph({self.graph!r}, {shown} pairs an edge)"


def _operators(messages: list[MessageEdge], most: int) -> Factored:
    """All edges' operators, padded to the most points and the highest rank, rounded up to sizes of a short list."""
    rank = bucket(max((edge.out.shape[0] for edge in messages), default=1))
    into, out = np.zeros((len(messages), most, rank)), np.zeros((len(messages), rank, most))
    for e, edge in enumerate(messages):
        into[e, : edge.into.shape[0], : edge.into.shape[1]] = edge.into
        out[e, : edge.out.shape[0], : edge.out.shape[1]] = edge.out
    return Factored(into, out)


def _raised(message: np.ndarray, floor: float | None) -> np.ndarray:
    """An observed node's message scaled to largest value 1 and floored; ones where nothing positive is left."""
    top = message.max(axis=-1, keepdims=True)
    scaled = message / np.where(top > 0, top, 1)
    return np.where(top > 0, scaled if floor is None else np.maximum(scaled, floor), 1.0)
