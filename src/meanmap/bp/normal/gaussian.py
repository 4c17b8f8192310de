"""Gaussian belief propagation: messages are two natural parameters, and come together by sums (Bickson 2008).

For p(x) ∝ exp(−½ xᵀ J x + hᵀ x), with P_{t∖s} = J_tt + Σ_{u≠s} P_ut and h_{t∖s} = h_t + Σ_{u≠s} h_ut,

    P_ts = −J_ts² / P_{t∖s},   h_ts = −J_ts h_{t∖s} / P_{t∖s}

(Song et al. 2011, appendix, equations 33 and 34, as the errata read them).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh, splu

from meanmap.bp.engine.algebra import SUM
from meanmap.bp.engine.messages import Given
from meanmap.bp.engine.operators import EdgeOperators, Grouping
from meanmap.bp.engine.propagate import Engine
from meanmap.core.report import Report
from meanmap.core.types import Array
from meanmap.graphs import Graph
from meanmap.graphs.schedules import Schedule

__all__ = ["GaussianModel", "is_positive_definite", "spectral_radius"]

# Up to this many variables eigenvalues are found densely.
DENSE = 200
# To this share of itself bisection finds a largest eigenvalue.
ACCURACY = 1e-12


class GaussianEdges(EdgeOperators):
    """Messages from sums (rows, B, 2) of a precision and a vector.

    Attributes
    ----------
    couplings : array (T,)
        J_ts.
    """

    couplings: Any

    @property
    def number(self) -> int:
        """T, how many operators there are."""
        return self.couplings.shape[0]

    def apply(self, products: jax.Array, template: object) -> jax.Array:
        """Completing the square and integrating x_t out."""
        precision, vector = products[..., 0], products[..., 1]
        coupling = self.couplings[template]
        coupling = coupling[:, None] if jnp.ndim(coupling) else coupling
        return -coupling[..., None] / precision[..., None] * jnp.stack([coupling + 0 * vector, vector], axis=-1)

    def send(self, products: jax.Array, template: jax.Array, grouping: Grouping | None = None) -> jax.Array:
        """Send messages of all rows in one step; there are no matrices by which to group them."""
        del grouping
        return self.apply(products, template)


@dataclass(frozen=True, eq=False)
class GaussianModel:
    """J and h on a graph, ready to be propagated on.

    Attributes
    ----------
    graph : Graph
    diagonal : array (n,)
        J_ss.
    couplings : array (|E|,)
        J_st.
    vector : array (n,)
        h.
    """

    graph: Graph
    diagonal: np.ndarray
    couplings: np.ndarray
    vector: np.ndarray

    def matrix(self, diagonal: np.ndarray | None = None) -> scipy.sparse.csr_array:
        """J, with another diagonal where one is given."""
        both = np.concatenate([self.couplings, self.couplings])
        n = self.graph.size
        off = scipy.sparse.coo_array((both, (self.graph.sources, self.graph.targets)), shape=(n, n))
        return (off + scipy.sparse.diags_array(self.diagonal if diagonal is None else diagonal)).tocsr()

    def run(
        self,
        values: dict[int, Any],
        precision: np.ndarray,
        vector: np.ndarray,
        schedule: Schedule | None,
        damping: float,
        tolerance: float | None,
    ) -> tuple[np.ndarray, np.ndarray, Report]:
        """Means (n, B), precisions (n, B) and the report, given seen values and more precision and vector (n, B).

        Everything is in units in which the diagonal is 1 and the largest entry of the vector too, so that a tolerance
        means the same whatever was measured.
        """
        diagonal = self.diagonal[:, None] + precision
        h = self.vector[:, None] + vector
        seen = np.array(sorted(values), dtype=np.int64)
        free = np.ones(self.graph.size, dtype=bool)
        free[seen] = False
        # Where evidence leaves no precision, scale by its size: the beliefs will say so.
        unit = np.sqrt(np.maximum(np.abs(diagonal).mean(axis=1), np.finfo(float).tiny))
        couplings = self.couplings / unit[self.graph.edges].prod(axis=1)
        both = np.concatenate([couplings, couplings])
        fixed = np.zeros((self.graph.size, h.shape[1]))
        for node in seen:
            fixed[node] = np.asarray(values[int(node)], dtype=float) * unit[node]
        scale = np.abs(h / unit[:, None])[free].max(axis=0, initial=0.0)
        scale = np.maximum(scale, np.abs(fixed).max(axis=0, initial=0.0))
        scale = np.where(scale > 0, scale, 1.0)
        own = np.stack([diagonal / unit[:, None] ** 2, h / unit[:, None] / scale], axis=-1)
        given = None
        if len(seen):
            known = np.isin(self.graph.sources, seen)
            sent = np.zeros((len(both), h.shape[1], 2))
            sent[..., 1] = -both[:, None] * fixed[self.graph.sources] / scale
            given = Given(jnp.asarray(np.repeat(known[:, None], h.shape[1], axis=1)), jnp.asarray(sent))
        engine = self._engine(schedule)
        operators = GaussianEdges(jnp.asarray(both if len(both) else np.zeros(1)))
        found = engine.run(operators, jnp.asarray(own), given, damping=damping, tolerance=tolerance)
        beliefs = np.asarray(found.beliefs)
        precisions = beliefs[..., 0] * unit[:, None] ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            means = beliefs[..., 1] / beliefs[..., 0] * scale / unit[:, None]
        for node in seen:
            means[node], precisions[node] = fixed[node] / unit[node], np.inf
        report = self._report(found.report, engine.schedule, free, diagonal, h, means, precisions)
        return means, precisions, report

    def _engine(self, schedule: Schedule | None) -> Engine:
        """The graph laid out for a schedule, kept for the next query; couplings are those of each query's units."""
        if schedule not in self._engines:
            self._engines[schedule] = Engine(self.graph, np.arange(2 * len(self.couplings)), schedule, SUM)
        return self._engines[schedule]

    @cached_property
    def _engines(self) -> dict[Any, Engine]:
        return {}

    def _report(
        self,
        report: Report,
        schedule: Schedule,
        free: np.ndarray,
        diagonal: np.ndarray,
        h: np.ndarray,
        means: np.ndarray,
        precisions: np.ndarray,
    ) -> Report:
        """The engine's report, with what theory and the equations say of the means."""
        means = np.where(np.isfinite(means), means, 0.0)
        coupled = self.matrix(np.zeros(self.graph.size))
        known = h - coupled @ np.where(free[:, None], 0.0, means)
        left = known - coupled @ np.where(free[:, None], means, 0.0) - diagonal * means
        size = np.sqrt((known[free] ** 2).sum(axis=0))
        residual = float((np.sqrt((left[free] ** 2).sum(axis=0)) / np.where(size > 0, size, 1)).max(initial=0.0))
        improper = int((~(precisions[free] > 0)).sum())
        notes = list(report.notes)
        measures = {}
        if not schedule.forests_only:  # these are exact whatever the radius is
            # The query that knows least has the largest radius.
            radius = spectral_radius(self.matrix(diagonal.min(axis=1))[free][:, free])
            notes.append(convergence(radius))
            measures["spectral radius"] = radius
        status = report.status
        if improper:
            status = f"no proper beliefs about {improper} variables: messages diverged, or J is not positive definite"
        measures["relative residual of J x = h"] = residual
        return Report(
            status,
            report.converged and not improper,
            report.steps,
            report.residuals,
            {"improper beliefs": improper} if improper else {},
            tuple(notes),
            measures,
        )


