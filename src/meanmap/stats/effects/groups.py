"""The distribution of the distance between mean embeddings of samples, and the distance of a shift of one of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from meanmap.core.bisection import bisect
from meanmap.core.door import Door
from meanmap.core.points import rows, slices
from meanmap.core.progress import track
from meanmap.features.base import FeatureKernel, transformed
from meanmap.kernels.base import Kernel, Sum
from meanmap.kernels.gram import gram_matrix
from meanmap.linalg.moments import Moments
from meanmap.stats.effects.zero import chance_by_features, chance_of_difference
from meanmap.stats.limits import DistanceLaw
from meanmap.stats.result import Interval
from meanmap.stats.samples.cells import ROWS, Cells, contrasts_of
from meanmap.stats.samples.feature_statistics import feature_map
from meanmap.stats.samples.samples import Samples
from meanmap.stats.samples.shifted import Differences, Shifts, between_features, between_grams
from meanmap.stats.samples.spread import Spread

__all__ = ["AtShift", "Difference", "averaged", "difference_of"]

# Full Gram matrices and their eigenvalues are used up to this many points in all, which takes a second.
MOST_WHOLE = 1000
# If there are more rows, this many are shifted: the unit is then known to within 1.5%.
MOVED = 4000
# The number of rows among which the largest distance is searched.
SEEN = 300
# Shifts that are tried: from a thousandth to ten standard deviations.
SHIFTS = np.geomspace(1e-3, 10.0, 33)


class AtShift(NamedTuple):
    """The distance of a shift, and its standard errors beyond that of the samples' distance.

    `near` is for tests of whether the samples are closer than the shift, `far` for whether they are further apart. The
    two differ because with heavy tails of columns the true distance may be larger than estimated, not smaller.
    """

    distance: float
    near: float
    far: float


@dataclass(frozen=True)
class Difference:
    """The distance between samples, its sampling distribution, and the distances of shifts.

    Attributes
    ----------
    law : DistanceLaw
        The distribution of the root of Σ_g π_g ‖μ_g − μ̄‖² with shares π; for two samples, of ‖μ_P − μ_Q‖.
    reach : float
        The largest distance between the features of two of the rows.
    kernel : Kernel
        The kernel used.
    shifts : Shifts or None
        The distances of shifts of the first of two samples.
    toward : array
        The contribution of each unit to the error of the distance, along the difference of the samples.
    chance : callable or None
        The p-value of a test of equal distributions, as a function of the confidence level of an interval. It uses the
        rows of all samples together, since a small sample may have no row with a rare value. Units of a design are
        permuted within its strata.
    """

    law: DistanceLaw
    reach: float
    kernel: Kernel
    shifts: Shifts | None = None
    toward: np.ndarray | None = None
    chance: Callable[[float], float] | None = None

    def interval(self, confidence: float) -> tuple[float, float]:
        """All distances that are not rejected; zero is rejected only if a test of equal distributions rejects, too."""
        low, high = self.law.interval(confidence)
        return (0.0 if low > 0 and self._may_be_zero(confidence) else low), high

    def _may_be_zero(self, confidence: float) -> bool:
        tail = (1 - confidence) / 2
        return self.law.above(0.0) > tail or (self.chance is not None and self.chance(confidence) > tail)

    def at(self, shift: float) -> AtShift:
        """The distance of a shift of every column of the first sample by this many standard deviations.

        It is estimated from rows of the first sample, so its error is correlated with that of the samples' distance.
        Intervals are never shorter than for the samples' distance alone.
        """
        assert self.shifts is not None
        assert self.toward is not None
        found = self.shifts.at(shift)
        common = float(found.errors @ self.toward) * len(self.toward) / max(len(self.toward) - 1, 1)
        extra = float(np.sqrt(max(found.variance - 2 * common, 0.0)))
        return AtShift(found.distance, extra, extra + found.inflation)

    def as_shift(self, confidence: float) -> Interval:
        """The shift equivalent to the distance, in standard deviations, and all shifts that are not rejected."""
        law, tail, at = self.law, (1 - confidence) / 2, _Between(self.at)
        typical = max(law.squared, law.trace)
        estimate = at.first(lambda found: found.distance >= law.estimate) if law.estimate > 0 else 0.0
        # If a standard deviation may be infinite, every shift may have any distance.
        assert self.shifts is not None
        possible = self._may_be_zero(confidence) or (len(self.shifts.spread.unknown) > 0 and np.isinf(at.at(0).far))
        low = 0.0 if possible else at.first(lambda found: law.above(found.distance, found.far) > tail)
        high = at.first(lambda found: law.below(found.distance, typical, found.near) < tail)
        return Interval(estimate, min(low, estimate), max(high, estimate))


class _Between:
    """Distances of shifts: interpolated between those of `SHIFTS` on log scales, and proportional below them."""

    def __init__(self, at: Callable[[float], AtShift]) -> None:
        self.at = cache(lambda k: at(float(SHIFTS[k])))

    def first(self, reached: Callable[[AtShift], bool]) -> float:
        """The smallest shift that reaches a distance; infinite if none does."""
        low, high = -1, len(SHIFTS)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if reached(self.at(middle)) else (middle, high)
        if high == len(SHIFTS):
            return np.inf
        share = bisect(lambda t: np.asarray(not reached(self._inside(high, float(t)))), np.zeros(()), np.ones(()), 30)
        t = float(share[1])
        return float(SHIFTS[0] * t if high == 0 else SHIFTS[high] * (SHIFTS[high - 1] / SHIFTS[high]) ** (1 - t))

    def _inside(self, k: int, t: float) -> AtShift:
        """The distance at a fraction t of the way to the k-th shift."""
        end = self.at(k)
        if k == 0:
            return AtShift(*(t * value for value in end))
        pairs = zip(self.at(k - 1), end, strict=True)
        return AtShift(*(first ** (1 - t) * last**t if first > 0 and last > 0 else last for first, last in pairs))


def averaged(kernels: Sequence[Kernel]) -> Kernel:
    """The mean of several kernels."""
    return kernels[0] if len(kernels) == 1 else Sum(tuple(kernels)) * (1 / len(kernels))


def difference_of(
    samples: Samples, generator: np.random.Generator, door: Door, cells: Cells | None = None, moved: bool = True
) -> Difference:
    """The difference of samples, from full Gram matrices of few points and from features of many.

    `cells` are needed if rows have strata, clusters or weights. Shifts are computed only if the first of two samples is
    to be `moved`.
    """
    kernel, sizes, pooled = averaged(samples.kernels), samples.sizes, samples.pooled
    some = rows(pooled, np.sort(generator.choice(sum(sizes), min(sum(sizes), SEEN), replace=False)))
    if sum(sizes) <= MOST_WHOLE:
        gram, arranged = np.asarray(gram_matrix(kernel, pooled), float), cells or Cells.of(sizes, None)
        found, values = Difference(arranged.law_of_gram(gram), _reach(gram), kernel), gram @ arranged.weights[:, 0]
        squared = partial(_squared_by_gram, gram)
        found = replace(found, chance=partial(chance_of_difference, squared, sizes, arranged.design))
        first = _First.of_cells(arranged, sizes[0], values, generator)
        between = between_grams(kernel, rows(pooled, first.chosen), gram[np.ix_(first.chosen, first.chosen)])
        return _with_shifts(found, samples, first, cells, between, generator) if moved else found
    # The features are those of the mean of several kernels, not of each: otherwise small shifts would have smaller
    # distances than with full matrices.
    mapped = feature_map(replace(samples, kernels=(kernel,)), generator, door)
    features = mapped.features
    kernel = FeatureKernel(features.padded()[0])
    reach = _reach(np.asarray(gram_matrix(kernel, some)))
    if cells is not None:

        def mapped_at(chosen: np.ndarray) -> np.ndarray:
            return transformed(features, rows(pooled, chosen))

        law, sums = cells.law_of_features(mapped_at)
        chance = partial(chance_by_features, mapped_at, sizes, cells.design)
        found = Difference(law, reach, kernel, chance=chance)
        every = np.arange(sum(sizes))
        values = np.concatenate([mapped_at(every[part]) @ sums[0] for part in slices(len(every), ROWS)])
        first = _First.of_cells(cells, sizes[0], values, generator)
        phi = mapped_at(first.chosen)
    else:
        groups = [mapped.sums([samples[g]]).moments() for g in track(range(len(sizes)), "samples")]
        found = Difference(_law_of_moments(groups), reach, kernel, chance=lambda _: _equal(groups).above(0.0))
        index = _some_of(np.arange(sizes[0]), generator)
        phi = transformed(features, rows(pooled, index)) if moved else np.zeros((len(index), 0))
        values = phi @ (groups[0].mean - groups[1].mean) if moved else np.zeros(len(index))
        each = np.full(len(index), 1 / sizes[0])
        first = _First(index, each, np.arange(len(index)), each * (values - values.mean()))
    between = between_features(features, phi)
    return _with_shifts(found, samples, first, cells, between, generator) if moved else found


class _First(NamedTuple):
    """The shifted rows of the first sample: their indices, weights and units, and the contribution of each to the error
    of the difference along the difference itself, times its norm.
    """

    chosen: np.ndarray
    mass: np.ndarray
    units: np.ndarray
    toward: np.ndarray

    @classmethod
    def of_cells(cls, cells: Cells, size: int, values: np.ndarray, generator: np.random.Generator) -> "_First":
        """The shifted rows, from the inner products of all rows with the difference."""
        mass = cells.weights[:size, 0]
        index = _some_of(np.flatnonzero(mass > 0), generator)
        units = np.unique(cells.independent[index], return_inverse=True)[1]
        return cls(index, mass[index], units, cells.toward(values)[index])


def _some_of(index: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    return index if len(index) <= MOVED else np.sort(generator.choice(index, MOVED, replace=False))


def _with_shifts(
    found: Difference,
    samples: Samples,
    first: _First,
    cells: Cells | None,
    between: Differences,
    generator: np.random.Generator,
) -> Difference:
    """The difference with the distances of shifts of the first sample, if it has numeric columns."""
    spread = Spread.of(samples[0], None if cells is None else cells.weights[: samples.sizes[0], 0])
    if spread is None:
        return found
    points, mass = rows(samples.pooled, first.chosen), first.mass / first.mass.sum()
    shifts = Shifts(points, spread, between, mass, first.units, generator)
    # For identical samples the squared distance is only rounding error, and has no direction.
    norm = np.sqrt(max(found.law.squared, 1e-12 * found.law.trace, np.finfo(float).tiny))
    return replace(found, shifts=shifts, toward=np.bincount(first.units, first.toward) / norm)


def _squared_by_gram(gram: np.ndarray, weights: np.ndarray) -> float:
    return float(np.sum(weights * (gram @ weights)))


def _law_of_moments(groups: Sequence[Moments]) -> DistanceLaw:
    contrasts = contrasts_of([group.n for group in groups])
    means = np.stack([group.mean for group in groups])
    squared = float(np.sum((contrasts.T @ means) ** 2))
    covariance = sum(
        np.kron(np.outer(c, c), group.covariance() / group.n) for c, group in zip(contrasts, groups, strict=True)
    )
    return DistanceLaw(squared, np.maximum(np.linalg.eigvalsh(np.asarray(covariance)), 0.0))


def _equal(groups: Sequence[Moments]) -> DistanceLaw:
    """The distribution of the distance if all samples have the same distribution, with the covariance of all rows."""
    sizes = np.array([group.n for group in groups], float)
    contrasts, means = contrasts_of(sizes.tolist()), np.stack([group.mean for group in groups])
    off = means - sizes / sizes.sum() @ means
    within = sum(group.n * group.covariance(lost=0) for group in groups)
    pooled = (within + off.T @ (sizes[:, None] * off)) / (sizes.sum() - 1)
    of_parts = np.linalg.eigvalsh(contrasts.T @ (contrasts / sizes[:, None]))
    spectrum = np.outer(of_parts, np.linalg.eigvalsh(pooled)).ravel()
    return DistanceLaw(float(np.sum((contrasts.T @ means) ** 2)), np.maximum(spectrum, 0.0))


def _reach(gram: np.ndarray) -> float:
    own = gram.diagonal()
    return float(np.sqrt(max(np.max(own[:, None] + own[None, :] - 2 * gram), np.finfo(float).tiny)))
