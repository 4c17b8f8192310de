"""The expected response at rows, with intervals, for groups old and new."""

import numpy as np

from meanmap.ep.linear.components import Components
from meanmap.ep.linear.formula import Rows
from meanmap.ep.linear.integrate import Node
from meanmap.ep.linear.likelihoods import Family, Observed
from meanmap.ep.linear.mixtures import Normals
from meanmap.ep.linear.scaled import Scaled

__all__ = ["expected"]

# Nodes of the trapezium rule for means over a Normal, in standard deviations, and rows that are met at once.
_NODES = np.linspace(-8, 8, 81)
_SHARES = np.exp(-(_NODES**2) / 2) / np.exp(-(_NODES**2) / 2).sum()
_PIECE = 20_000


def expected(
    nodes: tuple[Node, ...], rows: Rows, scaled: Scaled, components: Components, family: Family, level: float
) -> np.ndarray:
    """Estimate, sd, and ends of an interval at each row, (n, 4)."""
    found = np.empty((len(rows.kept), 4))
    beliefs = [predictors(node, rows, scaled, components) for node in nodes]
    means, variances = (np.stack(each, axis=1) for each in zip(*beliefs, strict=True))
    for start in range(0, len(found), _PIECE):
        piece = slice(start, start + _PIECE)
        eta = means[piece] + rows.offset[piece, None] / scaled.unit
        found[piece] = _responses(nodes, eta, np.sqrt(variances[piece]), components, family, level)
    found *= scaled.unit
    found[:, [0, 2, 3]] += scaled.base
    return found


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
    nodes: tuple[Node, ...], means: np.ndarray, sds: np.ndarray, components: Components, family: Family, level: float
) -> np.ndarray:
    """From means and sds (n, nodes) of predictors; in units of the scaled response."""
    one = Observed.of(np.zeros(len(means)), 1.0).columns()
    shares = np.array([node.probability for node in nodes])
    first, second = np.zeros(len(means)), np.zeros(len(means))
    for at, node in enumerate(nodes):
        eta = means[:, at, None] + sds[:, at, None] * _NODES
        values = family.mean(one, eta, components.likelihood(node.phi))
        first += node.probability * (values @ _SHARES)
        second += node.probability * (values**2 @ _SHARES)
    middle = components.likelihood(nodes[0].phi)
    ends = Normals(means, sds, shares).interval(level)
    low, high = (family.mean(one, end[:, None], middle)[:, 0] for end in ends)
    return np.stack([first, np.sqrt(np.maximum(second - first**2, 0)), low, high], axis=1)
