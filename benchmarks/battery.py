"""Conditional tests on the tables people have: nice python -m benchmarks.battery --into FILE, an hour; then --keep.

Level and power over numbers of rows and of columns that are given, relations that are linear or not, and tables of
numbers, of numbers and labels, and with gaps. Every method sees the same data sets, at level 0.05; where others need
numbers labels are indicators, and all leave out rows with gaps. Cells that FILE holds already are not measured again.
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import meanmap as mm
from benchmarks import pages
from benchmarks.conditional import FUNCTIONS, LEVEL, shown
from benchmarks.table import list_table
from meanmap.core.executors import worked

__all__ = ["CELLS", "METHODS", "measure", "page", "power_page", "problem"]

ROWS, GIVEN, TABLES, SHAPES = (100, 300, 1000), (1, 3, 5), ("numbers", "mixed", "gaps"), ("linear", "not linear")
CELLS = tuple(product(SHAPES, TABLES, GIVEN, ROWS))
LEVEL_REPEATS, POWER_REPEATS = 300, 60
# Data sets of levels and of powers; neither was used while the test was made.
LEVEL_SEED, POWER_SEED = 8_000_000, 9_000_000
# Of dependence, times 1/√n: between nothing and certainty at every n.
STRENGTH = 4.0
# Power is measured at this many rows, and of what is slow nowhere else.
POWER_ROWS = 300
LOOSE = "tests that reject true null hypotheses in this setting more often than a level of 0.05 allows."
LABELS = np.array(["north", "east", "south"])
LEVELS = ("low", "middle", "high")
Found = dict[str, Any]
Columns = dict[str, np.ndarray]


def problem(
    shape: str, table: str, d: int, n: int, seed: int, strength: float = 0.0
) -> tuple[Columns, Columns, Columns]:
    """x, y and z, independent given z but for `strength` times a function of the noise of x in y.

    "mixed": every second column of z, the first among them, has three labels, and y is cut into three ordered ones.
    "gaps": a tenth of x and a tenth of y is missing, more often where the first column of z is large.
    """
    rng = np.random.default_rng([seed, n, d, SHAPES.index(shape), TABLES.index(table)])
    z = rng.normal(size=(n, d))
    codes = rng.integers(0, 3, size=(n, d))
    labelled = [table == "mixed" and j % 2 == 0 for j in range(d)]
    z = np.where(labelled, (codes - 1) * 1.22, z)
    e, f = rng.normal(size=(2, n))
    if shape == "linear":
        a, b = (z @ rng.normal(size=d) / np.sqrt(d) for _ in range(2))
        bent = e
    else:
        a, b = (sum(FUNCTIONS[rng.integers(7)](z[:, j]) for j in range(d)) / np.sqrt(d) for _ in range(2))
        bent = (e, (e**2 - 1) / np.sqrt(2), np.sqrt(2) * np.sin(2 * e))[seed % 3]
    x, y = a + 0.6 * e, b + 0.6 * (f + strength * bent)
    given = {f"z{j}": LABELS[codes[:, j]] if labelled[j] else z[:, j] for j in range(d)}
    if table == "mixed":
        y = np.array(LEVELS)[np.searchsorted(np.quantile(y, [1 / 3, 2 / 3]), y)]
    if table == "gaps":
        chance = 0.2 / (1 + np.exp(-2 * z[:, 0]))
        x, y = (np.where(rng.random(n) < chance, np.nan, part) for part in (x, y))
    return {"x": x}, {"y": y}, given


def ours(x: Columns, y: Columns, z: Columns, seed: int) -> bool:
    """Our test with default settings, with the order of ordered labels declared."""
    kinds = {"y": LEVELS} if y["y"].dtype.kind == "U" else None
    settings: Any = {"missing": "drop", "kinds": kinds, "rng": seed}
    return mm.conditional_independence_test(x, y, z, **settings).reject(LEVEL)


def numeric(x: Columns, y: Columns, z: Columns) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The data for tests of numbers: complete rows, labels of z as indicators, those of y in their order."""
    first, second = x["x"], y["y"]
    if second.dtype.kind == "U":
        second = np.array([LEVELS.index(label) for label in second.tolist()], float)
    parts = [v[:, None] if v.dtype.kind == "f" else (v[:, None] == LABELS[:-1]).astype(float) for v in z.values()]
    given = np.concatenate(parts, axis=1)
    there = np.isfinite(first) & np.isfinite(second)
    return first[there], second[there], given[there]


