"""The joint Gaussian of all effects, factored with the largest block eliminated group by group."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from meanmap.core.errors import ParameterError
from meanmap.ep.linear.predictor import Block, Predictor, Prior

__all__ = ["Joint"]

# Numbers in the largest matrix that is held, and rows of a piece, so that what is gathered for rows stays small.
_MOST, _PIECE = 150_000_000, 16_384


@dataclass(frozen=True)
class Joint:
    """N(mean, P⁻¹) with P = Q + Aᵀ W A, where P is [[H, B], [Bᵀ, C]] and H is block-diagonal.

    The block with the most numbers is eliminated: H = L Lᵀ group by group, and S = C − Bᵀ H⁻¹ B = M Mᵀ is dense.
    Cost: O(n k²) for n rows, O(G k r² + r³) for G groups of k effects and r others. No dense covariance of all is held.

    Attributes
    ----------
    mean : (total,) array
        Of θ.
    log_normaliser : number
        log ∫ exp(−½ θᵀ P θ + hᵀ θ) dθ without powers of 2π.
    """

    predictor: Predictor
    order: tuple[int, ...]
    lower: np.ndarray
    half: np.ndarray
    schur: np.ndarray
    mean: np.ndarray
    log_normaliser: float

    @classmethod
    def of(cls, predictor: Predictor, prior: Prior, weights: np.ndarray, shifts: np.ndarray) -> "Joint":
        """From the prior, and Gaussian sites exp(shift η − weight η² / 2) of the rows.

        Raises `numpy.linalg.LinAlgError` where the precision is not positive.
        """
        blocks = predictor.blocks
        order = elimination_order(predictor)
        first, others = blocks[order[0]], [blocks[at] for at in order[1:]]
        rest = sum(block.total for block in others)
        lower = np.linalg.cholesky(first.squares(weights) + prior.precisions[order[0]])
        inverse = np.linalg.inv(lower)
        border, corner = (
            _border(first, others, weights),
            _corner(others, weights, [prior.precisions[at] for at in order[1:]]),
        )
        half = inverse @ border.reshape(first.size, first.width, rest)
        flat = half.reshape(first.total, rest)
        schur = np.linalg.cholesky(corner - flat.T @ flat)
        towards = [b.gathered(shifts) + prior.precisions[at] @ prior.means[at] for at, b in enumerate(blocks)]
        own = np.einsum("gab,gb->ga", inverse, towards[order[0]])
        left = np.concatenate([towards[at].ravel() for at in order[1:]]) if others else np.zeros(0)
        left = solve_triangular(schur, left - flat.T @ own.ravel(), lower=True)
        behind = solve_triangular(schur, left, lower=True, trans=1)
        own_mean = np.einsum("gba,gb->ga", inverse, own - half @ behind)
        log_normaliser = (own.ravel() @ own.ravel() + left @ left) / 2
        log_normaliser -= np.log(np.diagonal(lower, axis1=1, axis2=2)).sum() + np.log(np.diag(schur)).sum()
        mean = _in_place(predictor, order, own_mean.ravel(), behind)
        return cls(predictor, order, lower, half, schur, mean, float(log_normaliser))

    @cached_property
    def covariances(self) -> dict[tuple[int, int], np.ndarray]:
        """By pair of blocks: within the eliminated one (size, width, width), the others (size, width, size, width)."""
        first, others = self._parts()
        back = np.linalg.inv(self.lower)
        rest = self.schur.shape[0]
        between = cho_solve((self.schur, True), np.eye(rest)) if rest else np.zeros((0, 0))
        onto = back.transpose(0, 2, 1) @ self.half
        across = onto @ between
        found = {(self.order[0], self.order[0]): back.transpose(0, 2, 1) @ back + across @ onto.transpose(0, 2, 1)}
        start = 0
        for at, block in zip(self.order[1:], others, strict=True):
            columns = slice(start, start + block.total)
            shape = (first.size, first.width, block.size, block.width)
            found[self.order[0], at] = -across[:, :, columns].reshape(shape)
            begin = 0
            for other, beside in zip(self.order[1:], others, strict=True):
                part = between[begin : begin + beside.total, columns]
                found[other, at] = part.reshape(beside.size, beside.width, block.size, block.width)
                begin += beside.total
            start += block.total
        return found

    def variances(self, predictor: Predictor | None = None) -> np.ndarray:
        """a_iᵀ P⁻¹ a_i of every row, or of the rows of another predictor of the same effects."""
        asked = predictor or self.predictor
        found, blocks = self.covariances, asked.blocks
        variance = np.zeros(asked.rows)
        for start in range(0, asked.rows, _PIECE):
            rows = slice(start, start + _PIECE)
            pieces = [block.taken(rows) for block in blocks]
            for place, one in enumerate(self.order):
                for other in self.order[place:]:
                    share = _bilinear(pieces[one], pieces[other], found[one, other], one == self.order[0] == other)
                    variance[rows] += share if one == other else 2 * share
        return variance

    def own_variances(self, at: int) -> np.ndarray:
        """Of each effect of a block, (size, width)."""
        own = self.covariances[at, at]
        return np.einsum("gaa->ga", own) if own.ndim == 3 else np.einsum("gaga->ga", own)

    def second_moment(self, at: int) -> np.ndarray:
        """Σ E(u uᵀ) over the groups of a block, (width, width)."""
        effects = self.predictor.split(self.mean)[at]
        own = self.covariances[at, at]
        spread = own.sum(0) if own.ndim == 3 else np.einsum("gagb->ab", own)
        return effects.T @ effects + spread

    def covariance(self, combinations: np.ndarray) -> np.ndarray:
        """Of combinations of effects, C P⁻¹ Cᵀ for rows C in the order of θ."""
        own, rest, _ = self._forward(combinations)
        rest = solve_triangular(self.schur, rest, lower=True)
        return own.T @ own + rest.T @ rest

    def solve(self, combinations: np.ndarray) -> np.ndarray:
        """P⁻¹ c for each row c of combinations, in the order of θ."""
        (first, _), blocks = self._parts(), self.predictor.blocks
        own, rest, back = self._forward(combinations)
        flat, starts = self.half.reshape(first.total, -1), self._starts
        rest = cho_solve((self.schur, True), rest) if len(rest) else rest
        own = np.einsum("gba,gbm->gam", back, (own - flat @ rest).reshape(first.size, first.width, -1))
        found, start = np.empty(combinations.shape), 0
        found[:, starts[self.order[0]] : starts[self.order[0] + 1]] = own.reshape(first.total, -1).T
        for at in self.order[1:]:
            found[:, starts[at] : starts[at + 1]] = rest[start : start + blocks[at].total].T
            start += blocks[at].total
        return found

    @property
    def _starts(self) -> np.ndarray:
        """Where the effects of each block begin in θ, and where the last ones end."""
        return np.cumsum([0, *(block.total for block in self.predictor.blocks)])

    def _forward(self, combinations: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Eliminated effects of combinations, (first, m); what is left of the others, (r, m); the inverse factor."""
        (first, _), starts = self._parts(), self._starts
        parts = [combinations[:, starts[at] : starts[at + 1]] for at in self.order]
        back = np.linalg.inv(self.lower)
        own = np.einsum("gab,mgb->gam", back, parts[0].reshape(-1, first.size, first.width)).reshape(first.total, -1)
        rest = np.concatenate([np.zeros((len(combinations), 0)), *parts[1:]], axis=1).T
        return own, rest - self.half.reshape(first.total, -1).T @ own, back

    def draws(self, count: int, generator: np.random.Generator) -> np.ndarray:
        """(count, total) draws of θ."""
        first, _ = self._parts()
        rest = self.rest_from(generator.normal(size=(self.schur.shape[0], count)))
        own = self.first_given(rest, generator.normal(size=(first.total, count)))
        return self.mean + np.stack(
            [_in_place(self.predictor, self.order, own[:, k], rest[:, k]) for k in range(count)]
        )

    def rest_from(self, noise: np.ndarray) -> np.ndarray:
        """Draws of all effects but those of the eliminated block about their mean, (r, draws), from standard noise."""
        return solve_triangular(self.schur, noise, lower=True, trans=1, check_finite=False)

    def first_given(self, rest: np.ndarray, noise: np.ndarray | None = None) -> np.ndarray:
        """Effects of the eliminated block about their mean, given the others about theirs: their mean, or draws."""
        first, _ = self._parts()
        moved = -(self.half.reshape(first.total, -1) @ rest)
        moved = (moved if noise is None else moved + noise).reshape(first.size, first.width, -1)
        back = np.linalg.inv(self.lower).transpose(0, 2, 1)
        return (back @ moved).reshape(first.total, -1)

    def _parts(self) -> tuple[Block, list[Block]]:
        blocks = self.predictor.blocks
        return blocks[self.order[0]], [blocks[at] for at in self.order[1:]]


