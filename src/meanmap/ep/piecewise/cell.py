"""Parts of the domain of a function of a few numbers, each with a polynomial by least squares, or halved."""

from collections.abc import Iterator
from functools import cache
from itertools import product
from math import comb

import numpy as np

__all__ = ["Cell"]

# In a cell one value in _HELD is held out, and each coefficient takes _EACH of the others. A cell that is not known
# well is halved from _FULL values on.
_HELD, _EACH, _COEFFICIENTS, _FULL, _FEWEST = 4, 2, 230, 640, 40

# A cell is known well where held-out values are missed by this share of the scale that matters (root mean square; an
# error beyond the scale counts as the scale).
_ENOUGH = 0.02

# Cells answer this share of their width beyond their values, and this much further than the furthest of these.
_BEYOND, _FURTHER = 0.05, 1.2

_RIDGE, _ROWS = 1e-11, 8192


class Cell:
    """A part of the domain with its values, and a polynomial, or two halves."""

    def __init__(self, u: np.ndarray, y: np.ndarray) -> None:
        self.u, self.y = u, y
        self.fitted_on, self.squares, self.held, self.scale = 0, np.inf, 1, np.inf
        self.halves: tuple[int, float, Cell, Cell] | None = None

    def error(self, scale: float) -> float:
        """Root mean square of what was missed, at most: with a smaller scale, large misses counted less."""
        return float(np.sqrt(self.squares / self.held)) * max(scale / self.scale, 1.0)

    def leaves(self, u: np.ndarray, at: np.ndarray) -> Iterator[tuple["Cell", np.ndarray]]:
        """The cells of the points u[at], each with its part of `at`."""
        if not len(at):
            return
        if self.halves is None:
            yield self, at
            return
        axis, place, below, above = self.halves
        first = u[at, axis] <= place
        yield from below.leaves(u, at[first])
        yield from above.leaves(u, at[~first])

    def add(self, u: np.ndarray, y: np.ndarray, scale: float) -> None:
        """More values; the polynomial is fitted anew where it is not known well, and the cell may be halved."""
        self.u, self.y = np.concatenate([self.u, u]), np.concatenate([self.y, y])
        if self.fitted_on and self.is_known(scale) and len(self.y) < 1.5 * self.fitted_on:
            return
        self.fit(scale)

    def is_known(self, scale: float) -> bool:
        """Whether values are missed by little."""
        return self.error(scale) <= _ENOUGH * scale

    def fit(self, scale: float) -> None:
        """A polynomial, and halves where it misses too much."""
        if len(self.y) < _FEWEST or not np.isfinite(self.y).all():
            self.squares, self.held = np.inf, 1
        else:
            self._fit_polynomial(scale)
        if len(self.y) < _FULL or self.is_known(scale):
            return
        axis = self._axis()
        place = float(np.median(self.u[:, axis]))
        first = self.u[:, axis] <= place
        if first.all():
            return
        below, above = (Cell(self.u[each], self.y[each]) for each in (first, ~first))
        self.halves = (axis, place, below, above)
        self.u, self.y = self.u[:0], self.y[:0]
        for one in (below, above):
            one.fit(scale)

    def _fit_polynomial(self, scale: float) -> None:
        u, y = self.u, self.y
        self.low, self.high = u.min(0), u.max(0)
        vary = self.high > self.low
        margin = _BEYOND * (self.high - self.low)
        self.inner_low, self.inner_high = self.low - margin, self.high + margin
        t = _scaled(u, self.low, self.high)
        self.mean = t.mean(0)
        self.radius = _FURTHER * float(((t - self.mean) ** 2).sum(1).max())
        train = np.arange(len(y)) % _HELD > 0
        dimensions = max(int(vary.sum()), 1)
        most = max(min(_COEFFICIENTS, int(train.sum()) // _EACH), 1)
        top = max(k for k in range(20) if comb(dimensions + k, dimensions) <= most)
        powers = _powers(tuple(vary.tolist()), top)
        columns = _products(t, powers)
        root, known = _factorised(columns[train], y[train])
        missed, ends = [], np.flatnonzero(np.diff(np.append(powers.sum(1), top + 1))) + 1
        for end in ends.tolist():
            off = np.abs(columns[~train, :end] @ _solved(root, known, end) - y[~train])
            missed.append(float((np.minimum(off, scale) ** 2).sum()))
        best = int(np.argmin(missed))
        end = int(ends[best])
        coefficients = _solved(*_factorised(columns[:, :end], y), end)
        half = (u.shape[1] + 1) // 2
        self.left, first = np.unique(powers[:end, :half], axis=0, return_inverse=True)
        self.right, second = np.unique(powers[:end, half:], axis=0, return_inverse=True)
        self.table = np.zeros((len(self.left), len(self.right)))
        self.table[first.ravel(), second.ravel()] = coefficients
        self.squares, self.held, self.fitted_on, self.scale = missed[best], int((~train).sum()), len(y), scale

    def _axis(self) -> int:
        """Along which halves are nearest to parabolas."""
        finite = np.isfinite(self.y)
        found = []
        for axis in range(self.u.shape[1]):
            first = self.u[:, axis] <= np.median(self.u[:, axis])
            if first.all():
                found.append(np.inf)
                continue
            rest = 0.0
            for side in (first & finite, ~first & finite):
                columns = _products(_scaled(self.u[side], *_ends(self.u[side])), _powers((True,) * self.u.shape[1], 2))
                if len(columns) > columns.shape[1]:
                    off = columns @ np.linalg.lstsq(columns, self.y[side], rcond=None)[0] - self.y[side]
                    rest += float((off**2).sum())
            found.append(rest)
        return int(np.argmin(found))

    def holds(self, u: np.ndarray) -> np.ndarray:
        """Which points its polynomial may answer."""
        t = _scaled(u, self.low, self.high)
        inside = ((u >= self.inner_low) & (u <= self.inner_high)).all(1)
        return inside & (((t - self.mean) ** 2).sum(1) <= self.radius)

    def __call__(self, u: np.ndarray) -> np.ndarray:
        """The values of its polynomial."""
        t, half = _scaled(u, self.low, self.high), self.left.shape[1]
        parts = (t[at : at + _ROWS] for at in range(0, len(t), _ROWS))
        found = [
            ((_products(part[:, :half], self.left) @ self.table) * _products(part[:, half:], self.right)).sum(1)
            for part in parts
        ]
        return np.concatenate([np.zeros(0), *found])


def _ends(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return (u.min(0), u.max(0)) if len(u) else (np.zeros(u.shape[1]), np.zeros(u.shape[1]))


def _scaled(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Numbers between −1 and 1; 0 for those that do not vary."""
    width = high - low
    return np.where(width > 0, (2 * x - low - high) / np.where(width > 0, width, 1.0), 0.0)


@cache
def _powers(vary: tuple[bool, ...], top: int) -> np.ndarray:
    """Degrees in each number, (p, d), up to this total degree, in the order of their sums."""
    ranges = [range(top + 1 if one else 1) for one in vary]
    found = np.array([each for each in product(*ranges) if sum(each) <= top])
    return found[np.argsort(found.sum(1), kind="stable")]


def _products(u: np.ndarray, powers: np.ndarray) -> np.ndarray:
    """Products of Chebyshev polynomials, (n, p)."""
    found = np.ones((len(powers), len(u)))
    for at, own in enumerate(powers.T):
        if own.any():
            found *= np.polynomial.chebyshev.chebvander(u[:, at], own.max()).T[own]
    return found.T


def _factorised(columns: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The root of the normal equations, and the right side solved by it: beginnings of both serve fewer columns."""
    from scipy.linalg import solve_triangular

    gram = columns.T @ columns
    gram[np.diag_indices_from(gram)] += _RIDGE * np.trace(gram)
    root = np.linalg.cholesky(gram)
    return root, solve_triangular(root, columns.T @ y, lower=True)


def _solved(root: np.ndarray, known: np.ndarray, end: int) -> np.ndarray:
    from scipy.linalg import solve_triangular

    return solve_triangular(root[:end, :end].T, known[:end], lower=False)
