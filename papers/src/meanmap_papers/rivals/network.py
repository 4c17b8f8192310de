"""A neural network as the operator (Heess et al. 2013), for comparison: fast predictions without uncertainty."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meanmap.ep.learned.points import coordinates
from meanmap.ep.learned.regression import Estimate, Regression

__all__ = ["Network"]

# The network is trained again when the number of rows has grown by this factor.
_GROWTH = 1.5


@dataclass(frozen=True)
class Network(Regression):
    """Rows of numbers by a perceptron with two hidden layers on means and log variances of the messages.

    It never doubts: novelty is 0 everywhere, so that it has to be trained in advance. Its deviation is that
    of its training errors. scikit-learn's `MLPRegressor`, by L-BFGS.

    Parameters
    ----------
    hidden : tuple of int
        Units of each layer.
    seed : int
    """

    hidden: tuple[int, ...] = (32, 32)
    seed: int = 0
    network: Any = None
    scaler: Any = None
    noise: Any = None
    rows: Any = None
    targets: Any = None
    trained_on: int = 0

    def settings(self) -> dict[str, Any]:
        """The parameters that the network was made with."""
        return {"hidden": list(self.hidden), "seed": self.seed}

    def fit(self, incoming: tuple[Any, ...], numbers: np.ndarray, also: tuple[Any, ...] | None = None) -> "Network":
        """Train from the start."""
        del also
        return replace(self, rows=coordinates(incoming), targets=np.asarray(numbers))._trained()

    def add(self, incoming: tuple[Any, ...], numbers: np.ndarray) -> "Network":
        """Keep more rows; train again when there are half as many more."""
        rows = np.concatenate([self.rows, coordinates(incoming)])
        more = replace(self, rows=rows, targets=np.concatenate([self.targets, numbers]))
        return more._trained() if len(rows) >= _GROWTH * self.trained_on else more

    def _trained(self) -> "Network":
        import warnings

        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPRegressor
        from sklearn.preprocessing import StandardScaler

        scaler = StandardScaler().fit(self.rows)
        network = MLPRegressor(
            hidden_layer_sizes=tuple(self.hidden),
            activation="tanh",
            solver="lbfgs",
            alpha=1e-6,
            max_iter=2000,
            random_state=self.seed,
        )
        with warnings.catch_warnings():
            # A network that has not converged is still a fair competitor at this budget.
            warnings.simplefilter("ignore", ConvergenceWarning)
            network.fit(scaler.transform(self.rows), self.targets)
        said = np.reshape(network.predict(scaler.transform(self.rows)), self.targets.shape)
        noise = np.maximum(((said - self.targets) ** 2).mean(0), 1e-12)
        return replace(self, network=network, scaler=scaler, noise=noise, trained_on=len(self.rows))

    def predict(self, incoming: tuple[Any, ...]) -> Estimate:
        """The prediction of the network, and its training error."""
        rows = self.scaler.transform(coordinates(incoming))
        mean = self.network.predict(rows).reshape(len(rows), -1)
        return Estimate(mean, np.broadcast_to(np.sqrt(self.noise), mean.shape).copy(), np.zeros(len(rows)))
