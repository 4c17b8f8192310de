"""p(number | parents): a regression on all parents at once, with residuals drawn from rows with parents like these."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import log_ndtr, logsumexp

from meanmap.bp.beliefs.gain import clearly_better
from meanmap.bp.conditionals.held_out import HeldOut
from meanmap.bp.conditionals.log_sums import LogSums
from meanmap.bp.conditionals.normal_part import NormalPart, probability_between
from meanmap.bp.conditionals.parent_columns import ParentColumns
from meanmap.bp.conditionals.row_weights import LeafWeights
from meanmap.bp.conditionals.scales import Scales
from meanmap.bp.conditionals.transformations import MOST_GAIN
from meanmap.bp.conditionals.trees import Trees
from meanmap.bp.edges.regression import Regression, Regressor
from meanmap.bp.edges.samples import NodeSample
from meanmap.core.bisection import bisect
from meanmap.core.door import Door
from meanmap.core.points import slices, spread_rows
from meanmap.embeddings.bandwidth import diffusion_widths
from meanmap.kernels.base import Kernel, Sum
from meanmap.kernels.stationary import RBF
from meanmap.learning.default import kernel_for

__all__ = ["LEAST_NOISE", "GivenParents", "apart", "joined"]

# The most rows whose residuals are used, and the fewest in a leaf.
MOST_ROWS, LEAST_IN_LEAF, TREES = 4000, 20, 20
# The width of the kernel of one column along the other columns, and its smallest width along its own.
ELSEWHERE, FLAT = 1e30, 1e-6
# Residuals of which half are less than this share of the standard deviation of the number are rounding, or as good as
# that: draws that are weighed by a narrower density would never agree with evidence.
LEAST_NOISE = 1e-3
# The least width as a share of the step to which numbers are rounded: with less residuals are separate peaks, of which
# left-out rows have as many as there are.
OF_STEP = 0.25
# Rows are answered this many at a time.
ROWS_AT_ONCE = 1000
# A number of the same rank is found by this many bisections.
STEPS = 60
# This many widths beyond all residuals a normal density is practically zero.
FARTHEST = 40
# A density is added up over ranges of up to this many widths at as many places as there are widths, twice.
WIDE = 8
# Residuals of rounded numbers are spread over their cells by multiples of this, an even sequence, before the width is
# found: else it would be that of peaks at the numbers.
GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True, eq=False)
class GivenParents:
    """The distribution of a number given numbers (n, q) that stand for its parents.

    It is f(parents) + s(parents) r: a straight line of all rows, which may jump at values that many of them have, with
    a kernel's part where that predicts better, and left-out residuals of some of them, divided by their size s where
    that changes with the parents, and weighted by a forest where left-out rows show that they are of another shape
    there: its leaves alone are too wide to follow a size that grows, and have so few rows that new rows of a straight
    line with normal noise lost .010 nats by them, .005 by all (1500 rows).

    Attributes
    ----------
    values : array (m,)
        Residuals r.
    columns : ParentColumns
        Values of parents at which f and s may jump, and scores of those with heavy tails.
    regression : Regression or None
    scales : Scales or None
        The sizes s, about one; None if one size is as good.
    forest : LeafWeights or None
        Rows with parents like these; None if residuals of all rows are as good.
    width : float
        By which residuals are smoothed to a density.
    normal : NormalPart
        The rest of that density.
    rows : int
        Of how many rows the line is.
    low, high : array (q,)
        The ends of each number that stands for the parents, in all rows.
    follows : bool
        Whether there is no noise: densities are then as wide as LEAST_NOISE says, draws are not.
    """

    values: np.ndarray
    columns: ParentColumns
    regression: Regression | None
    scales: Scales | None
    forest: LeafWeights | None
    width: float
    normal: NormalPart
    rows: int
    low: np.ndarray
    high: np.ndarray
    follows: bool

    @classmethod
    def fit(cls, rows: np.ndarray, values: np.ndarray, cells: np.ndarray | None = None) -> "GivenParents":
        """Fit to rows of the parents and the values (n, 1) of the variable; if these are rounded, with the ends (n, 2)
        of all that is rounded to them.
        """
        chosen, forest, regression, scales = spread_rows(len(rows), MOST_ROWS), None, None, None
        left, columns = values[chosen], ParentColumns.of(rows)
        cells = None if cells is None else cells[chosen] - left
        if rows.shape[1]:
            with Door():
                marked = columns(rows)
                added = Regressor.on(NodeSample(apart(marked), marked, False, False))
                regression, left = _regression(marked, values, added)
                scales = Scales.fit(added, left[:, 0])
                if scales is not None:
                    sizes = scales(marked[chosen])[:, None]
                    left, cells = left / sizes, None if cells is None else cells / sizes
            forest = LeafWeights(*Trees.fit(rows[chosen], np.abs(left), TREES, LEAST_IN_LEAF, 0, 1.0))
        residuals, width, least = left[:, 0], _width(left, cells), LEAST_NOISE * float(values.std())
        follows = regression is not None and float(np.median(np.abs(residuals))) < least
        width = max(width, least if follows else 0.0)
        held = HeldOut.of(residuals, width, cells)
        forest, logs = _chosen(held, forest)
        normal = NormalPart.of(residuals, held, least if follows else 0.0, logs)
        ends = rows.min(axis=0), rows.max(axis=0)
        return cls(residuals, columns, regression, scales, forest, width, normal, len(rows), *ends, follows)

    def ends(self, column: int) -> tuple[float, float]:
        """The observed range of a number that represents a parent."""
        return float(self.low[column]), float(self.high[column])

    def means(self, rows: np.ndarray) -> np.ndarray:
        """f at rows of the parents, (m,)."""
        if self.regression is None:
            return np.zeros(len(rows))
        with Door():
            return np.asarray(self.regression(self.columns(rows)))[:, 0]

    def sizes(self, rows: np.ndarray) -> np.ndarray:
        """s at rows of the parents, (m,)."""
        if self.scales is None:
            return np.ones(len(rows))
        with Door():
            return self.scales(self.columns(rows))

    def draw(self, rows: np.ndarray, random: np.random.Generator, smooth: bool = False) -> np.ndarray:
        """Draw one value (m, 1) for each row of the parents, by residuals of rows or by their smooth density."""
        if self.forest is None:
            at = _each_in_turn(len(self.values), len(rows), random)
        else:
            at = self.forest.draw(rows, random)
        gaps = self.values[at]
        if smooth:
            gaps = self.normal.draw(gaps + self.width * random.normal(size=len(gaps)), random)
        return (self.means(rows) + self.sizes(rows) * gaps)[:, None]

    def log_chance(self, rows: np.ndarray, value: np.ndarray) -> np.ndarray:
        """The logarithm of the density of numbers (m, 1) at rows of the parents."""
        sizes = self.sizes(rows)
        return self._log_density(rows, (value[:, 0] - self.means(rows)) / sizes) - np.log(sizes)

    def log_mass(self, rows: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """The logarithms of the probabilities of numbers between two (m,), which may be infinite."""
        means, sizes = self.means(rows), self.sizes(rows)
        low, high = (low - means) / sizes, (high - means) / sizes
        # Cells below the range of a logarithm are empty.
        found, wide = np.full(len(rows), -np.inf), high > low
        if self.forest is None:
            narrow = wide & (high - low <= WIDE * self.width)
            found[narrow], wide = self._added_up(low[narrow], high[narrow]), wide & ~narrow
        found[wide] = self._between(rows[wide], low[wide], high[wide])
        return found

    def _log_density(self, rows: np.ndarray, gaps: np.ndarray) -> np.ndarray:
        """Of residuals (m,) at rows of the parents."""
        log_sums = [self._log_sums(rows[part], gaps[part]) for part in slices(len(rows), ROWS_AT_ONCE)]
        logs = np.concatenate([np.zeros(0), *log_sums]) - np.log(np.sqrt(2 * np.pi) * self.width)
        return self.normal.log_density(gaps, logs)

    def _added_up(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """The logarithm of the integral of the density of all residuals alike between numbers (m,)."""
        if not len(low):
            return low
        places, weights = np.polynomial.legendre.leggauss(2 * int(np.ceil(np.max(high - low) / self.width)))
        nodes = (low + high)[:, None] / 2 + (high - low)[:, None] / 2 * places
        logs = self._log_density(np.zeros((nodes.size, 0)), nodes.ravel()).reshape(nodes.shape)
        return logsumexp(logs, axis=1, b=weights) + np.log((high - low) / 2)

    def _between(self, rows: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """The logarithm of the share of smoothed residuals between numbers (m,); where it underflows that of the
        density at the end nearest to the residuals, over a width.
        """
        shares = [self._shares(rows[part], low[part], high[part]) for part in slices(len(rows), ROWS_AT_ONCE)]
        found = self.normal.mass(low, high, np.concatenate([np.zeros(0), *shares]))
        far = found < np.finfo(float).tiny
        with np.errstate(divide="ignore"):
            logs = np.log(found)
        if far.any():
            nearest = np.clip(self.normal.centre, low[far], high[far])
            logs[far] = self._log_density(rows[far], nearest) + np.log(self.width)
        return logs

    def _shares(self, rows: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Σᵢ wᵢ P(low < vᵢ + width ε < high), (m,)."""
        if self.forest is None:
            return self._sums.below(high) - self._sums.below(low)
        weights = self.forest.sparse(rows)
        starts, sizes = weights.indptr[:-1], np.diff(weights.indptr)
        away = [(np.repeat(each, sizes) - self.values[weights.indices]) / self.width for each in (low, high)]
        return np.add.reduceat(weights.data * probability_between(*away), starts)

    def _log_sums(self, rows: np.ndarray, gaps: np.ndarray) -> np.ndarray:
        """log Σᵢ wᵢ exp(−(gap − vᵢ)² / 2 width²), (m,)."""
        if self.forest is None:
            return self._sums(gaps)
        weights = self.forest.sparse(rows)
        starts, sizes = weights.indptr[:-1], np.diff(weights.indptr)
        exponents = ((np.repeat(gaps, sizes) - self.values[weights.indices]) / self.width) ** 2 / -2
        top = np.maximum.reduceat(exponents, starts)
        return top + np.log(np.add.reduceat(weights.data * np.exp(exponents - np.repeat(top, sizes)), starts))

    @cached_property
    def _sums(self) -> LogSums:
        """Of all residuals alike."""
        return LogSums(np.sort(self.values), self.width)

    def widths(self, value: np.ndarray) -> np.ndarray:
        """The bandwidth by which draws are smoothed to a density."""
        return np.full(value.shape, self.width)

    def moved(self, before: np.ndarray, value: float, after: np.ndarray) -> float:
        """The number that is to parents `after` (1, q) what `value` is to parents `before`: of the same rank among the
        numbers that these leave possible, as smoothed as their density is.
        """
        if self.regression is None or np.array_equal(before, after):
            return value
        gap = (value - self.means(before)[0]) / self.sizes(before)[0]
        if self.forest is not None:
            # Each residual is at most `reach` from any other, and so is the rank of what is that far away.
            reach = float(np.ptp(self.values))
            gap = self._gap_at(after, self._log_odds(before, gap), gap - reach, gap + reach)
        return float(self.means(after)[0] + self.sizes(after)[0] * gap)

    def log_odds(self, rows: np.ndarray, value: float) -> float:
        """log F / (1 − F) of a number at a row of the parents (1, q)."""
        return self._log_odds(rows, (value - self.means(rows)[0]) / self.sizes(rows)[0])

    def at_odds(self, rows: np.ndarray, wanted: float) -> float:
        """The number with these log odds at a row of the parents (1, q), or as far out as rounding allows."""
        out = FARTHEST * self.width
        gap = self._gap_at(rows, wanted, self.values.min() - out, self.values.max() + out)
        return float(self.means(rows)[0] + self.sizes(rows)[0] * gap)

    def _gap_at(self, rows: np.ndarray, wanted: float, low: float, high: float) -> float:
        """The residual with these log odds."""
        found = bisect(
            lambda middle: np.asarray(self._log_odds(rows, middle) < wanted), np.array(low), np.array(high), STEPS
        )
        return float(np.mean(found))

    def _log_odds(self, rows: np.ndarray, gap: Any) -> float:
        """Of a residual, among all or weighted ones: it keeps its digits however far away."""
        values, shares = self.values, np.full(len(self.values), 1 / len(self.values))
        if self.forest is not None:
            weights = self.forest.sparse(rows)
            values, shares = values[weights.indices], weights.data
        away = (gap - values) / self.width
        below, above = (np.asarray(logsumexp(log_ndtr(side), b=shares)) for side in (away, -away))
        return self.normal.log_odds(float(gap), float(below), float(above))


