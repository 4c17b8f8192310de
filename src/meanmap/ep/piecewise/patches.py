"""Functions of two numbers, stored as polynomials on rectangles that are cut only where more accuracy is needed.

The two-dimensional counterpart of `pieces`. A patch is a product of Chebyshev polynomials; the order, 4, 8 or 16, is
chosen for each axis, so that a function that is nearly linear along one axis costs little there. Every value computed
inside a patch, for whatever purpose, checks its polynomial. No point is evaluated twice.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from meanmap.ep.piecewise.chebyshev import NODES, OF_CHECK, OF_TAIL, ROUNDING, transform
from meanmap.ep.piecewise.noise import AT_LEAST, CLOSE, OF_NOISE, is_level, noise_of

__all__ = ["ALL", "Patches"]

_FINEST = len(NODES) - 1
_FIRST = 4

# If the error of a polynomial of this order along an axis is below this multiple of the range, it gets more nodes;
# otherwise the patch is cut.
_HOPEFUL = {4: 10.0, 8: 0.3}

# An axis whose tail is above this share of the other's gets more nodes together with the other.
_BOTH = 0.1

# Points on [−1, 1]² where a polynomial is checked if only its nodes have been evaluated.
_CHECKS = np.array([[0.3147, -0.5231], [-0.6177, 0.4229]])

# A patch is abandoned, and its function evaluated at every point, if _STUCK cuts in a row each left more than _SHARE of
# the error, or if the function has taken _MOST evaluations since it last got a new rectangle. Noise is looked for
# after _LOOK such cuts. After ALL evaluations the function is not called again, and the remaining error is reported,
# so that a run ends however rough a function is.
_STUCK, _SHARE, _MOST, _LOOK, ALL = 10, 0.8, 16_384, 2, 65_536
_SMALLEST, _NO_BETTER = 1e-12, 1e300

# If points occupy less than this share of a rectangle, and more accuracy is needed, the function gets a new rectangle
# there: beliefs have become narrower, and halving repeatedly would cost more.
_PART = 0.125

# Points closer to a side than this share of the width count as lying on it.
_NEAR = 1e-6

_FROM_VALUES = {order: transform(order) for order in (4, 8, 16)}


def _parts(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.real(z), np.imag(z)


@dataclass(eq=False)
class _Patch:
    """A rectangle in the domain of one function, with its polynomial, or with the two parts into which it was cut."""

    line: int
    low: np.ndarray
    high: np.ndarray
    order: list[int]
    stuck: int = 0
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
    cut: tuple[int, float, "_Patch", "_Patch"] | None = None

    def axis(self, k: int) -> np.ndarray:
        """The nodes along an axis; the ends and the middle are exact, because neighbours and halves share them."""
        low, high = self.low[k], self.high[k]
        nodes = (low + high) / 2 + (high - low) / 2 * NODES[:: _FINEST // self.order[k]]
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
        x, y = _parts(z)
        return (x >= self.low[0]) & (x <= self.high[0]) & (y >= self.low[1]) & (y <= self.high[1])

    def __call__(self, z: np.ndarray) -> np.ndarray:
        """The polynomial at points x + iy."""
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        rows, columns = (size - 1 for size in self.coefficients.shape)
        x, y = _parts(z)
        first = np.polynomial.chebyshev.chebvander((x - middle[0]) / half[0], rows)
        second = np.polynomial.chebyshev.chebvander((y - middle[1]) / half[1], columns)
        return ((first @ self.coefficients) * second).sum(1)

    def leaves(self, z: np.ndarray, at: np.ndarray) -> Iterator[tuple["_Patch", np.ndarray]]:
        """The patches that contain the points z[at], each with its part of `at`."""
        if not len(at):
            return
        if self.cut is None:
            yield self, at
            return
        axis, place, below, above = self.cut
        first = _parts(z[at])[axis] < place
        yield from below.leaves(z, at[first])
        yield from above.leaves(z, at[~first])

    def fit(self, z: np.ndarray, values: np.ndarray) -> None:
        """Fit the polynomial through the nodes; estimate its error from the last coefficients and all values inside.

        If a value is not finite, the patch is a constant: NaN if any value is NaN, the infinite value if all are equal,
        and otherwise the largest finite value with an infinite error.
        """
        mine = self.holds(z)
        z, values = z[mine], values[mine]
        finite = np.isfinite(values)
        if not finite.all():
            lost = np.isnan(values).any()
            alike = lost or (not finite.any() and (values == values[0]).all())
            most = np.nan if lost else values[0] if alike else values[finite].max(initial=-np.inf)
            self.coefficients, self.error = np.full((1, 1), most), 0.0 if alike else np.inf
            self.tails = np.zeros(2) if alike else np.full(2, np.inf)
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


class Patches:
    """Several functions of two numbers, numbered from 0; `evaluate(lines, z)` gives one value for each z."""

    def __init__(self, evaluate: Callable[[np.ndarray, np.ndarray], np.ndarray]):
        self._evaluate = evaluate
        # For each function, patches that cover smaller and smaller parts of the plane; the last one that contains a
        # point is used.
        self._roots: dict[int, list[_Patch]] = {}
        self._begun: dict[int, int] = {}  # evaluations before the last patch was added
        # For each function, the points x + iy at which it was called, sorted, and its values there.
        self._called: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.evaluations = np.zeros(0, int)
        self.noise = np.zeros(0)  # for each function, the largest noise measured so far

    def ask(self, line: np.ndarray, z: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values of these functions at points z (n, 2), and error estimates, after one improvement where `wanted`.

        Parameters
        ----------
        line : array (n,)
            The number of a function for each point.
        z : array (n, 2)
            Points.
        wanted : array (n,)
            Where errors are too large.
        """
        points = z[:, 0] + 1j * z[:, 1]
        order = np.argsort(line, kind="stable")
        known, begin = np.unique(line[order], return_index=True)
        rows = dict(zip(known.tolist(), np.split(order, begin[1:]), strict=True))
        more = max(0, int(known[-1]) + 1 - len(self.evaluations))
        self.evaluations = np.append(self.evaluations, np.zeros(more, int))
        self.noise = np.append(self.noise, np.zeros(more))
        self._fit([patch for one, at in rows.items() for patch in self._covering(one, z[at])])
        if wanted.any():
            self._narrow({one: points[at] for one, at in rows.items() if wanted[at].any()})
            found = (self._leaves(one, points, at[wanted[at]]) for one, at in rows.items())
            self._improve([patch for each in found for patch, _ in each])
        value, error = np.zeros(len(z)), np.zeros(len(z))
        lost = np.zeros(len(z), bool)
        for one, at in rows.items():
            for patch, mine in self._leaves(one, points, at):
                value[mine], error[mine] = patch(points[mine]), max(patch.error, AT_LEAST * self.noise[one])
                if self.evaluations[one] < ALL:
                    lost[mine] = wanted[mine] & patch.given_up
                else:
                    error[mine] = min(error[mine].max(), _NO_BETTER)
        if lost.any():
            exact = {one: at[lost[at]] for one, at in rows.items()}
            self._call({one: points[at] for one, at in exact.items()})
            for one, at in exact.items():
                value[at], error[at] = self._known(one, points[at]), 0.0
        return value, error

    def probe(self, line: int, low: np.ndarray, high: np.ndarray, middle: np.ndarray) -> None:
        """Evaluate one function in each cell (n, 2) without an evaluated point, and check polynomials there."""
        if not len(low):
            return
        known, _ = self._called[line]
        centre, chosen = middle[:, 0] + 1j * middle[:, 1], []
        for one, other, place in zip(low, high, centre, strict=True):
            x, y = _parts(np.append(known, chosen))
            seen = (x >= one[0]) & (x <= other[0]) & (y >= one[1]) & (y <= other[1])
            if not seen.any():
                chosen.append(place)
        if chosen:
            places = np.array(chosen)
            self._call({line: places})
            for patch, _ in self._leaves(line, places, np.arange(len(places))):
                patch.fit(*self._called[line])

    def _covering(self, line: int, z: np.ndarray) -> list[_Patch]:
        """New patches for points that have none: the first one, or others beside the area covered so far."""
        low, high = z.min(0), z.max(0)
        if line not in self._roots:
            width = np.maximum(high - low, 1e-3 * np.maximum(1.0, np.abs(low)))
            self._roots[line] = [_Patch(line, low, low + width, [_FIRST, _FIRST])]
            return self._roots[line]
        new = []
        for axis in (0, 1):
            for end in (0, 1):
                root = self._roots[line][0]
                beyond = high[axis] - root.high[axis] if end else root.low[axis] - low[axis]
                if beyond <= 0:
                    continue
                wide = max(beyond, (root.high[axis] - root.low[axis]) / 2)
                edge = root.high[axis] if end else root.low[axis]
                whole, more = (_Patch(line, root.low.copy(), root.high.copy(), [_FIRST, _FIRST]) for _ in range(2))
                (more.low if end else more.high)[axis] = edge
                for each in (whole, more):
                    (each.high if end else each.low)[axis] = edge + wide if end else edge - wide
                whole.cut = (axis, edge, root, more) if end else (axis, edge, more, root)
                self._roots[line][0] = whole
                new.append(more)
        return new

    def _leaves(self, line: int, z: np.ndarray, at: np.ndarray) -> Iterator[tuple[_Patch, np.ndarray]]:
        """The patches of a function that contain the points z[at], each with its part of `at`."""
        for root in self._roots[line][:0:-1]:
            inside = root.holds(z[at])
            yield from root.leaves(z, at[inside])
            at = at[~inside]
        yield from self._roots[line][0].leaves(z, at)

    def _narrow(self, asked: dict[int, np.ndarray]) -> None:
        """New patches for functions that need more accuracy at points that occupy a small part of the last patch."""
        new = []
        for line, z in asked.items():
            last, (x, y) = self._roots[line][-1], _parts(z)
            low, high = np.array([x.min(), y.min()]), np.array([x.max(), y.max()])
            if (high > low).all() and np.prod((high - low) / (last.high - last.low)) < _PART:
                new.append(_Patch(line, low, high, [_FIRST, _FIRST]))
                self._begun[line] = int(self.evaluations[line])
                self._roots[line].append(new[-1])
        self._fit(new)

    def _known(self, line: int, z: np.ndarray) -> np.ndarray:
        points, values = self._called[line]
        return values[np.searchsorted(points, z)]

    def _call(self, wanted: dict[int, np.ndarray]) -> None:
        """Evaluate functions at those of these points x + iy that are new, all in one call."""
        nothing = np.zeros(0, complex), np.zeros(0)
        new = {line: np.setdiff1d(z, self._called.get(line, nothing)[0]) for line, z in wanted.items()}
        lines = np.concatenate([np.full(len(z), line) for line, z in new.items()]).astype(int)
        if not len(lines):
            return
        z = np.concatenate(list(new.values()))
        found = np.asarray(self._evaluate(lines, np.stack(_parts(z), 1)), float)
        np.add.at(self.evaluations, lines, 1)
        for line in np.unique(lines).tolist():
            points, values = self._called.get(line, nothing)
            points, values = np.append(points, z[lines == line]), np.append(values, found[lines == line])
            order = np.argsort(points)
            self._called[line] = points[order], values[order]

    def _fit(self, patches: list[_Patch]) -> None:
        """Fit the polynomials of patches; evaluate at nodes, and at check points if no other values are known."""
        if not patches:
            return
        wanted: dict[int, list[np.ndarray]] = {}
        for patch in patches:
            nodes = patch.nodes().ravel()
            known = self._called.get(patch.line, (np.zeros(0, complex),))[0]
            others = np.setdiff1d(known[patch.holds(known)], nodes)
            checks = patch.place(_CHECKS[: max(0, len(_CHECKS) - len(others))])
            wanted.setdefault(patch.line, []).append(np.append(nodes, checks))
        self._call({line: np.concatenate(each) for line, each in wanted.items()})
        for patch in patches:
            patch.fit(*self._called[patch.line])
            patch.stuck = 0 if patch.error < _SHARE * patch.before else patch.stuck

    def _improve(self, patches: list[_Patch]) -> None:
        """Improve these patches by more nodes along an axis or by cutting; abandon those that do not improve."""
        self._measure([patch for patch in patches if not patch.measured and _may_be_noise(patch)])
        new = []
        for patch in patches:
            width = patch.high - patch.low
            only_noise = patch.error <= OF_NOISE * self.noise[patch.line]
            if patch.given_up or only_noise or patch.error <= 2 * ROUNDING * patch.size:
                continue
            tiny = (width <= _SMALLEST * np.maximum(np.abs(patch.low), np.abs(patch.high))).any()
            spent = self.evaluations[patch.line] - self._begun.get(patch.line, 0)
            if patch.stuck >= _STUCK or spent >= _MOST or tiny:
                patch.given_up = True
                continue
            new += _finer(patch) or _halves(patch)
        self._fit(new)

    def _measure(self, patches: list[_Patch]) -> None:
        """Measure noise near the middle of these patches."""
        places = [patch.place(np.stack([CLOSE, CLOSE], 1)) for patch in patches]
        wanted: dict[int, np.ndarray] = {}
        for patch, place in zip(patches, places, strict=True):
            wanted[patch.line] = np.append(wanted.get(patch.line, place[:0]), place)
        if patches:
            self._call(wanted)
        for patch, place in zip(patches, places, strict=True):
            patch.measured = True
            found = noise_of(self._known(patch.line, place)[None])[0]
            self.noise[patch.line] = max(self.noise[patch.line], found)


