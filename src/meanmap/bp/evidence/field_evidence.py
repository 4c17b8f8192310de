"""Evidence for random fields of any method: observed values, functions, and an observation for every node."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meanmap.bp.edges.observations import Likelihood, UserLikelihood
from meanmap.bp.edges.samples import NodeSample
from meanmap.bp.evidence.kernel_evidence import read_values
from meanmap.core.arrays import as_array
from meanmap.core.containers import refuse_unread
from meanmap.core.door import Door
from meanmap.core.errors import InputError, ShapeError
from meanmap.core.held import counts_as_numbers, holds_floats
from meanmap.core.points import count
from meanmap.core.types import Data, Points

__all__ = ["Evidence", "Observed", "read_field_evidence"]


@dataclass(frozen=True, eq=False)
class Observed:
    """Observations (B, n, ...) of the nodes of a kind, through a likelihood; `there` (B, n) says where there is one."""

    likelihood: Likelihood
    values: np.ndarray
    there: np.ndarray

    def at(self, nodes: np.ndarray, points: Points) -> np.ndarray:
        """Likelihoods (nodes, B, points): ones where nothing was observed."""
        there = self.there[:, nodes]
        if there.all():
            out = self.likelihood.at(self.values[:, nodes].reshape(-1, *self.values.shape[2:]), points)
            return np.swapaxes(out.reshape(*there.shape, -1), 0, 1)
        out = np.ones((*there.shape, count(points)))
        if there.any():
            out[there] = self.likelihood.at(self.values[:, nodes][there], points)
        return np.swapaxes(out, 0, 1)

    def at_each(self, nodes: np.ndarray, points: np.ndarray, query: int) -> np.ndarray:
        """Likelihoods (nodes, n) in one query, each node at its own points (nodes, n, d)."""
        out, there = np.ones(points.shape[:2]), self.there[query, nodes]
        if there.any():
            out[there] = self.likelihood.at_each(self.values[query, nodes[there]], points[there])
        return out


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence in B queries.

    Attributes
    ----------
    values : dict
        For each node that was seen, its value as a sample of one point.
    functions : dict
        For each node with a likelihood of its own.
    observed : dict
        Observations for each kind.
    informed : array (n,) of bool
        Where there is any evidence.
    notes : tuple of str
        Notes on unusual observed values.
    """

    values: dict[int, Any]
    functions: dict[int, UserLikelihood]
    observed: dict[Hashable, Observed]
    informed: np.ndarray
    size: int
    batched: bool
    notes: tuple[str, ...] = ()

    def at(self, kind: Hashable, nodes: np.ndarray, points: Points) -> np.ndarray:
        """The nodes' own factors (nodes, B, points)."""
        if kind in self.observed:
            values = self.observed[kind].at(nodes, points)
        else:
            values = np.ones((len(nodes), self.size, count(points)))
        for i, node in enumerate(nodes.tolist() if self.functions else ()):
            if node in self.functions:
                values[i] *= self.functions[node].at([None], points)[0]
        return values

    @property
    def patterns(self) -> np.ndarray:
        """The distinct patterns of nodes with evidence, (P, n)."""
        known = np.zeros((1, len(self.informed)), dtype=bool)
        known[0, [*self.values, *self.functions]] = True
        for each in self.observed.values():
            known = known | each.there
        return np.unique(known, axis=0)

    def without(self, nodes: np.ndarray) -> "Evidence":
        """The evidence without that at some nodes."""
        hidden = np.zeros(len(self.informed), dtype=bool)
        hidden[nodes] = True
        return replace(
            self,
            values={node: value for node, value in self.values.items() if not hidden[node]},
            functions={node: function for node, function in self.functions.items() if not hidden[node]},
            observed={kind: replace(each, there=each.there & ~hidden) for kind, each in self.observed.items()},
            informed=self.informed & ~hidden,
        )

    def at_each(self, kind: Hashable, nodes: np.ndarray, points: np.ndarray, query: int) -> np.ndarray:
        """The nodes' own factors (nodes, n) in one query, each at its own points (nodes, n, d)."""
        if kind in self.observed:
            values = self.observed[kind].at_each(nodes, points, query)
        else:
            values = np.ones(points.shape[:2])
        for i, node in enumerate(nodes.tolist() if self.functions else ()):
            if node in self.functions:
                values[i] *= self.functions[node].at_each([None], points[i : i + 1])[0]
        return values


def read_field_evidence(field: Any, evidence: Any, observed: Data) -> Evidence:
    """Evidence by node number, observations by kind."""
    kinds, node_samples = list(field.samples), list(field.samples.values())

    def sample_of(node: int) -> NodeSample:
        return node_samples[field.kind[node]]

    with Door() as door:
        heard = read_values(field.graph, sample_of, evidence, door)
    several = next((name for name, number in heard.sizes.items() if number != 1), None)
    if several is not None:
        raise ShapeError(f"evidence[{several!r}] has {heard.sizes[several]} values; expected one.")
    functions = {node: _likelihood(function, sample_of(node)) for node, function in heard.functions.items()}
    informed = np.zeros(field.graph.size, dtype=bool)
    informed[[*heard.values, *functions]] = True
    found: dict[Hashable, Observed] = {}
    size, batched = 1, False
    if observed is not None:
        given = observed if isinstance(observed, Mapping) else {kinds[0]: observed}
        for kind, data in given.items():
            if kind not in field.likelihoods:
                raise InputError(
                    f"variables of kind {kind!r} have no likelihood: pass observed=(hidden, observed) or "
                    "likelihood= to fit."
                )
            found[kind], batched = _observed(field.likelihoods[kind], data, field.graph.size)
            informed |= found[kind].there.any(axis=0) & (field.kind == kinds.index(kind))
        sizes = {len(entry.values) for entry in found.values()}
        if len(sizes) > 1:
            raise ShapeError(f"observed has different numbers of queries: {sorted(sizes)}.")
        size = sizes.pop()
    return Evidence(heard.values, functions, found, informed, size, batched, heard.notes)


def _likelihood(function: Callable[..., Any], sample: NodeSample) -> UserLikelihood:
    """A function of points as a likelihood of one observation, which it knows already."""
    return UserLikelihood(lambda _, x: as_array(function(x), "the likelihood")[None], sample)


def _observed(likelihood: Likelihood, data: Data, nodes: int) -> tuple[Observed, bool]:
    """Observations (B, n, ...), and whether they came in a batch: known by where the number of nodes stands.

    Where it stands twice, an observation is a vector of this many numbers or there are as many queries as nodes.
    """
    refuse_unread(data, "observed")
    array = np.asarray(data)
    if counts_as_numbers(array):
        array = as_array(data, "observed").astype(np.float64)
    second = array.ndim >= 2 and array.shape[1] == nodes
    batched = second and (array.shape[0] != nodes or array.ndim > 2 or likelihood.width != nodes)
    if not batched and (array.ndim == 0 or array.shape[0] != nodes):
        raise ShapeError(f"observed has shape {array.shape}; expected ({nodes}, ...), or (B, {nodes}, ...).")
    values = array if batched else array[None]
    if not holds_floats(values):
        there = np.ones(values.shape[:2], dtype=bool)
    else:
        if np.isinf(values).any():
            raise InputError("observed holds infinity; expected numbers, and NaN where nothing was observed.")
        there = np.asarray(~np.isnan(values).reshape(*values.shape[:2], -1).any(axis=-1))
    return Observed(likelihood, values, there), batched
