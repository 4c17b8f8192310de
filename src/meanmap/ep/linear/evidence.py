"""The log evidence by weighted draws, with its standard error."""

from dataclasses import replace

import numpy as np
from scipy.special import ndtr

from meanmap.ep.linear.integrate import Integrated
from meanmap.ep.linear.mixtures import GRID
from meanmap.ep.linear.problem import Problem
from meanmap.ep.linear.shapes import marginals
from meanmap.ep.linear.weights import affordable, excess, pieces
from meanmap.ep.weighted_draws import Weighted

__all__ = ["correction"]

# Where the evidence that draws of the check give has a larger standard error than this, as many draws are made for it
# as these evaluations of the likelihood allow, between two bounds: from skewed marginals, then from the joint Gaussian.
_SURE, _DRAWS, _MORE = 0.01, (10_000_000, 40, 4000), (10_000_000, 40, 20_000)
# The least effective share of draws from skewed marginals.
_GOOD = 0.5
# The share of a Normal in a skewed marginal, whose own tail may be cut off; the density of a Normal at cells of `GRID`
# is relative to that at its peak.
_PLAIN, _SCALE = 0.05, np.sqrt(2 * np.pi) / (GRID[1] - GRID[0])


def correction(problem: Problem, model: Integrated, judged: Weighted) -> tuple[float, float]:
    """What the log evidence lacks given the first node, which represents the others, and its standard error.

    Without components that is what expectation propagation lacks; with them few draws corrected it at each node.
    """
    best, blocks = model.nodes[0], problem.predictor.blocks
    before = problem.correction(best.phi, best.settled) if problem.components.size else 0.0
    found = judged
    if found.gain_error >= _SURE and len(blocks) == 1 and blocks[0].size == 1:
        shaped = _shaped(problem, model, affordable(best.settled, *_DRAWS, problem.alike))
        # Wrong marginals give weights that differ much.
        found = shaped if shaped.effective > _GOOD else found
    if found.gain_error >= _SURE:
        count = affordable(best.settled, *_MORE, problem.alike)
        plain = problem.weighted(best.phi, best.settled, count, problem.alike) if count > len(judged.logs) else judged
        found = min(found, plain, key=lambda each: each.gain_error)
    return found.gain - before, found.gain_error


def _shaped(problem: Problem, model: Integrated, draws: int) -> Weighted:
    """Draws of effects that all rows share given the first node, from skewed marginals of independent coordinates.

    Few events leave long tails to one side, which draws from the Gaussian seldom reach. It is the predictors of single
    rows that are skewed, such as those of levels: each coordinate follows one, given those before.
    """
    node = model.nodes[0]
    settled, design = node.settled, problem.predictor.blocks[0].design
    rows, times = problem.alike or (np.arange(len(design)), np.ones(len(design)))
    known, root = settled.taken(rows), np.linalg.cholesky(settled.joint.within(0)[0])
    from scipy.linalg import qr

    heavy = np.sqrt(times * np.maximum(known.weights, 0))[:, None] * (design[rows] @ root)
    root = root @ qr(heavy.T, mode="economic", pivoting=True)[0]
    toward = np.linalg.inv(root)
    law = marginals(replace(model, nodes=(node,)), toward)
    half = np.random.default_rng(0).normal(size=(len(root), draws // 2))
    normal = np.concatenate([half, -half], axis=1)
    drawn, log_density = normal.copy(), -(normal**2) / 2
    for at, function in zip(law.bent, law.functions[:, 0], strict=True):
        below = (1 - _PLAIN) * function + _PLAIN * ndtr(GRID)
        below[[0, -1]] = 0.0, 1.0
        places = np.interp(ndtr(normal[at]), below, GRID)
        drawn[at] = law.means[at, 0] - toward[at] @ settled.joint.mean + law.sds[at, 0] * places
        cell = np.clip(np.searchsorted(GRID, places) - 1, 0, len(GRID) - 2)
        log_density[at] = np.log(np.diff(below)[cell] * _SCALE / law.sds[at, 0])
    logs, parameters = (-(drawn**2) / 2 - log_density).sum(0), problem.components.likelihood(node.phi)
    for piece in pieces(draws, len(rows)):
        eta = known.means[:, None] + (design[rows] @ root) @ drawn[:, piece]
        logs[piece] += times @ excess(settled, problem.family, problem.observed, parameters, eta, rows)
    return Weighted(np.zeros((draws, 0)), logs)
