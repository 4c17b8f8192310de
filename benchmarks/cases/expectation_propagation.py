"""Expectation propagation: logistic regression by quadrature, all rows at once."""

import numpy as np

from benchmarks.harness import Case
from meanmap import ep

COLUMNS = 20
NODES = np.linspace(-10, 10, 129)


def labels(n: int) -> tuple[np.ndarray, np.ndarray]:
    """n rows of 20 columns, and labels from a logistic model."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, COLUMNS))
    return X, (rng.uniform(size=n) < 1 / (1 + np.exp(-X @ np.linspace(-1, 1, COLUMNS)))).astype(int)


def ours(data: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """The posterior means of the weights."""
    X, y = data
    w = ep.Variable("w", ep.MultivariateNormal.standard(COLUMNS))
    z = ep.Variable("z", ep.Normal, plate=len(y))
    return ep.infer(ep.FactorGraph(ep.Dot(X, w, z), ep.Logistic(z, observed=y)), sweeps=100)["w"].mean()


def by_hand(data: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """The same in NumPy: half steps at first, one grid of 129 nodes over ten standard deviations of each cavity."""
    X, y = data
    signs = 2.0 * y - 1
    shift, precision = np.zeros(len(y)), np.zeros(len(y))
    before, step = np.full(COLUMNS, np.inf), 0.5
    for _ in range(100):
        covariance = np.linalg.inv(np.eye(COLUMNS) + (X * precision[:, None]).T @ X)
        mean = covariance @ (X.T @ shift)
        moved = np.abs(mean - before).max() / np.sqrt(covariance.diagonal().min())
        if moved < 1e-6:
            break
        before, step = mean, 1.0 if moved < 1 else step
        marginal, spread = X @ mean, ((X @ covariance) * X).sum(1)
        tau = 1 / spread - precision
        centre = (marginal / spread - shift) / tau
        z = centre[:, None] + NODES / np.sqrt(tau)[:, None]
        weights = np.exp(-(NODES**2) / 2 - np.logaddexp(0, -signs[:, None] * z))
        weights /= weights.sum(1, keepdims=True)
        first = (weights * z).sum(1)
        second = (weights * (z - first[:, None]) ** 2).sum(1)
        shift += step * (first / second - centre * tau - shift)
        precision += step * (1 / second - tau - precision)
    return mean


def beyond_the_tolerance(ours: np.ndarray, theirs: np.ndarray) -> float:
    """How far means are apart beyond what loops that stop at 1e-6 standard deviations leave."""
    return max(0.0, float(np.max(np.abs(ours - theirs))) - 1e-6)


CASES = (
    Case(
        name="ep-logistic",
        title="Expectation propagation for logistic regression, n rows in 20 columns, quadrature, to 1e-6 sd, float64.",
        sizes=(1000, 6000),
        setup=labels,
        ours=ours,
        peers={"NumPy by hand": by_hand},
        difference=beyond_the_tolerance,
    ),
)
