"""The weights of a fitted regression on training rows, which make it a conditional operator and not only a mean."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from meanmap.bp.conditionals.trees import Trees
from meanmap.core.errors import KindError

__all__ = ["LeafWeights", "Learner", "NearestWeights", "RowWeights", "grown", "learned", "nearest", "row_weights"]

# Trees of a forest; wide tables get fewer, so that trees × columns are bounded. Then the fewest rows in a leaf, the
# share and the maximum number of columns among which each split chooses, and the fewest cuts that it compares: in
# narrow tables each column is cut at several places.
TREES, FEW_TREES, TREES_TIMES_COLUMNS, LEAST_IN_LEAF, SHARE, MOST_COLUMNS, LEAST_CUTS = 32, 16, 800, 5, 0.7, 10, 8
NEIGHBOURS = 10
# Squared distances that differ by less than this share count as equal.
SAME = 1e-9


@dataclass(frozen=True, eq=False)
class LeafWeights:
    """Weights by a forest: in each tree, training rows in the same leaf count equally (Meinshausen 2006).

    Attributes
    ----------
    trees : Trees
    leaves : array (n, T)
        Those of the training rows.
    """

    trees: Trees
    leaves: np.ndarray

    def sparse(self, new: np.ndarray) -> Any:
        """w(x) (m, n) at new rows, sparse; sums are one."""
        return self._ones(self.trees.leaves(new)) @ self._shares

    def means_without(self, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Means of values (n, m), zero at the row itself, by the weights of all others at some training rows (m,)."""
        leaves, members = self.leaves[rows], self._ones(self.leaves).T.tocsr()
        sums = members.astype(values.dtype) @ values
        shares = 1 / np.diff(members.indptr)[leaves]
        means = sums[leaves, np.arange(len(rows))[:, None]] * shares
        return np.sum(means, axis=1) / np.sum(1 - shares, axis=1)

    def draw(self, new: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """A training row (m,) for each new one, with these probabilities: any tree, and any row in its leaf."""
        leaves = self.trees.leaves(new, random.integers(len(self.trees.roots), size=(len(new), 1)))[:, 0]
        members, starts = self._members
        sizes = starts[leaves + 1] - starts[leaves]
        return members[starts[leaves] + (random.random(len(new)) * sizes).astype(np.int64)]

    @cached_property
    def _members(self) -> tuple[np.ndarray, np.ndarray]:
        """The training rows in each leaf, leaf by leaf, and where each begins."""
        flat = self.leaves.ravel()
        order = np.argsort(flat, kind="stable")
        return order // self.leaves.shape[1], np.searchsorted(flat[order], np.arange(self.trees.nodes + 1))

    @cached_property
    def _shares(self) -> Any:
        """The weight of each training row in each leaf, (leaves, n), sparse."""
        sizes = np.bincount(self.leaves.ravel()) * self.leaves.shape[1]
        return self._at(self.leaves, 1 / sizes[self.leaves.ravel()]).T.tocsr()

    def _ones(self, leaves: np.ndarray) -> Any:
        return self._at(leaves, np.ones(leaves.size))

    def _at(self, leaves: np.ndarray, values: np.ndarray) -> Any:
        n, each = leaves.shape
        pointers = np.arange(n + 1) * each
        return scipy.sparse.csr_array((values, leaves.ravel(), pointers), shape=(n, self.trees.nodes))


@dataclass(frozen=True, eq=False)
class NearestWeights:
    """The nearest training rows, equally weighted, with ties: where cells are filled in, there are many.

    Attributes
    ----------
    rows : array (n, q)
    number : int
        The number of them.
    """

    rows: np.ndarray
    number: int

    def sparse(self, new: np.ndarray) -> Any:
        """w(x) (m, n) at new rows, sparse; sums are one."""
        middle, rows, squares = self._about
        apart = (-2 * (new - middle)) @ rows.T
        apart += squares
        last = np.partition(apart, self.number - 1, axis=1)[:, self.number - 1 : self.number]
        close = np.flatnonzero(apart <= last + SAME * (np.abs(last) + squares.mean()))
        row, near = np.divmod(close, len(self.rows))
        counts = np.bincount(row, minlength=len(new))
        pointers = np.append(0, np.cumsum(counts))
        return scipy.sparse.csr_array((1 / counts[row], near, pointers), shape=(len(new), len(self.rows)))

    @cached_property
    def _about(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The rows about their middle, where rounding is least, and their squared lengths."""
        middle = self.rows.mean(axis=0)
        return middle, self.rows - middle, np.sum((self.rows - middle) ** 2, axis=1)


RowWeights = LeafWeights | NearestWeights
# From training rows (n, q) and targets (n, k) to weights on the rows.
Learner = Callable[[np.ndarray, np.ndarray], RowWeights]


def grown(rows: np.ndarray, targets: np.ndarray, of: int | None = None, least: int = LEAST_IN_LEAF) -> LeafWeights:
    """Grow extremely randomised trees for all targets or one of them, with a minimum of rows in each leaf."""
    width, chosen = rows.shape[1], targets if of is None else targets[:, [of]]
    copies = int(np.ceil(LEAST_CUTS / width))
    share = min(SHARE, MOST_COLUMNS / width) if copies == 1 else 1.0
    number = int(np.clip(TREES_TIMES_COLUMNS // width, FEW_TREES, TREES))
    trees, leaves = Trees.fit(np.tile(rows, copies), chosen, number, least, 0, share)
    return LeafWeights(replace(trees, feature=np.where(trees.feature < 0, -1, trees.feature % width)), leaves)


def nearest(rows: np.ndarray, targets: np.ndarray) -> NearestWeights:
    """Weights of the ten nearest neighbours, whatever the targets are."""
    del targets
    return NearestWeights(rows, min(NEIGHBOURS, len(rows)))


def learned(regression: object, rows: np.ndarray, targets: np.ndarray) -> RowWeights:
    """Weights by a regression of scikit-learn, which is fitted here."""
    from sklearn.base import clone
    from sklearn.utils import get_tags

    fresh: Any = clone(regression)
    alone = targets.shape[1] == 1 or not get_tags(regression).target_tags.multi_output
    return row_weights(fresh.fit(rows, targets[:, 0] if alone else targets), rows)


def row_weights(regression: Any, rows: np.ndarray) -> RowWeights:
    """The weights with which a regression that was fitted to `rows` averages their targets.

    Of forests and trees of scikit-learn, from the leaf of each row, and of its nearest neighbours. No object of
    scikit-learn is kept, so that the result can be saved.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> x = np.array([[0.0], [1.0], [5.0]])
    >>> row_weights(KNeighborsRegressor(2).fit(x, [0, 0, 1]), x).sparse(np.array([[0.4]])).toarray().tolist()
    [[0.5, 0.5, 0.0]]
    """
    parts = getattr(regression, "estimators_", [regression])
    if isinstance(parts, list) and all(hasattr(each, "tree_") for each in parts):
        trees = Trees.of([each.tree_ for each in parts])
        return LeafWeights(trees, trees.leaves(rows))
    plain = getattr(regression, "effective_metric_", None) == "euclidean" and regression.weights == "uniform"
    if plain and regression.n_neighbors:
        return NearestWeights(rows, int(regression.n_neighbors))
    raise KindError(
        f"{regression!r} has no weights on training rows; expected a forest or tree of scikit-learn, or its nearest "
        "neighbours with Euclidean distance and uniform weights, such as "
        "sklearn.ensemble.ExtraTreesRegressor(min_samples_leaf=5)."
    )
