"""Functions of two numbers, stored as polynomials on rectangles that are cut only where more accuracy is needed.

The two-dimensional counterpart of `pieces`. A patch is a product of Chebyshev polynomials; the order, 4, 8 or 16, is
chosen for each axis, so that a function that is nearly linear along one axis costs little there. Every value computed
inside a patch, for whatever purpose, checks its polynomial. No point is evaluated twice.
"""

from collections.abc import Callable, Iterator

import numpy as np

from meanmap.ep.piecewise.chebyshev import OF_TAIL, ROUNDING
from meanmap.ep.piecewise.noise import AT_LEAST, CLOSE, OF_NOISE, is_level, noise_of
from meanmap.ep.piecewise.patch import FINEST, Patch, parts_of

__all__ = ["ALL", "Patches"]

_FIRST = 4

# If the error of a polynomial of this order along an axis is below this multiple of the range, it gets more nodes;
# otherwise the patch is cut.
_HOPEFUL = {4: 10.0, 8: 0.3}

# An axis whose tail is above this share of the other's gets more nodes together with the other.
_BOTH = 0.1

# Points on [−1, 1]² where a polynomial is checked if only its nodes have been evaluated.
_CHECKS = np.array([[0.3147, -0.5231], [-0.6177, 0.4229]])

# Solvers change their steps with their arguments, so that their values jump by about their tolerance, along more lines
# than can be followed. If _SLOW cuts in a row have each left more than _SLOWLY of the error, where they would leave
# next to nothing of a smooth function's, and the error is below this share of the patch's largest value, it counts as
# such and remains part of the reported one; the second share applies after _LATER evaluations.
_SLOW, _SLOWLY, _TOLERANCE, _TOLERANCE_LATER, _LATER = 3, 0.1, 1e-5, 1e-3, 4096

# A patch is abandoned, and its function evaluated at every point, if _STUCK cuts in a row each left more than _SHARE of
# the error, or if the function has taken _MOST evaluations since it last got a new rectangle. Noise is looked for
# after _LOOK such cuts. After ALL evaluations the function is not called again, and the remaining error is reported,
# so that a run ends however rough a function is.
_STUCK, _SHARE, _MOST, _LOOK, ALL = 10, 0.8, 8192, 2, 65_536
_SMALLEST, _NO_BETTER = 1e-12, 1e300

# If points occupy less than this share of a rectangle, and more accuracy is needed, the function gets a new rectangle
# there: beliefs have become narrower, and halving repeatedly would cost more.
_PART = 0.125

# A rectangle added beside another is at least this share as wide.
_BESIDE = 0.125

# Points closer to a side than this share of the width count as lying on it.
_NEAR = 1e-6


