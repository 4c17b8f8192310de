"""What is said of the size of an effect: distances with intervals, in units that a person can read."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.values import Value
from meanmap.stats.result import Interval

__all__ = ["Effect", "doubt_about_mean"]

# With fewer rows in a sample its mean may not be normal yet; coverage is tested from here on.
FEW = 50


def doubt_about_mean(*sizes: int) -> tuple[str, ...]:
    """What is said of intervals and tests that rest on the normal law of the mean of few rows."""
    return (f"the normal law of means is doubtful for {min(sizes)} rows.",) if min(sizes) < FEW else ()


@dataclass(frozen=True, eq=False, repr=False)
class Effect(Value):
    """How large an effect is, with confidence intervals that may reach down to zero.

    Made by [`two_sample_effect`][], [`k_sample_effect`][], [`independence_effect`][] and
    [`conditional_independence_effect`][].

    Attributes
    ----------
    distance : Interval
        Between mean embeddings under `kernel`: MMD, the root of HSIC, or the spread of the groups. In no unit.
    share : Interval
        At least this share of the rows would have to change for the effect to vanish: distance over the largest
        distance between any two rows, a lower bound of the total variation distance.
    shift : Interval or None
        Of two samples: as if every column of numbers of the first had moved by so many of its standard deviations.
        Infinite where no shift takes it as far.
    correlation : Interval or None
        Of two variables: HSIC over the norms of both covariances, and the root of it, from 0 to 1.
    kernel : Kernel
        The mean of the default kernels, or the one that was given.
    level : float
        Intervals cover at least at this rate.
    method : str
        What was measured, in words.
    sizes : tuple of int
        Sample sizes.
    warnings : tuple of str
        What a careful reader should know.
    """

    distance: Interval
    share: Interval
    shift: Interval | None
    correlation: Interval | None
    kernel: Any
    level: float
    method: str
    sizes: tuple[int, ...]
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The effect as plain Python values, ready for JSON."""
        named = {"distance": self.distance, "share": self.share, "shift": self.shift, "correlation": self.correlation}
        intervals = {name: [each.estimate, each.low, each.high] for name, each in named.items() if each is not None}
        rest = {"level": self.level, "method": self.method, "kernel": repr(self.kernel), "sizes": list(self.sizes)}
        return {**intervals, **rest, "warnings": list(self.warnings)}

    def lines(self) -> list[tuple[str, str]]:
        """The result in words."""
        shift = [] if self.shift is None else [("as a shift of all columns", f"{self.shift} standard deviations")]
        correlation = [] if self.correlation is None else [("correlation of features", str(self.correlation))]
        always = [("rows that would change", f"at least {self.share}"), ("distance of embeddings", str(self.distance))]
        return [*shift, *correlation, *always]

    def __str__(self) -> str:
        title = f"{self.method}, with intervals of {100 * self.level:g} %"
        said = [f"  {what:25}  {value}" for what, value in self.lines()]
        return "\n".join([title, *said, *(f"  warning  {text}" for text in self.warnings)])

    @staticmethod
    def scaled(interval: Interval, factor: float, most: float = np.inf) -> Interval:
        """The interval in another unit, cut at what is possible."""
        return Interval(*(min(most, factor * value) for value in (interval.estimate, interval.low, interval.high)))
