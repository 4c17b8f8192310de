"""A rectangle of a function of two numbers, with its Chebyshev polynomial, or the halves into which it was cut."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from meanmap.ep.piecewise.chebyshev import NODES, OF_CHECK, OF_TAIL, ROUNDING, transform

__all__ = ["FINEST", "Patch", "parts_of"]

# The highest order of a polynomial along an axis.
FINEST = len(NODES) - 1

# This many finite values show how high a function is next to values that are not finite.
_FEW_VALUES = 4

_FROM_VALUES = {order: transform(order) for order in (4, 8, 16)}


def parts_of(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x and y of points x + iy."""
    return np.real(z), np.imag(z)


@dataclass(eq=False)
class Patch:
    """A rectangle in the domain of one function, with its polynomial, or with the two parts into which it was cut."""

    line: int
    low: np.ndarray
    high: np.ndarray
    order: list[int]
    stuck: int = 0
    slow: int = 0
    before: float = np.inf  # error of the patch from which it was cut
    coefficients: np.ndarray = field(default_factory=lambda: np.zeros((1, 1)))
    tails: np.ndarray = field(default_factory=lambda: np.full(2, np.inf))
    error: float = np.inf
    size: float = 0.0
    extent: float = 0.0
    missed: float = 0.0  # largest error at a point that is not a node, and that point
    worst: complex = 0.0
    measured: bool = False
    given_up: bool = False
    cut: tuple[int, float, "Patch", "Patch"] | None = None

    def axis(self, k: int) -> np.ndarray:
        """The nodes along an axis; the ends and the middle are exact, because neighbours and halves share them."""
        low, high = self.low[k], self.high[k]
        nodes = (low + high) / 2 + (high - low) / 2 * NODES[:: FINEST // self.order[k]]
        nodes[[0, len(nodes) // 2, -1]] = low, (low + high) / 2, high
        return nodes

    def nodes(self) -> np.ndarray:
        """All nodes, as x + iy."""
        return self.axis(0)[:, None] + 1j * self.axis(1)

    def place(self, t: np.ndarray) -> np.ndarray:
        """Map points of [−1, 1]² into this rectangle, as x + iy."""
        z = (self.low + self.high) / 2 + (self.high - self.low) / 2 * t
        return z[:, 0] + 1j * z[:, 1]

    def holds(self, z: np.ndarray) -> np.ndarray:
        """Whether each point x + iy is inside."""
        x, y = parts_of(z)
        return (x >= self.low[0]) & (x <= self.high[0]) & (y >= self.low[1]) & (y <= self.high[1])

    def __call__(self, z: np.ndarray) -> np.ndarray:
        """The polynomial at points x + iy."""
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        rows, columns = (size - 1 for size in self.coefficients.shape)
        x, y = parts_of(z)
        first = np.polynomial.chebyshev.chebvander((x - middle[0]) / half[0], rows)
        second = np.polynomial.chebyshev.chebvander((y - middle[1]) / half[1], columns)
        return ((first @ self.coefficients) * second).sum(1)

    def leaves(self, z: np.ndarray, at: np.ndarray) -> Iterator[tuple["Patch", np.ndarray]]:
        """The patches that contain the points z[at], each with its part of `at`."""
        if not len(at):
            return
        if self.cut is None:
            yield self, at
            return
        axis, place, below, above = self.cut
        first = parts_of(z[at])[axis] < place
        yield from below.leaves(z, at[first])
        yield from above.leaves(z, at[~first])

    def fit(self, z: np.ndarray, values: np.ndarray) -> None:
        """Fit the polynomial through the nodes; estimate its error from the last coefficients and all values inside.

        If a value is not finite, the patch is a constant: the common value if all are equal, NaN if none is finite, and
        otherwise the largest finite value, with the range of finite values as its error (infinite if they are few).
        """
        mine = self.holds(z)
        z, values = z[mine], values[mine]
        finite = np.isfinite(values)
        if not finite.all():
            some, alike = values[finite], bool((values == values[0]).all())
            most = some.max() if len(some) else values[0] if alike else np.nan
            known = len(some) >= _FEW_VALUES and not (values == np.inf).any()
            error = 0.0 if not len(some) else max(float(np.ptp(some)), 1.0) if known else np.inf
            self.coefficients, self.error = np.full((1, 1), most), error
            self.tails = np.full(2, np.inf) if len(some) else np.zeros(2)
            return
        samples = values[np.searchsorted(z, self.nodes())]
        self.coefficients = _FROM_VALUES[self.order[0]] @ samples @ _FROM_VALUES[self.order[1]].T
        sizes = np.abs(self.coefficients)
        self.tails = np.array([sizes.sum(1 - k)[-min(3, order // 2) :].max() for k, order in enumerate(self.order)])
        self.size, self.extent = float(np.abs(values).max()), float(np.ptp(values))
        missed = np.abs(self(z) - values)
        self.missed, self.worst = max(float(missed.max()) - ROUNDING * self.size, 0.0), complex(z[missed.argmax()])
        self.error = max(OF_TAIL * self.tails.max(), OF_CHECK * self.missed, ROUNDING * self.size)

    @property
    def is_surprised(self) -> bool:
        """Whether some value deviates by more than the last coefficients suggest."""
        return np.isfinite(self.error) and OF_CHECK * self.missed > OF_TAIL * self.tails.max()
