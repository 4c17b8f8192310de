"""Reading evidence about any variable: observed values, and likelihood functions."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from meanmap.bp.edges.samples import NodeSample, Samples
from meanmap.bp.evidence.named import are_weights, number_of_queries, of_variables, refuse_missing
from meanmap.core.arrays import array_of, as_array, check_finite
from meanmap.core.containers import is_sparse
from meanmap.core.domains import Rotations, holds_vectors
from meanmap.core.door import Door
from meanmap.core.errors import InputError, KindError, ShapeError
from meanmap.core.labels import Labels
from meanmap.core.language import a_type
from meanmap.core.points import count, matrices_of, rows
from meanmap.core.tables.missing import present, take
from meanmap.core.types import Points
from meanmap.embeddings.element import Embedding
from meanmap.graphs import Graph
from meanmap.kernels.reading import check_alike, read_points

__all__ = ["Evidence", "Heard", "likelihood_at", "read_evidence", "read_values"]


@dataclass(frozen=True, eq=False)
class Heard:
    """Evidence as passed, by node number: values after reading, and functions unchanged.

    `sizes` has the number of values for each name with several, and `notes` describe unusual values. If cells are
    missing, `there` marks the known ones; the others have arbitrary values.
    """

    values: dict[int, Any]
    functions: dict[int, Callable[..., Any]]
    sizes: dict[Hashable, int]
    notes: tuple[str, ...]
    there: dict[int, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence in B queries.

    Attributes
    ----------
    points : dict
        Values of observed nodes, B of them or one for all queries.
    likelihoods : dict
        Likelihoods (N,) at the points of nodes, the largest value 1.
    functions : dict
        The functions or embeddings that they are values of.
    size : int
        B.
    batched : bool
        Whether beliefs have a batch axis.
    notes : tuple of str
        Notes on unusual observed values.
    """

    points: dict[int, Any]
    likelihoods: dict[int, np.ndarray]
    functions: dict[int, Any]
    size: int
    batched: bool
    notes: tuple[str, ...] = ()

    def queries(self, node: int) -> range:
        """The queries in which a node has values."""
        return range(count(self.points[node]))


def read_evidence(graph: Graph, samples: Samples, evidence: object, door: Door) -> Evidence:
    """Values and functions by node number."""
    heard = read_values(graph, samples.nodes.__getitem__, evidence, door)
    size = number_of_queries(heard.sizes)
    likelihoods = {
        node: _function(samples.nodes[node], function, graph.names[node], door)
        for node, function in heard.functions.items()
    }
    return Evidence(heard.values, likelihoods, heard.functions, size, bool(heard.sizes), heard.notes)


def read_values(
    graph: Graph,
    sample_of: Callable[[int], NodeSample],
    evidence: object,
    door: Door,
    gaps: bool = False,
    argument: str = "evidence",
) -> Heard:
    """Read evidence about any variables; `sample_of` gives the sample of a node. With `gaps`, columns may miss
    values.
    """
    known, odd_names = of_variables(evidence, graph.names, argument)
    values, functions, sizes, notes, masks = {}, {}, {}, [*odd_names], {}
    for name, value in known.items():
        node = graph.index(name)
        if callable(value):
            functions[node] = value
            continue
        where = f"{argument}[{name!r}]"
        sample, there = sample_of(node), None
        labels = None if gaps else sample.labels  # floats of many rows are values
        if isinstance(value, Mapping) or (labels is not None and are_weights(value, sample.names.values())):
            raise KindError(
                f"{where} is {a_type(value)}; expected a value, or for likelihoods a function of an array of values, "
                "such as lambda values: [likelihood[each] for each in values]."
            )
        refuse_missing(value, where)
        if gaps:
            there = present(value)
            sizes[name] = len(there)
            if not there.all():
                masks[node] = there
            if not there.any():
                values[node] = rows(sample.points, np.zeros(len(there), dtype=int))
                continue
            value = take(value, np.flatnonzero(there))
        single, data = _as_sample(sample, value, where)
        data, odd = sample.later(data, name, argument)
        notes += [odd] if odd else []
        read = read_points(sample.kernel, data, where, door)
        check_alike(read, sample.points, where, "the data")
        sample.check_known(read, where)
        values[node] = read if there is None else rows(read, np.maximum(np.cumsum(there) - 1, 0))
        if not single and there is None:
            sizes[name] = count(read)
    return Heard(values, functions, sizes, tuple(notes), masks)


def _as_sample(sample: NodeSample, value: Any, where: str) -> tuple[bool, Any]:
    """Whether one value came, and the values as a sample."""
    domain = sample.kernel.domain
    if sample.told is not None or sample.timed:
        single = isinstance(value, str) or np.ndim(value) == 0
        return single, [value] if single else value
    if isinstance(domain, Rotations):
        matrices = matrices_of(value)
        return (True, matrices[None]) if matrices.ndim == 2 else (False, matrices)
    if holds_vectors(domain) and not is_sparse(value) and not isinstance(value, str):
        array = array_of(value, where)
        axes = 0 if sample.flat or sample.points.shape[1:] == (1,) else 1
        if array.ndim not in (axes, axes + 1) and not (axes == 0 and array.ndim == 2):
            width = "a number, or (B,) numbers" if axes == 0 else f"{sample.points.shape[1]} numbers, or (B, d) of them"
            raise ShapeError(f"{where} has shape {array.shape}; expected {width}.")
        return (True, array.reshape((1,) if axes == 0 else (1, -1))) if array.ndim == axes else (False, array)
    width = sample.points.shape[1] if isinstance(domain, Labels) else 1
    if isinstance(value, str) or np.ndim(value) == 0 or (width > 1 and np.shape(value) == (width,)):
        return True, [value]
    return False, value


def _function(sample: NodeSample, function: Callable[..., Any], name: Hashable, door: Door) -> np.ndarray:
    """A likelihood at the points of a node, its largest value 1."""
    values = likelihood_at(sample, function, sample.points, door, f"the likelihood of {name!r}")
    if not (values > 0).any():
        raise InputError(f"the likelihood of {name!r} is zero at every point of the data.")
    return values / values.max()


def likelihood_at(
    sample: NodeSample, function: Callable[..., Any], points: Points, door: Door, where: str = "the likelihood"
) -> np.ndarray:
    """A likelihood, or 1 where there is none, at points that were read."""
    if function is None:
        return np.ones(count(points))
    if isinstance(function, Embedding):
        return np.maximum(np.asarray(function.evaluate(points, door)), 0.0)
    values = as_array(function(points[:, 0] if sample.flat else sample.named(points)), where)
    if values.shape != (count(points),):
        raise ShapeError(f"{where} gave shape {values.shape}; expected ({count(points)},), one for each point.")
    check_finite(values, where)
    if (values < 0).any():
        raise InputError(f"{where} has the negative value {values.min():.3g}.")
    return values
