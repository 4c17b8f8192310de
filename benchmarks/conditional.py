"""Level and power of conditional independence tests: python -m benchmarks.conditional [--repeats 1000].

Every method sees the same data sets, at level 0.05. causal-learn takes part where it is installed. Writes
docs/benchmarks/conditional.rst. All levels of 1000 data sets take about an hour on one core; `--sizes 100 200` less.
"""

import argparse
import importlib.util
import itertools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import meanmap as mm

__all__ = ["METHODS", "PROBLEMS", "independent", "levels", "main", "page", "powers", "problem"]

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "conditional.rst"
LEVEL, SIZES, WIDTHS, KINDS = 0.05, (100, 200, 500, 1000), (1, 2, 3, 4, 5), ("linear", "nonlinear")
# Data sets of levels and of powers; neither was used while the test was made.
LEVEL_SEED, POWER_SEED = 5_000_000, 6_000_000
Triple = tuple[np.ndarray, np.ndarray, np.ndarray]
Cell = tuple[int, int]
# Bent, saturating and wiggly functions, each with a variance near one under a standard normal.
FUNCTIONS: tuple[Callable[[np.ndarray], np.ndarray], ...] = (
    np.tanh,
    lambda t: np.sin(2 * t),
    lambda t: 2 * np.exp(-(t**2)),
    lambda t: t**2 / 1.4,
    lambda t: t**3 / 3.9,
    np.abs,
    lambda t: 1.4 * np.cos(2 * t),
)
# What is added to the noise of y once the noise of x is e: dependence given z.
EFFECTS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "none": lambda e, f, z: f,
    "linear": lambda e, f, z: f + 0.25 * e,
    "square": lambda e, f, z: f + 0.25 * (e**2 - 1),
    "wave": lambda e, f, z: f + 0.85 * np.sin(3 * e),
    "turning with z": lambda e, f, z: f + 0.5 * e * np.sign(z[:, 0]),
    "noise of y": lambda e, f, z: f * np.exp(0.35 * e),
}
PROBLEMS = [
    ("linear", 1, "linear"),
    ("linear", 5, "linear"),
    ("additive", 3, "linear"),
    ("additive", 3, "square"),
    ("additive", 3, "wave"),
    ("additive", 3, "turning with z"),
    ("additive", 3, "noise of y"),
    ("product", 3, "linear"),
]


def independent(kind: str, n: int, d: int, seed: int) -> Triple:
    """x and y with nothing in common but z: see `problem`."""
    return problem(kind, n, d, seed, "none")


def problem(kind: str, n: int, d: int, seed: int, effect: str) -> Triple:
    """n rows with d conditioning columns.

    "linear": x and y are linear in z. "nonlinear": in turn, sums of functions of each column, the same function of the
    sum of all columns in x and in y, and functions of two directions with noise inside. "product": the same product and
    wave in x and in y.
    """
    if kind == "nonlinear":
        kind = ("additive", "same", "inside")[seed % 3]
    rng = np.random.default_rng([seed, n, d, 77])
    z = rng.normal(size=(n, d))
    e, f = rng.normal(size=(2, n))
    f = EFFECTS[effect](e, f, z)
    if kind == "linear":
        a, b = rng.normal(size=(2, d)) / np.sqrt(d)
        return z @ a + 0.7 * e, z @ b + 0.7 * f, z
    if kind == "additive":
        x, y = (sum(FUNCTIONS[rng.integers(7)](z[:, j]) for j in range(d)) / np.sqrt(d) for _ in range(2))
        return x + 0.5 * e, y + 0.5 * f, z
    if kind == "inside":
        a, b = (v / np.linalg.norm(v) for v in (rng.normal(size=d), rng.normal(size=d)))
        g, h = FUNCTIONS[rng.integers(7)], FUNCTIONS[rng.integers(7)]
        return g(z @ a + 0.3 * e) + 0.3 * e, h(z @ b + 0.3 * f) + 0.3 * f, z
    if kind == "same":
        g = FUNCTIONS[rng.integers(7)](z.sum(axis=1) / np.sqrt(d))
    else:
        g = z[:, 0] * z[:, 1 % d] + np.sin(2 * z[:, -1])
    return g + 0.5 * e, g + 0.5 * f, z


def ours(method: str) -> Callable[[np.ndarray, np.ndarray, np.ndarray, int], bool]:
    """Our test with this method and 199 draws."""

    def rejects(x: np.ndarray, y: np.ndarray, z: np.ndarray, seed: int) -> bool:
        return mm.conditional_independence_test(x, y, z, method=method, n_permutations=199, rng=seed).reject(LEVEL)

    return rejects


