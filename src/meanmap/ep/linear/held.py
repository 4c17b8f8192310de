"""The distribution of a combination of shared effects, from runs in which the combination is held at a value."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from meanmap.ep.linear.block import Block
from meanmap.ep.linear.family import Observed
from meanmap.ep.linear.integrate import Integrated
from meanmap.ep.linear.mixtures import GRID
from meanmap.ep.linear.predictor import Predictor, Prior
from meanmap.ep.linear.sites import Settled, settle
from meanmap.ep.linear.weights import affordable, weighted

__all__ = ["Held"]

# The spacing of values in standard deviations; halved, down to a minimum, if the log density changes by more than this
# from one value to the next; how far below its peak the log density is followed; and how many values are enough.
_APART, _NARROW, _STEEP, _DEPTH, _LEAST = 1.0, 0.1, 2.0, 10.0, 5
_TOLERANCE = 1e-3
# Evaluations of the likelihood spent on correcting the evidence of a run, and the smallest and largest number of draws.
_EVALUATIONS, _DRAWS = 100_000, (32, 200)
# A log density that is less than this far below its peak at the ends was not covered completely.
_WHOLE = 7.0
# Weights with a smaller effective share of draws are not used, unless the log density is this far below its peak.
_LITTLE, _NEAR = 0.2, 3.0


@dataclass(frozen=True)
class Held:
    """A model with its components at the first node, and a combination of the effects that all rows share.

    The density of the combination at a value is the prior density there times the evidence of the model in which it
    has that value. This evidence is that of a run, corrected by weighted draws.
    """

    model: Integrated
    combination: np.ndarray

    def log_ratio(self, mean: float, sd: float) -> np.ndarray | None:
        """Log ratio of the density and the Normal with this mean and sd, at `GRID`; None if runs do not converge."""
        heights, shares = dict[float, float](), dict[float, float]()
        for side in (1, -1):
            # The run without a held value counts as one held at 0.
            start, before, step, here = self.model.nodes[0].settled, 0.0, _APART, 0.0
            while here <= GRID[-1]:
                value = mean + side * here * sd
                run = self._run(value, start, before)
                if run is None or not run.converged:
                    return None
                (height, shares[side * here]), near = self._height(value, run), heights.get(side * (here - step))
                heights[side * here] = height
                if near is not None and abs(height - near) > _STEEP and step > _NARROW:
                    here, step = here - step / 2, step / 2
                    continue
                if height < max(heights.values()) - _DEPTH:
                    break
                start, before, here = run, value, here + step
        top, places = max(heights.values()), np.array(sorted(heights))
        if max(heights[places[0]], heights[places[-1]]) > top - _WHOLE or len(places) < _LEAST:
            return None
        if min(shares[each] for each in heights if heights[each] > top - _NEAR) < _LITTLE:
            return None
        from scipy.interpolate import CubicSpline

        logs = np.array([heights[each] for each in places])
        found = CubicSpline(places, logs)(np.clip(GRID, places[0], places[-1]))
        # Outside the values the log density is extrapolated with the slope at the ends, as a spline might rise again.
        slopes = np.diff(logs)[[0, -1]] / np.diff(places)[[0, -1]]
        found += np.maximum(slopes[0], 0) * np.minimum(GRID - places[0], 0)
        found += np.minimum(slopes[1], 0) * np.maximum(GRID - places[-1], 0)
        peak = int(found.argmax())
        found[peak:] = np.minimum.accumulate(found[peak:])
        found[: peak + 1] = np.minimum.accumulate(found[peak::-1])[::-1]
        return found + GRID**2 / 2

    @cached_property
    def _pivot(self) -> int:
        """The effect that is eliminated to keep the combination at its value."""
        covariance = self.model.components.fixed[0][1]
        return int(np.argmax(np.abs(self.combination) * np.sqrt(np.diag(covariance))))

    @cached_property
    def _column(self) -> np.ndarray:
        """The contribution of a value to each predictor."""
        return (
            self.model.nodes[0].settled.joint.predictor.blocks[0].design[:, self._pivot] / self.combination[self._pivot]
        )

    @cached_property
    def _predictor(self) -> Predictor:
        """The predictor of the other effects; the eliminated one keeps its position with coefficient 0."""
        block, *groups = self.model.nodes[0].settled.joint.predictor.blocks
        design = block.design - np.outer(self._column, self.combination)
        design[:, self._pivot] = 0.0
        return Predictor((Block.fixed(design), *groups))

    @cached_property
    def _spread(self) -> tuple[np.ndarray, float]:
        """Prior covariances of the effects with the combination, and its prior variance."""
        toward = self.model.components.fixed[0][1] @ self.combination
        return toward, float(self.combination @ toward)

    def _run(self, value: float, start: Settled, before: float) -> Settled | None:
        prior, (mean, covariance) = self.model.components.prior(self.model.nodes[0].phi), self.model.components.fixed[0]
        toward, variance = self._spread
        mean = mean + toward * (value - self.combination @ mean) / variance
        covariance = covariance - np.outer(toward, toward) / variance
        mean[self._pivot] = covariance[self._pivot] = covariance[:, self._pivot] = 0.0
        covariance[self._pivot, self._pivot] = 1.0
        prior = Prior((mean, *prior.means[1:]), (covariance, *prior.covariances[1:]))
        # Sites refer to predictors without the contribution of the held value.
        start = replace(start, shifts=start.shifts - start.weights * self._column * (value - before))
        try:
            return settle(
                self._predictor, prior, self.model.family, self._observed(value), self._parameters, start, _TOLERANCE
            )
        except np.linalg.LinAlgError:
            return None

    def _height(self, value: float, run: Settled) -> tuple[float, float]:
        """The log density, and the effective share of the weighted draws behind its correction."""
        (mean, _), (_, variance) = self.model.components.fixed[0], self._spread
        draws = affordable(run, _EVALUATIONS, *_DRAWS)
        found = weighted(run, self.model.family, self._observed(value), self._parameters, draws)
        height = run.log_evidence + found.gain - (value - float(self.combination @ mean)) ** 2 / variance / 2
        return height, found.effective

    def _observed(self, value: float) -> Observed:
        return replace(self.model.observed, offset=self.model.observed.offset + self._column * value)

    @property
    def _parameters(self) -> np.ndarray:
        return self.model.parameters(self.model.nodes[0])
