"""Tables with missing cells, filled in, predicted, scored and drawn row by row by a tree."""

from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from meanmap.bp.beliefs.densities import pick
from meanmap.bp.beliefs.tails import with_tails
from meanmap.bp.edges.floors import FLOOR
from meanmap.bp.edges.learning import LikelihoodEdge, MessageEdge
from meanmap.bp.edges.samples import NodeSample, Samples
from meanmap.bp.kernel.asked_rows import AskedRows
from meanmap.bp.kernel.belief_weights import Arriving, Factor, MessageWeights, factors_of
from meanmap.bp.kernel.row_messages import RowMessages
from meanmap.bp.kernel.support import belief_notes, learning_notes, prior_note
from meanmap.bp.model import FittedModel
from meanmap.bp.rows import RowModel
from meanmap.core.containers import is_sparse
from meanmap.core.door import Door
from meanmap.core.errors import InputError, KindError
from meanmap.core.held import holds_floats
from meanmap.core.language import with_article
from meanmap.core.moments import times_of
from meanmap.core.notes import in_few, warn_of
from meanmap.core.points import count, in_columns, joined, rows
from meanmap.core.report import Report
from meanmap.core.tables.filling import are_whole, nearest_whole
from meanmap.core.tables.kinds import ON_A_CIRCLE, nearest_levels
from meanmap.core.types import Data, Points, Seed
from meanmap.embeddings.bandwidth import around, diffusion_widths
from meanmap.embeddings.points import PointEmbedding
from meanmap.graphs import Rooted

__all__ = ["ManyRows"]

# Draws are made in blocks whose weights are about this many numbers.
MOST_WEIGHTS = 20_000_000


