"""How often one column of many is seen, and what all share, beside tests of columns: python -m benchmarks.sparse.

Every method sees the same data sets of two samples of 100 rows, at level 0.05. Rivals are t-tests, Levene's and
Kolmogorov and Smirnov's in each column, with Bonferroni's correction, and the accuracy of a logistic regression on x
and x², trained on half of the rows (a classifier two-sample test, Lopez-Paz & Oquab 2017). `--keep` stores the table
for the documentation: half an hour.
"""

import sys
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any

import numpy as np

import meanmap as mm
from benchmarks import pages
from benchmarks.power import LEVEL, Pair, page, panel

__all__ = ["METHODS", "PROBLEMS", "measure", "page"]

# The seed of reported data sets: none of them was looked at while the test was made.
REPEATS, SEED, ROWS = 60, 2033, 100
# How much one column is shifted and widened: among more of them it takes more to be seen.
SIZES = {10: (0.55, 1.5), 33: (0.6, 1.6), 50: (0.62, 1.65), 200: (0.68, 1.75)}


def shifted(columns: int, by: float, rng: np.random.Generator) -> Pair:
    """Standard Gaussians, one of the columns shifted."""
    x, y = rng.normal(size=(2, ROWS, columns))
    y[:, 0] += by
    return x, y


def wider(columns: int, by: float, rng: np.random.Generator) -> Pair:
    """Standard Gaussians, one of the columns wider."""
    x, y = rng.normal(size=(2, ROWS, columns))
    y[:, 0] *= by
    return x, y


def all_shifted(columns: int, rng: np.random.Generator) -> Pair:
    """Standard Gaussians, all columns shifted a little."""
    x, y = rng.normal(size=(2, ROWS, columns))
    return x, y + 1.6 / np.sqrt(np.sqrt(columns) * ROWS / 2)


def correlated(columns: int, rng: np.random.Generator) -> Pair:
    """Independent columns against four of them with correlations of 0.45."""
    x, y = rng.normal(size=(2, ROWS, columns))
    y[:, :4] = np.sqrt(0.55) * y[:, :4] + np.sqrt(0.45) * rng.normal(size=(ROWS, 1))
    return x, y


def _problems() -> dict[str, Callable[[np.random.Generator], Pair]]:
    found: dict[str, Callable[[np.random.Generator], Pair]] = {}
    for columns, (shift, width) in SIZES.items():
        found[f"shift in 1 of {columns}"] = partial(shifted, columns, shift)
        found[f"width of 1 of {columns}"] = partial(wider, columns, width)
        found[f"shift in all of {columns}"] = partial(all_shifted, columns)
        found[f"correlation of 4 of {columns}"] = partial(correlated, columns)
    return found


PROBLEMS = _problems()


def default(x: np.ndarray, y: np.ndarray, seed: int) -> bool:
    """Our test with 500 permutations."""
    return mm.two_sample_test(x, y, n_permutations=500, rng=seed).reject(LEVEL)


def kernels_alone(x: np.ndarray, y: np.ndarray, seed: int) -> bool:
    """The five kernels of all columns without a look at single ones."""
    kernels = mm.two_sample_test(x, y, n_permutations=19, rng=seed).kernel
    return mm.two_sample_test(x, y, kernels, n_permutations=500, rng=seed).reject(LEVEL)


def by_columns(name: str, x: np.ndarray, y: np.ndarray, seed: int) -> bool:
    """A test of SciPy in each column, with Bonferroni's correction."""
    from scipy import stats

    columns = x.shape[1]
    return columns * min(getattr(stats, name)(x[:, j], y[:, j]).pvalue for j in range(columns)) <= LEVEL


def classified(x: np.ndarray, y: np.ndarray, seed: int) -> bool:
    """How often a logistic regression on x and x², trained on half of the rows, tells the others' sample right."""
    from scipy.stats import binomtest
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows, labels = np.concatenate([x, y]), np.repeat([0, 1], [len(x), len(y)])
    rows = np.column_stack([rows, rows**2])
    order = np.random.default_rng(seed).permutation(len(rows))
    train, test = np.array_split(order, 2)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(rows[train], labels[train])
    right = int(np.sum(model.predict(rows[test]) == labels[test]))
    return binomtest(right, len(test), alternative="greater").pvalue <= LEVEL


METHODS: dict[str, Callable[[np.ndarray, np.ndarray, int], bool]] = {
    "default": default,
    "five kernels": kernels_alone,
    "t-tests": partial(by_columns, "ttest_ind"),
    "Levene's": partial(by_columns, "levene"),
    "Kolmogorov-Smirnov": partial(by_columns, "ks_2samp"),
    "classifier": classified,
}


def measure(executor: Executor | None = None) -> dict[str, Any]:
    """All problems and methods."""
    return {"repeats": REPEATS, "seed": SEED, "problems": panel(PROBLEMS, METHODS, REPEATS, SEED, executor)}


if __name__ == "__main__":
    if "--keep" in sys.argv:
        pages.store({**pages.stored(), "sparse": measure()})
    else:
        print(page(measure()))
