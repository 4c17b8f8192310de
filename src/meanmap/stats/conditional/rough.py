"""Functions of z that are not smooth: steps at cuts of regression trees, and bends that are narrower than usual."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from meanmap.stats.conditional.landmarks import (
    Landmarks,
    additive_landmarks,
    joint_landmarks,
    median_distance,
    rbf_landmarks,
)
from meanmap.stats.conditional.regression import Basis, Linear
from meanmap.stats.conditional.together import Together

__all__ = ["Leaves", "RoughFunctions", "rough_bases"]

# The fewest rows in a leaf; a tree has one leaf per four times as many rows, and at most a number that can be solved
# for.
LEAST_LEAF, ROWS_FOR_A_LEAF, MOST_LEAVES = 5, 20, 60
# The number of trees in a forest, which finds cuts that one tree does not: its first cut must reduce the error by
# itself.
TREES, SEED = 12, 0
# The distance between the two nearest values of a column in lengthscales, at which the kernel is 3e-6; and the largest
# number of values.
LEAST_GAP, MOST_VALUES = 5.0, 300
# Lengthscales in median distances, for z with one column, for z with several, and for pairs of columns.
NARROW_ALONE, NARROW_TOGETHER, WIDTHS_OF_PAIRS = (0.2, 0.1, 0.05), (0.35,), (0.6, 0.35, 0.2)


@dataclass(frozen=True)
class Leaves:
    """Leaves of some trees as step functions of z, one per leaf, with equal weights of the trees.

    Attributes
    ----------
    trees : tuple of array (nodes, 4)
        For each node the column of its cut, the largest value that goes to the left, and the nodes on the left and on
        the right, -1 for a leaf.
    """

    trees: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, z: np.ndarray, targets: np.ndarray, number: int) -> "Leaves":
        """One tree of all rows, or several of rows drawn with replacement, with cuts where the targets change most."""
        from sklearn import config_context
        from sklearn.tree import DecisionTreeRegressor

        n, generator = len(z), np.random.default_rng(SEED)
        order = np.lexsort((*targets.T, *z.T))  # so that the order of the data has no effect
        z, targets = z[order], targets[order]
        leaves, narrow = int(np.clip(n // ROWS_FOR_A_LEAF, 2, MOST_LEAVES)), z.astype(np.float32)  # as trees read z
        tree, found = DecisionTreeRegressor(min_samples_leaf=LEAST_LEAF, max_leaf_nodes=leaves, random_state=SEED), []
        for _ in range(number):
            rows = np.arange(n) if number == 1 else generator.integers(0, n, n)
            with config_context(skip_parameter_validation=True):
                cuts = tree.fit(narrow[rows], np.ascontiguousarray(targets[rows]), check_input=False).tree_
            found.append(np.stack([cuts.feature, cuts.threshold, cuts.children_left, cuts.children_right], axis=1))
        return cls(tuple(found))

    def __call__(self, z: np.ndarray) -> np.ndarray:
        """The step functions at rows of z, (n, leaves)."""
        leaves = [_leaf(tree, z)[:, None] == np.flatnonzero(tree[:, 2] < 0) for tree in self.trees]
        return np.concatenate(leaves, axis=1) / np.sqrt(len(self.trees))

    def wider(self, columns: int) -> "Leaves":
        """Leaves unchanged, since no tree uses additional columns at the end."""
        return self


def _leaf(tree: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The leaf of each row."""
    at, rows = np.zeros(len(z), int), np.arange(len(z))
    while len(rows := rows[tree[at[rows], 2] >= 0]):
        column, most, left, right = tree[at[rows]].T
        at[rows] = np.where(z[rows, column.astype(int)] <= most, left, right)
    return at


def of_values(z: np.ndarray, j: int) -> tuple[Landmarks, ...]:
    """A function for each value of a column, if most values repeat: a kernel narrower than the gap between values."""
    values = np.unique(z[:, j])
    if not 2 < len(values) <= len(z) / 2:
        return ()
    metric = np.zeros((z.shape[1], 1))
    metric[j] = LEAST_GAP / np.diff(values).min()
    return (rbf_landmarks(z, metric, most=MOST_VALUES),)


