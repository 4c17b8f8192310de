"""Weighted draws of effects of a model with groups, where the predictors of some rows are skewed."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.special import ndtri

from meanmap.ep.linear.effect_weights import Affected, is_sound
from meanmap.ep.linear.grouped import Groups, integrates_groups
from meanmap.ep.linear.joint import in_place
from meanmap.ep.linear.sampled import evenly_chosen

if TYPE_CHECKING:
    from meanmap.ep.linear.integrate import Integrated

__all__ = ["ROUGH", "EffectDraws", "refusal", "rough"]

# Evaluations of the likelihood spent on draws of all rows, and of those that need them; the most draws, how often
# groups are drawn given each, and the most numbers that are kept.
_EVALUATIONS, _NEEDED, _DRAWS, _EACH, _NUMBERS = 60_000_000, 600_000_000, 16_000, 4, 20_000_000
# Draws of rows that need them, and the fewest at a node.
_ENOUGH, _FEWEST = 3000, 400
# Equally weighted draws that stand for all, and for those given a node.
_POINTS, _GIVEN = 8000, 4000
# The equal draws that those of a node have to be worth, and the least probability of all nodes with such draws.
_WORTH, _MOST = 150, 0.6
# The largest skewness for which corrected ends can be trusted: Normal ends are off by .24 sd. Of larger tables some
# rows are looked at.
ROUGH, _DENSE = 0.5, 4_000_000
# The most effects outside the largest factor with draws of some rows, and the most shared effects whose third cumulants
# are all computed; with more, those of combinations, of so many by rows of the table.
_WIDE, _LOOKED_AT = 60, 30_000_000
# Directions of rough rows this much smaller than the largest are rounding.
_FLAT = 1e-8


@dataclass(frozen=True, eq=False)
class Kept:
    """Weighted draws at a node.

    Attributes
    ----------
    rest, own : (draws, rest) and (draws, own) arrays
        Deviations of the effects outside the largest factor, and of those of the groups of affected rows.
    shares : (draws,) array
    """

    affected: Affected
    rest: np.ndarray
    own: np.ndarray
    shares: np.ndarray

    def predictors(self, matrix: Any, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Deviations (n, chosen) of combinations, the rows of a sparse matrix, at some draws, and variances (n,) of
        what groups without draws add.
        """
        joint = self.affected.settled.joint
        starts = np.cumsum([0, *(block.total for block in joint.predictor.blocks)])
        parts = [matrix[:, starts[at] : starts[at + 1]] for at in joint.order]
        others = np.ones(joint.first.total)
        others[self.affected.own] = 0
        left = sparse.csr_array(parts[0] * others)
        of_rest = left @ self.affected.onto
        if len(parts) > 1:
            of_rest = of_rest + sparse.hstack(parts[1:]).toarray()
        values = of_rest @ self.rest[chosen].T + sparse.csr_array(parts[0])[:, self.affected.own] @ self.own[chosen].T
        size = joint.first.size
        roots = sparse.bsr_array((joint.inverse.transpose(0, 2, 1), np.arange(size), np.arange(size + 1)))
        added: Any = left @ roots.tocsr()
        return values, np.asarray(added.multiply(added).sum(1)).ravel()

    def thetas(self, chosen: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Deviations (chosen, total) of effects; those of groups without draws are drawn given the others."""
        joint, rest = self.affected.settled.joint, self.rest[chosen].T
        first = np.empty((joint.first.total, len(chosen)))
        if len(self.affected.groups) < joint.first.size:
            first = joint.first_given(rest, generator.normal(size=first.shape))
        first[self.affected.own] = self.own[chosen].T
        return in_place(joint.predictor, joint.order, first, rest).T


@dataclass(frozen=True, eq=False)
class EffectDraws:
    """Weighted draws given the most probable nodes, each of which represents the nodes around it: of the effects
    outside the largest factor, and of those of its groups that have skewed rows; the others are Normal given these.

    Attributes
    ----------
    by_node : dict
    nearest, shares : (nodes,) arrays
        The node that represents each, and the probabilities of nodes.
    means : (nodes, total) array
        Means of all effects, from which draws deviate.
    """

    by_node: dict[int, Kept]
    nearest: np.ndarray
    shares: np.ndarray
    means: np.ndarray

    @classmethod
    def of(cls, model: "Integrated") -> "EffectDraws | None":
        """None without groups, if no fitted row is skewed by much, or if draws are too expensive or worth too little.

        Of tables with too many rows only the skewed ones count as they are.
        """
        settled = model.nodes[0].settled
        if not integrates_groups(settled):
            return None
        every = np.arange(settled.joint.predictor.rows)
        count = _affordable(model, every, _EVALUATIONS, _DRAWS)
        if chosen := _with_enough(model, count):
            if not _is_rough(model):
                return None
            if found := cls._with(model, every, count, chosen):
                return found
        rows = np.flatnonzero(model.rough_rows)
        if not len(rows) or settled.joint.rest > _WIDE:
            return None
        chosen = _most_probable(model)
        count = _affordable(model, rows, _NEEDED, max(_ENOUGH, _FEWEST * len(chosen)))
        return cls._with(model, rows, count, chosen) if count >= _FEWEST * len(chosen) else None

    @classmethod
    def _with(cls, model: "Integrated", rows: np.ndarray, count: int, chosen: list[int]) -> "EffectDraws | None":
        shares = model.shares / model.shares.sum()
        while chosen:
            nearest = model.nearest(chosen)
            masses = np.bincount(nearest, shares, len(shares))
            by_node = {
                at: _worthwhile(
                    model, at, rows, max(int(count * float(masses[at])), min(_FEWEST, count // len(chosen)))
                )
                for at in chosen
            }
            good = {at: each for at, each in by_node.items() if each is not None}
            if len(good) == len(chosen):
                return cls(good, nearest, shares, _centres(model, nearest))
            chosen = list(good) if shares[list(good)].sum() >= _MOST else []
        return None

    @property
    def of_all(self) -> bool:
        """Whether all rows count as they are."""
        affected = next(iter(self.by_node.values())).affected
        return len(affected.rows) == affected.settled.joint.predictor.rows

    @cached_property
    def _equal(self) -> list[tuple[Kept, np.ndarray, np.ndarray]]:
        """At each node with draws: equally weighted ones of these, and the node that each stands for."""
        found, generator = [], np.random.default_rng(0)
        for at, own in self.by_node.items():
            shares = np.where(self.nearest == at, self.shares, 0.0)
            count = round(_POINTS * float(shares.sum()))
            nodes = generator.permutation(evenly_chosen(shares, count))
            found.append((own, evenly_chosen(own.shares, count), nodes))
        return found

    @property
    def nodes(self) -> np.ndarray:
        """The node that each of the draws of `predictors` stands for."""
        return np.concatenate([nodes for _, _, nodes in self._equal])

    def predictors(self, matrix: Any, added: np.ndarray) -> np.ndarray:
        """Equally weighted draws (n, draws) of combinations, the rows of a sparse matrix, with variances (n, nodes) of
        terms independent of all effects.
        """
        parts, centres = [], matrix @ self.means.T
        for own, chosen, nodes in self._equal:
            values, variances = own.predictors(matrix, chosen)
            parts.append((values + centres[:, nodes], variances[:, None] + added[:, nodes]))
        values, variances = (np.concatenate(each, axis=1) for each in zip(*parts, strict=True))
        count = values.shape[1]
        even = (np.arange(count) + 0.5) / count
        return values + np.sqrt(variances) * ndtri(np.random.default_rng(0).permutation(even))

    def given(self, node: int, matrix: Any) -> np.ndarray:
        """Equally weighted draws (n, draws) of combinations, the rows of a sparse matrix, given a node."""
        own = self.by_node[int(self.nearest[node])]
        values, variances = own.predictors(matrix, evenly_chosen(own.shares, _GIVEN))
        even = (np.arange(_GIVEN) + 0.5) / _GIVEN
        noise = np.sqrt(variances)[:, None] * ndtri(np.random.default_rng(0).permutation(even))
        return (matrix @ self.means[node])[:, None] + values + noise

    def taken(self, node: int, count: int, generator: np.random.Generator) -> np.ndarray:
        """(count, total) of the draws that represent a node, chosen by their weights."""
        own = self.by_node[int(self.nearest[node])]
        return self.means[node] + own.thetas(generator.choice(len(own.shares), count, p=own.shares), generator)


def _centres(model: "Integrated", nearest: np.ndarray) -> np.ndarray:
    """Means (nodes, total) from which draws of the nodes that represent others deviate: those of each node, given that
    what rough rows share stays where it is, as the Gaussian is no guide to it.
    """
    means = np.stack([node.settled.joint.mean for node in model.nodes])
    moved, predictor = means - means[nearest], model.nodes[0].settled.joint.predictor
    width = len(model.components.fixed[0][0]) if model.components.fixed else 0
    shared = np.unique(predictor.matrix[model.rough_rows][:, :width].toarray(), axis=0)
    _, sizes, right = np.linalg.svd(shared, full_matrices=False)
    directions = np.zeros((np.count_nonzero(sizes > _FLAT * sizes.max(initial=0.0)), predictor.total))
    directions[:, :width] = right[: len(directions)]
    for at in np.unique(nearest) if len(directions) else ():
        own = nearest == at
        toward = model.nodes[at].settled.joint.solve(directions)
        moved[own] -= np.linalg.solve(directions @ toward.T, directions @ moved[own].T).T @ toward
    return means[nearest] + moved


def rough(model: "Integrated", matrix: Any, variances: np.ndarray) -> np.ndarray:
    """Which combinations, the rows of a sparse matrix, are skewed by much by the effects that all rows share.

    `variances` (n,) are their variances given the first node. Of many combinations of many effects those with the
    largest variances are looked at.
    """
    from meanmap.ep.linear.shapes import thirds_of_combinations, thirds_of_shared

    width = len(model.components.fixed[0][0]) if model.components.fixed else 0
    third = np.zeros(matrix.shape[0])
    if width > _WIDE:
        some = np.argsort(-variances, kind="stable")[: max(1, _LOOKED_AT // len(model.observed.response))]
        x, inverse = np.unique(matrix[some][:, :width].toarray(), axis=0, return_inverse=True)
        third[some] = thirds_of_combinations(model, x)[inverse.ravel()]
    elif width:
        x, thirds = matrix[:, :width].toarray(), thirds_of_shared(model, width)
        third = (((x @ thirds.reshape(width, -1)).reshape(-1, width, width) @ x[:, :, None])[:, :, 0] * x).sum(1)
    return np.abs(third) > ROUGH * variances**1.5


def refusal(count: int) -> str:
    """A note on predictions that need draws, where there are none."""
    return (
        f"predictions of {count} rows are nan: only the prior keeps their predictors finite, as at a label without "
        "events, and weighted draws of these are too expensive or worth too little. Give the coefficient of that label "
        "a tighter prior, priors={name: (0.0, sd)}, or leave the label out"
    )


def _affordable(model: "Integrated", rows: np.ndarray, evaluations: int, most: int) -> int:
    """The number of draws of the groups of some rows can be made and kept."""
    first = model.nodes[0]
    joint = first.settled.joint
    rule = Groups(first.settled, model.family, model.observed, model.parameters(first)).dense()
    groups = len(np.unique(joint.first.index[rows]))
    room = _NUMBERS // (_EACH * (joint.rest + groups * joint.first.width))
    return min(evaluations // (len(rows) * len(rule[1])), room, most)


def _with_enough(model: "Integrated", count: int) -> list[int]:
    """The nodes that have enough of some draws; none if they have too little of the probability."""
    shares = model.shares / model.shares.sum()
    chosen = np.flatnonzero(shares * count >= _WORTH).tolist()
    return chosen if shares[chosen].sum() >= _MOST else []


def _most_probable(model: "Integrated") -> list[int]:
    """The nodes with most of the probability."""
    shares = model.shares / model.shares.sum()
    order = np.argsort(-shares, kind="stable")
    return np.sort(order[: 1 + int(np.searchsorted(np.cumsum(shares[order]), _MOST))]).tolist()


def _is_rough(model: "Integrated") -> bool:
    """Whether the predictor of a fitted row is so skewed that a corrected Normal is not to be trusted."""
    from meanmap.ep.linear.shapes import skewness

    predictor = model.nodes[0].settled.joint.predictor
    step = 1 + predictor.rows * predictor.total // _DENSE
    different = np.unique(predictor.matrix[::step].toarray(), axis=0)
    return bool((np.abs(skewness(model, different)) > ROUGH).any())


def _worthwhile(model: "Integrated", at: int, rows: np.ndarray, count: int) -> Kept | None:
    node, count = model.nodes[at], 2 * (count // 2)
    if count < _WORTH:
        return None
    affected = Affected.of(node.settled, model.family, model.observed, model.parameters(node), rows)
    found, own = affected.drawn(count, _EACH, at)
    return Kept(affected, found.draws, own, found.shares) if is_sound(found.logs[:count], _WORTH) else None
