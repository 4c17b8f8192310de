"""p(number | mean) of a number with few values, such as ratings: which of them it is."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from meanmap.core.points import slices
from meanmap.embeddings.bandwidth import diffusion_widths

__all__ = ["FewValues", "cauchy_between", "log_chance_of_values", "outermost"]

# Tilts e^(θ v), of values v from 0 to 1, are tabulated at this many θ up to this size.
TILTS, STEEPEST = 1001, 200.0
# Shares in this many ranks of the means are made those of the rows in at most so many rounds, or until they change by
# less than this.
RANKS, ROUNDS, AT_REST = 400, 100, 1e-5
# So many rows are the outermost ones, or this share of few rows. How near to an end means may be follows from these.
OUTER, MOST_OUTER = 20, 0.05
# Numbers that were standardised and back are equal if they differ by less than this share of the step.
ROUNDED = 1e-6
# Beyond the rows values go on for so many widths of a kernel. Numbers are spread over their cells by multiples of the
# second, an even sequence, before the width is found.
REACH, GOLDEN = 4, (5**0.5 - 1) / 2
# Rows are answered this many at a time.
ROWS_AT_ONCE = 10_000


@dataclass(frozen=True, eq=False)
class FewValues:
    """p(vₖ) = qₖ e^(θ vₖ) / Σⱼ qⱼ e^(θ vⱼ), with the θ under which the mean is that of a regression on the parents.

    A mean and residuals alone know no ends: of ratings from 1 to 5 some draws were 6. Here draws are values that rows
    have, their means are those of the regression, and q is such that each value is as frequent as it was. Binomial and
    Poisson numbers are of this form, and rounded normal ones (an adjacent-category model; Agresti 2010, section 4.1).

    Attributes
    ----------
    values, often : array (A,)
        Rising, in the unit of the column; and their shares of all rows.
    shares : array (TILTS, A)
        At tabulated θ.
    ends : pair of float
        Between which means are.

    Examples
    --------
    >>> values = np.repeat([1.0, 2.0, 3.0], [20, 40, 40])
    >>> means = np.repeat([1.8, 2.6], 50)
    >>> found = FewValues.fit(means, values, means)
    >>> shares = found(np.array([1.8, 2.4]))
    >>> (shares @ found.values).round(3).tolist(), bool((shares > 0).all())
    ([1.8, 2.4], True)
    """

    values: np.ndarray
    often: np.ndarray
    shares: np.ndarray
    ends: tuple[float, float]

    @classmethod
    def fit(cls, means: np.ndarray, numbers: np.ndarray, fitted: np.ndarray, step: float = 0.0) -> "FewValues":
        """Fit to numbers (n,), what a regression expects of each without it, and what it expects with all of them. With
        a step they are any of its multiples, also those that no row has, and end in a tail.

        Means without a row are the smaller the larger its number is, so that they do not say which rows are outermost:
        of rows with the same parents these would be those with the largest numbers.
        """
        values, counts = np.unique(numbers, return_counts=True)
        some = outermost(len(means))
        ordered, near = np.sort(fitted), ROUNDED * (values[-1] - values[0])
        first = numbers[fitted <= ordered[some - 1] + near]
        last = numbers[fitted >= ordered[-some] - near]
        room = (np.sum(first - values[0]) + 0.5 * (values[1] - values[0])) / (len(first) + 1)
        above = (np.sum(values[-1] - last) + 0.5 * (values[-1] - values[-2])) / (len(last) + 1)
        often = counts / len(means)
        if step:
            values, often = _smoothed(values, counts, step)
        found = cls(values, often, often[None], (float(values[0] + room / 2), float(values[-1] - above / 2)))
        logs, before = np.log(often), np.zeros(len(values))
        ranked = np.quantile(means, (np.arange(RANKS) + 0.5) / RANKS)
        for _ in range(ROUNDS):
            found = replace(found, shares=found._tilted(logs))
            expected = found(ranked).mean(axis=0)
            if np.max(np.abs(expected - before)) < AT_REST:
                break
            logs, before = logs + np.log(often / expected), expected
        return found

    def _tilted(self, logs: np.ndarray) -> np.ndarray:
        steep = STEEPEST * np.linspace(-1, 1, TILTS) ** 3
        tilted = logs + steep[:, None] * (self.values - self.values[0]) / np.ptp(self.values)
        shares = np.exp(tilted - tilted.max(axis=1, keepdims=True))
        return shares / shares.sum(axis=1, keepdims=True)

    def __call__(self, means: np.ndarray) -> np.ndarray:
        """The probability of each value where the mean is one of these (m,), (m, A)."""
        means, table = np.clip(means, *self.ends), self.shares @ self.values
        after = np.clip(np.searchsorted(table, means), 1, TILTS - 1)
        low, high = table[after - 1], table[after]
        part = np.divide(means - low, high - low, out=np.zeros_like(means), where=high > low)[:, None]
        return (1 - part) * self.shares[after - 1] + part * self.shares[after]

    def draw(self, means: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """One value (m, 1) for each mean; of equal means as many have each value as are expected."""
        size = len(means)
        ranks = (random.permutation(size) + random.random(size)) / size
        at = [
            np.sum(ranks[part, None] >= np.cumsum(self(means[part]), axis=1)[:, :-1], axis=1)
            for part in slices(size, ROWS_AT_ONCE)
        ]
        return self.values[np.concatenate([np.zeros(0, dtype=int), *at])][:, None]


def _smoothed(values: np.ndarray, counts: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Multiples of the step from the least value on, and their shares by a kernel: as wide everywhere on the scale of
    roots, on which spreads of counts are alike. The least value, which may stand out as zeros do, keeps its share.
    """
    rows, places = counts.sum(), np.round((values - values[0]) / step)
    half = np.sqrt(places + 0.5) - np.sqrt(np.maximum(places - 0.5, 0))
    roots = np.repeat(np.sqrt(places), counts)
    spread = roots + np.repeat(half, counts) * (GOLDEN * np.arange(rows) % 1 - 0.5)
    width = float(diffusion_widths(spread[counts[0] :, None])[0])
    last = int((np.sqrt(places[-1]) + REACH * width) ** 2) + 1
    edges = np.sqrt(np.arange(1, last + 2) - 0.5)
    below = ndtr((edges - np.sqrt(places[1:, None])) / width)
    inside = counts[1:] @ (np.diff(below, axis=1) / (below[:, -1:] - below[:, :1]))
    return values[0] + step * np.arange(last + 1), np.append(counts[0], inside) / rows


