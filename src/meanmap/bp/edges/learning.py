"""Learning an edge: the operator of messages and the likelihood of observations, each with its own settings.

All in finite coordinates of the variables' kernels, by pivoted Cholesky on their points: φ_s for node s. For an edge
with pairs (x_s, x_t) in rows i = 1, ..., m:

- the message operator t → s, U_{t|s} (Song et al. 2010, section 5): values p(x_t) become the function
  m(x) = φ_s(x)ᵀ (C_ss + λ I)⁻¹ (1/m) Σᵢ φ_s(x_sᵢ) p(x_tᵢ), a ridge regression of p on x_s;
- the likelihood operator A_st (section 4.2): an observation x̄ of t becomes m(x) = φ_s(x)ᵀ M φ_t(x̄) with
  M = (C_ss + λ₂ I)⁻¹ C_st (C_tt + λ₁ I)⁻¹, an estimate of the ratio p(x, x̄) / (p(x) p(x̄)).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from meanmap.bp.edges.coordinates import (
    MOST_FEATURES,
    MOST_RANK,
    TOLERANCE,
    Coordinates,
    CoordinatesByScale,
    coordinates,
    rescaled,
    transformed,
)
from meanmap.bp.edges.floors import FLOOR, raised
from meanmap.bp.edges.observations import Likelihood, columns, sample_of
from meanmap.bp.edges.samples import NodeSample
from meanmap.bp.edges.updates import regressed
from meanmap.core.arrays import check_paired
from meanmap.core.door import Door
from meanmap.core.points import rows, spread_rows
from meanmap.core.tables.indices import check_order
from meanmap.core.types import Data, Points
from meanmap.features.lowrank import PivotedCholesky
from meanmap.kernels.base import Kernel
from meanmap.kernels.reading import check_alike, read_points
from meanmap.learning.density_ratio import AT_ONCE, LeftOut, held_out_surprises, ratio_errors, ratio_operator
from meanmap.learning.fit import Choice, relative
from meanmap.linalg.ridge import Ridge

__all__ = [
    "CHOICE_ROWS",
    "LearnedLikelihood",
    "LikelihoodEdge",
    "MessageEdge",
    "learn_likelihood",
    "learn_message",
    "left_out_errors",
]

# Choices are made on up to this many pairs.
CHOICE_ROWS = 2000

# Rules and candidates were chosen on Gaussian chains and trees and chains of bimodal variables, 100 to 1000 pairs.
MESSAGES = Choice((0.25, 0.5, 1.0, 2.0), np.geomspace(1e-3, 1e2, 16), (1.0, 0.03), True)
LIKELIHOODS = Choice((0.35, 0.5, 0.7, 1.0, 1.4), np.geomspace(1e-2, 1e1, 10), (0.7, 0.1), True)

# For observations and in fields, the likelihood operator is a least-squares density ratio from at most this many pairs,
# which are enough for one function of two variables.
RATIO_ROWS = 4000
RATIOS = Choice((0.25, 0.35, 0.5, 0.7, 1.0, 1.4), np.geomspace(1e-5, 1e-1, 9), narrower=True)

# A message is some smooth function of x_t; the regression is judged by how well it predicts functions of this width.
TARGET_LENGTHSCALE = 1.0


@dataclass(frozen=True, eq=False)
class MessageEdge:
    """The message operator t → s: values at the points of t times `into` (N_t, r) are the coefficients of a
    function of x_s in the coordinates `receiver`.
    """

    into: np.ndarray
    receiver: Coordinates
    ridge: float

    @property
    def out(self) -> np.ndarray:
        """The matrix from coefficients to values at the points of s, (r, N_s)."""
        return self.receiver.values.T


@dataclass(frozen=True, eq=False)
class LikelihoodEdge:
    """The likelihood operator of t for s: φ_t(x̄)ᵀ `inner` (r_t, r_s) are the coefficients of a function of x_s in
    the coordinates `receiver`. `precision` is (C_tt + λ₁ I)⁻¹.
    """

    observed: Coordinates
    inner: np.ndarray
    receiver: Coordinates
    precision: np.ndarray
    ridge: float

    @cached_property
    def matrix(self) -> np.ndarray:
        """The matrix from φ_t(x̄) to values at the points of s, (r_t, N_s)."""
        return self.inner @ self.receiver.values.T

    def message(self, phi: np.ndarray, floor: float | None = FLOOR) -> np.ndarray:
        """The likelihoods of observations with coordinates φ_t(x̄), (B, N_s) at the points of s."""
        return raised(phi @ self.matrix, floor)


def learn_message(
    sender: CoordinatesByScale, receiver: CoordinatesByScale, pairs: np.ndarray, ridge: float | None, far: bool = False
) -> MessageEdge:
    """U_{t|s} from pairs (m, 2) of rows (t, s), its lengthscale of s and ridge by leave-one-out errors.

    The error is that of predicting the coordinates of x_t, so of any function of x_t with norm one. Where messages go
    `far`, what a chosen ridge shrinks is restored.
    """
    chosen = pairs[spread_rows(len(pairs), CHOICE_ROWS)]
    targets = sender.some(TARGET_LENGTHSCALE, chosen[:, 0], MOST_FEATURES)

    choice = MESSAGES.kept(receiver.sample.searched).on(len(chosen), ridge)

    def errors(phi: np.ndarray) -> np.ndarray:
        return left_out_errors(phi, targets, choice.ridges if ridge is not None else relative(choice.ridges, phi))

    multiple, lam = _chosen(choice, lambda m, most: receiver.some(m, chosen[:, 1], most), errors, receiver)
    coordinates = receiver.at(multiple)
    phi = coordinates.values[pairs[:, 1]]
    lam = lam if ridge is not None else lam * rescaled_ridge(phi, len(chosen))
    solve = Ridge.factor_features(phi, ridge=lam).solve
    weights = regressed(solve, phi.T, lam, far and ridge is None).T / len(pairs)
    into = np.zeros((sender.sample.count, phi.shape[1]))
    np.add.at(into, pairs[:, 0], weights)
    return MessageEdge(into, coordinates, lam)


def learn_likelihood(
    observed: CoordinatesByScale, receiver: CoordinatesByScale, pairs: np.ndarray, ridge: float | None
) -> LikelihoodEdge:
    """A_st from pairs (m, 2) of rows (t, s): both lengthscales by one multiple, both ridges by one relative size, by
    how probable the operator makes x_s given x_t for pairs that were held out.
    """
    chosen = pairs[spread_rows(len(pairs), CHOICE_ROWS)]

    choice = LIKELIHOODS.kept(observed.sample.searched or receiver.sample.searched).on(len(chosen), ridge)

    def features(multiple: float, most: int) -> list[LeftOut]:
        phi = observed.left_out(multiple, chosen[:, 0], most)
        return [phi, receiver.left_out(multiple, chosen[:, 1], most, phi.folds)]

    def surprises(pair: list[LeftOut]) -> np.ndarray:
        grids = [choice.ridges if ridge is not None else relative(choice.ridges, each.features) for each in pair]
        return held_out_surprises(pair[0], pair[1], grids[0], grids[1])

    multiple, lam = _chosen(choice, features, surprises, observed, receiver)
    first, second = observed.at(multiple), receiver.at(multiple)
    phi, psi = first.values[pairs[:, 0]], second.values[pairs[:, 1]]
    lams = [lam if ridge is not None else lam * rescaled_ridge(f, len(chosen)) for f in (phi, psi)]
    factors = [Ridge.factor_features(f, ridge=lam) for f, lam in zip((phi, psi), lams, strict=True)]
    precision = factors[0].solve(np.eye(phi.shape[1]))
    return LikelihoodEdge(first, ratio_operator(phi, psi, *factors), second, precision, lams[0])


def left_out_errors(phi: np.ndarray, targets: np.ndarray, ridges: np.ndarray) -> np.ndarray:
    """‖y − ŷ‖² of each pair when the regression of y (m, q) on φ (m, r) is fitted without it, (ridges, m)."""
    m = len(phi)
    spectrum, axes = np.linalg.eigh(phi.T @ phi / m)
    rotated = phi @ axes
    cross = rotated.T @ targets / m
    errors = []
    step = max(1, AT_ONCE // (m * max(cross.shape)))
    for some in (ridges[start : start + step] for start in range(0, len(ridges), step)):
        shrunk = rotated / (np.maximum(spectrum, 0) + some[:, None])[:, None]
        residuals = targets - (shrunk.reshape(-1, len(cross)) @ cross).reshape(len(some), *targets.shape)
        left = 1 - np.sum(shrunk * rotated, axis=2) / m
        errors.append(np.einsum("lmq,lmq->lm", residuals, residuals) / left**2)
    return np.concatenate(errors)


def _chosen(
    choice: Choice,
    features: Callable[[float, int], Any],
    criterion: Callable[[Any], np.ndarray],
    *books: CoordinatesByScale,
) -> tuple[float, float]:
    """The multiple with a few features; then, where it has more of them, the ridge with all of these."""
    wide = len(choice.lengthscales) == 1
    multiple, at, _ = choice.fit(lambda m: features(m, MOST_RANK if wide else MOST_FEATURES), criterion)
    if not wide and any(book.wider(multiple) for book in books):
        at = choice.at(multiple).fit(lambda m: features(m, MOST_RANK), criterion)[1]
    return multiple, float(choice.ridges[at])


def rescaled_ridge(phi: np.ndarray, number: int) -> float:
    """The factor from a relative ridge that was chosen on `number` pairs to one for all m: ridges fall like 1 / √m."""
    return float(np.mean(np.sum(phi**2, axis=1))) * float(np.sqrt(number / len(phi)))


@dataclass(frozen=True, eq=False)
class LearnedLikelihood(Likelihood):
    """The likelihood operator: φ(y)ᵀ M ψ(x), M = (C_yy + λ I)⁻¹ C_yx (C_xx + λ I)⁻¹ (Song et al. 2010, equation 8).

    An estimate of p(x, y) / (p(x) p(y)); its held-out error chooses one multiple of both median lengthscales, and a
    ridge relative to the size of each kernel. Made by `LearnedLikelihood.fit`.
    """

    observed: NodeSample
    phi: PivotedCholesky
    psi: PivotedCholesky
    matrix: np.ndarray
    ridge: float
    multiple: float

    @classmethod
    def fit(cls, hidden: Data, observed: Data, kernel: Kernel | None = None) -> "LearnedLikelihood":
        """Fit to pairs; `kernel` compares observations, by default by RBF, or Delta for labels.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=400)
        >>> likelihood = LearnedLikelihood.fit(x, x + 0.5 * rng.normal(size=400))
        >>> low, high = likelihood.at([1.0], np.array([[-1.0], [1.0]]))[0]
        >>> bool(low < 0.2 < high)
        True
        """
        check_order((hidden, observed), ("hidden", "observed"))
        return cls.between(sample_of(hidden, None, "hidden"), sample_of(observed, kernel, "observed"))

    @classmethod
    def between(cls, hidden: NodeSample, observed: NodeSample, pairs: np.ndarray | None = None) -> "LearnedLikelihood":
        """Fit to node samples, given the pairs (m, 2) of their rows (observed, hidden)."""
        if pairs is None:
            check_paired(hidden.count, observed.count, "hidden", "observed")
            pairs = np.repeat(np.arange(hidden.count)[:, None], 2, axis=1)
        pairs = pairs[spread_rows(len(pairs), RATIO_ROWS)]
        seen = [rows(observed.points, pairs[:, 0]), rows(hidden.points, pairs[:, 1])]

        def made_at(multiple: float) -> Any:
            kernels = [rescaled(sample, multiple) for sample in (observed, hidden)]
            features = [coordinates(k, p, TOLERANCE, MOST_FEATURES) for k, p in zip(kernels, seen, strict=True)]
            pair = [transformed(f, p) for f, p in zip(features, seen, strict=True)]
            return features, pair, [relative(RATIOS.ridges, f) for f in pair]

        choice = RATIOS.kept(observed.searched or hidden.searched)
        multiple, at, made = choice.fit(made_at, lambda made: ratio_errors(*made[1], *made[2]))
        features, (phi, psi), grids = made
        factors = (Ridge.factor_features(f, ridge=grid[at]) for f, grid in zip((phi, psi), grids, strict=True))
        matrix = ratio_operator(phi, psi, *factors)
        return cls(observed, features[0], features[1], matrix, float(grids[0][at]), multiple)

    @property
    def width(self) -> int:
        """The schema of the observations that it was learned from."""
        return columns(self.observed.points)

    def at(self, observed: Data, points: Points) -> np.ndarray:
        """The density ratio, scaled to a maximum of 1; where it comes out small or negative, `FLOOR` of its mean."""
        return self.at_points(self._read(observed), points)

    def at_points(self, read: object, points: Points, floor: float | None = FLOOR) -> np.ndarray:
        """The likelihoods of observations that were read, (N, n) at points that were read."""
        return raised(transformed(self.phi, read) @ self.matrix @ transformed(self.psi, points).T, floor)

    def at_each(self, observed: Data, points: np.ndarray) -> np.ndarray:
        """Likelihoods where each observation has points of its own, (N, n), all at once."""
        there = transformed(self.psi, points.reshape(-1, points.shape[-1])).reshape(*points.shape[:2], -1)
        return raised(np.einsum("ir,ijr->ij", transformed(self.phi, self._read(observed)) @ self.matrix, there), FLOOR)

    def _read(self, observed: Data) -> Any:
        with Door() as door:
            read = read_points(self.observed.kernel, observed, "observed", door)
        check_alike(read, self.observed.points, "the observations", "those that were learned from")
        return read