def _regression(rows: np.ndarray, values: np.ndarray, apart: Regressor) -> tuple[Regression, np.ndarray]:
    """A joint regression on all parents if it lowers the leave-one-out error by more than two standard errors.

    Otherwise it is a sum of functions of each parent, which also holds for combinations of parents that were seldom
    seen.
    """
    together, left = apart.by(kernel_for(rows)).fit(values)
    if rows.shape[1] == 1:
        return together, left
    added, residuals = apart.fit(values)
    gain = np.sum(residuals**2 - left**2, axis=1)
    return (together, left) if clearly_better(gain) else (added, residuals)


def _each_in_turn(many: int, size: int, random: np.random.Generator) -> np.ndarray:
    """Places of residuals, (size,): all of them in random order, again and again. The mean of costs with a heavy tail
    is then nearer to that of the rows than by independent draws.
    """
    rounds = [random.permutation(many) for _ in range(size // many)]
    return np.concatenate([*rounds, random.choice(many, size % many, replace=False)])


def _width(left: np.ndarray, cells: np.ndarray | None) -> float:
    """The width that smooths residuals (n, 1), of rounded numbers as if these were spread over their cells (n, 2)."""
    if cells is None:
        return float(diffusion_widths(left)[0])
    half = np.abs(cells).min(axis=1)
    spread = left[:, 0] + half * (2 * (GOLDEN * np.arange(len(left)) % 1) - 1)
    return max(float(diffusion_widths(spread[:, None])[0]), OF_STEP * 2 * float(np.median(half)))


def _chosen(held: HeldOut, forest: LeafWeights | None) -> tuple[LeafWeights | None, np.ndarray]:
    """A forest, if some residuals are more probable by two standard errors under the others weighted by it than under
    all others alike; and the logarithms of what they are.
    """
    alike = held.alike()
    if forest is None:
        return None, alike
    weighted = held.logs(forest.means_without(held.some, held.kernel))
    better = clearly_better(np.clip(weighted - alike, -MOST_GAIN, MOST_GAIN))
    return (forest, weighted) if better else (None, alike)


def apart(rows: np.ndarray) -> Kernel:
    """A kernel for each column, as wide as it varies, added up."""
    scales = np.where(np.eye(rows.shape[1]) == 1, np.maximum(rows.std(axis=0), FLAT), ELSEWHERE)
    return Sum(tuple(map(RBF, scales)))


def joined(numbers: list[np.ndarray], rows: int) -> np.ndarray:
    """Numbers (n, width) side by side, or none of them."""
    return np.concatenate([np.zeros((rows, 0)), *numbers], axis=1)
