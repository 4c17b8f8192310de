"""Level and power of conditional independence tests: python -m benchmarks.conditional.

Every method sees the same data sets, at level 0.05. The whole takes part in `python -m benchmarks`, which stores the
results and writes docs/benchmarks/conditional.rst.
"""

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any

import numpy as np

import meanmap as mm
from benchmarks.table import duration, list_table
from meanmap.core.executors import worked

__all__ = ["METHODS", "PROBLEMS", "independent", "levels", "measure", "page", "powers", "problem"]

LEVEL, LEVEL_REPEATS, POWER_REPEATS = 0.05, 200, 40
# Data sets of levels and of powers; neither was used while the test was made.
LEVEL_SEED, POWER_SEED = 5_000_000, 6_000_000
Triple = tuple[np.ndarray, np.ndarray, np.ndarray]
Found = dict[str, Any]
# Where the level is measured: method, functions, n and columns of z.
CELLS = (
    ("kci", "nonlinear", 100, 5),
    ("kci", "nonlinear", 200, 1),
    ("kci", "nonlinear", 200, 3),
    ("kci", "nonlinear", 200, 5),
    ("kci", "linear", 200, 3),
    ("kci", "nonlinear", 500, 3),
    ("features", "nonlinear", 200, 3),
    ("residuals", "nonlinear", 200, 3),
    ("causal-learn KCI", "nonlinear", 200, 1),
    ("causal-learn KCI", "nonlinear", 200, 3),
    ("causal-learn KCI", "nonlinear", 200, 5),
    ("causal-learn KCI", "linear", 200, 3),
)
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
    """x and y that are independent given z: see `problem`."""
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
    "kci": ours("kci"),
    "features": ours("features"),
    "residuals": ours("residuals"),
    "causal-learn KCI": causal_learn,
}


def levels(cells: Sequence[tuple[str, str, int, int]], repeats: int, executor: Executor | None = None) -> list[Found]:
    """Rejections if x and y are independent given z, and processor seconds per test."""
    found = []
    for method, kind, n, d in cells:
        once = partial(_tested, method, kind, n, d, "none", LEVEL_SEED)
        rejected, seconds = zip(*worked(once, range(repeats), executor), strict=True)
        middle = float(f"{np.median(seconds):.3g}")
        cell = {"method": method, "kind": kind, "n": n, "d": d, "rejected": sum(rejected), "seconds": middle}
        print(cell, file=sys.stderr, flush=True)
        found.append(cell)
    return found


def powers(methods: Sequence[str], repeats: int, n: int = 200, executor: Executor | None = None) -> list[Found]:
    """Rejection rates if they are dependent, by problem."""
    found = []
    for kind, d, effect in PROBLEMS:
        rates = {}
        for name in methods:
            once = partial(_tested, name, kind, n, d, effect, POWER_SEED)
            rates[name] = sum(rejected for rejected, _ in worked(once, range(repeats), executor)) / repeats
        found.append({"kind": kind, "d": d, "effect": effect, "rates": rates})
        print(found[-1], file=sys.stderr, flush=True)
    return found


def _tested(method: str, kind: str, n: int, d: int, effect: str, first: int, seed: int) -> tuple[bool, float]:
    """Whether a method rejects, and its processor seconds."""
    data = problem(kind, n, d, first + seed, effect)
    start = time.process_time()
    return bool(METHODS[method](*data, seed)), time.process_time() - start


def measure(executor: Executor | None = None) -> Found:
    """Level and power of all methods."""
    level = levels(CELLS, LEVEL_REPEATS, executor)
    power = powers(list(METHODS), POWER_REPEATS, executor=executor)
    return {"level repeats": LEVEL_REPEATS, "level": level, "power repeats": POWER_REPEATS, "power": power}


def page(found: Found) -> str:
    """Both tables of the documentation; rates outside the 99% binomial bounds of the level are bold."""
    repeats = found["level repeats"]
    rows = [
        [c["method"], c["kind"], c["n"], c["d"], shown(c["rejected"], repeats), duration(c["seconds"])]
        for c in found["level"]
    ]
    head = ["method", "functions", "n", "columns of z", "rejected", "processor seconds per test"]
    lines = list_table(head, rows, "Rejection rates under conditional independence, level 0.05")
    lines += [f"{repeats} data sets per row; bold outside the 99% binomial bounds of 0.05.", ""]
    methods = list(found["power"][0]["rates"])
    rows = [
        [f"{row['kind']}, {row['d']}, {row['effect']}", *(f"{row['rates'][name]:.2f}" for name in methods)]
        for row in found["power"]
    ]
    head = ["functions, columns of z, dependence", *methods]
    lines += list_table(head, rows, "Rejection rates under dependence given z, n = 200")
    error = 0.5 / found["power repeats"] ** 0.5
    return "\n".join(
        [*lines, f"{found['power repeats']} data sets per row: the standard error is at most {error:.2f}.", ""]
    )


def shown(rejected: int, repeats: int) -> str:
    """A rate, bold if it is outside the range of exact tests in 99 of 100 tables."""
    from scipy.stats import binom

    low, high = binom.interval(0.99, repeats, LEVEL)
    rate = f"{rejected / repeats:.3f}"
    return rate if low <= rejected <= high else f"**{rate}**"


if __name__ == "__main__":
    print(page(measure()))
