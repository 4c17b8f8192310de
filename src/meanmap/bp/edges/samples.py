"""Reads tables and pairs as points at nodes, and pairs of these for each edge."""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from meanmap.bp.beliefs.label_belief import LabelBelief
from meanmap.bp.edges.jumps import smooth_and_jumps, with_jumps
from meanmap.bp.edges.wild import read_as_numbers, without_wild_pairs
from meanmap.bp.never_together import NeverTogether
from meanmap.bp.variables import LEAST_PAIRS, Variables, drawn_rows, meant
from meanmap.core.domains import Real, Strings
from meanmap.core.door import Door
from meanmap.core.errors import EmptyError, InputError, KindError, ParameterError, ShapeError
from meanmap.core.labels import Labels
from meanmap.core.language import a_type
from meanmap.core.pieces.sources import lies_elsewhere
from meanmap.core.points import count, joined, matrices_of
from meanmap.core.tables.chunks import count_rows, side_by_side
from meanmap.core.tables.column import Column
from meanmap.core.tables.kinds import Kind, wanted_kind
from meanmap.core.tables.marks import policy_and_marks
from meanmap.core.tables.missing import length, present, take
from meanmap.core.tables.schema import Schema
from meanmap.core.types import Array, Data, Points
from meanmap.embeddings.bandwidth import diffusion_widths
from meanmap.embeddings.points import PointEmbedding
from meanmap.graphs import Graph
from meanmap.graphs.graph import refuse_both_directions
from meanmap.kernels.base import Kernel
from meanmap.kernels.reading import check_alike, is_flat, read_points
from meanmap.kernels.stationary import RBF
from meanmap.learning.default import kernel_for

__all__ = [
    "Direction",
    "NodeSample",
    "Samples",
    "labels_of",
    "read_pair",
    "read_sample",
    "read_samples",
    "strange",
    "variable_schema",
]

# Errors list this many of the labels of a variable.
MOST_SHOWN = 20
# Trees are learned from up to this many rows, drawn at random where there are more: messages have values at all of
# them, and the gain from further rows is far below the bias of a ridge.
MOST_ROWS = 20_000
# Fields learn from all pairs in memory, piece by piece; of those that lie elsewhere they read this many.
MOST_PAIRS = 100_000


@dataclass(frozen=True, eq=False)
class NodeSample:
    """All observed points of one variable, with their kernel.

    `given` says whether the user chose the kernel; `labels` are the original values if points are labels; later values
    are read by `schema`.
    """

    kernel: Kernel
    points: Any
    flat: bool
    given: bool
    labels: tuple | None = None
    schema: Schema | None = None

    @property
    def count(self) -> int:
        """The number of points in the sample."""
        return count(self.points)

    @cached_property
    def names(self) -> dict[bytes, Hashable]:
        """The label behind each code."""
        return {code.tobytes(): label for code, label in zip(np.asarray(self.points), self.labels or (), strict=True)}

    def belief(self, points: Points, weights: Any, kernel: Kernel | None = None) -> PointEmbedding:
        """Weighted points as a belief about the variable, in labels where it is one."""
        kernel = self.kernel if kernel is None else kernel
        if self.labels is not None:
            return LabelBelief(kernel, points, weights, tuple(self.named(points)))
        return PointEmbedding(kernel, points, weights, self.flat)

    def named(self, points: Points) -> np.ndarray:
        """The labels of points that were read; the points themselves where they are no labels."""
        if self.labels is None:
            return points
        found = np.empty(count(points), dtype=object)
        found[:] = [self.names.get(code.tobytes()) for code in np.asarray(points)]
        return found

    def check_known(self, points: Points, argument: str) -> None:
        """Refuse a label that was never seen."""
        if self.labels is None:
            return
        unknown = sum(code.tobytes() not in self.names for code in np.asarray(points))
        if unknown:
            shown = sorted(set(self.names.values()), key=str)
            listed = ", ".join(map(repr, shown[:MOST_SHOWN])) + (", ..." if len(shown) > MOST_SHOWN else "")
            raise InputError(
                f"{argument} has a label that none of the {self.count} rows of the data has; expected one of {listed}."
            )

    @property
    def told(self) -> Kind | None:
        """The declared kind."""
        return self.schema.kinds[0][1] if self.schema is not None and self.schema.kinds else None

    @property
    def timed(self) -> bool:
        """Whether the variable is a time or a duration."""
        return self.schema is not None and self.schema.columns[0].kind in ("time", "duration")

    def later(self, values: Array, name: Hashable, argument: str) -> tuple[Any, str]:
        """Evidence about a variable, of the kind of these values, and notes on odd values."""
        if self.schema is None or (self.labels is not None and self.told is None):
            return values, ""  # labels that are known are of their kind
        column = self.schema.columns[0]
        read = column.read(values, argument, self.told, name)
        return (values if self.told is None else read), column.odd(read, f"{argument}[{name!r}]")

    @property
    def searched(self) -> bool:
        """Whether the lengthscale is to be chosen."""
        return not self.given and isinstance(smooth_and_jumps(self.kernel)[0], RBF)

    @cached_property
    def narrow(self) -> Kernel:
        """The kernel of beliefs: a given one, or one whose modes are those of the density.

        The median distance of a variable with two modes lies between them, and so would the mode of a belief. Modes
        are found best at n^(−1/(d + 6)), a little wider than densities (Chen et al. 2016).
        """
        if not self.searched:
            return self.kernel
        n, d = self.points.shape
        return RBF(diffusion_widths(self.points) * n ** (1 / (d + 4) - 1 / (d + 6)))


