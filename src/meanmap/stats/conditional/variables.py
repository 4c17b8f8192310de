"""The variables of a conditional test as columns of numbers: standardised numbers, an indicator a label."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import jax
import numpy as np

from meanmap.core.arrays import check_rows, plain
from meanmap.core.errors import ColumnError, EmptyError, KindError
from meanmap.core.points import is_sparse
from meanmap.core.tables.table import Table
from meanmap.core.types import Data
from meanmap.stats.settings import LEAST_POINTS

__all__ = ["Variable", "read_given", "read_variable"]

# Beyond so many robust standard deviations from the median only the logarithm of the distance counts. One-to-one
# functions of columns leave the hypothesis as it is, and one value as far as 10⁶ leaves a regression nothing else.
FAR = 20.0
# And beyond so many a value may be a code for a missing one.
WILD = 1000.0


@dataclass(frozen=True)
class Variable:
    """One variable of a test.

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
        A sentence for each column that was left out, since it is constant, and for each numeric one with a value very
        far from all others.
    """

    numbers: np.ndarray
    scales: np.ndarray
    indicators: np.ndarray
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def columns(self) -> np.ndarray:
        """Numbers and indicators side by side."""
        return np.concatenate([self.numbers, self.indicators], axis=1)

    def within(self, strata: np.ndarray) -> "Variable":
        """The variable with the strata of the rows beside it, as labels."""
        return replace(self, indicators=np.concatenate([self.indicators, _indicators(strata)], axis=1))

    def rows(self, index: np.ndarray) -> "Variable":
        """Some of the rows."""
        return Variable(self.numbers[index], self.scales, self.indicators[index], self.notes)


def read_variable(data: Data, argument: str, *, whole: bool = False) -> Variable:
    """Read numbers, labels or a table of these; constant columns are left out with a note.

    They are refused by name where nothing else is left, or a chosen kernel needs the `whole` table.
    """
    if is_sparse(data):
        raise KindError(f"{argument} is sparse, which is not supported here: pass {argument}.toarray().")
    table = _table(data, argument)
    check_rows(len(table), argument, LEAST_POINTS)
    blocks, of, indicators, notes = [], [], [np.zeros((len(table), 0))], []
    for name in table.names:
        column = np.asarray(table[name])
        which = f"column {name!r} of {argument}" if len(table.names) > 1 else argument
        if (column == column[0]).all():
            if whole or len(notes) == len(table.names) - 1:
                raise ColumnError(f"{which} is constant: nothing depends on it. Leave it out.")
            notes.append(f"{which} is constant: nothing depends on it, and it is left out.")
        elif table.is_real(name):
            blocks.append(column.reshape(len(table), -1).astype(np.float64))
            of += [which] * blocks[-1].shape[1]
        else:
            indicators.append(_indicators(column))
    numbers = np.concatenate([np.zeros((len(table), 0)), *blocks], axis=1)
    if (np.ptp(numbers, axis=0) == 0).any():
        raise ColumnError(f"a column of a block in {argument} is constant: nothing depends on it. Leave it out.")
    numbers, wild = _drawn_in(numbers, of)
    centred = numbers - numbers.mean(axis=0)
    peaks = np.abs(centred).max(axis=0)
    scales = peaks * (centred / peaks).std(axis=0)  # squares of 1e-300 would vanish
    return Variable(centred / scales, scales, np.concatenate(indicators, axis=1), (*notes, *wild))


def read_given(data: Data) -> Variable:
    """The variable that is conditioned on: as any other, but it must be there."""
    table = Table.looks_like_one(data) and hasattr(data, "shape")
    empty = not data if data is None or isinstance(data, Mapping) else 0 in (data if table else plain(data, "z")).shape
    if empty:
        raise EmptyError("z is empty: given nothing this is mm.independence_test(x, y).")
    return read_variable(data, "z")


def _drawn_in(numbers: np.ndarray, of: list[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Numbers as they are, but for those far from all others: in order, and nearer; the wildest of these in words."""
    centre = np.median(numbers, axis=0)
    apart = numbers - centre
    # Ties with the median say nothing of the spread.
    units = 1.4826 * np.nanmedian(np.where(apart == 0, np.nan, np.abs(apart)), axis=0)
    with np.errstate(over="ignore"):  # a unit may be 1e-320
        times = np.minimum(np.abs(apart) / units, np.finfo(float).max)
    nearer = centre + np.sign(apart) * units * (FAR + np.log1p(np.maximum(times - FAR, 0)))
    rows = times.argmax(axis=0)
    wild = tuple(
        f"{of[j]} has the value {numbers[row, j]:.6g} in row {row}, {times[row, j]:.0e} standard deviations from the "
        "others: the test takes the logarithm of how far. If it stands for a missing value, write NaN."
        for j, row in enumerate(rows)
        if times[row, j] > WILD
    )
    return np.where(times > FAR, nearer, numbers), wild


def _table(data: Data, argument: str) -> Table:
    """A table of whatever came; arrays of labels by columns, as tables read them."""
    if Table.looks_like_one(data):
        return Table.of(data, argument)
    array = plain(data, argument)
    if array.dtype.kind not in "SUO" or array.ndim not in (1, 2):
        return Table.of(array if isinstance(data, jax.Array) else data, argument)
    columns = array[:, None] if array.ndim == 1 else array
    return Table.of({f"{argument}{j}" if array.ndim == 2 else argument: columns[:, j] for j in range(columns.shape[1])})


def _indicators(labels: np.ndarray) -> np.ndarray:
    _, codes = np.unique(labels, return_inverse=True)
    indicators = np.eye(codes.max() + 1)[codes]
    return indicators - indicators.mean(axis=0)
