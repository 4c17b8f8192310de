"""Two views of a scene: the likelihood of a cell's disparity given their similarity, and matching without learned
relations. Costs measure how different the views are around a cell at each of K disparities, over windows of several
sizes: (..., K, W).
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from meanmap.bp.edges.observations import Likelihood
from meanmap.core.types import Data, Points

__all__ = ["MatchingLikelihood", "semi_global", "window"]

# The penalty on squared weights stabilises those of nearly collinear features.
PENALTY = 1e-4
# Of a change of the disparity by one, and how much more any other change costs: chosen on training scenes.
STEPS, JUMPS = (0.0025, 0.005, 0.01, 0.02), (2, 4, 8, 12, 16)
DIRECTIONS = [(0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, -1), (1, -1), (-1, 1)]


@dataclass(frozen=True, eq=False)
class MatchingLikelihood(Likelihood):
    """The likelihood of the disparity given costs: a logistic choice among the K, mixed with a uniform share ε.

    p(d | costs) = (1 − ε) exp(s_d) / Σ exp(s) + ε / K, with s_d linear in how much larger costs at d are than the least
    ones, and in the roots of that. Where a surface has no texture there are many peaks, and a single guess with a
    spread would be wrong between them. Points are logarithms of disparities.
    """

    disparities: np.ndarray
    weights: np.ndarray
    share: float

    @classmethod
    def fit(cls, hidden: Data, observed: Data) -> "MatchingLikelihood":
        """By the probability of disparities exp(hidden), from costs (m, K W); K as in `scenes.DISPARITIES`."""
        from scipy.optimize import minimize
        from scipy.special import expit

        from meanmap_papers.loopy.scenes import DISPARITIES

        inputs = _inputs(np.asarray(observed), len(DISPARITIES))
        scale = inputs.std(axis=(0, 1))
        inputs = inputs / scale
        true = np.abs(np.exp(np.asarray(hidden)).reshape(-1, 1) - DISPARITIES).argmin(axis=1)
        rows = np.arange(len(true))

        def loss(of: np.ndarray) -> tuple[float, np.ndarray]:
            share, weights = expit(of[0]), of[1:]
            chance = _softmax(inputs @ weights)
            right = chance[rows, true]
            mixed = (1 - share) * right + share / len(DISPARITIES)
            slope = inputs[rows, true] - np.einsum("mk,mkf->mf", chance, inputs)
            by_weights = -((1 - share) * right / mixed) @ slope / len(true) + 2 * PENALTY * weights
            by_share = -np.mean((1 / len(DISPARITIES) - right) / mixed) * share * (1 - share)
            return float(-np.log(mixed).mean() + PENALTY * weights @ weights), np.append(by_share, by_weights)

        found = minimize(loss, np.append(-2.0, np.zeros(inputs.shape[-1])), jac=True, method="L-BFGS-B").x
        return cls(np.asarray(DISPARITIES, float), found[1:] / scale, float(expit(found[0])))

    @property
    def width(self) -> int:
        """Of the costs of a cell: K for each window."""
        return len(self.disparities) * len(self.weights) // 2

    def chances(self, observed: Data) -> np.ndarray:
        """p(d | costs), (N, K)."""
        chance = _softmax(_inputs(np.asarray(observed), len(self.disparities)) @ self.weights)
        return (1 - self.share) * chance + self.share / chance.shape[1]

    def at(self, observed: Data, points: Points) -> np.ndarray:
        """Between disparities linear."""
        chance = self.chances(observed)
        chance /= chance.max(axis=1, keepdims=True)
        wanted = np.exp(np.asarray(points)).ravel()
        place = np.interp(wanted, self.disparities, np.arange(len(self.disparities)))
        left = np.minimum(place.astype(int), len(self.disparities) - 2)
        return chance[:, left] * (1 - (place - left)) + chance[:, left + 1] * (place - left)

    def regression(self, observed: Data) -> np.ndarray:
        """The mean of log-disparity, (N, 1)."""
        return self.chances(observed) @ np.log(self.disparities)[:, None]


def _inputs(costs: np.ndarray, number: int) -> np.ndarray:
    """How much larger costs are than the least, and the roots of that, (m, K, 2 W)."""
    costs = costs.reshape(len(costs), number, -1)
    above = costs - costs.min(axis=1, keepdims=True)
    return np.concatenate([above, np.sqrt(above)], axis=2)


def _softmax(scores: np.ndarray) -> np.ndarray:
    chance = np.exp(scores - scores.max(axis=1, keepdims=True))
    return chance / chance.sum(axis=1, keepdims=True)


def window(costs: np.ndarray, disparities: np.ndarray) -> np.ndarray:
    """The disparity with the least cost (h, w, K), separately for each cell."""
    return disparities[costs.argmin(axis=-1)]


def semi_global(costs: np.ndarray, step: float, jump: float) -> np.ndarray:
    """Costs (h, w, K) summed along eight directions, as Hirschmueller (2008) does.

    Along each, L(p, d) = C(p, d) + min(L(q, d), L(q, d ± 1) + step, min L(q, ·) + jump) − min L(q, ·), with q the cell
    before p.
    """
    total = np.zeros_like(costs)
    height, width = costs.shape[:2]
    for down, right in DIRECTIONS:
        if down == 0:
            lines = [(slice(None), column) for column in range(width)[::right]]
            here = there = slice(None)
        else:
            lines = [(row,) for row in range(height)[::down]]
            here, there = (slice(max(side, 0), width + min(side, 0)) for side in (right, -right))
        along = costs.copy()
        for before, line in pairwise(lines):
            along[line][here] += _cheapest(along[before][there], step, jump)
        total += along
    return total


def _cheapest(came: np.ndarray, step: float, jump: float) -> np.ndarray:
    """The least cost of coming from the cells before, (n, K)."""
    least = came.min(axis=1, keepdims=True)
    found = np.minimum(came, least + jump)
    found[:, 1:] = np.minimum(found[:, 1:], came[:, :-1] + step)
    found[:, :-1] = np.minimum(found[:, :-1], came[:, 1:] + step)
    return found - least