class ManyRows(RowModel, FittedModel):
    """The answers of a fitted tree about every row of a table, whatever cells are missing."""

    if TYPE_CHECKING:
        samples: Samples
        messages: tuple[MessageEdge, ...]
        likelihoods: tuple[LikelihoodEdge, ...]

    @cached_property
    def _tree(self) -> Rooted | None:
        return Rooted.at(self.graph) if self.graph.is_forest else None

    @property
    def _rooted(self) -> Rooted:
        """The graph as a tree; others are refused."""
        if self._tree is None:
            shown = " - ".join(map(str, self.graph.cycle()[:10]))
            raise InputError(
                f"the graph has a cycle, {shown}: rows are scored and drawn on trees only. For beliefs ask "
                "predict(table, targets); or learn a tree, mm.KernelGraph(mm.chow_liu(table)), or each column given "
                "all others, mm.bp.DependencyNetwork()."
            )
        return self._tree

    def _called(self, name: Hashable) -> Hashable:
        self.graph.index(name)
        return name

    def _asked(self, columns: Mapping[str, Any], argument: str, hidden: Collection[Hashable], door: Door) -> AskedRows:
        return AskedRows.of(self, self._tree, columns, argument, door, {self.graph.index(name) for name in hidden})

    def _single(self, evidence: Data | None, door: Door) -> AskedRows:
        return AskedRows.single(self, self._tree, evidence, door)

    def _best(self, asked: AskedRows, rng: Seed) -> Iterator[tuple[Hashable, np.ndarray, np.ndarray]]:
        warn_of(in_few(asked.doubts(asked.columns)))
        for part, here in asked.parts():
            here.outwards()
            for node in asked.columns:
                missing, name = np.flatnonzero(~here.there[node]), self.graph.names[node]
                if len(missing):
                    best = _best(self.samples.nodes[node], here.weights(node)[missing], name)
                    yield name, missing + part.start, best

    def _answers(
        self, asked: AskedRows, names: tuple[Hashable, ...], rng: Seed
    ) -> tuple[dict[Hashable, PointEmbedding], Report]:
        numbered = self.numbered(names)
        weights: dict[int, list[np.ndarray]] = {node: [] for node in numbered.values()}
        functions: dict[int, list[Arriving]] = {node: [] for node in numbered.values()}
        heard: dict[int, list[np.ndarray]] = {node: [] for node in numbered.values()}
        reports = []
        for _, here in asked.parts():
            here.outwards()
            reports.append(here.report)
            for node in numbered.values():
                weights[node].append(here.weights(node))
                heard[node].append(here.heard(node))
                functions[node].append([each for e in here.incoming(node) for each in here.arriving(e)])
        notes = [*learning_notes(self.graph, self.samples, self.likelihoods), *asked.doubts(numbered.values())]
        beliefs = {}
        for name, node in numbered.items():
            sample, values = self.samples.nodes[node], np.concatenate(weights[node])
            factors = tuple(f for f in factors_of(functions[node], asked.size) if (f.top > 0).any())
            source = MessageWeights.of(values, factors, sample, None, FLOOR)
            beliefs[name] = sample.belief(sample.points, source, sample.narrow)
            messages = np.concatenate(heard[node])
            notes += [
                *prior_note(name, (messages == 0) & asked.there.any(axis=0), asked.called),
                *belief_notes(name, sample, beliefs[name], messages, asked.called),
            ]
        notes += dict.fromkeys(note for report in reports for note in report.notes)
        last = max(reports, key=lambda report: (not report.converged, report.steps))
        return beliefs, replace(last, notes=tuple(notes))

    def _scores(self, asked: AskedRows) -> np.ndarray:
        """Log densities by the chain rule from the root: the density of each cell given those before it."""
        total, tree = np.zeros(asked.size), self._rooted
        for part, here in asked.walks(tree):
            here.outwards(in_turn=True)
            for node in asked.columns:
                there = np.flatnonzero(here.there[node])
                if len(there) == 0:
                    continue
                above = tree.from_parent[node]
                arriving = here.arriving(int(above)) if above >= 0 else []
                factors = tuple(Factor.of(c, values[there], seen) for c, values, seen in arriving)
                points = rows(asked.points[node], there + part.start)
                name = self.graph.names[node]
                total[there + part.start] += _log_density(self.samples.nodes[node], factors, points, name)
        return total

    def _draws(self, asked: AskedRows, n: int, random: np.random.Generator) -> dict[Hashable, np.ndarray]:
        """Draw from the roots outwards, each variable given the value drawn for its parent.

        Draws use the operators of observations, and beliefs of `query` those of messages, so that their means agree
        only as far as the operators do: within about a tenth of a standard deviation on Gaussian chains and 1000 rows.
        """
        tree = self._rooted
        warn_of(in_few(asked.doubts(range(self.graph.size))))
        for name, node in zip(self.graph.names, self.samples.nodes, strict=True):
            if is_sparse(node.points):
                raise KindError(
                    f"{name!r} is represented by its substrings, and cannot be drawn. Leave it out of the graph, or "
                    f"treat its texts as labels: no kernel for it, and fit(..., kinds={{{name!r}: 'label'}})."
                )
        rows_of: list[list[np.ndarray]] = [[] for _ in self.graph.names]
        for part, here in asked.walks(tree):
            number = here.there.shape[1]
            step = max(MOST_WEIGHTS // (number * int(here.counts.max())), 1)
            blocks = [self._drawn(asked, part, here, min(step, n - at), random) for at in range(0, n, step)]
            for node, each in enumerate(zip(*blocks, strict=True)):
                rows_of[node].append(np.concatenate(each, axis=1))
        return {name: np.concatenate(each) for name, each in zip(self.graph.names, rows_of, strict=True)}

    def _drawn(
        self, asked: AskedRows, part: slice, here: RowMessages, n: int, random: np.random.Generator
    ) -> list[np.ndarray]:
        """Values (rows, n) of every node, from the roots outwards: each given its parent and all evidence below."""
        tree, number = here.tree, here.there.shape[1]
        chosen: dict[int, np.ndarray] = {}
        drawn: dict[int, np.ndarray] = {}
        for node in tree.order.tolist():
            sample, parent, above = self.samples.nodes[node], int(tree.parent[node]), int(tree.from_parent[node])
            weights = np.repeat(here.product(here.incoming(node), node), n, axis=0)
            if parent >= 0:
                edge = self.likelihoods[above]
                phi, told = edge.observed.values[chosen[parent]], np.repeat(here.there[parent], n)
                if told.any():
                    seen = np.broadcast_to(here.features[above], (number, phi.shape[1]))
                    phi = np.where(told[:, None], np.repeat(seen, n, axis=0), phi)
                weights = weights * edge.message(phi)
            chosen[node] = pick(weights, 1, random)[:, 0]
            points = rows(sample.points, chosen[node])
            seen_here = np.repeat(here.there[node], n)
            if seen_here.any():
                own = asked.points[node]
                at = np.zeros(number, dtype=int) if count(own) == 1 else np.arange(part.start, part.stop)
                both = joined(points, rows(own, np.repeat(at, n)))
                points = rows(both, np.arange(len(seen_here)) + len(seen_here) * seen_here)
            values = _as_given(sample, points)
            drawn[node] = values.reshape(number, n, *values.shape[1:])
        return [drawn[node] for node in range(tree.graph.size)]


def _as_given(sample: NodeSample, points: Points) -> np.ndarray:
    """Points that were read, as the user's table has them."""
    if sample.labels is not None:
        named = sample.named(points)
        return named if any(isinstance(label, tuple) for label in named[:1]) else np.array(named.tolist())
    values = points[:, 0] if sample.flat else points
    if sample.timed:
        return times_of(values, sample.schema.columns[0].kind)  # pyright: ignore[reportOptionalMemberAccess]
    return np.asarray(values)


def _best(sample: NodeSample, weights: np.ndarray, name: Hashable) -> np.ndarray:
    """The mean of numbers under each row of weights, the most probable label."""
    if sample.labels is not None:
        return np.asarray(sample.belief(sample.points, weights).mode())
    if sample.told in ON_A_CIRCLE:
        raise KindError(
            f"{name!r} is {with_article(sample.told)}, a point on a circle, which is not filled in: leave it out of "
            f"frame, and read its beliefs with predict(frame, targets=[{name!r}])."
        )
    if not in_columns(sample.points) or not holds_floats(sample.points):
        raise KindError(
            f"{name!r} is neither a number nor a label, and has no mean: leave it out of frame, and read its beliefs "
            f"with predict(frame, targets=[{name!r}])."
        )
    found = _as_given(sample, weights @ sample.points)
    if isinstance(sample.told, tuple):
        return nearest_levels(found, sample.told)
    told = sample.schema is None or any(kind != "count" for _, kind in sample.schema.kinds)
    if sample.flat and not sample.timed and not told and are_whole(sample.points):
        return nearest_whole(found, float(sample.points.min()))
    return found


def _log_density(sample: NodeSample, factors: tuple[Factor, ...], points: Points, name: Hashable) -> np.ndarray:
    """log p of one point (m,) each under beliefs of one message each: as `density` has it, with tails, or
    `probabilities`.
    """
    if sample.labels is not None:
        weights = np.ones((count(points), sample.count))
        for factor in factors:
            weights *= factor.at(sample.points, FLOOR)
        same = np.asarray(points)[:, None] == np.asarray(sample.points)[None]
        same = same.all(axis=tuple(range(2, same.ndim)))
        return np.log(np.sum(weights * same, axis=1) / np.sum(weights, axis=1))
    known = sample.points
    if not in_columns(known) or not holds_floats(known):
        raise KindError(f"{name!r} is neither a number nor a label, and has no density: leave it out of frame.")
    n, width = len(known), diffusion_widths(known)
    plain = PointEmbedding(sample.kernel, known, np.full(n, 1 / n)).density(points, width)
    near = around(known, width)
    there, mass = np.ones(len(points)), np.ones((len(points), len(near)))
    for factor in factors:
        there *= factor.each(points, FLOOR)
        mass *= factor.at(near, FLOOR)
    with np.errstate(divide="ignore"):
        logs = np.log(plain * there / mass.mean(axis=1))
    return with_tails(logs, points, known.min(axis=0) - width, known.max(axis=0) + width)
