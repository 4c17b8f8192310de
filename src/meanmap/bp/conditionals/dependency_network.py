"""Tables of numbers and labels: every column given whatever else is there."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.bp.beliefs.beliefs import Beliefs
from meanmap.bp.beliefs.densities import pick
from meanmap.bp.beliefs.histogram import Histogram
from meanmap.bp.beliefs.label_belief import LabelBelief
from meanmap.bp.conditionals.column_conditional import ColumnConditional
from meanmap.bp.conditionals.columns import CodedColumn
from meanmap.bp.conditionals.joint_normal import JointNormal
from meanmap.core.door import Door
from meanmap.core.errors import EmptyError, InputError, ShapeError
from meanmap.core.points import spread_rows
from meanmap.core.progress import track
from meanmap.core.report import Report
from meanmap.core.rng import Rng
from meanmap.core.settings import whole_number
from meanmap.core.tables.filling import columns_of, filled
from meanmap.core.types import Data, Seed
from meanmap.kernels.reading import read_points
from meanmap.learning.default import kernel_for

__all__ = ["DependencyNetwork", "FittedDependencyNetwork"]

# Learned from up to so many rows; of fewer each stands several times, with other cells missing each time.
MOST_ROWS, ROWS_WITH_GAPS, MOST_TIMES = 4000, 1500, 4
LEAST_ROWS = 10
PARTS = 3
# Where a table has gaps of its own, this share of the rows that are learned from have gaps like those.
LIKE_ITS_OWN = 0.75


class DependencyNetwork:
    """Every column of a table given whatever is known of the others: for tables to be filled in, predicted, scored.

    `model = mm.bp.DependencyNetwork().fit(table)` learns, `model.impute(frame)` fills in. Where `mm.KernelGraph` learns
    relations along the edges of a tree, here each column has a regression on all others at once. More is known so where
    many columns matter; there is no graph to look at, and answers about several columns need not agree exactly.

    Parameters
    ----------
    regressions : sequence of scikit-learn regressors, optional
        Any that average training rows: forests, trees, nearest neighbours. Their weights are conditional operators. By
        default extremely randomised trees and ten nearest neighbours. All are used; what each counts is chosen for each
        column by the continuous ranked probability score of held-out rows.

    Notes
    -----
    Heckerman et al. (2000) learn such a network for labels. Forests are conditional distributions by Meinshausen
    (2006); beliefs are stacked as by Yao et al. (2018). Each training row is seen several times, with cells hidden, so
    that one regression serves all patterns of gaps. Learned from up to 4000 rows.

    Examples
    --------
    >>> import numpy as np
    >>> import meanmap as mm
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(2, 300))
    >>> table = {"a": a, "b": b, "c": a * b + 0.1 * rng.normal(size=300)}
    >>> model = mm.bp.DependencyNetwork().fit(table)
    >>> low, high = model.predict({"a": [1.0, -1.0], "b": [1.0, 1.0]}, targets=["c"])["c"].mean()
    >>> bool(low > 0.5), bool(high < -0.5)
    (True, True)
    """

    def __init__(self, regressions: Sequence[Any] | None = None):
        self.regressions = regressions

    def fit(self, data: Data) -> "FittedDependencyNetwork":
        """Learn from a table of numbers, labels, truth values and times; cells may be missing.

        Parameters
        ----------
        data : table
            A DataFrame, a mapping from names to columns, or an (n, d) array.

        Returns
        -------
        FittedDependencyNetwork
            Always the same for the same table.

        Notes
        -----
        For d columns of n rows 3 d times the cost of each regression, and O(n d³).
        """
        raw = columns_of(data, "data")
        coded, numbers = {}, []
        for name, values in raw.items():
            coded[name], each = CodedColumn.of(name, values)
            numbers.append(each)
        lengths = {name: len(each) for name, each in zip(coded, numbers, strict=True)}
        if len(set(lengths.values())) > 1:
            raise ShapeError(f"the columns of data differ in length: {lengths}.")
        if len(coded) < 2:
            raise ShapeError(f"data has the one column {next(iter(coded))!r}; expected at least two.")
        rows = np.concatenate(numbers, axis=1)
        rows = rows[spread_rows(len(rows), MOST_ROWS)]
        network = FittedDependencyNetwork(coded, _laws(rows), ())
        regressions = _default() if self.regressions is None else list(self.regressions)
        learned = [
            _learned(rows, network.blocks, j, network.laws, regressions)
            for j in track(range(len(coded)), "learning columns")
        ]
        return FittedDependencyNetwork(coded, network.laws, tuple(learned))


@dataclass(frozen=True, eq=False)
class FittedDependencyNetwork:
    """A `DependencyNetwork` that has learned, ready for tables.

    Attributes
    ----------
    columns : dict
        How each column is read.
    laws : tuple
        A joint normal law of all columns for each part of the rows, learned without it.
    conditionals : tuple
        For each column what it is given the others; `.mixture` is what each of its beliefs counts.
    """

    columns: Mapping[str, CodedColumn]
    laws: tuple[JointNormal, ...]
    conditionals: tuple[ColumnConditional, ...]

    @property
    def blocks(self) -> tuple[slice, ...]:
        """The columns of numbers that stand for each variable."""
        ends = np.cumsum([column.width for column in self.columns.values()])
        return tuple(slice(int(e - c.width), int(e)) for e, c in zip(ends, self.columns.values(), strict=True))

    def impute(self, frame: Data) -> Any:
        """The table with its missing cells filled in: means of numbers, the most probable labels.

        Parameters
        ----------
        frame : table
            As `fit` takes it. Columns that were not learned stay as they are.

        Returns
        -------
        table
            A copy, of the same type.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> a = rng.normal(size=200)
        >>> model = DependencyNetwork().fit({"a": a, "b": a + 0.1 * rng.normal(size=200)})
        >>> model.impute({"a": [1.0, 0.5], "b": [np.nan, 0.4]})["b"].round(1).tolist()
        [1.0, 0.4]
        """
        rows, found = self._read(frame, "frame"), {}
        there = columns_of(frame)
        for name, block in zip(self.columns, self.blocks, strict=True):
            missing = np.flatnonzero(np.isnan(rows[:, block.start]))
            if name in there and len(missing):
                belief: Any = self._belief(name, rows[missing])
                label = self.columns[name].labels is not None
                found[name] = missing, belief.mode() if label else self._in_unit(name, belief.mean())
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
        >>> rng = np.random.default_rng(0)
        >>> a = rng.normal(size=200)
        >>> model = DependencyNetwork().fit({"a": a, "b": np.where(a > 0, "up", "down")})
        >>> beliefs = model.predict({"a": [1.0, -1.0]}, targets=["b"])
        >>> beliefs["b"].mode().tolist()
        ['up', 'down']
        """
        names = [str(name) for name in targets]
        for name in names:
            self._column(name)
        rows = self._read(frame, "frame", set(names))
        return Beliefs(
            tuple(names), {name: self._belief(name, rows) for name in names}, Report("one regression", True, 1)
        )

    def score(self, frame: Data) -> np.ndarray:
        """The logarithm of the density of each row, of the cells that are there: larger is better on new rows.

        Each cell is judged given those in the columns before it (the chain rule); of labels it is the logarithm of
        their probability.

        Parameters
        ----------
        frame : table
            As `fit` takes it.

        Returns
        -------
        array (n,)

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> a = rng.normal(size=200)
        >>> model = DependencyNetwork().fit({"a": a, "b": a + 0.1 * rng.normal(size=200)})
        >>> usual, odd = model.score({"a": [1.0, 1.0], "b": [1.0, -1.0]})
        >>> bool(usual > odd + 1)
        True
        """
        rows = self._read(frame, "frame")
        total = np.zeros(len(rows))
        for name, before, there, block in self._in_turn(rows):
            if not there.any():
                continue
            shares = self._shares(name, before[there])
            values, column = rows[there, block], self.columns[name]
            if column.labels is not None:
                chance = np.sum(shares * values, axis=1)
            else:
                at = self.conditionals[list(self.columns).index(name)].at
                place = np.clip(np.searchsorted(at, values[:, 0], side="right") - 1, 0, len(at) - 2)
                chance = np.take_along_axis(shares, place[:, None], 1)[:, 0] / np.diff(at)[place] / column.scale
                chance = np.where((values[:, 0] < at[0]) | (values[:, 0] > at[-1]), 0.0, chance)
            with np.errstate(divide="ignore"):
                total[there] += np.log(chance)
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
        >>> rng = np.random.default_rng(0)
        >>> a = rng.normal(size=200)
        >>> model = DependencyNetwork().fit({"a": a, "b": a + 0.1 * rng.normal(size=200)})
        >>> drawn = model.sample(100, {"a": 1.0}, rng=0)
        >>> set(drawn["a"].tolist()), bool(abs(drawn["b"].mean() - 1) < 0.15)
        ({1.0}, True)
        """
        n, random = whole_number(n, "n"), Rng.of(rng).generator
        single = evidence is None or (
            isinstance(evidence, Mapping)
            and not any(np.ndim(v) > 0 and not isinstance(v, str) for v in evidence.values())
        )
        if single:
            known = {name: [value] for name, value in (evidence or {}).items()}
            for name in known:
                self._column(name)
            rows = self._read(known, "evidence") if known else np.full((1, self.blocks[-1].stop), np.nan)
        else:
            rows = self._read(evidence, "evidence")
        rows = np.repeat(rows, n, axis=0)
        result = {}
        for (name, column), block in zip(self.columns.items(), self.blocks, strict=True):
            gaps = np.isnan(rows[:, block.start])
            if gaps.any():
                shares = self._shares(name, rows[gaps])
                chosen = pick(shares, 1, random)[:, 0]
                if column.labels is not None:
                    rows[gaps, block] = np.eye(column.width)[chosen]
                else:
                    at = self.conditionals[list(self.columns).index(name)].at
                    rows[gaps, block.start] = at[chosen] + np.diff(at)[chosen] * random.random(len(chosen))
            values = (
                column.back(rows[:, block.start]) if column.labels is None else column.labels[rows[:, block].argmax(1)]
            )
            result[name] = values if single else values.reshape(-1, n)
        return result

    def _in_turn(self, rows: np.ndarray) -> Iterator[tuple[str, np.ndarray, np.ndarray, slice]]:
        """Each column with the rows as they were before it was seen, and which of its cells are there."""
        before = np.full(rows.shape, np.nan)
        for name, block in zip(self.columns, self.blocks, strict=True):
            yield name, before, ~np.isnan(rows[:, block.start]), block
            before[:, block] = rows[:, block]

    def _read(self, frame: Data, argument: str, hidden: Iterable[str] = ()) -> np.ndarray:
        """Rows as numbers (n, d), NaN where nothing is known."""
        raw = columns_of(frame, argument)
        known = {name: values for name, values in raw.items() if name in self.columns}
        if not known:
            shown = ", ".join(map(repr, list(self.columns)[:10]))
            raise InputError(f"{argument} has no column of the model; expected some of {shown}.")
        lengths = {name: len(values) for name, values in known.items()}
        if len(set(lengths.values())) > 1:
            raise ShapeError(f"the columns of {argument} differ in length: {lengths}.")
        rows = np.full((next(iter(lengths.values())), self.blocks[-1].stop), np.nan)
        for (name, column), block in zip(self.columns.items(), self.blocks, strict=True):
            if name in known and name not in hidden:
                rows[:, block] = column.read(known[name], argument)
        return rows

    def _column(self, name: Hashable) -> CodedColumn:
        if str(name) not in self.columns:
            shown = ", ".join(map(repr, list(self.columns)[:10]))
            raise InputError(f"the model has no column {name!r}; it has {shown}.")
        return self.columns[str(name)]

    def _shares(self, name: str, rows: np.ndarray) -> np.ndarray:
        """Probabilities of the bins of a number, or of labels, (m, ...), from rows in which it is hidden."""
        conditional = self.conditionals[list(self.columns).index(name)]
        rows = rows.copy()
        rows[:, conditional.block] = np.nan
        found = conditional([law.given(rows) for law in self.laws])
        if self.columns[name].labels is None:
            found = np.diff(np.concatenate([np.zeros((len(rows), 1)), found[:, 1:-1], np.ones((len(rows), 1))], axis=1))
        found = np.maximum(found, 0.0)
        return found / found.sum(axis=1, keepdims=True)

    def _belief(self, name: str, rows: np.ndarray) -> Any:
        column, shares = self._column(name), self._shares(name, rows)
        if column.labels is not None:
            with Door() as door:
                kernel = kernel_for(column.labels)
                points = read_points(kernel, column.labels, "labels", door)
            return LabelBelief(kernel, points, shares, tuple(column.labels.tolist()))
        at = self.conditionals[list(self.columns).index(name)].at
        edges = column.centre + column.scale * at
        return Histogram(edges, shares, (edges[1:] + edges[:-1]) / 2, np.diff(edges) ** 2 / 12)

    def _in_unit(self, name: str, values: np.ndarray) -> np.ndarray:
        """Means as the table has them: times as times."""
        column = self.columns[name]
        return column.back((values - column.centre) / column.scale)

    def __repr__(self) -> str:
        return f"FittedDependencyNetwork({len(self.columns)} columns: {', '.join(list(self.columns)[:10])})"


def _default() -> list[Any]:
    from sklearn.ensemble import ExtraTreesRegressor
    from sklearn.neighbors import KNeighborsRegressor

    forest = ExtraTreesRegressor(40, min_samples_leaf=5, max_features=0.5, random_state=0)
    return [forest, KNeighborsRegressor(10)]


def _parts_of(rows: np.ndarray) -> np.ndarray:
    """The part (n,) of each row, always the same."""
    return np.random.default_rng(0).permutation(len(rows)) % PARTS


def _laws(rows: np.ndarray) -> tuple[JointNormal, ...]:
    if len(rows) < LEAST_ROWS:
        raise EmptyError(f"data has {len(rows)} rows; expected at least {LEAST_ROWS}.")
    part = _parts_of(rows)
    return tuple(JointNormal.fit(rows[part != p]) for p in range(PARTS))


def _learned(
    rows: np.ndarray, blocks: Sequence[slice], j: int, laws: Sequence[JointNormal], regressions: Sequence[Any]
) -> ColumnConditional:
    """One column given the others, from rows in which cells are hidden at random."""
    random, part = np.random.default_rng(j), _parts_of(rows)
    have = np.flatnonzero(~np.isnan(rows[:, blocks[j].start]))
    if len(have) < LEAST_ROWS:
        raise EmptyError(f"column {j} of data has {len(have)} values; expected at least {LEAST_ROWS}.")
    chosen = np.repeat(have, int(np.clip(ROWS_WITH_GAPS // len(have), 1, MOST_TIMES)))
    gaps = np.isnan(rows[:, [block.start for block in blocks]])
    hidden = random.random((len(chosen), len(blocks))) < random.random((len(chosen), 1)) ** 2
    if gaps.any():
        like = random.random(len(chosen)) < LIKE_ITS_OWN
        hidden[like] = gaps[random.integers(0, len(rows), int(like.sum()))]
    wide = np.repeat(hidden, [block.stop - block.start for block in blocks], axis=1)
    masked = np.where(wide, np.nan, rows[chosen])
    return ColumnConditional.fit(blocks[j], masked, rows[chosen][:, blocks[j]], part[chosen], laws, regressions)
