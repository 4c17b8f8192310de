"""The variables of a conditional test as numeric columns: standardised numbers, and an indicator for each label.

Conditioning on z as a number or as a label is the same hypothesis, since both contain all of z. Only the functions that
regressions can fit differ. A column of z whose values repeat (sites, years, counts, grades) is therefore used as both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from meanmap.core.arrays import check_rows, plain
from meanmap.core.containers import refuse_sparse
from meanmap.core.errors import ColumnError, EmptyError
from meanmap.core.exact import check_exact
from meanmap.core.held import holds_labels
from meanmap.core.objects import check_cells
from meanmap.core.pieces.sources import comes_in_pieces
from meanmap.core.tables.codes import ROWS_A_LABEL, if_codes
from meanmap.core.tables.column import middle_units
from meanmap.core.tables.kinds import is_text
from meanmap.core.tables.order import tied_ranks
from meanmap.core.tables.sentinels import Sentinels
from meanmap.core.tables.table import Table, named_columns, table_in
from meanmap.core.types import Data
from meanmap.core.values import Value
from meanmap.stats.settings import LEAST_POINTS

__all__ = [
    "MOST_VALUES",
    "ROWS_A_LABEL",
    "TOO_MANY",
    "Variable",
    "VariableReading",
    "check_given",
    "holds_texts",
    "read_given",
    "read_variable",
    "table_of",
]

# Beyond this many robust standard deviations from the median only the logarithm of the distance counts. One-to-one
# functions of columns do not change the hypothesis, and one value as far away as 10⁶ would dominate a regression.
FAR = 20.0
# A column duplicates another one if the latter explains all but this share of its variance.
COPY = 1e-12
# Beyond this many robust standard deviations a value may be a code for a missing one.
WILD = 1000.0
# Indicators of repeated numbers are added while there are at least this many rows for each column, so that regressions
# are never refused because of them. There are at most this many, which some thousand rows can still estimate.
ROWS_A_COLUMN, MOST_VALUES = 5, 200
TOO_MANY = "these are too many to treat each as a label"
# Repeated values are first looked for in this many rows.
SOME_ROWS = 2000


@dataclass(frozen=True)
class Variable:
    """One variable of a test as numeric columns.

    Attributes
    ----------
    numbers : array (n, a)
        Its numeric columns, standardised, so that their units do not matter.
    scales : array (a,)
        Their standard deviations.
    indicators : array (n, b)
        One centred column of zeros and ones for each label. Rows with different labels are √2 apart, as two typical
        rows of a standardised number are.
    notes : tuple of str
        A sentence for each column that was left out because it is constant, and for each numeric one with a value very
        far from all others.
    doubled : int
        The number of indicators of values of the numbers, which come last.
    """

    numbers: np.ndarray
    scales: np.ndarray
    indicators: np.ndarray
    notes: tuple[str, ...] = ()
    doubled: int = 0

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def columns(self) -> np.ndarray:
        """Numbers and indicators side by side."""
        return np.concatenate([self.numbers, self.indicators], axis=1)

    @property
    def single(self) -> int:
        """The number of columns without the indicators of numbers, which come last."""
        return self.numbers.shape[1] + self.indicators.shape[1] - self.doubled

    def within(self, strata: np.ndarray) -> "Variable":
        """The variable together with the strata of the rows, as labels."""
        own, again = np.split(self.indicators, [self.indicators.shape[1] - self.doubled], axis=1)
        return replace(self, indicators=np.concatenate([own, _indicators(strata, *_labels(strata)), again], axis=1))

    def rows(self, index: np.ndarray) -> "Variable":
        """Some of the rows."""
        return replace(self, numbers=self.numbers[index], indicators=self.indicators[index])


@dataclass(frozen=True, eq=False, repr=False)
class VariableReading(Value):
    """How rows of a variable become numeric columns, as determined from a sample.

    Attributes
    ----------
    numbers : tuple of str
        Columns of numbers, in order.
    labels : dict
        The labels of each column of labels, in order, with the share of rows of each. Labels outside the sample have no
        indicator, as if they were all one label. Repeated numbers of a conditioning variable are listed here, too.
    middle, unit : array (a,)
        Median and robust standard deviation of each number; beyond 20 of these only the logarithm counts.
    mean, scale : array (a,)
        Mean and scale for standardising the numbers.
    notes : tuple of str
        The `Variable.notes` of the sample.
    """

    numbers: tuple[str, ...]
    labels: dict[str, tuple[np.ndarray, np.ndarray]]
    middle: np.ndarray
    unit: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, data: Data, argument: str, *, whole: bool = False, given: bool = False
    ) -> tuple["VariableReading", Variable]:
        """The reading determined from a sample, and the variable of the sample.

        Constant columns are left out with a note. They are an error if no other column remains, or if a chosen kernel
        needs the `whole` table. If the variable is `given`, repeated numbers are also treated as labels, and a column
        that repeats an earlier one in another unit is left out.
        """
        refuse_sparse(data, argument)
        table = table_of(data, argument)
        check_rows(len(table), argument, LEAST_POINTS)
        numbers, labels, of, notes = [], {}, [], []
        for name in table.names:
            column = np.asarray(table[name])
            which = f"column {name!r} of {argument}" if len(table.names) > 1 else argument
            if (column == column[0]).all():
                if whole or len(notes) == len(table.names) - 1:
                    raise ColumnError(f"{which} is constant: nothing depends on it. Leave it out.")
                notes.append(f"{which} is constant: nothing depends on it, and it is left out.")
            elif given and (same := _copied(table, name, numbers)) is not None:
                notes.append(f"{which} repeats column {same!r}, perhaps in another unit, and is left out.")
            elif table.is_real(name):
                numbers.append(name)
                of += [which] * (1 if column.ndim == 1 else column.shape[1])
            else:
                labels[name] = _labels(column)
        raw = _numbers(table, numbers, argument)
        if (np.ptp(raw, axis=0) == 0).any():
            raise ColumnError(f"a column of a block in {argument} is constant: nothing depends on it. Leave it out.")
        middle = np.median(raw, axis=0)
        apart = np.abs(raw - middle)
        # Ties with the median carry no information about the spread.
        unit = 1.4826 * np.nanmedian(np.where(apart == 0, np.nan, apart), axis=0)
        unit = np.maximum(unit, middle_units(raw))
        nearer = _drawn_in(raw, middle, unit)
        mean = nearer.mean(axis=0)
        peaks = np.abs(nearer - mean).max(axis=0)
        scale = peaks * ((nearer - mean) / peaks).std(axis=0)  # squares of 1e-300 would vanish
        if given:
            labels, crowded = _repeated(table, numbers, labels, raw.shape[1])
            notes += crowded
        said = (*notes, *_wild(raw, middle, unit, of))
        reading = cls(tuple(numbers), labels, middle, unit, mean, scale, said)
        return reading, reading._variable(table, argument)

    def variable(self, data: Data, argument: str) -> Variable:
        """The variable for other rows of the same columns."""
        return self._variable(table_of(data, argument), argument)

    def read(self, data: Data, argument: str, _door: object = None) -> tuple[np.ndarray, np.ndarray]:
        """Numbers and indicators of other rows."""
        found = self.variable(data, argument)
        return found.numbers, found.indicators

    @property
    def size(self) -> int:
        """The number of columns."""
        return len(self.mean) + sum(len(labels) for labels, _ in self.labels.values())

    def _variable(self, table: Table, argument: str) -> Variable:
        raw = _numbers(table, self.numbers, argument)
        none = np.zeros((len(table), 0))
        coded = [_indicators(np.asarray(table[name]), *known) for name, known in self.labels.items()]
        numbers = (_drawn_in(raw, self.middle, self.unit) - self.mean) / self.scale
        doubled = sum(len(self.labels[name][0]) for name in self.numbers if name in self.labels)
        return Variable(numbers, self.scale, np.concatenate([none, *coded], axis=1), self.notes, doubled)


def _copied(table: Table, name: str, earlier: Sequence[str]) -> str | None:
    """The column of which this one is a copy, up to its unit and rounding; None if there is none."""
    column = np.asarray(table[name])
    if not table.is_real(name) or column.ndim > 1:
        return None
    for other in earlier:
        values = np.asarray(table[other])
        # Ranks must agree, too: a single value very far from all others would by itself make the correlation nearly
        # one.
        if values.ndim == 1 and all(_agree(each(column), each(values)) for each in (np.asarray, tied_ranks)):
            return other
    return None


def _agree(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two columns are linear functions of each other, up to rounding."""
    away = []
    for column in (one, other):
        column = column.astype(float)
        column = column / np.abs(column).max() if column.any() else column
        away.append(column - column.mean())
    (u, v), sizes = away, [float(each @ each) for each in away]
    return bool(sizes[0] * sizes[1] * (1 - COPY) < float(u @ v) ** 2)


