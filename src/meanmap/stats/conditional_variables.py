"""The variables of a conditional test as columns of numbers: standardised numbers, and one indicator a label."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from meanmap.core.arrays import check_rows, plain
from meanmap.core.errors import ColumnError, EmptyError, KindError
from meanmap.core.points import is_sparse
from meanmap.core.table import Table
from meanmap.stats.settings import LEAST_POINTS

__all__ = ["Variable", "read_given", "read_variable"]


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
    """

    numbers: np.ndarray
    scales: np.ndarray
    indicators: np.ndarray

    @property
    def columns(self) -> np.ndarray:
        """Numbers and indicators side by side."""
        return np.concatenate([self.numbers, self.indicators], axis=1)

    def rows(self, index: np.ndarray) -> "Variable":
        """Some of the rows."""
        return Variable(self.numbers[index], self.scales, self.indicators[index])


def read_variable(data: Any, argument: str) -> Variable:
    """Read numbers, labels or a table of both; constant columns are refused by name."""
    if is_sparse(data):
        raise KindError(f"{argument} is sparse, which is not supported here: pass {argument}.toarray().")
    table = _table(data, argument)
    check_rows(len(table), argument, LEAST_POINTS)
    blocks, indicators = [], [np.zeros((len(table), 0))]
    for name in table.names:
        column = np.asarray(table[name])
        if (column == column[0]).all():
            which = f"column {name!r} of {argument}" if len(table.names) > 1 else argument
            raise ColumnError(f"{which} is constant: nothing depends on it. Leave it out.")
        if table.is_real(name):
            blocks.append(column.reshape(len(table), -1).astype(np.float64))
        else:
            indicators.append(_indicators(column))
    numbers = np.concatenate([np.zeros((len(table), 0)), *blocks], axis=1)
    if (np.ptp(numbers, axis=0) == 0).any():
        raise ColumnError(f"a column of a block in {argument} is constant: nothing depends on it. Leave it out.")
    centred = numbers - numbers.mean(axis=0)
    peaks = np.abs(centred).max(axis=0)
    scales = peaks * (centred / peaks).std(axis=0)  # squares of 1e-300 would vanish
    return Variable(centred / scales, scales, np.concatenate(indicators, axis=1))


def read_given(data: Any) -> Variable:
    """The variable that is conditioned on: as any other, but it must be there."""
    empty = not data if data is None or isinstance(data, Mapping) else 0 in plain(data, "z").shape
    if empty:
        raise EmptyError("z is empty: given nothing this is mm.independence_test(x, y).")
    return read_variable(data, "z")


def _table(data: Any, argument: str) -> Table:
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
