"""Trees with randomly placed cuts, as arrays: which leaf of each tree a row falls into."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Trees"]


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees one after the other.

    Attributes
    ----------
    feature, threshold : array (nodes,)
        A row goes to the left where its feature is at most the threshold; −1 at leaves.
    children : array (nodes, 2)
        Left and right; a leaf is its own child.
    roots : array (T,)
    depth : int
        Of the deepest tree.
    """

    feature: np.ndarray
    threshold: np.ndarray
    children: np.ndarray
    roots: np.ndarray
    depth: int

    @classmethod
    def fit(cls, rows: np.ndarray, targets: np.ndarray, count: int, leaf: int, seed: int) -> "Trees":
        """Extremely randomised trees (Geurts, Ernst & Wehenkel 2006) with at least `leaf` rows in a leaf."""
        from sklearn.ensemble import ExtraTreesRegressor

        forest = ExtraTreesRegressor(count, min_samples_leaf=leaf, max_features=0.6, random_state=seed % 2**32)
        return cls.of([each.tree_ for each in forest.fit(rows, targets).estimators_])

    @classmethod
    def of(cls, trees: Sequence[Any]) -> "Trees":
        """From what scikit-learn has grown, the `tree_` of each."""
        sizes = np.array([tree.node_count for tree in trees])
        roots = np.cumsum(sizes) - sizes
        feature = np.concatenate([tree.feature for tree in trees])
        inside = feature >= 0
        nodes = np.arange(len(feature))
        sides = [
            np.where(inside, np.concatenate([getattr(t, side) + r for t, r in zip(trees, roots, strict=True)]), nodes)
            for side in ("children_left", "children_right")
        ]
        threshold = np.concatenate([tree.threshold for tree in trees])
        depth = max(int(tree.max_depth) for tree in trees)
        return cls(np.where(inside, feature, -1), threshold, np.stack(sides, axis=1), roots, depth)

    @property
    def nodes(self) -> int:
        """Of all trees together."""
        return len(self.feature)

    def leaves(self, rows: np.ndarray, chosen: np.ndarray | None = None) -> np.ndarray:
        """The node of the leaf of each row in each tree, (n, T), or in some trees of its own, `chosen` (n, k)."""
        rows = rows.astype(np.float32)  # as they are when trees are grown
        at = np.repeat(self.roots[None], len(rows), axis=0) if chosen is None else self.roots[chosen]
        which = np.arange(len(rows))[:, None]
        for _ in range(self.depth):
            feature = self.feature[at]
            right = rows[which, np.maximum(feature, 0)] > self.threshold[at]
            at = self.children[at, right.astype(np.int64)]
        return at
