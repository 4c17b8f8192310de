"""A measured number with its standard error."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, stdtrit

from meanmap.core.types import Array

__all__ = ["Number", "written"]


@dataclass(frozen=True)
class Number:
    """A measured number with its standard error, and how many repetitions that is from.

    Attributes
    ----------
    value : float
        The number.
    error : float or None
        Its standard error: 0 where it is exact, None if it is unknown.
    runs : int or None
        The repetitions whose spread is the standard error; None if it is not from a spread, as with a share.

    Examples
    --------
    >>> print(Number(0.25, 0.01), Number(0.25, 0.0), Number(0.25), sep="; ")
    0.250 ± 0.010; 0.25; 0.25, no standard error
    >>> print(Number(5.63e-6, 3.7e-6), Number(36_900_000, 9_200_000), Number(2741.0, 835.0), sep="; ")
    (5.6 ± 3.7) × 10⁻⁶; (3.69 ± 0.92) × 10⁷; 2,740 ± 840
    """

    value: float
    error: float | None = None
    runs: int | None = None

    @property
    def reach(self) -> float:
        """Half the length of the interval of two standard errors: NaN where the standard error is unknown.

        A normal number leaves 4.6% outside of two standard errors. Standard errors from few repetitions are uncertain
        themselves; then Student's t says how many leave as much outside.

        Examples
        --------
        >>> [round(Number(1.0, 0.1, runs).reach, 2) for runs in (2, 3, 6, 10, 100, None)]
        [1.4, 0.45, 0.26, 0.23, 0.2, 0.2]
        """
        if self.error is None:
            return math.nan
        return self.error * (2.0 if self.runs is None else float(stdtrit(self.runs - 1, ndtr(2.0))))

    @classmethod
    def mean(cls, values: Array | Sequence[float]) -> "Number":
        """The mean of repetitions; one alone has no standard error.

        Examples
        --------
        >>> Number.mean([1.0, 3.0])
        Number(value=2.0, error=1.0, runs=2)
        """
        values = np.asarray(values, dtype=float)
        if len(values) == 1:
            return cls(float(values[0]))
        return cls(float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values))), len(values))

    @classmethod
    def share(cls, held: Sequence[bool]) -> "Number":
        """A share of runs; its error is √(q (1 − q) / runs), with q the share if there were one more of each: never 0.

        Examples
        --------
        >>> print(Number.share([True] * 10))
        1.000 ± 0.087
        """
        runs, smoothed = len(held), (sum(held) + 1) / (len(held) + 2)
        return cls(sum(held) / runs, math.sqrt(smoothed * (1 - smoothed) / runs))

    @classmethod
    def in_spreads(cls, shifts: Array | Sequence[float], spread: float) -> "Number":
        """The mean of shifts in standard deviations, which are known to 1 in √(2 (n - 1)) themselves.

        Examples
        --------
        >>> print(Number.in_spreads([0.1, 0.2, 0.3], 0.4))
        0.50 ± 0.29
        """
        mean, n = cls.mean(shifts), len(shifts)
        value = mean.value / spread
        if mean.error is None:
            return cls(value)
        return cls(value, math.hypot(mean.error / spread, value / math.sqrt(2 * (n - 1))), n)

    @classmethod
    def root_mean_square(cls, values: Array | Sequence[float]) -> "Number":
        """The root of the mean square of repetitions; its error is that of the mean square over twice the root.

        Examples
        --------
        >>> print(Number.root_mean_square([3.0, 5.0]))
        4.12 ± 0.97
        """
        square = cls.mean(np.square(np.asarray(values, dtype=float)))
        root = math.sqrt(square.value)
        return cls(root, None if square.error is None or root == 0 else square.error / (2 * root), square.runs)

    @classmethod
    def ratio(cls, above: Array | Sequence[float], below: Array | Sequence[float]) -> "Number":
        """The ratio of the means of paired repetitions; its error is that of above − ratio · below, by its mean.

        Examples
        --------
        >>> Number.ratio([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
        Number(value=2.0, error=0.0, runs=3)
        """
        above, below = np.asarray(above, dtype=float), np.asarray(below, dtype=float)
        ratio, middle = float(above.mean() / below.mean()), float(below.mean())
        gap = cls.mean(above - ratio * below)
        return cls(ratio, None if gap.error is None else gap.error / middle, gap.runs)

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "not measured"
        if self.error is None:
            return f"{written(self.value)}, no standard error"
        if not self.error:
            return written(self.value)
        # Two digits of the error, and as many decimals of the value.
        decimals = 1 - math.floor(math.log10(self.error))
        if -3 < decimals < 7:
            value, error = (f"{round(each, decimals):,.{max(decimals, 0)}f}" for each in (self.value, self.error))
            return f"{value} ± {error}"
        power = math.floor(math.log10(max(abs(self.value), self.error)))
        if power in (-2, -1, 0, 1, 2):
            return f"{written(self.value)} ± {written(self.error, 2)}"
        return f"({Number(self.value / 10.0**power, self.error / 10.0**power)}) × 10{_raised(power)}"


def written(value: float, digits: int = 3) -> str:
    """A number to this many digits, without the powers of ten of programs.

    Examples
    --------
    >>> print(written(0.25), written(13_500), written(0.00075), written(4.2e22), written(math.inf), sep="; ")
    0.25; 13,500; 7.5 × 10⁻⁴; 4.2 × 10²²; ∞
    """
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value and not 1e-3 <= abs(value) < 1e9:
        power = math.floor(math.log10(abs(value)))
        return f"{value / 10.0**power:.{digits}g} × 10{_raised(power)}"
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 10 ** (digits - 1) else f"{rounded:.{digits}g}"


def _raised(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
