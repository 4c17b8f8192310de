"""Filling in tables, beside what else there is: nice python -m benchmarks.imputation --keep, a quarter of an hour.

A seventh of the cells of ten tables are hidden at random. Every method learns from the table with its gaps and fills
them in. Methods that give a number only are dressed in their errors on cells that were hidden on purpose, so that all
can be judged by the continuous ranked probability score.
"""

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtr

import meanmap as mm
from benchmarks import pages
from benchmarks.table import list_table
from meanmap.bp.conditionals.joint_normal import JointNormal
from meanmap.core.executors import worked

__all__ = ["METHODS", "compared", "measure", "page", "sample_score", "tables"]

HIDDEN = 0.15
# The tables of these seeds were not looked at while the method was made, which was with seeds 0 and 1.
SEED, REPEATS = 7_000_000, 3
# Cells are hidden on purpose so often to dress a number in errors.
DRESSINGS = 2
Found = dict[str, Any]
# For each hidden cell, in the order of the table: mean, score, the share of it that is in the interval of 90 %, and
# whether it lies in the closed interval.
Answer = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def tables() -> dict[str, np.ndarray]:
    """Ten tables of numbers, their columns standardised."""
    from sklearn import datasets

    body = datasets.load_linnerud()
    found = {
        "iris": datasets.load_iris().data,
        "wine": datasets.load_wine().data,
        "diabetes": datasets.load_diabetes().data,
        "cancer": datasets.load_breast_cancer().data[:, :10],
        "linnerud": np.hstack([body.data, body.target]),
        "ozone": mm.datasets.ozone().matrix(),
        "banknote": mm.datasets.uci("banknote")[0].matrix(),
        "transfusion": mm.datasets.uci("transfusion")[0].matrix(),
        "fertility": mm.datasets.uci("fertility")[0].matrix(),
        "ionosphere": mm.datasets.uci("ionosphere")[0].matrix()[:, 2:14],
    }
    return {name: (x - x.mean(axis=0)) / x.std(axis=0) for name, x in found.items()}


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


def dressed(make: Callable[[], Any]) -> Callable[[np.ndarray, np.ndarray], Answer]:
    """An imputer of scikit-learn, and its errors on cells that it was not shown."""

    def answer(table: np.ndarray, truth: np.ndarray) -> Answer:
        random, errors = np.random.default_rng(0), [[] for _ in table.T]
        for _ in range(DRESSINGS):
            away = (random.random(table.shape) < HIDDEN) & ~np.isnan(table)
            filled = make().fit_transform(np.where(away, np.nan, table))
            for j, column in enumerate(errors):
                column.extend((table - filled)[away[:, j], j])
        whole = make().fit_transform(table)

        def column(rows: np.ndarray, j: int, y: np.ndarray) -> Answer:
            points = whole[rows, j][:, None] + np.array(errors[j] or [0.0])
            low, high = np.quantile(points, [0.05, 0.95], axis=1)
            same = np.full(points.shape, 1 / points.shape[1])
            share = share_inside(*place(points, same, y))
            return whole[rows, j], sample_score(points, same, y), share, (low <= y) & (y <= high)

        return by_column(table, truth, column)

    return answer


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
    "KNNImputer": dressed(neighbours),
    "IterativeImputer, ridge": dressed(iterative(ridge)),
    "IterativeImputer, trees": dressed(iterative(trees, 4)),
    "IterativeImputer, forest": dressed(iterative(forest, 4)),
}


def compared(
    name: str, truth: np.ndarray, seeds: Sequence[int], methods: Sequence[str], executor: Executor | None = None
) -> Found:
    """Error, score, both shares inside and processor seconds of each method, a number for each seed."""
    found: Found = {"rows": len(truth), "columns": truth.shape[1]}
    found["itself"] = round(float(np.mean([closed_by_itself(column) for column in truth.T])), 4)
    for method in methods:
        each = list(worked(partial(_filled, method, truth), seeds, executor))
        found[method] = {
            key: [float(f"{value:.4g}") for value in column]
            for key, column in zip(("rmse", "score", "inside", "closed", "seconds"), np.transpose(each), strict=True)
        }
        print(name, method, np.mean(each, axis=0).round(3), file=sys.stderr, flush=True)
    return found


