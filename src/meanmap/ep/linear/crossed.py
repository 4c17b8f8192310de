"""The joint Gaussian of all effects where factors cross: the largest block is eliminated group by group."""

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

from meanmap.core.errors import ParameterError
from meanmap.ep.linear.block import Block
from meanmap.ep.linear.joint import Joint, in_place, inverse_root, triangular, whole_inverse
from meanmap.ep.linear.predictor import Predictor, Prior

__all__ = ["Crossed"]

# The size of the largest matrix kept in memory, and the number of rows processed at a time, to limit memory.
_MOST, _PIECE = 150_000_000, 16_384


@dataclass(frozen=True)
class Crossed(Joint):
    """Where P is [[H, B], [Bᵀ, C]] and H is block-diagonal.

    The block with the most numbers is eliminated: H = L Lᵀ group by group, and S = C − Bᵀ H⁻¹ B = M Mᵀ is dense.
    Cost: O(n k²) for n rows, O(G k r² + r³) for G groups of k effects and r others; where B is sparse, of which each
    group meets m others, O(G k m² + r³). The dense covariance of all effects is never formed.

    Attributes
    ----------
    half : (first, r) array, sparse or not
        L⁻¹ B.
    schur : (r, r) array
        M.
    """

    half: Any
    schur: np.ndarray

    @classmethod
    def of(cls, predictor: Predictor, prior: Prior, weights: np.ndarray, shifts: np.ndarray) -> "Crossed":
        """From the prior, and Gaussian sites exp(shift η − weight η² / 2) of the rows.

        Raises `numpy.linalg.LinAlgError` where the precision is not positive.
        """
        blocks = predictor.blocks
        order = elimination_order(predictor)
        first, others = blocks[order[0]], [blocks[at] for at in order[1:]]
        inverse = inverse_root(first.squares(weights) + prior.precisions[order[0]])
        border = _border(first, others, weights) if predictor.meetings is None else predictor.meetings.of(weights)
        half = _by_groups(inverse, border)
        corner = _corner(others, weights, [prior.precisions[at] for at in order[1:]])
        schur = np.linalg.cholesky(corner - _dense(half.T @ half))
        towards = [b.gathered(shifts) + prior.precisions[at] @ prior.means[at] for at, b in enumerate(blocks)]
        own = (inverse @ towards[order[0]][:, :, None]).ravel()
        left = np.concatenate([towards[at].ravel() for at in order[1:]]) if others else np.zeros(0)
        left = triangular(schur, left - half.T @ own)
        behind = triangular(schur, left, transposed=True)
        own_mean = inverse.transpose(0, 2, 1) @ (own - half @ behind).reshape(first.size, first.width, 1)
        log_normaliser = (own @ own + left @ left) / 2
        log_normaliser += np.log(np.einsum("gaa->ga", inverse)).sum() - np.log(np.diag(schur)).sum()
        mean = in_place(predictor, order, own_mean.ravel(), behind)
        return cls(predictor, prior, order, inverse, mean, float(log_normaliser), half, schur)

    @cached_property
    def between(self) -> np.ndarray:
        """Covariances of all effects except those of the eliminated block."""
        return whole_inverse(self.schur)

    @cached_property
    def _onto(self) -> Any:
        """H⁻¹ B, the part between the blocks in units of the eliminated one."""
        return _by_groups(self.inverse.transpose(0, 2, 1), self.half)

    @cached_property
    def _of_first(self) -> tuple[np.ndarray, np.ndarray]:
        return self._of_groups(np.arange(self.first.size))

    def _of_groups(self, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of some groups of the eliminated block: covariances within each (size, width, width), and with all effects
        of other blocks (size * width, r).
        """
        width, every = self.inverse.shape[1], len(groups) == self.first.size
        inverse = self.inverse[groups]
        onto = self._onto if every else self._onto[(groups[:, None] * width + np.arange(width)).ravel()]
        across, own = -(onto @ self.between), inverse.transpose(0, 2, 1) @ inverse
        if sparse.issparse(onto):
            for a, b in product(range(width), repeat=2):
                own[:, a, b] -= onto[a::width].multiply(across[b::width]).sum(1)
            return own, across
        shape = (len(groups), width, self.schur.shape[0])
        return own - across.reshape(shape) @ onto.reshape(shape).transpose(0, 2, 1), across

    def within(self, at: int) -> np.ndarray:
        """Covariances within each group of a block, (size, width, width)."""
        if at == self.order[0]:
            return self._of_first[0]
        block, here = self.predictor.blocks[at], self._places[at]
        own = self.between[here, here].reshape(block.size, block.width, block.size, block.width)
        return np.einsum("gagb->gab", own)

    @cached_property
    def _places(self) -> dict[int, slice]:
        """Positions of the effects of each block among those that are not eliminated."""
        found, start = {}, 0
        for at in self.order[1:]:
            found[at] = slice(start, start := start + self.predictor.blocks[at].total)
        return found

    @cached_property
    def covariances(self) -> dict[tuple[int, int], np.ndarray]:
        """By pair of blocks: within the eliminated one (size, width, width), the others (size, width, size, width)."""
        return self._covariances(*self._of_first)

    def _covariances(self, inside: np.ndarray, across: np.ndarray) -> dict[tuple[int, int], np.ndarray]:
        """Those of some groups of the eliminated block."""
        blocks, first = self.predictor.blocks, self.order[0]
        found = {(first, first): inside}
        for at, here in self._places.items():
            found[first, at] = across[:, here].reshape(*inside.shape[:2], blocks[at].size, blocks[at].width)
            for other, there in self._places.items():
                one, two = blocks[other], blocks[at]
                found[other, at] = self.between[there, here].reshape(one.size, one.width, two.size, two.width)
        return found

    def variances(self, predictor: Predictor | None = None) -> np.ndarray:
        """a_iᵀ P⁻¹ a_i of every row, or of the rows of another predictor of the same effects."""
        asked = predictor or self.predictor
        blocks, first = list(asked.blocks), asked.blocks[self.order[0]]
        if asked is self.predictor:
            found = self.covariances
        else:
            groups, index = np.unique(first.index, return_inverse=True)
            blocks[self.order[0]] = Block(index.ravel(), first.design, len(groups))
            found = self._covariances(*self._of_groups(groups))
        variance = np.zeros(asked.rows)
        for start in range(0, asked.rows, _PIECE):
            rows = slice(start, start + _PIECE)
            pieces = [block.taken(rows) for block in blocks]
            for place, one in enumerate(self.order):
                for other in self.order[place:]:
                    share = _bilinear(pieces[one], pieces[other], found[one, other], one == self.order[0] == other)
                    variance[rows] += share if one == other else 2 * share
        return variance

    @cached_property
    def _inside_total(self) -> np.ndarray:
        """Covariances within groups of the eliminated block, summed over these."""
        if not sparse.issparse(self.half):
            return self._of_first[0].sum(0)
        width = self.inverse.shape[1]
        own = (self.inverse.transpose(0, 2, 1) @ self.inverse).sum(0)
        # Σ b Σ bᵀ over rows b is the sum of Σ times (Σ bᵀ b), entry by entry, which takes no product with Σ.
        for a, b in product(range(width), repeat=2):
            own[a, b] += (_dense(self._onto[a::width].T @ self._onto[b::width]) * self.between).sum()
        return own

    def total_covariance(self, at: int) -> np.ndarray:
        """Covariances of the effects of a block, summed over its groups, (width, width)."""
        return self._inside_total if at == self.order[0] else self.within(at).sum(0)

    def solve(self, combinations: np.ndarray) -> np.ndarray:
        """P⁻¹ c for each row c of combinations, in the order of θ."""
        first, blocks = self.first, self.predictor.blocks
        (own, rest), starts = self._forward(combinations), self._starts
        rest = triangular(self.schur, triangular(self.schur, rest), transposed=True)
        own = self.inverse.transpose(0, 2, 1) @ (own - self.half @ rest).reshape(first.size, first.width, -1)
        found, start = np.empty(combinations.shape), 0
        found[:, starts[self.order[0]] : starts[self.order[0] + 1]] = own.reshape(first.total, -1).T
        for at in self.order[1:]:
            found[:, starts[at] : starts[at + 1]] = rest[start : start + blocks[at].total].T
            start += blocks[at].total
        return found

    @property
    def _starts(self) -> np.ndarray:
        """Where the effects of each block begin in θ, and where the last block ends."""
        return np.cumsum([0, *(block.total for block in self.predictor.blocks)])

    def _forward(self, combinations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Eliminated effects of combinations, (first, m), and what is left of the others, (r, m)."""
        first, starts = self.first, self._starts
        parts = [combinations[:, starts[at] : starts[at + 1]] for at in self.order]
        own = (self.inverse @ parts[0].T.reshape(first.size, first.width, -1)).reshape(first.total, -1)
        rest = np.concatenate([np.zeros((len(combinations), 0)), *parts[1:]], axis=1).T
        return own, rest - self.half.T @ own

    def rest_from(self, noise: np.ndarray) -> np.ndarray:
        """Draws of all effects but those of the eliminated block about their mean, (r, draws), from standard noise."""
        return triangular(self.schur, noise, transposed=True)

    def first_given(self, rest: np.ndarray, noise: np.ndarray | None = None) -> np.ndarray:
        """Deviations of the eliminated effects from their mean, given those of the others: conditional means, or
        draws.
        """
        first = self.first
        moved = -(self.half @ rest)
        moved = (moved if noise is None else moved + noise).reshape(first.size, first.width, -1)
        return (self.inverse.transpose(0, 2, 1) @ moved).reshape(first.total, -1)


def elimination_order(predictor: Predictor) -> tuple[int, ...]:
    """Meetings of the predictor. Raises if the matrix of the remaining effects would be too large."""
    first = predictor.blocks[predictor.order[0]]
    rest = predictor.total - first.total
    if max(rest, first.total) * rest > _MOST:
        raise ParameterError(
            f"the largest factor has {first.total} effects and the others have {rest}; together they would "
            f"be a dense matrix of {8e-9 * max(rest, first.total) * rest:.1f} GB. Leave out a factor with many groups."
        )
    return predictor.order


def _by_groups(matrices: np.ndarray, flat: Any) -> Any:
    """The rows of each group, multiplied by the matrix of the group."""
    size, width = matrices.shape[:2]
    if not sparse.issparse(flat):
        return (matrices @ flat.reshape(size, width, flat.shape[1])).reshape(flat.shape)
    if width == 1:
        values = flat.data * np.repeat(matrices[:, 0, 0], np.diff(flat.indptr))
        return sparse.csr_array((values, flat.indices, flat.indptr), shape=flat.shape)
    blocks = sparse.bsr_array((matrices, np.arange(size), np.arange(size + 1)), shape=(len(flat.indptr) - 1,) * 2)
    return (blocks.tocsr() @ flat).tocsr()


def _dense(matrix: Any) -> np.ndarray:
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def _border(first: Block, others: list[Block], weights: np.ndarray) -> np.ndarray:
    columns = []
    for block in others:
        if block.size == 1:
            columns.append(first.transposed @ (block.design * weights[:, None]))
        else:
            columns.append(_scaled_product(first, block, weights))
    return np.concatenate(columns, axis=1) if columns else np.zeros((first.total, 0))


def _corner(others: list[Block], weights: np.ndarray, precisions: list[np.ndarray]) -> np.ndarray:
    rest = sum(block.total for block in others)
    corner, start = np.zeros((rest, rest)), 0
    for at, block in enumerate(others):
        own = block.squares(weights) + precisions[at]
        here = start + np.arange(block.total).reshape(block.size, block.width)
        corner[here[:, :, None], here[:, None, :]] = own
        below = start + block.total
        for other in others[at + 1 :]:
            if block.size == 1:
                part = (other.transposed @ (block.design * weights[:, None])).T
            elif other.size == 1:
                part = block.transposed @ (other.design * weights[:, None])
            else:
                part = _scaled_product(block, other, weights)
            corner[start : start + block.total, below : below + other.total] = part
            corner[below : below + other.total, start : start + block.total] = part.T
            below += other.total
        start += block.total
    return corner


def _scaled_product(one: Block, other: Block, weights: np.ndarray) -> np.ndarray:
    """A₁ᵀ W A₂, dense."""
    found = np.empty((one.size, one.width, other.size, other.width))
    pairs = one.index * other.size + other.index
    for a in range(one.width):
        for b in range(other.width):
            product = weights * one.design[:, a] * other.design[:, b]
            found[:, a, :, b] = np.bincount(pairs, product, one.size * other.size).reshape(one.size, other.size)
    return found.reshape(one.total, other.total)


def _bilinear(one: Block, other: Block, covariance: np.ndarray, eliminated: bool) -> np.ndarray:
    """a_iᵀ Σ₁₂ b_i of every row."""
    if one.size == 1 and other.size == 1:
        whole = covariance[0] if eliminated else covariance[0, :, 0]
        return np.einsum("na,na->n", one.design @ whole, other.design)
    if eliminated:
        return _products(one.design, covariance[one.index], one.design)
    if other.size == 1:
        return _products(one.design, covariance[one.index, :, 0, :], other.design)
    if one.size == 1:
        return _bilinear(other, one, covariance.transpose(2, 3, 0, 1), eliminated)
    return _products(one.design, covariance[one.index, :, other.index, :], other.design)


def _products(left: np.ndarray, matrices: np.ndarray, right: np.ndarray) -> np.ndarray:
    """aᵀ M b, row by row."""
    if left.shape[1] == 1:
        return left[:, 0] * (matrices[:, 0] * right).sum(1)
    return ((left[:, None, :] @ matrices)[:, 0] * right).sum(1)
