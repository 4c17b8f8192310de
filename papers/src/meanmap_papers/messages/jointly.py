"""Outputs regressed jointly by coregionalisation, compared with the library's single covariance for all outputs."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from meanmap.ep.learned import Estimate, KernelRegression, Regression
from meanmap.ep.learned.points import laws
from meanmap.linalg import OnlineRegression

__all__ = ["Jointly"]


@dataclass(frozen=True)
class Jointly(Regression):
    """Weights of the outputs with prior covariance B ⊗ I, B the correlation of the targets (Alvarez et al. 2011).

    With B = V Λ Vᵀ the columns of Y V are independent, with prior variances λ and the same noise.
    """

    separate: KernelRegression = field(default_factory=KernelRegression)
    turn: Any = None
    posteriors: tuple[OnlineRegression, ...] = ()

    def fit(self, incoming: tuple[Any, ...], numbers: np.ndarray, also: Any = None) -> "Jointly":
        """Lengthscales as without, then each turned column with its own prior variance."""
        separate = self.separate.fit(incoming, numbers, also)
        variances, turn = np.linalg.eigh(np.atleast_2d(np.corrcoef(numbers.T)))
        size = separate.features.size
        starts = [
            OnlineRegression.start(size, noise=separate.noise, prior_variance=max(v, 1e-8)) for v in variances.tolist()
        ]
        return replace(self, separate=separate, turn=turn, posteriors=tuple(starts)).add(incoming, numbers)

    def add(self, incoming: tuple[Any, ...], numbers: np.ndarray) -> "Jointly":
        """Learn more rows."""
        phi, turned = self._features(incoming), numbers @ self.turn
        found = (one.update(phi, turned[:, at : at + 1]) for at, one in enumerate(self.posteriors))
        return replace(self, posteriors=tuple(found))

    def predict(self, incoming: tuple[Any, ...]) -> Estimate:
        """Each turned column, turned back."""
        phi = self._features(incoming)
        said = [one.predict(phi) for one in self.posteriors]
        means = np.concatenate([mean for mean, _ in said], axis=1)
        variances = np.stack([variance for _, variance in said], axis=1)
        noise = self.separate.noise
        deviation = np.sqrt(variances @ (self.turn**2).T + noise) * self.separate.inflation(phi)
        return Estimate(means @ self.turn.T, deviation, variances.max(axis=1) / noise)

    def settings(self) -> dict[str, Any]:
        """Those of the regression without."""
        return self.separate.settings()

    def _features(self, incoming: tuple[Any, ...]) -> np.ndarray:
        return self.separate.features(laws(incoming, self.separate.positions, self.separate.as_normal))