def read_variable(data: Data, argument: str, *, whole: bool = False) -> Variable:
    """Numbers, labels or a table of both as numeric columns, read with all rows as the sample."""
    return VariableReading.of(data, argument, whole=whole)[1]


def read_given(data: Data) -> Variable:
    """The conditioning variable: it must not be empty, and repeated numbers are also treated as labels."""
    check_given(data)
    return VariableReading.of(data, "z", given=True)[1]


def check_given(data: object) -> None:
    """Refuse an empty z."""
    if comes_in_pieces(data):
        return
    shape = getattr(data, "shape", None)
    if not data if data is None or isinstance(data, Mapping) else 0 in (shape or plain(data, "z").shape):
        raise EmptyError("z is empty: without a conditioning variable use mm.independence_test(x, y).")


def holds_texts(data: Data) -> bool:
    """Whether a column in memory has nearly as many different texts as rows."""
    arrays = [np.asarray(column) for column in (named_columns(data, "data") or {"": data}).values()]
    return any(a.ndim == 1 and holds_labels(a) and is_text(len(set(a.tolist())), len(a)) for a in arrays)


def _repeats(column: np.ndarray) -> int:
    """The number of values of a numeric column, if enough rows share each for them to be labels; else 0."""
    if column.ndim != 1:
        return 0
    # Some rows are enough to show that values hardly repeat.
    some = column[:: -(-len(column) // SOME_ROWS)]
    if len(np.unique(some)) > len(some) / 2:
        return 0
    distinct = len(np.unique(column))
    return distinct if 2 < distinct <= len(column) / ROWS_A_LABEL else 0


def _repeated(
    table: Table, numbers: Sequence[str], labels: Mapping[str, Any], width: int
) -> tuple[dict[str, Any], list[str]]:
    """The labels, with repeated numbers added from the fewest values on, and notes on numbers with too many values."""
    n, found, notes = len(table), dict(labels), []
    counted = {name: _repeats(np.asarray(table[name])) for name in numbers}
    used, added = 1 + width + sum(len(known) for known, _ in labels.values()), 0
    for name, distinct in sorted(((n, k) for n, k in counted.items() if k), key=lambda each: each[1]):
        if added + distinct <= MOST_VALUES and ROWS_A_COLUMN * (used + distinct) <= n:
            found[name] = _labels(np.asarray(table[name]))
            added, used = added + distinct, used + distinct
        else:
            notes.append(
                f"{f'column {name!r} of z' if len(table.names) > 1 else 'z'} has {distinct} different numbers, each in "
                f"{n / distinct:.0f} rows on average, and {TOO_MANY}: it counts as a number with smooth effects. "
                + if_codes("test x and y by independence_test, with the codes as within=")
            )
    return found, notes


def _numbers(table: Table, names: Sequence[str], argument: str) -> np.ndarray:
    """Columns of numbers side by side."""
    for name in names:
        check_exact(table.columns[name], f"{argument}[{name!r}]", name)
    blocks = [np.asarray(table[name]).reshape(len(table), -1).astype(np.float64) for name in names]
    return np.concatenate([np.zeros((len(table), 0)), *blocks], axis=1)


def _drawn_in(numbers: np.ndarray, middle: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Numbers, with those far from the median moved nearer to it without changing their order."""
    apart, times = numbers - middle, _times(numbers, middle, unit)
    return np.where(times > FAR, middle + np.sign(apart) * unit * (FAR + np.log1p(np.maximum(times - FAR, 0))), numbers)


def _times(numbers: np.ndarray, middle: np.ndarray, unit: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # a unit may be 1e-320
        return np.minimum(np.abs(numbers - middle) / unit, np.finfo(float).max)


def _wild(numbers: np.ndarray, middle: np.ndarray, unit: np.ndarray, of: Sequence[str]) -> tuple[str, ...]:
    """Notes on the most extreme number of each column, except codes for missing values, which have another note."""
    times = _times(numbers, middle, unit)
    return tuple(
        f"{of[j]} has the value {numbers[row, j]:.6g} in row {row} (counted from 0), {times[row, j]:.0e} standard "
        "deviations from the others: the test uses the logarithm of this distance. If it stands for a missing value, "
        "write NaN."
        for j, row in enumerate(times.argmax(axis=0))
        if times[row, j] > WILD and Sentinels.of(numbers[:, j]) is None
    )


def table_of(data: Data, argument: str) -> Table:
    """A table of any data; arrays of labels are split into columns.

    Columns without names are named by their positions, which are the same in all pieces of a sample.
    """
    if table := table_in(data, argument):
        return table
    array = plain(data, argument)
    if holds_labels(array) and array.ndim in (1, 2):
        columns = array[:, None] if array.ndim == 1 else array
        if array.dtype == object:
            check_cells(array, argument)
        return Table.of({str(j): columns[:, j] for j in range(columns.shape[1])}, argument)
    found = Table.of(array if isinstance(data, jax.Array) else data, argument)
    return Table({str(j): column for j, column in enumerate(found.columns.values())})


def _labels(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    labels, counts = np.unique(column, return_counts=True)
    return labels, counts / len(column)


def _indicators(column: np.ndarray, labels: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Indicators minus their means; a label that is not among `labels` has only zeros, minus the same means."""
    codes = np.minimum(np.searchsorted(labels, column), len(labels) - 1)
    return np.eye(len(labels))[codes] * (labels[codes] == column)[:, None] - shares
