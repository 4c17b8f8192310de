"""The distance between a sample and the same sample shifted in standard deviations, with its standard error."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from meanmap.core.points import count, rows
from meanmap.core.types import Points
from meanmap.features.base import Features, transformed
from meanmap.kernels.base import Kernel
from meanmap.kernels.gram import gram_matrix
from meanmap.stats.samples.spread import Spread

__all__ = ["Shifted", "Shifts", "between_features", "between_grams"]

# Distances of small shifts are poorly estimated, as few pairs of rows are that close. If the noise from these pairs is
# above a fifth of the squared distance (a tenth of the distance), distances are taken proportional to the shift, from
# the smallest of these shifts at which it is not.
NOISE, LEASTS = 0.2, np.geomspace(0.5, 1 / 128, 13)
# The number of rows whose pairs estimate that noise, if products are not stored.
PAIRED = 500
# The number of rows for derivatives with respect to standard deviations, and the step.
DERIVED, CHANGE = 200, 0.1

# A function of the indices of some rows, and of the shifted rows.
Differences = Callable[[np.ndarray, Points], "Between"]


class Between(NamedTuple):
    """Inner products ⟨δᵢ, δⱼ⟩ of all pairs of rows, of the differences δ = φ(x) − φ(x moved), or the δ themselves."""

    products: np.ndarray | None
    vectors: np.ndarray | None = None


class Shifted(NamedTuple):
    """The distance between a distribution and the same one shifted. `errors` are the contributions of units of rows to
    its error. `inflation` is an additional standard error for tails that were not observed.
    """

    distance: float
    errors: np.ndarray
    inflation: float

    @property
    def variance(self) -> float:
        """The variance of the distance, without the part of unobserved tails."""
        return float(np.sum(self.errors**2)) * len(self.errors) / max(len(self.errors) - 1, 1)


@dataclass(frozen=True)
class Shifts:
    """Distances between the mean embeddings of the distribution of some rows and of the same one shifted.

    With δ = φ(x) − φ(x moved) the squared distance is E ⟨δ, δ′⟩ over independent rows. Its estimate is the mean over
    pairs of different units, hence unbiased for every shift and any number of rows: a row is never paired with its own
    shifted copy. Its error has two parts: the influence of rows on the mean, and their influence on the standard
    deviations, times the derivative with respect to these.

    Attributes
    ----------
    points : points
        The rows.
    spread : Spread
        The spread of these rows, or of a larger sample.
    between : callable
        Inner products under features or a kernel.
    mass, units : arrays
        The weight of each row, one in sum, and the unit of each row.
    generator : numpy.random.Generator
        Draws the rows for derivatives.
    """

    points: Points
    spread: Spread
    between: Differences
    mass: np.ndarray
    units: np.ndarray
    generator: np.random.Generator

    @cached_property
    def least(self) -> float:
        """The smallest shift whose distance is estimated well from pairs of rows."""
        good, bad = 0, len(LEASTS)
        while bad - good > 1:
            middle = (good + bad) // 2
            squared, _, noise = self._squared(np.arange(count(self.points)), float(LEASTS[middle]), None)
            good, bad = (middle, bad) if noise <= NOISE * squared else (good, middle)
        return float(LEASTS[good])

    @cached_property
    def _some(self) -> np.ndarray:
        n = count(self.points)
        return np.sort(self.generator.choice(n, min(n, DERIVED), replace=False))

    @cached_property
    def _influence(self) -> np.ndarray:
        return self.spread.influence(self.points)

    def at(self, shift: float) -> Shifted:
        """The distance after a shift by this many standard deviations."""
        squared, means, noise = self._squared(np.arange(count(self.points)), shift, None)
        if shift < LEASTS[0] and noise > NOISE * squared and shift < self.least:
            found, ratio = self._at_least, shift / self.least
            return Shifted(ratio * found.distance, ratio * found.errors, ratio * found.inflation)
        return self._told(shift, squared, means)

    @cached_property
    def _at_least(self) -> Shifted:
        return self._told(self.least, *self._squared(np.arange(count(self.points)), self.least, None)[:2])

    def _told(self, shift: float, squared: float, means: np.ndarray) -> Shifted:
        """The distance and its errors, from the squared distance and the mean products of each row."""
        if squared <= 0:
            return Shifted(0.0, np.zeros(int(self.units.max()) + 1), 0.0)
        distance, slopes = float(np.sqrt(squared)), self._slopes(shift)
        influence = 2 * (means - squared) + self._influence @ slopes
        errors = np.bincount(self.units, self.mass * influence) / (2 * distance)
        block = self.spread.block
        upward = (slopes / np.bincount(block))[block]
        # If a column may have no standard deviation, the distance may have any value, unless the kernel ignores the
        # column.
        rising = (upward > 0) | (np.isinf(self.spread.beyond) & (upward != 0))
        inflation = float(np.abs(upward[rising]) @ self.spread.beyond[rising]) / (2 * distance)
        return Shifted(distance, errors - errors.mean(), inflation)

    def _slopes(self, shift: float) -> np.ndarray:
        """Derivatives of the squared distance in the log standard deviations of each block, from some rows."""
        plain = self._squared(self._some, shift, None)[0]
        found = np.zeros(self.spread.blocks)
        for b in range(len(found)):
            factors = np.where(np.arange(len(found)) == b, 1 + CHANGE, 1.0)
            found[b] = (self._squared(self._some, shift, factors)[0] - plain) / np.log1p(CHANGE)
        return found

    def _squared(self, index: np.ndarray, shift: float, factors: np.ndarray | None) -> tuple[float, np.ndarray, float]:
        """The squared distance, the mean of each row's products over other units, and the noise from pairs."""
        units = np.unique(self.units[index], return_inverse=True)[1]
        mass = self.mass[index] / self.mass[index].sum()
        products, vectors = self.between(index, self.spread.moved(rows(self.points, index), shift, factors))
        if vectors is not None:
            at = csr_array((mass, (units, np.arange(len(mass)))))
            inner, own = vectors @ (mass @ vectors), np.einsum("ij,ij->i", vectors, (at @ vectors)[units])
            some = slice(None, None, -(-len(vectors) // PAIRED))
            products = vectors[some] @ vectors[some].T
            square = float(np.mean(products**2)) * float(mass @ mass) ** 2
        else:
            assert products is not None
            alone = len(np.unique(units)) == len(units)
            inner = products @ mass
            own = products.diagonal() * mass if alone else (products * (units[:, None] == units)) @ mass
            square = float(mass**2 @ products**2 @ mass**2)
        rest = 1 - np.bincount(units, mass)[units]
        means = (inner - own) / np.maximum(rest, np.finfo(float).tiny)
        return float(mass @ (inner - own) / (mass @ rest)), means, float(np.sqrt(2 * square))


def between_grams(kernel: Kernel, points: Points, gram: np.ndarray) -> Differences:
    """Inner products from the Gram matrix of the rows and those with shifted rows, for few rows."""

    def between(index: np.ndarray, moved: Points) -> Between:
        own = gram[np.ix_(index, index)] + np.asarray(gram_matrix(kernel, moved), float)
        across = np.asarray(gram_matrix(kernel, rows(points, index), moved), float)
        return Between(own - across - across.T)

    return between


def between_features(features: Features, phi: np.ndarray) -> Differences:
    """Differences of the features φ of the rows and of shifted rows, for many rows."""

    def between(index: np.ndarray, moved: Points) -> Between:
        return Between(None, phi[index] - transformed(features, moved))

    return between
