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
    def fit(
        cls,
        rows: np.ndarray,
        targets: np.ndarray,
        count: int,
        leaf: int,
        seed: int,
        share: float = 0.6,
        most: int = 2**31,
    ) -> tuple["Trees", np.ndarray]:
        """Extremely randomised trees (Geurts, Ernst & Wehenkel 2006) with at least `leaf` rows in a leaf, which cut by
        the best of a share of the columns; of several targets, in the sum of their variances. Each is grown on up to
        `most` rows drawn at random. Also gives the `leaves` of all rows.

        The same as of scikit-learn's `ExtraTreesRegressor`, which looks up the settings of each tree five times: of
        small forests that is a fifth of the time.
        """
        from sklearn import config_context
        from sklearn.tree import ExtraTreeRegressor

        random, grown = np.random.RandomState(seed % 2**32), []
        seeds = random.randint(np.iinfo(np.int32).max, size=count)
        narrow, targets = np.ascontiguousarray(rows, dtype=np.float32), np.ascontiguousarray(targets, dtype=float)
        tree = ExtraTreeRegressor(min_samples_leaf=leaf, max_features=share, random_state=random)
        with config_context(skip_parameter_validation=True):
            for each in seeds:
                random.seed(each)  # a new generator for each tree would take longer than some trees
                few = (
                    slice(None) if most is None or len(rows) <= most else random.choice(len(rows), most, replace=False)
                )
                grown.append(tree.fit(narrow[few], targets[few], check_input=False).tree_)
        found = cls.of(grown)
        return found, np.stack([tree.apply(narrow) for tree in grown], axis=1) + found.roots

    @classmethod
    def of(cls, trees: Sequence[Any]) -> "Trees":
        """Convert trees of scikit-learn, given the `tree_` of each."""
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
        """The number of nodes in all trees."""
        return len(self.feature)

    def leaves(self, rows: np.ndarray, chosen: np.ndarray | None = None) -> np.ndarray:
        """The node of the leaf of each row in each tree, (n, T), or in some trees of its own, `chosen` (n, k)."""
        rows = rows.astype(np.float32)  # as they are when trees are grown
        at = np.repeat(self.roots[None], len(rows), axis=0) if chosen is None else self.roots[chosen]
        shape, at = at.shape, at.ravel()
        flat, sides = rows.ravel(), self.children.ravel()
        first = np.repeat(np.arange(len(rows)) * rows.shape[1], shape[1])
        for _ in range(self.depth):
            right = flat.take(first + self.feature.take(at)) > self.threshold.take(at)  # of leaves both sides are one
            at = sides.take(2 * at + right)
        return at.reshape(shape)
