"""Where an unknown scale is probable: a grid about the peak for few rows, three nodes about it for many."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Scales", "at_three_nodes", "on_a_grid"]

# Scales so far below the best evidence are left out of a grid.
_DEPTH = 12.0

# The rule of Gauss and Hermite with three nodes is right up to the fifth power of how far the log scale is from the
# peak, times a Normal. A peak further from the middle node, in its deviations, or with a curvature that differs by more
# than this, is located again: with both at their limits the integral is off by 2e-4.
_NODES, _WEIGHTS = np.sqrt(3.0) * np.array([-1.0, 0.0, 1.0]), np.array([1.0, 4.0, 1.0]) / 6
_BESIDE, _BENT, _TIMES = 0.5, 0.2, 3
# How far the peak may lie from the three scales that locate it, in steps between them.
_FAR = 4.0

# From a log scale, and the posterior of the nearest one so far (None at first), to the posterior at this scale.
Fit = Callable[[float, Any], Any]


class Scales(NamedTuple):
    """Logs of scales, the posterior at each, and the log of how much of the axis each stands for."""

    logs: np.ndarray
    posteriors: list[Any]
    log_steps: np.ndarray

    def weighed(self) -> tuple[np.ndarray, float]:
        """How probable each scale is, and the log of the integral of the evidence over log scales."""
        total = np.array([post.log_evidence for post in self.posteriors]) + self.log_steps
        weights = np.exp(total - total.max())
        return weights / weights.sum(), float(np.log(weights.sum()) + total.max())


class _Runs:
    """Runs at log scales: each starts from the messages of the nearest one with proper beliefs."""

    def __init__(self, fit: Fit):
        self.fit, self.found = fit, {}

    def __call__(self, log_scale: float) -> float:
        """The log evidence; −∞ where there is none."""
        if log_scale not in self.found:
            good = [other for other in self.found if np.isfinite(self.found[other].log_evidence)]
            near = min(good, key=lambda other: abs(other - log_scale), default=None)
            self.found[log_scale] = self.fit(log_scale, None if near is None else self.found[near])
        evidence = self.found[log_scale].log_evidence
        return evidence if np.isfinite(evidence) else -np.inf

    def scales(self, logs: np.ndarray, log_steps: np.ndarray) -> Scales:
        return Scales(logs, [self.found[log_scale] for log_scale in logs.tolist()], log_steps)


def on_a_grid(fit: Fit, step: float, lowest: float, highest: float, start: float) -> Scales | None:
    """Multiples of a step around the best one whose evidence counts, by walking down on both sides of the peak.

    None if no scale had proper beliefs.
    """
    runs = _Runs(fit)

    def at(k: int) -> float:
        return runs(k * step)

    least, most = int(lowest / step), int(highest / step)
    peak, stride = round(start / step), round(1 / step)
    while stride:
        best = max((k for k in (peak, peak - stride, peak + stride) if least <= k <= most), key=at)
        peak, stride = (best, stride) if best != peak else (peak, stride // 2)
    if at(peak) == -np.inf:
        return None
    kept = [peak]
    for side in (-1, 1):
        k = peak + side
        while least <= k <= most and at(k) > at(peak) - _DEPTH:
            kept.append(k)
            k += side
    logs = np.sort(kept) * step
    return runs.scales(logs, np.full(len(logs), np.log(step)))


def at_three_nodes(fit: Fit, start: float, spread: float) -> Scales | None:
    """Six runs: a parabola through three evidences says where the peak is and how wide, and three nodes lie about it.

    None if the evidence is not that of a Normal about there, as it mostly is with many rows.

    Parameters
    ----------
    fit : callable
        A run at a log scale.
    start, spread : number
        Mean and standard deviation of the log scale according to part of the rows.
    """
    runs, deviation = _Runs(fit), None
    logs = start + spread * np.array([-1.0, 0.0, 1.0])
    for _ in range(_TIMES):
        middle, low, high = (runs(log_scale) for log_scale in logs[[1, 0, 2]].tolist())
        bend, tilt, step = 2 * middle - low - high, (high - low) / 2, logs[2] - logs[1]
        if not 0 < bend < np.inf or abs(tilt) > _FAR * bend:
            return None
        if deviation and abs(tilt) < _BESIDE * _NODES[2] and abs(bend - _NODES[2] ** 2) < _BENT:
            return runs.scales(logs, np.log(_WEIGHTS * np.sqrt(2 * np.pi) * deviation) + _NODES**2 / 2)
        deviation = step / np.sqrt(bend)
        logs = logs[1] + step * tilt / bend + deviation * _NODES
    return None
