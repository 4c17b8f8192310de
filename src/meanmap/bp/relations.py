"""Relations between kinds of variables, learned from pairs: an operator for each direction, whatever graph they serve.

The learning view (Song et al. 2011, appendix 5 and 6): potentials are fitted such that, at the fixed point of belief
propagation, the model agrees with the data on every edge and node. A message divided by its fixed point is then

    m_ts(x_s) = E[Π_u m_ut(x_t) | x_s]   and   belief(x_s) = p(x_s) Π_t m_ts(x_s),

so that no potential has to be found: the conditional expectations are regressions on pairs, one for each direction.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from meanmap.bp.choice import CHOICE_ROWS
from meanmap.bp.coordinates import MOST_FEATURES, TOLERANCE, coordinates, rescaled, transformed
from meanmap.bp.operators import EdgeMatrices, EdgeOperators, Factored
from meanmap.bp.samples import NodeSample
from meanmap.bp.updates import Constant, Full, Linear, Update
from meanmap.bp.variables import Variable
from meanmap.core.points import rows
from meanmap.core.progress import track
from meanmap.embeddings.conditional import spread_rows
from meanmap.kernels.base import Kernel
from meanmap.kernels.gram import gram_matrix
from meanmap.linalg.ridge import Ridge
from meanmap.linalg.ridge_path import choose_ridge_features

__all__ = ["Direction", "Relations"]

# Multiples of the median distance among which lengthscales are chosen: wider features than that cannot tell two modes.
LENGTHSCALES = (0.1, 0.15, 0.25, 0.35)
# Messages on graphs with cycles are products of many and get narrow: a regression is judged by how well it predicts
# functions of this width, in median distances.
TARGET = 0.25
# The error hardly depends on the ridge over decades, or on the lengthscale; but what is rough in an operator is mostly
# noise, dips below zero and is multiplied by products of messages. The widest lengthscale is taken whose error is
# within this share of the least, and then the largest ridge.
INDIFFERENCE = 0.02
# Ridges among which is chosen, for m pairs times mean k(x, x) / √m: below, operators extrapolate wildly wherever one
# end of a relation was never seen.
RIDGES = np.geomspace(1e-2, 1e1, 13)
# A lengthscale is chosen on up to so many relations of a variable.
MOST_JUDGES = 8
# Pairs that are read at once: the sums over a million pairs need the memory of so many.
CHUNK = 50_000


@dataclass(frozen=True, eq=False)
class Direction:
    """One direction of a relation: kinds of variables, and the rows (m, 2) of their points, (x_t, x_s)."""

    sender: Hashable
    receiver: Hashable
    pairs: np.ndarray


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
        self, samples: dict[Hashable, NodeSample], directions: list[Direction], update: Update, ridge: float | None
    ):
        self.update, self.directions = update, directions
        kernels, self.ridges = choose(samples, directions, ridge)
        self.variables = {name: Variable.of(sample, kernels[name], update, name) for name, sample in samples.items()}
        learned = [self._learn(d, lam) for d, lam in track(list(zip(directions, self.ridges, strict=True)), "learning")]
        self.operators = self._operators(learned)
        self.readouts = None
        if isinstance(update, Constant):
            ends = [self.variables[d.receiver] for d in directions]
            self.readouts = [
                into @ transformed(end.features, end.atoms).T for into, end in zip(learned, ends, strict=True)
            ]

    @property
    def length(self) -> int:
        """L, the length of the longest message."""
        return max(variable.size for variable in self.variables.values())

    def _learn(self, direction: Direction, ridge: float) -> np.ndarray:
        """From values of p at the sender's points to coefficients of the message, (L_t, r)."""
        sender, receiver = self.variables[direction.sender], self.variables[direction.receiver]
        if isinstance(self.update, Constant):
            return _streamed(sender, receiver, direction.pairs, ridge)
        if isinstance(self.update, Linear):
            phi = transformed(receiver.features, rows(receiver.sample.points, direction.pairs[:, 1]))
            weights = Ridge.factor_features(phi, ridge=ridge).solve(phi.T).T / len(phi)
        else:
            gram = gram_matrix(receiver.kernel, rows(receiver.sample.points, direction.pairs[:, 1]))
            weights = Ridge.factor(gram, ridge=ridge).solve(np.eye(len(gram))).T
        into = np.zeros((sender.size, weights.shape[1]))
        np.add.at(into, direction.pairs[:, 0], weights)
        return into

    def _out(self, direction: Direction) -> np.ndarray:
        """The functions that a message is combined from, at the receiver's points, (r, L_s)."""
        receiver = self.variables[direction.receiver]
        if isinstance(self.update, Full):
            return gram_matrix(
                receiver.kernel, rows(receiver.sample.points, direction.pairs[:, 1]), receiver.sample.points
            )
        return transformed(receiver.features, receiver.points).T

    def _operators(self, learned: list[np.ndarray]) -> EdgeOperators:
        number, most = len(learned), self.length
        outs = [self._out(direction) for direction in self.directions]
        if not isinstance(self.update, Linear):
            matrices = np.zeros((number, most, most))
            for e, (into, out) in enumerate(zip(learned, outs, strict=True)):
                matrices[e, : len(into), : out.shape[1]] = into @ out
            return EdgeMatrices(matrices)
        rank = max(len(out) for out in outs)
        into, out = np.zeros((number, most, rank)), np.zeros((number, rank, most))
        for e in range(number):
            into[e, : len(learned[e]), : learned[e].shape[1]] = learned[e]
            out[e, : len(outs[e]), : outs[e].shape[1]] = outs[e]
        return Factored(into, out)


