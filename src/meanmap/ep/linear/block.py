"""Group effects in a linear predictor; those of a single group are shared by all rows."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["Block"]

# Rows that are processed at a time: they fit the cache of a processor.
_PIECE = 8192


@dataclass(frozen=True)
class Block:
    """Effects u of `size` groups, `width` numbers each: row i adds design[i] · u[index[i]] to the predictor.

    Fixed effects are the block of one group, to which all rows belong.
    """

    index: np.ndarray
    design: np.ndarray
    size: int

    @classmethod
    def fixed(cls, design: np.ndarray) -> "Block":
        """Effects that all rows share."""
        return cls(np.zeros(len(design), np.intp), design, 1)

    @property
    def width(self) -> int:
        """Effects per group."""
        return self.design.shape[1]

    @property
    def total(self) -> int:
        """Effects in all groups."""
        return self.size * self.width

    @cached_property
    def matrix(self) -> Any:
        """The columns of A, sparse."""
        rows, width = self.design.shape
        columns = self.index[:, None] * width + np.arange(width)
        starts = np.arange(0, rows * width + 1, max(width, 1))[: rows + 1]
        return sparse.csr_array((self.design.ravel(), columns.ravel(), starts), shape=(rows, self.total))

    @cached_property
    def transposed(self) -> Any:
        """Rows with these numbers."""
        return self.matrix.T

    def times(self, effects: np.ndarray) -> np.ndarray:
        """The contribution of the effects (size, width) to the predictor."""
        if self.size == 1:
            return self.design @ effects[0]
        return np.einsum("na,na->n", self.design, effects[self.index])

    def of_many(self, effects: np.ndarray) -> np.ndarray:
        """The contribution of each column of effects (total, m) to the predictor, (n, m)."""
        return (self.design if self.size == 1 else self.matrix) @ effects

    def gathered(self, rows: np.ndarray) -> np.ndarray:
        """Aᵀ times a vector, (size, width)."""
        if self.size == 1:
            return (self.design.T @ rows)[None]
        columns = [np.bincount(self.index, rows * column, self.size) for column in self.design.T]
        return np.stack(columns, axis=1)

    def squares(self, weights: np.ndarray) -> np.ndarray:
        """The blocks of Aᵀ W A on the diagonal, (size, width, width)."""
        if self.size == 1:
            found = np.zeros((1, self.width, self.width))
            for start in range(0, len(weights), _PIECE):
                piece = self.design[start : start + _PIECE]
                found += (piece * weights[start : start + _PIECE, None]).T @ piece
            return found
        found = np.empty((self.size, self.width, self.width))
        for a in range(self.width):
            for b in range(a + 1):
                product = weights * self.design[:, a] * self.design[:, b]
                found[:, a, b] = found[:, b, a] = np.bincount(self.index, product, self.size)
        return found

    def taken(self, rows: slice | np.ndarray) -> "Block":
        """Some of the rows, of these effects."""
        return Block(self.index[rows], self.design[rows], self.size)
