"""Importance weights of draws from the joint Gaussian: how far the exact posterior is from it."""

import numpy as np

from meanmap.ep.linear.likelihoods import Family, Observed
from meanmap.ep.linear.sites import Settled

__all__ = ["affordable", "integrates_groups", "log_weights", "pareto_shape"]

# Nodes of Gauss and Hermite for the effects of a group, and up to how many effects groups are integrated.
_NODES, _WIDEST = 7, 2
# Evaluations of the likelihood at most, and those held at once.
_MOST, _PIECE = 100_000_000, 4_000_000


def affordable(settled: Settled, draws: int) -> bool:
    """Whether weights of so many draws are worth their time."""
    return len(settled.means) * draws * _inner(settled) <= _MOST


def integrates_groups(settled: Settled) -> bool:
    """Whether only effects that all rows share are drawn, and those of groups are integrated given them."""
    blocks, first = settled.joint.predictor.blocks, settled.joint.order[0]
    others_shared = all(blocks[at].size == 1 for at in settled.joint.order[1:])
    return others_shared and 0 < blocks[first].width <= _WIDEST and blocks[first].size > 1


def _inner(settled: Settled) -> int:
    width = settled.joint.predictor.blocks[settled.joint.order[0]].width
    return _NODES**width if integrates_groups(settled) else 1


def log_weights(
    settled: Settled,
    family: Family,
    observed: Observed,
    parameters: np.ndarray,
    draws: int,
    generator: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Draws (draws, p) of the effects that all rows share, and log of exact posterior over belief, up to a constant.

    With one factor of one or two effects a group, these are integrated given the draw by Gauss and Hermite's rule: what
    is weighed is the marginal law of shared effects, whose dimension is small however many groups there are. Otherwise
    all effects are drawn.
    """
    joint = settled.joint
    predictor, order = joint.predictor, joint.order
    shared = [at for at, block in enumerate(predictor.blocks) if block.size == 1]
    thetas = joint.draws(draws, generator)
    splits = [predictor.split(theta) for theta in thetas]
    fixed = np.stack([np.concatenate([parts[at].ravel() for at in shared] or [np.zeros(0)]) for parts in splits])
    columns, weights, shifts = observed.columns(), settled.weights[:, None], settled.shifts[:, None]

    def excess(eta: np.ndarray) -> np.ndarray:
        return family.weighted(columns, eta, parameters) - shifts * eta + weights * eta**2 / 2 - settled.gains[:, None]

    if not integrates_groups(settled):
        step = max(1, _PIECE // max(predictor.rows, 1))
        found = [
            excess(np.stack([predictor.at(theta) for theta in thetas[at : at + step]], axis=1)).sum(0)
            for at in range(0, draws, step)
        ]
        return fixed, np.concatenate(found)
    block = predictor.blocks[order[0]]
    nodes, masses = _rule(block.width)
    inverse = np.linalg.inv(joint.lower).transpose(0, 2, 1)
    reach = np.einsum("gab,mb->mga", inverse, nodes)
    middle = predictor.split(joint.mean)
    total = np.empty(draws)
    for at, parts in enumerate(splits):
        moved = [(parts[k] - middle[k]).ravel() for k in order[1:]]
        rest = np.concatenate(moved) if moved else np.zeros(0)
        # Effects of groups given the others: the mean moves by −H⁻¹ B (rest − mean of rest).
        given = middle[order[0]] - np.einsum("gab,gb->ga", inverse, joint.half @ rest)
        base = sum((predictor.blocks[k].times(parts[k]) for k in order[1:]), np.zeros(predictor.rows))
        eta = np.stack([base + block.times(given + each) for each in reach], axis=1)
        rows = excess(eta)
        by_group = np.stack([np.bincount(block.index, row, block.size) for row in rows.T], axis=1) + np.log(masses)
        top = by_group.max(1, keepdims=True)
        total[at] = (np.log(np.exp(by_group - top).sum(1)) + top[:, 0]).sum()
    return fixed, total


def _rule(width: int) -> tuple[np.ndarray, np.ndarray]:
    from numpy.polynomial.hermite_e import hermegauss

    x, w = hermegauss(_NODES)
    nodes = np.stack(np.meshgrid(*[x] * width, indexing="ij"), axis=-1).reshape(-1, width)
    masses = np.prod(np.stack(np.meshgrid(*[w] * width, indexing="ij"), axis=-1).reshape(-1, width), axis=1)
    return nodes, masses / masses.sum()


def pareto_shape(logs: np.ndarray) -> float:
    """k of a generalised Pareto law of the largest weights (Zhang & Stephens 2009, as in Vehtari et al. 2024).

    Below .7 means over the weights can be trusted; weights that are equal have −∞.
    """
    weights = np.exp(logs - logs.max())
    count = int(min(len(weights) / 5, 3 * np.sqrt(len(weights))))
    ordered = np.sort(weights)
    excess = ordered[-count:] - ordered[-count - 1]
    excess = excess[excess > 1e-12]
    n = len(excess)
    if n < 5:
        return -np.inf
    tried = 30 + int(np.sqrt(n))
    quarter = excess[int(n / 4 + 0.5) - 1]
    theta = 1 / excess[-1] + (1 - np.sqrt(tried / (np.arange(1, tried + 1) - 0.5))) / (3 * quarter)
    shapes = np.log1p(-theta[:, None] * excess).mean(1)
    profile = n * (np.log(-theta / shapes) - shapes - 1)
    share = 1 / np.exp(profile - profile[:, None]).sum(1)
    best = float((theta * share).sum() / share.sum())
    shape = float(np.log1p(-best * excess).mean())
    # Drawn a little to a half, as ten more excesses would do.
    return (n * shape + 5) / (n + 10)
