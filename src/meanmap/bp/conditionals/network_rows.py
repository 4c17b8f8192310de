"""Tables with missing cells, row by row what a Bayesian network says about them: filled, predicted, scored."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from meanmap.bp.beliefs.beliefs import Beliefs
from meanmap.bp.beliefs.densities import NormalMixture
from meanmap.bp.conditionals.columns import CodedColumn, oddities
from meanmap.bp.conditionals.given_parents import GivenParents, joined
from meanmap.core.arrays import check_lengths
from meanmap.core.errors import InputError
from meanmap.core.pieces.row_by_row import filled_by_partition, number_by_partition, refuse_beliefs
from meanmap.core.report import Report
from meanmap.core.rng import Rng
from meanmap.core.tables.filling import columns_of, filled
from meanmap.core.tables.missing import take
from meanmap.core.types import Data, Seed
from meanmap.graphs.partial import PDAG

__all__ = ["NetworkRows", "parents_of"]

# Draws for each row of a table.
DRAWS = 1000


class NetworkRows:
    """What a Bayesian network that has learned says about every row of a table, whatever cells are missing."""

    if TYPE_CHECKING:
        graph: PDAG
        directed: PDAG
        columns: Mapping[Hashable, CodedColumn]
        conditionals: Mapping[Hashable, GivenParents]

        def _answers(
            self,
            names: Sequence[Hashable],
            seen: Mapping[Hashable, np.ndarray],
            fixed: Mapping[Hashable, np.ndarray],
            draws: int,
            rng: Seed,
        ) -> tuple[dict[Hashable, tuple[np.ndarray, np.ndarray]], Report]: ...
        def _targets(self, targets: Iterable[Hashable] | None, known: Iterable[Hashable]) -> tuple[Hashable, ...]: ...

    @filled_by_partition
    def impute(self, frame: Data, *, rng: Seed = None) -> Any:
        """The table with its missing cells filled in: means of numbers, the most probable labels.

        Parameters
        ----------
        frame : table
            As `fit` takes it, any cells missing. Columns that are no variable of the model stay as they are.
        rng : None, int, Generator or JAX key
            What repeats the draws: the same for every row, so that rows with the same cells are filled alike.

        Returns
        -------
        table
            A copy, of the same type; of a frame of Dask one of Dask, filled in when it is computed.

        Notes
        -----
        Each row is a query of its own, of a thousand draws: a millisecond where only effects or labels are missing, 30
        to 70 where draws of a cause are weighed by numbers that were seen. `mm.bp.DependencyNetwork` fills in faster.

        Examples
        --------
        >>> import numpy as np
        >>> import meanmap as mm
        >>> rng = np.random.default_rng(0)
        >>> a, b = rng.normal(size=(2, 400))
        >>> model = mm.bp.BayesianNetwork([("a", "c"), ("b", "c")]).fit({"a": a, "b": b, "c": a + b})
        >>> model.impute({"a": [1.0, 0.5], "b": [1.0, 0.0], "c": [np.nan, 0.5]}, rng=0)["c"].round(1).tolist()
        [2.0, 0.5]
        """
        raw = columns_of(frame)
        names = [name for name in self.graph.names if str(name) in raw]
        found: dict[Hashable, list[tuple[int, np.ndarray]]] = {}
        for row, missing, answers, _ in self._asked(raw, names, (), rng):
            for name in missing:
                numbers, weights = answers[name]
                found.setdefault(name, []).append((row, weights @ numbers))
        values = {}
        for name, each in found.items():
            means, column = np.stack([mean for _, mean in each]), self.columns[name]
            best = column.back(means[:, 0]) if column.labels is None else column.label_belief(means).mode()
            values[name] = np.array([row for row, _ in each]), best
        return filled(frame, values)

    def predict(self, frame: Data, targets: Iterable[Hashable], *, rng: Seed = None) -> Beliefs[Any]:
        """Beliefs about some variables in every row of a table, from the other cells that are there.

        Parameters
        ----------
        frame : table
            As `fit` takes it; columns of the targets, if there are any, are not looked at.
        targets : names
            Variables of the model.
        rng : None, int, Generator or JAX key
            As of `impute`.

        Returns
        -------
        Beliefs
            One for each row: of numbers (of times, seconds) with `.mean()`, `.quantile(q)`, `.density(grid)`,
            `.sample(n, rng)`; of labels with `.probabilities()` and `.mode()`.

        Examples
        --------
        >>> import numpy as np
        >>> import meanmap as mm
        >>> rng = np.random.default_rng(0)
        >>> a, b = rng.normal(size=(2, 400))
        >>> model = mm.bp.BayesianNetwork([("a", "c"), ("b", "c")]).fit({"a": a, "b": b, "c": a + b})
        >>> model.predict({"a": [1.0, -1.0], "b": [1.0, 0.0]}, ["c"], rng=0)["c"].mean().round(1).tolist()
        [2.0, -1.0]
        """
        refuse_beliefs(frame)
        names, raw = self._targets(targets, ()), columns_of(frame)
        rows = list(self._asked(raw, names, names, rng))
        beliefs = {name: self._row_beliefs(name, [answers[name] for _, _, answers, _ in rows]) for name in names}
        reports = [report for *_, report in rows]
        few = sum(not report.converged for report in reports)
        told = (f"in {few} of {len(rows)} rows few draws agree with the evidence: it is improbable.",) if few else ()
        notes = (*told, *oddities(self.columns, raw, "frame", names))
        return Beliefs(names, beliefs, Report("each row a query", not few, len(rows), notes=notes))

    @number_by_partition
    def score(self, frame: Data) -> np.ndarray:
        """The logarithm of the density of each row: larger is better on new rows. Of labels, of their probability.

        A label that never came has the share of rows whose label came once, at least one row's, and the others share
        the rest (Good 1953).

        Parameters
        ----------
        frame : table
            With all variables; rows with missing cells get NaN.

        Returns
        -------
        array (n,)
        """
        raw = columns_of(frame)
        lacking = [name for name in self.graph.names if str(name) not in raw]
        if lacking:
            raise InputError(f"frame has no column {lacking[0]!r}; it has {', '.join(map(repr, raw))}.")
        numbers = self._numbers(raw)
        there = ~np.isnan(np.concatenate(list(numbers.values()), axis=1)).any(axis=1)
        total = np.where(there, 0.0, np.nan)
        if there.any():
            for name, law in self.conditionals.items():
                rows = joined([numbers[p][there] for p in parents_of(self.directed, name)], int(there.sum()))
                logs, column = law.log_chance(rows, numbers[name][there]), self.columns[name]
                if column.labels is None:
                    total[there] += logs - np.log(column.scale)
                else:
                    total[there] += column.log_chances(take(raw[str(name)], np.flatnonzero(there)), logs, "frame")
        return total

    def _numbers(self, raw: Mapping[str, Any]) -> dict[Hashable, np.ndarray]:
        """The columns of variables that a table has, as numbers (n, width), NaN where a cell is missing."""
        numbers = {n: c.read(raw[str(n)], "frame") for n, c in self.columns.items() if str(n) in raw}
        if not numbers:
            shown = ", ".join(map(repr, self.graph.names[:10]))
            raise InputError(f"frame has no column of the model; expected some of {shown}.")
        check_lengths({name: len(values) for name, values in numbers.items()}, "frame")
        return numbers

    def _asked(
        self, raw: Mapping[str, Any], names: Sequence[Hashable], hidden: Sequence[Hashable], rng: Seed
    ) -> Iterator[tuple[int, list[Hashable], dict[Hashable, tuple[np.ndarray, np.ndarray]], Report]]:
        """Each row in which some of the names are missing, or hidden: its number, these names, and what is said of
        them, by the same draws in each row.
        """
        numbers, seed = self._numbers(raw), Rng.of(rng).seed
        for row in range(len(next(iter(numbers.values())))):
            # A label that never came is none of those that did: zeros, which say nothing.
            cells = {name: values[row : row + 1] for name, values in numbers.items() if name not in hidden}
            missing = [name for name in names if name not in cells or np.isnan(cells[name]).any()]
            if missing:
                known = {
                    name: cell
                    for name, cell in cells.items()
                    if not np.isnan(cell).any() and (self.columns[name].labels is None or cell.any())
                }
                yield row, missing, *self._answers(missing, known, {}, DRAWS, seed)

    def _row_beliefs(self, name: Hashable, answers: Sequence[tuple[np.ndarray, np.ndarray]]) -> Any:
        """Of labels their probabilities in each row; of numbers draws, as smooth as the law given the parents is."""
        column = self.columns[name]
        if column.labels is not None:
            return column.label_belief(np.array([w @ numbers for numbers, w in answers]).reshape(-1, column.width))
        drawn, weights = (np.array([each[i].ravel() for each in answers]).reshape(-1, DRAWS) for i in (0, 1))
        width = column.scale * self.conditionals[name].width
        return NormalMixture(weights, column.centre + column.scale * drawn, np.full(drawn.shape, width**2))


def parents_of(graph: PDAG, name: Hashable) -> list[Hashable]:
    """The variables with arrows to one."""
    return [a for a, b in graph.named("directed") if b == name]
