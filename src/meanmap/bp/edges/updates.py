"""Three ways to apply a learned operator: in full, in low rank, or at a cost that does not depend on the data.

A message from t to s is the regression on x_s of p(x_t), the product of all that t knows (Song et al. 2011).
With m pairs (x_t, x_s), p is needed

- full: at all m points of x_t, and the message is a combination of m functions k(x_s, ·): O(m²);
- linear: at all m points of x_t, and the message is a combination of r features φ(x_s): O(r m);
- constant: at the r' pivots of the tensor kernel k^q of x_t only; by interpolation they determine p elsewhere: O(r r').
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg

from meanmap.bp.edges.coordinates import coordinates, transformed
from meanmap.bp.edges.samples import NodeSample
from meanmap.bp.engine.operators import EdgeMatrices, EdgeOperators, Factored
from meanmap.core.arrays import parameter
from meanmap.core.errors import ParameterError
from meanmap.core.points import count, pieces, rows, spread_rows
from meanmap.core.types import Data, Points
from meanmap.features.lowrank import PivotedCholesky
from meanmap.kernels.base import Kernel
from meanmap.kernels.gram import gram_matrix
from meanmap.linalg.moments import Moments
from meanmap.linalg.ridge import Ridge

__all__ = ["Constant", "Full", "Linear", "Update", "Variable", "regressed"]

# The truncation error of a kernel where no approximation was requested.
EXACT = 1e-10
# Pairs that are read at once: the sums over a million pairs need the memory of this many.
CHUNK = 50_000
# The ridge, for one pair, of the regression that indicates where a variable was observed.
COVER = 0.1
# Where messages go many steps, the shrinkage of a ridge adds up: a regression that is 4% short leaves two thirds of a
# mean after ten steps. Its residuals are regressed again, twice, with the same ridge (iterated Tikhonov regularisation,
# Engl, Hanke & Neubauer 1996, section 5.1): of 4% a fifteen-thousandth part is left, and directions that are mostly
# noise stay shrunk. In the middle of 20 steps of Gaussian variables correlated by .9, with both ends at 1.5, errors
# (root mean square, in deviations) from 300, 600 and 2000 pairs were .45, .28 and .21 in one round, .19, .09 and .07 in
# two, .14, .07 and .06 in three; with two modes .13, .08 and .07 in one round, .13, .09 and .06 in three.
ROUNDS = 3

Learned = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Variable:
    """One kind of variable, ready to learn operators.

    Attributes
    ----------
    sample : NodeSample
        All points that were seen, N.
    kernel : Kernel
        k, its lengthscale chosen.
    features : PivotedCholesky
        φ, of rank r.
    tensor : PivotedCholesky or None
        Features of k^q: their pivots are the landmarks. None if messages have values at all N points.
    points : points
        Where messages have values: landmarks, or all N points.
    atoms, masses : points, array
        Points and weights that stand for the marginal distribution: beliefs put their mass there.
    """

    sample: NodeSample
    kernel: Kernel
    features: PivotedCholesky
    tensor: PivotedCholesky | None
    points: Any
    atoms: Any
    masses: np.ndarray

    @classmethod
    def everywhere(cls, sample: NodeSample, kernel: Kernel, features: PivotedCholesky) -> "Variable":
        """A variable with messages and beliefs at all points."""
        return cls(sample, kernel, features, None, sample.points, sample.points, np.ones(sample.count))

    @property
    def size(self) -> int:
        """L, the length of a message."""
        return count(self.points)

    def interpolation(self, xi: np.ndarray) -> np.ndarray:
        """V (n, L) from tensor features (n, L): a product of messages is V p at points, from its values p at landmarks.

        V = k^q(points, landmarks) k^q(landmarks, landmarks)⁻¹ = ξ(points) ξ(landmarks)⁻¹.
        """
        assert self.tensor is not None
        return scipy.linalg.solve_triangular(np.asarray(self.tensor.factor), xi.T, lower=True, trans=1).T


@dataclass(frozen=True)
class Update(ABC):
    """A way to compute messages: the points of their values, and how operators are learned and applied."""

    @abstractmethod
    def variable(self, sample: NodeSample, kernel: Kernel, name: Hashable) -> Variable:
        """Features, message points and atoms of a kind of variable."""

    @abstractmethod
    def learn(self, sender: Variable, receiver: Variable, pairs: np.ndarray, ridge: float, keeps: bool) -> Learned:
        """Learn the operator of one direction.

        The matrix (L_t, 1 + r) maps values of p at the sender's points to a constant and the coefficients of the
        message. Also returned are the coefficients (r,) of a function that is about 1 where x_s was observed in this
        direction, and 0 elsewhere. With `keeps`, for messages that travel many steps, the constant is not penalised,
        and further rounds restore what the ridge shrinks; otherwise the constant is zero.
        """

    def functions(self, receiver: Variable, points: Points, pairs: np.ndarray) -> np.ndarray:
        """The functions whose combination is a message, apart from its constant, at points of the receiver, (r, n)."""
        del pairs
        return transformed(receiver.features, points).T

    def operators(self, into: list[np.ndarray], out: list[np.ndarray], length: int) -> EdgeOperators:
        """Operators of all directions, from matrices (L_t, r) and (r, L_s), padded to the longest message."""
        matrices = np.zeros((len(into), length, length))
        for matrix, first, second in zip(matrices, into, out, strict=True):
            matrix[: len(first), : second.shape[1]] = first @ second
        return EdgeMatrices(matrices)


@dataclass(frozen=True)
class Full(Update):
    """No approximation: O(m²) per message, for up to a few thousand pairs."""

    def variable(self, sample: NodeSample, kernel: Kernel, name: Hashable) -> Variable:
        """Messages have values at all points."""
        return Variable.everywhere(sample, kernel, coordinates(kernel, sample.points, EXACT))

    def learn(self, sender: Variable, receiver: Variable, pairs: np.ndarray, ridge: float, keeps: bool) -> Learned:
        """Learn from the Gram matrix of all pairs."""
        number = len(pairs)
        gram = gram_matrix(receiver.kernel, rows(receiver.sample.points, pairs[:, 1]))
        inverse = Ridge.factor(gram, ridge=ridge).solve(np.eye(number))
        constant = keeps * inverse.sum(axis=0) / inverse.sum()
        weights = inverse - np.outer(constant, inverse.sum(axis=1))
        if keeps:  # the residuals of a round are m λ times its weights
            first, left = (constant, weights), number * ridge * weights
            for _ in range(ROUNDS - 1):
                constant, weights = first[0] + constant @ left, first[1] + weights @ left
        shift = COVER * gram.trace() / number**2
        cover = keeps * Ridge.factor(gram, ridge=shift).solve(np.ones(number))
        return _at_points(sender, pairs, constant, weights), cover

    def functions(self, receiver: Variable, points: Points, pairs: np.ndarray) -> np.ndarray:
        """k(x_s, ·) of each pair."""
        return gram_matrix(receiver.kernel, rows(receiver.sample.points, pairs[:, 1]), points)


@dataclass(frozen=True)
class _LowRank(Update):
    """Features until only this share of the kernel is left out, or this many.

    Parameters
    ----------
    tolerance : float in (0, 1)
        ε: the root mean square of ‖φ(x) − φ̃(x)‖ / ‖φ(x)‖ over the points that were learned from.
    rank : int, optional
        This many features instead.
    """

    tolerance: float = 1e-3
    rank: int | None = None

    def __post_init__(self):
        parameter(self.tolerance, "tolerance", axes=0)
        if self.tolerance >= 1:
            raise ParameterError(f"tolerance is {self.tolerance}; expected a share below 1, such as 1e-2.")
        if self.rank is not None:
            parameter(self.rank, "rank", axes=0, integer=True)

    def pivots(self, sample: NodeSample, kernel: Kernel, name: Hashable) -> Any:
        """Features of a kernel."""
        if self.rank is None:
            return coordinates(kernel, sample.points, self.tolerance**2, None)
        if self.rank > sample.count:
            raise ParameterError(
                f"rank is {self.rank}, and {name!r} has {sample.count} points; expected at most {sample.count}."
            )
        return coordinates(kernel, sample.points, 0.0, self.rank)


@dataclass(frozen=True)
class Linear(_LowRank):
    """Features φ of low rank, products still at all points: O(r m) per message.

    Parameters
    ----------
    tolerance : float in (0, 1)
        ε: the root mean square of ‖φ(x) − φ̃(x)‖ / ‖φ(x)‖ over the points that were learned from.
    rank : int, optional
        This many features instead.
    """

    def variable(self, sample: NodeSample, kernel: Kernel, name: Hashable) -> Variable:
        """Messages have values at all points."""
        return Variable.everywhere(sample, kernel, self.pivots(sample, kernel, name))

    def learn(self, sender: Variable, receiver: Variable, pairs: np.ndarray, ridge: float, keeps: bool) -> Learned:
        """Learn in features of the receiver."""
        number = len(pairs)
        phi = transformed(receiver.features, rows(receiver.sample.points, pairs[:, 1]))
        cover = _cover(phi.T @ phi / number, phi.mean(axis=0), number, keeps)
        means = keeps * phi.mean(axis=0)
        factor = Ridge.factor_features(phi - means, ridge=ridge)
        weights = regressed(factor.solve, (phi - means).T / number, ridge, keeps).T
        return _at_points(sender, pairs, keeps / number - weights @ means, weights), cover

    def operators(self, into: list[np.ndarray], out: list[np.ndarray], length: int) -> EdgeOperators:
        """Operators as two factors of low rank."""
        rank = max(len(each) for each in out)
        first, second = np.zeros((len(into), length, rank)), np.zeros((len(into), rank, length))
        for e, (one, other) in enumerate(zip(into, out, strict=True)):
            first[e, : len(one), : one.shape[1]] = one
            second[e, : len(other), : other.shape[1]] = other
        return Factored(first, second)


@dataclass(frozen=True)
class Constant(_LowRank):
    """Features of low rank and messages at a few learned points: the cost of a message does not depend on the data.

    Parameters
    ----------
    tolerance : float in (0, 1)
        ε, for the features and for the tensor features.
    rank : int, optional
        This many features and landmarks instead.
    power : int
        q: products of this many messages are interpolated from landmarks. On a grid a pixel multiplies three messages
        before it sends.
    atoms : int
        The most points on which a belief puts its mass.
    """

    tolerance: float = 1e-2
    rank: int | None = None
    power: int = 3
    atoms: int = 256

    def __post_init__(self):
        super().__post_init__()
        parameter(self.power, "power", axes=0, integer=True)
        parameter(self.atoms, "atoms", axes=0, integer=True)

    def variable(self, sample: NodeSample, kernel: Kernel, name: Hashable) -> Variable:
        """Messages have values at the pivots of k^q; beliefs have their mass at atoms."""
        tensor = self.pivots(sample, kernel**self.power, name)
        atoms, masses = atoms_of(sample.points, self.atoms)
        return Variable(sample, kernel, self.pivots(sample, kernel, name), tensor, tensor.pivots, atoms, masses)

    def learn(self, sender: Variable, receiver: Variable, pairs: np.ndarray, ridge: float, keeps: bool) -> Learned:
        """The regression of V(x_t) on φ(x_s), the sums piece by piece. Cost O(m (r + L_t)²)."""
        assert sender.tensor is not None
        rank, both = receiver.features.size, Moments.none(receiver.features.size + sender.size)
        for part in pieces(pairs, CHUNK):
            phi = transformed(receiver.features, rows(receiver.sample.points, part[:, 1]))
            xi = transformed(sender.tensor, rows(sender.sample.points, part[:, 0]))
            both = both.merge(Moments.of(np.concatenate([phi, xi], axis=1)))
        means, covariance = both.mean[:rank], both.second[:rank, :rank]
        values, cross = (sender.interpolation(each) for each in (both.mean[None, rank:], both.second[:rank, rank:]))
        values = values[0]
        cover = _cover(covariance, means, len(pairs), keeps)
        if keeps:
            # Between landmarks a constant comes out a little lower, and far from all of them as zero: what is missing
            # there is the mean.
            values = values / values.sum()
            cross += np.outer(means - cross.sum(axis=1), values)
        else:
            means, values = np.zeros(rank), np.zeros(sender.size)
        factor = scipy.linalg.cho_factor(covariance - np.outer(means, means) + ridge * np.eye(rank))
        solve = partial(scipy.linalg.cho_solve, factor)
        weights = regressed(solve, cross - np.outer(means, values), ridge, keeps)
        return np.concatenate([(values - means @ weights)[:, None], weights.T], axis=1), cover


def regressed(solve: Callable, right: np.ndarray, ridge: float, keeps: bool) -> np.ndarray:
    """(C + λ I)⁻¹ `right`; where messages go many steps, what is left of it is regressed again."""
    weights = solve(right)
    for _ in range(ROUNDS - 1 if keeps else 0):
        weights = solve(right + ridge * weights)
    return weights


def _at_points(sender: Variable, pairs: np.ndarray, constant: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Extend weights on the pairs, (m,) and (m, r), to all points of the sender, (L_t, 1 + r)."""
    into = np.zeros((sender.size, 1 + weights.shape[1]))
    np.add.at(into, pairs[:, 0], np.concatenate([constant[:, None], weights], axis=1))
    return into


def _cover(covariance: np.ndarray, means: np.ndarray, number: int, keeps: bool) -> np.ndarray:
    """The regression of 1 on features, with so small a ridge that a single pair is enough for more than a half."""
    shifted = covariance + COVER * np.trace(covariance) / number * np.eye(len(means))
    return keeps * scipy.linalg.solve(shifted, means, assume_a="pos")


def atoms_of(points: Data, most: int) -> tuple[Any, np.ndarray]:
    """Distinct points with their counts where there are few; else quantiles of numbers, or evenly spread points."""
    if not isinstance(points, np.ndarray):
        chosen = spread_rows(count(points), most)
        return rows(points, chosen), np.ones(len(chosen))
    distinct, counts = np.unique(points, axis=0, return_counts=True)
    if len(distinct) <= most:
        return distinct, counts.astype(float)
    if points.shape[1:] == (1,):
        return np.quantile(points, (np.arange(most) + 0.5) / most, axis=0), np.ones(most)
    return points[spread_rows(len(points), most)], np.ones(most)
