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

from meanmap.bp.choice import (
    CHOICE_ROWS,
    LIKELIHOOD_RULE,
    MESSAGE_RULE,
    held_out_surprises,
    left_out_errors,
)
from meanmap.bp.samples import NodeSample
from meanmap.core.domains import Real
from meanmap.core.points import any_sparse, dense, rows
from meanmap.embeddings.conditional import spread_rows
from meanmap.kernels.base import Kernel
from meanmap.kernels.gram import gram_matrix
from meanmap.kernels.stationary import RBF
from meanmap.linalg.pivoted import pivoted_cholesky
from meanmap.linalg.ridge import Ridge

__all__ = [
    "MOST_FEATURES",
    "TOLERANCE",
    "CoordinateBook",
    "Coordinates",
    "LikelihoodEdge",
    "MessageEdge",
    "learn_likelihood",
    "learn_message",
]

# What is left out of a kernel is far below any ridge that would be chosen.
TOLERANCE = 1e-8
MOST_FEATURES = 300
# A message is some smooth function of x_t; the regression is judged by how well it predicts functions of this width.
TARGET_LENGTHSCALE = 1.0


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
        if any_sparse(pivots) and isinstance(kernel.domain, Real):  # counts of texts have 2⁶² columns and stay sparse
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


class CoordinateBook:
    """Coordinates of one node at several lengthscales, each computed once."""

    def __init__(self, sample: NodeSample):
        self.sample = sample
        self.known: dict[float, Coordinates] = {}

    def at(self, multiple: float) -> Coordinates:
        """Those at a multiple of the median distance; at the kernel as it is where the user gave it."""
        multiple = multiple if self.sample.searched else 1.0
        if multiple not in self.known:
            self.known[multiple] = Coordinates.of(self.sample, multiple)
        return self.known[multiple]


def learn_message(
    sender: CoordinateBook, receiver: CoordinateBook, pairs: np.ndarray, ridge: float | None
) -> MessageEdge:
    """U_{t|s} from pairs (m, 2) of rows (t, s), its lengthscale of s and ridge by leave-one-out errors.

    The error is that of predicting the coordinates of x_t, so of any function of x_t with norm one.
    """
    chosen = pairs[spread_rows(len(pairs), CHOICE_ROWS)]
    targets = sender.at(TARGET_LENGTHSCALE).values[chosen[:, 0]]
    rule = MESSAGE_RULE.on(len(chosen), receiver.sample.searched, ridge)
    losses = {}
    for multiple in rule.multiples:
        phi = receiver.at(multiple).values[chosen[:, 1]]
        ridges = rule.ridges * np.mean(np.sum(phi**2, axis=1)) if ridge is None else rule.ridges
        for at, loss in zip(rule.ridges, left_out_errors(phi, targets, ridges), strict=True):
            losses[multiple, at] = loss
    multiple, lam = rule.choose(losses)
    coordinates = receiver.at(multiple)
    phi = coordinates.values[pairs[:, 1]]
    lam = lam if ridge is not None else lam * rescaled(phi, len(chosen))
    weights = Ridge.factor_features(phi, ridge=lam).solve(phi.T).T / len(pairs)
    into = np.zeros((sender.sample.count, phi.shape[1]))
    np.add.at(into, pairs[:, 0], weights)
    return MessageEdge(into, coordinates, lam)


def learn_likelihood(
    observed: CoordinateBook, receiver: CoordinateBook, pairs: np.ndarray, ridge: float | None
) -> LikelihoodEdge:
    """A_st from pairs (m, 2) of rows (t, s): both lengthscales by one multiple, both ridges by one relative size, by
    how probable the operator makes x_s given x_t for pairs that were held out.
    """
    chosen = pairs[spread_rows(len(pairs), CHOICE_ROWS)]
    rule = LIKELIHOOD_RULE.on(len(chosen), observed.sample.searched or receiver.sample.searched, ridge)
    losses = {}
    for multiple in rule.multiples:
        phi, psi = observed.at(multiple).values[chosen[:, 0]], receiver.at(multiple).values[chosen[:, 1]]
        sizes = [np.mean(np.sum(f**2, axis=1)) if ridge is None else 1.0 for f in (phi, psi)]
        grids = rule.ridges * sizes[0], rule.ridges * sizes[1]
        for at, loss in zip(rule.ridges, held_out_surprises(phi, psi, *grids), strict=True):
            losses[multiple, at] = loss
    multiple, lam = rule.choose(losses)
    first, second = observed.at(multiple), receiver.at(multiple)
    phi, psi = first.values[pairs[:, 0]], second.values[pairs[:, 1]]
    lams = [lam if ridge is not None else lam * rescaled(f, len(chosen)) for f in (phi, psi)]
    precision = Ridge.factor_features(phi, ridge=lams[0]).solve(np.eye(phi.shape[1]))
    left = precision @ (phi.T @ psi / len(pairs))
    inner = Ridge.factor_features(psi, ridge=lams[1]).solve(left.T).T
    return LikelihoodEdge(first, inner, second, precision, lams[0])


def rescaled(phi: np.ndarray, number: int) -> float:
    """What turns a relative ridge that was chosen on `number` pairs into one for all m: ridges fall like 1 / √m."""
    return float(np.mean(np.sum(phi**2, axis=1))) * float(np.sqrt(number / len(phi)))
