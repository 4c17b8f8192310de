"""p(x, y) / (p(x) p(y)) as an operator between features of x and y, and how well it tells pairs that were held out.

r(x, y) = φ(x)ᵀ (C_xx + λ₁ I)⁻¹ C_xy (C_yy + λ₂ I)⁻¹ ψ(y): the likelihood operator (Song, Gretton & Guestrin 2010,
equation 8).
"""

from typing import Any

import numpy as np

from meanmap.core.types import Array
from meanmap.linalg.ridge import Ridge

__all__ = ["held_out_errors", "held_out_surprises", "ratio_operator"]

# Of what pairs make probable, up to this many places are looked at.
CHOICE_PLACES = 500
FOLDS = 10
# Each fold decomposes two matrices of as many columns as there are features: beyond so many features fewer folds do.
WIDE, WIDE_FOLDS = 300, 5
# A density ratio below this share of its largest counts as this share, as in messages.
LEAST = 1e-3


def ratio_operator(phi: Array, psi: Any, first: Ridge, second: Ridge) -> Any:
    """(C_xx + λ₁ I)⁻¹ C_xy (C_yy + λ₂ I)⁻¹ from features (n, r), (n, s) of pairs, with both inverses factored."""
    left = first.solve(phi.T @ psi / len(phi))
    return second.solve(left.T).T


def held_out_errors(
    phi: np.ndarray, psi: np.ndarray, held: np.ndarray, grid_x: np.ndarray, grid_y: np.ndarray
) -> np.ndarray:
    """½ mean f(xᵢ, yⱼ)² − mean f(xᵢ, yᵢ) on the held-out pairs, for each pair of ridges (λ₁, λ₂) in turn."""
    number = int(held.sum())
    axes, spectra, tests = [], [], []
    for f in (phi, psi):
        values, vectors = np.linalg.eigh(f[~held].T @ f[~held] / int((~held).sum()))
        axes.append(f[~held] @ vectors)
        spectra.append(np.maximum(values, 0))
        tests.append(f[held] @ vectors)
    cross = axes[1].T @ axes[0] / len(axes[0])
    gram_x, gram_y = (t.T @ t / number for t in tests)
    scores = []
    for lam_x, lam_y in zip(grid_x, grid_y, strict=True):
        matrix = cross / (spectra[0] + lam_x) / (spectra[1] + lam_y)[:, None]
        squares = np.sum((gram_y @ matrix) * (matrix @ gram_x))
        scores.append(squares / 2 - np.sum((tests[1] @ matrix) * tests[0]) / number)
    return np.array(scores)


def held_out_surprises(phi: np.ndarray, psi: np.ndarray, ridges_x: np.ndarray, ridges_y: np.ndarray) -> np.ndarray:
    """−log r(xᵢ, yᵢ) / mean_j r(xᵢ, yⱼ) for each pair that was held out, (ridges, m).

    r(x, y) = φ(x)ᵀ (C_xx + λ₁ I)⁻¹ C_xy (C_yy + λ₂ I)⁻¹ ψ(y) estimates p(x, y) / (p(x) p(y)), so that this is
    −log p(y | x) up to what is the same for all candidates. It is blind to scale, as what becomes of a message is.
    """
    m = len(phi)
    folds = np.arange(m) % min(FOLDS if phi.shape[1] <= WIDE else WIDE_FOLDS, m)
    places = np.unique(np.linspace(0, m - 1, min(m, CHOICE_PLACES)).round().astype(int))
    losses = np.zeros((len(ridges_x), m))
    for fold in np.unique(folds):
        held, kept = folds == fold, folds != fold
        (values_x, axes_x), (values_y, axes_y) = (np.linalg.eigh(f[kept].T @ f[kept] / kept.sum()) for f in (phi, psi))
        x, y, everywhere = phi @ axes_x, psi @ axes_y, psi[places[kept[places]]] @ axes_y
        cross = x[kept].T @ y[kept] / kept.sum()
        shrunk_x = np.maximum(values_x, 0) + ridges_x[:, None]
        shrunk_y = np.maximum(values_y, 0) + ridges_y[:, None]
        weights = (x[held] / shrunk_x[:, None, :]) @ cross / shrunk_y[:, None, :]
        there = weights @ everywhere.T
        top = np.maximum(there.max(axis=2), 1e-300)
        here = np.sum(weights * y[held], axis=2) / top
        np.maximum(there, LEAST * top[:, :, None], out=there)
        some = there.mean(axis=2) / top
        losses[:, held] = np.log(some / np.maximum(here, LEAST))
    return losses
