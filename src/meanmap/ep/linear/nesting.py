"""Factors whose groups lie in those of the next one, as pupils in classes and classes in schools."""

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
    """Blocks of a predictor, factors from the innermost outwards, then those that all rows share.

    Attributes
    ----------
    blocks : tuple of Block
    factors, shared : tuples of int
        Positions of factors and of blocks of one group.
    parents : mapping of (inner, outer) to (size,) array
        By places among the factors, the group of an outer one in which each group of an inner one lies.
    """

    blocks: tuple[Block, ...]
    factors: tuple[int, ...]
    shared: tuple[int, ...]
    parents: dict[tuple[int, int], np.ndarray]

    @classmethod
    def of(cls, blocks: tuple[Block, ...]) -> "Nesting | None":
        """None where factors cross, or where there are none."""
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
        """In which order factors are eliminated, what all rows share last."""
        return (*self.factors, *self.shared)

    @cached_property
    def starts(self) -> list[int]:
        """Columns of `design` at which those of each factor begin, and those that all rows share."""
        return [0, *accumulate(self.blocks[at].width for at in self.factors)]

    @cached_property
    def design(self) -> np.ndarray:
        """What each row has of the effects of its own groups, (n, widths)."""
        return self.designed(self.blocks)

    def designed(self, blocks: Sequence[Block]) -> np.ndarray:
        """The design of other rows, from their blocks."""
        return np.concatenate([blocks[at].design for at in self.order], axis=1)

    @cached_property
    def gathering(self) -> Any:
        """Of all factors, from rows to sums over groups, (effects, n)."""
        return sparse.vstack([self.blocks[at].matrix.T for at in self.factors], format="csr")

    @cached_property
    def lying(self) -> dict[tuple[int, int], Any]:
        """From groups of an inner factor to sums over those that lie in each of an outer one."""
        found = {}
        for (k, j), parent in self.parents.items():
            shape = (self.blocks[self.factors[j]].size, len(parent))
            found[k, j] = sparse.csr_array((np.ones(len(parent)), (parent, np.arange(len(parent)))), shape=shape)
        return found

    def ways(self, blocks: Sequence[Block]) -> tuple[list[np.ndarray], np.ndarray]:
        """Of each row the group of every factor, and whether they lie in one another where they count.

        Where a row has nothing of an inner factor its group there does not count; outwards of the first that counts
        the group is the one in which that lies.
        """
        first = blocks[self.factors[0]]
        way, met, agree = [first.index], first.design.any(1), np.ones(len(first.index), bool)
        for k, at in enumerate(self.factors[1:]):
            led, counts = self.parents[k, k + 1][way[-1]], blocks[at].design.any(1)
            agree &= ~met | ~counts | (led == blocks[at].index)
            way.append(np.where(met, led, blocks[at].index))
            met = met | counts
        return way, agree