def causal_learn(name: str, **settings: Any) -> Callable[..., bool]:
    """A test of causal-learn."""

    def rejects(x: Columns, y: Columns, z: Columns, seed: int) -> bool:
        from causallearn.utils.cit import CIT

        np.random.seed(seed)  # noqa: NPY002  # what it draws from
        first, second, given = numeric(x, y, z)
        test = CIT(np.column_stack([first, second, given]), name, **settings)
        return bool(test(0, 1, list(range(2, 2 + given.shape[1]))) <= LEVEL)

    return rejects


def partial_correlation(x: Columns, y: Columns, z: Columns, seed: int) -> bool:
    """Partial correlation: residuals of linear regressions, by Fisher's transformation."""
    from scipy.stats import norm

    first, second, given = numeric(x, y, z)
    design = np.column_stack([np.ones(len(given)), given])
    u, v = (part - design @ np.linalg.lstsq(design, part, rcond=None)[0] for part in (first, second))
    score = np.arctanh(u @ v / np.sqrt((u @ u) * (v @ v))) * np.sqrt(len(u) - given.shape[1] - 3)
    return bool(2 * norm.sf(abs(score)) <= LEVEL)


def covariance_measure(x: Columns, y: Columns, z: Columns, seed: int) -> bool:
    """The generalised covariance measure of Shah & Peters (2020), by additive splines with a selected ridge."""
    from scipy.stats import norm
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import SplineTransformer

    first, second, given = numeric(x, y, z)
    splines = make_pipeline(SplineTransformer(n_knots=7), RidgeCV(np.geomspace(1e-3, 1e3, 13)))
    products = np.prod([part - splines.fit(given, part).predict(given) for part in (first, second)], axis=0)
    return bool(2 * norm.sf(abs(products.mean() / products.std() * np.sqrt(len(products)))) <= LEVEL)


def nearest_neighbours(x: Columns, y: Columns, z: Columns, seed: int) -> bool:
    """Conditional mutual information by nearest neighbours, of tigramite, with 99 shuffles among neighbours."""
    from tigramite.independence_tests.cmiknn import CMIknn

    first, second, given = numeric(x, y, z)
    test = CMIknn(sig_samples=99, seed=seed, workers=1)
    return bool(test.run_test_raw(first[:, None], second[:, None], z=given)[1] <= LEVEL)


METHODS: dict[str, Callable[..., bool]] = {
    "ours": ours,
    "KCI of causal-learn": causal_learn("kci"),
    "RCoT of causal-learn": causal_learn("rcit", rcit=False),
    "GCM, splines": covariance_measure,
    "partial correlation": partial_correlation,
    "CMIknn of tigramite": nearest_neighbours,
}


def cells(levels: bool) -> Iterator[tuple[str, str, int, int, str]]:
    """The cells to measure: our level everywhere, level and power of all methods at one number of rows."""
    for shape, table, d, n in CELLS:
        for method in METHODS:
            if n == POWER_ROWS or (levels and method == "ours"):
                yield shape, table, d, n, method


def measure(path: Path, repeats: dict[bool, int], chosen: str = "", executor: Executor | None = None) -> None:
    """Measure and append every cell that the file lacks and whose name contains all words of `chosen`."""
    known = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {tuple(cell["key"]) for cell in known}
    for levels in (True, False):
        for shape, table, d, n, method in sorted(cells(levels), key=lambda cell: (cell[-1].startswith("CMI"), cell[3])):
            key = ("level" if levels else "power", shape, table, d, n, method)
            if key in done or not all(word in " ".join(map(str, key)) for word in chosen.split(",")):
                continue
            first, strength = (LEVEL_SEED, 0.0) if levels else (POWER_SEED, STRENGTH / np.sqrt(n))
            once = partial(_tested, shape, table, d, n, method, strength)
            found = np.array(list(worked(once, range(first, first + repeats[levels]), executor)))
            rejected, seconds = int(found[:, 0].sum()), float(f"{found[:, 1].mean():.2g}")
            cell = {"key": key, "rejected": rejected, "of": repeats[levels], "seconds": seconds}
            with path.open("a") as file:
                file.write(json.dumps(cell) + "\n")
            print(cell, file=sys.stderr, flush=True)


