"""Importance weights of draws from the joint Gaussian, which show how far the exact posterior is from it."""

import numpy as np
from scipy import sparse

from meanmap.ep.linear.family import Family, Observed
from meanmap.ep.linear.grouped import Groups, integrates_groups, rule_nodes
from meanmap.ep.linear.predictor import Predictor
from meanmap.ep.linear.sites import Settled
from meanmap.ep.weighted_draws import Weighted

__all__ = ["affordable", "weighted"]

# Evaluations of the likelihood held in memory at once.
_PIECE = 2_000_000
# Of this many times as many rows or more, this many are drawn; they are enough if log weights have a standard error of
# at most this: means then move by about as many standard deviations.
_TIMES, _SOME, _SURE = 4, 20_000, 1e-3


def affordable(settled: Settled, evaluations: int, least: int, most: int) -> int:
    """An even number of draws, between two bounds, that take about this many evaluations of the likelihood."""
    inner = rule_nodes(settled.joint.first.width) if integrates_groups(settled) else 1
    return 2 * int(np.clip(evaluations / (len(settled.means) * inner * 2), least // 2, most // 2))


def weighted(settled: Settled, family: Family, observed: Observed, parameters: np.ndarray, draws: int) -> Weighted:
    """Weighted antithetic draws, from the same random numbers for each belief of a model so that they can be compared.

    The effects of the eliminated factor are integrated given the draw of all others by quadrature, group by group: the
    weights are those of the marginal distribution of the others, whose dimension is small however many groups there
    are. Where none are, a log weight is a sum over rows; of many, some are enough if its standard error is small.
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

    def excess(eta: np.ndarray, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        columns, weights, shifts = (
            observed.taken(rows).columns(),
            settled.weights[rows, None],
            settled.shifts[rows, None],
        )
        own = family.weighted(columns, eta, parameters)
        return own - shifts * eta + weights * eta**2 / 2 - settled.gains[rows, None]

    parts, start = {order[0]: own + middle[order[0]].reshape(-1, 1)}, 0
    for at, block in zip(order[1:], others, strict=True):
        parts[at] = rest[start : start + block.total] + middle[at].reshape(-1, 1)
        start += block.total
    shared = [parts[at] for at, block in enumerate(predictor.blocks) if block.size == 1]
    log_ratios, error = np.zeros(draws), 0.0
    if (site := settled.shared) is not None:
        beta = parts[site.block][: len(site.shifts)]
        log_ratios -= site.shifts @ beta - (beta * (site.weights @ beta)).sum(0) / 2 + site.log_factor
    found = np.concatenate([*shared, np.zeros((0, draws))]).T
    if not inside and predictor.rows >= _TIMES * _SOME:
        rows, times = _some(settled, generator)
        each = times[:, None] * excess(_predictors(predictor.taken(rows), parts), rows)
        error = float(np.sqrt(each.var(0).mean() * len(rows)))
        if error < _SURE:
            return Weighted(found, log_ratios + each.sum(0), error)
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
        eta = _predictors(predictor, {at: part[:, piece] for at, part in parts.items()})
        terms = excess((eta[:, :, None] + around[:, None, :]).reshape(predictor.rows, -1))
        terms = terms.sum(0, keepdims=True) if by_group is None else by_group @ terms
        terms = terms.reshape(len(terms), -1, len(log_masses)) + log_masses
        top = terms.max(2, keepdims=True)
        logs.append((np.log(np.exp(terms - top).sum(2)) + top[:, :, 0]).sum(0))
    return Weighted(found, log_ratios + np.concatenate(logs))


def _predictors(predictor: Predictor, parts: dict[int, np.ndarray]) -> np.ndarray:
    """(n, draws), from draws of the effects of each block."""
    return sum((block.of_many(parts[at]) for at, block in enumerate(predictor.blocks)), np.zeros(()))


def _some(settled: Settled, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows drawn with replacement, half of them in proportion to what each says about its own predictor, and the factor
    of each so that its terms add up to those of all rows.

    A row that few others resemble, and only such a one, may be far from its site.
    """
    leverage = np.abs(settled.weights * settled.variances)
    chances = leverage / leverage.sum() / 2 + 0.5 / len(leverage)
    rows = np.sort(generator.choice(len(chances), _SOME, p=chances))
    return rows, 1 / (_SOME * chances[rows])
