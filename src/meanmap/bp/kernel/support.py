"""The support of a belief, in words and numbers: data near the evidence, points under the belief, signs, ranks."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.bp.edges.learning import LikelihoodEdge
from meanmap.bp.edges.samples import NodeSample, Samples
from meanmap.bp.engine.propagate import ROUND_CYCLES, Propagation, floor_note
from meanmap.bp.evidence.kernel_evidence import Evidence
from meanmap.bp.kernel.belief_weights import MessageWeights
from meanmap.core.held import holds_floats
from meanmap.core.language import in_digits, in_percent
from meanmap.core.points import count, in_columns, rows, slices
from meanmap.core.report import Report
from meanmap.core.types import Points
from meanmap.graphs import Graph

__all__ = [
    "NEAR",
    "Asked",
    "Support",
    "belief_notes",
    "contradiction_note",
    "evidence_notes",
    "far_from_evidence",
    "far_note",
    "learning_notes",
    "least_agreement",
    "prior_note",
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
# Beliefs about 2 a at a = 30 of 0 to 50, with noise of .00002 to .001 standard deviations, had .02 at 500 to 4000 rows.
LEAST_SPREAD = 0.02
# The distance to the nearest point is found for up to this many queries.
MOST_MEASURED = 100
# Features of about this many numbers are computed at a time.
MOST_FEATURES = 4_000_000
# With fewer pairs beliefs further than this many steps from all evidence are noted.
FEW_PAIRS, FAR_STEPS = 2000, 4
# A note is given if low rank leaves out a larger share of a kernel than this.
MOST_LEFT_OUT = 0.01


@dataclass(frozen=True, eq=False)
class Support:
    """The amount of data behind an observation x̄, in each of B queries.

    Attributes
    ----------
    far : array (B,) of bool
        Whether x̄ is far from all data: ‖φ(x̄)‖² is the part of k(x̄, x̄) that their span contains.
    silent : array (B,) of bool
        Whether it is so far that the kernel is 0 in floating-point numbers: messages are then constants.
    size : array (B,)
        (Σ lᵢ)² / Σ lᵢ² with the weights lᵢ = φ(x̄)ᵀ (C + λ I)⁻¹ φ(xᵢ) that the likelihood operator gives to the data.
    """

    far: np.ndarray
    silent: np.ndarray
    size: np.ndarray

    @classmethod
    def of(cls, edge: LikelihoodEdge, phi: np.ndarray) -> "Support":
        """The support of the observations sent along one edge, with φ(x̄) in rows."""
        values = edge.observed.values
        far = np.sum(phi**2, axis=1) < NEAR * np.sum(values**2) / len(values)
        weights = phi @ edge.precision
        if len(phi) < values.shape[1]:
            squares = np.sum((weights @ values.T) ** 2, axis=1)
        else:  # of many rows, without a number for each row and each point
            squares = np.sum((weights @ (values.T @ values)) * weights, axis=1)
        size = (weights @ values.sum(axis=0)) ** 2 / np.maximum(squares, 1e-300)
        return cls(far, (phi == 0).all(axis=1), size)

    @classmethod
    def at(cls, edge: LikelihoodEdge, points: Points) -> "Support":
        """The support of any number of observations, some at a time."""
        step = max(MOST_FEATURES // edge.observed.values.shape[1], 1)
        parts = [cls.of(edge, edge.observed.at(rows(points, part))) for part in slices(count(points), step)]
        return cls(*(np.concatenate([getattr(each, name) for each in parts]) for name in ("far", "silent", "size")))

    @staticmethod
    def least(supports: Iterable["Support"]) -> "Support":
        """That along the edge with the fewest data, of all that leave a node."""
        return min(supports, key=lambda data: data.size.min())


@dataclass(frozen=True)
class Asked:
    """The number of queries, the argument with their evidence, and what notes call them."""

    size: int
    argument: str = "evidence"
    word: str = "queries"

    def among(self, which: np.ndarray) -> str:
        """In which of these queries, of bool, of all or of those in which a variable was seen."""
        return f"in {int(which.sum())} of {self.size} {self.word}"

    def unless_all(self, which: np.ndarray) -> str:
        """In which of these queries (B,), after a space; empty text for all of them."""
        return "" if which.all() else f" {self.among(which)}"


def far_note(
    name: Hashable, sample: NodeSample, seen: object, far: np.ndarray, silent: np.ndarray, asked: Asked
) -> str:
    """A note that an observation is far from all data, for numbers how far away, and what beliefs are then.

    Messages are scaled to a largest value of 1. What is left of the kernel, however little, thus counts in full.
    """
    text = f"{asked.argument}[{name!r}] is far from all data {asked.among(far)}"
    if in_columns(seen) and holds_floats(seen):
        spread = np.maximum(sample.points.std(axis=0), np.finfo(float).tiny)
        there = np.broadcast_to(seen, (len(far), seen.shape[1]))[far][:MOST_MEASURED] / spread
        nearest = [np.abs(sample.points / spread - each).max(axis=1).min() for each in there]
        text += f", {max(nearest):.3g} standard deviations from the nearest"
    if silent[far].all():
        return text + ", where the kernel is 0: beliefs about the others are as if it had not been observed."
    return text + ": beliefs about the others are extrapolated from the nearest rows, and may be narrow and far off."


def tail_note(name: Hashable, sample: NodeSample, seen: Any, asked: Asked, times: int = 1) -> list[str]:
    """A note that few numbers of the data, each `times` among the points, are as extreme as the evidence; or
    nothing. Of the rows of a table up to twice as many as of the data may be.
    """
    points = sample.points
    if not (in_columns(points) and holds_floats(points) and points.shape[1] == 1):
        return []
    rising = np.sort(points[:, 0])
    below, above = (np.searchsorted(rising, seen[:, 0], side) for side in ("right", "left"))
    n = len(rising) // times
    beyond = np.minimum(below, len(rising) - above) // times
    least = min(FEW_BEYOND, SHARE_BEYOND * n)
    few = beyond < least
    if few.sum() <= np.floor(4 * asked.size * least / n):  # both tails of the data, twice
        return []
    note = (
        f"{asked.argument}[{name!r}] is further out than all but {beyond.min()} of {n} values {asked.among(few)}: "
        "beliefs about its neighbours may be shrunk towards the centre by half a standard deviation or more."
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
    from scipy.special import chdtri

    return float(np.exp(-chdtri((heard - 1) * dimension, FALSE_CONTRADICTIONS / queries) / 2))


def far_from_evidence(graph: Graph, informed: np.ndarray, nodes: np.ndarray, fewest: int) -> list[str]:
    """Whether beliefs many steps from evidence come from few pairs; on forests, where what is lost adds up."""
    if not graph.is_forest or fewest >= FEW_PAIRS or not informed.any():
        return []
    near = np.array(informed)
    for _ in range(FAR_STEPS):
        near[graph.targets[near[graph.sources]]] = True
    told = np.isin(graph.components, graph.components[informed])
    if (near | ~told)[nodes].all():
        return []
    note = (
        f"learned from {fewest} pairs, and some targets are more than {FAR_STEPS} steps from all evidence: errors "
        "of all steps add up. In the middle of Gaussian chains of 10 to 50 steps means were typically off by at "
        "most .17 standard deviations with 300 pairs, .12 with 1000 and .08 with 2000."
    )
    return [note]


def contradiction_note(name: Hashable, agreement: float, where: str = "") -> str:
    """A note that messages to a variable contradict each other."""
    return (
        f"the evidence about {name!r} contradicts itself{where}: no value is plausible under all of it (agreement "
        f"{agreement:.2g} on a scale from 0 to 1)."
    )


def evidence_notes(name: Hashable, sample: NodeSample, seen: Any, data: Support, asked: Asked) -> list[str]:
    """Notes on values that were seen with few data behind them, or none."""
    notes = [far_note(name, sample, seen, data.far, data.silent, asked)] if data.far.any() else []
    notes += tail_note(name, sample, rows(seen, np.flatnonzero(~data.far)), asked)
    few = (data.size < FEW_DATA) & ~data.far
    if few.any():
        notes.append(
            f"{asked.argument}[{name!r}] relies on about {in_digits(data.size[few].min(), 1)} rows of data "
            f"({asked.among(few)}): the belief may be in the wrong mode."
        )
    return notes


def prior_note(name: Hashable, alone: np.ndarray, asked: Asked) -> list[str]:
    """A note that in these queries (B,) nothing that was seen is connected to a variable; or nothing."""
    told = f"no evidence is connected to {name!r}{asked.unless_all(alone)}: its belief is its prior."
    return [told] if alone.any() else []


def belief_notes(name: Hashable, sample: NodeSample, belief: Any, heard: np.ndarray, asked: Asked) -> list[str]:
    """Notes on beliefs that rest on few points, and on those from messages, `heard` of them (B,), that contradict
    each other.
    """
    notes = []
    if heard.max(initial=0) > 1:
        agreement = np.atleast_1d(belief.source.agreement)
        least = np.array([least_agreement(sample, k, asked.size) for k in range(heard.max() + 1)])[heard]
        against = agreement < least
        if against.any():
            notes.append(contradiction_note(name, float(agreement[against].min()), asked.unless_all(against)))
    size = np.atleast_1d(belief.effective_size)
    few = size < FEW_POINTS
    if few.any():
        notes.append(
            f"the belief about {name!r} rests on {size.min():.1f} points{asked.unless_all(few)}: evidence is "
            "contradictory, or far from the data."
        )
    return notes


def learning_notes(graph: Graph, samples: Samples, likelihoods: Sequence[LikelihoodEdge]) -> list[str]:
    """Notes on what the model leaves out: rows beyond the maximum, and the parts of kernels that low ranks omit."""
    notes = list(samples.notes)
    if not graph.is_forest:
        remedy = "If arrows are known, mm.bp.BayesianNetwork(graph) has no such error."
        notes.append(f"{ROUND_CYCLES} and overconfident. {remedy}")
    if samples.given is not None:
        most = max(len(pairs) for pairs in samples.pairs)
        notes.append(f"learned from {most} of {samples.given} rows, drawn at random.")
    for (a, b), (of_a, of_b), pairs in zip(graph.named_edges, graph.edges, samples.pairs, strict=True):
        if _nearly_exact(samples.nodes[int(of_a)], samples.nodes[int(of_b)], pairs):
            notes.append(
                f"{a!r} and {b!r} are nearly functions of each other: beliefs about one given the other are too wide, "
                f"by {LEAST_SPREAD} of its standard deviation or more. Those of mm.BayesianNetwork(graph) are not."
            )
    worst: dict[Hashable, tuple[float, int]] = {}
    for node, edge in zip(graph.targets, likelihoods, strict=True):
        left, rank = edge.receiver.left_out, edge.receiver.values.shape[1]
        worst[graph.names[node]] = max(worst.get(graph.names[node], (0.0, 0)), (left, rank))
    for name, (left, rank) in worst.items():
        if left > MOST_LEFT_OUT:
            notes.append(
                f"{in_percent(left)}% of the kernel of {name!r} is left out at rank {rank}: pass a larger rank= to "
                "mm.KernelGraph for more."
            )
    return notes


def _nearly_exact(a: NodeSample, b: NodeSample, pairs: np.ndarray) -> bool:
    """Whether the noise of one number given another is far below the spread of any belief: by how far values are from
    the line between their neighbours. Not of numbers that repeat, which are points of the belief themselves.
    """
    if not all(in_columns(each.points) and holds_floats(each.points) for each in (a, b)):
        return False
    if a.points.shape[1] != 1 or b.points.shape[1] != 1:
        return False
    x, y = a.points[pairs[:, 0], 0], b.points[pairs[:, 1], 0]
    if min(len(np.unique(x)), len(np.unique(y))) < len(x):
        return False
    order = np.argsort(x)
    x, y = x[order], y[order]
    share = (x[1:-1] - x[:-2]) / (x[2:] - x[:-2])
    off = y[1:-1] - (1 - share) * y[:-2] - share * y[2:]
    return bool(np.sqrt(np.mean(off**2) / 1.5) < LEAST_SPREAD / 2 * y.std())


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
        node = graph.index(name)
        notes += evidence_notes(name, samples.nodes[node], seen.points[node], data, Asked(len(data.size)))
    if raised > 0 and floor is not None:
        notes.append(floor_note(raised, floor))
    reached = {int(graph.components[i]) for i in (*seen.points, *seen.likelihoods)}
    for name, belief in beliefs.items():
        node = graph.index(name)
        if reached and int(graph.components[node]) not in reached:
            notes += prior_note(name, np.ones(seen.size, dtype=bool), Asked(seen.size))
        elif node not in seen.points:
            measures[f"points behind the belief about {name!r}"] = float(np.min(belief.effective_size))
            heard = 0
            if isinstance(belief.source, MessageWeights):
                heard = len(belief.source.factors) + (belief.source.likelihood is not None)
            if heard > 1:
                agreement = float(np.min(belief.source.agreement))
                measures[f"agreement of the evidence about {name!r}, from 0 to 1"] = agreement
            notes += belief_notes(name, samples.nodes[node], belief, np.full(seen.size, heard), Asked(seen.size))
    first = found[0].report
    return Report(
        first.status,
        all(part.report.converged for part in found),
        max(part.report.steps for part in found),
        first.residuals,
        notes=tuple(notes),
        measures=measures,
    )
