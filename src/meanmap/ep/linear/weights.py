"""Importance weights of draws from the joint Gaussian, which show how far the exact posterior is from it."""

from collections.abc import Callable, Iterator

import numpy as np
from scipy import sparse

from meanmap.ep.linear.family import Family, Observed
from meanmap.ep.linear.grouped import Groups, integrates_groups, rule_nodes
from meanmap.ep.linear.joint import Joint
from meanmap.ep.linear.predictor import Predictor
from meanmap.ep.linear.sites import Settled
from meanmap.ep.weighted_draws import Weighted

__all__ = ["Kinds", "affordable", "excess", "kinds", "pieces", "reach", "weighted", "whole_of"]

# Evaluations of the likelihood held in memory at once.
_PIECE = 2_000_000
# Of this many times as many rows or more, this many are drawn; they are enough if log weights have a standard error of
# at most this: means then move by about as many standard deviations.
_TIMES, _SOME, _SURE = 4, 20_000, 1e-3
# Rows from which equal ones are counted, and how many are looked at to see whether there are many of these.
_MANY, _LOOKED_AT = 1000, 10_000

# Rows, and how many rows each represents.
Kinds = tuple[np.ndarray, np.ndarray]


def affordable(settled: Settled, evaluations: int, least: int, most: int, alike: Kinds | None = None) -> int:
    """An even number of draws, between two bounds, that take about this many evaluations of the likelihood."""
    inside = integrates_groups(settled)
    inner = rule_nodes(settled.joint.first.width) if inside else 1
    rows = len(settled.means) if alike is None or inside else len(alike[0])
    return 2 * int(np.clip(evaluations / (rows * inner * 2), least // 2, most // 2))


def kinds(predictor: Predictor, observed: Observed) -> Kinds | None:
    """One row of each kind of equal rows, whose log weights are equal, and how many there are; None if less than half
    of the rows have an equal, and in tables so short that each row is soon looked at.
    """
    if predictor.rows < _MANY:
        return None
    theta = np.random.default_rng(0).normal(size=predictor.total)
    for rows in (slice(None, None, 1 + predictor.rows // _LOOKED_AT), slice(None)):
        some, columns = predictor.taken(rows), [np.nan_to_num(each[rows]) for each in observed.each]
        # Rows that differ have different sums, but for chance.
        mixed = some.at(theta) + sum(np.exp(-k) * each / (1 + abs(each).max()) for k, each in enumerate(columns))
        _, first, inverse, times = np.unique(mixed, return_index=True, return_inverse=True, return_counts=True)
        if 2 * len(first) > some.rows:
            return None
    same = first[inverse]
    given = [*observed.each, *(each for block in predictor.blocks for each in (block.index, block.design))]
    return (first, times) if all((each == each[same]).all() for each in given) else None


def excess(
    settled: Settled,
    family: Family,
    observed: Observed,
    parameters: np.ndarray,
    eta: np.ndarray,
    rows: np.ndarray | slice = slice(None),
) -> np.ndarray:
    """Logs of likelihood over site of some rows at predictors (rows, draws), relative to the mean over each belief."""
    shifts, weights = settled.shifts[rows, None], settled.weights[rows, None]
    own = family.weighted(observed.taken(rows).columns(), eta, parameters)
    return own - shifts * eta + weights * eta**2 / 2 - settled.gains[rows, None]


def weighted(
    settled: Settled,
    family: Family,
    observed: Observed,
    parameters: np.ndarray,
    draws: int,
    alike: Kinds | None = None,
) -> Weighted:
    """Weighted antithetic draws, from the same random numbers for each belief of a model so that they can be compared.

    The effects of the eliminated factor are integrated given the draw of all others by quadrature, group by group: the
    weights are those of the marginal distribution of the others, whose dimension is small however many groups there
    are. Where none are, a log weight is a sum over rows; of many, some are enough if its standard error is small.
    """
    predictor, model = settled.joint.predictor, (settled, family, observed, parameters)
    inside, generator = integrates_groups(settled), np.random.default_rng(0)
    parts = _parts(settled, lambda count: _antithetic(generator, count, draws))
    found, log_ratios = _shared(settled, parts)
    if not inside and alike is not None:
        rows, times = alike
        few, logs = predictor.taken(rows), []
        for piece in pieces(draws, len(rows)):
            eta = _predictors(few, {at: part[:, piece] for at, part in parts.items()})
            logs.append(times @ excess(*model, eta, rows))
        return Weighted(found, log_ratios + np.concatenate(logs))
    error = 0.0
    if not inside and predictor.rows >= _TIMES * _SOME:
        rows, times = _some(settled, generator)
        each = times[:, None] * excess(*model, _predictors(predictor.taken(rows), parts), rows)
        error = float(np.sqrt(each.var(0).mean() * len(rows)))
        if error < _SURE:
            return Weighted(found, log_ratios + each.sum(0), error)
    rule = Groups(*model).nodes()
    logs = [whole_of(terms).sum(0) for terms in _by_group(*model, parts, rule)]
    return Weighted(found, log_ratios + np.concatenate(logs))


def _antithetic(generator: np.random.Generator, count: int, draws: int) -> np.ndarray:
    """Standard Normal numbers (count, draws): pairs, whose second members follow all the first ones."""
    half = generator.normal(size=(count, draws // 2))
    return np.concatenate([half, -half], axis=1)


def _parts(settled: Settled, noise: Callable[[int], np.ndarray]) -> dict[int, np.ndarray]:
    """Draws (effects, draws) of each block, from noise; means given the others where groups are integrated."""
    joint = settled.joint
    order, middle = joint.order, joint.predictor.split(joint.mean)
    rest = joint.rest_from(noise(joint.rest))
    own = joint.first_given(rest, None if integrates_groups(settled) else noise(joint.first.total))
    parts, start = {order[0]: own + middle[order[0]].reshape(-1, 1)}, 0
    for at in order[1:]:
        total = joint.predictor.blocks[at].total
        parts[at] = rest[start : start + total] + middle[at].reshape(-1, 1)
        start += total
    return parts


def _shared(settled: Settled, parts: dict[int, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Draws (draws, p) of the effects that all rows share, and what the site on these takes from log weights."""
    draws, blocks = next(iter(parts.values())).shape[1], settled.joint.predictor.blocks
    log_ratios = np.zeros(draws)
    if (site := settled.shared) is not None:
        beta = parts[site.block][: len(site.shifts)]
        log_ratios -= site.shifts @ beta - (beta * (site.weights @ beta)).sum(0) / 2 + site.log_factor
    shared = [parts[at] for at, block in enumerate(blocks) if block.size == 1]
    return np.concatenate([*shared, np.zeros((0, draws))]).T, log_ratios


def _by_group(
    settled: Settled,
    family: Family,
    observed: Observed,
    parameters: np.ndarray,
    parts: dict[int, np.ndarray],
    rule: tuple[np.ndarray, np.ndarray],
) -> Iterator[np.ndarray]:
    """Logs of likelihood over sites at the nodes of a rule, with their masses, (groups, draws, nodes), for some draws
    at a time. All rows are one group, with one node, where effects of groups are not integrated.
    """
    joint, draws = settled.joint, next(iter(parts.values())).shape[1]
    predictor, first = joint.predictor, joint.first
    nodes, log_masses = rule
    if integrates_groups(settled):
        around = np.stack([first.times(each) for each in reach(joint, nodes)], axis=1)
        ones = np.ones(predictor.rows)
        by_group = sparse.csr_array((ones, (first.index, np.arange(predictor.rows))), (first.size, predictor.rows))
    else:
        around, by_group = np.zeros((predictor.rows, 1)), None
    for piece in pieces(draws, predictor.rows * len(log_masses)):
        eta = _predictors(predictor, {at: part[:, piece] for at, part in parts.items()})
        eta = (eta[:, :, None] + around[:, None, :]).reshape(predictor.rows, -1)
        terms = excess(settled, family, observed, parameters, eta)
        terms = terms.sum(0, keepdims=True) if by_group is None else by_group @ terms
        yield terms.reshape(len(terms), -1, len(log_masses)) + log_masses


def reach(joint: Joint, nodes: np.ndarray, groups: np.ndarray | slice = slice(None)) -> np.ndarray:
    """Effects (nodes, groups, width) of groups of the first block about their means given the others."""
    return np.einsum("gba,mb->mga", joint.inverse[groups], nodes)


def whole_of(terms: np.ndarray) -> np.ndarray:
    """Logs (groups, draws) of sums over nodes."""
    top = terms.max(2, keepdims=True)
    return np.log(np.exp(terms - top).sum(2)) + top[:, :, 0]


def pieces(draws: int, each: int) -> Iterator[slice]:
    """Draws whose evaluations, this many each, are held in memory at once."""
    step = max(1, _PIECE // each)
    return (slice(begin, begin + step) for begin in range(0, draws, step))


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
