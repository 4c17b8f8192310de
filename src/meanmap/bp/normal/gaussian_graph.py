"""Gaussian variables with a given precision matrix."""

from collections.abc import Hashable, Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from meanmap.bp.beliefs.beliefs import Beliefs, in_words
from meanmap.bp.beliefs.densities import NormalMixture
from meanmap.bp.beliefs.pages import QueriedPage
from meanmap.bp.normal.gaussian import GaussianModel, is_positive_definite, spectral_radius
from meanmap.core.arrays import as_array, check_finite
from meanmap.core.containers import is_sparse
from meanmap.core.door import Door
from meanmap.core.errors import InputError, ShapeError
from meanmap.core.settings import by_name
from meanmap.core.synonyms import own_words
from meanmap.core.types import Array, Data, GraphLike
from meanmap.graphs import Graph
from meanmap.graphs.schedules import Schedule

__all__ = ["GaussianGraph", "add_edges", "normal_belief", "read_precision"]

# Rounding may make entries differ from those across the diagonal by this share of the largest.
SYMMETRIC = 1e-10


class GaussianGraph(QueriedPage):
    """A Gaussian Markov random field, p(x) ∝ exp(−½ xᵀ J x + hᵀ x).

    Parameters
    ----------
    precision : array (n, n) or SciPy sparse matrix
        J, symmetric and positive definite; its entries off the diagonal are the edges.
    vector : array (n,), optional
        h = J μ; zeros unless given.
    nodes : sequence (n,), optional
        Names of the variables; by default 0, ..., n − 1.

    Notes
    -----
    On forests two passes give all means and variances exactly, at cost O(n). With cycles messages are sent until they
    converge, which they do if J is walk-summable, `spectral_radius` < 1, and means are then exact; variances leave out
    walks that go around cycles. The report says which applies, and by how much the means miss J m = h.

    References
    ----------
    Weiss & Freeman (2001); Malioutov, Johnson & Willsky (2006); Bickson (2008).

    Examples
    --------
    >>> chain = GaussianGraph([[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]], [1.0, 0.0, 0.0])
    >>> beliefs = chain.query()
    >>> [round(float(beliefs[i].mean()), 3) for i in range(3)]
    [0.75, 0.5, 0.25]
    >>> round(float(chain.query({0: 1.0})[1].mean()), 3)
    0.667
    """

    def __init__(self, precision: Data, vector: Array | None = None, nodes: Iterable[Hashable] | None = None):
        matrix = read_precision(precision)
        n = len(matrix.diagonal())
        h = np.zeros(n) if vector is None else as_array(vector, "vector").astype(float)
        if h.shape != (n,):
            raise ShapeError(f"vector has shape {h.shape}; expected ({n},), as many as precision has rows.")
        check_finite(h, "vector")
        upper = scipy.sparse.triu(matrix, k=1).tocoo()
        edges = np.stack([upper.row, upper.col], axis=1).astype(np.int64)
        names = range(n) if nodes is None else tuple(nodes)
        if len(names) != n:
            raise ShapeError(f"nodes has {len(names)} names; expected {n}, as many as precision has rows.")
        self._model = GaussianModel(Graph.of(edges, nodes=names), matrix.diagonal(), upper.data, h)
        # On cycles walk-summable implies positive definite, and is cheaper to see in large matrices.
        summable = not self.graph.is_forest and self.is_walk_summable
        if not summable and not is_positive_definite(matrix):
            raise InputError("precision is not positive definite: there is no Gaussian with it.")

    @classmethod
    def from_moments(cls, graph: GraphLike, means: Array, variances: object, covariances: object) -> "GaussianGraph":
        """The field whose neighbours have these moments, without evidence and as far as belief propagation can tell.

        ψ_st = p(x_s, x_t) / (p(x_s) p(x_t)) and φ_s = p(x_s), Gaussians: on forests its marginals have the moments
        exactly (Wainwright, Jaakkola & Willsky 2003).

        Parameters
        ----------
        graph : Graph, NetworkX graph or list of edges
            The graph of neighbours.
        means, variances : array (n,)
            Of each variable.
        covariances : array (|E|,)
            Of both ends of each edge.

        Examples
        --------
        >>> pair = GaussianGraph.from_moments([("a", "b")], [0.0, 1.0], [1.0, 4.0], [1.0])
        >>> belief = pair.query({"b": 3.0})["a"]
        >>> float(belief.mean().round(9)), float(belief.var().round(9))
        (0.5, 0.75)
        """
        graph = Graph.of(graph)
        sizes = {"means": graph.size, "variances": graph.size, "covariances": len(graph.edges)}
        read = {}
        for (name, size), data in zip(sizes.items(), (means, variances, covariances), strict=True):
            read[name] = as_array(data, name).astype(float)
            if read[name].shape != (size,):
                raise ShapeError(f"{name} has shape {read[name].shape}; expected ({size},).")
            check_finite(read[name], name)
        m, v, c = read.values()
        if not (v > 0).all():
            raise InputError(f"variances holds {v.min():.3g}; expected values above 0.")
        first, second = graph.edges.T
        if not (c**2 < v[first] * v[second]).all():
            e = int(np.argmax(c**2 - v[first] * v[second]))
            raise InputError(
                f"the covariance {c[e]:.3g} of {graph.named_edges[e]!r} is impossible with its variances: its square "
                "must be less than their product."
            )
        diagonal, vector = 1 / v, m / v
        couplings = add_edges(diagonal, vector, graph.edges, m, v, c)
        model = GaussianModel(graph, diagonal, couplings, vector)
        return cls(model.matrix(), vector, graph.names)

    @property
    def graph(self) -> Graph:
        """The graph of neighbours."""
        return self._model.graph

    @property
    def precision(self) -> scipy.sparse.csr_array:
        """The joint precision matrix J."""
        return self._model.matrix()

    @cached_property
    def spectral_radius(self) -> float:
        """That of |I − D^(−1/2) J D^(−1/2)|: below 1, J is walk-summable, and flooding converges to the exact means."""
        return spectral_radius(self._model.matrix())

    @property
    def is_walk_summable(self) -> bool:
        """Whether the spectral radius is below 1."""
        return self.spectral_radius < 1

    @own_words
    def query(
        self,
        evidence: Mapping[Any, Any] | None = None,
        targets: Iterable[Hashable] | None = None,
        *,
        schedule: Schedule | None = None,
        damping: float = 0.0,
        tolerance: float | None = None,
    ) -> Beliefs:
        """The belief about each target, a normal density.

        Parameters
        ----------
        evidence : mapping from names to numbers or arrays (B,)
            Observed values; arrays (B,) stand for B queries at once.
        targets, schedule, damping, tolerance
            As of `DiscreteGraph.query`; the tolerance is in units of each variable's 1 / √J_ss.
        """
        names = tuple(self.graph.names if targets is None else targets)
        nodes = {name: self.graph.index(name) for name in names}
        values, size, batched = self._values(by_name(evidence, example='{"height": 1.8}'))
        nothing = np.zeros((self.graph.size, size))
        with Door():
            means, precisions, report = self._model.run(values, nothing, nothing, schedule, damping, tolerance)
        return Beliefs(
            names,
            lambda name: normal_belief(name, means[nodes[name]], precisions[nodes[name]], batched),
            report,
            given=in_words(by_name(evidence)),
        )

    def _values(self, evidence: Mapping[Any, Any]) -> tuple[dict[int, np.ndarray], int, bool]:
        """The observed values, (B,) for each node."""
        values = {}
        for name, value in evidence.items():
            array = as_array(value, f"evidence[{name!r}]").astype(float)
            check_finite(np.atleast_1d(array), f"evidence[{name!r}]")
            if array.ndim > 1:
                raise ShapeError(f"evidence[{name!r}] has shape {array.shape}; expected a number, or (B,) numbers.")
            values[self.graph.index(name)] = array
        sizes = {len(value) for value in values.values() if value.ndim}
        if len(sizes) > 1:
            raise ShapeError(f"evidence comes for different numbers of queries: {sorted(sizes)}.")
        return values, max(sizes, default=1), bool(sizes)

    def __repr__(self) -> str:
        return f"GaussianGraph({self.graph!r})"


