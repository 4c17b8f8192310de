"""Random fields whose messages are weights of particles: particle belief propagation (Ihler & McAllester 2009)."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from meanmap.bp.beliefs.beliefs import Beliefs
from meanmap.bp.edges.field_samples import FieldSamples
from meanmap.bp.edges.observations import Likelihood
from meanmap.bp.engine.atoms import outgoing
from meanmap.bp.engine.messages import Given
from meanmap.bp.engine.operators import EdgeMatrices
from meanmap.bp.engine.propagate import Engine
from meanmap.bp.evidence.field_evidence import Evidence
from meanmap.bp.field import Field, FittedField
from meanmap.core.arrays import parameter
from meanmap.core.errors import KindError
from meanmap.core.progress import track
from meanmap.core.report import Report
from meanmap.core.rng import Rng
from meanmap.core.types import Data, GraphLike, Seed
from meanmap.graphs.rooted import Rooted, informed
from meanmap_papers.rivals.pair_densities import PairDensities
from meanmap_papers.rivals.particles import Cloud, MessageFunctions, Metropolis, NodeFactors, Proposal
from meanmap_papers.rivals.particles.functions import edge_matrices
from meanmap_papers.rivals.particles.proposals import Round
from meanmap_papers.rivals.weighted import EFFECTIVE, effective_size, normalised, weighted_answers

__all__ = ["FittedParticleField", "ParticleField"]


class ParticleField(Field):
    """A pairwise random field of numbers or vectors, whose messages are weights of particles.

    Each node has N particles x¹, ..., xᴺ drawn from W, shared by all messages that it receives and sends:

        m_ts(x_sʲ) = Σᵢ p(x_tⁱ | x_sʲ) l_t(x_tⁱ) Π_{u≠s} m_ut(x_tⁱ) / (N W_t(x_tⁱ)).

    Edge densities are learned from pairs by least squares. The schedule is run on the particles there are; then they
    are put where beliefs are, and so on.

    Parameters
    ----------
    graph, relations, variables, schedule
        As of `KernelField`.
    particles : int
        N.
    rounds : int
        How often the schedule is run; particles are put anew in between.
    proposal : Metropolis or Adaptive
        How: they walk under the beliefs, or are drawn from Gaussians matched to messages (Lienart et al. 2015).
    skip : float
        Particles whose weight is below this share of all weights of their node are left out of messages.
    centres : int
        Components of edge densities.

    Notes
    -----
    A round costs O(|E| N² (b + sweeps)) for edge densities of b components. The error falls as N^(−1/2).

    References
    ----------
    Ihler & McAllester (2009); Song et al. (2011), appendix 1 and 2.

    Examples
    --------
    >>> import numpy as np
    >>> import meanmap as mm
    >>> from meanmap_papers import rivals
    >>> rng = np.random.default_rng(0)
    >>> height = rng.normal(size=500)
    >>> pairs = height, 0.95 * height + 0.3 * rng.normal(size=500)
    >>> ring = [(i, (i + 1) % 12) for i in range(12)]
    >>> field = rivals.ParticleField(ring).fit(pairs)
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
        particles: int = 100,
        rounds: int = 5,
        proposal: Proposal | None = None,
        skip: float = 1e-7,
        centres: int = 100,
    ):
        super().__init__(graph, relations=relations, variables=variables, schedule=schedule)
        self.particles = int(parameter(particles, "particles", axes=0, integer=True))
        self.rounds = int(parameter(rounds, "rounds", axes=0, integer=True))
        self.proposal = Metropolis() if proposal is None else proposal
        if not isinstance(self.proposal, Proposal):
            raise KindError(f"proposal is {proposal!r}; expected rivals.Metropolis(10) or rivals.Adaptive().")
        self.skip = float(parameter(skip, "skip", positive=False, axes=0, at_least=0.0))
        self.centres = int(parameter(centres, "centres", axes=0, integer=True))

    def _learn(self, read: FieldSamples, likelihoods: dict[Hashable, Likelihood]) -> "FittedParticleField":
        return FittedParticleField(self, read, likelihoods, PairDensities.learn(read, self.centres))