def _of_pair(z: np.ndarray, pair: tuple[int, int], width: float) -> Landmarks:
    """Features for smooth functions of two columns."""
    metric = np.zeros((z.shape[1], 2))
    metric[pair, (0, 1)] = 1 / np.array([median_distance(z[:, [j]]) for j in pair])
    return rbf_landmarks(z, metric / (width * median_distance(z @ metric)))


@dataclass
class RoughFunctions:
    """Functions of z that depend on no target, each computed when first needed, and kept.

    `sample` are the rows from which landmarks are chosen. Only the first `single` columns are used.
    """

    z: np.ndarray
    sample: np.ndarray
    linear: Linear
    single: int
    together: Together | None = None
    of_pairs: dict[tuple[int, int], list[Basis]] = field(default_factory=dict)
    known: dict[int, np.ndarray] = field(default_factory=dict)

    @property
    def own(self) -> np.ndarray:
        """The columns that are used."""
        return self.z[:, : self.single]

    @cached_property
    def along(self) -> tuple[Any, ...]:
        """Features for smooth functions of each column."""
        return additive_landmarks(self.own[self.sample])

    @cached_property
    def narrow(self) -> list[Any]:
        """Kernels that are narrower than usual."""
        widths = NARROW_ALONE if self.single == 1 else NARROW_TOGETHER
        return [joint_landmarks(self.own[self.sample], width) for width in widths]

    @cached_property
    def narrow_bases(self) -> list[Basis]:
        """The bases of these kernels alone."""
        return [self.basis(*kernels) for kernels in self.narrow]

    @cached_property
    def bases_beside(self) -> list[Basis]:
        """Bases of smooth functions of each column with indicators of repeated values, and with products of columns."""
        some = self.own[self.sample]
        repeated = tuple(part for j in range(self.single) for part in of_values(some, j))
        kinds = [repeated] if repeated else []
        kinds += [(self.together,)] if self.together is not None else []
        return [self.basis(*self.along, *kind) for kind in kinds]

    def beside_pair(self, pair: tuple[int, int]) -> list[Basis]:
        """Bases of smooth functions of each column and of a pair, as products fit only part of a wave or chessboard."""
        if pair not in self.of_pairs:
            some = self.own[self.sample]
            self.of_pairs[pair] = [self.basis(*self.along, _of_pair(some, pair, width)) for width in WIDTHS_OF_PAIRS]
        return self.of_pairs[pair]

    def basis(self, *parts: Any) -> Basis:
        """The basis of some functions of the columns that are used."""
        wider = tuple(part.wider(self.z.shape[1]) for part in parts)
        return Basis.of_features(wider, [self._values(*each) for each in zip(parts, wider, strict=True)], self.linear)

    def _values(self, part: Any, wider: Any) -> np.ndarray:
        """Features at all rows; those along each column are part of most bases, and kept."""
        if not any(part is each for each in self.along):
            return wider(self.z)
        if id(part) not in self.known:
            self.known[id(part)] = wider(self.z)
        return self.known[id(part)]


def rough_bases(
    functions: RoughFunctions,
    targets: list[np.ndarray],
    pairs: Sequence[tuple[int, int]] = (),
    forest: bool = True,
) -> list[Basis]:
    """Bases of narrow kernels, and of smooth functions of each column with products or leaves of trees for each target.

    Trees are fitted to the targets of one side only. If they overfit, they fit noise of this side, which given z is
    independent of the other side. Without a `forest` there are fewer functions.
    """
    along, own = functions.along, functions.own
    one = [Leaves.of(own, target, 1) for target in targets]
    bases = [*functions.narrow_bases, *(functions.basis(*along, leaves) for leaves in one), *functions.bases_beside]
    bases += [basis for pair in pairs for basis in functions.beside_pair(pair)]
    bases.append(functions.basis(*functions.narrow[0], one[0]))
    if forest:
        bases.append(functions.basis(*along, Leaves.of(own, np.concatenate(targets, axis=1), TREES)))
    return bases
