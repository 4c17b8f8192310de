"""Methods of every table model for rows with any missing cells: impute, predict, score, sample, query."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from meanmap.bp.beliefs.beliefs import Beliefs
from meanmap.core.containers import given_back, handed_over
from meanmap.core.door import Door
from meanmap.core.errors import ColumnError, KindError
from meanmap.core.notes import warn_of
from meanmap.core.pieces.row_by_row import filled_by_partition, number_by_partition, refuse_beliefs
from meanmap.core.report import Report
from meanmap.core.rng import Rng
from meanmap.core.settings import whole_number
from meanmap.core.tables.filling import columns_of, filled
from meanmap.core.tables.table import named_columns
from meanmap.core.types import Data, Seed
from meanmap.core.values import entries_of

__all__ = ["RowModel", "each_asked"]

T = TypeVar("T")


class RowModel(ABC):
    """A model fitted to a table, which answers for every row of another from the cells that are observed.

    A model gives four functions of rows that it has read: beliefs, the best values of gaps, densities, and draws.
    Unusual values, and values with few data behind them, lead to a note in the report with the number of rows, or to a
    warning if there is no report; in `score`, to a low density.
    """

    @filled_by_partition
    def impute(self, frame: Data, *, draws: int | None = None, rng: Seed = None) -> Any:
        """The table with its missing cells filled in: means of numbers, the most probable labels.

        Floats keep their precision. Where all numbers that were learned are whole, the nearest whole number, not below
        0 if none was; with kinds={"age": "number"} in `fit` it is the mean. Types of whole numbers that may be missing
        stay. Numbers are filled in with the sign that all had, and between 0 and 1 where all were.

        Parameters
        ----------
        frame : table
            As `fit` takes it: a DataFrame, a mapping from names to columns, or an (n, d) array. Any cells may be
            missing, each row its own; columns that are not variables of the model are unchanged.
        draws : int, optional
            The number of tables to draw instead, each imputed jointly by a network fitted to resampled rows;
            `bp.pooled` pools what is computed from them, and says what to do where gaps may not be at random. Of a
            `DependencyNetwork`; 20 are usual.
        rng : None, int, Generator or JAX key
            Seed of `draws`, and of those of a `BayesianNetwork`, which are the same for every row, so that equal rows
            are imputed equally.

        Returns
        -------
        table, or list of tables
            Copies, of the same type. Of other tables that are read as a stream of Arrow these are frames of polars, and
            so they are of relations of DuckDB where pyarrow is missing; of a frame of Dask it is one of Dask, filled in
            when it is computed.

        Notes
        -----
        For intervals and draws use `predict` and `sample`. Rows of a `KernelGraph` go through two passes together:
        10,000 of 20 columns, learned from 1000, were measured to take 3 processor seconds. A `DependencyNetwork` learns
        a regression in a tenth to half a second where it first meets a pattern of at most three known columns; tables
        of `draws` have one regression per column. Each row of a `BayesianNetwork` is a query of a thousand draws: one
        to four milliseconds where only effects or labels are missing, about six where draws of a cause are weighed by
        numbers that were seen, up to sixteen times as long where these are improbable.

        Examples
        --------
        >>> import numpy as np
        >>> import meanmap as mm
        >>> rng = np.random.default_rng(0)
        >>> a = rng.normal(size=300)
        >>> b = a**2 + 0.1 * rng.normal(size=300)
        >>> model = mm.KernelGraph([("a", "b")]).fit({"a": a, "b": b})
        >>> model.impute({"a": [1.0, 0.0], "b": [np.nan, 0.1]})["b"].round(1).tolist()
        [1.0, 0.1]
        """
        tables = None if draws is None else whole_number(draws, "draws")
        found: dict[Hashable, list[tuple[np.ndarray, np.ndarray]]] = {}
        came, frame = frame, handed_over(frame)
        with Door() as door:
            asked = self._asked(columns_of(frame), "frame", (), door)
            warn_of(asked.notes)
            if tables is not None:
                drawn = self._drawn_gaps(asked, tables, Rng.of(rng).generator)
                return [given_back(came, filled(frame, each)) for each in drawn]
            for name, *each in self._best(asked, rng):
                found.setdefault(name, []).append((each[0], each[1]))
            together = {name: tuple(map(np.concatenate, zip(*each, strict=True))) for name, each in found.items()}
            return given_back(came, filled(frame, {name: (rows, values) for name, (rows, values) in together.items()}))

    def predict(self, frame: Data, targets: Iterable[Hashable], *, rng: Seed = None) -> Beliefs[Any]:
        """Beliefs about some variables in every row of a table, from the other cells that are there.

        Parameters
        ----------
        frame : table
            As of `impute`. Columns of the targets, if there are any, are ignored.
        targets : names
            Variables of the model.
        rng : None, int, Generator or JAX key
            As of `impute`.

        Returns
        -------
        Beliefs
            One for each row: of numbers (of times, seconds) with `.mean()`, `.quantile(q)`, `.density(grid)`,
            `.sample(n, rng)`, whole of whole numbers; of labels with `.probabilities()` and `.mode()`.

        Examples
        --------
        >>> import numpy as np
        >>> import meanmap as mm
        >>> rng = np.random.default_rng(0)
        >>> a = rng.normal(size=300)
        >>> table = {"a": a, "b": a**2 + 0.1 * rng.normal(size=300), "c": np.where(a > 0, "up", "down")}
        >>> model = mm.KernelGraph([("a", "b"), ("a", "c")]).fit(table)
        >>> beliefs = model.predict({"b": [4.0, np.nan], "c": ["up", "down"]}, targets=["a"])
        >>> beliefs["a"].mean().round(0).tolist()
        [2.0, -1.0]
        """
        refuse_beliefs(frame)
        names = each_asked(targets, self._called)
        with Door() as door:
            asked = self._asked(columns_of(frame), "frame", names, door)
            return self._told(asked, names, rng)

    @number_by_partition
    def score(self, frame: Data) -> np.ndarray:
        """The logarithm of the density of each row under the model, of the cells that are there.

        Larger is better, on rows that the model was not learned from. Of labels it is the logarithm of their
        probability, in a `BayesianNetwork` and a `DependencyNetwork` also of numbers that many rows have, such as the
        zeros of costs. Whole or rounded numbers, also such zeros among them, have the logarithm of the probability of
        all that is rounded to the same number, divided by the step: over multiples of .5 exp(score) adds up to 2, over
        whole numbers to 1.
        A row without any cell has 0.

        Parameters
        ----------
        frame : table
            As of `impute`, of numbers, vectors and labels.

        Returns
        -------
        array (n,)
            Of a frame of Dask an array of Dask.

        Notes
        -----
        A `KernelGraph` takes the density of each cell given those before it in a walk from the root, of whole numbers,
        too, over which densities add up to more than 1: compare its scores only with those of other kernel graphs. A
        `DependencyNetwork` takes that given those in the columns before it; there, of numbers with at most 20 values it
        is the logarithm of their probability, too, and one row in n + 1 is kept for all other numbers, less the farther
        these are. Both densities are mixed with 1e-4 of one that falls with the square of the distance from all rows:
        far away scores are low, not −inf. A `BayesianNetwork` does the same with the density of each number given its
        parents, and reserves the probability of one row for values of rounded numbers that no row has. It takes the sum
        over all that missing labels may be, where these are few, else a mean over 1000 draws of what is missing and
        acts on what is there, the same for all rows, which is a little too low where much of that was seen.

        In networks, an unseen label has the share of rows whose label occurred once, at least that of one row, and the
        others share the rest (Good 1953); a `KernelGraph` refuses unseen labels.

        Examples
        --------
        >>> import numpy as np
        >>> import meanmap as mm
        >>> rng = np.random.default_rng(0)
        >>> a = rng.normal(size=300)
        >>> model = mm.KernelGraph([("a", "b")]).fit({"a": a, "b": a**2 + 0.1 * rng.normal(size=300)})
        >>> usual, odd = model.score({"a": [1.0, 1.0], "b": [1.0, 3.0]})
        >>> bool(usual > odd + 1)
        True
        """
        with Door() as door:
            return self._scores(self._asked(columns_of(frame), "frame", (), door))

    def sample(self, n: int, evidence: Data | None = None, *, rng: Seed = None) -> dict[Hashable, Any]:
        """Joint draws of all variables, given values of some.

        Parameters
        ----------
        n : int
            The number of draws.
        evidence : mapping from names to values, row of a table, or table, optional
            Single values, or a column for each variable that may miss cells: `n` draws for every row.
        rng : None, int, Generator or JAX key
            Seed of the draws.

        Returns
        -------
        dict
            A column (n,) for each variable, (rows, n) for a table of evidence.

        Examples
        --------
        >>> import numpy as np
        >>> import meanmap as mm
        >>> rng = np.random.default_rng(0)
        >>> a = rng.normal(size=300)
        >>> model = mm.KernelGraph([("a", "b")]).fit({"a": a, "b": a**2 + 0.1 * rng.normal(size=300)})
        >>> drawn = model.sample(500, {"b": 1.0}, rng=0)
        >>> drawn["a"].shape, bool(abs(np.abs(drawn["a"]).mean() - 1) < 0.2)
        ((500,), True)
        """
        with Door() as door:
            if evidence is None or _is_row(evidence):
                return self._sampled(self._single(evidence, door), n, rng, True)
            columns = columns_of(evidence, "evidence")
            return self._sampled(self._asked(columns, "evidence", (), door), n, rng, False)

    def _drawn_gaps(
        self, asked: Any, tables: int, random: np.random.Generator
    ) -> Iterable[dict[Hashable, tuple[np.ndarray, np.ndarray]]]:
        """Rows and values of the gaps of each column, as many times: each by what other rows might have taught."""
        raise KindError(
            f"{type(self).__name__} is a single fit, and draws from it would be overconfident; expected draws=None, or "
            "mm.bp.DependencyNetwork().fit(table).impute(table, draws=20)."
        )

    def _sampled(self, asked: Any, n: int, rng: Seed, single: bool) -> dict[Hashable, Any]:
        """Draws of all variables in the rows that are asked about, or in the only one."""
        warn_of(asked.notes)
        drawn = self._draws(asked, whole_number(n, "n"), Rng.of(rng).generator)
        return {name: column[0] if single else column for name, column in drawn.items()}

    def _told(self, asked: Any, names: tuple[Hashable, ...], rng: Seed) -> Beliefs[Any]:
        """Beliefs about some variables in all rows that are asked about."""
        beliefs, report = self._answers(asked, names, rng)
        return Beliefs(names, beliefs, replace(report, notes=(*report.notes, *asked.notes)))

    @abstractmethod
    def _called(self, name: Hashable) -> Hashable:
        """The model's name of a variable; others are refused."""

    @abstractmethod
    def _asked(self, columns: Mapping[str, Any], argument: str, hidden: Collection[Hashable], door: Door) -> Any:
        """Rows of a table, read, with some variables hidden; columns that are no variable are not looked at."""

    @abstractmethod
    def _single(self, evidence: Data | None, door: Door) -> Any:
        """Single values by name, read as one row."""

    @abstractmethod
    def _answers(self, asked: Any, names: tuple[Hashable, ...], rng: Seed) -> tuple[dict[Hashable, Any], Report]:
        """The belief about each name in all rows."""

    @abstractmethod
    def _best(self, asked: Any, rng: Seed) -> Iterator[tuple[Hashable, np.ndarray, np.ndarray]]:
        """Values for missing cells, some columns at a time: the name, the rows (m,), and the values, (m, ...)."""

    @abstractmethod
    def _scores(self, asked: Any) -> np.ndarray:
        """The logarithm of the density of each row, (B,)."""

    @abstractmethod
    def _draws(self, asked: Any, n: int, random: np.random.Generator) -> dict[Hashable, np.ndarray]:
        """Draws (B, n) of every variable."""


def _is_row(evidence: Data) -> bool:
    """Whether evidence is a single row: a mapping of single values, or a row of a table."""
    table = not isinstance(evidence, Mapping) and named_columns(evidence, "evidence")
    cells = None if table else entries_of(evidence)
    return cells is not None and not any(map(_is_column, cells.values()))


def _is_column(value: Any) -> bool:
    """Whether evidence about a variable comes for many rows."""
    return not isinstance(value, str) and np.ndim(value) > 0


def each_asked(targets: Iterable[Any], called: Callable[[Any], T]) -> tuple[T, ...]:
    """What each of the names that beliefs are asked about is `called`; one name that is no list is refused, as its
    letters would be read as names.
    """
    try:
        return tuple(map(called, targets))
    except ColumnError as error:
        if isinstance(targets, str):
            raise KindError(f"targets is {targets!r}; expected a list of names: targets=[{targets!r}].") from error
        raise
