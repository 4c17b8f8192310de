"""Products of Gaussian mixtures: what they are, and draws from them.

A product of F mixtures of K components is a mixture of Kᶠ. Component (l₁, ..., l_F) has precision Λ = Σⱼ λⱼ, mean
Σⱼ λⱼ μ_{j,lⱼ} / Λ and weight Πⱼ w_{j,lⱼ} exp(−½ Σⱼ λⱼ ‖μ_{j,lⱼ} − mean‖²). Bandwidths are shared within a mixture, so
all components of the product have the same.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.errors import InputError, ShapeError
from meanmap.core.rng import Rng
from meanmap.core.types import Seed
from meanmap_papers.rivals.mixtures.mixtures import Mixtures

__all__ = ["Draws", "ProductSampler", "product", "sample_product"]

# A product is written out up to this many components.
MOST_COMPONENTS = 1_000_000


@dataclass(frozen=True, eq=False)
class Draws:
    """From E products: points (E, S, d), which component of each factor they come from, and how they were drawn.

    `accuracy` (E,) bounds the total variation between the distribution of the labels and the exact one; NaN where the
    sampler knows no bound.
    """

    points: np.ndarray
    labels: np.ndarray
    accuracy: np.ndarray


class ProductSampler(ABC):
    """A way to draw the labels (l₁, ..., l_d) of components of products."""

    @abstractmethod
    def labels(self, factors: Mixtures, size: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Labels (E, size, F) for factors (E, F, K, d), and a bound (E,) on what is wrong with their distribution."""


def sample_product(factors: Mixtures, size: int, sampler: ProductSampler, rng: Seed = None) -> Draws:
    """Draw `size` points from each of E products of F mixtures, given as a batch (E, F).

    Examples
    --------
    >>> from meanmap_papers.rivals.mixtures import Gibbs
    >>> left, right = ([0.5, 0.5], [[-1.0], [3.0]]), ([0.5, 0.5], [[1.0], [5.0]])
    >>> both = Mixtures.of(*(np.array([part]) for part in zip(left, right, strict=True)), np.ones((1, 2, 1)))
    >>> sample_product(both, 1000, Gibbs(20), rng=0).points.mean().round(1), product(both).mean().round(1).tolist()
    (np.float64(2.0), [[2.0]])
    """
    if factors.weights.ndim != 3:
        raise ShapeError(f"the factors are a batch {factors.weights.shape[:-1]}; expected (E, F): F factors of each.")
    total = factors.precision.sum(axis=1)
    if not (total > 0).all():
        raise InputError("all factors of a product say nothing: it is no distribution.")
    generator = Rng.of(rng).generator
    labels, accuracy = sampler.labels(factors, size, generator)
    points = (
        means_of(factors, labels)
        + generator.normal(size=(*labels.shape[:2], total.shape[-1])) / np.sqrt(total)[:, None]
    )
    return Draws(points, labels, accuracy)


def means_of(factors: Mixtures, labels: np.ndarray) -> np.ndarray:
    """The means (E, S, d) of the components of the product with labels (E, S, F)."""
    natural: Any = 0.0
    for j in range(labels.shape[2]):
        chosen = np.take_along_axis(factors.means[:, j], labels[:, :, j, None], axis=1)
        natural = natural + factors.precision[:, j, None] * chosen
    return natural / factors.precision.sum(axis=1)[:, None]


def product(factors: Mixtures) -> Mixtures:
    """Each product written out, Kᶠ components, the last label running fastest: (E,) mixtures."""
    size = factors.weights.shape[-1] ** factors.weights.shape[1]
    if size > MOST_COMPONENTS:
        raise InputError(f"the product has {size} components; up to {MOST_COMPONENTS} are written out: draw from it.")
    result = factors[:, 0]
    for j in range(1, factors.weights.shape[1]):
        result = _times(result, factors[:, j])
    return result


def _times(a: Mixtures, b: Mixtures) -> Mixtures:
    """Every pair of components."""
    total = a.precision + b.precision
    if not (total > 0).all():  # both say nothing
        total = np.where(total > 0, total, 0)
    gap = a.means[:, :, None] - b.means[:, None]
    safe = np.where(total > 0, total, 1)
    share = a.precision / safe
    means = share[:, None, None] * a.means[:, :, None] + (1 - share)[:, None, None] * b.means[:, None]
    squares = np.sum((a.precision * b.precision / safe)[:, None, None] * gap**2, axis=-1)
    with np.errstate(divide="ignore"):
        logs = (np.log(a.weights)[:, :, None] + np.log(b.weights)[:, None] - squares / 2).reshape(len(gap), -1)
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        return Mixtures(
            weights / weights.sum(axis=1, keepdims=True), means.reshape(len(gap), -1, gap.shape[-1]), 1 / total
        )
