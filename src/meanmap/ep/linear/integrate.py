"""Integration over components at a few nodes around their posterior mode, with the gradient of the evidence."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from time import perf_counter

import numpy as np

from meanmap.core.errors import ParameterError
from meanmap.core.language import counted, in_digits
from meanmap.core.notes import warn_of
from meanmap.core.progress import waiting
from meanmap.ep.linear.components import Components
from meanmap.ep.linear.coordinates import Coordinates
from meanmap.ep.linear.effect_draws import EffectDraws, rough
from meanmap.ep.linear.family import Family, Observed
from meanmap.ep.linear.fewer import fewer
from meanmap.ep.linear.joint import Joint
from meanmap.ep.linear.lattice import APART, Place, lattice, steps_of
from meanmap.ep.linear.mode import mode_of, straightest
from meanmap.ep.linear.problem import Height, Problem
from meanmap.ep.linear.sampled import RADIUS, affordable_draws, design, evenly_chosen, sampled
from meanmap.ep.linear.sites import Settled
from meanmap.ep.linear.surface import Drawn, SplitNormal, Surface
from meanmap.ep.linear.weights import Kinds

__all__ = ["UNSETTLED", "Integrated", "Node", "integrate"]

# If nodes where sweeps did not converge have more of the probability than this, intervals do not hold.
UNSETTLED = 0.03

# A standard deviation may be 0 if its density is so little lower (as a log) when its log is so much less.
_LESS, _LOWER = 5.0, 2.0
# How far below the best, in log probability, nodes are corrected, and how many of weighted draws.
_CORRECTED, _MEASURED = 8.0, 150
# The usual number of nodes of a lattice with one to four components, and the seconds above which a fit is long.
_USUAL, _LONG = {1: 30, 2: 40, 3: 80, 4: 200}, 60.0
# Interpolation that moves more of the probability than this is replaced by this many draws, if they take at most this
# many numbers and are worth this many equal ones; the proposal has these degrees of freedom, and is wider by a factor.
_MOVES, _REDRAWN, _CHEAP, _ENOUGH, _DEGREES, _WIDER = 0.1, 20_000, 20_000_000, 4000, 4, 1.3
# How many nodes are corrected first, and corrections that differ by less are the same.
_COMPARED, _SAME = 8, 0.02
# A lattice is laid more closely, with twice as many nodes, if a node has this many times the probability of the middle
# one of a Normal; at most so often.
_COARSE, _FINER = 1.2, 4
# The total probability of nodes that may be left out; the most and the least nodes that stay of weighted draws, and the
# most predictors over all of these.
_LEFT_OUT, _NODES, _FEWEST, _MET = 1e-4, 1000, 40, 20_000_000


@dataclass(frozen=True)
class Node:
    """Values of the components, and the effects given these."""

    phi: np.ndarray
    probability: float
    settled: Settled


@dataclass(frozen=True, eq=False)
class Integrated:
    """A fitted model: nodes over its components, with the likelihood and the responses used.

    `surface` is the log posterior between nodes, where these are a lattice; `alike` are rows that are equal.
    """

    nodes: tuple[Node, ...]
    components: Components
    family: Family
    observed: Observed
    surface: Surface | SplitNormal | Drawn | None = None
    alike: Kinds | None = None

    @cached_property
    def shares(self) -> np.ndarray:
        """The probabilities of nodes."""
        return np.array([node.probability for node in self.nodes])

    @cached_property
    def unsettled(self) -> float:
        """The probability of nodes where sweeps did not converge."""
        return float(sum(node.probability for node in self.nodes if not node.settled.converged))

    def nearest(self, chosen: Sequence[int]) -> np.ndarray:
        """Which of some nodes is the nearest to each, in standard deviations of the components."""
        phis, shares = np.stack([node.phi for node in self.nodes]), self.shares / self.shares.sum()
        away = phis - shares @ phis
        away /= np.sqrt(np.maximum(shares @ away**2, np.finfo(float).tiny))
        return np.array(chosen)[((away[:, None] - away[list(chosen)]) ** 2).sum(2).argmin(1)]

    @cached_property
    def effect_draws(self) -> EffectDraws | None:
        """Weighted draws of all effects, where they are worth enough."""
        return None if self.family.exact else EffectDraws.of(self)

    @cached_property
    def rough_rows(self) -> np.ndarray:
        """Which fitted rows have predictors that are skewed by much by the effects that all rows share."""
        first = self.nodes[0].settled
        return rough(self, first.joint.predictor.matrix, first.variances)

    @cached_property
    def lacks_draws(self) -> bool:
        """Whether there are such rows, but no draws."""
        if self.family.exact or self.nodes[0].settled.joint.first.size == 1 or self.effect_draws is not None:
            return False
        return bool(self.rough_rows.any())

    def parameters(self, node: Node) -> np.ndarray:
        """Parameters of the likelihood at a node."""
        return self.components.likelihood(node.phi)


def integrate(problem: Problem, begin: np.ndarray) -> tuple[Integrated, float, Coordinates]:
    """Nodes with their probabilities, the log evidence with components integrated out, and coordinates for them."""
    with waiting("integrating components of variance"):
        return _integrated(problem, begin)


def _integrated(problem: Problem, begin: np.ndarray) -> tuple[Integrated, float, Coordinates]:
    fitted, began = (problem.components, problem.family, problem.observed), perf_counter()
    start = problem.height(begin)
    if start.settled is None:
        raise ParameterError(
            "expectation propagation found no joint belief at the start; rescale numbers far from 1, or look for a "
            "column that separates the response."
        )
    if not len(begin):
        only = Node(begin, 1.0, start.settled)
        return Integrated((only,), *fitted, alike=problem.alike), start.value, Coordinates((), ())
    mode, best, curvature = mode_of(problem, begin, start)
    chart, axes = straightest(problem, mode, best, curvature)
    middle, drawn = chart.split(mode), False
    if len(mode) in APART:
        _foretell(problem, len(mode), (perf_counter() - began) / max(problem.runs, 1))
        laid = lattice(problem, chart, middle, axes, best)
        for _ in range(_FINER):
            if not _are_coarse(laid):
                break
            axes = axes * 2 ** (-1 / len(mode))
            laid = lattice(problem, chart, middle, axes, best)
    else:
        laid, drawn = design(problem, chart, middle, axes, best), affordable_draws(problem)
        values = np.array([height.value for *_, height in laid.values()])
        if drawn:
            laid = sampled(problem, chart, _split(values, middle, axes), laid)
        else:
            problem.near_0 = _near_0(problem, mode, best, values[0])
    phis = chart.joined(np.array([psi for psi, _, _ in laid.values()]))
    places = [(phi, weight, height) for phi, (_, weight, height) in zip(phis, laid.values(), strict=True)]
    plain = np.array([height.value + log_weight for _, log_weight, height in places])
    heights = plain.copy()
    if drawn and not problem.family.exact:
        heights += _corrections(problem, phis, [place[2] for place in places], heights)
    else:
        heights += _corrected(problem, places, heights)
    problem.moved = _moved(phis[:, problem.components.logs_of_sds], plain, heights)
    top = float(heights.max())
    shares = np.exp(heights - top)
    log_evidence = top + float(np.log(shares.sum()) + np.linalg.slogdet(axes)[1]) + chart.log_volume
    kept, masses = _drawn(problem, shares, [height.value for *_, height in places]) if drawn else _kept(shares)
    problem.nodes = len(kept)
    if len(mode) in APART:
        joints = partial(_joints, problem, phis[kept], [places[at][2] for at in kept])
        there, masses = fewer(problem, phis[kept], masses, joints)
        kept = kept[there]
    settled_at = problem.runs_at(phis[kept], [places[at][2] for at in kept])
    runs = list(zip(phis[kept], masses, settled_at, strict=True))
    found = tuple(Node(phi, float(mass), settled) for phi, mass, settled in runs if settled is not None)
    if len(mode) in APART:
        surface = _surface(laid, heights, middle, axes)
        problem.elsewhere = surface.elsewhere
        if (redrawn := _redrawn(problem, chart, surface)) is not None:
            surface, problem.elsewhere = redrawn, 0.0
    elif drawn:
        surface = Drawn(np.array([psi for psi, _, _ in laid.values()]), shares / shares.sum())
    else:
        surface = _split(heights - np.array([log_weight for _, log_weight, _ in places]), middle, axes)
    return Integrated(found, *fitted, surface, problem.alike), log_evidence, chart


def _foretell(problem: Problem, size: int, each: float) -> None:
    """Say beforehand how long a fit will take, if that is long."""
    seconds = each * _USUAL[size] / problem.together
    if seconds > _LONG:
        minutes = in_digits(seconds / 60, 1)
        note = (
            f"mm.fit will take about {minutes} minute{'' if minutes == '1' else 's'}: {problem.predictor.rows} rows, "
            f"{problem.predictor.total} effects, about {_USUAL[size]} nodes of {counted(size, 'component')} of variance"
            f"{problem.components.fewer('. Fewer components take less')}"
        )
        warn_of([note])


def _joints(problem: Problem, phis: np.ndarray, heights: list[Height]) -> Iterator[Joint]:
    """The belief about effects at each node."""
    return (settled.joint for settled in problem.runs_at(phis, heights) if settled is not None)


def _are_coarse(laid: dict[tuple[int, ...], Place]) -> bool:
    """Whether one node has so much of the probability that the others say little about how the effects vary with the
    components: more than the middle one of a Normal by a fifth.
    """
    logs = np.array([height.value + weight for _, weight, height in laid.values()])
    shares = np.exp(logs - logs.max())
    weight = next(iter(laid.values()))[1]
    usual = np.exp(weight) / (2 * np.pi) ** (len(next(iter(laid))) / 2)
    return bool(shares.max() / shares.sum() > _COARSE * usual)


def _corrections(problem: Problem, phis: np.ndarray, runs: list[Height], heights: np.ndarray) -> np.ndarray:
    """Of all draws, by a regression on components and their squares from some of them, within the range of these."""
    chosen = np.unique(evenly_chosen(np.exp(heights - heights.max()), _MEASURED))
    found = np.array([problem.correction(phis[at], runs[at].settled) for at in chosen])
    standard = (phis - phis[chosen].mean(0)) / np.maximum(phis[chosen].std(0), 1e-9)
    columns = np.concatenate([np.ones((len(phis), 1)), standard, standard**2], axis=1)
    solved = np.linalg.lstsq(columns[chosen], found)[0]
    return np.clip(columns @ solved, found.min(), found.max())


def _corrected(problem: Problem, places: list[tuple[np.ndarray, float, Height]], heights: np.ndarray) -> np.ndarray:
    """Corrections of the nodes that are high enough. Where groups were integrated little is left: if some nodes, from
    the highest to the lowest, have the same correction, all others of these have it.
    """
    found, left = np.zeros(len(heights)), np.flatnonzero(heights > heights.max() - _CORRECTED)
    integrated = [at for at in left if (run := places[at][2].settled) is not None and run.shared is not None]
    order = np.array(sorted(integrated, key=lambda at: -heights[at]), int)
    first = order[np.unique(np.linspace(0, len(order) - 1, _COMPARED).astype(int))] if len(order) else order
    for at in first:
        found[at] = problem.correction(places[at][0], places[at][2].settled)
    left = np.setdiff1d(left, first)
    if len(order) and np.ptp(found[first]) < _SAME:
        found[order] = found[first].mean()
        left = np.setdiff1d(left, order)
    for at in left:
        found[at] = problem.correction(places[at][0], places[at][2].settled)
    return found


def _moved(values: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """By how many standard deviations corrected heights of nodes move the mean of each column."""
    (first, spread), (second, new) = (_moments(values, heights) for heights in (before, after))
    return (second - first) / np.maximum(np.sqrt((spread + new) / 2), np.finfo(float).tiny)


def _moments(values: np.ndarray, heights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each column, from log probabilities of its rows."""
    shares = np.exp(heights - heights.max())
    shares /= shares.sum()
    mean = shares @ values
    return mean, shares @ (values - mean) ** 2


