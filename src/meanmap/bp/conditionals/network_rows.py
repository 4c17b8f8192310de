"""Tables with missing cells, filled in, predicted and scored row by row by a Bayesian network."""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp

from meanmap.bp.beliefs.rounded import Rounded
from meanmap.bp.conditionals.averaged import Weighed, averaged, log_likelihood
from meanmap.bp.conditionals.coded_rows import CodedModel, CodedRows
from meanmap.bp.conditionals.determined import contradicted
from meanmap.bp.conditionals.few_behind import mean_of_few
from meanmap.bp.conditionals.given_parents import joined
from meanmap.bp.conditionals.label_tables import tables_of
from meanmap.bp.conditionals.labels_given_parents import LabelsGivenParents
from meanmap.bp.conditionals.laws import Law, beyond_data, log_score, pooled_labels
from meanmap.bp.conditionals.seen_together import SeenTogether, extrapolated
from meanmap.bp.conditionals.weighted_draws import FEW_DRAWS, agreeing, effective, normalised, smoothed
from meanmap.bp.tables.clique_tree import CliqueTree
from meanmap.core.door import Door
from meanmap.core.notes import in_few, in_rows, warn_of
from meanmap.core.points import spread_rows
from meanmap.core.report import Report
from meanmap.core.rng import Rng
from meanmap.core.tables.missing import take
from meanmap.core.types import Seed
from meanmap.embeddings.points import PointEmbedding
from meanmap.graphs.orientation import causes_first
from meanmap.graphs.partial import PDAG
from meanmap.graphs.relevance import ancestors, parents_by_name, relevant
from meanmap.learning.default import kernel_for

__all__ = ["NetworkRows"]

# The number of draws behind beliefs. It is smaller, down to LEAST_DRAWS, if all variables together would need more than
# MOST_DRAWN numbers: answers about fifty variables then take a second.
DRAWS, LEAST_DRAWS, MOST_DRAWN = 4000, 1000, 60_000
# If few draws agree with the evidence, as many are drawn again, up to so often, and those whose log weight is so far
# below the largest one are dropped.
AGAIN, NEGLIGIBLE = 15, 20.0
# What the number of draws to which weights amount is called in reports.
COUNT = "draws that count"
# The kernel width of a belief is chosen from this many draws.
ENOUGH = 500
# Draws for each row of a table, and of how many cells their log densities are kept for other rows with the same ones.
ROW_DRAWS, MOST_KEPT = 1000, 2000
# Draws whose values are compared with rows of the data, in a query and in each row of a table, where a thousand would
# take several times as long as the answer.
JUDGED, ROW_JUDGED = 1000, 200


