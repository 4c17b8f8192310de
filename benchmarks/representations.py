"""Two-sample tests on learned and given representations: python -m benchmarks.representations --keep.

Every method sees the same data sets, at level 0.05 with 199 permutations. Encoders and the deep kernel that learn do so
on half of the rows. HIGGS and MNIST are read from the folder named by MEANMAP_DATA, digits come with scikit-learn.
A quarter of an hour.
"""

import os
import sys
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np

import meanmap as mm
from benchmarks import pages
from benchmarks.power import Pair, digits, grid_of_gaussians, higgs, panel, shift
from benchmarks.table import list_table

__all__ = ["METHODS", "PROBLEMS", "measure", "page"]

LEVEL, REPEATS, SEED, SIZE = 0.05, 40, 4026, 32
Found = dict[str, Any]
Test = Callable[[np.ndarray, np.ndarray, int], bool]


def strokes(n: int, rng: np.random.Generator, tilt: float) -> np.ndarray:
    """n images of 32 × 32 with six soft strokes each, at random places; directions crowd about one by `tilt`."""
    across, down = np.meshgrid(np.arange(SIZE), np.arange(SIZE))
    x, y = rng.uniform(4, SIZE - 4, size=(2, n, 6, 1, 1))
    angle = rng.normal(np.pi / 4, 1 / tilt, size=(n, 6)) if tilt else rng.uniform(0, np.pi, size=(n, 6))
    angle = angle[..., None, None]
    along = (across - x) * np.cos(angle) + (down - y) * np.sin(angle)
    aside = (down - y) * np.cos(angle) - (across - x) * np.sin(angle)
    images = np.exp(-0.5 * ((along / 4) ** 2 + aside**2)).sum(axis=1)
    return (images + 0.3 * rng.normal(size=images.shape)).reshape(n, -1)


def turned_strokes(rng: np.random.Generator) -> Pair:
    """Strokes of all directions against strokes that lean one way: no pixel's distribution changes."""
    return strokes(100, rng, 0.0), strokes(100, rng, 1.2)


def brighter_spot(rng: np.random.Generator) -> Pair:
    """Strokes of all directions; in the second sample 3 × 3 pixels are brighter."""
    x, y = (strokes(100, rng, 0.0).reshape(100, SIZE, SIZE) for _ in range(2))
    y[:, 14:17, 14:17] += 0.35
    return x.reshape(100, -1), y.reshape(100, -1)


def same_strokes(rng: np.random.Generator) -> Pair:
    """Two samples of the same strokes: the level."""
    return strokes(100, rng, 0.0), strokes(100, rng, 0.0)


def small_digits(rng: np.random.Generator) -> Pair:
    """Digits of 8 × 8 pixels, all of them against all but sevens and nines, 100 of each."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = rng.permutation(len(images))
    rest = order[100:][~np.isin(labels[order[100:]], (7, 9))]
    return images[order[:100]], images[rest[:100]]


PROBLEMS: dict[str, Callable[[np.random.Generator], Pair]] = {
    "same strokes, 32 × 32 (level)": same_strokes,
    "turned strokes, 32 × 32": turned_strokes,
    "brighter spot, 32 × 32": brighter_spot,
    "digits without 7 and 9, 8 × 8": small_digits,
    "shift in 1 of 20 columns": shift,
    "grid of Gaussians": grid_of_gaussians,
}


def with_data() -> dict[str, Callable[[np.random.Generator], Pair]]:
    """Problems that need no files, and HIGGS and MNIST."""
    folder = Path(os.environ["MEANMAP_DATA"])
    return {**PROBLEMS, "MNIST without 7 and 9": digits(150, folder), "HIGGS, 28 columns": higgs(28, 300, folder)}


def ours(kernel: Any = None, features: Any = None) -> Test:
    """Our test with 199 permutations; `features` makes the encoder of a number of columns."""

    def rejects(x: np.ndarray, y: np.ndarray, seed: int) -> bool:
        encoder = None if features is None else features(x.shape[1])
        return mm.two_sample_test(x, y, kernel, features=encoder, n_permutations=199, rng=seed).reject(LEVEL)

    return rejects


def filters(columns: int) -> Callable[[np.ndarray], np.ndarray]:
    """What 16 random filters of 5 × 5 pixels see on average over an image, as a network without training would."""
    side = round(np.sqrt(columns))
    square = side * side == columns and side > 6
    weights = np.random.default_rng(0).normal(size=(16, 25 if square else columns))
    weights = weights - weights.mean(axis=1, keepdims=True) if square else weights / np.sqrt(columns)

    def encode(rows: np.ndarray) -> np.ndarray:
        if not square:
            return np.maximum(rows @ weights.T, 0)
        patches = np.lib.stride_tricks.sliding_window_view(rows.reshape(-1, side, side), (5, 5), axis=(1, 2))
        return np.maximum(patches.reshape(len(rows), -1, 25) @ weights.T, 0).mean(axis=1)

    return encode


def classifier(columns: int) -> Any:
    """A logistic regression, whose decision function is compared on the rows that it has not seen."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(C=0.1))


METHODS: dict[str, Test] = {
    "default": ours(),
    'kernel="deep"': ours("deep"),
    "features= random filters": ours(features=filters),
    "features= classifier, fitted": ours(features=classifier),
}


def measure(executor: Executor | None = None) -> Found:
    """All problems and methods."""
    return {"repeats": REPEATS, "seed": SEED, "problems": panel(with_data(), METHODS, REPEATS, SEED, executor)}


def page(found: Found) -> str:
    """The table of the documentation."""
    names, rows = list(next(iter(found["problems"].values()))), []
    for problem, methods in found["problems"].items():
        rates = [methods[name][0] for name in names]
        best = 2.0 if "(level)" in problem else max(rates)
        rows.append([problem, *(f"**{rate:.2f}**" if rate == best else f"{rate:.2f}" for rate in rates)])
    middle = [np.median([methods[name][1] for methods in found["problems"].values()]) for name in names]
    rows.append(["processor seconds per test, median over problems", *(f"{seconds:.2g} s" for seconds in middle)])
    error = 0.5 / np.sqrt(found["repeats"])
    told = f"{found['repeats']} data sets for each problem, from seed {found['seed']}; level {LEVEL}; standard errors "
    told += f"are at most {error:.2f}, of a level {2 * error * np.sqrt(LEVEL * (1 - LEVEL)):.2f}."
    return "\n".join([*list_table(["problem", *names], rows), told, ""])


if __name__ == "__main__":
    if "--keep" in sys.argv:
        pages.store({**pages.stored(), "representations": measure()})
    else:
        print(page(measure()))
