"""The support of a belief, in words and numbers: data near the evidence, points under the belief, signs, ranks."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtri

from meanmap.bp.edges.learning import LikelihoodEdge
from meanmap.bp.edges.samples import NodeSample, Samples
from meanmap.bp.engine.propagate import Propagation, floor_note
from meanmap.bp.evidence.kernel_evidence import Evidence
from meanmap.bp.kernel.belief_weights import MessageWeights
from meanmap.core.held import holds_floats
from meanmap.core.points import in_columns
from meanmap.core.report import Report
from meanmap.graphs import Graph

__all__ = [
    "NEAR",
    "Support",
    "contradiction_note",
    "far_note",
    "learning_notes",
    "least_agreement",
    "query_report",
    "tail_note",
]

# Below this share of k(x, x) a value is far from every point that was learned from: about four lengthscales.
NEAR = 1e-3
# The rate of false notes of contradiction for evidence drawn from the model. Two messages about a number contradict
# each other below an agreement of .01.
FALSE_CONTRADICTIONS = 0.0025
# A belief that rests on fewer points than this has little support.
FEW_POINTS = 3.0
# Below this, beliefs about two wells seen with heavy-tailed noise were in the wrong mode in 7 of 100 queries; above it
# in none of 760 (20 data sets of 100 and 300 points).
FEW_DATA = 5.0
# Where both ends of Gaussian chains of 3 to 8 variables were seen, with fewer rows than this as far out, or less than
# this share of 300, 1000 and 4000, means were .3 to 1 deviation too near to the middle; beyond all rows up to 2.5.
FEW_BEYOND, SHARE_BEYOND = 10, 0.03
# The distance to the nearest point is found for up to this many queries.
MOST_MEASURED = 100
# A note is given if low rank leaves out a larger share of a kernel than this.
MOST_LEFT_OUT = 0.01
ROUND_CYCLES = (
    "the graph has cycles, around which evidence is counted repeatedly: beliefs are approximate and overconfident. If "
    "arrows are known, mm.bp.BayesianNetwork(graph) has no such error."
)


@dataclass(frozen=True, eq=False)
class Support:
    """The amount of data behind an observation x̄, in each of B queries.

    Attributes
    ----------
    far : array (B,) of bool
        Whether x̄ is far from all data: ‖φ(x̄)‖² is the part of k(x̄, x̄) that their span contains.
    size : array (B,)
        (Σ lᵢ)² / Σ lᵢ² with the weights lᵢ = φ(x̄)ᵀ (C + λ I)⁻¹ φ(xᵢ) that the likelihood operator gives to the data.
    """

    far: np.ndarray
    size: np.ndarray

    @classmethod
    def of(cls, edge: LikelihoodEdge, phi: np.ndarray) -> "Support":
        """The support of the observations sent along one edge, with φ(x̄) in rows."""
        values = edge.observed.values
        far = np.sum(phi**2, axis=1) < NEAR * np.sum(values**2) / len(values)
        weights = phi @ edge.precision @ values.T
        return cls(far, np.sum(weights, axis=1) ** 2 / np.maximum(np.sum(weights**2, axis=1), 1e-300))


def far_note(name: Hashable, sample: NodeSample, seen: object, far: np.ndarray) -> str:
    """A note that an observation is far from all data, and for numbers how far away."""
    text = f"evidence[{name!r}] is far from all data in {int(far.sum())} of {len(far)} queries"
    if in_columns(seen) and holds_floats(seen):
        spread = np.maximum(sample.points.std(axis=0), np.finfo(float).tiny)
        there = np.broadcast_to(seen, (len(far), seen.shape[1]))[far][:MOST_MEASURED] / spread
        nearest = [np.abs(sample.points / spread - each).max(axis=1).min() for each in there]
        text += f", {max(nearest):.3g} standard deviations from the nearest"
    return text + ": it carries almost no information about the others."


def tail_note(name: Hashable, sample: NodeSample, seen: Any, queries: int, times: int = 1) -> list[str]:
    """A note that few numbers of the data, each `times` among the points, are as extreme as the evidence; or
    nothing.
    """
    points = sample.points
    if not (in_columns(points) and holds_floats(points) and points.shape[1] == 1):
        return []
    rising = np.sort(points[:, 0])
    below, above = (np.searchsorted(rising, seen[:, 0], side) for side in ("right", "left"))
    n = len(rising) // times
    beyond = np.broadcast_to(np.minimum(below, len(rising) - above) // times, queries)
    few = beyond < min(FEW_BEYOND, SHARE_BEYOND * n)
    if not few.any():
        return []
    note = (
        f"evidence[{name!r}] is further out than all but {beyond.min()} of {n} values in {int(few.sum())} of {queries} "
        "queries: beliefs about its neighbours may be shrunk towards the centre by half a standard deviation or more."
    )
    return [note]


def least_agreement(sample: NodeSample, heard: int, queries: int) -> float:
    """The agreement of this many messages below which they contradict each other in one of some queries.

    Where messages are likelihoods of what was drawn from the model, −2 log of the largest product of k of them, each
    with largest value 1, is at most χ² with (k − 1) d degrees of freedom (Wilks 1938): each falls short of its own
    maximum by χ² with d of them, d the dimension of the variable. Labels have one dimension less than there are of
    them; for other variables nothing is known, and they never get a note.
    """
    points = sample.points
    if sample.labels is not None:
        dimension = len(sample.names) - 1
    elif isinstance(points, np.ndarray) and holds_floats(points):
        dimension = int(np.prod(points.shape[1:]))
    else:
        return 0.0
    if heard < 2 or dimension < 1:
        return 0.0
    return float(np.exp(-chdtri((heard - 1) * dimension, FALSE_CONTRADICTIONS / queries) / 2))


def contradiction_note(name: Hashable, agreement: float) -> str:
    """A note that messages to a variable contradict each other."""
    return (
        f"the evidence about {name!r} contradicts itself: no value of it has more than {agreement:.2g} of the support "
        f"from each message alone."
    )


def learning_notes(graph: Graph, samples: Samples, likelihoods: Sequence[LikelihoodEdge]) -> list[str]:
    """Notes on what the model leaves out: rows beyond the maximum, and the parts of kernels that low ranks omit."""
    notes = list(samples.notes)
    if not graph.is_forest:
        notes.append(ROUND_CYCLES)
    if samples.given is not None:
        most = max(len(pairs) for pairs in samples.pairs)
        notes.append(f"learned from {most} of {samples.given} rows, drawn at random.")
    worst: dict[Hashable, tuple[float, int]] = {}
    for node, edge in zip(graph.targets, likelihoods, strict=True):
        left, rank = edge.receiver.left_out, edge.receiver.values.shape[1]
        worst[graph.names[node]] = max(worst.get(graph.names[node], (0.0, 0)), (left, rank))
    for name, (left, rank) in worst.items():
        if left > MOST_LEFT_OUT:
            notes.append(
                f"{100 * left:.2g} % of the kernel of {name!r} is left out at rank {rank}: pass a larger rank= to "
                "mm.KernelGraph for more."
            )
    return notes


def query_report(
    graph: Graph,
    samples: Samples,
    beliefs: Mapping[Hashable, Any],
    seen: Evidence,
    support: Mapping[Hashable, Support],
    found: Sequence[Propagation],
    floor: float | None,
    ranks: Sequence[int],
    learned: Sequence[str],
) -> Report:
    """The report of a query: how messages ended, and caveats about these beliefs."""
    raised = max(part.low_share for part in found)
    measures = {"share of message values below zero": max(part.negative_share for part in found)}
    if ranks:
        measures |= {"lowest rank of an operator": min(ranks), "highest rank of an operator": max(ranks)}
    notes = [*learned, *seen.notes]
    for name, data in support.items():
        measures[f"data behind evidence[{name!r}]"] = float(data.size.min())
        queries = len(data.size)
        node = graph.index(name)
        if data.far.any():
            notes.append(far_note(name, samples.nodes[node], seen.points[node], data.far))
        else:
            notes.extend(tail_note(name, samples.nodes[node], seen.points[node], queries))
        few = (data.size < FEW_DATA) & ~data.far
        if few.any():
            notes.append(
                f"evidence[{name!r}] relies on {data.size[few].min():.1f} of the data in {int(few.sum())} of {queries} "
                "queries: beliefs may be in the wrong mode."
            )
    if raised > 0 and floor is not None:
        notes.append(floor_note(raised, floor))
    reached = {int(graph.components[i]) for i in (*seen.points, *seen.likelihoods)}
    for name, belief in beliefs.items():
        node = graph.index(name)
        if reached and int(graph.components[node]) not in reached:
            notes.append(f"no evidence is connected to {name!r}: its belief is its prior.")
        elif node not in seen.points:
            size = float(np.min(belief.effective_size))
            measures[f"points behind the belief about {name!r}"] = size
            if isinstance(belief.source, MessageWeights):
                agreement = float(np.min(belief.source.agreement))
                heard = len(belief.source.factors) + (belief.source.likelihood is not None)
                if heard > 1:
                    measures[f"agreement of the evidence about {name!r}, from 0 to 1"] = agreement
                if agreement < least_agreement(samples.nodes[node], heard, seen.size):
                    notes.append(contradiction_note(name, agreement))
            if size < FEW_POINTS:
                notes.append(
                    f"the belief about {name!r} rests on {size:.1f} points: evidence is contradictory, or far from "
                    "the data."
                )
    first = found[0].report
    return Report(
        first.status,
        all(part.report.converged for part in found),
        max(part.report.steps for part in found),
        first.residuals,
        notes=tuple(notes),
        measures=measures,
    )
