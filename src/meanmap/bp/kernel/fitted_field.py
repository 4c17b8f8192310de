"""Queries of a learned random field: evidence in, settled messages, beliefs out."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import jax
import numpy as np

from meanmap.bp.beliefs.beliefs import Beliefs
from meanmap.bp.edges.approximation import Approximation, approximation
from meanmap.bp.edges.coordinates import transformed
from meanmap.bp.edges.floors import FLOOR, to_one
from meanmap.bp.edges.learning import LearnedLikelihood
from meanmap.bp.edges.observations import Likelihood
from meanmap.bp.edges.relations import Relations
from meanmap.bp.edges.samples import Direction, NodeSample
from meanmap.bp.engine.atoms import beliefs_at_atoms, outgoing, shares_sent
from meanmap.bp.engine.messages import Given
from meanmap.bp.engine.propagate import ROUND_CYCLES, TRY_MORE, Engine, floor_note
from meanmap.bp.evidence.field_evidence import Evidence
from meanmap.bp.field import Answered, FittedField, sweeps_to_cross
from meanmap.bp.kernel.calibration import Calibration, LabelAtoms, calibrated
from meanmap.bp.kernel.support import (
    NEAR,
    Asked,
    contradiction_note,
    far_from_evidence,
    far_note,
    least_agreement,
    tail_note,
)
from meanmap.core.points import count, on_device, pieces
from meanmap.core.synonyms import own_words
from meanmap.core.types import Data, DType, Points
from meanmap.embeddings.points import PointEmbedding
from meanmap.graphs import Flooding, Graph, Schedule
from meanmap.graphs.rooted import Rooted, informed

__all__ = ["FittedKernelField"]

# Reports list this many contradictions.
MOST_CONTRADICTIONS = 5
# Likelihoods are computed for this many nodes at once.
NODES_AT_ONCE = 65_536


class FittedKernelField(FittedField):
    """A `KernelField` with learned operators, ready for queries.

    Attributes
    ----------
    graph : Graph
    learned : Relations
        Operators, and the ridge and lengthscale that were chosen.
    template : array (2 |E|,)
        The operator of each directed edge.
    kind : array (n,)
        The kind of each variable, a position in `learned.variables`.
    likelihoods : dict
        For each kind that can be observed.
    """

    def __init__(
        self,
        graph: Graph,
        learned: Relations,
        template: np.ndarray,
        kind: np.ndarray,
        likelihoods: Mapping[Hashable, Likelihood] | None = None,
        *,
        schedule: Schedule | None = None,
    ):
        self.graph, self.learned, self.template, self.kind = graph, learned, template, kind
        self.likelihoods = dict(likelihoods or {})
        self.schedule = schedule

    @cached_property
    def engine(self) -> Engine:
        """The graph prepared for messages."""
        return Engine(self.graph, self.template, self.schedule)

    def _engine_for(self, seen: Evidence, damping: float) -> Engine:
        """The engine, with sweeps for all evidence to cross the graph where the user named no schedule."""
        if self.schedule is not None or self.graph.is_forest:
            return self.engine
        most = max(sweeps_to_cross(self.graph, informed, damping) for informed in seen.patterns)
        return self.engine.with_sweeps(Flooding(most))

    @own_words
    def query(
        self,
        evidence: Mapping[Any, Any] | None = None,
        targets: Iterable[Hashable] | None = None,
        *,
        observed: Data = None,
        floor: float | None = FLOOR,
        damping: float | None = None,
        tolerance: float | None = None,
        dtype: DType = np.float64,
        counting: float | None = None,
    ) -> Beliefs:
        """The belief about each target.

        Parameters
        ----------
        evidence : mapping from names to values or functions
            Values that were seen, and functions from points to likelihoods.
        targets : names, optional
            All unless given.
        observed : array (n, ...) or (B, n, ...), or mapping from kinds to arrays, optional
            An observation for each node, for B queries at once with one more axis; NaN where there is none. Through
            the likelihoods of `fit`.
        floor : float or None
            Values of a message below this share of its largest are raised to it; of messages from a variable that was
            seen, below this share of their mean. None leaves negative values as they are; a belief with half as much
            mass below zero as above is refused.
        damping : float, optional
            The share of the old message that is kept; by default .3.
        tolerance : float, optional
            Stop when no message changes by more than this share of its largest value.
        dtype : float32 or float64
            Of the messages.
        counting : float in (0, 1], optional
            μ, how much of a message counts where there are cycles; 1 for belief propagation. Evidence that travels
            around a cycle is counted repeatedly, so that beliefs are overconfident; messages to the power μ are
            combined as along spanning trees of the graph, and converge (Wainwright, Jaakkola & Willsky 2003). With μ =
            (n − 1) / |E|, about 1/2 on a grid, beliefs are underconfident; for values between see the measurements in
            `KernelGrid`. By default messages count whole, and messages about labels are corrected where 100 labels of a
            kind were seen, see below; 1 for messages that count whole and beliefs as they are.

        Notes
        -----
        Potentials that are fitted to moments are p(x, y) / (p(x) p(y)) to the power μ, and a reweighted message takes
        their 1/μ-th power: the learned operators serve every μ.

        On graphs with cycles beliefs about labels are overconfident. Where 100 labels are observed, each fifth of them
        is left out in turn with all other evidence about its nodes, which takes five more runs, and messages m about
        the K labels of that kind become (1 − ε) mᵗ / Σ mᵗ + ε / K, with the power t and share ε of least log loss on
        the labels left out. Observations of a node itself count in full. Of 2708 papers that cite each other, with the
        words of all and the topics of 30% (of 5%), over six splits and after 15 sweeps, .86 (.69) of the other topics
        were right, with a log loss of .51 (1.03) instead of .82 (1.84); by spreading words along citations .83 (.53)
        and .77 (1.37). More than that is not a matter of how sure messages are: corrected by the hidden labels
        themselves, beliefs as a whole came to 1.06 on two splits with 5%, where this comes to 1.05. A logistic
        regression on words that are averaged over two steps of citations does better where few topics are known: .87
        (.79) and .42 (.75).
        """

        def propagate(seen: Evidence, nodes: np.ndarray) -> Answered:
            kept, real = self._kept(damping), np.dtype(dtype)
            weights, report = self.propagate(seen, nodes, floor, kept, real, counting, tolerance)
            plain = counting is not None or self.graph.is_forest
            corrections = {} if plain else self._corrections(seen, floor, kept, real, tolerance)
            report = replace(report, notes=(*report.notes, *self._told(corrections, counting, seen)))
            place = {int(node): i for i, node in enumerate(nodes)}

            def belief(node: int) -> PointEmbedding:
                found = weights[place[node]]
                if self.kind[node] in corrections:
                    labels, correct = corrections[self.kind[node]]
                    kind = list(self.learned.variables)[self.kind[node]]
                    found = labels.corrected(found, self._own_at_atoms(seen, kind, np.array([node]), real)[0], correct)
                return self._belief(node, self._variable(node).atoms, found if seen.batched else found[0])

            return belief, report

        return self._answers(evidence, targets, observed, propagate)

    def _corrections(
        self, seen: Evidence, floor: float | None, damping: float, dtype: np.dtype, tolerance: float | None
    ) -> dict[int, tuple[LabelAtoms, Calibration]]:
        """The correction of beliefs from observed labels that are left out, for each kind with enough of them."""
        found = {}
        for kind, variable in enumerate(self.learned.variables.values()):
            if variable.sample.labels is None:
                continue
            labels = LabelAtoms.of(variable.atoms)
            numbers = {node: labels.number(value) for node, value in seen.values.items() if self.kind[node] == kind}
            known = np.array([node for node, number in numbers.items() if number >= 0], dtype=np.int64)

            def answers(evidence: Evidence, nodes: np.ndarray, labels: LabelAtoms = labels) -> np.ndarray:
                weights, _ = self.propagate(evidence, nodes, floor, damping, dtype, None, tolerance)
                return np.stack([labels.probabilities(each) for each in weights], axis=1)

            correction = calibrated(known, np.array([numbers[node] for node in known.tolist()]), seen, answers)
            if correction is not None:
                found[kind] = labels, correction
        return found

    def _told(
        self, corrections: dict[int, tuple[LabelAtoms, Calibration]], counting: float | None, seen: Evidence
    ) -> list[str]:
        """Cycles, around which evidence goes, and corrections in words."""
        several, names = len(self.learned.variables) > 1, list(self.learned.variables)
        sure = "" if corrections or counting not in (None, 1) else " and overconfident"
        return ([f"{ROUND_CYCLES}{sure}."] if seen.informed.any() and not self.graph.is_forest else []) + [
            f"messages{f' about {names[kind]!r}' if several else ''} to the power {correct.power:.2g}, "
            f"with {correct.share:.0%} of each spread evenly over all labels: these predict held-out labels best."
            for kind, (_, correct) in corrections.items()
        ]

    def _known(self, node: int, value: object) -> PointEmbedding:
        return self._belief(node, value, np.ones(1))

    def _belief(self, node: int, points: Points, mass: np.ndarray) -> PointEmbedding:
        """Weighted points of a variable as its belief."""
        variable = self._variable(node)
        return variable.sample.belief(points, mass, variable.kernel)

    def propagate(
        self,
        seen: Evidence,
        nodes: np.ndarray,
        floor: float | None,
        damping: float,
        dtype: np.dtype,
        counting: float | None = None,
        tolerance: float | None = None,
    ) -> tuple[Any, Any]:
        """Weights (B, G) of the atoms for some nodes, summing to one, and the report."""
        own = self._own(seen, dtype)
        known = self._known_edges(seen)
        given = self._given(seen, known, floor, dtype)
        operators = jax.tree.map(lambda leaf: on_device(np.asarray(leaf, dtype)), self.learned.operators)
        settings = {"damping": damping, "floor": floor, "tolerance": tolerance, "counting": counting}
        engine = self._engine_for(seen, damping)
        found = engine.run(operators, on_device(own), given, read=self.learned.readouts is None, **settings)
        notes = (
            *self._far(seen),
            *self._contradictions(seen, nodes, found.messages, own),
            *far_from_evidence(self.graph, seen.informed, nodes, min(self.pair_counts)),
        )
        report = replace(found.report, notes=(*notes, *found.report.notes))
        if not report.converged and self.schedule is None:
            why = f"not converged after {report.steps} sweeps, in which all evidence crossed the graph and came back"
            last = (
                f"messages still changed by {found.report.residuals[-1]:.1g} of their largest value: evidence travels "
                f"around cycles and is counted repeatedly. Beliefs are those after these sweeps; counting=0.5 reduces "
                f"the repetition."
            )
            report = replace(report, status=why, notes=(*(n for n in report.notes if n != TRY_MORE), last))
        weights: list[Any] = [None] * len(nodes)
        place = np.zeros(self.graph.size, dtype=np.int64)
        if self.learned.readouts is None:
            beliefs = np.asarray(found.beliefs[nodes])
            for i, node in enumerate(nodes):
                values = beliefs[i, :, : self._variable(int(node)).size]
                weights[i] = to_one(values, floor)
        else:
            layout, products = found.layout, outgoing(found.layout, found.messages, own)
            if found.low_share is None:
                fixed = None if known is None else known[:, None]
                low, _ = shares_sent(layout, products, np.asarray(operators.matrices), own, fixed, floor)
                report = replace(report, notes=(*report.notes, *([floor_note(low, floor)] if low > 0 else [])))
            del found  # with a million nodes, half a gigabyte of messages
            for which, (name, variable) in enumerate(self.learned.variables.items()):
                chosen = nodes[self.kind[nodes] == which]
                if len(chosen) == 0:
                    continue
                readouts = self._readouts(name, dtype)
                own_at = lambda part, name=name: self._own_at_atoms(seen, name, part, dtype)  # noqa: E731
                heard = lambda edges, atoms=variable.atoms: self._seen_messages(seen, edges, atoms, floor)[:, None]  # noqa: E731
                fixed = None if known is None else (known, heard)
                table = np.empty((len(chosen), seen.size, len(variable.masses)), dtype)
                place[chosen] = np.arange(len(chosen))
                for part, values in beliefs_at_atoms(layout, chosen, products, readouts, own_at, fixed, floor):
                    values *= variable.masses.astype(dtype)
                    table[place[part]] = to_one(values, floor)
                if len(chosen) == len(nodes):  # all of one kind: a million of them are a gigabyte, not copied
                    return table[place[nodes]] if (np.diff(place[nodes]) != 1).any() else table, report
                for i in np.flatnonzero(self.kind[nodes] == which):
                    weights[i] = table[place[nodes[i]]]
        return weights, report

    def _far(self, seen: Evidence) -> list[str]:
        """Notes on observed values far from all data, and on the first that is more extreme than nearly all."""
        notes, tail, order, start = [], [], *self.graph.outgoing
        times = 2 if len(self.directions) == 1 else 1  # points are both ends of each pair
        for node, value in seen.values.items():
            leaving = order[start[node] : start[node + 1]]
            if len(leaving):
                features = self._seen_likelihood(int(self.template[leaving[0]])).phi
                typical = np.mean(np.sum(np.asarray(features.factor) ** 2, axis=1))  # k(x, x) of the pivots
                phi = transformed(features, value)
                far = np.sum(phi**2, axis=1) < NEAR * typical
                told, asked = (self.graph.names[node], self._variable(node).sample, value), Asked(len(far))
                if far.any():
                    notes.append(far_note(*told, far, (phi == 0).all(axis=1), asked))
                elif not tail:
                    tail = tail_note(*told, asked, times)
        return [*notes, *tail]

    def _contradictions(self, seen: Evidence, nodes: np.ndarray, messages: object, own: np.ndarray) -> list[str]:
        """The nodes at which messages contradict each other; on forests, where none is counted twice."""
        if not self.graph.is_forest:
            return []
        heard = np.asarray(seen.informed, dtype=int)
        np.add.at(heard, self.graph.targets, informed(Rooted.at(self.graph), seen.informed))
        notes = []
        with np.errstate(divide="ignore"):
            product = np.log(own)
            # Some are negative where there is no floor.
            np.add.at(product, self.graph.targets, np.log(np.maximum(np.asarray(messages), 0)))
        for node in nodes:
            agreement = float(np.exp(product[node].max(axis=-1).min()))
            sample = self._variable(int(node)).sample
            if int(node) not in seen.values and agreement < least_agreement(
                sample, int(heard[node]), seen.size * len(nodes)
            ):
                notes.append(contradiction_note(self.graph.names[node], agreement))
        return notes[:MOST_CONTRADICTIONS]

    @property
    def samples(self) -> dict[Hashable, NodeSample]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The points that were seen of each kind."""
        return {name: variable.sample for name, variable in self.learned.variables.items()}

    @property
    def directions(self) -> list[Direction]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Rows of pairs, in each direction of a relation."""
        return self.learned.directions

    def _variable(self, node: int) -> Any:
        return list(self.learned.variables.values())[self.kind[node]]

    def _readouts(self, kind: Hashable, dtype: DType) -> list[np.ndarray]:
        """Operators to the atoms of a kind; those that arrive elsewhere are not used, and stand empty."""
        readouts = self.learned.readouts or []
        arriving = [r for r, d in zip(readouts, self.learned.directions, strict=True) if d.receiver == kind]
        width = arriving[0].shape[1] if arriving else 1
        return [
            r.astype(dtype) if d.receiver == kind else np.zeros((0, width), dtype)
            for r, d in zip(readouts, self.learned.directions, strict=True)
        ]

    def _own(self, seen: Evidence, dtype: np.dtype) -> np.ndarray:
        """The nodes' own factors (n, B, L): ones at the points of each, times what was observed."""
        own = np.zeros((self.graph.size, seen.size, self.learned.length), dtype)
        for which, (name, variable) in enumerate(self.learned.variables.items()):
            nodes = np.flatnonzero(self.kind == which)
            for part in pieces(nodes, NODES_AT_ONCE):
                own[part, :, : variable.size] = seen.at(name, part, variable.points)
        return own

    def _own_at_atoms(self, seen: Evidence, kind: Hashable, nodes: Any, dtype: DType) -> np.ndarray:
        return seen.at(kind, nodes, self.learned.variables[kind].atoms).astype(dtype)

    def _known_edges(self, seen: Evidence) -> np.ndarray | None:
        """Directed edges whose messages are known beforehand: from nodes that were seen, and from branches of a forest
        that know nothing.
        """
        known = np.zeros(len(self.graph.sources), dtype=bool)
        known[np.isin(self.graph.sources, list(seen.values))] = True
        if self.graph.is_forest:
            known |= ~informed(Rooted.at(self.graph), seen.informed)
        return known if known.any() else None

    def _given(self, seen: Evidence, known: np.ndarray | None, floor: float | None, dtype: np.dtype) -> Given | None:
        """Known messages at the points of their receivers."""
        if known is None:
            return None
        values = np.ones((len(known), seen.size, self.learned.length), dtype)
        for which, variable in enumerate(self.learned.variables.values()):
            edges = np.flatnonzero(known & (self.kind[self.graph.targets] == which))
            values[edges, :, : variable.size] = self._seen_messages(seen, edges, variable.points, floor)[:, None]
        return Given(*on_device((np.repeat(known[:, None], seen.size, axis=1), values)))

    def _seen_messages(self, seen: Evidence, edges: np.ndarray, points: Points, floor: float | None) -> np.ndarray:
        """Messages from observed values along some edges, at points of receivers; ones from nodes without evidence."""
        values = np.ones((len(edges), count(points)))
        sending = np.flatnonzero(np.isin(self.graph.sources[edges], list(seen.values)))
        for operator in np.unique(self.template[edges[sending]]):
            chosen = sending[self.template[edges[sending]] == operator]
            sent = np.concatenate([seen.values[int(node)] for node in self.graph.sources[edges[chosen]]])
            values[chosen] = self._seen_likelihood(int(operator)).at_points(sent, points, floor)
        return values

    def _seen_likelihood(self, operator: int) -> LearnedLikelihood:
        """The likelihood operator from an observed value to its neighbour, learned when first needed."""
        if operator not in self._seen_likelihoods:
            direction = self.learned.directions[operator]
            hidden = self.learned.variables[direction.receiver].sample
            seen = self.learned.variables[direction.sender].sample
            self._seen_likelihoods[operator] = LearnedLikelihood.between(hidden, seen, direction.pairs)
        return self._seen_likelihoods[operator]

    @cached_property
    def _seen_likelihoods(self) -> dict[int, LearnedLikelihood]:
        return {}

    @cached_property
    def approximation(self) -> list[Approximation]:
        """The measured approximation error of the update in each direction, with the bound of the paper."""
        return [approximation(self.learned, e) for e in range(len(self.learned.directions))]