class Patches:
    """Several functions of two numbers, numbered from 0; `evaluate(lines, z)` gives one value for each z."""

    def __init__(self, evaluate: Callable[[np.ndarray, np.ndarray], np.ndarray]):
        self._evaluate = evaluate
        # For each function, patches that cover smaller and smaller parts of the plane; the last one that contains a
        # point is used.
        self._roots: dict[int, list[Patch]] = {}
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
            x, y = parts_of(np.append(known, chosen))
            seen = (x >= one[0]) & (x <= other[0]) & (y >= one[1]) & (y <= other[1])
            if not seen.any():
                chosen.append(place)
        self._check(line, np.array(chosen, complex))

    def look(self, line: int, levels: np.ndarray) -> np.ndarray:
        """A point of each cell of the plane, with the value there, (cells, 3): the one nearest to its centre.

        Along each axis, `levels` (2, n) are centres of cells and the ends between them by turns. A function is called
        at the centre of a cell where it never was before.
        """
        centre = (levels[0, ::2, None] + 1j * levels[1, ::2]).ravel()
        count = levels.shape[1] // 2 + 1

        def cells(z: np.ndarray) -> np.ndarray:
            first, second = (np.searchsorted(ends[1::2], each) for ends, each in zip(levels, parts_of(z), strict=True))
            return count * first + second

        self._check(line, centre[np.setdiff1d(np.arange(len(centre)), cells(self._called[line][0]))])
        z, values = self._called[line]
        cell = cells(z)
        order = np.lexsort((np.abs(z - centre[cell]), cell))
        nearest = order[np.unique(cell[order], return_index=True)[1]]
        return np.stack([*parts_of(z[nearest]), values[nearest]], 1)

    def _check(self, line: int, places: np.ndarray) -> None:
        """Call a function at these points x + iy, and hold the polynomials that are there to it."""
        if not len(places):
            return
        self._call({line: places})
        for patch, mine in self._leaves(line, places, np.arange(len(places))):
            if patch.holds(places[mine]).any():
                patch.fit(*self._called[line])

    def _covering(self, line: int, z: np.ndarray) -> list[Patch]:
        """New patches for points that have none: the first one, or others beside the area covered so far."""
        low, high = z.min(0), z.max(0)
        if line not in self._roots:
            width = np.maximum(high - low, 1e-3 * np.maximum(1.0, np.abs(low)))
            self._roots[line] = [Patch(line, low, low + width, [_FIRST, _FIRST])]
            return self._roots[line]
        new = []
        for axis in (0, 1):
            for end in (0, 1):
                root = self._roots[line][0]
                beyond = high[axis] - root.high[axis] if end else root.low[axis] - low[axis]
                if beyond <= 0:
                    continue
                wide = max(beyond, _BESIDE * (root.high[axis] - root.low[axis]))
                edge = root.high[axis] if end else root.low[axis]
                whole, more = (Patch(line, root.low.copy(), root.high.copy(), [_FIRST, _FIRST]) for _ in range(2))
                (more.low if end else more.high)[axis] = edge
                for each in (whole, more):
                    (each.high if end else each.low)[axis] = edge + wide if end else edge - wide
                whole.cut = (axis, edge, root, more) if end else (axis, edge, more, root)
                self._roots[line][0] = whole
                new.append(more)
        return new

    def _leaves(self, line: int, z: np.ndarray, at: np.ndarray) -> Iterator[tuple[Patch, np.ndarray]]:
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
            last, (x, y) = self._roots[line][-1], parts_of(z)
            low, high = np.array([x.min(), y.min()]), np.array([x.max(), y.max()])
            if (high > low).all() and np.prod((high - low) / (last.high - last.low)) < _PART:
                new.append(Patch(line, low, high, [_FIRST, _FIRST]))
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
        found = np.asarray(self._evaluate(lines, np.stack(parts_of(z), 1)), float)
        np.add.at(self.evaluations, lines, 1)
        for line in np.unique(lines).tolist():
            points, values = self._called.get(line, nothing)
            points, values = np.append(points, z[lines == line]), np.append(values, found[lines == line])
            order = np.argsort(points)
            self._called[line] = points[order], values[order]

    def _fit(self, patches: list[Patch]) -> None:
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
            patch.slow = 0 if patch.error < _SLOWLY * patch.before else patch.slow

    def _improve(self, patches: list[Patch]) -> None:
        """Improve these patches by more nodes along an axis or by cutting; abandon those that do not improve."""
        self._measure([patch for patch in patches if not patch.measured and _may_be_noise(patch)])
        new = []
        for patch in patches:
            width = patch.high - patch.low
            only_noise = patch.error <= OF_NOISE * self.noise[patch.line]
            if patch.given_up or only_noise or patch.error <= 2 * ROUNDING * patch.size:
                continue
            spent = self.evaluations[patch.line] - self._begun.get(patch.line, 0)
            tolerance = _TOLERANCE_LATER if spent > _LATER else _TOLERANCE
            if patch.slow >= _SLOW and not _may_be_finer(patch) and patch.error <= tolerance * patch.size:
                continue
            tiny = (width <= _SMALLEST * np.maximum(np.abs(patch.low), np.abs(patch.high))).any()
            if patch.stuck >= _STUCK or spent >= _MOST or tiny:
                patch.given_up = True
                continue
            new += _finer(patch) or _halves(patch)
        self._fit(new)

    def _measure(self, patches: list[Patch]) -> None:
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


def _may_be_noise(patch: Patch) -> bool:
    """Whether coefficients no longer decrease, or cutting has not helped."""
    if not np.isfinite(patch.error):
        return False
    worst = int(patch.tails.argmax())
    profile = np.abs(patch.coefficients).max(1 - worst)
    return patch.stuck >= _LOOK or (patch.order[worst] == FINEST and bool(is_level(profile[None])[0]))


def _may_be_finer(patch: Patch) -> bool:
    """Whether more nodes along the axis with the larger tail may help."""
    worst = int(patch.tails.argmax())
    hopeful = OF_TAIL * patch.tails[worst] <= _HOPEFUL.get(patch.order[worst], 0.0) * patch.extent
    return hopeful and patch.order[worst] < FINEST and not patch.is_surprised


def _finer(patch: Patch) -> list[Patch]:
    """Add nodes along the axis with the larger tail, and along the other if it is as bad; empty if this cannot help."""
    if not _may_be_finer(patch):
        return []
    worst = int(patch.tails.argmax())
    for k in (0, 1):
        hopeful = OF_TAIL * patch.tails[k] <= _HOPEFUL.get(patch.order[k], 0.0) * patch.extent
        bad = hopeful and patch.order[k] < FINEST and patch.tails[k] > _BOTH * patch.tails[worst]
        if k == worst or bad:
            patch.order[k] *= 2
    patch.measured = False
    return [patch]


def _halves(patch: Patch) -> list[Patch]:
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
    slow = patch.slow + 1 if max(patch.order) > _FIRST else 0
    below, above = (
        Patch(patch.line, patch.low.copy(), patch.high.copy(), list(order), patch.stuck + 1, slow, patch.error)
        for _ in range(2)
    )
    below.high[axis] = above.low[axis] = place
    patch.cut = axis, place, below, above
    return [below, above]
