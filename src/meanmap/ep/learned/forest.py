"""A forest as the operator (Eslami et al. 2014), to compare with: trees on moments of messages."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meanmap.core.errors import ParameterError
from meanmap.ep.learned.points import coordinates
from meanmap.ep.learned.regression import Estimate, Regression

__all__ = ["Forest"]

# A forest is grown again once so much more has been learned; until then new messages wait in it.
_GROWTH = 1.2


@dataclass(frozen=True)
class Forest(Regression):
    """Rows of numbers by a forest of regression trees on means and log variances of the messages.

    The novelty is the variance over trees, in units of the variance that is left out of bag. Trees are scikit-learn's;
    instead of splitting leaves online, as the paper does, the forest is grown again whenever a fifth more is known.

    Parameters
    ----------
    kind : {"breiman", "extremely randomised"}
        Bootstrapped trees with the best splits (Breiman 2001), or all rows and random splits (Geurts et al. 2006).
    trees : int
        How many; the paper has 64.
    leaf : int
        Fewest rows in a leaf.
    seed : int
    """

    kind: str = "extremely randomised"
    trees: int = 64
    leaf: int = 1
    seed: int = 0
    forest: Any = None
    noise: Any = None
    rows: Any = None
    targets: Any = None
    grown_on: int = 0

    def __post_init__(self) -> None:
        if self.kind not in ("breiman", "extremely randomised"):
            raise ParameterError(f"kind is {self.kind!r}; expected 'breiman' or 'extremely randomised'.")

    def settings(self) -> dict[str, Any]:
        """The parameters."""
        return {"kind": self.kind, "trees": self.trees, "leaf": self.leaf, "seed": self.seed}

    def fit(self, incoming: tuple[Any, ...], numbers: np.ndarray, also: tuple[Any, ...] | None = None) -> "Forest":
        """Grow all trees."""
        del also  # a tree needs no widths
        return replace(self, rows=coordinates(incoming), targets=np.asarray(numbers))._grown()

    def add(self, incoming: tuple[Any, ...], numbers: np.ndarray) -> "Forest":
        """Keep more rows; grow again when there are a fifth more."""
        rows = np.concatenate([self.rows, coordinates(incoming)])
        more = replace(self, rows=rows, targets=np.concatenate([self.targets, numbers]))
        return more._grown() if len(rows) >= _GROWTH * self.grown_on else more

    def _grown(self) -> "Forest":
        from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

        kind = RandomForestRegressor if self.kind == "breiman" else ExtraTreesRegressor
        forest = kind(self.trees, min_samples_leaf=self.leaf, bootstrap=True, oob_score=True, random_state=self.seed)
        forest.fit(self.rows, self.targets)
        left_out = np.reshape(forest.oob_prediction_, self.targets.shape) - self.targets
        noise = np.maximum((left_out**2).mean(0), 1e-12)
        return replace(self, forest=forest, noise=noise, grown_on=len(self.rows))

    def predict(self, incoming: tuple[Any, ...]) -> Estimate:
        """Mean over trees, and their spread with what is left out of bag."""
        rows = coordinates(incoming).astype(np.float32)
        width = self.targets.shape[1]
        votes = np.stack([tree.predict(rows).reshape(len(rows), width) for tree in self.forest.estimators_])
        spread = votes.var(axis=0)
        return Estimate(votes.mean(axis=0), np.sqrt(spread + self.noise), (spread / self.noise).mean(axis=1))