def _filled(method: str, truth: np.ndarray, seed: int) -> list[float]:
    gaps = np.random.default_rng(seed).random(truth.shape) < HIDDEN
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of iterations that did not converge
        mean, score, share, closed = METHODS[method](np.where(gaps, np.nan, truth), truth)
    error = np.sqrt(np.mean((mean - truth[gaps]) ** 2))
    return [error, score.mean(), share.mean(), closed.mean(), time.process_time() - start]


def measure(executor: Executor | None = None) -> Found:
    """All tables and methods."""
    seeds = range(SEED, SEED + REPEATS)
    return {name: compared(name, truth, seeds, list(METHODS), executor) for name, truth in tables().items()}


def page(found: Found) -> str:
    """Four tables of the documentation; scores within a standard error of the best are bold."""
    methods, lines = list(METHODS), []
    titles = {
        "score": "Ranked probability score",
        "rmse": "Error",
        "inside": "Coverage of 90 % intervals",
        "closed": "Coverage of closed 90 % intervals",
    }
    last = {"inside": ["by chance"], "closed": ["the columns themselves"]}
    for key, title in titles.items():
        rows = []
        for table, each in found.items():
            values = {name: np.array(each[name][key]) for name in methods}
            best = min(values.values(), key=lambda v: v.mean())
            low, high = chance(each)
            shown = [f"{v.mean():.3f}" for v in values.values()]
            bold = [stands_out(key, v, best, low, high) for v in values.values()]
            shown = [f"**{text}**" if here else text for text, here in zip(shown, bold, strict=True)]
            shown += {"inside": [f"{low:.3f} to {high:.3f}"], "closed": [f"{each['itself']:.3f}"]}.get(key, [])
            rows.append([f"{table}, {each['rows']} x {each['columns']}", *shown])
        lines += list_table(["table", *methods, *last.get(key, [])], rows, title)
    repeats = min(len(each[methods[0]]["score"]) for each in found.values())
    text = (
        f"Of each table {HIDDEN:.0%} of the cells are hidden, {repeats} times; columns have variance one. Bold: "
        "the best and those within a standard error of it; for intervals, coverages within the range of exact ones "
        "in 99 of 100 tables, given the number of hidden cells. A repeated value counts by the share of its "
        "probability that lies between .05 and .95; closed intervals that end at such a value contain all of it, and "
        "the last column gives the coverage of such an interval between the quantiles of the column itself."
    )
    return "\n".join([*lines, text, ""])


def stands_out(key: str, values: np.ndarray, best: np.ndarray, low: float, high: float) -> bool:
    """Whether a score is near the best, or a share as by chance."""
    return within(values, best) if key == "score" else key == "inside" and bool(low <= values.mean() <= high)


def chance(each: Found) -> tuple[float, float]:
    """Between which shares exact intervals of 90 % hold as many cells as were hidden, in 99 of 100 tables."""
    cells = HIDDEN * each["rows"] * each["columns"] * len(each["joint normal"]["inside"])
    reach = 2.576 * np.sqrt(0.09 / cells)
    return 0.9 - reach, min(0.9 + reach, 1.0)


def within(values: np.ndarray, best: np.ndarray) -> bool:
    """Whether scores are within a standard error of the best, seed by seed."""
    gap = values - best
    return bool(gap.mean() <= gap.std(ddof=1) / np.sqrt(len(gap)) + 1e-12) if len(gap) > 1 else bool(gap.mean() <= 0)


def main() -> None:
    """Measure, and print the page or keep the results."""
    found = measure()
    if sys.argv[1:] == ["--keep"]:
        pages.store({**pages.stored(), "imputation": found})
    print(page(found))


if __name__ == "__main__":
    main()
