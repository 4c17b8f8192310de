"""Hybrid tables in pgmpy: networks found by its search, of bins, and of labels with numbers that are normal given them.

Each cell of new rows is predicted from all others of its row; the answer is the score of each, smaller is better: the
continuous ranked probability score of numbers, half of Brier's score of labels.
"""

import itertools

import numpy as np
import pandas as pd
from pgmpy.estimators import BayesianEstimator, ExpertKnowledge, HillClimbSearch
from pgmpy.models import DiscreteBayesianNetwork
from scipy.special import ndtr
from serving import serve

MOST_PARENTS = 3
# Residuals have at least this share of the variance of their column.
LEAST = 1e-4


def prepare(model):
    """`rows` (n, d) to learn from, `label` (d,) which columns are codes of labels, `states` (d,) how many they have."""
    rows, label, states = model["rows"], model["label"], model["states"]
    names = [f"x{j}" for j in range(rows.shape[1])]

    def answer(method, new, bins=5):
        new = np.array(new)
        if method == "bins":
            return binned(rows, new, label, states, names, bins)
        if method == "graph":
            return np.array(arrows(rows, label, names)).reshape(-1, 2)
        return conditional_gaussian(rows, new, label, states, names)

    return answer


def binned(rows, new, label, states, names, bins):
    edges = [None if one else cut(x, bins) for x, one in zip(rows.T, label, strict=True)]
    codes, asked = (
        np.stack(
            [
                x if e is None else np.clip(np.searchsorted(e, x, "right") - 1, 0, len(e) - 2)
                for x, e in zip(t.T, edges, strict=True)
            ],
            1,
        )
        for t in (rows, new)
    )
    sizes = [k if e is None else len(e) - 1 for k, e in zip(states, edges, strict=True)]
    frame = pd.DataFrame({n: pd.Categorical(x.astype(int)) for n, x in zip(names, codes.T, strict=True)})
    graph = HillClimbSearch(frame).estimate(scoring_method="bic-d", max_indegree=MOST_PARENTS, show_progress=False)
    network = DiscreteBayesianNetwork(graph.edges())
    network.add_nodes_from(names)
    levels = {name: list(range(k)) for name, k in zip(names, sizes, strict=True)}
    tables = {}
    estimator = BayesianEstimator(network, frame, state_names=levels)
    for name in names:
        cpd = estimator.estimate_cpd(name, prior_type="BDeu", equivalent_sample_size=5)
        tables[name] = cpd.values, [names.index(v) for v in cpd.variables]
    asked = asked.astype(int)
    scores = np.empty(new.shape)
    for j, k in enumerate(sizes):
        log = np.zeros((len(new), k))
        for state in range(k):
            here = asked.copy()
            here[:, j] = state
            for values, order in tables.values():
                if j in order:
                    log[:, state] += np.log(values[tuple(here[:, order].T)])
        shares = np.exp(log - log.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        scores[:, j] = half_brier(shares, new[:, j]) if edges[j] is None else histogram(shares, edges[j], new[:, j])
    return scores


def cut(x, bins):
    edges = np.unique(np.quantile(x, np.linspace(0, 1, bins + 1)))
    return edges if len(edges) > 2 else np.linspace(x.min() - 1e-9, x.max() + 1e-9, 3)


def histogram(shares, edges, y):
    """Exactly: of the piecewise linear distribution function, integrated on a fine grid."""
    grid = np.linspace(edges[0], edges[-1], 2001)
    rising = np.concatenate([np.zeros((len(y), 1)), np.cumsum(shares, axis=1)], axis=1)
    below = np.stack([np.interp(grid, edges, each) for each in rising])
    inside = np.mean((below - (y[:, None] <= grid)) ** 2, axis=1) * (edges[-1] - edges[0])
    return inside + np.maximum(y - edges[-1], 0) + np.maximum(edges[0] - y, 0)


def half_brier(shares, truth):
    return np.sum((shares - np.eye(shares.shape[1])[truth.astype(int)]) ** 2, axis=1) / 2


def arrows(rows, label, names):
    """Of the network with the best score for labels and numbers that are normal given them."""
    each = list(zip(names, rows.T, label, strict=True))
    frame = pd.DataFrame({name: pd.Categorical(x.astype(int)) if one else x for name, x, one in each})
    barred = [(a, b) for (a, _, i), (b, _, j) in itertools.product(each, repeat=2) if not i and j]
    knowledge = ExpertKnowledge(forbidden_edges=barred)
    search = HillClimbSearch(frame)
    found = search.estimate(
        scoring_method="bic-cg", max_indegree=MOST_PARENTS, expert_knowledge=knowledge, show_progress=False
    )
    return [(names.index(a), names.index(b)) for a, b in found.edges()]


def conditional_gaussian(rows, new, label, states, names):
    parents = {j: [a for a, b in arrows(rows, label, names) if b == j] for j in range(len(names))}
    laws = [law(rows, j, parents[j], label, states) for j in range(len(names))]
    scores = np.empty(new.shape)

    def log_joint(table):
        return sum(each(table) for each in laws)

    def moved(j, values):
        table = new.copy()
        table[:, j] = values
        return log_joint(table)

    for j in range(len(names)):
        if label[j]:
            log = np.stack([moved(j, state) for state in range(states[j])], axis=1)
            shares = np.exp(log - log.max(axis=1, keepdims=True))
            scores[:, j] = half_brier(shares / shares.sum(axis=1, keepdims=True), new[:, j])
            continue
        # Given the rest a number is normal: its log density is a parabola, known from three points.
        left, middle, right = (moved(j, value) for value in (-1.0, 0.0, 1.0))
        precision = np.maximum(2 * middle - left - right, 1e-12)
        mean, deviation = (right - left) / 2 / precision, precision**-0.5
        u = (new[:, j] - mean) / deviation
        density = np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi)
        scores[:, j] = deviation * (u * (2 * ndtr(u) - 1) + 2 * density - 1 / np.sqrt(np.pi))
    return scores


def law(rows, j, parents, label, states):
    """log p(x_j | parents) of rows: a table for labels, a line with normal noise for each configuration of labels."""
    marks, numbers = [p for p in parents if label[p]], [p for p in parents if not label[p]]
    shape = [states[p] for p in marks]

    def which(table):
        return np.ravel_multi_index(tuple(table[:, marks].astype(int).T), shape) if marks else np.zeros(len(table), int)

    number = int(np.prod(shape)) if marks else 1
    there = which(rows)
    if label[j]:
        counts = np.ones((number, states[j]))
        np.add.at(counts, (there, rows[:, j].astype(int)), 1)
        log = np.log(counts / counts.sum(axis=1, keepdims=True))
        return lambda table: log[which(table), table[:, j].astype(int)]

    def design(table):
        return np.column_stack([np.ones(len(table)), table[:, numbers]])

    whole = line(design(rows), rows[:, j])
    lines = []
    for each in range(number):
        some = there == each
        lines.append(line(design(rows[some]), rows[some, j]) if some.sum() > 3 + 2 * len(numbers) else whole)
    weights, variances = np.stack([each[0] for each in lines]), np.array([each[1] for each in lines])

    def log_density(table):
        at = which(table)
        gap = table[:, j] - np.sum(design(table) * weights[at], axis=1)
        return -0.5 * (gap**2 / variances[at] + np.log(2 * np.pi * variances[at]))

    return log_density


def line(design, y):
    weights = np.linalg.lstsq(design, y, rcond=None)[0]
    return weights, max(np.sum((y - design @ weights) ** 2) / max(len(y) - design.shape[1], 1), LEAST)


serve(prepare)
