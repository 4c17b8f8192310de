"""Nested factors, such as pupils in classes in schools."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, combinations
from typing import Any

import numpy as np
from scipy import sparse

from meanmap.ep.linear.block import Block

__all__ = ["Nesting"]


@dataclass(frozen=True)
class Nesting:
    """Blocks of a predictor: factors from the innermost outwards, then effects that all rows share.

    Attributes
    ----------
    blocks : tuple of Block
    factors, shared : tuples of int
        Positions of factors and of blocks of one group.
    parents : mapping of (inner, outer) to (size,) array
        For positions among the factors, the group of the outer factor that contains each group of the inner one.
    """

    blocks: tuple[Block, ...]
    factors: tuple[int, ...]
    shared: tuple[int, ...]
    parents: dict[tuple[int, int], np.ndarray]

    @classmethod
    def of(cls, blocks: tuple[Block, ...]) -> "Nesting | None":
        """None if factors cross, or if there are none."""
        factors = sorted((at for at, block in enumerate(blocks) if block.size > 1), key=lambda at: -blocks[at].size)
        if not factors:
            return None
        parents: dict[tuple[int, int], np.ndarray] = {}
        for k in range(len(factors) - 1):
            inner, outer = blocks[factors[k]], blocks[factors[k + 1]]
            parent = np.zeros(inner.size, np.intp)
            parent[inner.index] = outer.index
            if (parent[inner.index] != outer.index).any():
                return None
            parents[k, k + 1] = parent
        for k, j in combinations(range(len(factors)), 2):
            parents[k, j] = parents[k, j] if j == k + 1 else parents[j - 1, j][parents[k, j - 1]]
        shared = tuple(at for at, block in enumerate(blocks) if block.size == 1)
        return cls(blocks, tuple(factors), shared, parents)

    @property
    def order(self) -> tuple[int, ...]:
        """The order in which blocks are eliminated; shared effects come last."""
        return (*self.factors, *self.shared)

    @cached_property
    def starts(self) -> list[int]:
        """The first column of each factor in `design`, then that of the shared effects."""
        return [0, *accumulate(self.blocks[at].width for at in self.factors)]

    @cached_property
    def design(self) -> np.ndarray:
        """The coefficients of each row for the effects of its own groups, (n, widths)."""
        return self.designed(self.blocks)

    def designed(self, blocks: Sequence[Block]) -> np.ndarray:
        """The design of other rows, from their blocks."""
        return np.concatenate([blocks[at].design for at in self.order], axis=1)

    @cached_property
    def gathering(self) -> Any:
        """The matrix that sums rows over the groups of all factors, (effects, n)."""
        return sparse.vstack([self.blocks[at].matrix.T for at in self.factors], format="csr")

    @cached_property
    def lying(self) -> dict[tuple[int, int], Any]:
        """Matrices that sum groups of an inner factor over the group of an outer factor that contains them."""
        found = {}
        for (k, j), parent in self.parents.items():
            shape = (self.blocks[self.factors[j]].size, len(parent))
            found[k, j] = sparse.csr_array((np.ones(len(parent)), (parent, np.arange(len(parent)))), shape=shape)
        return found

    def ways(self, blocks: Sequence[Block]) -> tuple[list[np.ndarray], np.ndarray]:
        """The group of each row in every factor, and whether those that matter are nested.

        A group does not matter if the coefficients of the row for it are 0. Beyond the innermost factor that matters,
        the group is the one that contains it.
        """
        first = blocks[self.factors[0]]
        way, met, agree = [first.index], first.design.any(1), np.ones(len(first.index), bool)
        for k, at in enumerate(self.factors[1:]):
            led, counts = self.parents[k, k + 1][way[-1]], blocks[at].design.any(1)
            agree &= ~met | ~counts | (led == blocks[at].index)
            way.append(np.where(met, led, blocks[at].index))
            met = met | counts
        return way, agree
