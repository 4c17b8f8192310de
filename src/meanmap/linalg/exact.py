"""Sums over rows that are identical bit for bit, however the rows are divided and in whatever order they are added.

Floating-point sums depend on their order. So each row is first rounded to integer multiples of a unit, and the sums are
sums of integers: adding them is exact, hence associative and commutative. Products of two numbers below 2¹⁷ are also
summed exactly in double precision, up to 2¹⁹ rows at a time, so that matrix products can be used.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from meanmap.core.errors import InputError, NonFiniteError, ParameterError, ShapeError
from meanmap.core.values import Value
from meanmap.linalg.moments import Moments

__all__ = ["DIGITS", "ExactSums", "Grid", "correlations"]

# The largest distance from the origin in the sample that defined the grid is between 2¹⁵ and 2¹⁶ units.
DIGITS = 16
# Rows further out than this are rounded to larger units, 2⁸ times as large for each level, and summed separately.
MOST = 2.0 ** (DIGITS + 1)
STEP = 8
# Sums of products over this many rows of numbers up to `MOST` are exact in double precision.
AT_ONCE = 1 << 18


@dataclass(frozen=True, eq=False, repr=False)
class Grid(Value):
    """The grid that rows are rounded to: origin + unit · integers.

    Attributes
    ----------
    origin : array (r,)
        A multiple of the unit, near the mean of the rows, so that nothing cancels in covariances.
    unit : array (r,)
        Powers of two.
    """

    origin: np.ndarray
    unit: np.ndarray

    @classmethod
    def of(cls, sample: np.ndarray, groups: Sequence[int] = ()) -> "Grid":
        """The grid for rows like those of a sample (n, r); each of `groups`, numbers of consecutive columns, has its
        own unit.
        """
        centre = np.asarray(sample, float).mean(axis=0)
        low, high = sample.min(axis=0, initial=np.inf), sample.max(axis=0, initial=-np.inf)
        distances, unit, start = np.maximum(np.maximum(high - centre, centre - low), 0.0), np.empty(len(centre)), 0
        for size in groups or (len(centre),):
            part = slice(start, start + size)
            start += size
            spread = distances[part].max(initial=0.0) or np.abs(centre[part]).max(initial=0.0) or 1.0
            if not np.isfinite(spread):
                raise NonFiniteError("a feature of a row is not finite.")
            unit[part] = 2.0 ** (np.ceil(np.log2(spread)) - DIGITS)
        return cls(unit * np.rint(centre / unit), unit)

    @property
    def size(self) -> int:
        """r, the length of a row."""
        return len(self.origin)

    def units(self, rows: np.ndarray) -> np.ndarray:
        """Each row minus the origin in whole units, (n, r)."""
        found = rows - self.origin
        found /= self.unit
        return np.rint(found, out=found)

    def rounded(self, rows: np.ndarray) -> np.ndarray:
        """Each row rounded to the grid, (n, r)."""
        found = self.units(rows)
        found *= self.unit
        found += self.origin
        return found


@dataclass(frozen=True, eq=False, repr=False)
class ExactSums(Value):
    """The number of rows, their sums and the sums of their products, in whole units of a grid.

    `merge` adds the sums of other rows; order and grouping do not change a single bit.

    Attributes
    ----------
    grid : Grid
    levels : tuple of int
        0 for rows within twice the spread of the sample that the grid was made for, l > 0 for rows that lie further out
        and are counted in units 2⁸ˡ times as large.
    counts : int array (levels,)
    sums : int array (levels, r)
    products : int array (levels, r, r) or (levels, r)
        Products of all pairs of numbers in a row; or only squares, at a tenth of the cost, in which case covariances
        need the correlations of a sample of rows.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(1000, 3))
    >>> none = ExactSums.none(Grid.of(rows[:100]))
    >>> whole, first, last = none.add(rows), none.add(rows[:300]), none.add(rows[300:])
    >>> last.merge(first) == whole
    True
    >>> bool(np.allclose(whole.moments().covariance(), np.cov(rows.T), atol=1e-4))
    True
    """

    grid: Grid
    levels: tuple[int, ...]
    counts: np.ndarray
    sums: np.ndarray
    products: np.ndarray

    @classmethod
    def none(cls, grid: Grid, pairs: bool = True) -> "ExactSums":
        """The sums over no rows, with products of all pairs of numbers or only squares."""
        return cls(grid, (), **_zeros(0, (grid.size,) * (1 + pairs)))

    @property
    def n(self) -> int:
        """The number of rows."""
        return int(self.counts.sum())

    @property
    def mean(self) -> np.ndarray:
        """The mean of the rows, (r,)."""
        scale = np.array([2.0 ** (STEP * level) for level in self.levels])
        return self.grid.origin + self.grid.unit * np.einsum("l,li->i", scale, self.sums.astype(float)) / self.n

    def add(self, rows: np.ndarray) -> "ExactSums":
        """The sums with these rows (n, r) added."""
        return self.add_units(self.grid.units(rows))

    def add_units(self, units: np.ndarray) -> "ExactSums":
        """The sums with rows added that were already rounded by `grid.units`."""
        total = self
        for start in range(0, len(units), AT_ONCE):
            total = total.merge(self._of(units[start : start + AT_ONCE]))
        return total

    def add_totals(self, n: int, sums: np.ndarray, squares: np.ndarray) -> "ExactSums":
        """The sums with n rows added, of units up to `MOST`, whose sums and sums of squares are known."""
        there = {"counts": np.array([n]), "sums": sums[None], "products": squares[None]}
        return self.merge(replace(self, levels=(0,), **{name: part.astype(np.int64) for name, part in there.items()}))

    def merge(self, other: "ExactSums") -> "ExactSums":
        """The sums of both parts together."""
        if self.grid != other.grid:
            what = f"rows of {self.grid.size} numbers and of {other.grid.size}"
            if self.grid.size == other.grid.size:
                what = "rows on different grids"
            raise ShapeError(f"two states do not belong together ({what}): both must come from one plan.")
        if not self.levels or not other.levels:
            return self if self.levels else other
        levels = tuple(sorted({*self.levels, *other.levels}))
        at = {level: i for i, level in enumerate(levels)}
        total = replace(self, levels=levels, **_zeros(len(levels), self.products.shape[1:]))
        for part in (self, other):
            where = [at[level] for level in part.levels]
            total.counts[where] += part.counts
            total.sums[where] += part.sums
            total.products[where] += part.products
        # By Cauchy and Schwarz no sum of products is larger than one of squares.
        squares = [float(part.products.max(initial=0)) for part in (self, other)]
        if sum(squares) >= 2.0**63:
            raise InputError(f"a sum over {total.n} rows does not fit into 63 bits: merge fewer states, of 10⁹ rows.")
        return total

    def moments(self, correlations: np.ndarray | None = None) -> Moments:
        """Floating-point sums about the grid's origin, for means and covariances.

        If only squares were summed, variances come from all rows, and `correlations` (r, r) from a sample.
        """
        if not self.n:
            raise ParameterError("the state holds no row: there is no mean.")
        scale, unit = np.array([2.0 ** (STEP * level) for level in self.levels]), self.grid.unit
        sums = unit * np.einsum("l,li->i", scale, self.sums.astype(float))
        products = np.einsum("l,l...->...", scale**2, self.products.astype(float))
        if correlations is None:
            return Moments(self.n, self.grid.origin, sums, unit[:, None] * products * unit)
        spread = np.sqrt(np.maximum(products * unit**2 - sums**2 / self.n, 0.0))
        products = spread[:, None] * correlations * spread + np.outer(sums, sums) / self.n
        return Moments(self.n, self.grid.origin, sums, products)

    def _of(self, units: np.ndarray) -> "ExactSums":
        if max(units.max(initial=0.0), -units.min(initial=0.0)) <= MOST:  # False if a number is missing
            found = {0: np.asarray(units, np.float64)}
        else:
            units = units.astype(np.float64)
            peaks = np.abs(units).max(axis=1)
            if not np.isfinite(peaks).all():
                raise NonFiniteError("a feature of a row is not finite.")
            level = np.ceil(np.maximum(np.log2(np.maximum(peaks, 1.0) / MOST), 0.0) / STEP).astype(int)
            found = {far: np.rint(units[level == far] * 2.0 ** (-STEP * far)) for far in np.unique(level).tolist()}
        sums = replace(self, levels=tuple(found), **_zeros(len(found), self.products.shape[1:]))
        for i, part in enumerate(found.values()):
            sums.counts[i] = len(part)
            sums.sums[i] = np.ones(len(part)) @ part
            sums.products[i] = part.T @ part if sums.products.ndim == 3 else np.einsum("ij,ij->j", part, part)
        return sums


def correlations(rows: np.ndarray) -> np.ndarray:
    """The correlations of the columns of some rows, (r, r); zero between a constant column and any other."""
    covariance = Moments.of(rows, rows.mean(axis=0)).covariance(lost=0)
    spread = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
    share = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
    found = share[:, None] * covariance * share
    np.fill_diagonal(found, 1.0)
    return found


def _zeros(levels: int, products: tuple[int, ...]) -> dict[str, np.ndarray]:
    shapes = {"counts": (levels,), "sums": (levels, products[0]), "products": (levels, *products)}
    return {name: np.zeros(shape, np.int64) for name, shape in shapes.items()}
