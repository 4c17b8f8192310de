"""Learning an edge: what a message becomes on the way, and what an observation says, each with its own choices.

All in finite coordinates of the variables' kernels, by pivoted Cholesky on their points: φ_s for node s. For an edge
with pairs (x_s, x_t) in rows i = 1, ..., m:

- the message operator t → s, U_{t|s} (Song et al. 2010, section 5): values p(x_t) become the function
  m(x) = φ_s(x)ᵀ (C_ss + λ I)⁻¹ (1/m) Σᵢ φ_s(x_sᵢ) p(x_tᵢ), a ridge regression of p on x_s;
- the likelihood operator A_st (section 4.2): an observation x̄ of t becomes m(x) = φ_s(x)ᵀ M φ_t(x̄) with
  M = (C_ss + λ₂ I)⁻¹ C_st (C_tt + λ₁ I)⁻¹, an estimate of the ratio p(x, x̄) / (p(x) p(x̄)).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg

from meanmap.bp.samples import NodeSample
from meanmap.core.points import any_sparse, dense, rows
from meanmap.embeddings.conditional import spread_rows
from meanmap.embeddings.likelihood import held_out_errors
from meanmap.kernels.base import Kernel
from meanmap.kernels.gram import gram_matrix
from meanmap.kernels.stationary import RBF
from meanmap.linalg.pivoted import pivoted_cholesky
from meanmap.linalg.ridge import Ridge
from meanmap.linalg.ridge_path import choose_ridge_features

__all__ = ["Coordinates", "LikelihoodEdge", "MessageEdge", "learn_likelihood", "learn_message"]

# What is left out of a kernel is far below any ridge that would be chosen.
TOLERANCE = 1e-8
MOST_FEATURES = 300
# Multiples of the median distance among which lengthscales are chosen, for messages and for likelihoods.
MESSAGE_LENGTHSCALES = (0.25, 0.5, 1.0, 2.0)
LIKELIHOOD_LENGTHSCALES = (0.35, 0.5, 0.7, 1.0, 1.4)
# A message is some smooth function of x_t; the regression is judged by how well it predicts functions of this width.
TARGET_LENGTHSCALE = 0.5
# Choices are made on up to this many pairs.
CHOICE_ROWS = 2000
LIKELIHOOD_RIDGES = np.geomspace(1e-5, 1e-1, 9)
FOLDS = 10


@dataclass(frozen=True, eq=False)
class Coordinates:
    """φ(x) = L⁻¹ k(pivots, x), with its values (N, r) at the points of a node."""

    kernel: Kernel
    pivots: Any
    triangle: np.ndarray
    values: np.ndarray
    multiple: float

    @classmethod
    def of(cls, sample: NodeSample, multiple: float = 1.0) -> "Coordinates":
        """Of a node's kernel, its lengthscale multiplied where it is ours to choose."""
        kernel = sample.kernel
        if multiple != 1.0:
            kernel = RBF(np.asarray(kernel.lengthscale) * multiple)  # pyright: ignore[reportAttributeAccessIssue]
        gram = gram_matrix(kernel, sample.points)
        low = pivoted_cholesky(gram.diagonal(), lambda i: gram[i], tolerance=TOLERANCE, max_rank=MOST_FEATURES)
        pivots = rows(sample.points, np.asarray(low.pivots))
        if any_sparse(pivots):
            pivots = dense(pivots)
        return cls(kernel, pivots, np.asarray(low.pivot_factor), np.asarray(low.factor), multiple)

    def at(self, points: Any) -> np.ndarray:
        """φ of points that were read, (m, r)."""
        cross = gram_matrix(self.kernel, self.pivots, points)
        return scipy.linalg.solve_triangular(self.triangle, cross, lower=True).T

    def on(self, points: Any) -> "Coordinates":
        """The same coordinates with their values at other points."""
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


def searched(sample: NodeSample) -> bool:
    """Whether a lengthscale is ours to choose."""
    return not sample.given and isinstance(sample.kernel, RBF)