def _tested(shape: str, table: str, d: int, n: int, method: str, strength: float, seed: int) -> tuple[bool, float]:
    """Whether a method rejects, and processor seconds including those of the data."""
    begun = time.process_time()
    data = problem(shape, table, d, n, seed, strength)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bool(METHODS[method](*data, seed)), time.process_time() - begun


def gathered(path: Path) -> Found:
    """The cells of a file as they are stored."""
    found: Found = {"level": {}, "power": {}}
    for cell in map(json.loads, path.read_text().splitlines()):
        which, *where = cell["key"]
        found[which][", ".join(map(str, where))] = [cell["rejected"], cell["of"], cell["seconds"]]
    return found


def page(found: Found) -> str:
    """Both tables of the documentation."""
    return "\n".join([*level_page(found["level"]), *power_page(found["power"], found["level"])])


def level_page(level: dict[str, list[float]]) -> list[str]:
    """Our rejection rates if x and y are independent given z."""
    head, rows = ["relations, table, columns of z", *(f"n = {n}" for n in ROWS)], []
    mine = {key: cell for key, cell in level.items() if key.endswith(", ours")}
    for row in map(", ".join, product(SHAPES, TABLES, map(str, GIVEN))):
        each = [mine.get(f"{row}, {n}, ours") for n in ROWS]
        rows.append([row, *("" if c is None else shown(int(c[0]), int(c[1])) for c in each)])
    return [
        *list_table(head, rows, "Rejection rates of our test under conditional independence, level 0.05"),
        f"{_repeats(mine)} data sets per cell; bold outside the 99% binomial bounds of 0.05.",
        "",
    ]


def power_page(power: dict[str, list[float]], level: dict[str, list[float]]) -> list[str]:
    """Rejection rates if they are dependent, in brackets for tests that also reject too many true null hypotheses."""
    known = [name for name in METHODS if any(key.endswith(f", {name}") for key in power)]
    rows = []
    for row in map(", ".join, product(SHAPES, TABLES, map(str, GIVEN))):
        keys = [f"{row}, {POWER_ROWS}, {name}" for name in known]
        shares = [power[key][0] / power[key][1] if key in power else -1.0 for key in keys]
        second = sorted(shares, reverse=True)[1]
        text = ["" if s < 0 else f"**{s:.2f}**" if s >= second else f"{s:.2f}" for s in shares]
        rows.append(
            [row, *(f"({s})" if key in level and loose(level[key]) else s for s, key in zip(text, keys, strict=True))]
        )
    title = f"Rejection rates under dependence given z, n = {POWER_ROWS}"
    each = {name: _repeats({k: c for k, c in power.items() if k.endswith(f", {name}")}) for name in known}
    fewer = "".join(f" ({name}: {each[name]})" for name in known if each[name] != each[known[0]])
    return [
        *list_table(["relations, table, columns of z", *known], rows, title),
        f"{each[known[0]]} data sets per cell{fewer}. Bold: the two best of each row. In brackets: {LOOSE}",
        "",
    ]


def loose(cell: list[float]) -> bool:
    """Whether a test that keeps its level would reject this often in less than one of 200 tables."""
    from scipy.stats import binom

    return bool(cell[0] > binom.ppf(0.995, int(cell[1]), LEVEL))


def _repeats(cells: dict[str, list[float]]) -> str:
    return " or ".join(str(repeats) for repeats in sorted({int(cell[1]) for cell in cells.values()}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, required=True, help="a file of cells")
    parser.add_argument("--only", default="", help="cells whose name holds these words, with commas")
    parser.add_argument(
        "--repeats", type=int, nargs=2, default=(LEVEL_REPEATS, POWER_REPEATS), help="of level and power"
    )
    parser.add_argument("--keep", action="store_true", help="measure nothing, store the cells of the file")
    chosen = parser.parse_args()
    if chosen.keep:
        pages.store({**pages.stored(), "battery": gathered(chosen.into)})
    else:
        measure(chosen.into, {True: chosen.repeats[0], False: chosen.repeats[1]}, chosen.only)
