"""A forest as the operator (Eslami et al. 2014), for comparison: trees on moments of messages, split online."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from meanmap.core.errors import ParameterError
from meanmap.ep.learned.points import coordinates
from meanmap.ep.learned.regression import Estimate, Regression
from meanmap_papers.rivals.trees import OnlineTree

__all__ = ["Forest"]


@dataclass(frozen=True)
class Forest(Regression):
    """Rows of numbers by a forest of regression trees on means and log variances of the messages.

    The novelty is the variance over trees, in units of the variance that is left out of bag: a heuristic, for trees
    that are all flat outside of what they have seen agree there. More rows split the leaves they fall into. Far from
    what was learned first a tree may become a long chain; `fit` grows all trees anew.

    Parameters
    ----------
    kind : {"breiman", "extremely randomised"}
        The best splits (Breiman 2001), or random ones (Geurts et al. 2006). Either way each tree sees a bootstrap
        sample, so that the rows left out tell the noise; rows that come later are in it Poisson(1) times.
    trees : int
        The number of trees; the paper has 64.
    leaf : int
        Fewest rows in a leaf.
    seed : int

    Notes
    -----
    Eslami, Tarlow, Kohli and Winn (2014), section 4. Trees are scikit-learn's, and so are those that are grafted on to
    leaves. A forest that is read from a file has learned later rows in one batch, and differs a little.
    """

    kind: str = "extremely randomised"
    trees: int = 64
    leaf: int = 1
    seed: int = 0
    forest: tuple[OnlineTree, ...] = ()
    noise: Any = None
    rows: Any = None
    targets: Any = None

    def __post_init__(self) -> None:
        if self.kind not in ("breiman", "extremely randomised"):
            raise ParameterError(f"kind is {self.kind!r}; expected 'breiman' or 'extremely randomised'.")

    def settings(self) -> dict[str, Any]:
        """The parameters that the forest was made with."""
        return {"kind": self.kind, "trees": self.trees, "leaf": self.leaf, "seed": self.seed}

    def fit(self, incoming: tuple[Any, ...], numbers: np.ndarray, also: tuple[Any, ...] | None = None) -> "Forest":
        """Grow all trees."""
        del also  # a tree needs no widths
        rows, targets = _rows(incoming), np.asarray(numbers, float)
        rng, n = np.random.default_rng(self.seed), len(rows)
        bags = [rng.integers(0, n, n) for _ in range(self.trees)]
        forest = tuple(OnlineTree.grow(self._make(at), rows, targets, bag) for at, bag in enumerate(bags))
        votes = np.stack([tree.predict(rows) for tree in forest])
        out = np.stack([np.bincount(bag, minlength=n) == 0 for bag in bags])[:, :, None]
        left_out = (votes * out).sum(0) / np.maximum(out.sum(0), 1) - targets
        noise = np.maximum((left_out**2).mean(0, where=out.any(0)), 1e-12)
        return replace(self, forest=forest, noise=noise, rows=rows, targets=targets)

    def add(self, incoming: tuple[Any, ...], numbers: np.ndarray) -> "Forest":
        """Split the leaves that more rows fall into."""
        new = _rows(incoming)
        rows, targets = np.concatenate([self.rows, new]), np.concatenate([self.targets, numbers])
        places = np.arange(len(self.rows), len(rows))
        times = np.random.default_rng([self.seed, len(rows)]).poisson(1.0, (self.trees, len(new)))
        forest = tuple(
            tree.learn(self._make(at), rows, targets, np.repeat(places, count), self.leaf)
            for at, (tree, count) in enumerate(zip(self.forest, times, strict=True))
        )
        return replace(self, forest=forest, rows=rows, targets=targets)

    def _make(self, at: int) -> Callable[[], Any]:
        from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

        kind = DecisionTreeRegressor if self.kind == "breiman" else ExtraTreeRegressor
        # All columns at each split, as scikit-learn's forests do by default.
        return partial(kind, min_samples_leaf=self.leaf, max_features=1.0, random_state=self.seed * self.trees + at)

    def predict(self, incoming: tuple[Any, ...]) -> Estimate:
        """Mean over trees, and their spread with the out-of-bag error."""
        rows = _rows(incoming)
        votes = np.stack([tree.predict(rows) for tree in self.forest])
        spread = votes.var(axis=0)
        return Estimate(votes.mean(axis=0), np.sqrt(spread + self.noise), (spread / self.noise).mean(axis=1))


def _rows(incoming: tuple[Any, ...]) -> np.ndarray:
    """As scikit-learn's trees read them."""
    return coordinates(incoming).astype(np.float32)
