"""The joint Gaussian belief about all effects if factors are nested: they are eliminated one after another."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from meanmap.ep.linear.joint import Joint, inverse_root, triangular, whole_inverse
from meanmap.ep.linear.nesting import Nesting
from meanmap.ep.linear.predictor import Predictor, Prior

__all__ = ["Nested"]

# Numbers held in memory at once, in combinations of all effects.
_PIECE = 2_000_000


@dataclass(frozen=True)
class Nested(Joint):
    """Sparse elimination from the innermost factor outwards: a group changes only the groups that contain it.

    Cost: O(n K (k + p) k) for n rows, K factors of k effects and p effects that all rows share, and O(p³). Only the
    precisions between a group, the groups that contain it, and shared effects are stored.

    Attributes
    ----------
    nesting : Nesting
    inverses : list of (size, width, width) arrays
        L⁻¹ of each factor, where L Lᵀ is the precision of a group given all outer effects.
    halves : list of (size, width, outer effects) arrays
        L⁻¹ B, for the precisions B between a group and outer effects.
    root : (p, p) array
        Cholesky factor of the precision of shared effects.
    """

    nesting: Nesting
    inverses: list[np.ndarray]
    halves: list[np.ndarray]
    root: np.ndarray

    @classmethod
    def of(
        cls, predictor: Predictor, nesting: Nesting, prior: Prior, weights: np.ndarray, shifts: np.ndarray
    ) -> "Nested":
        """Combine the prior with Gaussian sites exp(shift η − weight η² / 2) of the rows.

        Raises `numpy.linalg.LinAlgError` if the precision is not positive definite.
        """
        blocks, starts = nesting.blocks, nesting.starts
        # The last column is Aᵀ shifts, so that the mean is computed along with the factors.
        sums = np.column_stack([nesting.design * weights[:, None], shifts])
        corner = nesting.design[:, starts[-1] :].T @ sums[:, starts[-1] :]
        here = 0
        for at in nesting.shared:
            own = slice(here, here := here + blocks[at].width)
            corner[own, own] += prior.precisions[at]
            corner[own, -1] += prior.precisions[at] @ prior.means[at]
        parts, gathered, here = [], nesting.gathering @ sums, 0
        for at, start in zip(nesting.factors, starts, strict=False):
            size, width = blocks[at].size, blocks[at].width
            part = gathered[here : (here := here + size * width), start:].reshape(size, width, -1)
            part[:, :, :width] += prior.precisions[at]
            part[:, :, -1] += prior.precisions[at] @ prior.means[at]
            parts.append(part)
        inverses, halves, owns, log_normaliser = [], [], [], 0.0
        for k, part in enumerate(parts):
            width, after = part.shape[1], starts[k + 1]
            inverse = inverse_root(part[:, :, :width])
            half = _times(inverse, part[:, :, width:])
            for j in range(k + 1, len(parts)):
                outer = half[:, :, starts[j] - after : starts[j + 1] - after]
                left = _times(outer.transpose(0, 2, 1), half[:, :, starts[j] - after :])
                parts[j] -= (nesting.lying[k, j] @ left.reshape(len(left), -1)).reshape(parts[j].shape)
            flat = half[:, :, starts[-1] - after :].reshape(len(half) * width, -1)
            corner -= flat[:, :-1].T @ flat
            log_normaliser += np.log(np.einsum("gaa->ga", inverse)).sum() + (half[:, :, -1] ** 2).sum() / 2
            inverses.append(inverse)
            halves.append(half[:, :, :-1])
            owns.append(half[:, :, -1:])
        root = np.linalg.cholesky(corner[:, :-1])
        rest = triangular(root, corner[:, -1:])
        log_normaliser += float((rest**2).sum()) / 2 - np.log(np.diag(root)).sum()
        effects = _outwards_in(nesting, inverses, halves, owns, triangular(root, rest, transposed=True))
        mean = _ordered(nesting, effects)[:, 0]
        told = predictor, prior, nesting.order, inverses[0], mean, float(log_normaliser)
        return cls(*told, nesting, inverses, halves, root)

    def variances(self, predictor: Predictor | None = None) -> np.ndarray:
        """a_iᵀ P⁻¹ a_i of every row, or of the rows of another predictor of the same effects."""
        asked = predictor or self.predictor
        way, agree = self.nesting.ways(asked.blocks)
        design, found = self.nesting.designed(asked.blocks), np.empty(asked.rows)
        step = max(1, _PIECE // max(1, design.shape[1] * self.inverse.shape[1]))
        for start in range(0, asked.rows, step):
            rows = slice(start, start + step)
            found[rows] = self._grams([groups[rows] for groups in way], 0, design[rows, :, None])[:, 0, 0]
        strange = np.flatnonzero(~agree)
        step = max(1, _PIECE // asked.total)
        for start in range(0, len(strange), step):
            rows = strange[start : start + step]
            dense = np.concatenate([block.matrix[rows].toarray() for block in asked.blocks], axis=1)
            found[rows] = (dense * self.solve(dense)).sum(1)
        return found

    def within(self, at: int) -> np.ndarray:
        """Covariances within each group of a block, (size, width, width)."""
        block, nesting = self.predictor.blocks[at], self.nesting
        if at in nesting.shared:
            here = sum(self.predictor.blocks[other].width for other in nesting.shared[: nesting.shared.index(at)])
            own = slice(here, here + block.width)
            return self._between[own, own][None]
        k = nesting.factors.index(at)
        way = [np.arange(block.size), *(nesting.parents[k, j] for j in range(k + 1, len(nesting.factors)))]
        one_each = np.zeros((block.size, nesting.design.shape[1] - nesting.starts[k], block.width))
        one_each[:, : block.width] = np.eye(block.width)
        return self._grams(way, k, one_each)

    @cached_property
    def _between(self) -> np.ndarray:
        """Covariances of shared effects."""
        return whole_inverse(self.root)

    def _grams(self, way: list[np.ndarray], first: int, left: np.ndarray) -> np.ndarray:
        """Aᵀ P⁻¹ A for combinations A (n, from a factor outwards, m) of effects of one group of each factor."""
        found = np.zeros((len(left), left.shape[2], left.shape[2]))
        for groups, inverse, half in zip(way, self.inverses[first:], self.halves[first:], strict=True):
            width = inverse.shape[1]
            own = _times(inverse[groups], left[:, :width])
            left = left[:, width:] - _times(half[groups].transpose(0, 2, 1), own)
            found += _times(own.transpose(0, 2, 1), own)
        shared = left.transpose(1, 0, 2).reshape(len(self.root), left.shape[0] * left.shape[2])
        own = triangular(self.root, shared).reshape(len(self.root), *found.shape[:2])
        return found + np.einsum("pna,pnb->nab", own, own)

    def total_covariance(self, at: int) -> np.ndarray:
        """Covariance of the effects of a block, summed over its groups, (width, width)."""
        return self.within(at).sum(0)

    def solve(self, combinations: np.ndarray) -> np.ndarray:
        """P⁻¹ c for each row c of combinations, in the order of θ."""
        nesting, blocks = self.nesting, self.predictor.blocks
        parts = dict(enumerate(np.split(combinations.T, np.cumsum([block.total for block in blocks])[:-1])))
        count, owns = len(combinations), []
        left = [parts[at].reshape(blocks[at].size, blocks[at].width, count) for at in nesting.factors]
        rest = np.concatenate([parts[at] for at in nesting.shared] or [np.zeros((0, count))])
        for k, (inverse, half) in enumerate(zip(self.inverses, self.halves, strict=True)):
            owns.append(_times(inverse, left[k]))
            moved, after = _times(half.transpose(0, 2, 1), owns[k]), nesting.starts[k + 1]
            for j in range(k + 1, len(left)):
                part = moved[:, nesting.starts[j] - after : nesting.starts[j + 1] - after]
                left[j] = left[j] - (nesting.lying[k, j] @ part.reshape(len(part), -1)).reshape(left[j].shape)
            rest = rest - moved[:, nesting.starts[-1] - after :].sum(0)
        rest = triangular(self.root, triangular(self.root, rest), transposed=True)
        return _ordered(nesting, _outwards_in(nesting, self.inverses, self.halves, owns, rest)).T

    def rest_from(self, noise: np.ndarray) -> np.ndarray:
        """Draws, minus the mean, of all effects outside the first block, (rest, draws), from standard noise."""
        *owns, last = self._by_block(noise)
        shared = triangular(self.root, last, transposed=True)
        effects = _outwards_in(self.nesting, self.inverses, self.halves, owns, shared, 1)
        return np.concatenate([*(each.reshape(-1, noise.shape[1]) for each in effects[1:-1]), shared])

    def first_given(self, rest: np.ndarray, noise: np.ndarray | None = None) -> np.ndarray:
        """Conditional mean, or draws, of the first block given the others, all as deviations from their means."""
        shape = (*self.inverse.shape[:2], rest.shape[1])
        own = np.zeros(shape) if noise is None else noise.reshape(shape)
        effects = self._by_block(rest)
        return _given(self.nesting, self.inverses, self.halves, own, effects, 0).reshape(-1, rest.shape[1])

    def _by_block(self, rest: np.ndarray) -> list[np.ndarray]:
        """Rows for all effects outside the first block, by block: none for the first, those of shared effects last."""
        found, start = [np.zeros((0, 0, 0))], 0
        for inverse in self.inverses[1:]:
            size, width = inverse.shape[:2]
            found.append(rest[start : (start := start + size * width)].reshape(size, width, -1))
        return [*found, rest[start:]]


def _times(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Products of many small matrices; elementwise if the inner dimension is 1, which is faster."""
    return left * right if left.shape[2] == 1 else left @ right