def _kept(shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points with nearly all of the probability, the most likely first, and their probabilities."""
    order = np.argsort(-shares, kind="stable")
    kept = order[: 1 + int(np.searchsorted(np.cumsum(shares[order]), (1 - _LEFT_OUT) * shares.sum()))]
    return kept, shares[kept] / shares[kept].sum()


def _drawn(problem: Problem, shares: np.ndarray, values: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Some of the weighted draws, those of the greatest density first, and their probabilities.

    Draws that are worth many equal ones are needed for components; fewer are enough for effects.
    """
    count = int(np.clip(_MET // problem.predictor.rows, _FEWEST, _NODES))
    kept, times = np.unique(evenly_chosen(shares, count), return_counts=True)
    order = np.argsort(-np.array(values)[kept], kind="stable")
    return kept[order], times[order] / count


def _redrawn(problem: Problem, chart: Coordinates, surface: Surface) -> Drawn | None:
    """Weighted draws in place of interpolation between nodes, where this moves much probability and draws are cheap.

    The proposal is a Student distribution with the moments of the interpolation, somewhat wider.
    """
    if problem.elsewhere < _MOVES or problem.stack is None or problem.size * _REDRAWN > _CHEAP:
        return None
    points, shares = surface.points()
    middle, size = shares @ points, points.shape[1]
    away, generator = points - middle, np.random.default_rng(0)
    root = _WIDER * np.linalg.cholesky((away * shares[:, None]).T @ away)
    standard = generator.normal(size=(_REDRAWN, size)) / np.sqrt(
        generator.chisquare(_DEGREES, (_REDRAWN, 1)) / _DEGREES
    )
    psis = middle + standard @ root.T
    logs = problem.values(chart.joined(psis))
    logs += (_DEGREES + size) / 2 * np.log1p((standard**2).sum(1) / _DEGREES)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    return Drawn(psis, weights) if 1 / (weights @ weights) > _ENOUGH else None


def _surface(laid: dict[tuple[int, ...], Place], heights: np.ndarray, middle: np.ndarray, axes: np.ndarray) -> Surface:
    """Of a lattice."""
    size = len(middle)
    there, half = np.isfinite(heights), APART[size] / 2 * axes
    slopes = np.array([height.gradient for *_, height in laid.values()]) @ half
    curvature = (APART[size] / 2) ** 2
    return Surface(
        np.array(list(laid))[there], np.array(steps_of(size)), heights[there], slopes[there], curvature, middle, half
    )


def _split(values: np.ndarray, middle: np.ndarray, axes: np.ndarray) -> SplitNormal:
    """Of the heights of a design: after the middle come the two points on each axis."""
    size = len(middle)
    return SplitNormal(RADIUS * np.sqrt(size), values[0] - values[1 : 1 + 2 * size].reshape(-1, 2), middle, axes)


def _near_0(problem: Problem, mode: np.ndarray, best: Settled | None, top: float) -> tuple[int, ...]:
    """Which standard deviations of effects may be 0: their logs have long tails, which a design does not reach."""
    places = problem.components.logs_of_sds
    moved = mode - _LESS * np.eye(len(mode))[places]
    heights = problem.heights(moved, [best] * len(places))
    # The density of a log is that of the number times the number.
    return tuple(at for at, height in enumerate(heights) if height.value + _LESS > top - _LOWER)
