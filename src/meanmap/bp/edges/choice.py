"""Choosing a lengthscale and a ridge for an edge: a good rule, left as far as the data say so.

At a hundred pairs the held-out losses of most candidates differ by less than their noise, and the least of them is a
matter of luck: it was measured to be worse than any fixed rule that is not far off. So the choice is the candidate
nearest to a rule among those within a standard error of the least loss (as Breiman et al. 1984, section 3.4.3, choose
the simplest tree).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from meanmap.bp.edges.coordinates import MOST_FEATURES

__all__ = ["LIKELIHOOD_RULE", "MESSAGE_RULE", "Rule", "held_out_surprises", "left_out_errors", "search"]

# Choices are made on up to this many pairs; of what they make probable, up to this many places are looked at.
CHOICE_ROWS = 2000
CHOICE_PLACES = 500
FOLDS = 10
# Each fold decomposes two matrices of as many columns as there are features: where these are many, fewer folds do.
WIDE_FOLDS = 5
# A density ratio below this share of its largest counts as this share, as in messages.
LEAST = 1e-3
# Lengthscales are not searched below this share of the median distance.
FINEST = 0.02


@dataclass(frozen=True, eq=False)
class Rule:
    """Where a choice starts, and what it may choose.

    Attributes
    ----------
    multiple : float
        Of the median distance.
    ridge : float
        Relative to the mean of k(x, x); as declared, times 1 / √m.
    multiples, ridges : arrays
        The candidates; ridges as multiples of `ridge` until a number of pairs is known.
    """

    multiple: float
    ridge: float
    multiples: tuple[float, ...]
    ridges: np.ndarray

    def on(self, pairs: int, search: bool, ridge: float | None) -> "Rule":
        """The rule for so many pairs: without a search the kernel is taken as it is, and a given ridge is kept."""
        here = self if search else replace(self, multiple=1.0, multiples=(1.0,))
        if ridge is not None:
            return replace(here, ridge=ridge, ridges=np.array([ridge]))
        start = self.ridge / np.sqrt(pairs)
        return replace(here, ridge=start, ridges=start * self.ridges)

    def at(self, multiple: float) -> "Rule":
        """The rule for the ridge alone."""
        return replace(self, multiples=(multiple,))

    def search(self, score: Callable[[float], Mapping[float, np.ndarray]]) -> tuple[float, float]:
        """The multiple and the ridge; `score` gives the losses (m,) of each ridge at a multiple."""
        losses: dict[tuple[float, float], np.ndarray] = {}
        if len(self.multiples) == len(self.ridges) == 1:
            return self.multiples[0], float(self.ridges[0])

        def tried(multiple: float) -> None:
            losses.update({(multiple, ridge): loss for ridge, loss in score(multiple).items()})

        search(self.multiples, tried, lambda: self.choose(losses)[0])
        return self.choose(losses)

    def choose(self, losses: Mapping[tuple[float, float], np.ndarray]) -> tuple[float, float]:
        """The multiple and the ridge, from the loss of each candidate at each pair."""
        candidates, table = list(losses), np.array(list(losses.values()))
        worse = table - table[np.argmin(table.mean(axis=1))]
        good = worse.mean(axis=1) <= worse.std(axis=1, ddof=1) / np.sqrt(table.shape[1])
        return min((candidates[i] for i in np.flatnonzero(good)), key=self._distance)

    def _distance(self, candidate: tuple[float, float]) -> float:
        """In octaves of lengthscales and decades of ridges."""
        multiple, ridge = candidate
        return float(np.log2(multiple / self.multiple) ** 2 + np.log10(max(ridge, 1e-300) / self.ridge) ** 2)


# Rules and candidates were chosen on Gaussian chains and trees and chains of bimodal variables, 100 to 1000 pairs.
MESSAGE_RULE = Rule(1.0, 0.03, (0.25, 0.5, 1.0, 2.0), np.geomspace(1e-3, 1e2, 16))
LIKELIHOOD_RULE = Rule(0.7, 0.1, (0.35, 0.5, 0.7, 1.0, 1.4), np.geomspace(1e-2, 1e1, 10))


def search(multiples: Sequence[float], tried: Callable[[float], None], chosen: Callable[[], float]) -> None:
    """Try all multiples, the narrowest first, and narrower ones for as long as the narrowest is the one chosen: a
    relation with little noise needs them, and where there is more noise nothing is spent on them.
    """
    for multiple in multiples:
        tried(multiple)
    if len(multiples) == 1:
        return
    step, narrowest = multiples[0] / multiples[1], multiples[0]
    while chosen() == narrowest and narrowest * step >= FINEST:
        narrowest *= step
        tried(narrowest)


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


def held_out_surprises(phi: np.ndarray, psi: np.ndarray, ridges_x: np.ndarray, ridges_y: np.ndarray) -> np.ndarray:
    """−log r(xᵢ, yᵢ) / mean_j r(xᵢ, yⱼ) for each pair that was held out, (ridges, m).

    r(x, y) = φ(x)ᵀ (C_xx + λ₁ I)⁻¹ C_xy (C_yy + λ₂ I)⁻¹ ψ(y) estimates p(x, y) / (p(x) p(y)), so that this is
    −log p(y | x) up to what is the same for all candidates. It is blind to scale, as what becomes of a message is.
    """
    m = len(phi)
    folds = np.arange(m) % min(FOLDS if phi.shape[1] <= MOST_FEATURES else WIDE_FOLDS, m)
    places = np.unique(np.linspace(0, m - 1, min(m, CHOICE_PLACES)).round().astype(int))
    losses = np.zeros((len(ridges_x), m))
    for fold in np.unique(folds):
        held, kept = folds == fold, folds != fold
        (values_x, axes_x), (values_y, axes_y) = (np.linalg.eigh(f[kept].T @ f[kept] / kept.sum()) for f in (phi, psi))
        x, y, everywhere = phi @ axes_x, psi @ axes_y, psi[places[kept[places]]] @ axes_y
        cross = x[kept].T @ y[kept] / kept.sum()
        shrunk_x = np.maximum(values_x, 0) + ridges_x[:, None]
        shrunk_y = np.maximum(values_y, 0) + ridges_y[:, None]
        weights = x[held] @ (cross / shrunk_x[:, :, None] / shrunk_y[:, None, :])
        there = weights @ everywhere.T
        top = np.maximum(there.max(axis=2), 1e-300)
        here = np.sum(weights * y[held], axis=2) / top
        some = np.maximum(there / top[:, :, None], LEAST).mean(axis=2)
        losses[:, held] = np.log(some / np.maximum(here, LEAST))
    return losses