def outermost(rows: int) -> int:
    """The number of rows that are the outermost ones at an end."""
    return max(min(OUTER, int(MOST_OUTER * rows)), 1)


def cauchy_between(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The probabilities of a standard Cauchy distribution between two numbers (m,), with all digits however far out.

    Examples
    --------
    >>> cauchy_between(np.array([-1.0, 1e9]), np.array([1.0, 1e9 + 1])).round(25).tolist()
    [0.5, 3.183099e-19]
    """
    return np.arctan2(high - low, 1 + low * high) / np.pi


def log_chance_of_values(
    shares: np.ndarray, often: np.ndarray, values: np.ndarray, value: np.ndarray, rows: int, unit: tuple[float, float]
) -> np.ndarray:
    """The log probabilities of numbers (m,) of which each of some rising values has a share (m, A), of all rows `often`
    (A,). One row in n + 1 is reserved for other numbers: they are off the nearest value by a Cauchy distribution, whose
    scale and the step to which it is rounded are the unit, and less probable where that value is.
    """
    step, scale = unit
    apart = np.abs(value[:, None] - values)
    nearest = apart.argmin(axis=1)
    at = np.arange(len(value)), nearest
    off = cauchy_between((apart[at] - step / 2) / scale, (apart[at] + step / 2) / scale)
    seen = apart[at] <= ROUNDED * step
    unseen = off * np.minimum(shares[at] / often[nearest], 1)
    with np.errstate(divide="ignore"):
        return np.log(np.where(seen, rows * shares[at], unseen) / (rows + 1))
