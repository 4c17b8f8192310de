"""Relations between kinds of variables, learned from pairs: an operator for each direction, whatever graph they serve.

The learning view (Song et al. 2011, appendix 5 and 6): potentials are fitted such that, at the fixed point of belief
propagation, the model agrees with the data on every edge and node. A message divided by its fixed point is then

    m_ts(x_s) = E[Π_u m_ut(x_t) | x_s]   and   belief(x_s) = p(x_s) Π_t m_ts(x_s),

so that no potential has to be found: the conditional expectations are regressions on pairs, one for each direction,
with an intercept on trees.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.bp.edges.coordinates import MOST_FEATURES, TOLERANCE, coordinates, rescaled, transformed
from meanmap.bp.edges.learning import CHOICE_ROWS
from meanmap.bp.edges.samples import Direction, NodeSample
from meanmap.bp.edges.updates import Update
from meanmap.core.points import rows, spread_rows
from meanmap.core.progress import track
from meanmap.graphs import Graph
from meanmap.kernels.base import Kernel
from meanmap.learning.fit import nearly_least
from meanmap.linalg.ridge_path import choose_ridge_features

__all__ = ["Manner", "Relations"]

# Multiples of the median distance among which lengthscales are chosen: wider features cannot separate two modes.
LENGTHSCALES = (0.1, 0.15, 0.25, 0.35)
# Messages on graphs with cycles are products of many and get narrow: a regression is judged by how well it predicts
# functions of this width, in median distances.
TARGET = 0.25
# A lengthscale is chosen on up to this many relations of a variable.
MOST_JUDGES = 8


@dataclass(frozen=True, eq=False)
class Manner:
    """The settings by which operators are estimated.

    Attributes
    ----------
    keeps : bool
        Whether messages keep their information over many steps: a constant message stays constant, and the shrinkage of
        the ridge is compensated.
    ridges : array
        Among which is chosen, for m pairs times mean k(x, x) / √m.
    indifference : float
        The widest lengthscale is taken whose error is within this share of the least, and then the largest ridge.
    """

    keeps: bool
    ridges: np.ndarray
    indifference: float

    @classmethod
    def on(cls, graph: Graph) -> "Manner":
        """The setting for a graph, by whether many of its edges close cycles."""
        edges, nodes = np.bincount(graph.components[graph.sources]) / 2, np.bincount(graph.components)
        closing = np.maximum(edges - nodes, 0).sum()  # a cycle, but for the first one of each component
        return ROUND_CYCLES if closing > MOST_CYCLES * len(graph.edges) else ALONG_TREES


# Along a tree each message is counted once, after any number of steps, and errors of operators add up: constants are
# kept, errors are smallest, and updates compensate the shrinkage of the ridge. With larger ridges the mean in the
# middle of ten Gaussian variables, each correlated by .9 with the one before, was .7 of its deviation off. Smaller ones
# extrapolate wildly where an end was never seen.
ALONG_TREES = Manner(True, np.geomspace(1e-3, 1e1, 17), 0.0)
# Around short cycles evidence is counted repeatedly, and beliefs become overconfident; smooth operators that forget a
# little with each step are better there. The error hardly depends on the ridge over powers of ten, but the rough part
# of an operator is mostly noise, which products of messages multiply. With constants kept, errors are 1 to 6%
# larger on rings of grey levels, and a third larger in a hole of 20 × 20 pixels; with the ridge of least error, another
# 5 to 10%. On six new images of strokes, blobs and rings, constants made no difference where pixels were observed (1%
# less to equal), and in holes of 16 × 16 pixels errors were .79, 1.04, .84, 1.35, 1.09 and 1.08 times as large.
ROUND_CYCLES = Manner(False, np.geomspace(1e-2, 1e1, 13), 0.02)
# A graph has many cycles if more than this share of its edges close one, but for the first: about half on a grid, none
# on a ring, however short.
MOST_CYCLES = 0.1


class Relations:
    """Learned operators.

    Attributes
    ----------
    variables : dict
        A `Variable` for each kind.
    directions : list of Direction
    ridges : list of float
        λ of each direction.
    operators : EdgeOperators
        One for each direction, padded to the longest message.
    readouts : list of arrays (L_t, atoms of s), or None
        The same operators with values at the receiver's atoms, where these are not its message points.
    """

    def __init__(
        self,
        samples: dict[Hashable, NodeSample],
        directions: list[Direction],
        update: Update,
        ridge: float | None,
        manner: Manner = ROUND_CYCLES,
    ):
        self.update, self.directions, self.manner = update, directions, manner
        kernels, self.ridges = choose(samples, directions, ridge, manner)
        self.variables = {name: update.variable(sample, kernels[name], name) for name, sample in samples.items()}
        learned = [
            update.learn(self.variables[d.sender], self.variables[d.receiver], d.pairs, ridge, manner.keeps)
            for d, ridge in track(list(zip(directions, self.ridges, strict=True)), "learning")
        ]
        into = [matrix for matrix, _ in learned]
        covers = [cover for _, cover in learned]
        self.operators = update.operators(into, self._out(covers, "points"), self.length)
        self.readouts = None
        if any(variable.tensor is not None for variable in self.variables.values()):
            self.readouts = [one @ other for one, other in zip(into, self._out(covers, "atoms"), strict=True)]

    def _out(self, covers: list[np.ndarray], where: str) -> list[np.ndarray]:
        """The functions that messages are combined from, (1 + r, n), at points or at atoms of their receivers.

        The first is a constant: 1 at points that were seen in a direction and near these, and 0 far from all, so that a
        message does not go where its receiver never was.
        """
        found = []
        for direction, cover in zip(self.directions, covers, strict=True):
            end = self.variables[direction.receiver]
            functions = self.update.functions(end, getattr(end, where), direction.pairs)
            found.append(np.concatenate([np.clip(2 * cover @ functions, 0.0, 1.0)[None], functions]))
        return found

    @property
    def length(self) -> int:
        """L, the length of the longest message."""
        return max(variable.size for variable in self.variables.values())


def choose(
    samples: dict[Hashable, NodeSample], directions: list[Direction], ridge: float | None, manner: Manner
) -> tuple[dict[Hashable, Kernel], list[float]]:
    """A lengthscale for each kind and a ridge for each direction, of least leave-one-out error.

    The error is that of predicting functions of x_t of width `TARGET`, by their coordinates, from x_s.
    """
    targets = {}
    for name, sample in samples.items():
        kernel = rescaled(sample, TARGET)
        targets[name] = coordinates(kernel, sample.points, TOLERANCE, MOST_FEATURES)
    kernels: dict[Hashable, Kernel] = {}
    ridges = [0.0] * len(directions)
    for name, sample in samples.items():
        arriving = [e for e, direction in enumerate(directions) if direction.receiver == name]
        judges = [arriving[i] for i in spread_rows(len(arriving), MOST_JUDGES)]
        tried = [rescaled(sample, multiple) for multiple in (LENGTHSCALES if sample.searched else (1.0,))]
        found = []
        for kernel in tried:
            features = coordinates(kernel, sample.points, TOLERANCE, MOST_FEATURES)
            seen = ((e, targets[directions[e].sender]) for e in judges)
            found.append({e: _score(features, end, samples, directions[e], ridge, manner) for e, end in seen})
        errors = np.array([sum(error for error, _ in judged.values()) for judged in found])
        widest = nearly_least(errors, manner.indifference)[-1]
        kernels[name], chosen = tried[widest], {e: lam for e, (_, lam) in found[widest].items()}
        # Directions without a choice of their own use the geometric mean of the chosen shifts m λ.
        shift = float(np.exp(np.mean([np.log(lam * len(directions[e].pairs)) for e, lam in chosen.items()])))
        for e in arriving:
            ridges[e] = ridge if ridge is not None else chosen.get(e, shift / len(directions[e].pairs))
    return kernels, ridges


def _score(
    features: Any, target: Any, samples: dict, direction: Direction, ridge: float | None, manner: Manner
) -> tuple[float, float]:
    """The leave-one-out error and its ridge; what was chosen on fewer pairs keeps m λ, the shift that smooths."""
    pairs = direction.pairs[spread_rows(len(direction.pairs), CHOICE_ROWS)]
    phi = transformed(features, rows(samples[direction.receiver].points, pairs[:, 1]))
    psi = transformed(target, rows(samples[direction.sender].points, pairs[:, 0]))
    total, share = len(direction.pairs), len(pairs) / len(direction.pairs)
    scale = np.sum(phi**2) / len(phi) / np.sqrt(total) / share
    if manner.keeps:
        phi, psi = phi - phi.mean(axis=0), psi - psi.mean(axis=0)
    path = choose_ridge_features(phi, psi, ridges=manner.ridges * scale if ridge is None else np.array([ridge / share]))
    scores, grid = np.asarray(path.scores), np.asarray(path.ridges)
    chosen = grid[nearly_least(scores, manner.indifference)].max()
    return float(scores.min()), float(chosen) * share
