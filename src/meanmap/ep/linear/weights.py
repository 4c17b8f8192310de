"""Importance weights of draws from the joint Gaussian, which show how far the exact posterior is from it."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from meanmap.ep.linear.family import Family, Observed
from meanmap.ep.linear.grouped import Groups, integrates_groups, rule_nodes
from meanmap.ep.linear.sites import Settled

__all__ = ["Weighted", "affordable", "pareto_shape", "weighted"]

# Evaluations of the likelihood held in memory at once.
_PIECE = 2_000_000


@dataclass(frozen=True)
class Weighted:
    """Draws (draws, p) of the effects that all rows share, and the log ratio of exact posterior and belief at each."""

    draws: np.ndarray
    logs: np.ndarray

    @property
    def shares(self) -> np.ndarray:
        """Weights that sum to 1."""
        shares = np.exp(self.logs - self.logs.max())
        return shares / shares.sum()

    @property
    def effective(self) -> float:
        """The effective sample size as a share of all draws."""
        shares = self.shares
        return 1 / float(shares @ shares) / len(shares)

    @property
    def gain(self) -> float:
        """Log ratio of the evidence and its approximation by expectation propagation."""
        top = float(self.logs.max())
        return top + float(np.log(np.exp(self.logs - top).mean()))


def affordable(settled: Settled, evaluations: int, least: int, most: int) -> int:
    """An even number of draws, between two bounds, that take about this many evaluations of the likelihood."""
    inner = rule_nodes(settled.joint.first.width) if integrates_groups(settled) else 1
    return 2 * int(np.clip(evaluations / (len(settled.means) * inner * 2), least // 2, most // 2))


def weighted(settled: Settled, family: Family, observed: Observed, parameters: np.ndarray, draws: int) -> Weighted:
    """Weighted antithetic draws, from the same random numbers for each belief of a model so that they can be compared.

    The effects of the eliminated factor are integrated given the draw of all others by quadrature, group by group: the
    weights are those of the marginal distribution of the others, whose dimension is small however many groups there
    are.
    """
    joint = settled.joint
    predictor, order, middle = joint.predictor, joint.order, joint.predictor.split(joint.mean)
    first, others = predictor.blocks[order[0]], [predictor.blocks[at] for at in order[1:]]
    generator = np.random.default_rng(0)

    def pairs(count: int) -> np.ndarray:
        half = generator.normal(size=(count, draws // 2))
        return np.concatenate([half, -half], axis=1)

    rest = joint.rest_from(pairs(joint.rest))
    inside = integrates_groups(settled)
    own = joint.first_given(rest, None if inside else pairs(first.total))
    columns, weights, shifts = observed.columns(), settled.weights[:, None], settled.shifts[:, None]

    def excess(eta: np.ndarray) -> np.ndarray:
        return family.weighted(columns, eta, parameters) - shifts * eta + weights * eta**2 / 2 - settled.gains[:, None]

    parts, start = {order[0]: own + middle[order[0]].reshape(-1, 1)}, 0
    for at, block in zip(order[1:], others, strict=True):
        parts[at] = rest[start : start + block.total] + middle[at].reshape(-1, 1)
        start += block.total
    if inside:
        nodes, log_masses = Groups(settled, family, observed, parameters).nodes()
        reach = np.einsum("gba,mb->mga", joint.inverse, nodes)
        around = np.stack([first.times(each) for each in reach], axis=1)
        ones = np.ones(predictor.rows)
        by_group = sparse.csr_array((ones, (first.index, np.arange(predictor.rows))), (first.size, predictor.rows))
    else:
        log_masses, around, by_group = np.zeros(1), np.zeros((predictor.rows, 1)), None
    logs, step = [], max(1, _PIECE // (predictor.rows * len(log_masses)))
    for begin in range(0, draws, step):
        piece = slice(begin, begin + step)
        eta = sum((block.matrix @ parts[at][:, piece] for at, block in enumerate(predictor.blocks)), np.zeros(()))
        found = excess((eta[:, :, None] + around[:, None, :]).reshape(predictor.rows, -1))
        found = found.sum(0, keepdims=True) if by_group is None else by_group @ found
        found = found.reshape(len(found), -1, len(log_masses)) + log_masses
        top = found.max(2, keepdims=True)
        logs.append((np.log(np.exp(found - top).sum(2)) + top[:, :, 0]).sum(0))
    shared = [parts[at] for at, block in enumerate(predictor.blocks) if block.size == 1]
    log_ratios = np.concatenate(logs)
    if (site := settled.shared) is not None:
        beta = parts[site.block][: len(site.shifts)]
        log_ratios -= site.shifts @ beta - (beta * (site.weights @ beta)).sum(0) / 2 + site.log_factor
    return Weighted(np.concatenate([*shared, np.zeros((0, draws))]).T, log_ratios)


def pareto_shape(logs: np.ndarray) -> float:
    """Shape k of a generalised Pareto distribution of the largest weights (Zhang & Stephens 2009; Vehtari et al. 2024).

    Below .7, weighted means can be trusted; equal weights have −∞.
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
    # Shrunk towards a half, as by ten more excesses.
    return (n * shape + 5) / (n + 10)