class NetworkRows(CodedModel):
    """Answers of a fitted Bayesian network about every row of a table, whatever cells are missing."""

    if TYPE_CHECKING:
        graph: PDAG
        directed: PDAG
        conditionals: Mapping[Hashable, Law]
        seen: Mapping[Hashable, SeenTogether]
        notes: tuple[str, ...]

    def _called(self, name: Hashable) -> Hashable:
        return self.graph.names[self.graph.skeleton.index(name)]

    def _answers(self, asked: CodedRows, names: tuple[Hashable, ...], rng: Seed) -> tuple[dict[Hashable, Any], Report]:
        if asked.single:
            return self._believed(asked, names, rng)
        beliefs, reports = self._by_row(asked, dict.fromkeys(names, np.arange(asked.size)), rng)
        all_agree = all(report.converged for report in reports.values())
        notes = (*self.notes, *_noted(reports, asked.size))
        counts = [each.measures[COUNT] for each in reports.values() if COUNT in each.measures]
        fewest = {f"{COUNT}, fewest in a row": min(counts)} if counts else {}
        return beliefs, Report("each row a query", all_agree, len(reports), notes=notes, measures=fewest)

    def _in_rows(
        self, asked: CodedRows, wanted: Mapping[Hashable, np.ndarray], rng: Seed
    ) -> Iterable[tuple[Hashable, Any]]:
        beliefs, reports = self._by_row(asked, wanted, rng)
        warn_of(in_few(_noted(reports, asked.size)))
        return beliefs.items()

    def _scores(self, asked: CodedRows) -> np.ndarray:
        numbers, parents = self.table.standardised(asked.numbers), self._heard()
        cells = np.stack([asked.there(name) for name in numbers], axis=1)
        total = np.zeros(len(cells))
        values = dict(numbers)
        for k, (name, column) in enumerate(self.columns.items()):
            there = np.flatnonzero(cells[:, k])
            if column.labels is None:
                total[there] -= np.log(column.scale)
            elif len(there):
                seen = take(asked.raw[name], there)
                total[there] += column.log_chances(seen, np.zeros(len(there)), "frame")
                new = there[column.codes(column.seen(seen, "frame")) < 0]
                values[name] = numbers[name].copy()
                values[name][new] = 0.0  # as improbable whatever its parents are
        together = np.concatenate([*numbers.values(), *values.values()], axis=1)
        for there, rows in _groups(cells):
            here = [name for name, known in zip(numbers, there, strict=True) if known]
            if ancestors(parents, here) <= set(here):
                for name in (each for each in self.graph.names if each in here):
                    above = joined([numbers[p][rows] for p in parents[name]], len(rows))
                    total[rows] += self._log_chance(name, above, values[name][rows])
                continue
            kept: dict[tuple, np.ndarray] = {}
            for _, alike in _groups(np.nan_to_num(together[rows], nan=np.inf)):
                first = rows[alike[:1]]
                known, told = ({name: each[name][first] for name in here} for each in (numbers, values))
                total[rows[alike]] += self._of_cells(known, told, parents, kept)
        return total

    def _draws(self, asked: CodedRows, n: int, random: np.random.Generator) -> dict[Hashable, np.ndarray]:
        """Draws given evidence, resampled from more draws with weights by their likelihood."""
        fixed = asked.fixed
        rows, parents, notes = [], self._heard(fixed), []
        for given in self._cells(asked):
            seen = [name for name in given if name not in fixed]
            free = [name for name in self._order if name not in given]
            hearing = [name for name in seen if not given.keys() >= set(parents[name])]
            size, again = max(n, DRAWS) if seen else n, AGAIN // asked.size
            drawn, log_weights, total = self._drawn_again(size, again, free, hearing, given, parents, random)
            told = beyond_data(self.columns, self.conditionals, parents, given, (*free, *hearing))
            told += contradicted(self.columns, self.conditionals, parents, given, seen)
            told += self._extrapolated((*free, *hearing), given, parents, drawn, log_weights, ROW_JUDGED)
            if seen:
                weights = normalised(log_weights)
                told += agreeing(weights, total)[1]
                chosen = random.choice(len(log_weights), n, p=weights)
                drawn = {name: each[chosen] for name, each in drawn.items()}
            notes.append(told)
            units = {name: column.settled(column.in_unit(drawn[name])) for name, column in self.columns.items()}
            rows.append({name: self.columns[name].drawn(units[name], random) for name in self.graph.names})
        warn_of(in_few(in_rows(notes)))
        return {name: asked.kept(name, np.stack([row[name] for row in rows])) for name in self.graph.names}

    def _log_chance(self, name: Hashable, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Log densities given the parents; probability 0 for labels that were never seen."""
        logs = log_score(self.conditionals[name], self.columns[name], rows, values)
        return logs if self.columns[name].labels is None else np.where(values.any(axis=1), logs, 0.0)

    def _of_cells(
        self,
        known: Mapping[Hashable, np.ndarray],
        told: Mapping[Hashable, np.ndarray],
        parents: Mapping[Hashable, Sequence[Hashable]],
        kept: dict[tuple, np.ndarray],
    ) -> float:
        """log p of the cells of a row that are there: (1, width) as others hear them, and as they are judged. `kept` is
        of other rows with the same cells missing, where draws of these depend on no cell.
        """
        matter = ancestors(parents, known)
        free = [name for name in self._order if name in matter and name not in known]
        sizes = [self.columns[name].width for name in free]
        drawn, random, count = {}, np.random.default_rng(0), ROW_DRAWS
        summed = all(self.columns[name].labels is not None for name in free) and prod(sizes) <= ROW_DRAWS
        if summed:
            count = prod(sizes)
            states = np.indices(sizes).reshape(len(sizes), count)
            drawn = {name: np.eye(size)[at] for name, size, at in zip(free, sizes, states, strict=True)}
        judged = {name: np.repeat(value, count, axis=0) for name, value in told.items()} | drawn
        drawn = {name: np.repeat(value, count, axis=0) for name, value in known.items()} | drawn
        logs, same = np.zeros(count), not any(p in known for name in free for p in parents[name])
        for name in (each for each in self._order if each in matter):
            key = (
                name,
                *(each[p].tobytes() for each, p in [(told, name), *((known, p) for p in parents[name])] if p in each),
            )
            rows = joined([drawn[p] for p in parents[name]], count)
            if name not in judged:
                drawn[name] = self.conditionals[name].draw(rows, random)
            elif key in kept:
                logs += kept[key]
            else:
                own = self._log_chance(name, rows, judged[name])
                logs += own
                if same and len(kept) < MOST_KEPT:
                    kept[key] = own
        return float(np.asarray(logsumexp(logs))) - (0.0 if summed else float(np.log(count)))

    def _cells(self, asked: CodedRows) -> Iterator[dict[Hashable, np.ndarray]]:
        """The known cells of each row, standardised, (1, width).

        A label that never occurred is coded as zeros, which carry no information.
        """
        numbers = self.table.standardised(asked.numbers)
        for row in range(asked.size):
            cells = {name: values[row : row + 1] for name, values in numbers.items()}
            known = {name: cell for name, cell in cells.items() if not np.isnan(cell).any()}
            yield {name: cell for name, cell in known.items() if self.columns[name].labels is None or cell.any()}

    def _by_row(
        self, asked: CodedRows, wanted: Mapping[Hashable, np.ndarray], rng: Seed
    ) -> tuple[dict[Hashable, Any], dict[int, Report]]:
        """Beliefs about the targets in each row, by the same draws in each, and how each of these rows was answered."""
        seed, asking = Rng.of(rng).seed, {name: set(rows.tolist()) for name, rows in wanted.items()}
        found: dict[Hashable, list[Any]] = {name: [] for name in wanted}
        reports = {}
        for row, known in enumerate(self._cells(asked)):
            names = [name for name, rows in asking.items() if row in rows]
            if names:
                cells = {name: cell for name, cell in known.items() if name not in names}
                answers, report = self._weighed(names, cells, (), ROW_DRAWS, seed, ROW_JUDGED)
                few = []
                for name, answer in answers.items():
                    found[name].append(answer)
                    few += self._of_few(name, answer)
                reports[row] = replace(report, notes=(*report.notes, *few))
        return {name: self._row_beliefs(name, each) for name, each in found.items()}, reports

    def _believed(self, asked: CodedRows, names: tuple[Hashable, ...], rng: Seed) -> tuple[dict[Hashable, Any], Report]:
        (known,) = self._cells(asked)
        found, report = self._weighed(names, known, asked.fixed, DRAWS, rng, JUDGED)
        beliefs = {name: self._belief(name, each) for name, each in found.items()}
        few = [note for name, each in found.items() for note in self._of_few(name, each)]
        return beliefs, replace(report, notes=(*self.notes, *report.notes, *few))

    def _of_few(self, name: Hashable, answer: Weighed) -> tuple[str, ...]:
        """A note on a number whose mean rests on few rows."""
        column = self.columns[name]
        if column.labels is not None or not np.isfinite(column.limits).any():
            return ()
        then = "effect() gives intervals. "
        points = column.settled(column.in_unit(answer.values)).astype(float)
        return mean_of_few(name, points[:, 0], answer.weights, self.rows[name], then)

    def _weighed(
        self,
        names: Sequence[Hashable],
        known: Mapping[Hashable, np.ndarray],
        fixed: Collection[Hashable],
        draws: int,
        rng: Seed,
        judged: int,
    ) -> tuple[dict[Hashable, Weighed], Report]:
        """The distribution of each name, given observations and `fixed` interventions: exact where all unknown are
        labels, otherwise from draws. This many of these are `judged` by whether rows had such values together.
        """
        parents = self._heard(fixed)
        needed = relevant(parents, names, known)
        order = [name for name in self._order if name in needed]
        hearing = [name for name in known if name not in fixed and needed.intersection(parents[name])]
        beyond = beyond_data(self.columns, self.conditionals, parents, known, (*order, *hearing))
        beyond += contradicted(
            self.columns, self.conditionals, parents, known, [name for name in known if name not in fixed]
        )
        beyond += pooled_labels(self.columns, parents, (*order, *hearing))
        rows = {"rows": float(min((self.rows[name] for name in (*order, *hearing)), default=0))}
        factors = tables_of(self.columns, self.conditionals, parents, known, order, hearing)
        if factors is not None:
            exact = CliqueTree(factors).query(targets=names)
            random = np.random.default_rng(0)
            drawn, log_weights = self._drawn(judged, order, hearing, known, parents, random)
            beyond += self._extrapolated((*order, *hearing), known, parents, drawn, log_weights, judged)
            report = replace(
                exact.report, notes=(*exact.report.notes, *beyond), measures={**exact.report.measures, **rows}
            )
            sizes = {name: self.columns[name].width for name in names}
            return {name: Weighed(np.eye(size), exact[name], size) for name, size in sizes.items()}, report
        n = int(np.clip(MOST_DRAWN // (len(order) + len(hearing) + 1), LEAST_DRAWS, draws))
        random = Rng.of(rng).generator
        drawn, log_weights, n = self._drawn_again(n, AGAIN, order, hearing, known, parents, random)
        weights = normalised(log_weights)
        beyond += self._extrapolated((*order, *hearing), known, parents, drawn, log_weights, judged)
        count, few = agreeing(weights, n)
        status = f"draws along the arrows, weighted by evidence: {count:.4g} of {n} have weight"
        report = Report(status, not few, n, notes=(*few, *beyond), measures={COUNT: count, **rows})
        given = (self.conditionals, parents, drawn, weights, hearing, known, random)
        return {name: averaged(name, *given) for name in names}, report

    def _extrapolated(
        self,
        names: Iterable[Hashable],
        known: Mapping[Hashable, np.ndarray],
        parents: Mapping[Hashable, Sequence[Hashable]],
        drawn: Mapping[Hashable, np.ndarray],
        log_weights: np.ndarray,
        judged: int,
    ) -> tuple[str, ...]:
        """Notes on variables whose parents have values that hardly any row has together."""
        top = log_weights.max()
        weights = np.exp(log_weights - top) if np.isfinite(top) else np.ones(len(log_weights))
        some = spread_rows(len(weights), judged)
        drawn = {name: each[some] for name, each in drawn.items()}
        return extrapolated(self.seen, parents, known, names, drawn, weights[some])

    def _drawn(
        self,
        n: int,
        order: Iterable[Hashable],
        hearing: Iterable[Hashable],
        known: Mapping[Hashable, np.ndarray],
        parents: Mapping[Hashable, Sequence[Hashable]],
        random: np.random.Generator,
        smooth: bool = False,
    ) -> tuple[dict[Hashable, np.ndarray], np.ndarray]:
        """n draws of some variables as numbers, in causal order, and the log likelihood of their observed effects."""
        drawn = {name: np.repeat(value, n, axis=0) for name, value in known.items()}
        for name in order:
            law, rows = self.conditionals[name], joined([drawn[p] for p in parents[name]], n)
            labels = isinstance(law, LabelsGivenParents)
            drawn[name] = law.draw(rows, random) if labels else law.draw(rows, random, smooth)
        return drawn, log_likelihood(hearing, self.conditionals, parents, drawn, n)

    def _drawn_again(
        self,
        n: int,
        again: int,
        order: Iterable[Hashable],
        hearing: Collection[Hashable],
        known: Mapping[Hashable, np.ndarray],
        parents: Mapping[Hashable, Sequence[Hashable]],
        random: np.random.Generator,
    ) -> tuple[dict[Hashable, np.ndarray], np.ndarray, int]:
        """Draws and log weights, more of them if few agree with the evidence, and how many were drawn in all.

        More are drawn from smooth densities: there may be no row near what the evidence leaves.
        """
        drawn, logs = self._drawn(n, order, hearing, known, parents, random)
        total = n
        while hearing and total <= again * n and np.isfinite(logs.max()) and effective(logs) < FEW_DRAWS:
            more, others = self._drawn(n, order, hearing, known, parents, random, smooth=True)
            total, logs = total + n, np.concatenate([logs, others])
            kept = logs >= logs.max() - NEGLIGIBLE
            drawn = {name: np.concatenate([each, more[name]])[kept] for name, each in drawn.items()}
            logs = logs[kept]
        return drawn, logs, total

    @cached_property
    def _order(self) -> list[Hashable]:
        """All variables in causal order."""
        return causes_first(self.directed)

    def _heard(self, fixed: Collection[Hashable] = ()) -> dict[Hashable, list[Hashable]]:
        """The parents of each variable; what is set has none."""
        return {name: [] if name in fixed else above for name, above in self._parents.items()}

    @cached_property
    def _parents(self) -> dict[Hashable, list[Hashable]]:
        return parents_by_name(self._order, self.directed.named("directed"))

    def _belief(self, name: Hashable, answer: Weighed) -> PointEmbedding:
        column = self.columns[name]
        if column.labels is not None:
            return column.label_belief(answer.weights @ answer.values)
        values, weights = answer.as_points(DRAWS)
        points = column.settled(column.in_unit(values)).astype(float)
        some = points[spread_rows(len(points), ENOUGH) if answer.listed else slice(ENOUGH), 0]
        if np.ptp(some) == 0:  # as where zero is all but certain
            some = column.in_unit(np.array([-1.0, 1.0]))
        with Door():
            return PointEmbedding(kernel_for(some), points, weights, True)

    @property
    def rows(self) -> dict[Hashable, int]:
        """The number of rows behind each variable's counts or linear part; kernels and residuals use at most 4000."""
        return {name: law.rows for name, law in self.conditionals.items()}

    def _row_beliefs(self, name: Hashable, answers: Sequence[Weighed]) -> Any:
        """Probabilities of labels in each row; for numbers, draws smoothed by the distribution given the parents."""
        column, law = self.columns[name], self.conditionals[name]
        if isinstance(law, LabelsGivenParents):
            return column.label_belief(np.array([w.weights @ w.values for w in answers]).reshape(-1, column.width))
        same = [each.of_size(ROW_DRAWS) for each in answers]
        size = len(same[0].weights) if same else ROW_DRAWS
        values = np.array([each.values for each in same]).reshape(-1, size)
        weights = np.array([each.weights for each in same]).reshape(-1, size)
        points = column.settled(column.in_unit(values)).astype(float)
        found = smoothed(points, weights, column.scale * law.widths(values))
        least: Any = column.column.low
        return Rounded(found, least) if column.whole else found


def _groups(rows: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Each different row (k,) of a matrix, and the places (m,) of those equal to it."""
    if (rows == rows[:1]).all():
        yield from [(rows[0], np.arange(len(rows)))] if len(rows) else ()
        return
    found, which = np.unique(rows, axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    yield from zip(found, np.split(order, np.cumsum(np.bincount(which.ravel()))[:-1]), strict=True)


def _noted(reports: Mapping[int, Report], size: int) -> list[str]:
    """The notes on some rows as notes on a table of this size."""
    return in_rows([reports[row].notes if row in reports else () for row in range(size)])