def convergence(radius: float) -> str:
    """A sentence on what the spectral radius implies (Malioutov, Johnson & Willsky 2006)."""
    if radius < 1:
        return (
            f"walk-summable (spectral radius {radius:.4g} < 1): messages converge in any order; means are then exact, "
            f"and variances approximate on graphs with cycles."
        )
    return f"not walk-summable (spectral radius {radius:.4g}): messages may not converge; if they do, means are exact."


def spectral_radius(precision: object) -> float:
    """The largest eigenvalue of |I − D^(−1/2) J D^(−1/2)|, D the diagonal of J: below 1, J is walk-summable.

    Infinite if the diagonal is not positive. The cost is that of a few tens of products with a sparse J, and of fifty
    factorisations if its graph is a forest: these have no fill, and along a long chain eigenvalues lie too close
    together for products.

    References
    ----------
    Malioutov, Johnson & Willsky (2006), Walk-sums and belief propagation in Gaussian graphical models.

    Examples
    --------
    >>> round(spectral_radius(np.array([[2.0, 1.0], [1.0, 2.0]])), 3)
    0.5
    """
    matrix: Any = scipy.sparse.csr_array(precision)
    diagonal = matrix.diagonal()
    if not (diagonal > 0).all():
        return np.inf
    scale = scipy.sparse.diags_array(1 / np.sqrt(diagonal))
    walks = abs(scale @ (matrix - scipy.sparse.diags_array(diagonal)) @ scale)
    if walks.nnz == 0:
        return 0.0
    if matrix.shape[0] <= DENSE:
        return float(np.linalg.eigvalsh(walks.toarray())[-1])
    if walks.nnz // 2 == len(diagonal) - connected_components(walks, directed=False)[0]:
        return _largest_on_forest(walks)
    # Entries are non-negative: the largest eigenvalue belongs to a vector that ones are not orthogonal to.
    start = np.ones(len(diagonal))
    return float(eigsh(walks, k=1, which="LA", v0=start, return_eigenvectors=False)[0])


def _largest_on_forest(walks: Any) -> float:
    """The largest eigenvalue of a non-negative W by bisection: λ I − W is positive definite above it alone."""
    low, high = 0.0, float(walks.sum(axis=1).max())
    identity = scipy.sparse.eye_array(walks.shape[0])
    while high - low > ACCURACY * high:
        middle = (low + high) / 2
        low, high = (low, middle) if is_positive_definite(middle * identity - walks) else (middle, high)
    return high


def is_positive_definite(precision: Array) -> bool:
    """Whether all pivots of J = L D Lᵀ are positive (Sylvester's law of inertia); sparse."""
    matrix: Any = scipy.sparse.csc_array(precision)
    if not (matrix.diagonal() > 0).all():
        return False
    if matrix.shape[0] <= DENSE:
        return bool(np.linalg.eigvalsh(matrix.toarray())[0] > 0)
    try:
        factor = splu(
            matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True, "Equil": False}
        )
    except RuntimeError:  # exactly singular
        return False
    return bool((factor.perm_r == factor.perm_c).all() and (factor.U.diagonal() > 0).all())
