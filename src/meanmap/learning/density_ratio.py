"""p(x, y) / (p(x) p(y)) as an operator between features of x and y, and how well it tells pairs that were held out.

r(x, y) = φ(x)ᵀ (C_xx + λ₁ I)⁻¹ C_xy (C_yy + λ₂ I)⁻¹ ψ(y): the likelihood operator (Song, Gretton & Guestrin 2010,
equation 8).
"""

from functools import cached_property
from typing import Any

import numpy as np

from meanmap.core.types import Array
from meanmap.linalg.ridge import Ridge

__all__ = ["LeftOut", "held_out_errors", "held_out_surprises", "ratio_operator"]

# Of what pairs make probable, up to this many places are looked at.
CHOICE_PLACES = 500
FOLDS = 10
# Each fold decomposes two matrices of as many columns as there are features: beyond so many features fewer folds do.
WIDE, WIDE_FOLDS = 300, 5
# Decompositions of up to so many numbers are kept for the next pair with the same features.
FEW_NUMBERS = 250_000
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


class LeftOut:
    """Features (m, r) of pairs, with their covariance decomposed without each fold of them.

    Parameters
    ----------
    features : array (m, r)
    folds : int, optional
        By default `FOLDS`, and fewer where there are many features.
    """

    def __init__(self, features: np.ndarray, folds: int | None = None):
        self.features = features
        most = (FOLDS if features.shape[1] <= WIDE else WIDE_FOLDS) if folds is None else folds
        self.folds = min(most, len(features))

    def without(self, fold: int) -> tuple[np.ndarray, np.ndarray]:
        """The spectrum (r,) of the covariance without the rows of a fold, and all features in its axes."""
        return self._all[fold] if self.features.size * self.folds <= FEW_NUMBERS else self._one(fold)

    def _one(self, fold: int) -> tuple[np.ndarray, np.ndarray]:
        kept = self.features[np.arange(len(self.features)) % self.folds != fold]
        spectrum, axes = np.linalg.eigh(kept.T @ kept / len(kept))
        return np.maximum(spectrum, 0), self.features @ axes

    @cached_property
    def _all(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return [self._one(fold) for fold in range(self.folds)]


def held_out_surprises(phi: LeftOut, psi: LeftOut, ridges_x: np.ndarray, ridges_y: np.ndarray) -> np.ndarray:
    """−log r(xᵢ, yᵢ) / mean_j r(xᵢ, yⱼ) for each pair that was held out, (ridges, m).

    r(x, y) = φ(x)ᵀ (C_xx + λ₁ I)⁻¹ C_xy (C_yy + λ₂ I)⁻¹ ψ(y) estimates p(x, y) / (p(x) p(y)), so that this is
    −log p(y | x) up to what is the same for all candidates. It is blind to scale, as what becomes of a message is.
    """
    m, folds, number = len(phi.features), phi.folds, len(ridges_x)
    rows = np.arange(m)
    places = np.unique(np.linspace(0, m - 1, min(m, CHOICE_PLACES)).round().astype(int))
    losses = np.zeros((number, m))
    for fold in range(folds):
        (values_x, x), (values_y, y) = phi.without(fold), psi.without(fold)
        held, kept = rows[fold::folds], rows % folds != fold
        cross = x[kept].T @ y[kept] / np.count_nonzero(kept)
        shrunk = x[held] / (values_x + ridges_x[:, None])[:, None]
        weights = (shrunk.reshape(-1, x.shape[1]) @ cross).reshape(number, len(held), -1)
        weights /= (values_y + ridges_y[:, None])[:, None]
        there = (weights.reshape(-1, y.shape[1]) @ y[places[kept[places]]].T).reshape(number, len(held), -1)
        top = np.maximum(there.max(axis=2), 1e-300)
        here = np.einsum("lhr,hr->lh", weights, y[held]) / top
        some = np.maximum(there, LEAST * top[:, :, None]).mean(axis=2) / top
        losses[:, held] = np.log(some / np.maximum(here, LEAST))
    return losses
