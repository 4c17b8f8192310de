"""Weights on training rows, read off a fitted regression: then it is a conditional operator, not only a mean."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from meanmap.bp.conditionals.trees import Trees
from meanmap.core.errors import KindError

__all__ = ["LeafWeights", "NearestWeights", "RowWeights", "row_weights"]


@dataclass(frozen=True, eq=False)
class LeafWeights:
    """Of a forest: in each tree the training rows in the same leaf, alike (Meinshausen 2006).

    Attributes
    ----------
    trees : Trees
    leaves : array (n, T)
        Those of the training rows.
    """

    trees: Trees
    leaves: np.ndarray

    def __call__(self, new: np.ndarray) -> np.ndarray:
        """w(x) (m, n) at new rows; sums are one."""
        return self.sparse(new).toarray()

    def sparse(self, new: np.ndarray) -> Any:
        """w(x) as a sparse matrix by rows: most training rows share no leaf with a new one."""
        return self._ones(self.trees.leaves(new)) @ self._shares

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
        """What each training row counts in each leaf, (leaves, n), sparse."""
        there = self._ones(self.leaves)
        sizes = np.maximum(there.sum(axis=0), 1) * self.leaves.shape[1]
        return (there @ scipy.sparse.diags_array(1 / sizes)).T.tocsr()

    def _ones(self, leaves: np.ndarray) -> Any:
        n, each = leaves.shape
        pointers = np.arange(n + 1) * each
        return scipy.sparse.csr_array((np.ones(leaves.size), leaves.ravel(), pointers), shape=(n, self.trees.nodes))


@dataclass(frozen=True, eq=False)
class NearestWeights:
    """The nearest training rows, alike.

    Attributes
    ----------
    rows : array (n, q)
    number : int
        How many of them.
    """

    rows: np.ndarray
    number: int

    def __call__(self, new: np.ndarray) -> np.ndarray:
        """w(x) (m, n) at new rows; sums are one."""
        nearest = np.reshape(self._tree.query(new, self.number)[1], (len(new), -1))
        weights = np.zeros((len(new), len(self.rows)))
        np.put_along_axis(weights, nearest, 1 / self.number, axis=1)
        return weights

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import KDTree

        return KDTree(self.rows)


RowWeights = LeafWeights | NearestWeights


def row_weights(regression: Any, rows: np.ndarray) -> RowWeights:
    """The weights with which a regression that was fitted to `rows` averages their targets.

    Of forests and trees of scikit-learn, which say in which leaf a row lies, and of its nearest neighbours. Nothing of
    scikit-learn is kept: what is found can be saved.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> x = np.array([[0.0], [1.0], [5.0]])
    >>> row_weights(KNeighborsRegressor(2).fit(x, [0, 0, 1]), x)(np.array([[0.4]])).tolist()
    [[0.5, 0.5, 0.0]]
    """
    grown = getattr(regression, "estimators_", [regression])
    if isinstance(grown, list) and all(hasattr(each, "tree_") for each in grown):
        trees = Trees.of([each.tree_ for each in grown])
        return LeafWeights(trees, trees.leaves(rows))
    plain = getattr(regression, "effective_metric_", None) == "euclidean" and regression.weights == "uniform"
    if hasattr(regression, "kneighbors") and plain:
        return NearestWeights(rows, int(regression.n_neighbors))
    raise KindError(
        f"{regression!r} gives no weights on training rows; expected a forest or tree of scikit-learn, or its nearest "
        "neighbours by Euclidean distance, all alike, such as sklearn.ensemble.ExtraTreesRegressor(min_samples_leaf=5)."
    )
