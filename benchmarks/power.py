"""How often two-sample tests see a difference that is there: python -m benchmarks.power [--repeats 200].

Every method sees the same data sets, at level 0.05. Peers take part where they are installed: goodpoints from PyPI,
mmdagg and mmdfuse from their authors' repositories. HIGGS and MNIST are read from the folder named by MEANMAP_DATA and
left out without it. Writes docs/benchmarks/power.rst.
"""

import argparse
import contextlib
import csv
import gzip
import importlib.util
import io
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import meanmap as mm
from benchmarks.table import machine

__all__ = ["METHODS", "PROBLEMS", "main", "panel"]

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "power.rst"
LEVEL = 0.05
Pair = tuple[np.ndarray, np.ndarray]


def grid_of_gaussians(rng: np.random.Generator) -> Pair:
    """Nine round Gaussians 10 apart against nine stretched and turned ones (Flaxman et al. 2016, section 5)."""
    centres = 10.0 * rng.integers(0, 3, (2, 400, 2))
    noise = rng.normal(size=(2, 400, 2))
    turn = np.array([[1, -1], [1, 1]]) / np.sqrt(2)
    return centres[0] + noise[0], centres[1] + noise[1] * np.sqrt([2.6, 1.0]) @ turn.T


def shift(rng: np.random.Generator) -> Pair:
    """Standard Gaussians, one of 20 columns shifted by 0.55."""
    x, y = rng.normal(size=(2, 100, 20))
    y[:, 0] += 0.55
    return x, y


def variance_in_one(rng: np.random.Generator) -> Pair:
    """Standard Gaussians, one of 10 columns twice as wide."""
    x, y = rng.normal(size=(2, 100, 10))
    y[:, 0] *= 2
    return x, y


def variance_in_all(rng: np.random.Generator) -> Pair:
    """Standard Gaussians, all of 5 columns 1.35 times as wide."""
    x, y = rng.normal(size=(2, 60, 5))
    return x, 1.35 * y


def heavy_tails(rng: np.random.Generator) -> Pair:
    """Ten Gaussian columns against Student's t with 4 degrees of freedom, of the same variance."""
    return rng.normal(size=(100, 10)), rng.standard_t(4, size=(100, 10)) / np.sqrt(2)


def correlation(rng: np.random.Generator) -> Pair:
    """Four independent columns against correlations of 0.4."""
    root = np.linalg.cholesky(0.6 * np.eye(4) + 0.4)
    x, y = rng.normal(size=(2, 100, 4))
    return x, y @ root.T


def perturbed_uniform(columns: int, bumps: int, height: float, n: int) -> Callable[[np.random.Generator], Pair]:
    """Uniform against uniform plus smooth bumps of random sign (Schrab et al. 2023, section 5.2)."""

    def draw(rng: np.random.Generator) -> Pair:
        signs = rng.choice([-1.0, 1.0], size=(bumps,) * columns)
        kept: list[np.ndarray] = []
        while len(kept) < n:
            u = rng.uniform(size=columns)
            cell = np.floor(bumps * u).astype(int)
            within = 4 * (bumps * u - cell) - 1  # a bump up on (0, 1/2) and down on (1/2, 1) of each cell
            shape = np.prod([_bump(t) - _bump(t - 2) for t in within])
            if rng.uniform(0, 1 + height) < 1 + height * signs[tuple(cell)] * shape:
                kept.append(u)
        return rng.uniform(size=(n, columns)), np.array(kept)

    return draw


def _bump(t: float) -> float:
    """A smooth bump on (−1, 1) of height 1."""
    return float(np.exp(1 - 1 / (1 - t * t))) if abs(t) < 1 else 0.0


def bimodal(rng: np.random.Generator) -> Pair:
    """A Gaussian against two of them, with the same mean and variance."""
    y = 0.9 * rng.choice([-1.0, 1.0], 100) + np.sqrt(1 - 0.81) * rng.normal(size=100)
    return rng.normal(size=(100, 1)), y[:, None]


def higgs(columns: int, n: int, folder: Path) -> Callable[[np.random.Generator], Pair]:
    """Rows of signal against rows of background."""
    with gzip.open(folder / "two_sample" / "higgs_7000.csv.gz", "rt") as file:
        table = np.array(list(csv.reader(file))[1:], dtype=float)
    sides = [table[table[:, 0] == label, 1 : 1 + columns] for label in (1, 0)]

    def draw(rng: np.random.Generator) -> Pair:
        x, y = (side[rng.choice(len(side), n, replace=False)] for side in sides)
        return x, y

    return draw


def digits(n: int, folder: Path) -> Callable[[np.random.Generator], Pair]:
    """All digits against digits without 7 and 9, 784 pixels."""
    data = np.load(folder / "two_sample" / "mnist_2500.npz")
    images, labels = data["images"] / 255.0, data["labels"]

    def draw(rng: np.random.Generator) -> Pair:
        order = rng.permutation(len(images))
        rest = order[n:][~np.isin(labels[order[n:]], (7, 9))]
        return images[order[:n]], images[rest[:n]]

    return draw


PROBLEMS: dict[str, Callable[[np.random.Generator], Pair]] = {
    "grid of Gaussians": grid_of_gaussians,
    "shift in 1 of 20 columns": shift,
    "width of 1 of 10 columns": variance_in_one,
    "width of all of 5 columns": variance_in_all,
    "heavy tails, 10 columns": heavy_tails,
    "correlation of 4 columns": correlation,
    "perturbed uniform, 1 column": perturbed_uniform(1, 2, 0.7, 200),
    "perturbed uniform, 2 columns": perturbed_uniform(2, 1, 0.9, 200),
    "two modes, 1 column": bimodal,
}


