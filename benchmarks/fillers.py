"""What fills in tables, and how what it gives is scored: the methods of `benchmarks.imputation`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr

import meanmap as mm
from benchmarks.peers import HYPERIMPUTE, MICEFOREST, Elsewhere
from meanmap.bp.conditionals.joint_normal import JointNormal

__all__ = ["HIDDEN", "METHODS", "OURS", "available", "closed_by_itself", "sample_score"]

HIDDEN = 0.15
# Cells are hidden on purpose so often to dress a number in errors.
DRESSINGS = 2
# Of tables, or quantiles of a cell, from peers that run where an environment variable names a Python that has them.
DRAWS = 20
OURS = "DependencyNetwork"
# For each hidden cell, in the order of the table: mean, score, the share of it that is in the interval of 90%, and
# whether it lies in the closed interval.
Answer = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def sample_score(points: np.ndarray, weights: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The ranked probability score of weighted points (m, n), E|X − y| − E|X − X'| / 2."""
    order = np.argsort(points, axis=1)
    points, weights = np.take_along_axis(points, order, 1), np.take_along_axis(weights, order, 1)
    below = np.cumsum(weights, axis=1) - weights / 2
    spread = np.sum(weights * points * (2 * below - 1), axis=1)
    return np.sum(weights * np.abs(points - truth[:, None]), axis=1) - spread


def share_inside(below: np.ndarray, upto: np.ndarray) -> np.ndarray:
    """How much of a value's own probability, from P(Y < y) to P(Y ≤ y), lies between .05 and .95.

    Distributions that have it right are held in nine of ten by this count, whatever comes back (Czado, Gneiting & Held
    2009).
    """
    mass = upto - below
    inside = np.clip(np.minimum(upto, 0.95) - np.maximum(below, 0.05), 0, None)
    return np.where(mass > 1e-9, inside / np.maximum(mass, 1e-9), (below >= 0.05) & (below <= 0.95))


