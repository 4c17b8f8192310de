"""The posterior mode of the components, and coordinates about it in which the posterior is nearly normal."""

import numpy as np

from meanmap.ep.linear.coordinates import Coordinates
from meanmap.ep.linear.problem import Height, Problem
from meanmap.ep.linear.sites import Settled

__all__ = ["mode_of", "straightest"]

# Half the step for differences of gradients, and the smallest and largest plausible curvature.
_DIFFERENCE, _FLAT, _SHARP = 0.05, 0.05, 1e8
# Where coordinates are compared, in standard deviations; logs that move by less are nearly linear; the largest weight
# of one end of an axis; and by how much coordinates may differ that are compared further out.
_FAR, _STRAIGHT, _VERY, _ALIKE = 2.0, 0.5, 10.0, 1.0
# Steps to the mode, how often each is halved, the gain in log probability not worth another, and the largest log.
_STEPS, _HALVINGS, _GAIN, _BOUND = 60, 8, 1e-3, 12.0
# How often steps begin again, and the gain that second derivatives promise elsewhere below which a point is the mode: a
# tenth of a standard deviation away.
_SEARCHES, _REACHED = 5, 5e-3


def mode_of(problem: Problem, begin: np.ndarray, start: Height) -> tuple[np.ndarray, Settled | None, np.ndarray]:
    """The mode, the run there, and minus the second derivatives.

    Quasi-Newton steps may end elsewhere: with many rows sigma needs far smaller steps than the standard deviation of
    few groups. Therefore second derivatives at the end decide whether it is the mode; if not, they begin the next ones.
    """
    inverse = np.eye(len(begin)) / max(1.0, float(np.abs(start.gradient).max()))
    phi, best = _climbed(problem, begin, start, inverse)
    curvature = _curvature(problem, phi, best.settled)
    for _ in range(_SEARCHES):
        axes, before = _axes(curvature), best.value
        if ((axes.T @ best.gradient) ** 2).sum() / 2 < _REACHED:
            break
        phi, best = _climbed(problem, phi, best, axes @ axes.T)
        if best.value < before + _GAIN:
            break
        curvature = _curvature(problem, phi, best.settled)
    return phi, best.settled, curvature


def _climbed(problem: Problem, phi: np.ndarray, start: Height, inverse: np.ndarray) -> tuple[np.ndarray, Height]:
    """Maximise by quasi-Newton steps (BFGS), none of which moves a log by more than 1."""
    best = start
    for _ in range(_STEPS):
        step = inverse @ best.gradient
        if step @ best.gradient / 2 < _GAIN:
            break
        step /= max(1.0, float(np.abs(step).max()))
        step = np.clip(phi + step, -_BOUND, _BOUND) - phi
        for _ in range(_HALVINGS):
            new = problem.height(phi + step, best.settled)
            if new.value > best.value:
                break
            step = step / 2
        else:
            break
        turned = best.gradient - new.gradient
        along = float(step @ turned)
        if along > 0:
            beside = np.eye(len(phi)) - np.outer(step, turned) / along
            inverse = beside @ inverse @ beside.T + np.outer(step, step) / along
        phi, best = phi + step, new
    return phi, best


def straightest(
    problem: Problem, mode: np.ndarray, best: Settled | None, curvature: np.ndarray
) -> tuple[Coordinates, np.ndarray]:
    """Coordinates in which the posterior is nearest to Normal, and standard deviations along its axes as columns.

    The criterion is the log density two standard deviations from the mode on all axes, which should be 2 lower, and for
    coordinates that are nearly equal by this, four from it, which should be 8 lower: a ridge may bend only there. If no
    log changes much over two standard deviations, all coordinates are equivalent.
    """
    plain, *others = problem.coordinates().candidates()
    axes = _axes(curvature)
    if not others or np.abs(_FAR * axes).max() < _STRAIGHT:
        return plain, axes
    found = [(plain, axes)]
    for chart in others:
        slopes = chart.slopes(chart.split(mode))
        found.append((chart, _axes(slopes.T @ curvature @ slopes)))
    for far in (_FAR, 2 * _FAR):
        phis = [
            chart.joined(chart.split(mode) + np.array([side * far * axis for axis in axes.T for side in (-1, 1)]))
            for chart, axes in found
        ]
        ends = np.concatenate([mode[None], *phis])
        top, *heights = [height.value for height in problem.heights(ends, [best] * len(ends))]
        bent = np.abs(np.array(heights).reshape(len(found), -1) - top + far**2 / 2).clip(max=_VERY).sum(1)
        found = [found[at] for at in np.argsort(bent, kind="stable") if bent[at] < bent.min() + _ALIKE]
        if len(found) == 1:
            break
    return found[0]


def _curvature(problem: Problem, mode: np.ndarray, best: Settled | None) -> np.ndarray:
    """Minus the second derivatives at the mode, in φ."""
    size = len(mode)
    moved = mode + _DIFFERENCE * np.concatenate([-np.eye(size), np.eye(size)])
    low, high = np.split(np.array([height.gradient for height in problem.heights(moved, [best] * (2 * size))]), 2)
    curvature = (low - high) / (2 * _DIFFERENCE)
    return (curvature + curvature.T) / 2


def _axes(curvature: np.ndarray) -> np.ndarray:
    """Columns are standard deviations along the axes of curvature."""
    values, vectors = np.linalg.eigh(curvature)
    return vectors / np.sqrt(np.clip(values, _FLAT, _SHARP))