def _given(
    nesting: Nesting,
    inverses: list[np.ndarray],
    halves: list[np.ndarray],
    own: np.ndarray,
    effects: list[np.ndarray],
    k: int,
) -> np.ndarray:
    """Effects of a factor, (size, width, m), from the outer ones: L⁻ᵀ (own − L⁻¹ B outer)."""
    half, after = halves[k], nesting.starts[k + 1]
    for j in range(k + 1, len(halves)):
        part = half[:, :, nesting.starts[j] - after : nesting.starts[j + 1] - after]
        own = own - _times(part, effects[j][nesting.parents[k, j]])
    part = half[:, :, nesting.starts[-1] - after :]
    own = own - (part.reshape(len(part) * part.shape[1], part.shape[2]) @ effects[-1]).reshape(own.shape)
    return _times(inverses[k].transpose(0, 2, 1), own)


def _outwards_in(
    nesting: Nesting,
    inverses: list[np.ndarray],
    halves: list[np.ndarray],
    owns: list[np.ndarray],
    shared: np.ndarray,
    least: int = 0,
) -> list[np.ndarray]:
    """Effects of factors, (size, width, m), then shared effects; down to the factor `least`."""
    effects = [*owns, shared]
    for k in range(len(halves) - 1, least - 1, -1):
        effects[k] = _given(nesting, inverses, halves, owns[k], effects, k)
    return effects


def _ordered(nesting: Nesting, effects: list[np.ndarray]) -> np.ndarray:
    """The effects in the order of θ, (total, m)."""
    *factors, shared = effects
    parts, start = dict(zip(nesting.factors, factors, strict=True)), 0
    for at in nesting.shared:
        parts[at] = shared[start : (start := start + nesting.blocks[at].width)]
    blocks, count = nesting.blocks, shared.shape[1]
    return np.concatenate([parts[at].reshape(block.total, count) for at, block in enumerate(blocks)])
