"""All modes of an objective of kernels: a profile over one multiple, then a search from every rise of it."""

from dataclasses import dataclass, field
from itertools import combinations, permutations
from typing import Any

import numpy as np

from meanmap.core.bisection import highest
from meanmap.core.values import Value
from meanmap.kernels.base import Kernel
from meanmap.learning.hyperparameters import Hyperparameters
from meanmap.learning.landscape import Landscape

__all__ = ["Mode", "Profile", "find_modes"]

# Multiples along the profile; neighbours are about 25% apart, and two modes of one objective were never nearer than 3.
GRID = 36
# Where lengthscales differ by column: this many starts at random besides those of the profile.
RANDOM_STARTS = 4
# Of a sum: starts from this many pairs (triples, ...) of lengthscales.
MOST_STARTS = 6
STEPS = 40
# Two ends of a search nearer than this in all logarithms are one mode.
SAME = 0.05
# Where a search ends within this of a bound (in logarithms), it ended because of the bound.
AT_BOUND = 1e-3
# The step of the differences that tell how far apart single draws would like the mode.
DIFFERENCE = 0.05


@dataclass(frozen=True, eq=False, repr=False)
class Mode(Value):
    """One local maximum.

    Attributes
    ----------
    kernel : Kernel
        The kernel there.
    objective : float
        The objective, averaged over draws of landmarks.
    share : float
        The share of draws of which this is the highest mode.
    spread : array
        By how much (relative to it) each lengthscale differs from draw to draw, one standard deviation.
    width : float, array (d,) or None
        η, where it was learned: one for all columns, or one for each where these have lengthscales of their own.
    at_bound : bool
        Whether the search was stopped here by the range of lengthscales.
    """

    kernel: Kernel
    objective: float
    share: float
    spread: np.ndarray
    width: Any = None
    at_bound: bool = False
    vector: np.ndarray = field(default_factory=lambda: np.empty(0), repr=False)


