"""The expected response in given rows, with intervals, for known and new groups."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from meanmap.core.intervals import ends
from meanmap.ep.linear.effect_draws import refusal
from meanmap.ep.linear.family import Observed
from meanmap.ep.linear.formula import Rows
from meanmap.ep.linear.integrate import Integrated
from meanmap.ep.linear.mixtures import Normals
from meanmap.ep.linear.scaled import Scaled
from meanmap.ep.linear.skewed import Skewed
from meanmap.ep.linear.undetermined import NODES, SHARES, no_mean, possible, undetermined

__all__ = ["expected", "of_new", "probabilities", "without_mean"]

# Rows that are processed at once.
_PIECE = 20_000
# Numbers sorted at once for quantiles of responses that are not monotone in the predictor.
_SORTED = 4_000_000


def expected(model: Integrated, rows: Rows, scaled: Scaled, level: float) -> tuple[np.ndarray, list[str]]:
    """Estimate, sd, and ends of an interval for each row, (n, 4), with notes if ends may be inaccurate, or if there is
    no mean.
    """
    found, offset = np.empty((len(rows.kept), 4)), rows.offset[:, None] / scaled.unit
    skewed = _skewed(model, rows, scaled)
    ends, notes = skewed.of_laws(level)
    for start in range(0, len(found) if len(skewed.by_draws) < len(found) else 0, _PIECE):
        piece = slice(start, start + _PIECE)
        found[piece] = _responses(skewed, piece, offset[piece], ends[piece] + offset[piece])
    for some, values in skewed.drawn():
        found[some] = _of_draws(model, values + offset[some], level)
    notes += _refused(skewed, found) + _without_mean(skewed, found, rows)
    found *= scaled.unit
    found[:, [0, 2, 3]] += scaled.base
    return found, notes


def probabilities(model: Integrated, rows: Rows, scaled: Scaled, level: float) -> np.ndarray:
    """Probability of each ordered label in each row: estimate, sd, and ends of an interval, (n · labels, 4)."""
    labels = len(model.family.parameters) + 2
    skewed = _skewed(model, rows, scaled)
    weights = np.concatenate([node.probability * SHARES for node in model.nodes])
    found = np.empty((len(rows.kept), labels, 4))
    step = max(1, _SORTED // len(weights))
    for start in range(0, len(found) if len(skewed.by_draws) < len(found) else 0, step):
        piece = slice(start, start + step)
        etas = [skewed.values(NODES, piece, k) for k in range(len(model.nodes))]
        for label in range(labels):
            one = Observed.of(np.full(len(found[piece]), float(label)), 1.0, rows.offset[piece]).columns()
            values = [
                np.exp(model.family.weighted(one, eta, p))
                for eta, p in zip(etas, map(model.parameters, model.nodes), strict=True)
            ]
            found[piece, label] = _moments_and_ends(np.concatenate(values, axis=1), weights, level)
    for some, values in skewed.drawn():
        found[some] = _labels_of_draws(model, values + rows.offset[some, None], labels, level)
    return found.reshape(-1, 4)


def without_mean(model: Integrated, rows: Rows, scaled: Scaled) -> np.ndarray:
    """Which rows (n,) have no mean that is determined. Skewness is computed only where a predictor is wide enough."""
    matrix, law, added = _laws(model, rows, scaled)
    if not possible(model.family, law):
        return np.zeros(len(law.means), bool)
    return undetermined(Skewed.of(model, matrix, law, added))


def _skewed(model: Integrated, rows: Rows, scaled: Scaled) -> Skewed:
    """Predictors of rows, without offsets; new groups add a Normal."""
    return Skewed.of(model, *_laws(model, rows, scaled))


def _laws(model: Integrated, rows: Rows, scaled: Scaled) -> tuple[Any, Normals, np.ndarray]:
    """The combinations of effects of rows, their Normal distributions, and what new groups add to variances."""
    asked = scaled.predictor(rows)
    designs = scaled.group_designs(rows)
    means, sds, added = (np.empty((len(model.nodes), asked.rows)) for _ in range(3))
    for k, node in enumerate(model.nodes):
        means[k] = asked.at(node.settled.joint.mean)
        added[k] = of_new(model.components.covariances(node.phi), rows, designs)
        sds[k] = np.sqrt(np.maximum(node.settled.joint.variances(asked) + added[k], 0))
    return asked.matrix, Normals(means.T, sds.T, model.shares), added.T


def _moments_and_ends(values: np.ndarray, weights: np.ndarray, level: float) -> np.ndarray:
    """Mean, sd, and ends of an interval of weighted points (n, k)."""
    mean = values @ weights
    order = np.argsort(values, axis=1)
    ordered, reached = np.take_along_axis(values, order, axis=1), np.cumsum(weights[order], axis=1)
    rows = np.arange(len(values))
    found = [ordered[rows, (reached < p).sum(1).clip(0, len(weights) - 1)] for p in ends(level)]
    sd = np.sqrt(np.maximum(values**2 @ weights - mean**2, 0))
    return np.stack([mean, sd, *found], axis=1)


def of_new(laws: Sequence[np.ndarray], rows: Rows, designs: Sequence[np.ndarray]) -> np.ndarray:
    """Variances added by new groups, from the covariances of group effects."""
    found = np.zeros(len(rows.kept))
    for group, scaled_design, law in zip(rows.groups, designs, laws, strict=True):
        new = group.index < 0
        design = scaled_design[new]
        found[new] += ((design @ law) * design).sum(1)
    return found


def _responses(skewed: Skewed, piece: slice, offset: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Responses in scaled units of some rows, with their offsets, from ends (n, 2) of their predictors."""
    model = skewed.model
    if model.family.link == "identity":
        mean, sd = skewed.law.taken(piece).moments
        return np.column_stack([mean + offset[:, 0], sd, ends])
    one = Observed.of(np.zeros(len(ends)), 1.0).columns()
    first, second = np.zeros(len(ends)), np.zeros(len(ends))
    for at, node in enumerate(model.nodes):
        values = model.family.mean(one, skewed.values(NODES, piece, at) + offset, model.parameters(node))
        first += node.probability * (values @ SHARES)
        second += node.probability * (values**2 @ SHARES)
    low, high = model.family.mean(one, ends, model.parameters(model.nodes[0])).T
    return np.stack([first, np.sqrt(np.maximum(second - first**2, 0)), low, high], axis=1)


