"""A growing chain: one step of it is learned, and beliefs about its latest states are updated as evidence comes.

The state at each step is the same variable, with the same edge from step to step, so what is learned from pairs
(now, next) serves the whole chain: a message is its values at all points of the state that were seen, as `now` or as
`next`, and each step costs the same however long the chain has become.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meanmap.bp.edges.floors import FLOOR, raised
from meanmap.bp.edges.learning import LikelihoodEdge, MessageEdge
from meanmap.bp.evidence.kernel_evidence import Evidence, read_evidence
from meanmap.bp.evidence.observed import Observed
from meanmap.bp.kernel.fitted_graph import FittedKernelGraph
from meanmap.core.door import Door
from meanmap.core.errors import InputError, ShapeError
from meanmap.core.points import joined
from meanmap.core.report import Report
from meanmap.core.settings import whole_number
from meanmap.core.types import Points
from meanmap.embeddings.points import PointEmbedding
from meanmap.kernels.reading import check_alike

__all__ = ["Stream"]


@dataclass(frozen=True, eq=False)
class Link:
    """The edge between two states in one direction, from values at the state's points to values there."""

    message: MessageEdge
    likelihood: LikelihoodEdge

    def carry(self, step: "Step", product: np.ndarray, floor: float | None) -> np.ndarray:
        """The message of a state: that of its product of values, or the likelihood of its observed value."""
        if step.observed is not None:
            return self.likelihood.message(self.likelihood.observed.at(step.observed), floor)
        product = product / np.max(np.abs(product), axis=-1, keepdims=True)
        return raised(product @ self.message.into @ self.message.out, floor)


@dataclass(frozen=True, eq=False)
class Step:
    """The message from the past and what the evidence of this step says, both (B or 1, N); the state if it was seen."""

    past: np.ndarray
    heard: np.ndarray
    seen: Evidence
    observed: Any