@dataclass(frozen=True, eq=False)
class Direction:
    """One direction of a relation: the kinds of its variables, and pairs (m, 2) of row numbers, (x_t, x_s)."""

    sender: Hashable
    receiver: Hashable
    pairs: np.ndarray


@dataclass(frozen=True, eq=False)
class Samples:
    """Points at each node, and for each edge the rows (m, 2) of its pairs at both ends; `given` is how many rows the
    data had where they had more than were learned from, `notes` tell what was missing and what looks like texts,
    `marks` are values that stood for missing ones, and `apart` are labels that no row of a table has together.
    """

    nodes: tuple[NodeSample, ...]
    pairs: tuple[np.ndarray, ...]
    given: int | None = None
    notes: tuple[str, ...] = ()
    marks: tuple[Any, ...] = ()
    apart: NeverTogether = field(default_factory=NeverTogether)

    def together(self, graph: Graph, points: Mapping[int, Points], there: np.ndarray) -> tuple[str, ...]:
        """Notes on rows of evidence, of which some nodes are `there` (n, B), with labels that no row has together."""
        codes = {}
        for node, seen in points.items():
            name = graph.names[node]
            if name in self.apart.labels:
                codes[name] = np.where(there[node], self.apart.codes(name, self.nodes[node].named(seen)), -1)
        return self.apart.notes(codes)

    def directed(self, graph: Graph) -> Iterator[tuple[int, int, np.ndarray]]:
        """Sender, receiver and rows (m, 2) at both of them, for each directed edge."""
        for e, (t, s) in enumerate(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True)):
            edge = e % len(graph.edges)
            yield t, s, self.pairs[edge] if e == edge else self.pairs[edge][:, ::-1]