def _may_be_noise(patch: _Patch) -> bool:
    """Whether coefficients no longer decrease, or cutting has not helped."""
    if not np.isfinite(patch.error):
        return False
    worst = int(patch.tails.argmax())
    profile = np.abs(patch.coefficients).max(1 - worst)
    return patch.stuck >= _LOOK or (patch.order[worst] == _FINEST and bool(is_level(profile[None])[0]))


def _finer(patch: _Patch) -> list[_Patch]:
    """Add nodes along the axis with the larger tail, and along the other if it is as bad; empty if this cannot help."""
    worst = int(patch.tails.argmax())
    allowed = [OF_TAIL * patch.tails[k] <= _HOPEFUL.get(patch.order[k], 0.0) * patch.extent for k in (0, 1)]
    if patch.is_surprised or not (allowed[worst] and patch.order[worst] < _FINEST):
        return []
    for k in (0, 1):
        if k == worst or (allowed[k] and patch.order[k] < _FINEST and patch.tails[k] > _BOTH * patch.tails[worst]):
            patch.order[k] *= 2
    patch.measured = False
    return [patch]


def _halves(patch: _Patch) -> list[_Patch]:
    """Cut a patch in the middle, across the axis with the larger tail, or through the point of a surprising value.

    After two cuts that point is a corner, so that nodes are close to it.
    """
    axis = int(patch.tails.argmax()) if np.isfinite(patch.tails).all() else patch.stuck % 2
    place = (patch.low[axis] + patch.high[axis]) / 2
    if patch.is_surprised:
        surprise, margin = np.array([patch.worst.real, patch.worst.imag]), _NEAR * (patch.high - patch.low)
        inside = (surprise > patch.low + margin) & (surprise < patch.high - margin)
        if inside.any():
            axis = int((inside * (patch.high - patch.low)).argmax())
            place = surprise[axis]
    order = [_FIRST if k == axis else min(each, 8) for k, each in enumerate(patch.order)]
    below, above = (
        _Patch(patch.line, patch.low.copy(), patch.high.copy(), list(order), patch.stuck + 1, patch.error)
        for _ in range(2)
    )
    below.high[axis] = above.low[axis] = place
    patch.cut = axis, place, below, above
    return [below, above]
