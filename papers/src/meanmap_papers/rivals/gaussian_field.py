"""Random fields of numbers assumed jointly Gaussian: means, variances and correlations of neighbours from pairs."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from meanmap.bp.beliefs.beliefs import Beliefs
from meanmap.bp.edges.field_samples import FieldSamples
from meanmap.bp.edges.observations import Likelihood, NoiseLikelihood
from meanmap.bp.evidence.field_evidence import Evidence
from meanmap.bp.field import Field, FittedField
from meanmap.bp.normal.gaussian import GaussianModel, is_positive_definite
from meanmap.bp.normal.gaussian_graph import add_edges, normal_belief
from meanmap.core.errors import InputError
from meanmap.core.points import pieces
from meanmap.core.report import Report
from meanmap.core.types import Data, GraphLike
from meanmap_papers.rivals.appearance import edge_appearance

__all__ = ["FittedGaussianField", "GaussianField"]

# A likelihood is matched by a normal one on this many points, out to this many standard deviations of the prior.
POINTS = 1025
REACH = 8.0
VALUES_AT_ONCE = 4_000_000
# A correlation nearer to 1 leaves no digits of 1 − ρ².
NEAREST_ONE = 1e-10


class GaussianField(Field["FittedGaussianField"]):
    """A pairwise random field of numbers, jointly Gaussian.

    Potentials are ψ_st = p(x_s, x_t) / (p(x_s) p(x_t)) and φ_s = p(x_s) with Gaussian p of the moments of the pairs:
    maximum likelihood on forests, and local consistency on any graph (Wainwright, Jaakkola & Willsky 2003).

    Parameters
    ----------
    graph, relations, variables, schedule
        As of `KernelField`.
    reweighted : bool
        Potentials ψ_st^ρ_st, ρ_st how often the edge is in a random spanning tree.

    Notes
    -----
    Messages are two numbers: a sweep costs O(|E|). Observations are read by `NoiseLikelihood` unless told otherwise;
    each likelihood is replaced by the normal one that gives the same posterior mean and variance from p(x_s) alone.
    Strong correlations along many cycles may add up to no Gaussian at all; evidence can make it one again, and the
    report says if not. Reweighted potentials always do: their precision is the mean of those of all spanning trees.

    Examples
    --------
    >>> import numpy as np
    >>> from meanmap import bp
    >>> from meanmap_papers import rivals
    >>> rng = np.random.default_rng(0)
    >>> height = rng.normal(size=2000)
    >>> pairs = height, 0.6 * height + 0.8 * rng.normal(size=2000)
    >>> ring = [(i, (i + 1) % 12) for i in range(12)]
    >>> beliefs = rivals.GaussianField(ring).fit(pairs).query({0: 1.0, 6: -1.0})
    >>> bool(beliefs[1].mean() > 0.3 > -0.3 > beliefs[5].mean())
    True
    """

    default_likelihood = NoiseLikelihood

    def __init__(
        self,
        graph: GraphLike,
        *,
        relations: Any = None,
        variables: Any = None,
        reweighted: bool = False,
        schedule: Any = None,
    ):
        super().__init__(graph, relations=relations, variables=variables, schedule=schedule)
        self.reweighted = bool(reweighted)

    def _learn(self, read: FieldSamples, likelihoods: dict[Hashable, Likelihood]) -> "FittedGaussianField":
        return FittedGaussianField(self, read, likelihoods)


class FittedGaussianField(FittedField):
    """A fitted `GaussianField`, ready for queries.

    Attributes
    ----------
    means, variances : array (n,)
        Of each variable.
    model : GaussianModel
        Precision and vector.
    """

    # Messages of two numbers are cheap, and where they settle means are exact.
    sweeps = 2000
    damping = 0.0

    def __init__(self, field: GaussianField, read: FieldSamples, likelihoods: dict[Hashable, Likelihood]):
        super().__init__(field.graph, read, likelihoods, field.schedule)
        graph = field.graph
        points = {name: sample.points[:, 0] for name, sample in self.samples.items()}
        for name, values in points.items():
            if np.ptp(values) == 0:
                raise InputError(f"all values of {name!r} are {values[0]:g}: a Gaussian needs some variance.")
        kinds = list(points.values())
        self.means = np.array([values.mean() for values in kinds])[self.kind]
        self.variances = np.array([values.var() for values in kinds])[self.kind]
        ends = [[points[d.sender][d.pairs[:, 0]], points[d.receiver][d.pairs[:, 1]]] for d in self.directions]
        for direction, pair in zip(self.directions, ends, strict=True):
            correlation = np.corrcoef(pair)[0, 1]
            if not 1 - abs(correlation) > NEAREST_ONE:
                raise InputError(
                    f"{direction.sender!r} and {direction.receiver!r} lie on a straight line: their correlation is "
                    f"{correlation:.3g}, and there is no density."
                )
        at = self.template[: len(graph.edges)]
        means = np.array([[side.mean() for side in pair] for pair in ends])[at]
        variances = np.array([[side.var() for side in pair] for pair in ends])[at]
        covariances = np.array([np.cov(pair, ddof=0)[0, 1] for pair in ends])[at]
        diagonal, vector = 1 / self.variances, self.means / self.variances
        power = edge_appearance(graph) if field.reweighted else 1.0
        couplings = add_edges(diagonal, vector, graph.edges, means, variances, covariances, power)
        self.model = GaussianModel(graph, diagonal, couplings, vector)

    def query(
        self,
        evidence: Mapping[Any, Any] | None = None,
        targets: Iterable[Hashable] | None = None,
        *,
        observed: Data = None,
        damping: float | None = None,
        tolerance: float | None = None,
    ) -> Beliefs:
        """The belief about each target.

        Parameters
        ----------
        evidence, targets, observed, damping
            As of every field.
        tolerance : float, optional
            Stop when no message changes by more than this share of its largest value.
        """
        return self._answers(
            evidence, targets, observed, lambda seen, _: self._propagate(seen, self._kept(damping), tolerance)
        )

    def _propagate(self, seen: Evidence, damping: float, tolerance: float | None) -> tuple[Any, Report]:
        """Gaussian belief propagation."""
        precision, vector, flat = self._observed(seen)
        values = {node: value[0, 0] for node, value in seen.values.items()}
        means, precisions, report = self.model.run(values, precision, vector, self.schedule, damping, tolerance)
        notes = report.notes
        if flat:
            notes = (*notes, f"{flat} likelihoods are wider than a Gaussian prior can say: only their means were used.")
        # Walk-summable implies positive definite.
        if report.measures.get("spectral radius", np.inf) >= 1 and not self._is_proper(seen, precision):
            notes = (*notes, "the joint precision is not positive definite: beliefs are locally consistent at best.")
        report = Report(
            report.status, report.converged, report.steps, report.residuals, report.counts, notes, report.measures
        )
        names = self.graph.names
        return lambda node: normal_belief(names[node], means[node], precisions[node], seen.batched), report

    def _is_proper(self, seen: Evidence, precision: np.ndarray) -> bool:
        """Whether there is a joint Gaussian, for the query that knows least."""
        free = np.setdiff1d(np.arange(self.graph.size), list(seen.values))
        matrix = self.model.matrix(self.model.diagonal + precision.min(axis=1))
        return is_positive_definite(matrix[free][:, free])

    def _observed(self, seen: Evidence) -> tuple[np.ndarray, np.ndarray, int]:
        """Normal likelihoods, precision and vector (n, B), and for how many only the mean could be matched."""
        precision = np.zeros((self.graph.size, seen.size))
        vector = np.zeros_like(precision)
        flat = 0
        step = max(VALUES_AT_ONCE // (POINTS * seen.size), 1)
        for which, name in enumerate(self.samples):
            nodes = np.flatnonzero((self.kind == which) & seen.informed)
            nodes = nodes[~np.isin(nodes, list(seen.values))]
            if len(nodes) == 0:
                continue
            mean, variance = self.means[nodes[0]], self.variances[nodes[0]]
            standard = np.linspace(-REACH, REACH, POINTS)
            x = mean + np.sqrt(variance) * standard
            prior = np.exp(-(standard**2) / 2)
            for part in pieces(nodes, step):
                weights = seen.at(name, part, x[:, None]) * prior
                weights /= weights.sum(axis=-1, keepdims=True)
                centre = weights @ standard
                spread = np.maximum(weights @ standard**2 - centre**2, (2 * REACH / POINTS) ** 2)
                more = 1 / spread - 1
                widened = more < -1e-9
                flat += int(widened.sum())
                shift = np.where(widened, centre, centre / spread)
                precision[part] = np.maximum(more, 0) / variance
                vector[part] = shift / np.sqrt(variance) + precision[part] * mean
        return precision, vector, flat