def read_samples(
    graph: Graph,
    data: Data,
    kernels: Mapping[Any, Kernel],
    door: Door,
    missing: str = "pairwise",
    kinds: Mapping[Any, Any] | None = None,
) -> Samples:
    """Read one table for all edges, or a mapping from edges to pairs of samples (xs, xt)."""
    names = set(graph.names)  # which may be tuples, too
    chosen = {graph.names[graph.index(name)]: kind for name, kind in meant(kinds).items()}
    if isinstance(data, Mapping) and data and all(isinstance(key, tuple) and key not in names for key in data):
        if missing != "pairwise":
            raise ParameterError(f"missing={missing!r} is for a table; pairs with a missing value are left out.")
        columns, pairs, given_rows, notes = _from_pairs(graph, data, read_as_numbers(graph, kernels, chosen))
        told: tuple[str, ...] | None = None
        masks = []
    else:
        asked = graph, data, missing, chosen, read_as_numbers(graph, kernels, chosen)
        columns, pairs, masks, given_rows, told = _from_table(*asked)
        notes = list(told)
    nodes = []
    for node, name in enumerate(graph.names):
        if not columns[node]:
            raise EmptyError(f"{name!r} has no edge and no sample: leave it out of the graph, or give a table.")
        schema = variable_schema(name, columns[node], "data", kernels.get(name), chosen.get(name))
        if schema.columns[0].kind == "text" and kernels.get(name) is None:
            notes.append(
                f"{name!r} has a different label in nearly every row. If these are texts, mm.KernelGraph(..., "
                f"kernels={{{name!r}: mm.kernels.Spectrum(3)}}) compares their words; fit(..., "
                f"kinds={{{name!r}: 'label'}}) says that they are labels."
            )
        if told is None:
            notes += strange(schema, f"data[{name!r}]")
        sample = read_sample(name, columns[node], f"data[{name!r}]", kernels.get(name), schema, door)
        nodes.append(replace(sample, kernel=with_jumps(sample.kernel, sample.points)) if sample.searched else sample)
    given, marks = given_rows if given_rows > MOST_ROWS else None, policy_and_marks(missing)[1]
    return Samples(tuple(nodes), tuple(pairs), given, tuple(notes), marks, _apart(graph, nodes, masks))


def _apart(graph: Graph, nodes: Sequence[NodeSample], masks: Sequence[np.ndarray]) -> NeverTogether:
    """Labels that no row has together, from the rows of a table in which each node is there."""
    codes, labels = {}, {}
    for name, node, there in zip(graph.names, nodes, masks, strict=False):
        if node.labels is not None:
            known: dict[Any, int] = {}
            codes[name] = np.full(len(there), -1)
            codes[name][there] = [known.setdefault(label, len(known)) for label in node.labels]
            labels[name] = list(known)
    return NeverTogether.of(codes, labels)


def read_sample(
    name: Hashable, parts: list[Any], where: str, given: Kernel | None, schema: Schema, door: Door
) -> NodeSample:
    """Concatenate all samples of one variable, read for its kernel; `where` names them in messages."""
    if schema.kinds:
        parts = [schema.columns[0].read(part, "data", schema.kinds[0][1]) for part in parts]
    together = parts[0] if len(parts) == 1 else _together(parts, name)
    kernel = kernel_for(together, argument=where) if given is None else given
    read = [read_points(kernel, part, where, door) for part in parts]
    for other in read[1:]:
        check_alike(read[0], other, f"one sample of {name!r}", "another")
    points = read[0] if len(read) == 1 else read_points(kernel, together, where, door)
    labels = labels_of(kernel, together)
    return NodeSample(kernel, points, is_flat(parts[0], kernel), given is not None, labels, schema)


def variable_schema(
    name: Hashable, parts: list[Any], argument: str, kernel: Kernel | None, kind: object = None
) -> Schema:
    """The schema of one variable, from all its samples as they came; `kernel` is what the user chose to read them."""
    rows = sum(map(length, parts))
    if kernel is not None and not isinstance(kernel.domain, Real | Labels | Strings):
        return Schema((Column(name, "whole object", 0, rows),), rows)
    told = None if kind is None else wanted_kind(kind, parts[0])
    column = Column.of(name, parts, (argument,) * len(parts), told)
    return Schema((column,), rows, True, () if told is None else ((name, told),))


def strange(schema: Schema, where: str) -> tuple[str, ...]:
    """Why the kind of a variable with this name is doubtful; nothing where its kind was declared."""
    return () if schema.kinds else schema.columns[0].strange(where)


def labels_of(kernel: Kernel, data: Data) -> tuple | None:
    """Labels as they came, rows of several as tuples; None for other columns."""
    if not isinstance(kernel.domain, Labels):
        return None
    return tuple(tuple(row) if isinstance(row, list) else row for row in np.asarray(data).tolist())


