"""Reading pairs for a random field: kinds of variables, relations, and the operator of each directed edge."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.bp.edges.samples import (
    Direction,
    NodeSample,
    read_pair,
    read_sample,
    strange,
    variable_schema,
)
from meanmap.bp.edges.wild import reads_numbers, without_wild_pairs
from meanmap.core.door import Door
from meanmap.core.errors import EmptyError, InputError, KindError, ShapeError
from meanmap.core.meant import did_you_mean, listed
from meanmap.core.notes import warn_of
from meanmap.core.tables.missing import length
from meanmap.core.types import Data
from meanmap.graphs import Graph
from meanmap.graphs.graph import refuse_both_directions
from meanmap.kernels.base import as_kernel

__all__ = ["FieldSamples", "read_relations"]

ONE = "x"


@dataclass(frozen=True, eq=False)
class FieldSamples:
    """Points of each kind, directions of relations, the relation of each directed edge and the kind of each node."""

    samples: dict[Hashable, NodeSample]
    directions: list[Direction]
    template: np.ndarray
    kind: np.ndarray


def read_relations(field: Any, pairs: Data, told: Mapping[Hashable, Any] | str | None = None) -> FieldSamples:
    """Pairs of each relation, as the edges of the graph need them; `told` is what values of each kind mean."""
    graph: Graph = field.graph
    kinds, kind = _labels(field.variables, graph.names, graph.size, "variables")
    labels, relation = _edge_labels(graph, field.relations)
    named = isinstance(pairs, Mapping)
    found = dict(pairs) if named else dict.fromkeys(labels[:1], pairs)
    if not named and len(labels) > 1:
        raise KindError(f"pairs is one pair of samples, but there are {len(labels)} relations: pass a mapping.")
    _check_names(labels, found)
    one = isinstance(told, str)
    meant = {kinds[0]: told} if one else dict(told or {})
    unknown = next((name for name in meant if name not in kinds), None)
    if unknown is not None or (one and len(kinds) > 1):
        raise InputError(
            f"kinds is {told!r}; expected the meaning of the values of each kind of variable: "
            f"{', '.join(map(repr, kinds))}."
        )
    kernels = field.kernels if isinstance(field.kernels, Mapping) else dict.fromkeys(kinds, field.kernels)
    _check_kernels(kernels, kinds)
    symmetric = field.relations is None and len(kinds) == 1
    parts: dict[Hashable, list[Any]] = {name: [] for name in kinds}
    ends: dict[Hashable, int] = dict.fromkeys(kinds, 0)
    directions: list[Direction] = []
    for r, label in enumerate(labels):
        sender, receiver = _kinds_of(graph, relation == r, kind, kinds, label)
        where = "pairs" if label == ONE else f"the pairs of {label!r}"
        pair, _ = read_pair(found[label], where, f"the relation {label!r}")
        read = [name not in meant and reads_numbers(kernels.get(name)) for name in (sender, receiver)]
        (first, second), notes = without_wild_pairs(pair, where, read)
        warn_of(notes)
        starts = []
        for name, sample in ((sender, first), (receiver, second)):
            starts.append(ends[name])
            parts[name].append(sample)
            ends[name] += length(sample)
        index = np.arange(length(first))
        forward = np.stack([starts[0] + index, starts[1] + index], axis=1)
        if symmetric:
            directions.append(Direction(sender, receiver, np.concatenate([forward, forward[:, ::-1]])))
        else:
            directions += [Direction(sender, receiver, forward), Direction(receiver, sender, forward[:, ::-1])]
    samples = {}
    for name in kinds:
        if not parts[name]:
            raise EmptyError(f"no relation involves variables of kind {name!r}.")
        where = "pairs" if name == ONE else f"pairs of {name!r}"
        schema = variable_schema(name, parts[name], "pairs", kernels.get(name), meant.get(name))
        warn_of(strange(schema, where))
        with Door() as door:
            samples[name] = read_sample(name, parts[name], where, kernels.get(name), schema, door)
    template = relation if symmetric else np.concatenate([2 * relation, 2 * relation + 1])
    return FieldSamples(samples, directions, np.concatenate([template, template]) if symmetric else template, kind)


def _labels(given: Any, names: Any, size: int, argument: str) -> tuple[list[Hashable], np.ndarray]:
    """Distinct labels as they first appear, and the number of each item's label."""
    if given is None:
        return [ONE], np.zeros(size, dtype=np.int64)
    if isinstance(given, Mapping):
        missing = next((name for name in names if name not in given), None)
        if missing is not None:
            raise InputError(f"{argument} has no entry for {missing!r}{did_you_mean(missing, given)}.")
        given = [given[name] for name in names]
    items = given.tolist() if isinstance(given, np.ndarray) else list(given)
    if len(items) != size:
        raise ShapeError(f"{argument} has {len(items)} entries; expected {size}.")
    number = {label: i for i, label in enumerate(dict.fromkeys(items))}
    return list(number), np.array([number[item] for item in items], dtype=np.int64)


def _edge_labels(graph: Graph, given: object) -> tuple[list[Hashable], np.ndarray]:
    if len(graph.edges) == 0:
        raise EmptyError("the graph has no edges: its variables are not related.")
    if isinstance(given, Mapping):
        edges = {frozenset(edge) for edge in graph.named_edges}
        refuse_both_directions((edge for edge in given if frozenset(edge) in edges), "relations")
        known = {frozenset(edge): label for edge, label in given.items()}
        turned = [edge for edge in graph.named_edges if edge not in given and edge[::-1] in given]
        if turned:
            raise InputError(f"relations names the edge {turned[0][::-1]!r}; the graph has it as {turned[0]!r}.")
        given = {edge: known[frozenset(edge)] for edge in graph.named_edges if frozenset(edge) in known}
    return _labels(given, graph.named_edges if isinstance(given, Mapping) else None, len(graph.edges), "relations")


def _kinds_of(graph: Graph, chosen: np.ndarray, kind: np.ndarray, kinds: list, label: Hashable) -> tuple[Any, Any]:
    """The kinds at both ends of a relation's edges."""
    ends = kind[graph.edges[chosen]]
    if (ends != ends[0]).any():
        raise InputError(f"the relation {label!r} joins variables of different kinds in different edges.")
    return kinds[ends[0, 0]], kinds[ends[0, 1]]


def _check_names(labels: list, found: Mapping) -> None:
    missing = next((label for label in labels if label not in found), None)
    if missing is not None:
        raise EmptyError(
            f"pairs has none for the relation {missing!r}{did_you_mean(missing, found)}; it has {listed(found)}. Pairs "
            "are two samples row by row, fit((left, right)), or one such pair for each relation, fit({relation: (left, "
            "right)}). mm.KernelGraph(edges).fit(table) learns from a table of named columns."
        )


def _check_kernels(given: Mapping, kinds: list) -> None:
    for name, kernel in given.items():
        if name not in kinds:
            meant = did_you_mean(name, kinds)
            raise InputError(f"kernels names the kind {name!r}{meant}; the variables are of {listed(kinds)}.")
        if kernel is not None:
            as_kernel(kernel, f"kernels[{name!r}]")
