"""How near the PC algorithm comes to the truth: python -m benchmarks.discovery [--repeats 80].

Eight variables with additive noise and nonlinear relations, two neighbours each on average, 200 rows. Both searches see
the same data, at several levels; causal-learn takes part where it is installed. Writes docs/benchmarks/discovery.rst.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import meanmap as mm
from meanmap.graphs import PDAG, equivalence_class, structural_hamming_distance
from meanmap.structure import KernelTests

__all__ = ["main", "measured", "network", "page"]

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "discovery.rst"
# Not used while the tests were made.
SEED = 930_000
LEVELS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2)
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
    """Tests that answer a question once for all levels."""

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


def measured(make: Any, seed: int) -> dict[float, tuple[float, ...]]:
    """For each level: distance to the true class, edges too many, edges missing, true hypotheses and rejected ones."""
    columns, causes = network(seed)
    names = _names(columns)
    true = PDAG.of([(names[i], names[j]) for i, j in np.argwhere(causes)], nodes=names)
    target = equivalence_class(true).matrix
    joined, asked = target | target.T, Remembered(make(columns))
    nulls = np.array([asked.pvalues([pair], given)[0] for pair, given in _independences(causes, names)])
    rows = {}
    for level in LEVELS:
        found = mm.pc(asked, level)
        matrix = found.matrix
        edges = matrix | matrix.T
        rows[level] = (
            structural_hamming_distance(found, equivalence_class(true)),
            np.sum(edges & ~joined) / 2,
            np.sum(joined & ~edges) / 2,
            len(nulls),
            int(np.sum(nulls <= level)),
        )
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


def page(results: dict[str, list[dict[float, tuple[float, ...]]]]) -> str:
    """The table, and the difference at the usual level."""
    heads = ("search", "level", "true hypotheses rejected", "distance to the true class", "too many", "missing")
    lines = [".. list-table::", "   :header-rows: 1", "   :class: numbers", "", *_row(heads)]
    for name, sets in results.items():
        for level in LEVELS:
            rows = np.array([each[level] for each in sets], float)
            mean, error = rows.mean(axis=0), rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
            distances = (f"{mean[0]:.2f} ± {error[0]:.2f}", f"{mean[1]:.2f}", f"{mean[2]:.2f}")
            lines += _row((name, f"{level:g}", f"{rows[:, 4].sum() / rows[:, 3].sum():.3f}", *distances))
    sizes = {name: len(sets) for name, sets in results.items()}
    lines += ["", f"{min(sizes.values())} data sets."]
    if len(results) == 2:
        ours, theirs = results.values()
        for first, second in ((0.05, 0.05), (0.1, 0.1), (0.05, 0.02), (0.1, 0.05)):
            apart = np.array([a[first][0] - b[second][0] for a, b in zip(ours, theirs, strict=True)], float)
            lines[-1] += (
                f" Distance of ours at level {first:g} less that of the other at {second:g}: {apart.mean():+.2f} ± "
                f"{apart.std(ddof=1) / np.sqrt(len(apart)):.2f}."
            )
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> list[str]:
    return [f"   * - {cells[0]}", *(f"     - {cell}" for cell in cells[1:])]


def main(arguments: list[str] | None = None) -> int:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.discovery", description=__doc__)
    parser.add_argument("--repeats", type=int, default=80)
    chosen = parser.parse_args(arguments)
    results: dict[str, list[Any]] = {}
    for name, make in METHODS.items():
        try:
            results[name] = [measured(make, SEED + repeat) for repeat in range(chosen.repeats)]
        except ImportError as problem:
            print(f"{name} is left out: {problem}.", file=sys.stderr)
    PAGE.write_text(page(results), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