def causal_learn(x: np.ndarray, y: np.ndarray, z: np.ndarray, seed: int) -> bool:
    """KCI of causal-learn with its default settings."""
    from causallearn.utils.cit import CIT

    return CIT(np.column_stack([x, y, z]), "kci")(0, 1, list(range(2, 2 + z.shape[1]))) <= LEVEL


METHODS = {
    "kci": ("meanmap", ours("kci")),
    "features": ("meanmap", ours("features")),
    "residuals": ("meanmap", ours("residuals")),
    "causal-learn KCI": ("causallearn", causal_learn),
}


def levels(methods: Sequence[str], sizes: Sequence[int], widths: Sequence[int], repeats: int) -> dict[tuple, Cell]:
    """Rejections where x and y are independent given z, and data sets, by method, kind, n and d."""
    rates = {}
    for name, n, kind, d in itertools.product(methods, sizes, KINDS, widths):
        found = sum(METHODS[name][1](*independent(kind, n, d, LEVEL_SEED + seed), seed) for seed in range(repeats))
        rates[name, kind, n, d] = (found, repeats)
        print(f"level: {name}, {kind}, n = {n}, d = {d}: {found / repeats:.3f}", flush=True)
    return rates


def powers(methods: Sequence[str], repeats: int, n: int = 200) -> dict[tuple, float]:
    """Rejection rates where they are not, by problem and method."""
    rates = {}
    for kind, d, effect in PROBLEMS:
        for name in methods:
            found = sum(
                METHODS[name][1](*problem(kind, n, d, POWER_SEED + seed, effect), seed) for seed in range(repeats)
            )
            rates[(kind, d, effect), name] = found / repeats
        line = "  ".join(f"{name} {rates[(kind, d, effect), name]:.2f}" for name in methods)
        print(f"power: {kind}, d = {d}, {effect}: {line}", flush=True)
    return rates


def page(level: dict[tuple, Cell], power: dict[tuple, float], power_repeats: int) -> str:
    """Both tables of the documentation; rates outside the 99 % binomial bounds of the level are bold."""
    most = max(repeats for _, repeats in level.values())
    settings = ["   :header-rows: 1", "   :class: numbers", ""]
    lines = [".. list-table:: Rejection rates under conditional independence, level 0.05", *settings]
    lines += ["   * - method", "     - functions", "     - n", *(f"     - d = {d}" for d in WIDTHS)]
    for name, kind, n in dict.fromkeys(key[:3] for key in level):
        lines += [f"   * - {name}", f"     - {kind}", f"     - {n}"]
        lines += [f"     - {shown(level.get((name, kind, n, d)), most)}".rstrip() for d in WIDTHS]
    lines += [
        "",
        f"{most} data sets a cell, or as many as the brackets say; bold outside the 99 % binomial bounds of 0.05.",
    ]
    if not power:
        return "\n".join(lines) + "\n"
    methods = list(dict.fromkeys(name for _, name in power))
    lines += ["", ".. list-table:: Rejection rates under dependence given z, n = 200", *settings]
    lines += ["   * - functions, d, dependence", *(f"     - {name}" for name in methods)]
    for kind, d, effect in dict.fromkeys(key for key, _ in power):
        lines.append(f"   * - {kind}, {d}, {effect}")
        lines += [f"     - {power[(kind, d, effect), name]:.2f}" for name in methods]
    lines += ["", f"{power_repeats} data sets a row: the standard error is at most {0.5 / power_repeats**0.5:.2f}."]
    return "\n".join(lines) + "\n"


def shown(cell: Cell | None, most: int) -> str:
    """One rate, with its data sets if there are fewer, and nothing where nothing was measured."""
    from scipy.stats import binom

    if cell is None:
        return ""
    found, repeats = cell
    low, high = binom.interval(0.99, repeats, LEVEL)
    rate = f"{found / repeats:.3f}" if low <= found <= high else f"**{found / repeats:.3f}**"
    return rate if repeats == most else f"{rate} ({repeats})"


def main(arguments: list[str] | None = None) -> int:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.conditional", description=__doc__)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--power-repeats", type=int, default=200)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--widths", type=int, nargs="+", default=WIDTHS)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    chosen = parser.parse_args(arguments)
    methods = [name for name in chosen.methods if importlib.util.find_spec(METHODS[name][0])]
    for name in set(chosen.methods) - set(methods):
        print(f"{name} is left out: {METHODS[name][0]} is not installed.", file=sys.stderr)
    level = levels(methods, chosen.sizes, chosen.widths, chosen.repeats)
    power = powers(methods, chosen.power_repeats)
    PAGE.write_text(page(level, power, chosen.power_repeats), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
