"""Rows of a table as standardised numbers: some transformed, some with columns for the components of a number."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from meanmap.bp.conditionals.columns import CodedTable
from meanmap.bp.conditionals.components import ColumnComponents
from meanmap.bp.conditionals.transformations import Transformation, chosen

__all__ = ["Standard"]

# Standardised numbers are multiples of 1 / FINEST: splits of trees that are equally good are chosen by the last digits,
# which depend on the unit.
FINEST = 2.0**32


@dataclass(frozen=True, eq=False)
class Standard:
    """Standardised rows of numbers.

    A number with components has a column of zeros and ones for each of them on its left, and is itself missing where
    it is one of the points: the two parts of the model of Duan et al. (1983), to other columns a label and a number.

    Attributes
    ----------
    table : CodedTable
    transformed : dict of int to Transformation
        By the position of the numeric column.
    components : dict of int to ColumnComponents
        By the same, of columns that have points.
    """

    table: CodedTable
    transformed: Mapping[int, Transformation]
    components: Mapping[int, ColumnComponents]

    @classmethod
    def of(cls, table: CodedTable, numbers: np.ndarray) -> "Standard":
        """Chosen for rows of numbers (n, d), NaN in gaps."""
        components, others = {}, numbers.copy()
        for column, block in zip(table.columns.values(), table.blocks, strict=True):
            j = block.start
            seen = numbers[~np.isnan(numbers[:, j]), j]
            found = ColumnComponents.of(seen) if column.labels is None else None
            if found is not None and len(found) > 1:
                components[j], others[:, j] = found, found.others(numbers[:, j])
        transformed = dict(chosen(table, others))
        for j in components:
            transformed.setdefault(j, Transformation.of("plain", others[~np.isnan(others[:, j]), j]))
        return cls(table, transformed, components)

    def __call__(self, numbers: np.ndarray) -> np.ndarray:
        """Standardised rows (n, q) of numbers (n, d)."""
        found, columns = self.table.standard(numbers), []
        for j, transformation in self.transformed.items():
            found[:, j] = transformation(numbers[:, j])
        for block in self.table.blocks:
            if block.start in self.components:
                components = self.components[block.start]
                columns.append(components.hits(numbers[:, block.start]))
                found[np.isnan(components.others(numbers[:, block.start])), block.start] = np.nan
            columns.append(found[:, block])
        return _rounded(np.concatenate(columns, axis=1))

    def of_column(self, j: int, values: np.ndarray) -> np.ndarray:
        """Standardised values of column j of the table's numbers."""
        if j in self.transformed:
            return _rounded(self.transformed[j](values))
        return _rounded(self.table.standard_of(j, values))

    @cached_property
    def wholes(self) -> tuple[range, ...]:
        """The columns of standardised numbers that stand for each variable."""
        found: list[range] = []
        start = 0
        for block in self.table.blocks:
            parts = self.components.get(block.start)
            found.append(range(start, start + len(block) + (0 if parts is None else len(parts))))
            start = found[-1].stop
        return tuple(found)

    @cached_property
    def blocks(self) -> tuple[range, ...]:
        """The blocks of columns, a number apart from its components."""
        found: list[range] = []
        for block, whole in zip(self.table.blocks, self.wholes, strict=True):
            apart = block.start in self.components
            found += [whole[:-1], whole[-1:]] if apart else [whole]
        return tuple(found)

    @cached_property
    def places(self) -> tuple[int, ...]:
        """The block of each variable; for numbers with components, the block of the number."""
        ends = [block.stop for block in self.blocks]
        return tuple(ends.index(whole.stop) for whole in self.wholes)


def _rounded(numbers: np.ndarray) -> np.ndarray:
    return np.round(numbers * FINEST) / FINEST
