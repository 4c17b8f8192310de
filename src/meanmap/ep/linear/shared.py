"""Effects that all rows share, in the units of the data, given each node."""

from typing import Any

import numpy as np

from meanmap.ep.linear.components import Components
from meanmap.ep.linear.formula import Formula
from meanmap.ep.linear.integrate import Node
from meanmap.ep.linear.ordered import cutpoints, threshold_names
from meanmap.ep.linear.scaled import Scaled

__all__ = ["shared", "shared_names"]


def shared_names(formula: Formula, levels: tuple[Any, ...]) -> tuple[str, ...]:
    """What the table calls them: thresholds of ordered labels take the place of the intercept."""
    if not levels:
        return formula.names
    return (*threshold_names(levels), *(name for name in formula.names if name != "Intercept"))


def shared(
    nodes: tuple[Node, ...], scaled: Scaled, components: Components, levels: tuple[Any, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Means (nodes, p) and covariances (nodes, p, p), in the order of `shared_names`."""
    turn, at = scaled.turn, scaled.intercept
    if levels and at is not None:
        turn = np.concatenate([np.tile(-turn[at], (len(levels) - 1, 1)), np.delete(turn, at, axis=0)])
    means, covariances = np.zeros((len(nodes), len(turn))), np.zeros((len(nodes), len(turn), len(turn)))
    for k, node in enumerate(nodes if len(turn) else ()):
        joint = node.settled.joint
        means[k] = turn @ joint.predictor.split(joint.mean)[0][0]
        own = joint.covariances[0, 0]
        covariances[k] = turn @ (own[0] if own.ndim == 3 else own[0, :, 0]) @ turn.T
        if levels:
            means[k, : len(levels) - 1] += cutpoints(components.likelihood(node.phi))
    if at is not None and not levels:
        means[:, at] += scaled.base
    return means, covariances
