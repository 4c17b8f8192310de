"""Tasks on which methods of belief propagation are compared: the same graph, pairs and evidence for all of them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

__all__ = ["Task", "bimodal_chain", "denoising", "depth", "gaussian_chain"]

GRID = np.linspace(-5, 5, 401)
STEP = GRID[1] - GRID[0]
NODES = 6
CORRELATION = 0.8


@dataclass(frozen=True, eq=False)
class Task:
    """One problem.

    Attributes
    ----------
    graph, relations, variables
        As of every field.
    learned_from : dict
        The arguments of `fit`.
    asked : dict
        The arguments of `query`.
    error : callable
        From beliefs to a number.
    """

    graph: Any
    relations: Any
    variables: Any
    learned_from: dict[str, Any]
    asked: dict[str, Any]
    error: Callable[[Any], float]


def gaussian_chain(seed: int, pairs: int) -> Task:
    """Standard normal variables with correlation 0.8 along a chain, both ends seen; L1 distance to the closed form."""
    rng = np.random.default_rng([seed, 20])
    x = rng.normal(size=pairs)
    first = x, CORRELATION * x + np.sqrt(1 - CORRELATION**2) * rng.normal(size=pairs)
    covariance = CORRELATION ** np.abs(np.subtract.outer(np.arange(NODES), np.arange(NODES)))
    seen, hidden = [0, NODES - 1], list(range(1, NODES - 1))
    values = np.clip(rng.multivariate_normal(np.zeros(NODES), covariance)[seen], -1.8, 1.8)
    weights = np.linalg.solve(covariance[np.ix_(seen, seen)], covariance[np.ix_(seen, hidden)])
    means, variances = values @ weights, 1 - (covariance[np.ix_(seen, hidden)] * weights).sum(axis=0)
    exact = np.exp(-((GRID - means[:, None]) ** 2) / (2 * variances[:, None])) / np.sqrt(2 * np.pi * variances[:, None])
    edges = [(i, i + 1) for i in range(NODES - 1)]
    return Task(
        edges, None, None, {"pairs": first}, {"evidence": dict(zip(seen, values.tolist(), strict=True))},
        lambda beliefs: distance([beliefs[i] for i in hidden], exact),
    )  # fmt: skip


def bimodal_chain(seed: int, pairs: int) -> Task:
    """x_{i+1} = ±1.35 + .3 sin(2 x_i) + .5 noise, up with probability 1 / (1 + exp(−2 x_i)), the last seen; L1 distance
    to a fine grid.
    """
    rng = np.random.default_rng([seed, 21])
    x = np.zeros((pairs + 1, 4))
    x[:, 0] = np.where(rng.random(pairs + 1) < 0.5, 1.5, -1.5) + 0.5 * rng.normal(size=pairs + 1)
    for i in range(1, 4):
        sign = np.where(rng.random(pairs + 1) < 1 / (1 + np.exp(-2 * x[:, i - 1])), 1, -1)
        x[:, i] = 1.35 * sign + 0.3 * np.sin(2 * x[:, i - 1]) + 0.5 * rng.normal(size=pairs + 1)

    def normal(z: np.ndarray) -> np.ndarray:
        return np.exp(-(z**2) / 0.5) / np.sqrt(0.5 * np.pi)

    up, centre = 1 / (1 + np.exp(-2 * GRID))[:, None], 0.3 * np.sin(2 * GRID)[:, None]
    step = (up * normal(GRID - centre - 1.35) + (1 - up) * normal(GRID - centre + 1.35)) * STEP
    value = float(np.clip(x[-1, 3], -2.2, 2.2))
    forwards, backwards = [(normal(GRID - 1.5) + normal(GRID + 1.5)) / 2], [step[:, np.abs(GRID - value).argmin()]]
    for _ in range(2):
        forwards.append(forwards[-1] @ step)
        backwards.append(step @ backwards[-1])
    exact = np.array(forwards) * np.array(backwards)[::-1]
    exact /= exact.sum(axis=1, keepdims=True) * STEP
    names = list("abc")
    learned = {name: (x[:-1, i], x[:-1, i + 1]) for i, name in enumerate(names)}
    return Task(
        [(0, 1), (1, 2), (2, 3)], names, list("pqrs"), {"pairs": learned}, {"evidence": {3: value}},
        lambda beliefs: distance([beliefs[i] for i in range(3)], exact),
    )  # fmt: skip


def distance(beliefs: list[Any], exact: np.ndarray) -> float:
    """The mean L1 distance of densities: 0 for the exact ones, at most 2."""
    return float(np.mean([np.abs(b.density(GRID) - e).sum() * STEP for b, e in zip(beliefs, exact, strict=True)]))


def denoising(seed: int, pairs: int, size: int, colours: int = 50) -> Task:
    """Rings with noise of 30 grey levels: the root mean square error of the means.

    All methods read the noisy pixels by the same learned `NoiseLikelihood`.
    """
    import meanmap as mm
    from meanmap import bp
    from meanmap_papers.loopy.denoising import error, noisy, rings

    picture = rings(colours, size)
    rng = np.random.default_rng([seed, 22])
    example, seen = noisy(picture, rng), noisy(picture, rng)
    first, second = (np.concatenate(side) for side in zip(*bp.neighbour_pairs([picture]).values(), strict=True))
    chosen, pixels = rng.permutation(len(first))[:pairs], rng.permutation(picture.size)[:pairs]
    likelihood = bp.NoiseLikelihood.fit(picture.ravel()[pixels], example.ravel()[pixels])
    graph = mm.graphs.grid(size, size)[0]

    def missed(beliefs: Any) -> float:
        means = np.array([float(beliefs[name].mean()) for name in graph.names])
        return error(means.reshape(size, size), picture)

    return Task(
        graph, None, None, {"pairs": (first[chosen], second[chosen]), "likelihood": likelihood},
        {"observed": seen.ravel()}, missed,
    )  # fmt: skip


def depth(seed: int, pairs: int, learned_from: int = 40) -> Task:
    """Log-depth of every second cell of a rendered room that was not learned from: the mean absolute error.

    All methods read the features of a cell by the same `CentredLikelihood`, to the power .3: guesses of neighbouring
    cells err alike.
    """
    import meanmap as mm
    from meanmap import bp

    features, truth = (each[:, ::2, ::2] for each in _rooms())
    rng = np.random.default_rng([seed, 23])
    order = rng.permutation(len(truth))
    train, test = order[:learned_from], order[learned_from]
    first, second = (
        np.concatenate(side) for side in zip(*bp.neighbour_pairs(list(truth[train])).values(), strict=True)
    )
    there = np.flatnonzero(np.isfinite(first) & np.isfinite(second))
    chosen = rng.permutation(there)[:pairs]
    hidden, seen = truth[train].ravel(), features[train].reshape(-1, features.shape[-1])
    cells = rng.permutation(np.flatnonzero(np.isfinite(hidden)))[: 4 * pairs]
    likelihood = bp.Tempered(bp.CentredLikelihood.fit(hidden[cells], seen[cells]), 0.3)
    height, width = truth.shape[1:]
    graph = mm.graphs.grid(height, width)[0]

    def missed(beliefs: Any) -> float:
        means = np.array([float(beliefs[name].mean()) for name in graph.names]).reshape(height, width)
        return float(np.nanmean(np.abs(means - truth[test])))

    return Task(
        graph, None, None, {"pairs": (first[chosen], second[chosen]), "likelihood": likelihood},
        {"observed": features[test].reshape(height * width, -1)}, missed,
    )  # fmt: skip


@cache
def _rooms() -> tuple[np.ndarray, np.ndarray]:
    from meanmap_papers.loopy.scenes import rooms

    return rooms()
