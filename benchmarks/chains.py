"""Beliefs in the middle of long chains, beside maximum likelihood: nice python -m benchmarks.chains --keep.

Chains of 20 steps whose ends are seen: numbers with normal noise, and two modes between which they seldom change. The
means of all variables between are compared with exact ones, by sums over a grid. Beside ours the right family is fitted
to the same pairs by maximum likelihood, for `KernelGraph` anew for each edge, as it does not know that edges are alike.
"""

import sys
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy.optimize import minimize

import meanmap as mm
from benchmarks import pages
from benchmarks.table import list_table

__all__ = ["CHAINS", "Chain", "Normal", "TwoModes", "measure", "page"]

SEED, STEPS = 17_000_000, 20
EDGES = [(i, i + 1) for i in range(STEPS)]
GRID = np.linspace(-4, 4, 401)
# Pairs, and the number of data sets of each model.
SETS = {"KernelField": {300: 40, 1000: 40, 5000: 12}, "KernelGraph": {300: 20, 1000: 10}}
# Aim: this many standard deviations of the variable.
WITHIN = 0.15
Found = dict[str, Any]


class Chain(ABC):
    """A family of laws of two neighbours, alike in both directions, with its true parameters; where ends are seen."""

    end: float
    truth: np.ndarray

    @abstractmethod
    def logs(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The log density of pairs, up to a constant."""

    @abstractmethod
    def next(self, rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
        """The neighbours of some values under the true parameters."""

    @abstractmethod
    def first(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Values of a variable."""

    def rows(self, rng: np.random.Generator, n: int, nodes: int) -> np.ndarray:
        """n rows of a chain, (n, nodes)."""
        columns = [self.first(rng, n)]
        for _ in range(nodes - 1):
            columns.append(self.next(rng, columns[-1]))
        return np.stack(columns, axis=1)

    def fit(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The parameters of maximum likelihood."""
        options = {"xatol": 1e-3, "fatol": 1e-6}
        return minimize(lambda p: -self.logs(p, x, y).mean(), self.truth, method="Nelder-Mead", options=options).x

    def means(self, edges: list[np.ndarray]) -> tuple[np.ndarray, float]:
        """The means between both ends, by the parameters of each edge, and the standard deviation of a variable."""
        x, y = np.meshgrid(GRID, GRID, indexing="ij")
        joint = {id(each): np.exp(self.logs(each, x, y)) for each in edges}
        law = joint[id(edges[0])].sum(axis=1)
        steps = [joint[id(each)] / joint[id(each)].sum(axis=1, keepdims=True) for each in edges]
        at = np.eye(len(GRID))[np.argmin(np.abs(GRID - self.end))]
        before, behind = [at], [at]
        for forth, back in zip(steps, steps[::-1], strict=True):
            before.append(before[-1] @ forth)
            behind.append(back @ behind[-1])
        beliefs = [before[i] * behind[len(edges) - i] for i in range(1, len(edges))]
        moments = [law @ GRID**power / law.sum() for power in (1, 2)]
        return np.array([w @ GRID / w.sum() for w in beliefs]), float(np.sqrt(moments[1] - moments[0] ** 2))


class Normal(Chain):
    """Mean, log standard deviation and correlation."""

    end, truth = 1.5, np.array([0.0, 0.0, 0.9])

    def logs(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """A bivariate normal law."""
        mean, size, r = parameters[0], np.exp(parameters[1]), parameters[2]
        return _together((x - mean) / size, (y - mean) / size, r) - 2 * parameters[1]

    def first(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Standard normal numbers."""
        return rng.normal(size=n)

    def next(self, rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
        """An autoregression."""
        r = self.truth[2]
        return r * x + np.sqrt(1 - r**2) * rng.normal(size=len(x))

    def fit(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Moments of both together."""
        both = np.concatenate([x, y])
        mean, size = both.mean(), both.std()
        return np.array([mean, np.log(size), np.mean((x - mean) * (y - mean)) / size**2])


class TwoModes(Chain):
    """Modes at ± a place, their log width, arctanh of the correlation about them, log odds of staying at one."""

    end, truth = 1.2, np.array([1.0, np.log(0.45), np.arctanh(0.5), np.log(19.0)])

    def logs(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Four bivariate normal laws."""
        place, width, r, stay = parameters[0], np.exp(parameters[1]), np.tanh(parameters[2]), parameters[3]
        logs = [
            _together((x - a) / width, (y - b) / width, r) - np.logaddexp(0, -stay if a == b else stay)
            for a in (-place, place)
            for b in (-place, place)
        ]
        return np.logaddexp.reduce(logs) - 2 * parameters[1]

    def first(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Either mode."""
        return rng.choice([-1.0, 1.0], n) + 0.45 * rng.normal(size=n)

    def next(self, rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
        """The mode of x by Bayes' rule, and that of its neighbour."""
        here = np.where(rng.random(len(x)) < 1 / (1 + np.exp(-2 * x / 0.45**2)), 1.0, -1.0)
        there = np.where(rng.random(len(x)) < 0.95, here, -here)
        return there + 0.5 * (x - here) + 0.45 * np.sqrt(0.75) * rng.normal(size=len(x))


CHAINS: dict[str, Chain] = {"normal": Normal(), "two modes": TwoModes()}


def _together(u: np.ndarray, v: np.ndarray, r: float) -> np.ndarray:
    """The log density of two standard normal numbers with correlation r, up to a constant."""
    return (2 * r * u * v - u**2 - v**2) / (1 - r**2) / 2 - np.log(1 - r**2) / 2


def errors(model: str, chain: Chain, pairs: int, seed: int) -> np.ndarray:
    """Of all means between the ends, ours and by maximum likelihood, in standard deviations, (2, STEPS - 1)."""
    rng, exact = np.random.default_rng([SEED, pairs, seed]), chain.means([chain.truth] * STEPS)
    if model == "KernelField":
        rows = chain.rows(rng, pairs, 2)
        fitted: Any = mm.KernelField(mm.graphs.Graph.of(EDGES)).fit((rows[:, 0], rows[:, 1]))
        parameters = [chain.fit(rows[:, 0], rows[:, 1])] * STEPS
    else:
        rows = chain.rows(rng, pairs, STEPS + 1)
        fitted = mm.KernelGraph(EDGES).fit(rows)
        parameters = [chain.fit(rows[:, i], rows[:, i + 1]) for i in range(STEPS)]
    between = list(range(1, STEPS))
    beliefs = fitted.query({0: chain.end, STEPS: chain.end}, between)
    ours = np.array([float(beliefs[i].mean()) for i in between])
    return (np.stack([ours, chain.means(parameters)[0]]) - exact[0]) / exact[1]


def summed(found: np.ndarray) -> Found:
    """Root mean squares over variables and data sets, with standard errors, and our bias in the middle, of errors
    (sets, 2, STEPS - 1).
    """
    squares, middle = (found**2).mean(axis=2), found[:, 0, found.shape[2] // 2]
    root, error = np.sqrt(squares.mean(axis=0)), squares.std(axis=0, ddof=1) / np.sqrt(len(found))
    told = {name: [float(root[k]), float(error[k] / 2 / root[k])] for k, name in enumerate(("ours", "likelihood"))}
    told["middle"] = [float(middle.mean()), float(middle.std(ddof=1) / np.sqrt(len(found)))]
    return {"sets": len(found)} | {name: [round(each, 4) for each in pair] for name, pair in told.items()}


def measure() -> Found:
    """All chains, models and numbers of pairs."""
    found: Found = {}
    for model, sets in SETS.items():
        for name, chain in CHAINS.items():
            for pairs, seeds in sets.items():
                told = summed(np.array([errors(model, chain, pairs, seed) for seed in range(seeds)]))
                found[f"{model}; {name}; {pairs}"] = told
                print(model, name, pairs, told, file=sys.stderr, flush=True)
    return found


def page(found: Found) -> str:
    """Errors in standard deviations; those above the aim are bold."""
    rows = []
    for key, one in found.items():
        model, name, pairs = key.split("; ")
        cells = [f"{root:.3f} ± {error:.3f}" for root, error in (one["ours"], one["likelihood"])]
        cells[0] = cells[0] if one["ours"][0] <= WITHIN else f"**{cells[0]}**"
        rows.append([model, name, pairs, one["sets"], *cells, f"{one['middle'][0]:+.3f} ± {one['middle'][1]:.3f}"])
    head = ["model", "chain", "pairs", "data sets", "error", "error of maximum likelihood", "bias in the middle"]
    return "\n".join(list_table(head, rows))


def main() -> None:
    """Measure, and print the page or keep the results."""
    found = measure()
    if sys.argv[1:] == ["--keep"]:
        pages.store({**pages.stored(), "chains": found})
    print(page(found))


if __name__ == "__main__":
    main()
