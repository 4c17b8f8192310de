"""Linear dynamics with Gaussian noise: the Kalman filter, and the smoother of Rauch, Tung and Striebel (1965)."""

from dataclasses import dataclass

import numpy as np

__all__ = ["LinearDynamics"]


@dataclass(frozen=True, eq=False)
class LinearDynamics:
    """s₁ ~ N(m, P), s' = A s + b + N(0, Q), y = C s + d + N(0, R).

    Observations may have many more columns than states: they enter by Cᵀ R⁻¹ (y − d) alone.
    """

    mean: np.ndarray
    covariance: np.ndarray
    transition: np.ndarray
    drift: np.ndarray
    noise: np.ndarray
    observation: np.ndarray
    offset: np.ndarray
    observation_noise: np.ndarray

    @classmethod
    def fit(cls, states: np.ndarray, observations: np.ndarray) -> "LinearDynamics":
        """By linear regressions, (n, k) states and (n, d) observations in order; R is shrunk (Ledoit & Wolf 2004)."""
        from sklearn.covariance import ledoit_wolf

        transition, drift, left = _regression(states[:-1], states[1:])
        observation, offset, seen = _regression(states, observations)
        return cls(
            states.mean(axis=0),
            np.cov(states.T),
            transition,
            drift,
            left.T @ left / len(left),
            observation,
            offset,
            ledoit_wolf(seen, assume_centered=True)[0],
        )

    def filter(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means (n, k) and covariances (n, k, k) of each state given all observations up to it."""
        means, covariances, _, _ = self._forward(observations)
        return means, covariances

    def smooth(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means and covariances of each state given all observations."""
        means, covariances, ahead, spread = self._forward(observations)
        for t in range(len(means) - 2, -1, -1):
            gain = np.linalg.solve(spread[t + 1], self.transition @ covariances[t]).T
            means[t] += gain @ (means[t + 1] - ahead[t + 1])
            covariances[t] += gain @ (covariances[t + 1] - spread[t + 1]) @ gain.T
        return means, covariances

    def _forward(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Filtered means and covariances, and those that were predicted."""
        onto = np.linalg.solve(self.observation_noise, self.observation).T
        heard = (observations - self.offset) @ onto.T
        precision = onto @ self.observation
        means, covariances = [], []
        ahead, spread = [self.mean], [self.covariance]
        for information in heard:
            # With P the predicted covariance: (P⁻¹ + H)⁻¹ = (I + P H)⁻¹ P, for which P need not be inverted.
            covariance = np.linalg.solve(np.eye(len(precision)) + spread[-1] @ precision, spread[-1])
            covariance = (covariance + covariance.T) / 2
            means.append(ahead[-1] + covariance @ (information - precision @ ahead[-1]))
            covariances.append(covariance)
            ahead.append(self.transition @ means[-1] + self.drift)
            spread.append(self.transition @ covariance @ self.transition.T + self.noise)
        return np.array(means), np.array(covariances), np.array(ahead), np.array(spread)


def _regression(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Slopes (d, k) and intercepts of y on x by least squares, and the residuals."""
    slopes = np.linalg.lstsq(x - x.mean(axis=0), y - y.mean(axis=0), rcond=None)[0].T
    intercept = y.mean(axis=0) - slopes @ x.mean(axis=0)
    return slopes, intercept, y - x @ slopes.T - intercept
