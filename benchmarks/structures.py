"""Conditional tests where functions of z are not smooth: python -m benchmarks.structures.

Twelve functions that x and y share, with noise of their own, at level 0.05: all rejections are false. Beside ours the
kernel test of causal-learn, where it is installed, and the generalised covariance measure (Shah & Peters 2020) with
boosting from scikit-learn, predicted out of five folds. `--keep` stores the table for the documentation: half an hour.
"""

import json
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any

import numpy as np

import meanmap as mm
from benchmarks import pages
from benchmarks.conditional import LEVEL, Triple, causal_learn, shown
from benchmarks.table import list_table
from meanmap.core.executors import worked

__all__ = ["METHODS", "STRUCTURES", "measure", "page", "structure"]

REPEATS, N, SEED = 100, 300, 7_000_000
FOLDS = 5
CELLS = np.array([0, 2, -1, 1, 3, 0, 1.5, -0.5])
# The function of z, the size of the noise, how z is drawn, and how many columns it has.
STRUCTURES: dict[str, tuple[Callable[[np.ndarray], Any], float, str, int]] = {
    "step": (lambda z: z > 0.3, 0.2, "normal", 1),
    "stairs": (lambda z: CELLS[(8 * z).astype(int)], 0.5, "uniform", 1),
    "saw": (lambda z: (5 * z) % 1, 0.2, "uniform", 1),
    "spike": (lambda z: 3 * (np.abs(z) < 0.1), 0.5, "normal", 1),
    "wave": (lambda z: np.sin(8 * z), 0.3, "normal", 1),
    "chirp": (lambda z: np.sin(30 * z**2), 0.3, "uniform", 1),
    "kink": (np.abs, 0.2, "normal", 1),
    "codes of 5 rows": (lambda z: np.sin(12.9898 * z**2), 0.5, "codes", 1),
    "exclusive or": (lambda z: (z[:, 0] > 0) ^ (z[:, 1] > 0), 0.3, "normal", 2),
    "square": (lambda z: (np.abs(z) < 0.8).all(axis=1), 0.2, "normal", 2),
    "product of three": (lambda z: z[:, 0] * z[:, 1] * z[:, 2], 0.3, "normal", 3),
    "largest of five": (lambda z: z.max(axis=1), 0.2, "normal", 5),
}


def structure(name: str, n: int, seed: int) -> Triple:
    """x and y that have one function of z, and noise of their own."""
    function, noise, law, d = STRUCTURES[name]
    rng = np.random.default_rng([seed, n, 6])
    z = rng.normal(size=(n, d)) if law == "normal" else rng.random((n, d))
    z = np.arange(n)[:, None] // 5 if law == "codes" else z
    f = function(z[:, 0] if d == 1 else z)
    x, y = f + noise * rng.normal(size=(2, n))
    return x, y, z


def ours(x: np.ndarray, y: np.ndarray, z: np.ndarray, seed: int) -> tuple[bool, bool]:
    """Whether our test rejects, and whether it says that regressions may miss functions of z."""
    result = mm.conditional_independence_test(x, y, z, n_permutations=199, rng=seed)
    return result.reject(LEVEL), bool(result.warnings)


def kernel_test(x: np.ndarray, y: np.ndarray, z: np.ndarray, seed: int) -> tuple[bool, bool]:
    """KCI of causal-learn."""
    return causal_learn(x, y, z, seed), False


def boosted(x: np.ndarray, y: np.ndarray, z: np.ndarray, seed: int) -> tuple[bool, bool]:
    """The generalised covariance measure: the mean product of residuals in its standard errors."""
    from scipy.stats import norm
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.model_selection import KFold, cross_val_predict

    model = HistGradientBoostingRegressor(max_iter=60, min_samples_leaf=5, random_state=0)
    folds = KFold(FOLDS, shuffle=True, random_state=seed)
    products = np.prod([side - cross_val_predict(model, z, side, cv=folds) for side in (x, y)], axis=0)
    score = np.sqrt(len(x)) * products.mean() / products.std()
    return bool(2 * norm.sf(abs(score)) <= LEVEL), False


METHODS = {"kci": ours, "causal-learn KCI": kernel_test, "GCM with boosting": boosted}


def _tested(method: str, name: str, seed: int) -> tuple[bool, bool]:
    return METHODS[method](*structure(name, N, SEED + seed), seed)


def measure(
    repeats: int = REPEATS, methods: Sequence[str] = tuple(METHODS), executor: Executor | None = None
) -> dict[str, dict[str, list[int]]]:
    """For each structure and method: false rejections, those without any warning, and the number of data sets."""
    found: dict[str, dict[str, list[int]]] = {}
    for name in STRUCTURES:
        found[name] = {}
        for method in methods:
            answers = np.array(list(worked(partial(_tested, method, name), range(repeats), executor)))
            rejected, warned = answers.T
            found[name][method] = [int(rejected.sum()), int((rejected & ~warned).sum()), repeats]
        print(json.dumps({name: found[name]}), file=sys.stderr, flush=True)
    return found


def page(found: dict[str, dict[str, list[int]]]) -> str:
    """The table; rates outside the 99% binomial bounds of the level are bold."""
    ours, *others = next(iter(found.values()))
    head = ["function of z", "data sets", ours, f"{ours}, without a warning", "data sets of the others", *others]
    rows = [
        [
            name,
            rates[ours][2],
            shown(rates[ours][0], rates[ours][2]),
            shown(*rates[ours][1:]),
            max(rates[m][2] for m in others),
            *(shown(rates[m][0], rates[m][2]) for m in others),
        ]
        for name, rates in found.items()
    ]
    return "\n".join(list_table(head, rows, f"False rejections, level 0.05, {N} rows"))


if __name__ == "__main__":
    if "--keep" in sys.argv:
        pages.store({**pages.stored(), "structures": measure()})
    else:
        print(page(measure()))
