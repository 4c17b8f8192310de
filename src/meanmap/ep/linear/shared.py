"""Effects that all rows share, in the units of the data, given each node."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.ep.linear.formula import Formula
from meanmap.ep.linear.integrate import Integrated
from meanmap.ep.linear.mixtures import Shaped
from meanmap.ep.linear.ordered import cutpoints, threshold_names
from meanmap.ep.linear.scaled import Scaled
from meanmap.ep.linear.shapes import marginals
from meanmap.ep.weighted_draws import Weighted

__all__ = ["Shared", "shared_names"]


def shared_names(formula: Formula, levels: tuple[Any, ...]) -> tuple[str, ...]:
    """Their names in the table: thresholds of ordered labels replace the intercept."""
    if not levels:
        return formula.names
    return (*threshold_names(levels), *(name for name in formula.names if name != "Intercept"))


@dataclass(frozen=True)
class Shared:
    """Distributions of the effects that all rows share, in the order of `shared_names`.

    Attributes
    ----------
    laws : Shaped
        Marginal distributions in the units of the data.
    covariances : (nodes, p, p) array
        Covariances, with the standard deviations of the marginals.
    turn, offsets : (p, effects) and (p, nodes) arrays
        The linear map from effects in scaled units to these.
    middle, plain : (p,) arrays
        Means and standard deviations of the joint Gaussian at the first node.
    """

    laws: Shaped
    covariances: np.ndarray
    turn: np.ndarray
    offsets: np.ndarray
    middle: np.ndarray
    plain: np.ndarray

    @classmethod
    def of(
        cls,
        model: Integrated,
        scaled: Scaled,
        levels: tuple[Any, ...],
        judged: Weighted | None,
    ) -> "Shared":
        """Combine the nodes; their cutpoints replace the intercept if the response has levels."""
        nodes, turn, at = model.nodes, scaled.turn, scaled.intercept
        if levels and at is not None:
            turn = np.concatenate([np.tile(-turn[at], (len(levels) - 1, 1)), np.delete(turn, at, axis=0)])
        predictor = nodes[0].settled.joint.predictor
        wide = np.concatenate([turn, np.zeros((len(turn), predictor.total - turn.shape[1]))], axis=1)
        laws = marginals(model, wide, judged)
        covariances, plain = np.zeros((len(nodes), len(turn), len(turn))), np.ones((len(nodes), len(turn)))
        for k, node in enumerate(nodes if len(turn) else ()):
            found = turn @ node.settled.joint.within(0)[0] @ turn.T
            plain[k] = np.sqrt(np.diag(found))
            by = laws.sds[:, k] / plain[k]
            covariances[k] = by[:, None] * found * by
        offsets = np.zeros((len(turn), len(nodes)))
        if levels:
            offsets[: len(levels) - 1] = np.stack([cutpoints(model.parameters(node)) for node in nodes], axis=1)
        else:
            offsets[list(scaled.constants)] = scaled.base
        laws.means += offsets
        return cls(laws, covariances, turn, offsets, wide @ nodes[0].settled.joint.mean + offsets[:, 0], plain[0])

    @property
    def mean(self) -> np.ndarray:
        """Over all nodes."""
        return self.laws.moments[0]

    @property
    def covariance(self) -> np.ndarray:
        """Over all nodes."""
        away = self.laws.means.T - self.mean
        return np.einsum("k,kab->ab", self.laws.shares, self.covariances) + (away.T * self.laws.shares) @ away

    def shaped(
        self, at: int, model: Integrated, count: int, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draws given a node: (count, p) of these effects, and θ, (count, total): weighted ones where there are any.

        Else they have the shapes of the marginals, and the other effects in θ are moved by their regression on those
        that all rows share, so that sums of both are as certain as they were.
        """
        joint, width, drawn = model.nodes[at].settled.joint, self.turn.shape[1], model.effect_draws
        thetas = joint.draws(count, generator) if drawn is None else drawn.taken(at, count, generator)
        if not width:
            return np.zeros((count, 0)), thetas
        plain = thetas[:, :width] @ self.turn.T
        if drawn is not None:
            return plain + self.offsets[:, at], thetas
        middle, sds = self.turn @ joint.mean[:width], np.sqrt(np.diag(self.turn @ joint.within(0)[0] @ self.turn.T))
        shared = self.laws.from_normal(at, (plain - middle) / sds)
        moved = np.linalg.lstsq(self.turn, (shared - plain - self.offsets[:, at]).T)[0].T
        covariances = joint.solve(np.eye(width, joint.predictor.total))
        return shared, thetas + moved @ np.linalg.solve(covariances[:, :width], covariances)
