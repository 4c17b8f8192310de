"""How near the PC algorithm comes to the truth: python -m benchmarks.discovery.

Eight variables with additive noise and nonlinear relations, two neighbours each on average, 200 rows. Both searches see
the same data, at several levels. The whole takes part in `python -m benchmarks`, which stores the results and writes
docs/benchmarks/discovery.rst.
"""

import sys
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any

import numpy as np

import meanmap as mm
from benchmarks.table import list_table
from meanmap.core.executors import worked
from meanmap.graphs import PDAG, equivalence_class, structural_hamming_distance
from meanmap.structure import KernelTests

__all__ = ["measure", "measured", "network", "page"]

REPEATS = 16
Found = dict[str, Any]
# Not used while the tests were made.
SEED = 930_000
LEVELS = (0.02, 0.05, 0.1)
FUNCTIONS = (np.sin, np.tanh, lambda v: v**2 / 2, np.abs, lambda v: v)


def network(seed: int, d: int = 8, n: int = 200, neighbours: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    """n rows of d variables in random order, and whether i causes j."""
    rng = np.random.default_rng(seed)
    causes = np.triu(rng.random((d, d)) < neighbours / (d - 1), 1)
    columns = np.zeros((n, d))
    for j in range(d):
        parents = np.flatnonzero(causes[:, j])
        value = rng.normal(size=n) * (0.5 if len(parents) else 1)
        for i in parents:
            value = value + FUNCTIONS[rng.integers(5)](columns[:, i] * rng.uniform(1, 2) * rng.choice([-1, 1]))
        columns[:, j] = (value - value.mean()) / value.std()
    order = rng.permutation(d)
    return columns[:, order], causes[np.ix_(order, order)]


class Remembered:
    """Tests whose p-values are computed once for all levels."""

    def __init__(self, tests: Any):
        self.names, self.most_given, self._tests = tests.names, tests.most_given, tests
        self._known: dict[tuple, float] = {}

    def pvalues(self, pairs: Sequence[tuple[str, str]], given: tuple[str, ...]) -> np.ndarray:
        """A p-value for each pair."""
        given = tuple(sorted(given))
        new = [pair for pair in pairs if (pair, given) not in self._known]
        if new:
            self._known.update(zip([(pair, given) for pair in new], self._tests.pvalues(new, given), strict=True))
        return np.array([self._known[pair, given] for pair in pairs])


class CausalLearn:
    """KCI of causal-learn with its default settings."""

    most_given = 6

    def __init__(self, columns: np.ndarray):
        from causallearn.utils.cit import CIT

        self.names, self._test = _names(columns), CIT(columns, "kci")

    def pvalues(self, pairs: Sequence[tuple[str, str]], given: tuple[str, ...]) -> np.ndarray:
        """A p-value for each pair."""
        z = [self.names.index(name) for name in given]
        return np.array([self._test(self.names.index(a), self.names.index(b), z) for a, b in pairs])


def _names(columns: np.ndarray) -> tuple[str, ...]:
    return tuple(f"x{i}" for i in range(columns.shape[1]))


METHODS = {
    "meanmap": lambda x: KernelTests(dict(zip(_names(x), x.T, strict=True)), rng=0),
    "causal-learn KCI": CausalLearn,
}


def measured(name: str, seed: int) -> dict[str, list[int]]:
    """For each level: distance to the true class, extra and missing edges, true null hypotheses and rejected ones."""
    columns, causes = network(seed)
    names = _names(columns)
    true = PDAG.of([(names[i], names[j]) for i, j in np.argwhere(causes)], nodes=names)
    target = equivalence_class(true).matrix
    joined, asked = target | target.T, Remembered(METHODS[name](columns))
    nulls = np.array([asked.pvalues([pair], given)[0] for pair, given in _independences(causes, names)])
    rows = {}
    for level in LEVELS:
        found = mm.pc(asked, level)
        matrix = found.matrix
        edges = matrix | matrix.T
        rows[str(level)] = [
            int(structural_hamming_distance(found, equivalence_class(true))),
            int(np.sum(edges & ~joined)) // 2,
            int(np.sum(joined & ~edges)) // 2,
            len(nulls),
            int(np.sum(nulls <= level)),
        ]
    return rows


def _independences(causes: np.ndarray, names: tuple[str, ...]) -> list[tuple[tuple[str, str], tuple[str, ...]]]:
    """Pairs that are not joined, given the causes of the later one, where these are one to three."""
    import networkx

    order = list(networkx.topological_sort(networkx.DiGraph(np.argwhere(causes).tolist())))
    place = {node: order.index(node) if node in order else -1 for node in range(len(causes))}
    found = []
    for a, b in np.argwhere(np.triu(~(causes | causes.T), 1)).tolist():
        given = np.flatnonzero(causes[:, a if place[a] > place[b] else b])
        if 1 <= len(given) <= 3:
            found.append(((names[a], names[b]), tuple(names[i] for i in given)))
    return found


def measure(executor: Executor | None = None) -> Found:
    """Both searches on the same data sets: means, and differences at comparable levels."""
    sets: dict[str, list[dict[str, list[int]]]] = {name: [] for name in METHODS}
    for name, each in sets.items():
        for found in worked(partial(measured, name), range(SEED, SEED + REPEATS), executor):
            each.append(found)
            print(name, len(each), found, file=sys.stderr, flush=True)
    return summary(sets)


def summary(sets: dict[str, list[dict[str, list[int]]]]) -> Found:
    """The numbers of the table."""
    searches = {}
    for name, each in sets.items():
        for level in map(str, LEVELS):
            rows = np.array([one[level] for one in each], float)
            error = rows[:, 0].std(ddof=1) / np.sqrt(len(rows))
            distance, many, missing = rows[:, :3].mean(axis=0)
            share = rows[:, 4].sum() / rows[:, 3].sum()
            values = {"rejected": share, "distance": distance, "error": error, "too many": many, "missing": missing}
            searches.setdefault(name, {})[level] = {key: round(float(value), 3) for key, value in values.items()}
    ours, theirs = sets.values()
    apart = {}
    for first, second in ((0.05, 0.05), (0.1, 0.1), (0.05, 0.02), (0.1, 0.05)):
        gaps = np.array([a[str(first)][0] - b[str(second)][0] for a, b in zip(ours, theirs, strict=True)], float)
        apart[f"{first} and {second}"] = [
            round(float(gaps.mean()), 2),
            round(float(gaps.std(ddof=1) / len(gaps) ** 0.5), 2),
        ]
    return {"sets": len(ours), "searches": searches, "apart": apart}


def page(found: Found) -> str:
    """The table, and differences at comparable levels."""
    head = [
        "search",
        "level",
        "true null hypotheses rejected",
        "distance to the true class",
        "extra edges",
        "missing edges",
    ]
    rows = [
        [
            name,
            level,
            f"{of['rejected']:.3f}",
            f"{of['distance']:.2f} ± {of['error']:.2f}",
            f"{of['too many']:.2f}",
            f"{of['missing']:.2f}",
        ]
        for name, levels in found["searches"].items()
        for level, of in levels.items()
    ]
    apart = "; ".join(f"levels {levels}: {mean:+.2f} ± {error:.2f}" for levels, (mean, error) in found["apart"].items())
    told = f"{found['sets']} data sets. Our mean distance minus that of the other, at our level and the other's level: "
    return "\n".join([*list_table(head, rows), f"{told}{apart}.", ""])


if __name__ == "__main__":
    print(page(measure()))
