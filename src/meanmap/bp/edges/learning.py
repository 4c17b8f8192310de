"""Learning an edge: what a message becomes on the way, and what an observation says, each with its own choices.

All in finite coordinates of the variables' kernels, by pivoted Cholesky on their points: φ_s for node s. For an edge
with pairs (x_s, x_t) in rows i = 1, ..., m:

- the message operator t → s, U_{t|s} (Song et al. 2010, section 5): values p(x_t) become the function
  m(x) = φ_s(x)ᵀ (C_ss + λ I)⁻¹ (1/m) Σᵢ φ_s(x_sᵢ) p(x_tᵢ), a ridge regression of p on x_s;
- the likelihood operator A_st (section 4.2): an observation x̄ of t becomes m(x) = φ_s(x)ᵀ M φ_t(x̄) with
  M = (C_ss + λ₂ I)⁻¹ C_st (C_tt + λ₁ I)⁻¹, an estimate of the ratio p(x, x̄) / (p(x) p(x̄)).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from meanmap.bp.edges.coordinates import MOST_FEATURES, TOLERANCE, coordinates, rescaled, transformed
from meanmap.bp.edges.samples import NodeSample
from meanmap.core.door import Door
from meanmap.core.points import any_sparse, rows, spread_rows
from meanmap.core.report import Report
from meanmap.core.types import Data, Points
from meanmap.features.lowrank import PivotedCholesky
from meanmap.kernels.base import Kernel
from meanmap.kernels.gram import diagonal_array, gram_matrix
from meanmap.learning.choice import Rule
from meanmap.learning.density_ratio import LeftOut, held_out_surprises, ratio_operator
from meanmap.linalg.pivoted import PivotedCholesky as Factor
from meanmap.linalg.pivoted import pivoted_cholesky, pivoted_coordinates
from meanmap.linalg.ridge import Ridge

__all__ = [
    "CHOICE_ROWS",
    "Coordinates",
    "CoordinatesByScale",
    "LikelihoodEdge",
    "MessageEdge",
    "learn_likelihood",
    "learn_message",
    "left_out_errors",
]

# Up to so many coordinates of a variable are kept where they and its points are few, and `MOST_FEATURES` at least.
MOST_RANK = 1000
MOST_NUMBERS = 5_000_000
# Values at up to so many points are kept from edge to edge: the middle of a star has hundreds.
FEW_POINTS = 1000
# Choices are made on up to this many pairs.
CHOICE_ROWS = 2000

# Rules and candidates were chosen on Gaussian chains and trees and chains of bimodal variables, 100 to 1000 pairs.
MESSAGE_RULE = Rule(1.0, 0.03, (0.25, 0.5, 1.0, 2.0), np.geomspace(1e-3, 1e2, 16))
LIKELIHOOD_RULE = Rule(0.7, 0.1, (0.35, 0.5, 0.7, 1.0, 1.4), np.geomspace(1e-2, 1e1, 10))

# A message is some smooth function of x_t; the regression is judged by how well it predicts functions of this width.
TARGET_LENGTHSCALE = 1.0


@dataclass(frozen=True, eq=False)
class Coordinates:
    """φ(x) = L⁻¹ k(pivots, x), with its values (N, r) at the points of a node; `left_out` is the share of the kernel's
    trace at these points that is not in them.
    """

    kernel: Kernel
    pivots: Any
    triangle: np.ndarray
    values: np.ndarray
    multiple: float
    left_out: float = 0.0

    @classmethod
    def of(
        cls, features: PivotedCholesky, points: Data, multiple: float, values: np.ndarray | None = None
    ) -> "Coordinates":
        """Pivots of a kernel, with their values at all points of a node, where these are known already."""
        values = transformed(features, points) if values is None else values
        with Door() as door:
            whole = float(np.sum(diagonal_array(features.kernel, points, door)))
        left = max(1 - float(np.sum(values**2)) / whole, 0.0)
        return cls(features.kernel, features.pivots, np.asarray(features.factor), values, multiple, left)

    def at(self, points: Points) -> np.ndarray:
        """φ of points that were read, (m, r)."""
        return pivoted_coordinates(self.triangle, gram_matrix(self.kernel, self.pivots, points))

    def on(self, points: Points) -> "Coordinates":
        """These coordinates, holding their values at other points."""
        return replace(self, values=self.at(points))


@dataclass(frozen=True, eq=False)
class MessageEdge:
    """What a message becomes along t → s: values at the points of t times `into` (N_t, r) are the coefficients of a
    function of x_s in the coordinates `receiver`.
    """

    into: np.ndarray
    receiver: Coordinates
    ridge: float

    @property
    def out(self) -> np.ndarray:
        """From coefficients to values at the points of s, (r, N_s)."""
        return self.receiver.values.T


@dataclass(frozen=True, eq=False)
class LikelihoodEdge:
    """What an observation of t says about s: φ_t(x̄)ᵀ `inner` (r_t, r_s) are the coefficients of a function of x_s in
    the coordinates `receiver`. `precision` is (C_tt + λ₁ I)⁻¹.
    """

    observed: Coordinates
    inner: np.ndarray
    receiver: Coordinates
    precision: np.ndarray
    ridge: float

    @cached_property
    def matrix(self) -> np.ndarray:
        """From φ_t(x̄) to values at the points of s, (r_t, N_s)."""
        return self.inner @ self.receiver.values.T


@dataclass(frozen=True, eq=False)
class _Factored:
    """Few points whose Gram matrix was factored: features are made of it only at lengthscales that are chosen, because
    putting four small arrays on a device takes longer than all else.
    """

    kernel: Kernel
    points: Points
    low: Factor

    @classmethod
    def of(cls, kernel: Kernel, points: Points, gram: np.ndarray, most: int) -> "_Factored":
        """A factor of at most so many columns."""
        return cls(
            kernel, points, pivoted_cholesky(gram.diagonal(), gram.__getitem__, tolerance=TOLERANCE, max_rank=most)
        )

    @property
    def size(self) -> int:
        """r, how many columns there are."""
        return int(self.low.rank)

    @cached_property
    def report(self) -> Report:
        """How the factorisation ended."""
        return self.low.report

    def features(self) -> PivotedCholesky:
        """What maps new points to the same coordinates."""
        with Door() as door:
            return PivotedCholesky.of_factor(self.kernel, self.points, self.low, door)


class CoordinatesByScale:
    """Coordinates of one node at several lengthscales, each computed once.

    Choices between lengthscales are made with `MOST_FEATURES` of them, on a few rows.

    Parameters
    ----------
    sample : NodeSample
    rank : int, optional
        The most coordinates; by default as many as leave out a hundred-millionth, up to `MOST_RANK`.
    """

    def __init__(self, sample: NodeSample, rank: int | None = None):
        self.sample = sample
        self.rank = int(np.clip(MOST_NUMBERS // sample.count, MOST_FEATURES, MOST_RANK)) if rank is None else rank
        self.features: dict[tuple[float, int], PivotedCholesky | _Factored] = {}
        self.values: dict[tuple[float, int], np.ndarray] = {}
        self.squared: np.ndarray | None = None
        self.decomposed: dict[tuple[float, int, int], LeftOut] = {}
        self.known: dict[float, Coordinates] = {}

    def some(self, multiple: float, chosen: np.ndarray, most: int) -> np.ndarray:
        """Values (m, r) of at most so many coordinates at some rows."""
        features = self._features(multiple, most)
        if self.sample.count > FEW_POINTS and not isinstance(features, _Factored):
            return transformed(features, rows(self.sample.points, chosen))
        at = self._multiple(multiple), features.size
        if not isinstance(features, _Factored) and at not in self.values:
            self.values[at] = transformed(features, self.sample.points)
        return self.values[at][chosen]

    def left_out(self, multiple: float, chosen: np.ndarray, most: int, folds: int | None = None) -> LeftOut:
        """Values at some rows, decomposed without each fold; kept where these are all rows in order, as in both
        directions of an edge and round the middle of a star.
        """
        values = self.some(multiple, chosen, most)
        if len(chosen) != self.sample.count or (np.diff(chosen) != 1).any():
            return LeftOut(values, folds)
        fresh = LeftOut(values, folds)
        at = self._multiple(multiple), values.shape[1], fresh.folds
        return self.decomposed.setdefault(at, fresh)

    def at(self, multiple: float) -> Coordinates:
        """All coordinates at a multiple of the median distance; at the kernel as it is where the user gave it."""
        multiple = self._multiple(multiple)
        if multiple not in self.known:
            features = self._features(multiple, self.rank)
            known = self.values.get((multiple, features.size))
            whole = features.features() if isinstance(features, _Factored) else features
            self.known[multiple] = Coordinates.of(whole, self.sample.points, multiple, known)
        return self.known[multiple]

    def wider(self, multiple: float) -> bool:
        """Whether there are more coordinates than choices between lengthscales are made with."""
        few = self._features(multiple, MOST_FEATURES)
        return self.rank > MOST_FEATURES and few.size == MOST_FEATURES and not few.report.converged

    def _multiple(self, multiple: float) -> float:
        return multiple if self.sample.searched else 1.0

    def _features(self, multiple: float, most: int) -> "PivotedCholesky | _Factored":
        multiple, most = self._multiple(multiple), min(most, self.rank)
        few = self.features.get((multiple, MOST_FEATURES))
        if few is not None and few.report.converged:
            return few
        if (multiple, most) not in self.features:
            kernel = rescaled(self.sample, multiple)
            if self.sample.searched and self.sample.count <= FEW_POINTS and not any_sparse(self.sample.points):
                found = _Factored.of(kernel, self.sample.points, self._gram(multiple), most)
                self.values[multiple, found.size] = found.low.factor
            else:
                found = coordinates(kernel, self.sample.points, TOLERANCE, most)
            self.features[multiple, most] = found
        return self.features[multiple, most]

    def _gram(self, multiple: float) -> np.ndarray:
        """exp(−d² / 2 ℓ²) of all points, with distances that are found once: hundreds of variables of sixty rows would
        otherwise spend half of their time on the way into compiled programs and out.
        """
        if self.squared is None:
            from scipy.spatial.distance import cdist

            points = np.asarray(self.sample.points) / np.asarray(self.sample.kernel.lengthscale)  # pyright: ignore[reportAttributeAccessIssue]
            self.squared = cdist(points, points, "sqeuclidean")
        return np.exp(-0.5 / multiple**2 * self.squared)


def learn_message(
    sender: CoordinatesByScale, receiver: CoordinatesByScale, pairs: np.ndarray, ridge: float | None
) -> MessageEdge:
    """U_{t|s} from pairs (m, 2) of rows (t, s), its lengthscale of s and ridge by leave-one-out errors.

    The error is that of predicting the coordinates of x_t, so of any function of x_t with norm one.
    """
    chosen = pairs[spread_rows(len(pairs), CHOICE_ROWS)]
    targets = sender.some(TARGET_LENGTHSCALE, chosen[:, 0], MOST_FEATURES)

    def score(multiple: float, most: int) -> dict[float, np.ndarray]:
        phi = receiver.some(multiple, chosen[:, 1], most)
        ridges = rule.ridges * np.mean(np.sum(phi**2, axis=1)) if ridge is None else rule.ridges
        return dict(zip(rule.ridges, left_out_errors(phi, targets, ridges), strict=True))

    rule = MESSAGE_RULE.on(len(chosen), receiver.sample.searched, ridge)
    multiple, lam = _chosen(rule, score, receiver)
    coordinates = receiver.at(multiple)
    phi = coordinates.values[pairs[:, 1]]
    lam = lam if ridge is not None else lam * rescaled_ridge(phi, len(chosen))
    weights = Ridge.factor_features(phi, ridge=lam).solve(phi.T).T / len(pairs)
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

    def score(multiple: float, most: int) -> dict[float, np.ndarray]:
        phi = observed.left_out(multiple, chosen[:, 0], most)
        psi = receiver.left_out(multiple, chosen[:, 1], most, phi.folds)
        sizes = [np.mean(np.sum(f.features**2, axis=1)) if ridge is None else 1.0 for f in (phi, psi)]
        grids = rule.ridges * sizes[0], rule.ridges * sizes[1]
        return dict(zip(rule.ridges, held_out_surprises(phi, psi, *grids), strict=True))

    rule = LIKELIHOOD_RULE.on(len(chosen), observed.sample.searched or receiver.sample.searched, ridge)
    multiple, lam = _chosen(rule, score, observed, receiver)
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
    for ridge in ridges:
        shrunk = rotated / (np.maximum(spectrum, 0) + ridge)
        leverage = np.sum(shrunk * rotated, axis=1) / m
        residuals = (targets - shrunk @ cross) / (1 - leverage)[:, None]
        errors.append(np.sum(residuals**2, axis=1))
    return np.array(errors)


def _chosen(
    rule: Rule, score: Callable[[float, int], dict[float, np.ndarray]], *books: CoordinatesByScale
) -> tuple[float, float]:
    """The multiple with a few features; then, where it has more of them, the ridge with all of these."""
    wide = len(rule.multiples) == 1
    multiple, lam = rule.search(lambda m: score(m, MOST_RANK if wide else MOST_FEATURES))
    if not wide and any(book.wider(multiple) for book in books):
        lam = rule.at(multiple).search(lambda m: score(m, MOST_RANK))[1]
    return multiple, lam


def rescaled_ridge(phi: np.ndarray, number: int) -> float:
    """What turns a relative ridge that was chosen on `number` pairs into one for all m: ridges fall like 1 / √m."""
    return float(np.mean(np.sum(phi**2, axis=1))) * float(np.sqrt(number / len(phi)))
