"""What a dependency network that has learned says about rows: filled, predicted, scored, drawn."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.bp.beliefs.beliefs import Beliefs
from meanmap.bp.beliefs.densities import pick
from meanmap.bp.beliefs.histogram import Histogram
from meanmap.bp.conditionals.column_conditional import ColumnConditional
from meanmap.bp.conditionals.columns import CodedTable
from meanmap.bp.conditionals.joint_normal import JointNormal
from meanmap.core.errors import InputError, KindError
from meanmap.core.pieces.row_by_row import filled_by_partition, number_by_partition, refuse_beliefs
from meanmap.core.points import refuse_unread, slices
from meanmap.core.report import Report
from meanmap.core.rng import Rng
from meanmap.core.settings import by_name, whole_number
from meanmap.core.tables.filling import columns_of, filled
from meanmap.core.tables.missing import present, take
from meanmap.core.types import Data, Seed

__all__ = ["FittedDependencyNetwork"]

# Rows are answered so many at a time, for what all other columns say about them takes memory.
ROWS_AT_ONCE = 5000


@dataclass(frozen=True, eq=False)
class FittedDependencyNetwork:
    """A `DependencyNetwork` that has learned, ready for tables.

    Attributes
    ----------
    table : CodedTable
        How each column is read.
    laws : tuple
        A joint normal law of all columns for each part of the rows, learned without it.
    conditionals : tuple
        For each column what it is given the others; `.mixture` is what each of its beliefs counts, `.levels` how their
        probabilities are corrected.
    """

    table: CodedTable
    laws: tuple[JointNormal, ...]
    conditionals: tuple[ColumnConditional, ...]

    @property
    def held_out(self) -> dict[str, Mapping[str, float]]:
        """How well each column was predicted in rows that were left out, with cells of the others missing: by "this",
        by a "joint normal" law, and "alone", the same for every row. Smaller is better; the weights of beliefs were
        chosen by the same rows, so that "this" is a little low.
        """
        return {name: law.held for name, law in zip(self.table.columns, self.conditionals, strict=True)}

    @filled_by_partition
    def impute(self, frame: Data) -> Any:
        """The table with its missing cells filled in: means of numbers, the most probable labels.

        Parameters
        ----------
        frame : table
            As `fit` takes it. Columns that were not learned stay as they are.

        Returns
        -------
        table
            A copy, of the same type; of a frame of Dask one of Dask, filled in when it is computed.

        Examples
        --------
        >>> import numpy as np
        >>> import meanmap as mm
        >>> rng = np.random.default_rng(0)
        >>> a = rng.normal(size=200)
        >>> model = mm.bp.DependencyNetwork().fit({"a": a, "b": a + 0.1 * rng.normal(size=200)})
        >>> model.impute({"a": [1.0, 0.5], "b": [np.nan, 0.4]})["b"].round(1).tolist()
        [1.0, 0.4]
        """
        numbers, found = self.table.numbers(frame, "frame"), {}
        there = columns_of(frame)
        for (name, column), block in zip(self.table.columns.items(), self.table.blocks, strict=True):
            missing = np.flatnonzero(np.isnan(numbers[:, block.start]))
            if name in there and len(missing):
                belief: Any = self._belief(name, numbers[missing])
                found[name] = missing, belief.mode() if column.labels is not None else column.given(belief.mean())
        return filled(frame, found)

    def predict(self, frame: Data, targets: Iterable[Hashable]) -> Beliefs[Any]:
        """Beliefs about some columns in every row of a table, from the other cells that are there.

        Parameters
        ----------
        frame : table
            As `fit` takes it; columns of the targets, if there are any, are not looked at.
        targets : names
            Learned columns.

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
        >>> a = rng.normal(size=200)
        >>> model = mm.bp.DependencyNetwork().fit({"a": a, "b": np.where(a > 0, "up", "down")})
        >>> beliefs = model.predict({"a": [1.0, -1.0]}, targets=["b"])
        >>> beliefs["b"].mode().tolist()
        ['up', 'down']
        """
        refuse_beliefs(frame)
        names = [str(name) for name in targets]
        for name in names:
            self.table.place(name)
        numbers = self.table.numbers(frame, "frame", set(names))
        beliefs: dict[Hashable, Any] = {name: self._belief(name, numbers) for name in names}
        notes = self.table.oddities(frame, "frame", set(names))
        return Beliefs(tuple(names), beliefs, Report("one regression", True, 1, notes=notes))

    def query(
        self, evidence: Mapping[Any, Any] | None = None, targets: Iterable[Hashable] | None = None
    ) -> Beliefs[Any]:
        """Beliefs about variables, given values of others: `predict` of one row.

        Parameters
        ----------
        evidence : mapping from names to single values, optional
            What is known.
        targets : names, optional
            All other variables unless given.

        Returns
        -------
        Beliefs
            As of `predict`, one for each target.

        Examples
        --------
        >>> import numpy as np
        >>> import meanmap as mm
        >>> rng = np.random.default_rng(0)
        >>> a = rng.normal(size=200)
        >>> model = mm.bp.DependencyNetwork().fit({"a": a, "b": a + 0.1 * rng.normal(size=200)})
        >>> bool(abs(model.query({"a": 1.0})["b"].mean() - 1) < 0.1)
        True
        """
        known = self._single(evidence)
        names = [n for n in self.table.columns if n not in known] if targets is None else list(map(str, targets))
        seen = next((name for name in names if name in known), None)
        if seen is not None:
            raise InputError(f"{seen!r} is a target and known already; expected one or the other.")
        numbers = self._row(known)
        for name in names:
            self.table.place(name)
        beliefs: dict[Hashable, Any] = {name: self._belief(name, numbers)[0] for name in names}
        notes = self.table.oddities(known, "evidence") if known else ()
        return Beliefs(tuple(names), beliefs, Report("one regression", True, 1, notes=notes))

    def _single(self, evidence: Mapping[Any, Any] | None) -> dict[str, Any]:
        """Single values as columns of one row."""
        known = by_name(evidence)
        for name, value in known.items():
            self.table.place(name)
            refuse_unread(value, f"evidence[{name!r}]")
            if np.ndim(value):
                raise KindError(f"evidence[{name!r}] has {np.size(value)} values; expected one: predict takes tables.")
        return {str(name): [value] for name, value in known.items()}

    def _row(self, known: Mapping[str, Any]) -> np.ndarray:
        """One row of numbers."""
        return self.table.numbers(known, "evidence") if known else np.full((1, self.table.blocks[-1].stop), np.nan)

    @number_by_partition
    def score(self, frame: Data) -> np.ndarray:
        """The logarithm of the density of each row, of the cells that are there: larger is better on new rows.

        Each cell is judged given those in the columns before it (the chain rule); of labels, and of numbers with at
        most 20 values, it is the logarithm of their probability. A label that never came has the share of rows whose
        label came once, at least one row's, and the others share the rest (Good 1953). A number that lies beyond all
        that were learned by more than half their range is impossible: −inf.

        Parameters
        ----------
        frame : table
            As `fit` takes it.

        Returns
        -------
        array (n,)

        Examples
        --------
        >>> import numpy as np
        >>> import meanmap as mm
        >>> rng = np.random.default_rng(0)
        >>> a = rng.normal(size=200)
        >>> model = mm.bp.DependencyNetwork().fit({"a": a, "b": a + 0.1 * rng.normal(size=200)})
        >>> usual, odd = model.score({"a": [1.0, 1.0], "b": [1.0, -1.0]})
        >>> bool(usual > odd + 1)
        True
        """
        numbers, raw = self.table.numbers(frame, "frame"), columns_of(frame)
        total, before = np.zeros(len(numbers)), np.full(numbers.shape, np.nan)
        for (name, column), block, law in zip(
            self.table.columns.items(), self.table.blocks, self.conditionals, strict=True
        ):
            there = ~np.isnan(numbers[:, block.start])
            if there.any():
                shares, values = self._shares(name, before[there]), numbers[there][:, block]
                chance: Any = law.thresholds
                chance = np.sum(shares * values, axis=1) if chance is None else chance.density(shares, values)
                with np.errstate(divide="ignore"):
                    logs = np.log(chance)
                if column.labels is not None:
                    logs = column.log_chances(take(raw[name], np.flatnonzero(there)), logs, "frame")
                total[there] += logs
            before[:, block] = numbers[:, block]
        return total

    def sample(self, n: int, evidence: Data | None = None, *, rng: Seed = None) -> dict[str, np.ndarray]:
        """Joint draws of all columns, given what is known of some: each in turn given those before it.

        Parameters
        ----------
        n : int
            How many.
        evidence : mapping from names to values, or table, optional
            Single values, or a table with gaps: `n` draws for every row.
        rng : None, int, Generator or JAX key
            What repeats the draws.

        Returns
        -------
        dict
            A column (n,) for each variable, (rows, n) for a table.

        Examples
        --------
        >>> import numpy as np
        >>> import meanmap as mm
        >>> rng = np.random.default_rng(0)
        >>> a = rng.normal(size=200)
        >>> model = mm.bp.DependencyNetwork().fit({"a": a, "b": a + 0.1 * rng.normal(size=200)})
        >>> drawn = model.sample(100, {"a": 1.0}, rng=0)
        >>> set(drawn["a"].tolist()), bool(abs(drawn["b"].mean() - 1) < 0.15)
        ({1.0}, True)
        """
        n, random = whole_number(n, "n"), Rng.of(rng).generator
        single = evidence is None or (isinstance(evidence, Mapping) and not any(map(np.ndim, evidence.values())))
        known: Any = self._single(evidence) if single else columns_of(evidence, "evidence")
        numbers = np.repeat(self._row(known) if single else self.table.numbers(evidence, "evidence"), n, axis=0)
        result = {}
        for (name, column), block in zip(self.table.columns.items(), self.table.blocks, strict=True):
            gaps = np.flatnonzero(np.isnan(numbers[:, block.start]))
            if len(gaps) and column.labels is not None:
                chosen = pick(self._shares(name, numbers[gaps]), 1, random)[:, 0]
                numbers[gaps[:, None], block] = np.eye(column.width)[chosen]
            elif len(gaps):
                numbers[gaps, block.start] = self._belief(name, numbers[gaps]).sample(1, random)[:, 0]
            if column.labels is None:
                values = column.given(numbers[:, block.start])
            else:
                values = column.named(numbers[:, block], random)
                if name in known:
                    there = np.flatnonzero(present(known[name]))
                    told = np.asarray(column.column.read(take(known[name], there), "evidence"))
                    values = values.astype(np.result_type(values, told)).reshape(-1, n)
                    values[there] = told[:, None]
            result[name] = values.reshape(-1) if single else values.reshape(-1, n)
        return result

    def _shares(self, name: str, numbers: np.ndarray) -> np.ndarray:
        """Probabilities of the bins of a number, or of labels, (m, ...), from rows in which it is hidden."""
        conditional, found = self.conditionals[self.table.place(name)], []
        asked = numbers if len(numbers) else np.full((1, numbers.shape[1]), np.nan)
        for part in slices(len(asked), ROWS_AT_ONCE):
            rows = self.table.standard(asked[part])
            rows[:, conditional.block] = np.nan
            found.append(conditional.shares([law.given(rows) for law in self.laws]))
        return np.concatenate(found)[: len(numbers)]

    def _belief(self, name: str, numbers: np.ndarray) -> Any:
        column, shares = self.table.columns[name], self._shares(name, numbers)
        if column.labels is not None:
            return column.label_belief(shares)
        thresholds: Any = self.conditionals[self.table.place(name)].thresholds
        return Histogram.of(thresholds.edges, shares, thresholds.points)

    def __repr__(self) -> str:
        names = list(self.table.columns)
        shown = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
        return f"FittedDependencyNetwork({len(names)} columns: {shown})"