class CoordinateBook:
    """Coordinates of one node at several lengthscales, each computed once."""

    def __init__(self, sample: NodeSample):
        self.sample = sample
        self.known: dict[float, Coordinates] = {}

    def at(self, multiple: float) -> Coordinates:
        """Those at a multiple of the median distance; at the kernel as it is where the user gave it."""
        multiple = multiple if searched(self.sample) else 1.0
        if multiple not in self.known:
            self.known[multiple] = Coordinates.of(self.sample, multiple)
        return self.known[multiple]


def learn_message(
    sender: CoordinateBook, receiver: CoordinateBook, pairs: np.ndarray, ridge: float | None
) -> MessageEdge:
    """U_{t|s} from pairs (m, 2) of rows (t, s): the lengthscale of s and the ridge of least leave-one-out error.

    The error is that of predicting the coordinates of x_t, so of any function of x_t with norm one.
    """
    chosen = pairs[spread_rows(len(pairs), CHOICE_ROWS)]
    targets = sender.at(TARGET_LENGTHSCALE).values[chosen[:, 0]]
    ridges = None if ridge is None else np.array([ridge])
    multiples = MESSAGE_LENGTHSCALES if searched(receiver.sample) else (1.0,)
    best: tuple[float, float, float] = (np.inf, 1.0, 0.0)
    for multiple in multiples:
        path = choose_ridge_features(receiver.at(multiple).values[chosen[:, 1]], targets, ridges=ridges)
        best = min(best, (float(path.scores.min()), multiple, float(path.best)))
    # What was chosen on fewer pairs keeps n λ, the shift that does the smoothing.
    multiple, lam = best[1], best[2] * (len(chosen) / len(pairs) if ridge is None else 1.0)
    coordinates = receiver.at(multiple)
    phi = coordinates.values[pairs[:, 1]]
    weights = Ridge.factor_features(phi, ridge=lam).solve(phi.T).T / len(pairs)
    into = np.zeros((sender.sample.count, phi.shape[1]))
    np.add.at(into, pairs[:, 0], weights)
    return MessageEdge(into, coordinates, lam)


def learn_likelihood(
    observed: CoordinateBook, receiver: CoordinateBook, pairs: np.ndarray, ridge: float | None
) -> LikelihoodEdge:
    """A_st from pairs (m, 2) of rows (t, s): both lengthscales by one multiple, both ridges by one relative size, of
    least held-out error as an estimate of the density ratio.
    """
    chosen = pairs[spread_rows(len(pairs), CHOICE_ROWS)]
    folds = np.arange(len(chosen)) % min(FOLDS, len(chosen))
    multiples = LIKELIHOOD_LENGTHSCALES if searched(observed.sample) or searched(receiver.sample) else (1.0,)
    best: tuple[float, float, float, float] = (np.inf, 1.0, 0.0, 0.0)
    for multiple in multiples:
        phi, psi = observed.at(multiple).values[chosen[:, 0]], receiver.at(multiple).values[chosen[:, 1]]
        grid_x, grid_y = (
            LIKELIHOOD_RIDGES * np.sum(f**2) / len(f) if ridge is None else np.array([ridge]) for f in (phi, psi)
        )
        scores = np.mean([held_out_errors(phi, psi, folds == i, grid_x, grid_y) for i in np.unique(folds)], axis=0)
        at = int(np.argmin(scores))
        best = min(best, (float(scores[at]), multiple, float(grid_x[at]), float(grid_y[at])))
    multiple = best[1]
    first, second = observed.at(multiple), receiver.at(multiple)
    phi, psi = first.values[pairs[:, 0]], second.values[pairs[:, 1]]
    cross = phi.T @ psi / len(pairs)
    precision = Ridge.factor_features(phi, ridge=best[2]).solve(np.eye(phi.shape[1]))
    left = precision @ cross
    inner = Ridge.factor_features(psi, ridge=best[3]).solve(left.T).T
    return LikelihoodEdge(first, inner, second, precision, best[2])
