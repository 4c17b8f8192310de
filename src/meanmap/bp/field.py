"""Common parts of all random fields, whatever the form of messages: graphs, pairs, observations, evidence, beliefs.

`KernelField` is one of them; the package of the papers has others for comparison.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np

from meanmap.bp.beliefs.beliefs import Beliefs
from meanmap.bp.beliefs.pages import beliefs_page
from meanmap.bp.edges.field_samples import ONE, FieldSamples, read_relations
from meanmap.bp.edges.learning import LearnedLikelihood
from meanmap.bp.edges.observations import Likelihood, learn_likelihoods
from meanmap.bp.edges.samples import NodeSample
from meanmap.bp.evidence.field_evidence import Evidence, read_field_evidence
from meanmap.bp.model import FittedModel
from meanmap.core.door import Door
from meanmap.core.errors import KindError
from meanmap.core.held import holds_floats
from meanmap.core.points import in_columns
from meanmap.core.report import Report
from meanmap.core.synonyms import own_words
from meanmap.core.threads import one_blas_thread
from meanmap.core.types import Data, GraphLike, Points
from meanmap.embeddings.points import PointEmbedding
from meanmap.graphs import Flooding, Graph, Schedule, TwoPass
from meanmap.graphs.rooted import steps_to_farthest
from meanmap.graphs.schedules import as_schedule
from meanmap.plots.facts import Page
from meanmap.plots.networks import MOST_NODES
from meanmap.plots.paged import Paged

__all__ = ["DAMPING", "SWEEPS", "Field", "FittedField", "sweeps_to_cross"]

Fitted = TypeVar("Fitted")
Answered = tuple[Callable[[int], Any], Report]

# The share of old messages that is kept on graphs with cycles.
DAMPING = 0.3
# Learned operators have errors, and on graphs with cycles each further sweep counts the same evidence again: on images,
# where all pixels were observed, errors were smallest after 10 to 20 sweeps.
SWEEPS = 15


def sweeps_to_cross(graph: Graph, informed: np.ndarray, damping: float) -> int:
    """After how many sweeps messages that have not converged are used as they are.

    All evidence has come from the nearest of the nodes (n,) that know something to the farthest of the others and back
    by then, a damped message by 1 − damping of a step a sweep, with `SWEEPS` more. Rounded up to `SWEEPS` times a power
    of two, because each number is a compiled program.
    """
    steps = steps_to_farthest(graph, np.flatnonzero(informed))
    rounds = 1 + 2 * steps / (1 - damping) / SWEEPS
    return SWEEPS * 2 ** math.ceil(math.log2(rounds))


class Field(Paged, ABC, Generic[Fitted]):
    """A pairwise random field whose relations are learned from pairs.

    Parameters
    ----------
    graph : Graph, NetworkX graph or list of edges
        n nodes.
    relations : sequence (|E|,) or mapping from edges to labels, optional
        The relation of each edge; by default all share one symmetric relation.
    variables : sequence (n,) or mapping from names to labels, optional
        The kind of each variable; by default all are of the same kind.
    schedule : optional
        By default two passes on a forest, otherwise 15 sweeps of flooding.
    """

    # The default likelihood of observations.
    default_likelihood: type[Likelihood] = LearnedLikelihood
    # The most columns a variable may have; None for any number.
    most_columns: int | None = 1

    def __init__(
        self, graph: GraphLike, *, relations: object = None, variables: object = None, schedule: Schedule | None = None
    ):
        self.graph = Graph.of(graph)
        self.relations, self.variables = relations, variables
        self.schedule = None if schedule is None else as_schedule(schedule)
        self.kernels: Any = None  # numbers are read as numbers; no kernel is used to learn

    @one_blas_thread()
    @own_words
    def fit(
        self,
        pairs: Data,
        *,
        observed: Data = None,
        likelihood: object = None,
        kinds: Mapping[Hashable, Any] | str | None = None,
    ) -> Fitted:
        """Learn the relations and the likelihoods of observations.

        Parameters
        ----------
        pairs : (xs, xt), or mapping from relations to such pairs
            Values of both ends of m edges; pairs with a missing value are dropped. Pairs may also be columns of Dask or
            lazy frames: if there are more than 100,000 rows, 100,000 are read, drawn by row number.
        observed : (hidden, observed), or mapping from kinds to such pairs, optional
            Values of variables with observations of them, to learn likelihoods from.
        likelihood : class, Likelihood or function, or mapping from kinds to these, optional
            The likelihoods of observations: a class learns from `observed`; a function of N observations and n points
            gives (N, n).
        kinds : mapping from kinds of variables to what their values mean, or one for all, optional
            Where the data type does not show it, such as {"phase": "angle", "zip": "label"}: see `Schema.of`.
        """
        with Door():
            read = read_relations(self, pairs, kinds)
            for kind, sample in read.samples.items():
                self._check(sample.points, kind)
            likelihoods = learn_likelihoods(read.samples, observed, likelihood, self.default_likelihood)
            return self._learn(read, likelihoods)

    def _check(self, points: Points, kind: Hashable) -> None:
        """Refuse points of a kind that the method cannot take."""
        name, what = type(self).__name__, "pairs" if kind == ONE else repr(kind)
        if not in_columns(points) or not holds_floats(points):
            raise KindError(
                f"the values of {what} are not numbers; {name} needs numbers, mm.KernelField accepts any kind."
            )
        if self.most_columns is not None and points.shape[1] > self.most_columns:
            raise KindError(
                f"the values of {what} have {points.shape[1]} columns; {name} needs single numbers, mm.KernelField "
                f"accepts vectors."
            )

    @abstractmethod
    def _learn(self, read: FieldSamples, likelihoods: dict[Hashable, Likelihood]) -> Fitted:
        """Relations from points of each kind (N, d) and the rows of their pairs in each direction."""

    def _as_page(self, brief: bool = False) -> Page:
        return self.graph._as_page(brief)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.graph!r})"


class FittedField(Paged, FittedModel):
    """A fitted field, ready for queries.

    Attributes
    ----------
    graph : Graph
    samples : dict
        The points (N, d) that were seen of each kind, with the kernel that reads them.
    directions : list of Direction
        For each direction of a relation, kinds and rows (m, 2) of pairs.
    template : array (2 |E|,)
        The direction that each directed edge is of.
    kind : array (n,)
        The kind of each variable, a position in `samples`.
    likelihoods : dict
        For each kind that can be observed.
    """

    # Where the user names nothing, on graphs with cycles: as of `KernelField`, so that what differs is the method.
    sweeps = SWEEPS
    damping = DAMPING

    def __init__(
        self, graph: Graph, read: FieldSamples, likelihoods: Mapping[Hashable, Likelihood], schedule: Schedule | None
    ):
        self.graph, self.samples, self.directions = graph, read.samples, read.directions
        self.template, self.kind, self.likelihoods = read.template, read.kind, dict(likelihoods)
        self.schedule = (TwoPass() if graph.is_forest else Flooding(self.sweeps)) if schedule is None else schedule

    def _as_page(self, brief: bool = False) -> Page:
        """Its graph and, unless that is large, beliefs without evidence."""
        drawn = self.graph._as_page()
        if brief or self.graph.size > MOST_NODES:
            return replace(drawn, title=type(self).__name__)
        known = beliefs_page(self.query({}), brief)
        sections = (*drawn.sections, *(replace(each, title="Beliefs without evidence") for each in known.sections))
        return Page("A field that answers queries", "", sections, {**drawn.facts, **known.facts})

    @property
    def node_samples(self) -> list[NodeSample]:
        """The sample of each kind."""
        return list(self.samples.values())

    @property
    def pair_counts(self) -> list[int]:
        """The number of pairs of each direction of a relation; pairs used in both directions count once."""
        times = 2 if len(self.directions) == 1 else 1
        return [len(direction.pairs) // times for direction in self.directions]

    @abstractmethod
    @one_blas_thread()
    def query(
        self,
        evidence: Mapping[Any, Any] | None = None,
        targets: Iterable[Hashable] | None = None,
        *,
        observed: Data = None,
        damping: float | None = None,
    ) -> Beliefs:
        """The belief about each target.

        Parameters
        ----------
        evidence : mapping from names to values or functions
            Values that were seen, and functions from points to likelihoods.
        targets : names, optional
            All unless given.
        observed : array (n, ...) or (B, n, ...), or mapping from kinds to arrays, optional
            An observation for each node, for B queries at once with one more axis; NaN where there is none. Through
            the likelihoods of `fit`.
        damping : float, optional
            The share of the old message that is kept; without meaning on two passes. By default .3.
        """

    def _answers(
        self,
        evidence: Any,
        targets: Iterable[Hashable] | None,
        observed: Data,
        propagate: Callable[[Evidence, np.ndarray], Answered],
    ) -> Beliefs:
        """Beliefs about targets; `propagate` gives the belief about a node that was not seen, and the report.

        A belief is of one query unless evidence is batched.
        """
        nodes = self.numbered(targets)
        with Door():
            seen = read_field_evidence(self, evidence, observed)
            found, report = propagate(seen, np.array(list(nodes.values()), dtype=np.int64))

        def answer(name: Hashable) -> Any:
            node = nodes[name]
            return self._known(node, seen.values[node]) if node in seen.values else found(node)

        return Beliefs(tuple(nodes), answer, replace(report, notes=(*seen.notes, *report.notes)))

    def _known(self, node: int, value: object) -> PointEmbedding:
        """The belief about a node that was seen."""
        sample = self.samples[self.kind_of(node)]
        return PointEmbedding(sample.kernel, value, np.ones(1), sample.flat)

    def _kept(self, damping: float | None) -> float:
        """The share of old messages that is kept."""
        return self.damping if damping is None else damping

    def kind_of(self, node: int) -> Hashable:
        """The kind of a node, by its number."""
        return list(self.samples)[self.kind[node]]
