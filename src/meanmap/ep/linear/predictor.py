"""A linear predictor η = A θ: fixed effects and group effects, where each row has one group of each factor."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from meanmap.ep.linear.block import Block
from meanmap.ep.linear.nesting import Nesting

__all__ = ["Meetings", "Predictor", "Prior"]

# Sparse matrices are used if there are at least _MANY effects outside the eliminated block, and at most this share of
# the values is nonzero.
_MANY, _SPARSE = 48, 0.25


@dataclass(frozen=True)
class Predictor:
    """Blocks side by side; θ lists their effects block by block, in the order of groups."""

    blocks: tuple[Block, ...]

    @property
    def rows(self) -> int:
        """The number of scalar predictors."""
        return len(self.blocks[0].index)

    @property
    def matrix(self) -> Any:
        """The columns of all blocks: A, sparse."""
        return sparse.hstack([block.matrix for block in self.blocks], format="csr")

    @property
    def total(self) -> int:
        """The length of θ."""
        return sum(block.total for block in self.blocks)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The order of elimination: first the grouped block with the most effects, then the others as given."""
        blocks = self.blocks
        first = max(range(len(blocks)), key=lambda at: (blocks[at].size > 1, blocks[at].total))
        return (first, *(at for at in range(len(blocks)) if at != first))

    @cached_property
    def nesting(self) -> Nesting | None:
        """How factors are nested, if they are."""
        return Nesting.of(self.blocks)

    @cached_property
    def meetings(self) -> "Meetings | None":
        """Products of the first eliminated block with all others; None if a dense matrix is as good."""
        first, *others = (self.blocks[at] for at in self.order)
        rest = self.total - first.total
        if rest < _MANY or self.rows * sum(block.width for block in others) > _SPARSE * first.size * rest:
            return None
        return Meetings.between(first, others)

    def at(self, theta: np.ndarray) -> np.ndarray:
        """The predictor of every row, A θ."""
        return sum((b.times(part) for b, part in zip(self.blocks, self.split(theta), strict=True)), np.zeros(self.rows))

    def of_many(self, thetas: np.ndarray) -> np.ndarray:
        """The predictors of every row for each θ, (n, m) from (m, total)."""
        found, start = np.zeros((self.rows, len(thetas))), 0
        for block in self.blocks:
            found += block.of_many(thetas[:, start : (start := start + block.total)].T)
        return found

    def taken(self, rows: slice | np.ndarray) -> "Predictor":
        """Some of the rows, of these effects."""
        return Predictor(tuple(block.taken(rows) for block in self.blocks))

    def split(self, theta: np.ndarray) -> list[np.ndarray]:
        """The effects of each block, (size, width)."""
        found, start = [], 0
        for block in self.blocks:
            found.append(theta[start : (start := start + block.total)].reshape(block.size, block.width))
        return found


@dataclass(frozen=True)
class Meetings:
    """A₁ᵀ W A₂ for a block and the others, as a sparse matrix with the same pattern for all weights.

    Attributes
    ----------
    sums : sparse array
        Maps row weights to the stored values.
    indices, starts : arrays
        The column of each value, and where each row of the matrix begins.
    """

    sums: Any
    indices: np.ndarray
    starts: np.ndarray
    columns: int

    @classmethod
    def between(cls, first: Block, others: list[Block]) -> "Meetings":
        """The pattern for these blocks."""
        right: Any = sparse.hstack([block.matrix for block in others], format="coo")
        rows, total = right.coords[0], right.shape[1]
        places = (first.index[rows, None] * first.width + np.arange(first.width)) * total + right.coords[1][:, None]
        values = first.design[rows] * right.data[:, None]
        kept, which = np.unique(places.ravel(), return_inverse=True)
        entries = (values.ravel(), (which.ravel(), np.repeat(rows, first.width)))
        sums: Any = sparse.coo_array(entries, shape=(len(kept), len(first.index))).tocsr()
        starts = np.searchsorted(kept, total * np.arange(first.total + 1))
        return cls(sums, kept % total, starts, total)

    def of(self, weights: np.ndarray) -> Any:
        """The product with these row weights."""
        shape = (len(self.starts) - 1, self.columns)
        return sparse.csr_array((self.sums @ weights, self.indices, self.starts), shape=shape)


@dataclass(frozen=True)
class Prior:
    """Independent groups: the effects of each group in block b are N(means[b], covariances[b])."""

    means: tuple[np.ndarray, ...]
    covariances: tuple[np.ndarray, ...]

    @cached_property
    def precisions(self) -> tuple[np.ndarray, ...]:
        """Inverse covariances, block by block."""
        return tuple(np.linalg.inv(covariance) for covariance in self.covariances)

    def log_normaliser(self, sizes: tuple[int, ...]) -> float:
        """log ∫ exp(−½ θᵀ Q θ + mᵀ Q θ) dθ, without factors of 2π."""
        total = 0.0
        for size, mean, precision in zip(sizes, self.means, self.precisions, strict=True):
            total += size * (mean @ precision @ mean - np.linalg.slogdet(precision)[1]) / 2
        return float(total)
