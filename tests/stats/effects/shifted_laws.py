"""Laws of all tails, and the same laws moved by so many of their standard deviations: what is said of them."""

from typing import Any, NamedTuple

import numpy as np
import scipy.stats

from meanmap.core.door import Door
from meanmap.stats.effects.groups import difference_of
from meanmap.stats.samples.samples import read_samples

__all__ = ["LAWS", "Cell", "bounds", "counted"]

LAWS: dict[str, Any] = {
    "normal": (lambda rng, size: rng.normal(size=size), 1.0),
    "t5": (lambda rng, size: rng.standard_t(5, size), np.sqrt(5 / 3)),
    "t2.2": (lambda rng, size: rng.standard_t(2.2, size), np.sqrt(11.0)),
    "lognormal": (lambda rng, size: np.exp(1.5 * rng.normal(size=size)), np.sqrt(np.expm1(2.25) * np.exp(2.25))),
}


class Cell(NamedTuple):
    """Data sets that say "closer" and "further apart" at level .05, and have the true shift in the interval of .95."""

    close: int
    far: int
    covered: int
    below: int
    above: int


def counted(law: str, d: int, n: int, shift: float, trials: int, seed: int = 0) -> Cell:
    """Of data sets whose second sample is moved by exactly the margin."""
    draw, deviation = LAWS[law]
    found = np.zeros(5, int)
    for trial in range(trials):
        rng = np.random.default_rng([seed, d, n, trial])
        x, y = draw(rng, (n, d)), draw(rng, (n, d)) + shift * deviation
        with Door() as door:
            difference = difference_of(read_samples((x, y), ("x", "y"), None, rng, door), rng, door)
            at, interval = difference.at(shift), difference.as_shift(0.95)
        near, away = difference.law.below(at.distance, error=at.near), difference.law.above(at.distance, at.far)
        low, high = interval.low <= shift, shift <= interval.high
        found += near <= 0.05, away <= 0.05, low and high, not low, not high
    return Cell(*found.tolist())


def bounds(trials: int, chance: float = 0.99) -> tuple[float, float]:
    """The most rejections of a true null hypothesis at level .05, and the least intervals of .95 that cover."""
    return (scipy.stats.binom.ppf(chance, trials, 0.05), scipy.stats.binom.ppf(1 - chance, trials, 0.95))