def elimination_order(predictor: Predictor) -> tuple[int, ...]:
    """The block with the most numbers in groups first, then the others as they come.

    Raises where what is left is too large to be dense.
    """
    blocks = predictor.blocks
    first = max(range(len(blocks)), key=lambda at: (blocks[at].size > 1, blocks[at].total))
    rest = predictor.total - blocks[first].total
    if max(rest, blocks[first].total) * rest > _MOST:
        raise ParameterError(
            f"beside {blocks[first].total} effects of the largest factor there are {rest} others; together they would "
            f"be a dense matrix of {8e-9 * max(rest, blocks[first].total) * rest:.1f} GB. Leave out a factor with many "
            "groups."
        )
    return (first, *(at for at in range(len(blocks)) if at != first))


def _border(first: Block, others: list[Block], weights: np.ndarray) -> np.ndarray:
    columns = []
    for block in others:
        if block.size == 1:
            columns.append(first.matrix.T @ (block.design * weights[:, None]))
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
                part = (other.matrix.T @ (block.design * weights[:, None])).T
            elif other.size == 1:
                part = block.matrix.T @ (other.design * weights[:, None])
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
    if eliminated:
        return np.einsum("na,nab,nb->n", one.design, covariance[one.index], one.design, optimize=True)
    if one.size == 1 and other.size == 1:
        return ((one.design @ covariance[0, :, 0]) * other.design).sum(1)
    if other.size == 1:
        return np.einsum("na,nab,nb->n", one.design, covariance[one.index, :, 0, :], other.design, optimize=True)
    if one.size == 1:
        return _bilinear(other, one, covariance.transpose(2, 3, 0, 1), eliminated)
    gathered = covariance[one.index, :, other.index, :]
    return np.einsum("na,nab,nb->n", one.design, gathered, other.design, optimize=True)


def _in_place(predictor: Predictor, order: tuple[int, ...], first: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Parts in order of elimination, in the order of θ."""
    parts: list[np.ndarray] = [first] * len(order)
    start = 0
    for at in order[1:]:
        total = predictor.blocks[at].total
        parts[at] = rest[start : start + total]
        start += total
    return np.concatenate(parts)
