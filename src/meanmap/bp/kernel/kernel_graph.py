"""Graphical models to be learned from data: any variables that have a kernel, one edge at a time."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from meanmap.bp.edges.coordinates import CoordinatesByScale
from meanmap.bp.edges.learning import learn_likelihood, learn_message
from meanmap.bp.edges.samples import read_samples
from meanmap.bp.kernel.fitted_graph import FittedKernelGraph
from meanmap.core.arrays import parameter
from meanmap.core.door import Door
from meanmap.core.errors import InputError
from meanmap.core.progress import track
from meanmap.core.synonyms import own_words
from meanmap.core.threads import one_blas_thread
from meanmap.core.types import Data, GraphLike
from meanmap.graphs import PDAG, Graph, Schedule
from meanmap.graphs.graph import is_networkx
from meanmap.graphs.rooted import centres, steps_to_farthest
from meanmap.graphs.schedules import as_schedule
from meanmap.kernels.base import Kernel, as_kernel
from meanmap.plots.facts import Page
from meanmap.plots.paged import Paged

__all__ = ["KernelGraph"]

# Where the middle of a tree has this many steps on each side, the shrinkage of a ridge adds up to more than its noise.
# In the middle of 20 steps of Gaussian variables correlated by .9, both ends at 1.5, of 300 rows, means were .14
# deviations too small in one round of regression, .04 in three, with errors (root mean square) of .16 and .10; with two
# modes .04 and .03, .06 and .05. On trees of up to 5 steps means are alike, and densities of 100 rows .02 nearer (L1
# distance) in one round.
FAR = 5


class KernelGraph(Paged):
    """A tree of variables with kernels, whose edges are learned from data: a nonparametric tree graphical model.

    `model = mm.KernelGraph([("a", "b")]).fit(table)` learns, `model.query({"b": 1.0}, targets=["a"])["a"]` is a belief.
    The graph is the only assumption: a variable may be a number, a vector, a label, a text, an angle or a rotation.
    Each edge becomes a pair of operators between the spaces of its two variables, and a query is belief propagation
    with these.

    Parameters
    ----------
    graph : Graph, NetworkX graph or list of edges
        On a tree or forest messages are exact given the learned operators. On graphs with cycles they are sent until
        they converge, and beliefs are approximate: reports say so. A directed graph, from `mm.pc` or NetworkX, is
        accepted if no two arrows point to the same node: directions then do not matter.
    kernels : mapping from names to kernels, optional
        By default RBF with lengthscales chosen for each edge, with indicators of numbers that many rows have, such as
        a top code, where functions may jump; Delta for labels, Rotation for rotations.
    ridge : float, optional
        λ of all operators. By default each operator has its own, chosen by held-out errors.
    rank : int, optional
        The maximum number of coordinates of each variable; pivots are chosen until only a hundred-millionth of the
        trace of its kernel is left out. By default 1000 for up to 5000 rows and 300 from 17,000 on. If more than a
        hundredth is left out, reports say so; `fitted.chosen` has the share for each edge.
    schedule : optional
        By default two passes on a forest, and `mm.graphs.Flooding()` on a graph with cycles.

    Notes
    -----
    Song, Gretton & Guestrin (2010), algorithm 1, with the factors in the order of the errata. Messages are kept as
    values at the training points, so that the cost of a query grows with the rows, and travel through operators of low
    rank.

    Evidence far from all rows does not give the marginals: messages are scaled to a maximum of one, so that beliefs
    stay near those of the outermost rows, however far it is. They are the marginals only where the kernel is 0 in
    floating-point numbers, beyond about 38 lengthscales of an RBF. A note says which of the two applies.

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

    @own_words
    def __init__(
        self,
        graph: GraphLike,
        *,
        kernels: Mapping[Any, Kernel] | None = None,
        ridge: float | None = None,
        rank: int | None = None,
        schedule: Schedule | None = None,
    ):
        self.graph = graph.skeleton if isinstance(graph, PDAG) else Graph.of(graph)
        _refuse_meeting_arrows(graph)
        self.kernels = dict(kernels or {})
        for name, kernel in self.kernels.items():
            self.graph.index(name)
            as_kernel(kernel, f"kernels[{name!r}]")
        self.ridge = None if ridge is None else float(parameter(ridge, "ridge", axes=0))
        self.rank = None if rank is None else int(parameter(rank, "rank", axes=0, integer=True))
        self.schedule = None if schedule is None else as_schedule(schedule)

    @one_blas_thread()
    @own_words
    def fit(
        self, data: Data, *, missing: str = "pairwise", kinds: Mapping[Any, Any] | None = None
    ) -> "FittedKernelGraph":
        """Learn the operators of all edges.

        Parameters
        ----------
        data : table, or mapping from edges to pairs of samples
            A table with a column for each node: a DataFrame, a mapping from names to columns, or an (n, d) array for
            nodes 0 to d − 1; a column may be a block (n, k), labels or rotations. Or `{("s", "t"): (xs, xt), ...}`:
            pairs for each edge, which need not come from the same rows as those of other edges. If there are more than
            20,000 rows, 20,000 are drawn, always the same ones. Tables may be Parquet files (a path, a folder, a
            pattern), lazy frames, or Dask arrays and frames: only these rows are read, and the fitted model is the
            same.
        missing : {"pairwise", "raise", "drop", "category"}, or list of codes
            What happens to missing values in a table: the row is dropped for the edges of that variable; an error; the
            row is dropped altogether; or missing labels form a label of their own. A list of codes, such as [-999],
            drops rows with these, too. Reports of queries count them.
        kinds : mapping of variable to kind, optional
            The kinds of columns whose data type does not show it, such as {"zip": "label"}: see `Schema.of`.
            Evidence is given in the same form.

        Returns
        -------
        FittedKernelGraph
            `fitted.schema` holds the kinds of the columns; evidence is read in the same way.

        Notes
        -----
        Cost O(N r²) for N pairs and rank r for each edge and direction, and O(2000 r²) for each lengthscale that is
        tried. Full Gram matrices are never formed, only r of their columns. Lengthscales, ridges and coordinates are
        chosen using all training rows: new rows require a new fit, whose cost hardly grows with the number of rows.
        """
        with Door() as door:
            samples = read_samples(self.graph, data, self.kernels, door, missing, kinds)
            books = {node: CoordinatesByScale(sample, self.rank) for node, sample in enumerate(samples.nodes)}
            directed, learned = list(samples.directed(self.graph)), {}
            far = self.graph.is_forest and steps_to_farthest(self.graph, centres(self.graph)) >= FAR
            both_ways = np.arange(len(directed)).reshape(2, -1).T.ravel().tolist()
            last = {node: e for e in both_ways for node in directed[e][:2]}
            for e in track(both_ways, "learning edges"):
                t, s, pairs = directed[e]
                told = books[t], books[s], pairs, self.ridge
                learned[e] = learn_message(*told, far), learn_likelihood(*told)
                for node in (t, s):
                    if last[node] == e:  # distances between all points of every node would fill gigabytes
                        del books[node]
            messages, likelihoods = ([learned[e][i] for e in range(len(directed))] for i in (0, 1))
            return FittedKernelGraph(self.graph, samples, tuple(messages), tuple(likelihoods), self.schedule)

    def _as_page(self, brief: bool = False) -> Page:
        return self.graph._as_page(brief)

    def __repr__(self) -> str:
        return f"KernelGraph({self.graph!r})"


def _refuse_meeting_arrows(graph: GraphLike) -> None:
    """A graph with arrows, ours or of NetworkX, is read where a model of relations says the same about independence."""
    if isinstance(graph, PDAG):
        arrows = list(graph.named("directed"))
    elif is_networkx(graph) and graph.is_directed():
        arrows = [(a, b) for a, b in graph.edges if not graph.has_edge(b, a)]
    else:
        return
    causes: dict[Any, list[Any]] = {}
    for cause, effect in arrows:
        causes.setdefault(effect, []).append(cause)
    for name, (first, *others) in causes.items():
        if others:
            raise InputError(
                f"{first!r} → {name!r} ← {others[0]!r} is a collider: {first!r} and {others[0]!r} become dependent "
                f"given {name!r}, while relations along edges imply the opposite. Learn each variable "
                "given its parents, mm.bp.BayesianNetwork(graph), or learn a tree, mm.KernelGraph(mm.chow_liu(table))."
            )