@dataclass(frozen=True, eq=False)
class Stream:
    """Filtering and smoothing along a growing chain, at a constant cost per step.

    Streams are immutable: `step` returns the next one. Made by `Stream.of`.

    Attributes
    ----------
    length : int
        The number of steps taken.
    report : Report or None
        The evidence and data behind the latest belief.

    Examples
    --------
    A level moves slowly and is seen with noise; the model of one step is learned from a record of both.

    >>> import numpy as np
    >>> import meanmap as mm
    >>> rng = np.random.default_rng(0)
    >>> level = np.zeros(600)
    >>> for i in range(1, 600):
    ...     level[i] = 0.95 * level[i - 1] + 0.3 * rng.normal()
    >>> seen = level + 0.5 * rng.normal(size=600)
    >>> past, now = level[:500], level[1:501]
    >>> model = mm.KernelGraph([("now", "next"), ("now", "seen")]).fit({"now": past, "next": now, "seen": seen[:500]})
    >>> stream = mm.bp.Stream.of(model, "now", "next", lag=5)
    >>> errors = []
    >>> for i in range(500, 600):
    ...     stream = stream.step({"seen": seen[i]})
    ...     errors.append(stream.belief.mean() - level[i])
    >>> bool(np.std(errors) < 0.8 * np.std(seen[500:] - level[500:]))       # the past helps
    True
    >>> len(stream.smooth())                                                # the last six states, with hindsight
    6
    """

    slice: FittedKernelGraph
    state: Hashable
    ahead: Link
    back: Link
    lag: int
    floor: float | None
    steps: tuple[Step, ...] = ()
    length: int = 0
    report: Report | None = None

    @classmethod
    def of(
        cls,
        model: FittedKernelGraph,
        now: Hashable,
        next: Hashable,
        *,
        lag: int = 0,
        floor: float | None = FLOOR,
    ) -> "Stream":
        """The chain whose step is the edge (now, next) of a fitted model, before its first step.

        Parameters
        ----------
        model : FittedKernelGraph
            A tree with the edge (now, next), `next` a leaf. All other variables belong to one step: they are seen,
            or may be, at each.
        now, next : names
            The state at a step and at the step after, points of one kind.
        lag : int
            For how many steps back `smooth` can be asked.
        floor : float or None
            As for `FittedKernelGraph.query`.
        """
        whole_number(lag, "lag", 0)
        graph = model.graph
        first, second = graph.index(now), graph.index(next)
        edges = list(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
        if (first, second) not in edges:
            raise InputError(f"the graph has no edge {(now, next)!r}; expected one from the state to the next state.")
        if graph.degrees[second] != 1:
            raise InputError(
                f"{next!r} has {graph.degrees[second]} neighbours; expected {now!r} alone: observations of a state "
                f"belong to {now!r}."
            )
        samples = model.samples.nodes
        check_alike(samples[first].points, samples[second].points, repr(now), repr(next))
        with Door():
            points = joined(samples[first].points, samples[second].points)
            extra = samples[first].count, samples[second].count

            def link(e: int, before: int, after: int) -> Link:
                message, likelihood = model.messages[e], model.likelihoods[e]
                into = np.pad(message.into, ((before, after), (0, 0)))
                return Link(
                    replace(message, into=into, receiver=message.receiver.on(points)),
                    replace(likelihood, receiver=likelihood.receiver.on(points)),
                )

            forth, backwards = edges.index((first, second)), edges.index((second, first))
            links = link(forth, 0, extra[1]), link(backwards, extra[0], 0)
            return cls(_one_step(model, first, second, points), now, *links, int(lag), floor)

    def step(self, evidence: Mapping[Any, Any] | None = None) -> "Stream":
        """The stream one step later, given evidence about the variables of that step, the state among them.

        B values are B chains at once. Cost O(|E| N r), for any length.
        """
        node = self.slice.graph.index(self.state)
        with Door() as door:
            seen = read_evidence(self.slice.graph, self.slice.samples, evidence, door)
            before = self.steps[-1].seen if self.steps else seen
            if seen.batched and before.batched and seen.size != before.size:
                raise ShapeError(f"evidence is for {seen.size} chains; earlier steps had {before.size}.")
            past = self._sent_ahead()
            observed = Observed.of(self.slice.graph, self.slice.likelihoods, seen)
            found = [here for _, here in self.slice.propagated(observed, self.floor)]
            count = self.slice.samples.nodes[node].count
            heard = np.concatenate([np.asarray(here.beliefs)[node] for here in found])[: seen.size, :count]
            batched = seen.batched or before.batched
            seen = replace(seen, size=max(seen.size, before.size), batched=batched)
            step = Step(past, heard, seen, seen.points.get(node))
            steps = (*self.steps, step)[-(self.lag + 1) :]
            belief = self._belief(step, past * heard)
            report = self.slice.report({self.state: belief}, observed, found, self.floor)
        return replace(self, steps=steps, length=self.length + 1, report=report)

    @property
    def belief(self) -> PointEmbedding:
        """The belief about the latest state given all evidence so far: filtering."""
        step = self._latest()
        return self._belief(step, step.past * step.heard)

    def predict(self, steps: int = 1) -> PointEmbedding:
        """The belief about the state `steps` later given all evidence so far."""
        whole_number(steps, "steps")
        latest = self._latest()
        values = self._sent_ahead()
        for _ in range(steps - 1):
            later = replace(latest, observed=None)
            values = self.ahead.carry(later, values, self.floor)
        return self._belief(replace(latest, observed=None), values)

    def smooth(self) -> tuple[PointEmbedding, ...]:
        """Beliefs about the last `lag` + 1 states given all evidence so far, the oldest first."""
        self._latest()
        beliefs, future = [], np.ones((1, 1))
        for step in reversed(self.steps):
            known = step.heard * future
            beliefs.append(self._belief(step, step.past * known))
            future = self.back.carry(step, known, self.floor)
        return tuple(reversed(beliefs))

    def _sent_ahead(self) -> np.ndarray:
        """The message from the latest state to the next one; none before the first step."""
        if not self.steps:
            return np.ones((1, 1))
        step = self.steps[-1]
        return self.ahead.carry(step, step.past * step.heard, self.floor)

    def _belief(self, step: Step, values: np.ndarray) -> PointEmbedding:
        node = self.slice.graph.index(self.state)
        seen = step.seen
        if step.observed is None and node in seen.points:
            seen = replace(seen, points={i: points for i, points in seen.points.items() if i != node})
        weights = np.broadcast_to(values, (seen.size, self.slice.samples.nodes[node].count))
        return self.slice.belief(node, weights, seen)

    def _latest(self) -> Step:
        if not self.steps:
            raise InputError("this stream has not taken a step yet: stream = stream.step({...}) first.")
        return self.steps[-1]

    def __repr__(self) -> str:
        return f"Stream({self.state!r} after {self.length} step{'s' * (self.length != 1)})"


def _one_step(model: FittedKernelGraph, state: int, last: int, points: Points) -> FittedKernelGraph:
    """The model of one step, without the next state, its messages at `points` of the state."""
    graph = model.graph
    part = graph.subgraph(name for i, name in enumerate(graph.names) if i != last)
    kept = [e for e, edge in enumerate(graph.edges) if last not in edge]
    messages, likelihoods = [], []
    for e in (*kept, *(e + len(graph.edges) for e in kept)):
        message, likelihood = model.messages[e], model.likelihoods[e]
        if graph.sources[e] == state:
            more = model.samples.nodes[last].count
            message = replace(message, into=np.pad(message.into, ((0, more), (0, 0))))
        if graph.targets[e] == state:
            message = replace(message, receiver=message.receiver.on(points))
            likelihood = replace(likelihood, receiver=likelihood.receiver.on(points))
        messages.append(message)
        likelihoods.append(likelihood)
    nodes = [replace(node, points=points) if i == state else node for i, node in enumerate(model.samples.nodes)]
    del nodes[last]
    samples = replace(model.samples, nodes=tuple(nodes), pairs=tuple(model.samples.pairs[e] for e in kept))
    return FittedKernelGraph(part, samples, tuple(messages), tuple(likelihoods))
