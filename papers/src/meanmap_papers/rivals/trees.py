"""One tree of a forest that learns online: a leaf that receives more rows is split by a small tree."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

__all__ = ["OnlineTree"]


@dataclass(frozen=True)
class OnlineTree:
    """A tree of scikit-learn's, with others grafted on to its leaves. Immutable; grafts are shared.

    Attributes
    ----------
    tree : sklearn Tree
        The splits.
    means : array (nodes, q)
        The prediction of each leaf: the mean of the targets of its rows.
    members : dict
        For each leaf the places of its rows.
    grafts : dict
        For each leaf that was split the tree that follows it.
    """

    tree: Any
    means: np.ndarray
    members: dict[int, np.ndarray]
    grafts: dict[int, "OnlineTree"]

    @classmethod
    def grow(cls, make: Callable[[], Any], rows: np.ndarray, targets: np.ndarray, places: np.ndarray) -> "OnlineTree":
        """A tree on some of the rows; `make` gives a scikit-learn tree that is not yet fitted."""
        tree = make().fit(rows[places], targets[places]).tree_
        leaves = tree.apply(rows[places])
        order = np.argsort(leaves, kind="stable")
        found, starts = np.unique(leaves[order], return_index=True)
        members = dict(zip(found.tolist(), np.split(places[order], starts[1:]), strict=True))
        return cls(tree, tree.value[:, :, 0].reshape(-1, targets.shape[1]), members, {})

    def learn(
        self, make: Callable[[], Any], rows: np.ndarray, targets: np.ndarray, places: np.ndarray, fewest: int
    ) -> "OnlineTree":
        """The tree after more rows, at `places`: the leaves they fall into are split where `fewest` rows are left."""
        if not len(places):
            return self
        means, members, grafts = self.means.copy(), dict(self.members), dict(self.grafts)
        leaves = self.tree.apply(rows[places])
        for leaf in np.unique(leaves).tolist():
            here = places[leaves == leaf]
            if leaf in grafts:
                grafts[leaf] = grafts[leaf].learn(make, rows, targets, here, fewest)
                continue
            members[leaf] = np.concatenate([members.get(leaf, here[:0]), here])
            if len(members[leaf]) >= 2 * fewest:
                grafts[leaf] = OnlineTree.grow(make, rows, targets, members.pop(leaf))
            else:
                means[leaf] = targets[members[leaf]].mean(0)
        return replace(self, means=means, members=members, grafts=grafts)

    def predict(self, rows: np.ndarray) -> np.ndarray:
        """The means of the leaves that rows fall into."""
        leaves = self.tree.apply(rows)
        said = self.means[leaves]
        for leaf in set(leaves.tolist()) & self.grafts.keys():
            here = leaves == leaf
            said[here] = self.grafts[leaf].predict(rows[here])
        return said
