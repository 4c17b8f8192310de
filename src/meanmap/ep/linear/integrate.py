"""Integration over components at a few nodes around their posterior mode, with the gradient of the evidence."""

from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from itertools import product
from typing import NamedTuple

import numpy as np

from meanmap.core.errors import ParameterError
from meanmap.ep.linear.components import Components
from meanmap.ep.linear.coordinates import Coordinates
from meanmap.ep.linear.family import Family, Observed
from meanmap.ep.linear.predictor import Predictor
from meanmap.ep.linear.sites import Settled, settle
from meanmap.ep.linear.surface import SplitNormal, Surface
from meanmap.ep.linear.weights import affordable, weighted

__all__ = ["Integrated", "Node", "Problem", "integrate"]

# Coordinates of a node are all integer or all half-integer multiples of a step, in standard deviations: in three and
# four dimensions this takes half as many nodes as a square lattice of the same error. For a Normal the trapezium rule
# underestimates variances by Σ k² exp(−k²/2) / d, a sum over the nearest points k of the dual lattice, which have
# length 2π / h for lines h apart: .005 in two dimensions and .011 in three for h = 1.5, and .009 in four for h = 1.45
# (.06 for 1.65: 90 % intervals covered 86 %). Nodes this far below the best one, in log probability, are dropped.
_APART = {1: 1.5, 2: 1.5 * 2**0.5, 3: 1.5 * 2**0.5, 4: 1.45 * 2**0.5}
_DEPTH = 7.0
# The smallest and largest maximum size of a lattice; in between, the limit is this many predictors over all nodes, more
# if sites are exact.
_NODES, _MET, _MET_EXACT = (600, 2000), 200_000, 3_000_000
# In more dimensions, a central composite design at this radius, times the root of the dimension, as in INLA; with
# corners up to this many dimensions, and beyond with points on axes only.
_RADIUS, _CORNERS = 1.1, 6
# A standard deviation may be 0 if its density is so little lower (as a log) when its log is so much less.
_LESS, _LOWER = 5.0, 2.0
# The longest step of sweeps, and a shorter one to use if these do not converge.
_LONG, _SHORT = 1.5, 0.5
# Half the step for differences of gradients, and the smallest and largest plausible curvature.
_DIFFERENCE, _FLAT, _SHARP = 0.05, 0.05, 1e8
# Where coordinates are compared, in standard deviations; logs that move by less are nearly linear; the largest weight
# of one end of an axis.
_FAR, _STRAIGHT, _VERY = 2.0, 0.5, 10.0
# Evaluations of the likelihood for a correction of the evidence at a node, the least and the most draws for it, and
# how far below the best nodes are corrected.
_EVALUATIONS, _DRAWS, _CORRECTED = 500_000, (4, 64), 8.0
# A few draws are enough if the standard error of the correction is below this.
_FEW, _SURE = 8, 0.01
# The total probability of nodes that may be left out.
_LEFT_OUT = 1e-4
# Steps to the mode, how often each is halved, the gain in log probability not worth another, and the largest log.
_STEPS, _HALVINGS, _GAIN, _BOUND = 60, 8, 1e-3, 12.0


@dataclass(frozen=True)
class Node:
    """Values of the components, and the effects given these."""

    phi: np.ndarray
    probability: float
    settled: Settled


@dataclass(frozen=True, eq=False)
class Integrated:
    """A fitted model: nodes over its components, with the likelihood and the responses used.

    `surface` is the log posterior between nodes, where these are a lattice.
    """

    nodes: tuple[Node, ...]
    components: Components
    family: Family
    observed: Observed
    surface: Surface | SplitNormal | None = None

    @cached_property
    def shares(self) -> np.ndarray:
        """The probabilities of nodes."""
        return np.array([node.probability for node in self.nodes])

    def parameters(self, node: Node) -> np.ndarray:
        """Parameters of the likelihood at a node."""
        return self.components.likelihood(node.phi)