def _from_table(
    graph: Graph, data: Data, missing: str, kinds: Mapping[Any, Any], numbers: Collection[Hashable]
) -> tuple[list[list[Any]], list[np.ndarray], list[np.ndarray], int, tuple[str, ...]]:
    """Columns without their missing values and wild cells, for each edge the rows in which both ends are there, and in
    which rows each column is.
    """
    found = Variables.of(data, graph.names, MOST_ROWS, missing, kinds, numbers)
    columns, masks = [[found.values[name]] for name in graph.names], [found.there[name] for name in graph.names]
    position = [np.cumsum(there) - 1 for there in masks]
    pairs = []
    for e, (a, b) in enumerate(graph.edges):
        both = np.flatnonzero(masks[a] & masks[b])
        _check_pairs(len(both), f"the edge {graph.named_edges[e]!r}")
        pairs.append(np.stack([position[a][both], position[b][both]], axis=1))
    return columns, pairs, masks, found.rows, found.notes


def _from_pairs(
    graph: Graph, data: Mapping, numbers: Collection[Hashable]
) -> tuple[list[list[Any]], list[np.ndarray], int, list[str]]:
    """Samples of each edge on their own: a node's points are those of all its edges, one after the other."""
    number = {frozenset(pair): (e, pair) for e, pair in enumerate(graph.named_edges)}
    unknown = next((key for key in data if frozenset(key) not in number), None)
    if unknown is not None:
        raise InputError(f"data has pairs for {unknown!r}, which is not an edge of the graph.")
    refuse_both_directions(data, "data")
    found = {number[frozenset(key)][0]: (key, value) for key, value in data.items()}
    columns: list[list[Any]] = [[] for _ in range(graph.size)]
    ends = np.zeros(graph.size, dtype=np.int64)
    pairs, most, notes = [], 0, []
    for e, (a, b) in enumerate(graph.edges.tolist()):
        names = graph.named_edges[e]
        if e not in found:
            raise EmptyError(f"data has no pairs for the edge {names!r}: give (sample, sample) for each edge.")
        key, value = found[e]
        pair, seen = read_pair(value, f"data[{key!r}]", f"the edge {names!r}", MOST_ROWS)
        read = [name in numbers for name in key]
        pair, told = without_wild_pairs(pair, f"data[{key!r}]", read)
        notes += told
        most, number = max(most, seen), length(pair[0])
        pairs.append(np.stack([ends[a] + np.arange(number), ends[b] + np.arange(number)], axis=1))
        for node, sample in zip((a, b), pair if key == names else pair[::-1], strict=True):
            columns[node].append(sample)
            ends[node] += number
    return columns, pairs, most, notes


def read_pair(value: object, where: str, what: str, most: int | None = None) -> tuple[tuple[Any, Any], int]:
    """Two samples without incomplete rows, at most `most` rows of these, and the number of all rows.

    At most this many rows, or `MOST_PAIRS`, are read from files and Dask collections.
    """
    far = lies_elsewhere(value)
    if far or not isinstance(value, tuple | list) or len(value) != 2:
        how = ", as (lazy.select('a'), lazy.select('b')) of lazy = polars.scan_parquet(path)" if far else ""
        raise KindError(f"{where} is {a_type(value)}; expected a pair of samples (xs, xt){how}.")
    given = count_rows(value[0]) if lies_elsewhere(value[0]) else 0
    first, second = side_by_side(value, where, MOST_PAIRS if most is None else most)
    lengths = length(first), length(second)
    if lengths[0] != lengths[1]:
        raise ShapeError(
            f"{where} has samples of {lengths[0]} and {lengths[1]} points; expected pairs, the same number of each."
        )
    both = np.flatnonzero(present(first) & present(second))
    _check_pairs(len(both), what)
    kept = both if most is None else both[drawn_rows(len(both), most)]
    if len(kept) < lengths[0]:
        first, second = take(first, kept), take(second, kept)
    return (first, second), max(len(both), given or 0)


def _check_pairs(number: int, what: str) -> None:
    if number < LEAST_PAIRS:
        pairs = f"{number} pair{'s' * (number != 1)} without missing values"
        raise EmptyError(f"{what} has {pairs}; expected at least {LEAST_PAIRS}.")


def _together(parts: list[Any], name: Hashable) -> Any:
    """Several samples of one variable, as they came, as one."""
    arrays = [matrices_of(part) for part in parts]
    shapes = {part.shape[1:] for part in arrays}
    if len(shapes) > 1:
        raise ShapeError(f"the samples of {name!r} differ in their columns: {sorted(shapes)}.")
    return joined(*arrays)