def add_edges(
    diagonal: np.ndarray,
    vector: np.ndarray,
    edges: np.ndarray,
    m: np.ndarray,
    v: np.ndarray,
    c: np.ndarray,
    power: np.ndarray | float = 1.0,
) -> np.ndarray:
    """Couplings (|E|,) of (p(x_s, x_t) / (p(x_s) p(x_t)))^ρ; its other parts are added to the diagonal and the vector.

    With means and variances m, v (n,) of the nodes, or (|E|, 2) of the ends of each edge.
    """
    means, variances = (each[edges] if each.ndim == 1 else each for each in (m, v))
    determinant = variances.prod(axis=1) - c**2
    couplings = -power * c / determinant
    for end in (0, 1):
        more = power * (variances[:, 1 - end] / determinant - 1 / variances[:, end])
        np.add.at(diagonal, edges[:, end], more)
        np.add.at(vector, edges[:, end], more * means[:, end] + couplings * means[:, 1 - end])
    return couplings


def normal_belief(name: Hashable, mean: np.ndarray, precision: np.ndarray, batched: bool) -> NormalMixture:
    """A belief from (B,) means and precisions, which may have become improper on the way."""
    if not (precision > 0).all():
        raise InputError(
            f"there is no belief about {name!r}: its precision is {precision.min():.3g}. The report says why."
        )
    # An observed value has no spread: the smallest for which a density can be computed.
    variance = np.maximum(1 / precision, np.finfo(float).eps * (1e-6 + mean**2))
    return NormalMixture.normal(mean, variance) if batched else NormalMixture.normal(mean[0], variance[0])


def read_precision(data: Data, argument: str = "precision") -> Any:
    """A symmetric sparse matrix (CSR) with a positive diagonal."""
    if is_sparse(data):
        matrix: Any = scipy.sparse.csr_array(data).astype(float)
        check_finite(matrix.data, f"{argument} (stored entries)")
    else:
        array = as_array(data, argument).astype(float)
        if array.ndim != 2:
            raise ShapeError(f"{argument} has shape {array.shape}; expected (n, n).")
        check_finite(array, argument)
        matrix = scipy.sparse.csr_array(array)
    if matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise ShapeError(f"{argument} has shape {matrix.shape}; expected (n, n).")
    matrix.eliminate_zeros()
    away = abs(matrix - matrix.T).max()
    if away > SYMMETRIC * abs(matrix).max():
        raise InputError(f"{argument} is not symmetric: entries differ from those across the diagonal by {away:.3g}.")
    diagonal = matrix.diagonal()
    if not (diagonal > 0).all():
        at = int(np.argmin(diagonal))
        raise InputError(
            f"{argument} is not positive definite: entry {at} of its diagonal is {diagonal[at]:.3g}, not above 0."
        )
    return matrix
