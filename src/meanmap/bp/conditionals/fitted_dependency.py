"""A fitted dependency network: rows filled in, predicted, scored and drawn."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from meanmap.bp.beliefs.densities import pick
from meanmap.bp.beliefs.histogram import Histogram
from meanmap.bp.beliefs.rounded import Rounded
from meanmap.bp.conditionals.coded_rows import ROWS_AT_ONCE, CodedModel, CodedRows
from meanmap.bp.conditionals.column_conditional import ColumnConditional
from meanmap.bp.conditionals.columns import CodedTable
from meanmap.bp.conditionals.few_known import MOST_KNOWN, given_few
from meanmap.bp.conditionals.joint_normal import JointNormal, laws_of
from meanmap.bp.conditionals.pages import held_out_page
from meanmap.bp.conditionals.seen_together import SeenTogether, unlike_rows
from meanmap.bp.conditionals.standard import Standard
from meanmap.bp.conditionals.two_part import TwoPart
from meanmap.bp.never_together import NeverTogether
from meanmap.core.language import in_percent
from meanmap.core.notes import note_lines
from meanmap.core.points import slices
from meanmap.core.progress import track
from meanmap.core.report import Report
from meanmap.core.tables.missing import take
from meanmap.core.types import Seed
from meanmap.plots.facts import Page

__all__ = ["FittedDependencyNetwork"]

# A note is given if 50% intervals cover more than this share, or if more than this share of cells is missing.
TOO_WIDE, MANY_GAPS = 0.65, 0.1


@dataclass(frozen=True, eq=False)
class FittedDependencyNetwork(CodedModel):
    """A fitted `DependencyNetwork`.

    Attributes
    ----------
    table : CodedTable
        How each column is read.
    scale : Standard
        How their numbers are standardised, and which of them are logarithms, roots or log odds then.
    laws : tuple
        A joint normal distribution of all columns for each part of the rows, learned without it.
    conditionals : tuple
        For each column its distribution given the others; `.mixture` has the weights of its beliefs, `.levels` the
        correction of their probabilities.
    rows : array (n, d)
        The training rows, standardised, NaN in gaps.
    notes : tuple of str
        What was missing in the table, and what in it may not be what it seems; reports of answers have them, too.
    few_apart : bool
        Whether columns given one to three others have regressions of their own; not if `regressions` were given.
    apart : NeverTogether
        Labels that were expected together in some rows, and were not.
    seen : SeenTogether
        All columns in some rows.
    """

    table: CodedTable
    scale: Standard
    laws: tuple[JointNormal, ...]
    conditionals: tuple[ColumnConditional | TwoPart, ...]
    rows: np.ndarray
    notes: tuple[str, ...] = ()
    few_apart: bool = False
    apart: NeverTogether = field(default_factory=NeverTogether)
    seen: SeenTogether = field(default_factory=lambda: SeenTogether({}))

    @property
    def held_out(self) -> dict[Hashable, Mapping[str, float]]:
        """Prediction errors of each column in held-out rows with missing cells in the other columns.

        The errors are those of "this" network, of a "joint normal" distribution, and "alone", of the same prediction
        for every row. Smaller is better. The weights of beliefs were chosen on the same rows, so "this" is slightly
        optimistic.
        """
        return {name: law.held for name, law in zip(self.table.columns, self.conditionals, strict=True)}

    def _picture(self) -> Page:
        return held_out_page(self.held_out, self.notes)

    def _variables_of_page(self) -> Any:
        return tuple(self.table.columns)

    def _called(self, name: Hashable) -> Hashable:
        self.table.place(name)
        return str(name)

    def _answers(self, asked: CodedRows, names: tuple[Hashable, ...], rng: Seed) -> tuple[dict[Hashable, Any], Report]:
        each = track(names, "answering")
        beliefs = {name: self._belief(name, asked.matrix) for name in each}
        found = {name: belief[0] for name, belief in beliefs.items()} if asked.single else beliefs
        unlike = unlike_rows(self.seen, asked.numbers, names)
        return found, Report("one regression", True, 1, notes=(*self.notes, *unlike, *self._doubts(names)))

    def _doubts(self, names: Sequence[Hashable]) -> Iterator[str]:
        """Caveats of beliefs about some columns: intervals that are too wide, and gaps that may not be at random."""
        for name in names:
            place = self.table.place(name)
            law, gaps = self.conditionals[place], self._gaps[place]
            if law.inside > TOO_WIDE:
                yield (
                    f"intervals of {name!r} are too wide where the other columns predict it nearly exactly: "
                    f"50% intervals covered {law.inside:.2f} of held-out values there."
                )
            if gaps > MANY_GAPS:
                yield (
                    f"{in_percent(gaps)}% of {name!r} is missing in the data. Beliefs are valid if values are missing "
                    f"at random given the other columns, which the data cannot show; where large values were missing "
                    f"because they are large, 90% intervals covered .46 to .86 of them: see mm.bp.pooled."
                )

    @cached_property
    def _gaps(self) -> list[float]:
        """The share of missing cells of each column."""
        return [float(np.isnan(self.rows[:, law.block.start]).mean()) for law in self.conditionals]

    def _in_rows(
        self, asked: CodedRows, wanted: Mapping[Hashable, np.ndarray], rng: Seed
    ) -> Iterator[tuple[Hashable, Any]]:
        for name, rows in wanted.items():
            yield name, self._belief(name, asked.matrix[rows])

    def _scores(self, asked: CodedRows) -> np.ndarray:
        """Log densities by the chain rule."""
        numbers = asked.matrix
        total, before = np.zeros(len(numbers)), np.full(numbers.shape, np.nan)
        for (name, column), block, law in zip(
            self.table.columns.items(), self.table.blocks, self.conditionals, strict=True
        ):
            there = asked.there(name)
            if there.any():
                shares, values = self._shares(name, before[there]), numbers[there][:, block]
                if law.thresholds is not None:
                    total[there] += law.thresholds.log_density(shares, values, column.step)
                else:
                    with np.errstate(divide="ignore"):
                        logs = np.log(np.sum(shares * values, axis=1))
                    total[there] += column.log_chances(take(asked.raw[name], np.flatnonzero(there)), logs, "frame")
            before[:, block] = numbers[:, block]
        return total

    def _draws(self, asked: CodedRows, n: int, random: np.random.Generator) -> dict[Hashable, np.ndarray]:
        """Draw each column in turn given those before it."""
        numbers, result = np.repeat(asked.matrix, n, axis=0), {}
        for (name, column), block in zip(self.table.columns.items(), self.table.blocks, strict=True):
            gaps = np.flatnonzero(np.isnan(numbers[:, block.start]))
            if len(gaps) and column.labels is not None:
                chosen = pick(self._shares(name, numbers[gaps]), 1, random)[:, 0]
                numbers[gaps[:, None], block] = np.eye(column.width)[chosen]
            elif len(gaps):
                drawn = self._belief(name, numbers[gaps]).sample(1, random)[:, 0]
                numbers[gaps, block.start] = column.settled(drawn)
            result[name] = asked.kept(name, column.drawn(numbers[:, block], random).reshape(-1, n))
        return result

    def _drawn_gaps(
        self, asked: CodedRows, tables: int, random: np.random.Generator
    ) -> Iterator[dict[Hashable, tuple[np.ndarray, np.ndarray]]]:
        gaps, columns = {name: np.flatnonzero(~asked.there(name)) for name in asked.raw}, self.table.columns
        for _ in range(tables):
            drawn = self._resampled(random)._draws(asked, 1, random)
            yield {
                name: (rows, columns[name].in_cells(columns[name].settled(drawn[name][rows, 0])))
                for name, rows in gaps.items()
                if len(rows)
            }

    def _resampled(self, random: np.random.Generator) -> "FittedDependencyNetwork":
        """The network of a bootstrap sample of these rows: joint normal distributions are fitted again, forests and
        neighbourhoods weight their rows by how often they were drawn; patterns of few known columns have none apart.
        """
        n = len(self.rows)
        counts = random.multinomial(n, np.full(n, 1 / n))
        conditionals = tuple(each.resampled(counts) for each in self.conditionals)
        laws = laws_of(self.rows, counts, self.laws[0].products)
        return replace(self, laws=laws, conditionals=conditionals, few_apart=False)

    def _shares(self, name: Hashable, numbers: np.ndarray) -> np.ndarray:
        """Probabilities of the bins of a number, or of labels, (m, ...), from rows in which it is hidden."""
        place, found = self.table.place(name), []
        conditional = self.conditionals[place]
        asked = numbers if len(numbers) else np.full((1, numbers.shape[1]), np.nan)
        for part in slices(len(asked), ROWS_AT_ONCE):
            rows = self.scale(asked[part])
            rows[:, conditional.block] = np.nan
            apart = self.few_apart
            found.append(self._shares_by_pattern(place, rows) if apart else conditional.shares(self.laws, rows))
        return np.concatenate(found)[: len(numbers)]

    def _shares_by_pattern(self, place: int, rows: np.ndarray) -> np.ndarray:
        """Probabilities of the variable at a place in standardised rows, those with the same known cells together."""
        found: np.ndarray | None = None
        starts = [whole.start for whole in self.scale.wholes]
        patterns, which = np.unique(~np.isnan(rows[:, starts]), axis=0, return_inverse=True)
        for k, known in enumerate(patterns):
            those = np.flatnonzero(which.ravel() == k)
            shares = self._given(place, known).shares(self.laws, rows[those])
            found = np.empty((len(rows), shares.shape[1])) if found is None else found
            found[those] = shares
        assert found is not None
        return found

    def _given(self, place: int, known: np.ndarray) -> ColumnConditional | TwoPart:
        """The variable at a place given those that are known; given few, it is learned when it is first asked for."""
        if not 0 < known.sum() <= MOST_KNOWN:
            return self.conditionals[place]
        key = place, known.tobytes()
        if key not in self._few:
            self._few[key] = given_few(self.conditionals[place], place, known, self.scale, self.rows, self.laws)
        return self._few[key]

    @cached_property
    def _few(self) -> dict[tuple[int, bytes], ColumnConditional | TwoPart]:
        return {}

    def _belief(self, name: Hashable, numbers: np.ndarray) -> Any:
        column, shares = self.table.columns[name], self._shares(name, numbers)
        if column.labels is not None:
            return column.label_belief(shares)
        thresholds: Any = self.conditionals[self.table.place(name)].thresholds
        found = Histogram.of(thresholds.edges, shares, thresholds.points)
        least: Any = column.column.low
        return Rounded(found, least) if column.whole and not thresholds.points.all() else found

    def __repr__(self) -> str:
        names = list(self.table.columns)
        shown = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
        first = f"FittedDependencyNetwork({len(names)} columns: {shown})"
        return "\n".join([first, *note_lines(self.notes)])
