"""How often two-sample tests see a difference that is there: python -m benchmarks.power.

Every method sees the same data sets, at level 0.05. The whole takes part in `python -m benchmarks`, which stores the
results and writes docs/benchmarks/power.rst. goodpoints comes from PyPI, mmdagg and mmdfuse from their authors'
repositories. HIGGS and MNIST are read from the folder named by MEANMAP_DATA.
"""

import contextlib
import csv
import gzip
import io
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import meanmap as mm
from benchmarks.table import duration, error_of_mean, list_table
from meanmap.core.executors import worked

__all__ = ["METHODS", "PROBLEMS", "measure", "page", "panel"]

# The seed of reported data sets: none of them was looked at while the test was made.
LEVEL, REPEATS, SEED = 0.05, 40, 2027
Found = dict[str, Any]
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
    """The same with HIGGS and MNIST."""
    folder = os.environ["MEANMAP_DATA"]
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


METHODS: dict[str, Callable[[np.ndarray, np.ndarray, int], bool]] = {
    "default": ours(),
    "default, scale=False": ours(scale=False),
    "median, scale=False": ours("median", scale=False),
    "MMDAgg": aggregated,
    "MMD-FUSE": fused,
    "ACTT": compressed,
}


def panel(
    problems: Any, methods: Any, repeats: int, seed: int, executor: Executor | None = None
) -> dict[str, dict[str, list[float]]]:
    """The share of rejections and the median processor seconds of a call, by problem and method.

    Problems and methods are functions without a name, which Dask's executor sends, and threads share.
    """
    found: dict[str, dict[str, list[float]]] = {}
    for p, (problem, draw) in enumerate(problems.items()):
        once = partial(_asked, draw, methods, (seed, p))
        each = np.array(list(worked(once, range(repeats), executor)), float)
        found[problem] = {
            name: [float(rejected.mean()), float(f"{np.median(seconds):.3g}")]
            for name, (rejected, seconds) in zip(methods, each.transpose(1, 2, 0), strict=True)
        }
        print(problem, found[problem], file=sys.stderr, flush=True)
    return found


def _asked(draw: Any, methods: Any, seed: tuple[int, int], repeat: int) -> list[tuple[bool, float]]:
    """What each method says of one data set, and its processor seconds."""
    x, y = draw(np.random.default_rng([*seed, repeat]))
    found = []
    for method in methods.values():
        start = time.process_time()
        found.append((bool(method(x, y, repeat)), time.process_time() - start))
    return found


def measure(executor: Executor | None = None) -> Found:
    """All problems and methods."""
    return {"repeats": REPEATS, "seed": SEED, "problems": panel(with_data(), METHODS, REPEATS, SEED, executor)}


def mean_power(found: Found, method: str) -> float:
    """Over all problems."""
    return float(np.mean([methods[method][0] for methods in found["problems"].values()]))


def mean_error(found: Found, method: str) -> float:
    """The standard error of that mean."""
    return error_of_mean((methods[method][0] for methods in found["problems"].values()), found["repeats"])


def median_seconds(found: Found, method: str) -> float:
    """Over all problems."""
    return float(np.median([methods[method][1] for methods in found["problems"].values()]))


def page(found: Found) -> str:
    """The table of the documentation."""
    names = list(next(iter(found["problems"].values())))
    rows = []
    for problem, methods in found["problems"].items():
        best = max(rate for rate, _ in methods.values())
        shown = [f"{rate:.2f} ± {np.sqrt(rate * (1 - rate) / found['repeats']):.2f}" for rate, _ in methods.values()]
        marked = [f"**{cell}**" if methods[name][0] == best else cell for name, cell in zip(names, shown, strict=True)]
        rows.append([problem, *marked])
    rows.append(["mean", *(f"{mean_power(found, name):.2f} ± {mean_error(found, name):.2f}" for name in names)])
    times = [duration(median_seconds(found, name)) for name in names]
    rows.append(["processor seconds per test, median over problems", *times])
    told = f"{found['repeats']} data sets for each problem, from seed {found['seed']}; level {LEVEL}; "
    return "\n".join([*list_table(["problem", *names], rows), told + "± is a standard error.", ""])


if __name__ == "__main__":
    print(page(measure()))