def with_data() -> dict[str, Callable[[np.random.Generator], Pair]]:
    """The problems whose data are here."""
    folder = os.environ.get("MEANMAP_DATA")
    if not folder:
        print("MEANMAP_DATA names no folder: HIGGS and MNIST are left out.", file=sys.stderr)
        return PROBLEMS
    real = {"HIGGS, 28 columns": higgs(28, 300, Path(folder)), "HIGGS, first 4 columns": higgs(4, 400, Path(folder))}
    return {**PROBLEMS, **real, "MNIST without 7 and 9": digits(150, Path(folder))}


def ours(kernel: Any = None, scale: bool = True) -> Callable[[np.ndarray, np.ndarray, int], bool]:
    """Our test with 500 permutations."""
    return lambda x, y, seed: mm.two_sample_test(x, y, kernel, n_permutations=500, scale=scale, rng=seed).reject(LEVEL)


def aggregated(x: np.ndarray, y: np.ndarray, seed: int) -> bool:
    """MMDAgg of Schrab et al. (2023): their code, twice 500 permutations."""
    from mmdagg.jax import mmdagg

    return bool(mmdagg(x, y, B1=500, B2=500, seed=seed))


def fused(x: np.ndarray, y: np.ndarray, seed: int) -> bool:
    """MMD-FUSE of Biggs et al. (2023): their code, 500 permutations."""
    import jax
    from mmdfuse.mmdfuse import mmdfuse

    return bool(mmdfuse(x, y, jax.random.key(seed), number_permutations=500))


def compressed(x: np.ndarray, y: np.ndarray, seed: int) -> bool:
    """Compress-then-test over nine widths about the median (Domingo-Enrich et al. 2023): their code."""
    from goodpoints.ctt import actt

    # Their width is √2 lengthscales.
    widths = np.sqrt(2) * mm.median_heuristic(np.concatenate([x, y]), rng=0) * 2.0 ** np.arange(-6, 3)
    with contextlib.redirect_stdout(io.StringIO()):
        result = actt(x, y, g=4, lam=widths, weights=np.full(9, 1 / 9), statistic_seed=seed, null_seed=seed + 1)
    return bool(result.rejects >= 0.5)


METHODS: dict[str, tuple[str, Callable[[np.ndarray, np.ndarray, int], bool]]] = {
    "default": ("meanmap", ours()),
    "default, scale=False": ("meanmap", ours(scale=False)),
    "median, scale=False": ("meanmap", ours("median", scale=False)),
    "MMDAgg": ("mmdagg", aggregated),
    "MMD-FUSE": ("mmdfuse", fused),
    "ACTT": ("goodpoints", compressed),
}


def panel(problems: Any, methods: Any, repeats: int, seed: int) -> tuple[dict, dict]:
    """Rejections, (repeats,) for each problem and method, and median seconds a call."""
    rejections, seconds = {}, {}
    for p, (problem, draw) in enumerate(problems.items()):
        for repeat in range(repeats):
            x, y = draw(np.random.default_rng([seed, p, repeat]))
            for name, method in methods.items():
                start = time.perf_counter()
                rejections.setdefault((problem, name), []).append(method(x, y, repeat))
                seconds.setdefault((problem, name), []).append(time.perf_counter() - start)
        line = "  ".join(f"{name} {np.mean(rejections[problem, name]):.2f}" for name in methods)
        print(f"{problem}: {line}", flush=True)
    return rejections, {key: float(np.median(values)) for key, values in seconds.items()}


def page(problems: Any, methods: Any, rejections: dict, seconds: dict, repeats: int, seed: int) -> str:
    """The table of the documentation."""
    lines = [
        ".. list-table::",
        "   :header-rows: 1",
        "   :class: numbers",
        "",
        "   * - problem",
        *(f"     - {name}" for name in methods),
    ]
    for problem in problems:
        lines.append(f"   * - {problem}")
        rates = {name: float(np.mean(rejections[problem, name])) for name in methods}
        for rate in rates.values():
            shown = f"{rate:.2f} ± {np.sqrt(rate * (1 - rate) / repeats):.2f}"
            lines.append(f"     - {'**' + shown + '**' if rate == max(rates.values()) else shown}")
    for row, number in (("mean", np.mean), ("seconds a test, median over problems", np.median)):
        lines.append(f"   * - {row}")
        for name in methods:
            source = seconds if number is np.median else {k: np.mean(v) for k, v in rejections.items()}
            lines.append(f"     - {number([source[problem, name] for problem in problems]):.2f}")
    lines += [
        "",
        f"{repeats} data sets for each problem, from seed {seed}; level {LEVEL}; ± is a standard error; {machine()}.",
    ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run the panel and write its page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.power", description=__doc__)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--seed", type=int, default=2026)
    chosen = parser.parse_args(arguments)
    methods = {name: method for name, (module, method) in METHODS.items() if importlib.util.find_spec(module)}
    for name in METHODS.keys() - methods.keys():
        print(f"{name} is left out: {METHODS[name][0]} is not installed.", file=sys.stderr)
    problems = with_data()
    rejections, seconds = panel(problems, methods, chosen.repeats, chosen.seed)
    PAGE.write_text(page(problems, methods, rejections, seconds, chosen.repeats, chosen.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
