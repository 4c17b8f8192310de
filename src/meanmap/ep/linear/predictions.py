"""The expected response at rows, with intervals, for groups old and new."""

from typing import Any

import numpy as np
from scipy import sparse

from meanmap.ep.linear.components import Components
from meanmap.ep.linear.family import Family, Observed
from meanmap.ep.linear.formula import Rows
from meanmap.ep.linear.integrate import Node
from meanmap.ep.linear.mixtures import Normals
from meanmap.ep.linear.scaled import Scaled
from meanmap.ep.linear.shapes import marginals

__all__ = ["expected", "probabilities"]

# Nodes of the trapezium rule for means over a Normal, in standard deviations, and rows that are met at once.
_NODES = np.linspace(-8, 8, 81)
_SHARES = np.exp(-(_NODES**2) / 2) / np.exp(-(_NODES**2) / 2).sum()
_PIECE = 20_000
# Numbers that are sorted at once for quantiles of what is not monotone.
_SORTED = 4_000_000
# Numbers in the rows that are asked for, and these rows times those of the fit, up to which laws have their own shapes.
_DENSE, _SHAPED = 4_000_000, 60_000


def expected(
    nodes: tuple[Node, ...],
    rows: Rows,
    scaled: Scaled,
    components: Components,
    family: Family,
    observed: Observed,
    level: float,
) -> np.ndarray:
    """Estimate, sd, and ends of an interval at each row, (n, 4)."""
    found = np.empty((len(rows.kept), 4))
    beliefs = [predictors(node, rows, scaled, components) for node in nodes]
    means, variances = (np.stack(each, axis=1) for each in zip(*beliefs, strict=True))
    law = Normals(means, np.sqrt(variances), np.array([node.probability for node in nodes]))
    ends = _shaped_ends(nodes, rows, scaled, components, family, observed, level)
    ends = np.stack(law.interval(level), axis=1) if ends is None else ends
    for start in range(0, len(found), _PIECE):
        piece, offset = slice(start, start + _PIECE), rows.offset[start : start + _PIECE, None] / scaled.unit
        found[piece] = _responses(
            nodes, means[piece] + offset, np.sqrt(variances[piece]), ends[piece] + offset, components, family
        )
    found *= scaled.unit
    found[:, [0, 2, 3]] += scaled.base
    return found


def _shaped_ends(
    nodes: tuple[Node, ...],
    rows: Rows,
    scaled: Scaled,
    components: Components,
    family: Family,
    observed: Observed,
    level: float,
) -> np.ndarray | None:
    """Of predictors whose laws are no Normals, (n, 2); None where all groups are not known, or the work is too much."""
    asked = scaled.predictor(rows)
    if family.exact or any((group.index < 0).any() for group in rows.groups) or asked.rows * asked.total > _DENSE:
        return None
    matrix: Any = sparse.hstack([block.matrix for block in asked.blocks], format="csr")
    alike, place = np.unique(matrix.toarray(), axis=0, return_inverse=True)
    if len(alike) * len(observed.response) > _SHAPED:
        return None
    law = marginals(nodes, components, family, observed, alike)
    return np.stack(law.interval(level), axis=1)[place.ravel()]


def probabilities(
    nodes: tuple[Node, ...], rows: Rows, scaled: Scaled, components: Components, family: Family, level: float
) -> np.ndarray:
    """Of each ordered label at each row: estimate, sd, and ends of an interval, (n · labels, 4)."""
    labels = len(family.parameters) + 2
    beliefs = [predictors(node, rows, scaled, components) for node in nodes]
    weights = np.concatenate([node.probability * _SHARES for node in nodes])
    found = np.empty((len(rows.kept), labels, 4))
    step = max(1, _SORTED // len(weights))
    for start in range(0, len(found), step):
        piece = slice(start, start + step)
        for label in range(labels):
            one = Observed.of(np.full(len(found[piece]), float(label)), 1.0, rows.offset[piece]).columns()
            values = [
                np.exp(family.weighted(one, mean[piece, None] + np.sqrt(variance[piece, None]) * _NODES, p))
                for (mean, variance), p in zip(beliefs, (components.likelihood(n.phi) for n in nodes), strict=True)
            ]
            found[piece, label] = _moments_and_ends(np.concatenate(values, axis=1), weights, level)
    return found.reshape(-1, 4)


def _moments_and_ends(values: np.ndarray, weights: np.ndarray, level: float) -> np.ndarray:
    """Of points (n, k) with these weights."""
    mean = values @ weights
    order = np.argsort(values, axis=1)
    ordered, reached = np.take_along_axis(values, order, axis=1), np.cumsum(weights[order], axis=1)
    rows = np.arange(len(values))
    ends = [ordered[rows, (reached < p).sum(1).clip(0, len(weights) - 1)] for p in ((1 - level) / 2, (1 + level) / 2)]
    sd = np.sqrt(np.maximum(values**2 @ weights - mean**2, 0))
    return np.stack([mean, sd, *ends], axis=1)


def predictors(node: Node, rows: Rows, scaled: Scaled, components: Components) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the scaled predictor, without offset, given a node."""
    asked, joint = scaled.predictor(rows), node.settled.joint
    variances = joint.variances(asked)
    laws = components.covariances(node.phi)
    for group, width, law in zip(rows.groups, scaled.group_spreads, laws, strict=True):
        new = group.index < 0
        design = group.design[new] / width
        variances[new] += ((design @ law) * design).sum(1)
    return asked.at(joint.mean), np.maximum(variances, 0)


def _responses(
    nodes: tuple[Node, ...],
    means: np.ndarray,
    sds: np.ndarray,
    ends: np.ndarray,
    components: Components,
    family: Family,
) -> np.ndarray:
    """From means and sds (n, nodes) of predictors, and ends (n, 2); in units of the scaled response."""
    one = Observed.of(np.zeros(len(means)), 1.0).columns()
    first, second = np.zeros(len(means)), np.zeros(len(means))
    for at, node in enumerate(nodes):
        eta = means[:, at, None] + sds[:, at, None] * _NODES
        values = family.mean(one, eta, components.likelihood(node.phi))
        first += node.probability * (values @ _SHARES)
        second += node.probability * (values**2 @ _SHARES)
    low, high = family.mean(one, ends, components.likelihood(nodes[0].phi)).T
    return np.stack([first, np.sqrt(np.maximum(second - first**2, 0)), low, high], axis=1)
