"""Draws from products of Gaussian mixtures by Gibbs sampling of labels (Sudderth et al. 2003, algorithm 1)."""

from dataclasses import dataclass

import numpy as np

from meanmap.core.settings import whole_number
from meanmap_papers.rivals.mixtures.mixtures import Mixtures, categorical
from meanmap_papers.rivals.mixtures.products import ProductSampler

__all__ = ["Gibbs"]

# Numbers that are processed at once: some tens of megabytes.
AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Gibbs(ProductSampler):
    """One chain for each draw; given all other labels, a label has weights wₖ N(μₖ; mean of the others, λ⁻¹ + Λ₋ⱼ⁻¹).

    Cost O(τ F K) for each draw of a product of F mixtures of K components. Where modes of the product lie far apart
    chains do not find from one to another: labels start at the weights of the factors, not of the product.

    Parameters
    ----------
    iterations : int
        τ, how often each label is drawn.
    """

    iterations: int = 10

    def __post_init__(self):
        whole_number(self.iterations, "iterations")

    def labels(self, factors: Mixtures, size: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Labels (E, size, F), a chunk of products at a time."""
        number, _, most = factors.weights.shape
        step = max(AT_ONCE // (size * most), 1)
        parts = [self._chains(factors[start : start + step], size, generator) for start in range(0, number, step)]
        return np.concatenate(parts), np.full(number, np.nan)

    def _chains(self, factors: Mixtures, size: int, generator: np.random.Generator) -> np.ndarray:
        precision, count = factors.precision, factors.weights.shape[1]
        means = factors.means - factors.mean()[:, :1, None]  # near zero, so that squares lose no digits
        total = precision.sum(axis=1)
        with np.errstate(divide="ignore"):
            logs = np.log(factors.weights)
        spread = np.broadcast_to(factors.weights[:, None], (len(means), size, *factors.weights.shape[1:]))
        labels = categorical(spread, generator)
        natural = [
            precision[:, j, None] * np.take_along_axis(means[:, j], labels[:, :, j, None], 1) for j in range(count)
        ]
        for _ in range(self.iterations):
            for j in range(count):
                others = sum(natural[:j] + natural[j + 1 :], np.zeros_like(natural[j]))
                # (μ − A / Λ₋)² λ Λ₋ / Λ = λ (Λ₋ μ² − 2 A μ) / Λ + a constant; with Λ₋ = 0 only the weights are left.
                share = precision[:, j] / total
                square = np.sum((share * (total - precision[:, j]))[:, None] * means[:, j] ** 2, axis=-1)
                fit = (
                    logs[:, j, None] - square[:, None] / 2 + (share[:, None] * others) @ np.swapaxes(means[:, j], 1, 2)
                )
                fit -= fit.max(axis=-1, keepdims=True)
                labels[:, :, j] = categorical(np.exp(fit, out=fit), generator)
                natural[j] = precision[:, j, None] * np.take_along_axis(means[:, j], labels[:, :, j, None], 1)
        return labels
