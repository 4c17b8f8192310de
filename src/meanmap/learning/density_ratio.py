"""p(x, y) / (p(x) p(y)) as an operator between features of x and y, and how well it tells pairs that were held out.

r(x, y) = φ(x)ᵀ (C_xx + λ₁ I)⁻¹ C_xy (C_yy + λ₂ I)⁻¹ ψ(y): the likelihood operator (Song, Gretton & Guestrin 2010,
equation 8).
"""

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from meanmap.core.points import slices, spread_rows
from meanmap.core.types import Array
from meanmap.linalg.ridge import Ridge

__all__ = ["LeftOut", "held_out_errors", "held_out_surprises", "ratio_errors", "ratio_operator"]

# Of what pairs make probable, up to this many places are looked at.
CHOICE_PLACES = 500
FOLDS = 10
# Each fold decomposes two matrices of as many columns as there are features: beyond this many features fewer folds do.
WIDE, WIDE_FOLDS = 300, 5
# Decompositions of up to this many numbers are kept for the next pair with the same features.
FEW_NUMBERS = 250_000
# Up to this many ratios, 8 MB, are found for all folds and ridges at once.
AT_ONCE = 1_000_000
# Ratios that are floored and added up at once: they stay in a core's cache.
IN_CACHE = 1 << 17
# A density ratio below this share of its largest counts as this share, as in messages.
LEAST = 1e-3


def ratio_operator(phi: Array, psi: Array, first: Ridge, second: Ridge) -> Any:
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


def ratio_errors(phi: np.ndarray, psi: np.ndarray, grid_x: np.ndarray, grid_y: np.ndarray) -> np.ndarray:
    """The mean of `held_out_errors` when each fold is held out in turn."""
    folds = np.arange(len(phi)) % min(FOLDS, len(phi))
    return np.mean([held_out_errors(phi, psi, folds == fold, grid_x, grid_y) for fold in np.unique(folds)], axis=0)


class LeftOut:
    """Features (m, r) of pairs, with their covariance decomposed without each fold of them.

    Fold k holds the rows k, k + folds, k + 2 folds, ...

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

    def without(self, some: slice) -> tuple[np.ndarray, np.ndarray]:
        """For each of some folds the spectrum (r,) of the covariance without its rows, and all features in its axes."""
        if self.features.size * self.folds > FEW_NUMBERS:
            return self._decomposed(some)
        spectra, rotated = self._all
        return spectra[some], rotated[some]

    def _decomposed(self, some: slice) -> tuple[np.ndarray, np.ndarray]:
        kept = np.arange(len(self.features)) % self.folds != np.arange(self.folds)[some, None]
        left = (self.features * kept[:, :, None]).swapaxes(1, 2) @ self.features
        spectra, axes = np.linalg.eigh(left / kept.sum(axis=1)[:, None, None])
        return np.maximum(spectra, 0), self.features @ axes

    @cached_property
    def _all(self) -> tuple[np.ndarray, np.ndarray]:
        return self._decomposed(slice(None))


def held_out_surprises(phi: LeftOut, psi: LeftOut, ridges_x: np.ndarray, ridges_y: np.ndarray) -> np.ndarray:
    """−log r(xᵢ, yᵢ) / mean_j r(xᵢ, yⱼ) for each pair that was held out, (ridges, m).

    r(x, y) = φ(x)ᵀ (C_xx + λ₁ I)⁻¹ C_xy (C_yy + λ₂ I)⁻¹ ψ(y) estimates p(x, y) / (p(x) p(y)), so that this is
    −log p(y | x) up to what is the same for all candidates. It is blind to scale, as what becomes of a message is.
    Where pairs are few all folds are computed at once: their products are so small that calls would cost more.
    """
    m, folds, number = len(phi.features), phi.folds, len(ridges_x)
    places = spread_rows(m, CHOICE_PLACES)
    losses = np.zeros((number, m))
    few = len(places) == m and number * m**2 <= AT_ONCE
    # Two folds of the same size.
    cuts = [0, m % folds, folds] if few else range(folds + 1)
    for some in (slice(start, end) for start, end in pairwise(cuts) if start < end):
        (values_x, x), (values_y, y) = phi.without(some), psi.without(some)
        out = np.arange(m) % folds == np.arange(folds)[some, None]
        held = np.nonzero(out)[1].reshape(len(out), -1)
        mine = np.arange(len(out))[:, None], held
        kept = np.where(out[:, :, None], 0, y)
        cross = x.swapaxes(1, 2) @ kept / (m - held.shape[1])
        shrunk = x[mine][:, None] / (values_x[:, None] + ridges_x[:, None])[:, :, None]
        shape = shrunk.shape[:3]
        weights = (shrunk.reshape(len(out), -1, x.shape[2]) @ cross).reshape(*shape, -1)
        weights /= (values_y[:, None] + ridges_y[:, None])[:, :, None]
        # Ratios at places of the fold itself are zero, and are taken away again where they were raised.
        looked = kept if len(places) == m else kept[:, places]
        own = np.einsum("klhr,khr->klh", weights, y[mine])
        zeros = np.count_nonzero(out[:, places], axis=1)[:, None, None]
        for part in slices(number, max(IN_CACHE // (held.size * len(places)), 1)):
            ratios = weights[:, part].reshape(len(out), -1, y.shape[2]) @ looked.swapaxes(1, 2)
            ratios = ratios.reshape(len(out), -1, held.shape[1], len(places))
            least = LEAST * np.maximum(ratios.max(axis=3), 1e-300)
            total = np.maximum(ratios, least[..., None], out=ratios).sum(axis=3) - zeros * least
            some_losses = np.log(total / (len(places) - zeros) / np.maximum(own[:, part], least))
            losses[part, held] = some_losses.swapaxes(0, 1)
    return losses
