"""Functions of one number, stored as polynomials on intervals that are cut only where more accuracy is needed.

f(z) does not depend on messages: a value computed once serves all sweeps and all rows with the same arguments. A piece
is a Chebyshev polynomial of order 8 or 16 with an error estimate (as in Chebfun: Battles & Trefethen 2004). Jumps, and
boundaries of regions where f is not finite, are found by bisection and become ends of pieces. Where only the numerical
noise of the function is left (single precision, tolerances of solvers), cutting stops, and the error estimate includes
the noise.
"""

from collections.abc import Callable

import numpy as np

from meanmap.ep.piecewise.chebyshev import CHECK, FEW, NODES, ROUNDING, evaluated, fitted
from meanmap.ep.piecewise.noise import AT_LEAST, CLOSE, OF_NOISE, is_level, noise_of
from meanmap.ep.piecewise.probes import apart

__all__ = ["MARKS", "Pieces"]

# At most MARKS points show where a function has finer structure than a rule: in pieces with fewer than _FEW_POINTS.
MARKS, _FEW_POINTS = 128, 3

# Number of pieces at first over the range of the points: their nodes are as close as those of the first quadrature
# rule.
_FIRST = 4

# If the error of a coarse polynomial is below this share of its range, it gets the finer nodes; otherwise it is cut.
_HOPEFUL = 0.03

# A step between two nodes of more than _STEEP of the range of a piece may be a jump. It is one if each bisection leaves
# at least _LEFT of the step on one side of the middle; of a slope, each bisection leaves half.
_STEEP, _LEFT = 0.4, 0.7
_BISECTIONS = 36
_ENOUGH_ROUNDS = 3

# A piece is abandoned, and its function evaluated at every point, if _STUCK cuts in a row each left more than _SHARE of
# the error, or if the function has taken _MOST evaluations.
_STUCK, _SHARE, _MOST = 6, 0.8, 16_384
_SMALLEST = 1e-12

# Noise below this share of the size of the values is rounding in double precision.
_NOTICED = 1e-13


