"""Random fields learned from data: kernel belief propagation on any graph (Song et al. 2011)."""

from collections.abc import Hashable, Mapping
from typing import Any

from meanmap.bp.edges.field_samples import FieldSamples
from meanmap.bp.edges.observations import Likelihood
from meanmap.bp.edges.relations import Manner, Relations
from meanmap.bp.edges.updates import Constant, Update
from meanmap.bp.field import Field
from meanmap.bp.kernel.fitted_field import FittedKernelField
from meanmap.core.arrays import parameter
from meanmap.core.errors import KindError
from meanmap.core.synonyms import own_words
from meanmap.core.types import GraphLike, Points
from meanmap.graphs import Schedule
from meanmap.kernels.base import Kernel

__all__ = ["KernelField"]


class KernelField(Field[FittedKernelField]):
    """A pairwise Markov random field of variables with kernels, on a graph that may have cycles.

    `field = mm.KernelField(edges).fit(pairs)` learns from pairs of neighbouring values, and
    `field.query({"b": 1.0})["a"]` is a belief. On a graph with cycles beliefs are approximate and mostly overconfident,
    because evidence is counted again each time around; on a tree messages are exact given the learned operators.
    Reports say which applies. Relations between neighbours are learned from pairs of values; they do not depend on the
    graph, and the cost of messages does not depend on the number of pairs.

    Parameters
    ----------
    graph : Graph, NetworkX graph or list of edges
        n nodes.
    relations : sequence (|E|,) or mapping from edges to labels, optional
        The relation of each edge; edges that share one share operators. By default all edges share one symmetric
        relation: pairs are used in both directions. Named relations have two directions, from the first end of an edge
        to the second and back.
    variables : sequence (n,) or mapping from names to labels, optional
        The kind of each variable; by default all are of the same kind.
    kernels : mapping from kinds to kernels, or Kernel, optional
        By default RBF with a cross-validated lengthscale, Delta for labels, Rotation for rotations.
    ridge : float, optional
        λ of all operators; by default each operator has its own, with the smallest leave-one-out error. It and the
        default lengthscale fit each edge best; beliefs on graphs with cycles may be better with others: on a torus of
        Gaussian variables whose neighbours have a correlation of .3 the best of those tried had about half the error of
        means (`loopy-constants`), and two to three times the error with correlations of .5 to .8.
    update : Full, Linear or Constant
        How messages are computed.
    schedule : optional
        By default two passes on a forest, otherwise flooding until messages converge, or until all evidence has crossed
        the graph and come back: reports then say "not converged".

    Notes
    -----
    `fit` costs O(m r²) for each relation with constant and linear updates, read piece by piece; O(m³) with full ones.

    References
    ----------
    Song, Gretton, Bickson, Low & Guestrin (2011).

    Examples
    --------
    A ring of twelve heights, each near those of its neighbours; two are observed.

    >>> import numpy as np
    >>> import meanmap as mm
    >>> rng = np.random.default_rng(0)
    >>> height = rng.normal(size=500)
    >>> pairs = height, 0.95 * height + 0.3 * rng.normal(size=500)
    >>> ring = [(i, (i + 1) % 12) for i in range(12)]
    >>> field = mm.KernelField(ring).fit(pairs)
    >>> beliefs = field.query({0: 1.0, 6: -1.0})
    >>> bool(beliefs[1].mean() > 0.3 > -0.3 > beliefs[5].mean())
    True
    """

    @own_words
    def __init__(
        self,
        graph: GraphLike,
        *,
        relations: object = None,
        variables: object = None,
        kernels: Mapping[Any, Kernel] | Kernel | None = None,
        ridge: float | None = None,
        update: Update | None = None,
        schedule: Schedule | None = None,
    ):
        super().__init__(graph, relations=relations, variables=variables, schedule=schedule)
        self.kernels = kernels
        self.ridge = None if ridge is None else float(parameter(ridge, "ridge", axes=0))
        self.update = Constant() if update is None else update
        if not isinstance(self.update, Update):
            raise KindError(f"update is {update!r}; expected mm.bp.Full(), mm.bp.Linear(1e-3) or mm.bp.Constant(1e-2).")

    def _check(self, points: Points, kind: Hashable) -> None:
        """Whatever a kernel reads."""

    def _learn(self, read: FieldSamples, likelihoods: dict[Hashable, Likelihood]) -> FittedKernelField:
        learned = Relations(read.samples, read.directions, self.update, self.ridge, Manner.on(self.graph))
        return FittedKernelField(self.graph, learned, read.template, read.kind, likelihoods, schedule=self.schedule)