def _of_draws(model: Integrated, eta: np.ndarray, level: float) -> np.ndarray:
    """Responses in scaled units of some rows, from draws (rows, draws) of their predictors."""
    parameters, one = model.parameters(model.nodes[0]), Observed.of(np.zeros(len(eta)), 1.0).columns()
    values = model.family.mean(one, eta, parameters)
    found = model.family.mean(one, np.quantile(eta, ends(level), axis=1).T, parameters)
    return np.column_stack([values.mean(1), values.std(1), found])


def _labels_of_draws(model: Integrated, eta: np.ndarray, labels: int, level: float) -> np.ndarray:
    """Probabilities (rows, labels, 4) of some rows, from draws (rows, draws) of their predictors, each with the
    thresholds of its node.
    """
    found, values, drawn = np.empty((len(eta), labels, 4)), np.empty(eta.shape), model.effect_draws
    assert drawn is not None
    nodes = drawn.nodes
    for label in range(labels):
        one = Observed.of(np.full(len(eta), float(label))).columns()
        for at in np.unique(nodes):
            here = nodes == at
            values[:, here] = np.exp(model.family.weighted(one, eta[:, here], model.parameters(model.nodes[at])))
        own = np.quantile(values, ends(level), axis=1)
        found[:, label] = np.column_stack([values.mean(1), values.std(1), *own])
    return found


def _refused(skewed: Skewed, found: np.ndarray) -> list[str]:
    """Replace numbers that need draws, where there are none, by nan, and say so."""
    count = int(skewed.wanting.sum())
    if not count:
        return []
    found[skewed.wanting] = np.nan
    return [refusal(count)]


def _without_mean(skewed: Skewed, found: np.ndarray, rows: Rows) -> list[str]:
    """Replace means and sds that are not determined by nan, and say so."""
    which = undetermined(skewed)
    found[which, :2] = np.nan
    what = "Its estimate and sd are nan, and its interval holds"
    return [no_mean(int(which.sum()), rows, what)] if which.any() else []