def _streamed(sender: Variable, receiver: Variable, pairs: np.ndarray, ridge: float) -> np.ndarray:
    """[(C_ss + λ I)⁻¹ (1/m) Σᵢ φ(x_sᵢ) V(x_tᵢ)]ᵀ (L_t, r), the sums piece by piece. Cost O(m (r + L_t)²)."""
    assert sender.tensor is not None
    rank = receiver.features.size
    covariance, cross = np.zeros((rank, rank)), np.zeros((rank, sender.size))
    for start in range(0, len(pairs), CHUNK):
        part = pairs[start : start + CHUNK]
        phi = transformed(receiver.features, rows(receiver.sample.points, part[:, 1]))
        covariance += phi.T @ phi
        cross += phi.T @ transformed(sender.tensor, rows(sender.sample.points, part[:, 0]))
    shifted = covariance / len(pairs) + ridge * np.eye(rank)
    return sender.interpolation(scipy.linalg.solve(shifted, cross / len(pairs), assume_a="pos")).T


def choose(
    samples: dict[Hashable, NodeSample], directions: list[Direction], ridge: float | None
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
        tried: list[tuple[float, Kernel, dict[int, float]]] = []
        for multiple in LENGTHSCALES if sample.searched else (1.0,):
            kernel = rescaled(sample, multiple)
            features = coordinates(kernel, sample.points, TOLERANCE, MOST_FEATURES)
            found = {e: _score(features, targets[directions[e].sender], samples, directions[e], ridge) for e in judges}
            tried.append((sum(score for score, _ in found.values()), kernel, {e: lam for e, (_, lam) in found.items()}))
        least = min(score for score, _, _ in tried)
        _, kernels[name], chosen = [each for each in tried if each[0] <= (1 + INDIFFERENCE) * least][-1]
        # Directions that were not asked take the geometric mean of the shifts m λ that were chosen.
        shift = float(np.exp(np.mean([np.log(lam * len(directions[e].pairs)) for e, lam in chosen.items()])))
        for e in arriving:
            ridges[e] = ridge if ridge is not None else chosen.get(e, shift / len(directions[e].pairs))
    return kernels, ridges


def _score(features: Any, target: Any, samples: dict, direction: Direction, ridge: float | None) -> tuple[float, float]:
    """The leave-one-out error and its ridge; what was chosen on fewer pairs keeps m λ, the shift that smooths."""
    pairs = direction.pairs[spread_rows(len(direction.pairs), CHOICE_ROWS)]
    phi = transformed(features, rows(samples[direction.receiver].points, pairs[:, 1]))
    psi = transformed(target, rows(samples[direction.sender].points, pairs[:, 0]))
    total, share = len(direction.pairs), len(pairs) / len(direction.pairs)
    scale = np.sum(phi**2) / len(phi) / np.sqrt(total) / share
    path = choose_ridge_features(phi, psi, ridges=RIDGES * scale if ridge is None else np.array([ridge / share]))
    scores, grid = np.asarray(path.scores), np.asarray(path.ridges)
    chosen = grid[scores <= (1 + INDIFFERENCE) * scores.min()].max()
    return float(scores.min()), float(chosen) * share