class FittedParticleField(FittedField):
    """A `ParticleField` with learned edge densities, ready for queries.

    Attributes
    ----------
    densities : PairDensities
        Of edges, in both directions, and of variables.
    """

    def __init__(
        self,
        field: ParticleField,
        read: FieldSamples,
        likelihoods: dict[Hashable, Likelihood],
        densities: PairDensities,
    ):
        super().__init__(field.graph, read, likelihoods, field.schedule)
        self.densities = densities
        self.particles, self.rounds = field.particles, field.rounds
        self.proposal, self.skip = field.proposal, field.skip
        self.engine = Engine(self.graph, np.arange(len(self.template)), self.schedule)

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
        """Query after query; each has its own particles."""
        source = Rng.of(rng)
        results = [self._query(seen, query, damping, source.generator) for query in range(seen.size)]
        return weighted_answers(lambda node: self.samples[self.kind_of(node)], seen.batched, results)

    def _query(
        self, seen: Evidence, query: int, damping: float, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, Report]:
        """Particles and weights (n, N) of one query."""
        factors = NodeFactors.of(self.densities, self.kind, list(self.samples), seen, query)
        known = np.zeros(len(self.template), dtype=bool)
        if self.graph.is_forest:
            known |= ~informed(Rooted.at(self.graph), seen.informed)
        whole = factors.cloud(self.particles, generator)
        cloud, skipped = whole.heaviest(self.skip)
        found, report, alive = self._round(cloud, factors, known, damping)
        state, moved = None, []
        for _ in track(range(self.rounds - 1), "rounds"):
            whole, state, share = self.proposal.next(found, self.particles, state, generator)
            moved.append(share)
            cloud, left = whole.heaviest(self.skip)
            skipped += left
            found, report, alive = self._round(cloud, factors, known, damping)
        return cloud.points, found.weights, _described(report, found, alive, seen, moved, skipped, self.rounds)

    def _round(
        self, cloud: Cloud, factors: NodeFactors, known: np.ndarray, damping: float
    ) -> tuple[Round, Report, np.ndarray]:
        """Messages and beliefs on given particles, and at which nodes anything is left."""
        logs = cloud.log_own - cloud.log_proposal
        top = logs.max(axis=1, keepdims=True)
        own = np.exp(logs - np.where(np.isfinite(top), top, 0))
        matrices = edge_matrices(self.graph, self.densities, self.template, cloud.points)
        operators = EdgeMatrices(jnp.asarray(matrices))
        given = None
        if known.any():
            given = Given(jnp.asarray(known[:, None]), jnp.ones((len(known), 1, own.shape[1])))
        found = self.engine.run(operators, jnp.asarray(own[:, None]), given, damping=damping, floor=0.0)
        products = outgoing(self.engine.layout, found.messages, own[:, None])[:, 0]
        sent = products[np.asarray(self.engine.layout.row)[self.graph.against]]
        functions = MessageFunctions.of(self.graph, self.densities, self.template, cloud.points, sent)
        beliefs = np.asarray(found.beliefs)[:, 0]
        with np.errstate(divide="ignore"):
            weights = normalised(np.log(np.maximum(beliefs, 0)) + factors.log_prior(cloud.points))
        messages = np.asarray(found.messages)[:, 0]
        return (
            Round(self.graph, cloud, factors, functions, messages, known, weights),
            found.report,
            beliefs.max(axis=1) > 0,
        )


def _described(
    report: Report, found: Round, alive: np.ndarray, seen: Evidence, moved: list[float], skipped: int, rounds: int
) -> Report:
    """The report of the last round, with what became of the particles."""
    free = np.setdiff1d(np.arange(len(alive)), list(seen.values))
    sizes = effective_size(found.weights)[free] if len(free) else np.array([float(found.weights.shape[1])])
    notes = list(report.notes)
    lost, few = int(np.sum(~alive)), int(np.sum(sizes < 2))
    if lost:
        notes.append(
            f"particles of {lost} node{'s' * (lost != 1)} collapsed: none of them is possible; their beliefs are the "
            "particles as they are. More particles may help."
        )
    if few:
        notes.append(f"{few} of {len(sizes)} beliefs rest on fewer than two particles: more of them may help.")
    measures = {EFFECTIVE: float(sizes.min()), "effective particles, on average": float(sizes.mean())}
    if moved:
        measures["moved"] = float(np.mean(moved))
    status = "particles collapsed" if lost else f"{report.status}, in the last of {rounds} rounds"
    counts = {**report.counts, "skipped particles": skipped}
    return Report(status, report.converged and not lost, report.steps, report.residuals, counts, tuple(notes), measures)