@dataclass(frozen=True, eq=False, repr=False)
class Profile(Value):
    """The objective of k(·/t) for multiples t of the units of the columns, one row of values for each draw."""

    multiples: np.ndarray
    values: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Averaged over draws."""
        return self.values.mean(axis=0)

    def peaks(self) -> np.ndarray:
        """Where it is higher than on both sides, ends included."""
        padded = np.r_[-np.inf, self.mean, -np.inf]
        return np.flatnonzero((padded[1:-1] > padded[:-2]) & (padded[1:-1] >= padded[2:]))


def find_modes(
    landscape: Landscape, what: Hyperparameters, units: np.ndarray, generator: np.random.Generator
) -> tuple[list[Mode], Profile]:
    """Modes from the highest to the lowest, and the profile that led to them.

    The landscape is that of columns divided by their units; kernels and widths are for the columns as they came.
    """
    multiples = np.geomspace(landscape.low, landscape.high, GRID)
    profile = Profile(
        multiples, np.stack([landscape.values(_along(what, len(units), t)) for t in multiples.tolist()], axis=1)
    )
    bounds = _bounds(what, landscape, len(units))
    if what.count == 1:
        ends = [_refined(landscape, profile, peak, bounds) for peak in profile.peaks()]
    else:
        starts = _starts(what, landscape, profile, len(units), generator)
        ends = [_climbed(landscape, s, bounds) for s in starts if np.isfinite(landscape.values(s)).all()]
    kept: list[np.ndarray] = []
    heights: list[np.ndarray] = []
    for end, values in sorted(((e, landscape.values(e)) for e in ends), key=lambda pair: -pair[1].mean()):
        if np.isfinite(values).all() and not any(_same(what, end, other) for other in kept):
            kept.append(end)
            heights.append(values)
    if not kept:
        return [], profile
    best = np.argmax(np.stack(heights), axis=0)
    found = []
    for index, (end, values) in enumerate(zip(kept, heights, strict=True)):
        width = what.base_width(end) * (units if what.by_column else float(units[0])) if what.width else None
        bounded = bool(np.any(np.abs(end[:, None] - bounds)[: what.scales] < AT_BOUND))
        share = float(np.mean(best == index))
        spread = _spread(landscape, end, values)[: what.scales]
        own = what.rescaled(end, units)
        found.append(Mode(what.kernel(own), float(values.mean()), share, spread, width, bounded, own))
    return found, profile


def _along(what: Hyperparameters, d: int, multiple: float) -> np.ndarray:
    return what.vector(np.full((len(what.parts), d), multiple))


def _bounds(what: Hyperparameters, landscape: Landscape, d: int) -> np.ndarray:
    low, high = (_along(what, d, bound) for bound in (landscape.low, landscape.high))
    bounds = np.stack([low, high], axis=1)
    bounds[what.scales :] = [-6.0, 6.0]  # logarithms of ratios of weights
    if what.width:
        bounds[-1] = np.log([0.1, 1e3])
    return bounds


def _refined(landscape: Landscape, profile: Profile, peak: int, bounds: np.ndarray) -> np.ndarray:
    """The top between the neighbours of a peak on the grid, of one lengthscale."""
    grid = np.linspace(float(bounds[0, 0]), float(bounds[0, 1]), len(profile.multiples))
    lowest = float(np.min(profile.mean[np.isfinite(profile.mean)])) - 1.0
    top, height = highest(
        lambda s: max(float(landscape.values(np.array([s])).mean()), lowest),
        float(grid[max(peak - 1, 0)]),
        float(grid[min(peak + 1, len(grid) - 1)]),
        within=5e-4,
    )
    # The search never looks at the ends themselves.
    at_end = peak in (0, len(grid) - 1) and height <= profile.mean[peak]
    return np.array([grid[peak] if at_end else top])


def _starts(
    what: Hyperparameters, landscape: Landscape, profile: Profile, d: int, generator: np.random.Generator
) -> list[np.ndarray]:
    """From where to climb: the peaks of the profile, columns at random around them, and several scales at once."""
    peaks = profile.multiples[profile.peaks()]
    starts = [_along(what, d, t) for t in peaks.tolist()]
    parts = len(what.parts)
    if parts > 1:
        between = np.geomspace(landscape.low * 10, landscape.high / 20, 3)
        scales = sorted([*peaks, *between])
        sets = list(combinations(scales, parts) if what.exchangeable else permutations(scales, parts))
        if len(sets) > MOST_STARTS:
            sets = [sets[i] for i in np.linspace(0, len(sets) - 1, MOST_STARTS, dtype=int)]
        apart = [what.vector(np.outer(scales, np.ones(d))) for scales in sets]
        return apart if what.exchangeable else starts + apart
    if what.parts[0].scales > 1:
        best = profile.multiples[np.argmax(profile.mean)]
        factors = np.exp(generator.uniform(-1.0, 1.0, (RANDOM_STARTS, d)))
        starts += [what.vector([best * f]) for f in factors]
    return starts


def _climbed(landscape: Landscape, start: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """The mode above a start, by L-BFGS."""
    from scipy.optimize import minimize

    # In units of the first slope: unscaled, the first step leaves the region where the objective is finite.
    unit = max(float(np.abs(landscape.slopes(start)[1].mean(axis=0)).max()), 1e-12)

    def descend(vector: np.ndarray) -> tuple[float, np.ndarray]:
        values, slopes = landscape.slopes(vector)
        value, slope = values.mean(), slopes.mean(axis=0)
        if not (np.isfinite(value) and np.isfinite(slope).all()):
            return np.inf, np.zeros_like(vector)  # the line search steps back
        return -value / unit, -slope / unit

    return minimize(
        descend, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": STEPS, "ftol": 1e-12}
    ).x


def _same(what: Hyperparameters, first: np.ndarray, second: np.ndarray) -> bool:
    """Whether two vectors are one kernel, terms in any order."""

    def sorted_terms(vector: np.ndarray) -> np.ndarray:
        scales = vector[: what.scales]
        return np.sort(scales) if what.exchangeable and len(what.terms) > 1 else scales

    return bool(np.abs(sorted_terms(first) - sorted_terms(second)).max() < SAME)


def _spread(landscape: Landscape, mode: np.ndarray, values: np.ndarray) -> np.ndarray:
    """How far from the common mode each draw's own lies, to second order: the standard deviation over draws."""
    shifts = []
    for coordinate in np.eye(len(mode)) * DIFFERENCE:
        above, below = landscape.values(mode + coordinate), landscape.values(mode - coordinate)
        if not (np.isfinite(above).all() and np.isfinite(below).all()):
            shifts.append(np.nan)
            continue
        curvature = (above + below - 2 * values).mean() / DIFFERENCE**2
        slope = (above - below) / (2 * DIFFERENCE)
        shifts.append(np.std(slope) / -curvature if curvature < 0 else np.nan)
    return np.array(shifts)