@dataclass
class Problem:
    """A model whose evidence is a function of its components."""

    predictor: Predictor
    components: Components
    family: Family
    observed: Observed
    tolerance: float = 1e-4
    runs: int = 0
    sweeps: int = 0
    # If the lattice was truncated, the share of the probability in the last fifth of its nodes.
    late: float = 0.0
    # If there is a design in place of a lattice, the standard deviations of effects that may be 0.
    near_0: tuple[int, ...] = ()

    @property
    def most_nodes(self) -> int:
        """The largest number of nodes in a lattice."""
        return int(np.clip((_MET_EXACT if self.family.exact else _MET) // self.predictor.rows, *_NODES))

    def coordinates(self) -> Coordinates:
        """The chart in which all standard deviations are split."""
        sizes = tuple(block.size for block in self.predictor.blocks)
        return Coordinates.of(self.components, sizes, self.family.parameters)

    def run(self, phi: np.ndarray, start: Settled | None = None) -> Settled | None:
        """Effects given components, starting from the sites of another run; None if there is no joint belief.

        If long steps do not converge, shorter ones are tried.
        """
        prior, parameters = self.components.prior(phi), self.components.likelihood(phi)
        found = None
        for begin, longest in ((start, _LONG), (None, _LONG), (None, _SHORT))[start is None :]:
            try:
                found = settle(
                    self.predictor,
                    prior,
                    self.family,
                    self.observed,
                    parameters,
                    begin,
                    self.tolerance,
                    longest=longest,
                )
            except np.linalg.LinAlgError:
                continue
            self.runs, self.sweeps = self.runs + 1, self.sweeps + found.sweeps
            if found.converged:
                break
        return found

    def gradient(self, phi: np.ndarray, settled: Settled) -> np.ndarray:
        """The gradient of the log evidence of a converged run; sites contribute nothing, since the evidence is
        stationary in them.
        """
        by, prior = [], settled.joint.prior
        for at in range(len(self.components.fixed), len(prior.covariances)):
            covariance, precision, size = prior.covariances[at], prior.precisions[at], self.predictor.blocks[at].size
            by.append(precision @ (settled.joint.second_moment(at) - size * covariance) @ precision / 2)
        gradient = self.components.chain(phi, by)
        count = len(self.components.parameters)
        if count:
            gradient[len(phi) - count :] = self._by_parameters(phi, settled)
        return gradient

    def _by_parameters(self, phi: np.ndarray, settled: Settled) -> np.ndarray:
        parameters = self.components.likelihood(phi)
        if self.family.exact:
            # For the noise: slopes are quadratic in η, and Σ weight · variance of predictors is the trace of
            # Aᵀ W A P⁻¹, which is that of P P⁻¹ less that of Q P⁻¹.
            joint = settled.joint
            slopes = self.family.weighted_slopes(self.observed, settled.means, parameters)
            traces = [np.trace(q @ joint.total_covariance(at)) for at, q in enumerate(joint.prior.precisions)]
            return np.array([float(each.sum()) + self.predictor.total - sum(traces) for each in slopes])
        total, step = np.zeros(len(parameters)), 8192
        for at in range(0, self.predictor.rows, step):
            rows = slice(at, at + step)
            observed = self.observed.taken(rows)
            eta, log_mass = settled.taken(rows).log_tilt(self.family, observed, parameters)
            mass = np.exp(log_mass - log_mass.max(0))
            mass /= mass.sum(0)
            slopes = self.family.weighted_slopes(observed, eta, parameters)
            total += [float((mass * each).sum()) for each in slopes]
        return total

    def correction(self, phi: np.ndarray, settled: Settled | None) -> float:
        """The correction of the log evidence of a converged run by weighted draws."""
        if settled is None or self.family.exact:
            return 0.0
        draws, parameters = affordable(settled, _EVALUATIONS, *_DRAWS), self.components.likelihood(phi)
        found = weighted(settled, self.family, self.observed, parameters, min(draws, _FEW))
        if draws <= _FEW or (1 / found.effective - 1) / _FEW < _SURE**2:
            return found.gain
        return weighted(settled, self.family, self.observed, parameters, draws).gain

    def height(self, phi: np.ndarray, start: Settled | None = None) -> "Height":
        """Log evidence plus log prior, its gradient, and the run; −∞ if the run fails."""
        settled = self.run(phi, start)
        if settled is None:
            return Height(-np.inf, np.zeros(len(phi)), None)
        log_prior, slope = self.components.log_density(phi)
        return Height(settled.log_evidence + log_prior, self.gradient(phi, settled) + slope, settled)

    def height_at(self, chart: Coordinates, psi: np.ndarray, start: Settled | None = None) -> "Height":
        """Like `height`, as a function of the coordinates ψ of the chart."""
        height = self.height(chart.joined(psi), start)
        return height._replace(gradient=chart.slopes(psi).T @ height.gradient)


class Height(NamedTuple):
    """The log posterior of the components at one point."""

    value: float
    gradient: np.ndarray
    settled: Settled | None


def integrate(problem: Problem, begin: np.ndarray) -> tuple[Integrated, float, Coordinates]:
    """Nodes with their probabilities, the log evidence with components integrated out, and coordinates for them."""
    fitted = problem.components, problem.family, problem.observed
    start = problem.height(begin)
    if start.settled is None:
        raise ParameterError(
            "expectation propagation found no joint belief at the start; rescale numbers far from 1, or look for a "
            "column that separates the response."
        )
    if not len(begin):
        return Integrated((Node(begin, 1.0, start.settled),), *fitted), start.value, Coordinates((), ())
    mode, best = _mode(problem, begin, start)
    chart, axes = _straightest(problem, mode, best)
    middle = chart.split(mode)
    lay = _lattice if len(mode) in _APART else _design
    keys, laid = zip(*lay(problem, chart, middle, axes, best).items(), strict=True)
    places = [(chart.joined(psi), weight, height) for psi, weight, height in laid]
    heights = np.array([height.value + log_weight for _, log_weight, height in places])
    for at in np.flatnonzero(heights > heights.max() - _CORRECTED):
        heights[at] += problem.correction(places[at][0], places[at][2].settled)
    top = float(heights.max())
    shares = np.exp(heights - top)
    log_evidence = top + float(np.log(shares.sum()) + np.linalg.slogdet(axes)[1]) + chart.log_volume
    order = np.argsort(-shares, kind="stable")
    kept = order[: 1 + int(np.searchsorted(np.cumsum(shares[order]), (1 - _LEFT_OUT) * shares.sum()))]
    nodes = [(places[at][0], shares[at] / shares[kept].sum(), places[at][2].settled) for at in kept]
    found = tuple(Node(phi, float(share), settled) for phi, share, settled in nodes if settled is not None)
    if lay is _design:
        # After the middle come the two points on each axis.
        raw = heights - np.array([log_weight for _, log_weight, _ in places])
        drops = raw[0] - raw[1 : 1 + 2 * len(mode)].reshape(-1, 2)
        surface = SplitNormal(_RADIUS * np.sqrt(len(mode)), drops, middle, axes)
        problem.near_0 = _near_0(problem, mode, best, float(raw[0]))
    else:
        there, half = np.isfinite(heights), _APART[len(mode)] / 2 * axes
        slopes = np.array([height.gradient for *_, height in places]) @ half
        curvature = (_APART[len(mode)] / 2) ** 2
        steps = np.array(_steps(len(mode)))
        surface = Surface(np.array(keys)[there], steps, heights[there], slopes[there], curvature, middle, half)
    return Integrated(found, *fitted, surface), log_evidence, chart


def _near_0(problem: Problem, mode: np.ndarray, best: Settled | None, top: float) -> tuple[int, ...]:
    """Which standard deviations of effects may be 0: their logs have long tails, which a design does not reach."""
    found = []
    for _, width, start in problem.components.parts():
        for at in range(start, start + width):
            moved = mode - _LESS * (np.arange(len(mode)) == at)
            # The density of a log is that of the number times the number.
            if problem.height(moved, best).value + _LESS > top - _LOWER:
                found.append(at)
    places = [at for _, width, start in problem.components.parts() for at in range(start, start + width)]
    return tuple(places.index(at) for at in found)


def _mode(problem: Problem, begin: np.ndarray, start: Height) -> tuple[np.ndarray, Settled | None]:
    """Maximise by quasi-Newton steps (BFGS), none of which moves a log by more than 1."""
    phi, (height, gradient, settled) = begin, start
    inverse = np.eye(len(begin)) / max(1.0, float(np.abs(gradient).max()))
    for _ in range(_STEPS):
        step = inverse @ gradient
        if step @ gradient / 2 < _GAIN:
            break
        step /= max(1.0, float(np.abs(step).max()))
        step = np.clip(phi + step, -_BOUND, _BOUND) - phi
        for _ in range(_HALVINGS):
            new, slope, run = problem.height(phi + step, settled)
            if new > height:
                break
            step = step / 2
        else:
            break
        turned = gradient - slope
        along = float(step @ turned)
        if along > 0:
            beside = np.eye(len(phi)) - np.outer(step, turned) / along
            inverse = beside @ inverse @ beside.T + np.outer(step, step) / along
        phi, height, gradient, settled = phi + step, new, slope, run
    return phi, settled


def _straightest(problem: Problem, mode: np.ndarray, best: Settled | None) -> tuple[Coordinates, np.ndarray]:
    """Coordinates in which the posterior is nearest to Normal, and standard deviations along its axes as columns.

    The criterion is the log density two standard deviations from the mode on all axes, which should be 2 lower. If no
    log changes much over that distance, all coordinates are equivalent.
    """
    curvature = _curvature(problem, mode, best)
    plain, *others = problem.coordinates().candidates()
    axes, far = _axes(curvature), (-_FAR, _FAR)
    if not others or np.abs(_FAR * axes).max() < _STRAIGHT:
        return plain, axes

    def bent(chart: Coordinates, axes: np.ndarray) -> float:
        middle = chart.split(mode)
        ends = [problem.height_at(chart, middle + side * axis, best).value for axis in axes.T for side in far]
        return float(np.abs(np.array(ends) - top + _FAR**2 / 2).clip(max=_VERY).sum())

    top = problem.height(mode, best).value
    found = [(plain, axes)]
    for chart in others:
        slopes = chart.slopes(chart.split(mode))
        found.append((chart, _axes(slopes.T @ curvature @ slopes)))
    return min(found, key=lambda each: bent(*each))


def _curvature(problem: Problem, mode: np.ndarray, best: Settled | None) -> np.ndarray:
    """Minus the second derivatives at the mode, in φ."""
    size = len(mode)
    curvature = np.empty((size, size))
    for at in range(size):
        step = np.zeros(size)
        step[at] = _DIFFERENCE
        low, high = (problem.height(mode + side * step, best).gradient for side in (-1, 1))
        curvature[at] = (low - high) / (2 * _DIFFERENCE)
    return (curvature + curvature.T) / 2


def _axes(curvature: np.ndarray) -> np.ndarray:
    """Columns are standard deviations along the axes of curvature."""
    values, vectors = np.linalg.eigh(curvature)
    return vectors / np.sqrt(np.clip(values, _FLAT, _SHARP))


# A point, the log of the volume that it represents (in standard deviations), and the fit at the point.
Place = tuple[np.ndarray, float, Height]
Places = dict[tuple[int, ...], Place]


def _steps(size: int) -> list[tuple[int, ...]]:
    """From a node of the lattice to its neighbours, in half spacings."""
    steps = [tuple(2 * side * int(j == axis) for j in range(size)) for axis in range(size) for side in (-1, 1)]
    return steps + (list(product((-1, 1), repeat=size)) if size > 1 else [])


def _lattice(problem: Problem, chart: Coordinates, mode: np.ndarray, axes: np.ndarray, best: Settled | None) -> Places:
    """Points of a lattice with non-negligible evidence, from the centre outwards. A point is evaluated if value and
    gradient at a neighbour, with half the curvature at the mode, predict enough probability.
    """
    size = len(mode)
    apart = _APART[size]
    steps, volume = _steps(size), size * np.log(apart) - (np.log(2) if size > 1 else 0.0)
    moved = apart / 2 * np.array(steps, float)
    lost = (moved**2).sum(1) / 4
    found: Places = {}
    middle: tuple[int, ...] = (0,) * size
    waiting: list[tuple[float, tuple[int, ...], tuple[int, ...]]] = [(-np.inf, middle, middle)]
    top = -np.inf
    most = problem.most_nodes
    while waiting and len(found) < most:
        short, at, near = heappop(waiting)
        if at in found or -short < top - _DEPTH:
            continue
        psi = mode + apart / 2 * axes @ np.array(at, float)
        height = problem.height_at(chart, psi, found[near][2].settled if near in found else best)
        found[at] = psi, volume, height
        top = max(top, height.value)
        promised = (height.value + moved @ (axes.T @ height.gradient) - lost).tolist()
        for step, value in zip(steps, promised, strict=True):
            beside = tuple(a + b for a, b in zip(at, step, strict=True))
            if beside not in found and value >= top - _DEPTH:
                heappush(waiting, (-value, beside, at))
    if len(found) == most:
        heights = np.array([height.value for _, _, height in found.values()]) - top
        problem.late = float(np.exp(heights[int(0.8 * most) :]).sum() / np.exp(heights).sum())
    return found


def _design(problem: Problem, chart: Coordinates, mode: np.ndarray, axes: np.ndarray, best: Settled | None) -> Places:
    """The centre, points on axes and corners; exact for the mass and covariance of a Normal."""
    size = len(mode)
    radius = _RADIUS * np.sqrt(size)
    points = [sign * radius * np.eye(size)[at] for at in range(size) for sign in (-1.0, 1.0)]
    if size <= _CORNERS:
        points += [_RADIUS * np.array(corner) for corner in product((-1.0, 1.0), repeat=size)]
    log_all = size * np.log(2 * np.pi) / 2
    weights = [np.log(1 - _RADIUS**-2)] + [radius**2 / 2 - np.log(len(points)) - 2 * np.log(_RADIUS)] * len(points)
    found: Places = {}
    for at, (z, weight) in enumerate(zip((np.zeros(size), *points), weights, strict=True)):
        psi = mode + axes @ z
        found[(at,)] = psi, log_all + weight, problem.height_at(chart, psi, best)
    return found
