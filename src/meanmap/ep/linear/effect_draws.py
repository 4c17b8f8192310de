"""Weighted draws of all effects of a model with groups, also of those of the groups."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from meanmap.ep.linear.grouped import Groups, integrates_groups
from meanmap.ep.linear.sampled import evenly_chosen
from meanmap.ep.linear.weights import of_all_effects
from meanmap.ep.weighted_draws import Weighted, pareto_shape

if TYPE_CHECKING:
    from meanmap.ep.linear.integrate import Integrated

__all__ = ["ROUGH", "EffectDraws"]

# Evaluations of the likelihood spent on draws, the most draws, how often groups are drawn given each, and the most
# numbers that are kept.
_EVALUATIONS, _DRAWS, _EACH, _NUMBERS = 60_000_000, 16_000, 4, 8_000_000
# Equally weighted draws that stand for all.
_POINTS = 8000
# How many equal draws those of a node have to be worth, and the least probability of all nodes with such draws.
_WORTH, _MOST = 150, 0.6
# The largest skewness for which corrected ends can be trusted: Normal ends are off by .24 sd. Of larger tables some
# rows are looked at.
ROUGH, _DENSE = 0.5, 4_000_000
# The largest Pareto k with which weighted means can be trusted, and the effective share from which it does not matter.
_TRUSTED, _EVEN = 0.7, 0.95


@dataclass(frozen=True, eq=False)
class EffectDraws:
    """Weighted draws of all effects given the most probable nodes, each of which represents the nodes around it.

    Attributes
    ----------
    by_node : dict
    nearest, shares : (nodes,) arrays
        The node that represents each, and the probabilities of nodes.
    """

    by_node: dict[int, Weighted]
    nearest: np.ndarray
    shares: np.ndarray

    @classmethod
    def of(cls, model: "Integrated") -> "EffectDraws | None":
        """None without groups, if draws are too expensive or worth too few equal ones, or if no fitted row is skewed by
        much.
        """
        first, shares = model.nodes[0], model.shares / model.shares.sum()
        if not integrates_groups(first.settled):
            return None
        rule = Groups(first.settled, model.family, model.observed, model.parameters(first)).dense()
        room = _NUMBERS // (_EACH * first.settled.joint.predictor.total)
        count = min(_EVALUATIONS // (len(first.settled.means) * len(rule[1])), room, _DRAWS)
        chosen = np.flatnonzero(shares * count >= _WORTH).tolist()
        if shares[chosen].sum() < _MOST or not _is_rough(model):
            return None
        while shares[chosen].sum() >= _MOST:
            nearest = model.nearest(chosen)
            masses = np.bincount(nearest, shares, len(shares))
            by_node = {at: _worthwhile(model, at, count * float(masses[at])) for at in chosen}
            good = {at: each for at, each in by_node.items() if each is not None}
            if len(good) == len(chosen):
                return cls(good, nearest, shares)
            chosen = list(good)
        return None

    @cached_property
    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """Equally weighted draws (points, total) over all nodes, and the node of each."""
        found, nodes, generator = [], [], np.random.default_rng(0)
        for at, own in self.by_node.items():
            shares = np.where(self.nearest == at, self.shares, 0.0)
            count = round(_POINTS * float(shares.sum()))
            found.append(own.draws[evenly_chosen(own.shares, count)])
            nodes.append(generator.permutation(evenly_chosen(shares, count)))
        return np.concatenate(found), np.concatenate(nodes)

    def taken(self, node: int, count: int, generator: np.random.Generator) -> np.ndarray:
        """(count, total) of the draws that represent a node, chosen by their weights."""
        own = self.by_node[int(self.nearest[node])]
        return own.draws[generator.choice(len(own.logs), count, p=own.shares)]


def _is_rough(model: "Integrated") -> bool:
    """Whether the predictor of a fitted row is so skewed that a corrected Normal is not to be trusted."""
    from meanmap.ep.linear.shapes import skewness

    predictor = model.nodes[0].settled.joint.predictor
    step = 1 + predictor.rows * predictor.total // _DENSE
    different = np.unique(predictor.matrix[::step].toarray(), axis=0)
    return bool((np.abs(skewness(model, different)) > ROUGH).any())


def _worthwhile(model: "Integrated", at: int, count: float) -> Weighted | None:
    node, pairs = model.nodes[at], int(count / 2)
    if 2 * pairs < _WORTH:
        return None
    given = (node.settled, model.family, model.observed, model.parameters(node))
    found = of_all_effects(*given, 2 * pairs, _EACH)
    even = found.effective > _EVEN or pareto_shape(found.logs[: 2 * pairs]) < _TRUSTED
    return found if even and found.effective * 2 * pairs > _WORTH else None
