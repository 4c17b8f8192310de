"""The measured distance between a low-rank operator and the full one, beside the bound of the paper."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.bp.edges.coordinates import coordinates, transformed
from meanmap.core.door import Door
from meanmap.core.points import count, rows, spread_rows
from meanmap.core.types import Data
from meanmap.kernels.base import Kernel
from meanmap.kernels.gram import gram_matrix

__all__ = ["Approximation", "approximation"]

# Operators are compared on this many pairs, in Gram matrices.
COMPARED = 500
# Feature errors are measured on this many points.
MEASURED = 100_000


@dataclass(frozen=True)
class Approximation:
    """The approximation errors along one direction t → s.

    Attributes
    ----------
    rank, landmarks : int
        Features of x_s, and values of a message from t.
    feature_error : float
        max ‖φ(x) − φ̃(x)‖ over the points of s.
    tensor_error : float
        max ‖ξ(x) − ξ̃(x)‖ over the points of t, ξ the features of k^q: 0 where products are not interpolated.
    operator_error, operator_norm : float
        ‖Û − Ũ‖ and ‖Û‖ in the Hilbert-Schmidt norm, on up to 500 of the pairs with the ridge that was chosen.
    bound : float
        2 ε (λ⁻¹ + λ^(−3/2)), ε the larger of both feature errors (Song et al. 2011, appendix, equation 46). It holds
        for kernels with k(x, x) ≤ 1, and is far above the error at practical settings: choose ε by the error.
    """

    rank: int
    landmarks: int
    feature_error: float
    tensor_error: float
    operator_error: float
    operator_norm: float
    bound: float


def approximation(learned: Any, number: int) -> Approximation:
    """Measure one direction of learned relations.

    With Gram matrices K of x_s and K_q of k^q at x_t, low-rank ones K̃ = Φ̃Φ̃ᵀ and K̃_q, M = (K + m λ I)⁻¹ and M̃ likewise,
    ‖Û − Ũ‖² = tr K_q M K M − 2 tr K̃_q M̃ K̃ M + tr K̃_q M̃ K̃ M̃: approximations are projections, so that
    the inner products of true and approximate features are those of the approximate ones.
    """
    direction, lam = learned.directions[number], learned.ridges[number]
    sender, receiver = learned.variables[direction.sender], learned.variables[direction.receiver]
    power = getattr(learned.update, "power", 1)
    tensor_kernel = sender.kernel**power
    tensor = sender.tensor if sender.tensor is not None else coordinates(tensor_kernel, sender.sample.points, 1e-14)
    errors = [
        _feature_error(kernel, features, sample.points)
        for kernel, features, sample in (
            (receiver.kernel, receiver.features, receiver.sample),
            (tensor_kernel, tensor, sender.sample),
        )
    ]
    if sender.tensor is None:
        errors[1] = 0.0
    pairs = direction.pairs[spread_rows(len(direction.pairs), COMPARED)]
    x_t, x_s = rows(sender.sample.points, pairs[:, 0]), rows(receiver.sample.points, pairs[:, 1])
    full_q, full = gram_matrix(tensor_kernel, x_t), gram_matrix(receiver.kernel, x_s)
    phi = transformed(receiver.features, x_s)
    low = phi @ phi.T
    if sender.tensor is None:
        low_q = full_q
    else:
        xi = transformed(tensor, x_t)
        low_q = xi @ xi.T
    shift = len(pairs) * lam * np.eye(len(pairs))
    inverse, low_inverse = np.linalg.inv(full + shift), np.linalg.inv(low + shift)

    def inner(gram_q: np.ndarray, left: np.ndarray, gram: np.ndarray, right: np.ndarray) -> float:
        return float(np.sum((gram_q @ left) * (gram @ right).T))

    square = inner(full_q, inverse, full, inverse)
    difference = square - 2 * inner(low_q, low_inverse, low, inverse) + inner(low_q, low_inverse, low, low_inverse)
    epsilon = max(errors)
    return Approximation(
        receiver.features.size,
        sender.size,
        errors[0],
        errors[1],
        float(np.sqrt(max(difference, 0.0))),
        float(np.sqrt(square)),
        2 * epsilon * (1 / lam + lam**-1.5),
    )


def _feature_error(kernel: Kernel, features: Any, points: Data) -> float:
    """max ‖φ(x) − φ̃(x)‖, where ‖φ(x)‖² − ‖φ̃(x)‖² is its square."""
    chosen = rows(points, spread_rows(count(points), MEASURED))
    with Door():
        full = np.asarray(kernel.diagonal(chosen))
    left = full - np.sum(transformed(features, chosen) ** 2, axis=1)
    return float(np.sqrt(max(left.max(), 0.0)))
