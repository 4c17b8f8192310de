"""Random fields whose messages are Gaussian mixtures: nonparametric belief propagation (Sudderth et al. 2003)."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from meanmap.bp.beliefs.beliefs import Beliefs
from meanmap.bp.edges.field_samples import FieldSamples
from meanmap.bp.edges.observations import Likelihood
from meanmap.bp.evidence.field_evidence import Evidence
from meanmap.bp.field import Field, FittedField
from meanmap.core.arrays import damping_share, parameter
from meanmap.core.errors import KindError, ParameterError
from meanmap.core.progress import track
from meanmap.core.report import Report
from meanmap.core.rng import Rng
from meanmap.core.types import Data, GraphLike, Seed
from meanmap.graphs import Graph, Schedule
from meanmap.graphs.rooted import Rooted, check_forest, informed
from meanmap_papers.rivals.mixtures.gibbs import Gibbs
from meanmap_papers.rivals.mixtures.messages import Knowledge, Messages, send
from meanmap_papers.rivals.mixtures.mixtures import Mixtures
from meanmap_papers.rivals.mixtures.multiscale import Multiscale
from meanmap_papers.rivals.mixtures.products import ProductSampler
from meanmap_papers.rivals.mixtures.reduction import BANDWIDTHS, reduced
from meanmap_papers.rivals.pair_densities import PairDensities
from meanmap_papers.rivals.particles.model import NodeFactors
from meanmap_papers.rivals.weighted import EFFECTIVE, effective_size, weighted_answers

__all__ = ["FittedMixtureField", "MixtureField"]

# Beliefs are read from this many times as many draws as messages.
BELIEF_DRAWS = 4


class MixtureField(Field):
    """A pairwise random field of numbers or vectors, whose messages are mixtures of K Gaussians.

    What a node knows is a product of mixtures, too large to be written out; K points x_tⁱ are drawn from it, and the
    message is Σᵢ wᵢ p(x_s | x_tⁱ), a mixture again, because edge densities learned by least squares are.

    Parameters
    ----------
    graph, relations, variables
        As of `KernelField`.
    schedule : TwoPass, Flooding or Sequential, optional
        By default two passes on a forest, else 15 sweeps of flooding.
    components : int
        K, of messages and of draws.
    sampler : Gibbs or Multiscale, optional
        How products are drawn from. By default trees, which are exact, where no node has more than two neighbours;
        else Gibbs sampling, which costs less for three and more factors.
    bandwidth : "thumb" or "likelihood", optional
        As in the paper: a Gaussian on each drawn x_s, with a bandwidth by this rule. By default the mixture that edge
        densities give, which needs neither draws nor smoothing.
    centres : int
        Components of edge densities.

    Notes
    -----
    Cost O(|E| τ D K²) per sweep with τ iterations of Gibbs sampling at degree D. The error falls as K^(−1/2).

    References
    ----------
    Sudderth, Ihler, Freeman & Willsky (2003); Ihler et al. (2003); Song et al. (2011), appendix 1.

    Examples
    --------
    >>> import numpy as np
    >>> import meanmap as mm
    >>> from meanmap_papers import rivals
    >>> rng = np.random.default_rng(0)
    >>> height = rng.normal(size=500)
    >>> pairs = height, 0.95 * height + 0.3 * rng.normal(size=500)
    >>> ring = [(i, (i + 1) % 12) for i in range(12)]
    >>> field = rivals.MixtureField(ring).fit(pairs)
    >>> beliefs = field.query({0: 1.0, 6: -1.0}, rng=0)
    >>> bool(beliefs[1].mean() > 0.3 > -0.3 > beliefs[5].mean())
    True
    """

    most_columns = None

    def __init__(
        self,
        graph: GraphLike,
        *,
        relations: Any = None,
        variables: Any = None,
        schedule: Any = None,
        components: int = 100,
        sampler: ProductSampler | None = None,
        bandwidth: str | None = None,
        centres: int = 100,
    ):
        super().__init__(graph, relations=relations, variables=variables, schedule=schedule)
        self.components = int(parameter(components, "components", axes=0, integer=True))
        if sampler is None:
            sampler = Multiscale() if self.graph.degrees.max(initial=0) <= 2 else Gibbs()
        if not isinstance(sampler, ProductSampler):
            raise KindError(f"sampler is {sampler!r}; expected rivals.Gibbs(10) or rivals.Multiscale().")
        if bandwidth is not None and bandwidth not in BANDWIDTHS:
            rules = ", ".join(map(repr, BANDWIDTHS))
            raise ParameterError(f"bandwidth is {bandwidth!r}; expected one of {rules}, or None.")
        if schedule is not None and (not isinstance(schedule, Schedule) or schedule.rounds(self.graph) is None):
            raise KindError(
                f"schedule is {schedule!r}; messages that are drawn go by mm.graphs.TwoPass(), Flooding() or "
                "Sequential(): how much one changed is mostly chance."
            )
        if getattr(schedule, "mesh", None) is not None:
            raise KindError("messages that are drawn are for one device: leave mesh= out.")
        if schedule is not None and schedule.forests_only:
            check_forest(self.graph)
        self.sampler, self.bandwidth = sampler, bandwidth
        self.centres = int(parameter(centres, "centres", axes=0, integer=True))

    def _learn(self, read: FieldSamples, likelihoods: dict[Hashable, Likelihood]) -> "FittedMixtureField":
        return FittedMixtureField(self, read, likelihoods, PairDensities.learn(read, self.centres))


class FittedMixtureField(FittedField):
    """A `MixtureField` with learned edge densities, ready for queries.

    Attributes
    ----------
    densities : PairDensities
        Of edges, in both directions, and of variables.
    """

    def __init__(
        self, field: MixtureField, read: FieldSamples, likelihoods: dict[Hashable, Likelihood], densities: PairDensities
    ):
        super().__init__(field.graph, read, likelihoods, field.schedule)
        self.densities = densities
        self.components, self.sampler, self.bandwidth = field.components, field.sampler, field.bandwidth
        self._incoming, self._others = _slots(self.graph)

    def query(
        self,
        evidence: Mapping[Any, Any] | None = None,
        targets: Iterable[Hashable] | None = None,
        *,
        observed: Data = None,
        damping: float | None = None,
        rng: Seed = None,
    ) -> Beliefs:
        """The belief about each target.

        Parameters
        ----------
        evidence, targets, observed, damping
            As of every field.
        rng : None, int, numpy.random.Generator or JAX key
            What is drawn.
        """
        return self._answers(
            evidence, targets, observed, lambda seen, _: self._propagate(seen, self._kept(damping), rng)
        )

    def _propagate(self, seen: Evidence, damping: float, rng: Seed) -> tuple[Any, Report]:
        """Query after query."""
        damping = damping_share(damping)
        generator = Rng.of(rng).generator
        results = [self._query(seen, query, damping, generator) for query in range(seen.size)]
        return weighted_answers(lambda node: self.samples[self.kind_of(node)], seen.batched, results)

    def _query(
        self, seen: Evidence, query: int, damping: float, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, Report]:
        """Points and weights of the beliefs of one query."""
        factors = NodeFactors.of(self.densities, self.kind, list(self.samples), seen, query)
        knowledge = Knowledge.of(factors, self.sampler, self.template)
        silent = np.zeros(len(self.template), dtype=bool)
        if self.graph.is_forest:
            silent = ~informed(Rooted.at(self.graph), seen.informed)
        messages = Messages.silent(len(self.template), self.components, self.densities.priors.means.shape[-1])
        # Two draws of a message differ by this much where nothing changed.
        chance, trace = np.sqrt(2 / self.components), []
        passes = self.schedule.forests_only
        for groups in track(list(self.schedule.rounds(self.graph) or ()), "sweeps"):
            before = messages
            for edges in groups:
                edges = edges[~silent[edges]]
                if len(edges):
                    messages = self._send(knowledge, messages, edges, 0.0 if passes else damping, generator)
            if not passes:  # chance hides how slowly messages settle: no sweep is saved
                trace.append(_change(before, messages) / (1 - damping))
        nodes = np.arange(self.graph.size)
        points, weights, lost = knowledge.draw(
            messages, nodes, self._incoming, BELIEF_DRAWS * self.components, generator
        )
        settled = passes or not trace or trace[-1] <= chance
        return points, weights, self._report(seen, weights, int(lost.sum()), settled, np.array(trace))

    def _send(
        self,
        knowledge: Knowledge,
        messages: Messages,
        edges: np.ndarray,
        damping: float,
        generator: np.random.Generator,
    ) -> Messages:
        """Messages along some edges, all at once."""
        nodes = self.graph.sources[edges]
        points, weights, _ = knowledge.draw(messages, nodes, self._others[edges], self.components, generator)
        new = send(knowledge, self.template[edges], points, weights, self.components, self.bandwidth, generator)
        again = messages.heard[edges]
        if damping and again.any():
            new = _damped(new, messages.mixtures[edges], np.where(again, damping, 0.0), self.components)
        return messages.sent(edges, new)

    def _report(self, seen: Evidence, weights: np.ndarray, lost: int, settled: bool, trace: np.ndarray) -> Report:
        free = np.setdiff1d(np.arange(len(weights)), list(seen.values))
        sizes = effective_size(weights)[free] if len(free) else np.array([float(weights.shape[1])])
        notes = []
        if lost:
            notes.append(f"no draw from {lost} belief{'s' * (lost != 1)} is possible: more components may help.")
        if few := int(np.sum(sizes < 2)):
            notes.append(f"{few} of {len(sizes)} beliefs rest on fewer than two draws: more components may help.")
        if lost:
            status = "draws collapsed"
        elif self.schedule.forests_only:
            status = "two passes on this forest, up to chance"
        elif settled:
            status = "messages change by chance only (sweeps)"
        else:
            status = "stopped at the most sweeps allowed; messages still changed"
        steps = 2 if self.schedule.forests_only else len(trace)
        measures = {EFFECTIVE: float(sizes.min()), "effective particles, on average": float(sizes.mean())}
        return Report(status, settled and not lost, steps, trace, notes=tuple(notes), measures=measures)


def _slots(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """The directed edges into each node, (n, D), and into each sender less one, (2 |E|, D − 1); −1 is none."""
    most, against = int(graph.degrees.max(initial=0)), graph.against
    order, start = graph.outgoing
    incoming = np.full((graph.size, most), -1)
    place = np.arange(len(against)) - start[graph.sources[order]]
    incoming[graph.sources[order], place] = against[order]
    there = incoming[graph.sources]
    others = np.where(there == against[:, None], -1, there)
    keep = np.argsort(others < 0, axis=1, kind="stable")[:, : most - 1]
    return incoming, np.take_along_axis(others, keep, axis=1)


def _damped(new: Mixtures, old: Mixtures, share: np.ndarray, components: int) -> Mixtures:
    """(1 − share) new + share old: both bandwidths become one of the same variance, then components are reduced."""
    share = share[:, None]
    weights = np.concatenate([(1 - share) * new.weights, share * old.weights], axis=1)
    variance = (1 - share) * new.variance + share * old.variance
    few = reduced(Mixtures(weights, np.concatenate([new.means, old.means], axis=1), variance), components)
    extra = components - few.weights.shape[1]
    return Mixtures(
        np.pad(few.weights, ((0, 0), (0, extra))), np.pad(few.means, ((0, 0), (0, extra), (0, 0))), few.variance
    )


def _change(before: Messages, behind: Messages) -> float:
    """How far the means of messages moved, in their standard deviations, root mean square."""
    moved = (behind.mixtures.mean() - before.mixtures.mean()) / np.sqrt(behind.mixtures.var())
    moved = np.where(before.heard[:, None] | ~behind.heard[:, None], moved, np.inf)
    return float(np.sqrt(np.mean(moved**2))) if len(moved) else 0.0