class Pieces:
    """Several functions of one number, numbered from 0; `evaluate(lines, z)` gives one value for each z."""

    def __init__(self, evaluate: Callable[[np.ndarray, np.ndarray], np.ndarray]):
        self._evaluate = evaluate
        self.line, self.low, self.high = np.zeros(0, int), np.zeros(0), np.zeros(0)
        self.samples, self.coefficients = np.zeros((0, len(NODES))), np.zeros((0, len(NODES)))
        self.check, self.error = np.zeros(0), np.zeros(0)
        self.fine, self.stuck = np.zeros(0, bool), np.zeros(0, int)
        self.evaluations = np.zeros(0, int)
        self.noise = np.zeros(0)  # for each line, the largest noise measured so far
        self._called: dict[tuple[int, float], float] = {}  # values at points of abandoned pieces
        self._probed = np.zeros(0, int), np.zeros(0)  # lines and points where polynomials were checked, sorted

    def ask(self, line: np.ndarray, z: np.ndarray, wanted: np.ndarray, span: float) -> tuple[np.ndarray, np.ndarray]:
        """Values at points z of these lines, and error estimates, after one improvement where `wanted`.

        Parameters
        ----------
        line, z, wanted : arrays (n,)
            For each value: the number of the function, the point, and whether the error there is too large.
        span : number
            The smallest range of the points of a row: the first pieces are a quarter of it.
        """
        self._know(int(line.max()) + 1)
        at, covered = self._find(line, z)
        if not covered.all():
            new = self.evaluations[line] == 0
            self._cover(line[~covered], z[~covered], span / _FIRST)
            at, _ = self._find(line, z)
            self._expect(line[new], at[new])
        lost = np.zeros(len(z), bool)
        if wanted.any():
            lost[wanted] = self._improve(at[wanted])
            at, _ = self._find(line, z)
        value = self._value(at, z)
        error = np.maximum(self.error[at], AT_LEAST * self.noise[line])
        if lost.any():
            value[lost], error[lost] = self._at(line[lost], z[lost]), 0.0
        return value, error

    def probe(self, line: np.ndarray, ends: np.ndarray, middle: np.ndarray) -> None:
        """Evaluate functions in each cell that has no evaluated point, and cut the pieces that are wrong there.

        The point of the largest error becomes an end of both new pieces, so that its value is kept and nodes are close.
        """
        unseen = np.flatnonzero(~self._seen(line, ends))
        chosen = unseen[apart(line[unseen], ends[:, unseen], middle[unseen])]
        if not len(chosen):
            return
        line, z = line[chosen], middle[chosen]
        found, (at, _) = self._values(line, z), self._find(line, z)
        joined = np.append(self._probed[0], line).astype(int), np.append(self._probed[1], z)
        order = np.lexsort((joined[1], joined[0]))
        self._probed = joined[0][order], joined[1][order]
        missed = _step(self._value(at, z), found)
        self._measure(np.unique(at[missed > np.maximum(self.error[at], AT_LEAST * self.noise[line])]))
        wrong = np.flatnonzero(missed > np.maximum(self.error[at], AT_LEAST * self.noise[line]))
        wrong = wrong[(z[wrong] > self.low[at[wrong]]) & (z[wrong] < self.high[at[wrong]])]
        wrong = wrong[np.argsort(-missed[wrong], kind="stable")]
        at, first = np.unique(at[wrong], return_index=True)
        if len(at):
            place, value = z[wrong[first]], found[wrong[first]]
            self._split(at, place, value, value, np.full(len(at), np.inf))

    def narrow(self, line: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Points with values, (lines, MARKS, 2), in the narrowest pieces that contain fewer than three of `points`.

        They show a quadrature rule what it may have missed between its nodes; the rest is NaN.
        """
        found = np.full((len(line), MARKS, 2), np.nan)
        first, last = np.searchsorted(self.line, line), np.searchsorted(self.line, line, side="right")
        for row, (begin, end) in enumerate(zip(first, last, strict=True)):
            before, after = (np.searchsorted(points[row], each[begin:end]) for each in (self.low, self.high))
            at = begin + np.flatnonzero(after - before < _FEW_POINTS)
            at = at[np.argsort(self.high[at] - self.low[at], kind="stable")[: MARKS // 2]]
            z = np.append(self.low[at], (self.low[at] + self.high[at]) / 2)
            found[row, : len(z)] = np.stack([z, self._value(np.tile(at, 2), z)], 1)
        return found

    def _expect(self, line: np.ndarray, at: np.ndarray) -> None:
        """Measure noise in one piece of the first line, and if there is some, in all pieces of new lines."""
        if not len(line):
            return
        if (line == 0).any():
            self._measure(at[line == 0][(line == 0).sum() // 2, None])
        size = np.nanmax(np.abs(self.samples[self.line == 0]), initial=0.0)
        if self.noise[0] > _NOTICED * size:
            self._measure(np.unique(at))

    def _seen(self, line: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Whether each of these intervals contains an evaluated point: a node, or an earlier probe."""
        (at, _), (last, inside) = (self._find(line, end) for end in ends)
        half = np.maximum((self.high[at] - self.low[at]) / 2, 1e-300)
        low, high = np.clip((ends - (self.low[at] + self.high[at]) / 2) / half, -1, 1)
        step = np.where(self.fine[at], 1, 2) * np.pi / (len(NODES) - 1)
        node = np.ceil(np.arccos(-low) / step) * step <= np.arccos(-high)
        before, found = _at_or_before(*self._probed, line, ends[1])
        found[found] = self._probed[1][before[found]] >= ends[0][found]
        return (at != last) | ~inside | node | ((low <= CHECK) & (high >= CHECK)) | found

    def _know(self, count: int) -> None:
        more = max(0, count - len(self.evaluations))
        self.evaluations = np.append(self.evaluations, np.zeros(more, int))
        self.noise = np.append(self.noise, np.zeros(more))

    def _value(self, at: np.ndarray, z: np.ndarray) -> np.ndarray:
        """The values of these pieces at points."""
        middle, half = (self.low[at] + self.high[at]) / 2, (self.high[at] - self.low[at]) / 2
        return evaluated(self.coefficients[at], (z - middle) / np.where(half > 0, half, 1))

    def _at(self, line: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Exact values at points; each point is evaluated once."""
        points = list(zip(line.tolist(), z.tolist(), strict=True))
        new = list(dict.fromkeys(point for point in points if point not in self._called))
        if new:
            lines, places = (np.array(each) for each in zip(*new, strict=True))
            self._called |= dict(zip(new, self._values(lines, places).tolist(), strict=True))
        return np.array([self._called[point] for point in points])

    def _values(self, line: np.ndarray, z: np.ndarray) -> np.ndarray:
        if not len(z):
            return np.zeros(0)
        np.add.at(self.evaluations, line, 1)
        return self._evaluate(line, z)

    def _find(self, line: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The piece that begins at or before each point, and whether it contains the point."""
        at, inside = _at_or_before(self.line, self.low, line, z)
        inside[inside] = z[inside] <= self.high[at[inside]]
        return at, inside

    def _cover(self, line: np.ndarray, z: np.ndarray, width: float) -> None:
        """Add pieces of this width, or narrower ones between others, for points that have none."""
        lines, lows, highs = [], [], []
        order = np.argsort(line, kind="stable")
        known, begin = np.unique(line[order], return_index=True)
        for one, mine in zip(known, map(np.unique, np.split(z[order], begin[1:])), strict=True):
            own = slice(*np.searchsorted(self.line, [one, one + 1]))
            below, above = np.append(-np.inf, self.high[own]), np.append(self.low[own], np.inf)
            gaps = np.searchsorted(self.low[own], mine, side="right")
            for gap in np.unique(gaps):
                points, step = mine[gaps == gap], width if width > 0 else max(1e-3, 1e-3 * abs(mine[0]))
                start = below[gap] if points[0] - below[gap] <= step else points[0]
                number = np.unique(np.floor((points - start) / step * (1 - 1e-12)).astype(int))
                left = start + number * step
                # Neighbours share their ends, so that rounding leaves no point out.
                beside = np.append(np.diff(number) == 1, False)
                right = np.minimum(np.where(beside, np.append(left[1:], 0.0), left + step), above[gap])
                right[-1] = min(max(right[-1], points[-1]), above[gap])
                lines.append(np.full(len(left), one))
                lows.append(left)
                highs.append(right)
        line, low, high = map(np.concatenate, (lines, lows, highs))
        known = np.full((len(low), len(NODES)), np.nan)
        self._add(
            line, low, high, known, np.zeros_like(known, bool), np.full(len(low), np.inf), np.zeros(len(low), int)
        )

    def _add(
        self,
        line: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        samples: np.ndarray,
        known: np.ndarray,
        before: np.ndarray,
        stuck: np.ndarray,
    ) -> None:
        """Add coarse pieces, cut from others with errors `before`; some of their samples may be known."""
        nodes, check = _nodes(low, high), (low + high) / 2 + (high - low) / 2 * CHECK
        shared = np.append((line[1:] == line[:-1]) & (low[1:] == high[:-1]) & ~known[1:, 0], False)
        missing = FEW & ~known
        missing[1:, 0] &= ~shared[:-1]
        rows = np.nonzero(missing)[0]
        found = self._values(np.append(line[rows], line), np.append(nodes[missing], check))
        samples[missing] = found[: len(rows)]
        samples[1:, 0] = np.where(shared[:-1], samples[:-1, -1], samples[1:, 0])
        fine = np.zeros(len(low), bool)
        coefficients, error = _fit(samples, found[len(rows) :], fine)
        stuck = np.where(error < _SHARE * before, 0, stuck + 1)
        self._join(line, low, high, samples, coefficients, found[len(rows) :], error, fine, stuck)

    def _join(self, *new: np.ndarray) -> None:
        names = ("line", "low", "high", "samples", "coefficients", "check", "error", "fine", "stuck")
        joined = [np.concatenate([getattr(self, name), each]) for name, each in zip(names, new, strict=True)]
        order = np.lexsort((joined[1], joined[0]))
        for name, each in zip(names, joined, strict=True):
            setattr(self, name, each[order])

    def _drop(self, gone: np.ndarray) -> None:
        kept = np.ones(len(self.low), bool)
        kept[gone] = False
        for name in ("line", "low", "high", "samples", "coefficients", "check", "error", "fine", "stuck"):
            setattr(self, name, getattr(self, name)[kept])

    def _improve(self, at: np.ndarray) -> np.ndarray:
        """Improve these pieces by finer nodes or by cutting. Returns those that are abandoned."""
        chosen, back = np.unique(at, return_inverse=True)
        samples, fine = self.samples[chosen], self.fine[chosen]
        size, extent = _reach(samples, fine)
        width, ends = self.high[chosen] - self.low[chosen], np.maximum(abs(self.low[chosen]), abs(self.high[chosen]))
        given_up = (
            (self.stuck[chosen] >= _STUCK)
            | (self.evaluations[self.line[chosen]] >= _MOST)
            | (width <= _SMALLEST * ends)
        )
        best = (self.error[chosen] <= 2 * ROUNDING * size) | self._only_noise(chosen)
        edge = _edges(samples, fine, extent)
        hopeful = ~fine & (self.error[chosen] <= _HOPEFUL * extent) & (edge < 0)
        self._refine(chosen[hopeful & ~given_up & ~best])
        self._cut(chosen[~hopeful & ~given_up & ~best], edge[~hopeful & ~given_up & ~best])
        return (given_up & ~best)[back]

    def _only_noise(self, at: np.ndarray) -> np.ndarray:
        """Whether the remaining error of each piece is noise, which every error estimate of its line includes."""
        found = np.zeros(len(at), bool)
        level = np.flatnonzero(self.fine[at] & is_level(self.coefficients[at]))
        unknown = level[self.error[at[level]] > OF_NOISE * self.noise[self.line[at[level]]]]
        self._measure(at[unknown])
        found[level] = self.error[at[level]] <= OF_NOISE * self.noise[self.line[at[level]]]
        return found

    def _measure(self, at: np.ndarray) -> None:
        """Measure noise near the middle of these pieces."""
        if not len(at):
            return
        half = (self.high[at] - self.low[at]) / 2
        z = ((self.low[at] + self.high[at]) / 2)[:, None] + half[:, None] * CLOSE
        values = self._values(np.repeat(self.line[at], z.shape[1]), z.ravel()).reshape(z.shape)
        np.maximum.at(self.noise, self.line[at], noise_of(values))

    def _refine(self, at: np.ndarray) -> None:
        """Evaluate the nodes that the coarse polynomial leaves out."""
        if not len(at):
            return
        nodes = _nodes(self.low[at], self.high[at])[:, ~FEW]
        samples, fine = self.samples[at], np.ones(len(at), bool)
        samples[:, ~FEW] = self._values(np.repeat(self.line[at], nodes.shape[1]), nodes.ravel()).reshape(nodes.shape)
        self.coefficients[at], self.error[at] = _fit(samples, self.check[at], fine)
        self.samples[at], self.fine[at] = samples, fine

    def _cut(self, at: np.ndarray, edge: np.ndarray) -> None:
        """Cut each piece at a jump, or where values cease to be finite, or else in half."""
        if not len(at):
            return
        middle, samples = (self.low[at] + self.high[at]) / 2, self.samples[at]
        left, right = samples[:, len(NODES) // 2].copy(), samples[:, len(NODES) // 2].copy()
        sharp = np.flatnonzero(edge >= 0)
        if len(sharp):
            place, one, other, found = self._bisected(at[sharp], edge[sharp])
            sharp = sharp[found]
            middle[sharp], left[sharp], right[sharp] = place[found], one[found], other[found]
        self._split(at, middle, left, right, self.error[at])

    def _split(
        self, at: np.ndarray, middle: np.ndarray, left: np.ndarray, right: np.ndarray, before: np.ndarray
    ) -> None:
        """Replace each piece by two that meet in `middle`, given the values on either side, and the errors so far."""
        line, low, high, samples = self.line[at], self.low[at], self.high[at], self.samples[at]
        stuck = self.stuck[at]
        known = np.zeros(samples.shape, bool)
        known[:, [0, -1]] = True
        first, second = samples.copy(), samples.copy()
        first[:, -1], second[:, 0] = left, right
        self._drop(at)
        lines, lows, highs = (np.concatenate(pair) for pair in ((line, line), (low, middle), (middle, high)))
        values = np.concatenate((first, second))
        self._add(lines, lows, highs, values, np.tile(known, (2, 1)), np.tile(before, 2), np.tile(stuck, 2))

    def _bisected(self, at: np.ndarray, edge: np.ndarray) -> tuple[np.ndarray, ...]:
        """Where functions jump before these nodes, their values on either side, and whether such a point was found.

        Steep slopes are followed too: a piece that ends beside one has its nodes close together there.
        """
        rows, start = np.arange(len(at)), np.where(self.fine[at], edge - 1, edge - 2)
        nodes, samples, line = _nodes(self.low[at], self.high[at]), self.samples[at], self.line[at]
        a, b, before, behind = nodes[rows, start], nodes[rows, edge], samples[rows, start], samples[rows, edge]
        rounds, jumps = np.zeros(len(at), int), np.ones(len(at), bool)
        for _ in range(_BISECTIONS):
            on = np.flatnonzero(jumps)
            if not len(on):
                break
            middle = (a[on] + b[on]) / 2
            value = self._values(line[on], middle)
            one, other = _step(before[on], value), _step(value, behind[on])
            jumps[on] = np.maximum(one, other) >= _LEFT * _step(before[on], behind[on])
            here = one >= other
            b[on], behind[on] = np.where(here, middle, b[on]), np.where(here, value, behind[on])
            a[on], before[on] = np.where(here, a[on], middle), np.where(here, before[on], value)
            rounds[on] += 1
        place = np.where(jumps, (a + b) / 2, a)
        inside = (place > self.low[at]) & (place < self.high[at])
        return place, before, np.where(jumps, behind, before), inside & (jumps | (rounds > _ENOUGH_ROUNDS))


def _at_or_before(
    lines: np.ndarray, places: np.ndarray, line: np.ndarray, z: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The last of the sorted places at or before each point of its line, and whether there is one; by bisection."""
    low = np.searchsorted(lines, line)
    first, high = low, np.searchsorted(lines, line, side="right")
    while (low < high).any():
        middle = (low + high) // 2
        before = (low < high) & (places[np.minimum(middle, len(places) - 1)] <= z)
        low, high = np.where(before, middle + 1, low), np.where(before, high, np.minimum(middle, high))
    return low - 1, low > first


def _nodes(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The nodes of pieces; ends are exact."""
    nodes = (low + high)[:, None] / 2 + (high - low)[:, None] / 2 * NODES
    nodes[:, 0], nodes[:, -1] = low, high
    return nodes


def _fit(samples: np.ndarray, check: np.ndarray, fine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Polynomials and error estimates; if samples are not finite, a constant, in doubt unless all samples agree."""
    used = np.column_stack([np.where(fine[:, None] | FEW, samples, samples[:, :1]), check])
    whole = np.asarray(np.isfinite(used).all(1))
    with np.errstate(invalid="ignore"):
        alike = np.asarray(~np.isfinite(used).any(1) & (_step(used[:, :1], used) == 0).all(1))
    coefficients, error = fitted(np.where(whole[:, None], samples, 0.0), np.where(whole, check, 0.0), fine)
    largest = np.where(np.isfinite(used), used, -np.inf).max(1)
    coefficients[~whole, 0] = np.where(alike, used[:, 0], largest)[~whole]
    return coefficients, np.where(whole, error, np.where(alike, 0.0, np.inf))


def _step(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The distance between values; NaN and infinities are infinitely far from all other values."""
    with np.errstate(invalid="ignore"):
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        return np.where(same, 0.0, np.nan_to_num(np.abs(one - other), nan=np.inf, posinf=np.inf))


def _edges(samples: np.ndarray, fine: np.ndarray, extent: np.ndarray) -> np.ndarray:
    """The node at the end of the largest step of each piece if that step may be a jump; otherwise −1."""
    filled = samples.copy()
    filled[:, ~FEW] = np.where(fine[:, None], samples[:, ~FEW], samples[:, FEW][:, :-1])
    steps = _step(filled[:, :-1], filled[:, 1:])
    return np.where(steps.max(1) > _STEEP * extent, steps.argmax(1) + 1, -1)


def _reach(samples: np.ndarray, fine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest absolute value of the finite samples of each piece, and their range."""
    numbers = np.isfinite(samples) & (fine[:, None] | FEW)
    least, most = np.where(numbers, samples, np.inf).min(1), np.where(numbers, samples, -np.inf).max(1)
    some = numbers.any(1)
    return np.where(some, np.maximum(abs(least), abs(most)), 0.0), np.where(some, most - least, 0.0)
