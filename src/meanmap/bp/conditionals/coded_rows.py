"""The common part of models of tables: reading rows as numbers with missing values, answering queries, imputing."""

from abc import abstractmethod
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from meanmap.bp.beliefs.beliefs import Beliefs, in_words
from meanmap.bp.beliefs.pages import QueriedPage
from meanmap.bp.conditionals.columns import CodedColumn, CodedTable
from meanmap.bp.evidence.named import are_weights, as_columns, no_likelihood, of_variables
from meanmap.bp.never_together import NeverTogether
from meanmap.bp.rows import RowModel, each_asked
from meanmap.core.arrays import check_lengths
from meanmap.core.door import Door
from meanmap.core.errors import InputError, KindError
from meanmap.core.meant import nearly, no_column_of
from meanmap.core.points import slices
from meanmap.core.synonyms import own_words
from meanmap.core.tables.marks import columns_without_marks
from meanmap.core.tables.missing import take
from meanmap.core.threads import one_blas_thread
from meanmap.core.types import Data, Seed

__all__ = ["ROWS_AT_ONCE", "CodedModel", "CodedRows"]

# Rows are answered this many at a time, because their beliefs take memory.
ROWS_AT_ONCE = 5000


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Rows of a table as numbers.

    Attributes
    ----------
    table : CodedTable
    raw : dict
        The columns that came, as they came, by the names of variables; those that are hidden are left out.
    numbers : dict
        Of each variable (n, width) in its own unit, NaN where nothing is known.
    notes : tuple of str
        What is odd about values.
    single : bool
        Whether it is one row, given as single values.
    fixed : names
        Which of these are set by intervention, not observed.
    """

    table: CodedTable
    raw: Mapping[Hashable, Any]
    numbers: Mapping[Hashable, np.ndarray]
    size: int
    notes: tuple[str, ...]
    single: bool = False
    fixed: Collection[Hashable] = ()

    @classmethod
    def of(
        cls, table: CodedTable, columns: Mapping[str, Any], argument: str, hidden: Collection[Hashable] = ()
    ) -> "CodedRows":
        """Code the columns of the variables; some of these may be hidden, and other columns are ignored."""
        known = {name: columns[str(name)] for name in table.columns if str(name) in columns}
        if not known:
            raise no_column_of(argument, columns, table.columns)
        known = columns_without_marks(known, argument, table.marks)
        size = check_lengths({name: len(values) for name, values in known.items()}, argument)
        raw = {name: values for name, values in known.items() if name not in hidden}
        notes = (*table.oddities(raw, argument), *nearly(columns, table.columns, argument))
        return cls(table, raw, table.numbers(raw, size, argument), size, notes)

    def there(self, name: Hashable) -> np.ndarray:
        """The rows in which a variable is known."""
        return ~np.isnan(self.numbers[name][:, 0])

    @cached_property
    def matrix(self) -> np.ndarray:
        """The numbers of all variables side by side, (n, d)."""
        return np.concatenate(list(self.numbers.values()), axis=1)

    def setting(self, fixed: "CodedRows") -> "CodedRows":
        """These rows with the known values of another row imposed."""
        raw, numbers = {**self.raw, **fixed.raw}, {**self.numbers, **{name: fixed.numbers[name] for name in fixed.raw}}
        return replace(self, raw=raw, numbers=numbers, notes=(*self.notes, *fixed.notes), fixed=tuple(fixed.raw))

    def kept(self, name: Hashable, drawn: np.ndarray) -> np.ndarray:
        """Draws (rows, n) of a variable with what came where it is known."""
        there = np.flatnonzero(self.there(name))
        if not len(there):
            return drawn
        told = np.asarray(self.table.columns[name].seen(take(self.raw[name], there), "evidence"))
        drawn = drawn.astype(np.result_type(drawn, told))
        drawn[there] = told[:, None]
        return drawn


class CodedModel(QueriedPage, RowModel):
    """A model of the rows of a `CodedTable`."""

    if TYPE_CHECKING:
        table: CodedTable
        apart: NeverTogether

    @property
    def columns(self) -> Mapping[Hashable, CodedColumn]:
        """The code of each variable."""
        return self.table.columns

    @one_blas_thread()
    @own_words
    def query(
        self, evidence: Data | None = None, targets: Iterable[Hashable] | None = None, *, rng: Seed = None
    ) -> Beliefs[Any]:
        """Beliefs about variables, given observed values of others.

        Parameters
        ----------
        evidence : mapping from names to values, row of a table, or table with a row for each query
            Observed values: a number, a label, a time. B values are B queries at once, and single ones are repeated for
            all of them. Functions and other likelihoods are refused: ask about each value, and average the answers,
            weighted by its likelihood times its probability. Other columns of a table, or of a row such as
            `table.iloc[0]`, are ignored.
        targets : names, optional
            All other variables unless given.
        rng : None, int, Generator or JAX key
            Makes the draws of a `BayesianNetwork` reproducible.

        Returns
        -------
        Beliefs
            `.mean()`, `.quantile(q)`, `.density(grid)`, `.sample(n, rng)` of numbers, `.probabilities()` of labels;
            `beliefs.report` says how they were computed.

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
        cells, notes = of_variables(evidence, self.table.columns)
        columns, sizes = as_columns(cells)
        known = self._known(columns, "evidence", not sizes, notes)
        found = self._told(known, self._targets(targets, known.raw), rng)
        return replace(found, given=in_words(cells if isinstance(cells, Mapping) else dict.fromkeys(known.raw)))

    def _told(self, asked: CodedRows, names: tuple[Hashable, ...], rng: Seed) -> Beliefs[Any]:
        apart = self.apart.notes(self.table.codes(asked.numbers))
        return super()._told(replace(asked, notes=(*asked.notes, *apart)), names, rng)

    def _answers_of_page(self, evidence: Mapping[Any, Any], targets: Any = None) -> Any:
        return self.query(evidence, targets, rng=0)

    def _times_of_page(self) -> Collection[Any]:
        return [name for name, each in self.table.columns.items() if each.column.kind in ("time", "duration")]

    def _known(self, columns: Mapping[Any, Any], argument: str, single: bool, notes: tuple[str, ...]) -> CodedRows:
        """Columns of evidence as numbers; labels that were never seen are refused."""
        unmarked = columns_without_marks(columns, argument, self.table.marks)
        raw = {self._called(name): values for name, values in unmarked.items()}
        for name, values in raw.items():
            labels = self.table.columns[name].labels
            if labels is not None and are_weights(values, labels):
                raise no_likelihood(np.asarray(values), f"{argument}[{name!r}]")
            self.table.columns[name].check_known(values, argument, name)
        size = len(next(iter(raw.values()), [None]))
        numbers = self.table.numbers(raw, size, argument)
        return CodedRows(self.table, raw, numbers, size, (*self.table.oddities(raw, argument), *notes), single)

    def _targets(self, targets: Iterable[Hashable] | None, known: Collection[Hashable]) -> tuple[Hashable, ...]:
        """The targets, by default whatever is not known."""
        if targets is None:
            left = tuple(name for name in self.table.columns if name not in known)
            if not left:
                raise InputError("every variable has a value: none is left to ask about. Leave out what is not known.")
            return left
        chosen = each_asked(targets, self._called)
        twice = next((name for name in chosen if name in known), None)
        if twice is not None:
            raise InputError(f"{twice!r} is a target and also given; expected one or the other.")
        return chosen

    def _asked(self, columns: Mapping[str, Any], argument: str, hidden: Collection[Hashable], door: Door) -> CodedRows:
        return CodedRows.of(self.table, columns, argument, hidden)

    def _single(
        self, evidence: Data | None, door: Door | None = None, argument: str = "evidence", whole: bool = False
    ) -> CodedRows:
        cells, notes = of_variables(evidence, self.table.columns, argument, whole)
        columns, sizes = as_columns(cells, argument)
        for name, number in sizes.items():
            if number != 1 or not whole:
                raise KindError(f"{argument}[{name!r}] has {number} values; expected a single one.")
        return self._known(columns, argument, True, notes)

    def _best(self, asked: CodedRows, rng: Seed) -> Iterator[tuple[Hashable, np.ndarray, np.ndarray]]:
        for part in slices(asked.size, ROWS_AT_ONCE):
            gaps = {name: part.start + np.flatnonzero(~asked.there(name)[part]) for name in asked.raw}
            for name, belief in self._in_rows(asked, {name: rows for name, rows in gaps.items() if len(rows)}, rng):
                column = self.table.columns[name]
                if column.labels is not None:
                    yield name, gaps[name], belief.mode()
                else:
                    means = np.clip(belief.mean(), *column.limits)
                    yield name, gaps[name], column.in_cells(column.given(column.settled(means)))

    @abstractmethod
    def _in_rows(
        self, asked: CodedRows, wanted: Mapping[Hashable, np.ndarray], rng: Seed
    ) -> Iterable[tuple[Hashable, Any]]:
        """The belief about each variable in some of the rows."""
