"""The joint Gaussian of all effects, with one interface for every way to factor it."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import lapack

from meanmap.ep.linear.block import Block
from meanmap.ep.linear.predictor import Predictor, Prior

__all__ = ["Joint", "in_place", "inverse_root", "triangular", "whole_inverse"]

# SciPy's functions check and copy their arguments, which takes longer than solving small systems.
_LAPACK: Any = lapack
# Matrices up to this size are not worth treating as triangular.
_SMALL = 64


@dataclass(frozen=True)
class Joint(ABC):
    """N(mean, P⁻¹) with P = Q + Aᵀ W A, of which one block of effects was eliminated first, group by group.

    Attributes
    ----------
    predictor : Predictor
    prior : Prior
    order : tuple of int
        Of elimination: positions of the blocks.
    inverse : (size, width, width) array
        L⁻¹, where the precisions within groups of the block that was eliminated first are L Lᵀ.
    mean : (total,) array
        Of θ.
    log_normaliser : number
        log ∫ exp(−½ θᵀ P θ + hᵀ θ) dθ without powers of 2π.
    """

    predictor: Predictor
    prior: Prior
    order: tuple[int, ...]
    inverse: np.ndarray
    mean: np.ndarray
    log_normaliser: float

    @property
    def first(self) -> Block:
        """The block that was eliminated first."""
        return self.predictor.blocks[self.order[0]]

    @property
    def rest(self) -> int:
        """The number of other effects."""
        return self.predictor.total - self.first.total

    @cached_property
    def of_rows(self) -> np.ndarray:
        """Variances of the predictors of its own rows."""
        return self.variances()

    @abstractmethod
    def variances(self, predictor: Predictor | None = None) -> np.ndarray:
        """a_iᵀ P⁻¹ a_i of every row, or of the rows of another predictor of the same effects."""

    @abstractmethod
    def within(self, at: int) -> np.ndarray:
        """Covariances within each group of a block, (size, width, width)."""

    @abstractmethod
    def total_covariance(self, at: int) -> np.ndarray:
        """Covariances of the effects of a block, summed over its groups, (width, width)."""

    @abstractmethod
    def solve(self, combinations: np.ndarray) -> np.ndarray:
        """P⁻¹ c for each row c of combinations, in the order of θ."""

    @abstractmethod
    def rest_from(self, noise: np.ndarray) -> np.ndarray:
        """Draws of all effects except those of the first block, minus their mean, (rest, draws), from standard
        noise.
        """

    @abstractmethod
    def first_given(self, rest: np.ndarray, noise: np.ndarray | None = None) -> np.ndarray:
        """Deviations of the first block's effects from their mean, given those of the others: conditional means, or
        draws.
        """

    def second_moment(self, at: int) -> np.ndarray:
        """Σ E(u uᵀ) over the groups of a block, (width, width)."""
        effects = self.predictor.split(self.mean)[at]
        return effects.T @ effects + self.total_covariance(at)

    def draws(self, count: int, generator: np.random.Generator) -> np.ndarray:
        """(count, total) draws of θ."""
        rest = self.rest_from(generator.normal(size=(self.rest, count)))
        own = self.first_given(rest, generator.normal(size=(self.first.total, count)))
        return self.mean + in_place(self.predictor, self.order, own, rest).T


def in_place(predictor: Predictor, order: tuple[int, ...], first: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Parts that are in order of elimination, rearranged in the order of θ."""
    parts: list[np.ndarray] = [first] * len(order)
    start = 0
    for at in order[1:]:
        total = predictor.blocks[at].total
        parts[at] = rest[start : start + total]
        start += total
    return np.concatenate(parts)


def inverse_root(matrices: np.ndarray) -> np.ndarray:
    """L⁻¹ for each matrix L Lᵀ."""
    if matrices.shape[1] == 1:
        if not (matrices > 0).all():
            raise np.linalg.LinAlgError("a precision is not positive")
        return 1 / np.sqrt(matrices)
    if matrices.shape[1] == 2:
        return _inverse_root_of_pairs(matrices)
    return np.linalg.inv(np.linalg.cholesky(matrices))


def _inverse_root_of_pairs(matrices: np.ndarray) -> np.ndarray:
    """In a small part of the time of a library for matrices of any size."""
    first, cross, second = matrices[:, 0, 0], matrices[:, 1, 0], matrices[:, 1, 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        left = second - cross / first * cross
    if not ((first > 0) & (left > 0)).all():
        raise np.linalg.LinAlgError("a precision is not positive definite")
    found = np.zeros_like(matrices)
    found[:, 0, 0], found[:, 1, 1] = 1 / np.sqrt(first), 1 / np.sqrt(left)
    found[:, 1, 0] = -cross / first * found[:, 1, 1]
    return found


def triangular(lower: np.ndarray, right: np.ndarray, transposed: bool = False) -> np.ndarray:
    """L⁻¹ b, or L⁻ᵀ b."""
    return _LAPACK.dtrtrs(lower.T, right, trans=int(not transposed))[0] if right.size else right


def whole_inverse(lower: np.ndarray) -> np.ndarray:
    """The inverse (L Lᵀ)⁻¹ of a product, both triangles."""
    if len(lower) < _SMALL:
        root = triangular(lower, np.eye(len(lower)))
        return root.T @ root
    # L has zeros above its diagonal, and so has its inverse below.
    found = _LAPACK.dpotri(lower.T)[0]
    found += np.tril(found.T, -1)
    # It is symmetric, and others want it row by row.
    return found.T