def place(points: np.ndarray, weights: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P(Y < y) and P(Y ≤ y) of weighted points (m, n)."""
    return np.sum(weights * (points < truth[:, None]), axis=1), np.sum(weights * (points <= truth[:, None]), axis=1)


def closed_by_itself(values: np.ndarray) -> float:
    """How much of its own values the closed interval between the quantiles at .05 and .95 of a column holds."""
    low, high = np.quantile(values, [0.05, 0.95], method="inverted_cdf")
    return float(np.mean((values >= low) & (values <= high)))


def network(table: np.ndarray, truth: np.ndarray) -> Answer:
    """One regression a column."""
    model = mm.bp.DependencyNetwork().fit(table)

    def column(rows: np.ndarray, j: int, y: np.ndarray) -> Answer:
        belief = model.predict(table[rows], [str(j)])[str(j)]
        # Within a bin half of its probability lies below; nothing does where all of it lies at the right end.
        rising = np.cumsum(belief.weights, axis=1) - belief.weights * np.where(belief.points, 1, 0.5)
        middles, widths = (belief.edges[1:] + belief.edges[:-1]) / 2, np.diff(belief.edges)
        beyond = np.maximum(y - belief.edges[-1], 0) + np.maximum(belief.edges[0] - y, 0)
        score = np.sum((rising - (y[:, None] <= middles)) ** 2 * widths, axis=1) + beyond
        low, high = belief.quantile([0.05, 0.95]).T
        share = share_inside(*(np.diagonal(belief.cdf(at)) for at in (np.nextafter(y, -np.inf), y)))
        return belief.mean(), score, share, (low <= y) & (y <= high)

    return by_column(table, truth, column)


def tree(table: np.ndarray, truth: np.ndarray) -> Answer:
    """Messages along a Chow-Liu tree."""
    names = [str(j) for j in range(table.shape[1])]
    frame = dict(zip(names, table.T, strict=True))
    model = mm.KernelGraph(mm.chow_liu(frame, missing="pairwise")).fit(frame)

    def column(rows: np.ndarray, j: int, y: np.ndarray) -> Answer:
        belief = model.predict({name: values[rows] for name, values in frame.items()}, [names[j]])[names[j]]
        points, weights = np.broadcast_to(belief.points[:, 0], belief.weights.shape), np.maximum(belief.weights, 0)
        low, high = belief.quantile([0.05, 0.95]).T
        weights = weights / weights.sum(axis=1, keepdims=True)
        share = share_inside(*place(points, weights, y))
        return belief.mean(), sample_score(points, weights, y), share, (low <= y) & (y <= high)

    return by_column(table, truth, column)


def joint_normal(table: np.ndarray, truth: np.ndarray) -> Answer:
    """A joint normal distribution, learned through the gaps."""
    means, deviations = JointNormal.fit(table).given(table)
    gaps = np.isnan(table)
    mean, deviation, y = means[gaps], deviations[gaps], truth[gaps]
    u = (y - mean) / deviation
    density = np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi)
    score = deviation * (u * (2 * ndtr(u) - 1) + 2 * density - 1 / np.sqrt(np.pi))
    inside = np.abs(u) < 1.6449
    return mean, score, inside, inside


def drawn(method: str) -> Callable[[np.ndarray, np.ndarray], Answer]:
    """A peer's drawn tables, or tables of quantiles at k / 21: each a point of the predictive distribution."""

    def answer(table: np.ndarray, truth: np.ndarray) -> Answer:
        with MICEFOREST.start(rows=table[None]) as running:
            tables = running.ask(which=0, draws=DRAWS, method=method)

        def column(rows: np.ndarray, j: int, y: np.ndarray) -> Answer:
            points = tables[:, rows, j].T
            same = np.full(points.shape, 1 / DRAWS)
            low, high = np.quantile(points, [0.05, 0.95], axis=1, method="weibull")
            share = share_inside(*place(points, same, y))
            return points.mean(axis=1), sample_score(points, same, y), share, (low <= y) & (y <= high)

        return by_column(table, truth, column)

    return answer


Fill = Callable[[list[np.ndarray]], Sequence[np.ndarray]]


def dressed(fill: Fill) -> Callable[[np.ndarray, np.ndarray], Answer]:
    """What fills in a table with one number a cell, and its errors on cells that it was not shown."""

    def answer(table: np.ndarray, truth: np.ndarray) -> Answer:
        random = np.random.default_rng(0)
        away = [(random.random(table.shape) < HIDDEN) & ~np.isnan(table) for _ in range(DRESSINGS)]
        *filled, whole = fill([*(np.where(each, np.nan, table) for each in away), table])
        errors = [
            np.concatenate([(table - other)[each[:, j], j] for each, other in zip(away, filled, strict=True)])
            for j in range(table.shape[1])
        ]

        def column(rows: np.ndarray, j: int, y: np.ndarray) -> Answer:
            points = whole[rows, j][:, None] + (errors[j] if len(errors[j]) else np.zeros(1))
            low, high = np.quantile(points, [0.05, 0.95], axis=1)
            same = np.full(points.shape, 1 / points.shape[1])
            share = share_inside(*place(points, same, y))
            return whole[rows, j], sample_score(points, same, y), share, (low <= y) & (y <= high)

        return by_column(table, truth, column)

    return answer


def each_by(make: Callable[[], Any]) -> Fill:
    """An imputer of scikit-learn, made anew for each table."""
    return lambda tables: [make().fit_transform(table) for table in tables]


def hyperimputed(tables: list[np.ndarray]) -> np.ndarray:
    """HyperImpute: chained equations with a learner chosen for each column (Jarrett et al. 2022)."""
    with HYPERIMPUTE.start(rows=np.stack(tables)) as running:
        return running.ask()


def by_column(table: np.ndarray, truth: np.ndarray, column: Callable[[np.ndarray, int, np.ndarray], Answer]) -> Answer:
    """The answers of all columns, in the order of `table[gaps]`."""
    gaps = np.isnan(table)
    whole = np.zeros((4, *table.shape))
    for j in range(table.shape[1]):
        rows = np.flatnonzero(gaps[:, j])
        if len(rows):
            whole[:, rows, j] = column(rows, j, truth[rows, j])
    mean, score, share, closed = whole[:, gaps]
    return mean, score, share, closed


def iterative(estimator: Callable[[], Any], rounds: int = 10) -> Callable[[], Any]:
    """Scikit-learn's chained equations."""

    def make() -> Any:
        from sklearn.experimental import enable_iterative_imputer  # noqa: F401  # switches the next import on
        from sklearn.impute import IterativeImputer

        return IterativeImputer(estimator(), max_iter=rounds, random_state=0)

    return make


def neighbours() -> Any:
    """Five nearest neighbours."""
    from sklearn.impute import KNNImputer

    return KNNImputer()


def ridge() -> Any:
    """Bayesian ridge regression."""
    from sklearn.linear_model import BayesianRidge

    return BayesianRidge()


def trees() -> Any:
    """Extremely randomised trees."""
    from sklearn.ensemble import ExtraTreesRegressor

    return ExtraTreesRegressor(30, random_state=0)


def forest() -> Any:
    """A random forest: with it chained equations are much like missForest (Stekhoven & Bühlmann 2012)."""
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(30, random_state=0)


METHODS: dict[str, Callable[[np.ndarray, np.ndarray], Answer]] = {
    "DependencyNetwork": network,
    "KernelGraph of chow_liu": tree,
    "joint normal": joint_normal,
    "KNNImputer": dressed(each_by(neighbours)),
    "IterativeImputer, ridge": dressed(each_by(iterative(ridge))),
    "IterativeImputer, trees": dressed(each_by(iterative(trees, 4))),
    "IterativeImputer, forest": dressed(each_by(iterative(forest, 4))),
    "HyperImpute": dressed(hyperimputed),
    "miceforest": drawn("miceforest"),
    "quantile forest": drawn("quantile forest"),
    "LightGBM quantiles": drawn("LightGBM quantiles"),
}
PEERS: dict[str, Elsewhere] = {
    "HyperImpute": HYPERIMPUTE,
    **dict.fromkeys(("miceforest", "quantile forest", "LightGBM quantiles"), MICEFOREST),
}


def available() -> list[str]:
    """The methods that can run here."""
    return [name for name in METHODS if name not in PEERS or PEERS[name].there]
