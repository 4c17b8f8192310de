"""Weights on training rows, read off a fitted regression: then it is a conditional operator, not only a mean."""

from typing import Any

import numpy as np
import scipy.sparse

from meanmap.core.errors import KindError

__all__ = ["row_weights"]


def row_weights(regression: Any, rows: np.ndarray, new: np.ndarray) -> np.ndarray:
    """w(x) (m, n) with which a regression that was fitted to `rows` averages their targets at new rows; sums are one.

    Of forests and trees of scikit-learn, which say in which leaf a row lies (Meinshausen 2006), and of its nearest
    neighbours.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> x = np.array([[0.0], [1.0], [5.0]])
    >>> row_weights(KNeighborsRegressor(2).fit(x, [0, 0, 1]), x, np.array([[0.4]])).tolist()
    [[0.5, 0.5, 0.0]]
    """
    if hasattr(regression, "apply"):
        leaves, there = (np.reshape(regression.apply(x), (len(x), -1)).astype(np.int64) for x in (new, rows))
        sizes = np.maximum(leaves.max(axis=0), there.max(axis=0)) + 1
        start = np.cumsum(sizes) - sizes
        first, second = (_ones(each + start, int(sizes.sum())) for each in (leaves, there))
        second = second @ scipy.sparse.diags_array(1 / np.maximum(second.sum(axis=0), 1))
        return (first @ second.T).toarray() / leaves.shape[1]
    if hasattr(regression, "kneighbors"):
        nearest = regression.kneighbors(new, return_distance=False)
        weights = np.zeros((len(new), len(rows)))
        np.put_along_axis(weights, nearest, 1 / nearest.shape[1], axis=1)
        return weights
    raise KindError(
        f"{regression!r} gives no weights on training rows; expected a forest or tree of scikit-learn, or its nearest "
        "neighbours, such as sklearn.ensemble.ExtraTreesRegressor(min_samples_leaf=5)."
    )


def _ones(columns: np.ndarray, width: int) -> Any:
    n, each = columns.shape
    pointers = np.arange(n + 1) * each
    return scipy.sparse.csr_array((np.ones(columns.size), columns.ravel(), pointers), shape=(n, width))
