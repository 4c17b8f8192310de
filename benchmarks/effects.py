"""Effects whose truth is known, beside least squares and forests: python -m benchmarks.effects 300 20 --keep.

Fifty-two models (benchmarks/effect_models.py), two of which have no answer. The arguments are the rows of a table, the
tables of a model, and methods, all unless given (`"effect;least squares"`: forests take fifty times as long); `--keep`
puts what these methods found in place of what is stored for the documentation. Beside ours least squares with the right
adjustment (main effects, errors by White 1980), and doubly robust forests (Chernozhukov et al. 2018).
"""

import json
import sys
from collections.abc import Callable, Collection
from itertools import product
from typing import Any

import numpy as np
from scipy.stats import binom

from benchmarks import pages
from benchmarks.effect_models import MODELS, Model, Table
from benchmarks.table import list_table
from meanmap.bp import BayesianNetwork
from meanmap.core.errors import InputError

__all__ = ["METHODS", "compared", "measure", "page"]

SEED, NORMAL, LEVEL = 13_000_000, 1.6449, 0.9
Answer = tuple[float, float, float]
Found = dict[str, Any]


def ours(model: Model, table: Table) -> Answer:
    """Estimate, and the interval of 90%."""
    found = BayesianNetwork(model.arrows).effect(table, "y", of="t", from_=model.ends[0], to=model.ends[1], rng=0)
    difference = found.difference(model.label)
    low, high = difference.interval(LEVEL)
    return float(difference.value), float(low), float(high)


def coded(values: np.ndarray) -> np.ndarray:
    """A number as it is, a label as zeros and ones."""
    return values[:, None] if values.dtype.kind == "f" else (values[:, None] == np.unique(values)[1:]).astype(float)


def contrasted(model: Model, t: np.ndarray) -> np.ndarray:
    """The cause as it is set last, less as it is set first."""
    if t.dtype.kind == "f":
        return np.array([model.ends[1] - model.ends[0]])
    first, last = (np.unique(t)[1:] == end for end in model.ends)
    return last.astype(float) - first


def least_squares(model: Model, table: Table) -> Answer:
    """Main effects with the right adjustment set, and heteroscedasticity-consistent errors."""
    y, t = model.numbers(table), coded(table["t"])
    design = np.column_stack([np.ones(len(y)), t, *(coded(table[name]) for name in model.adjusted)])
    contrast = np.zeros(design.shape[1])
    contrast[1 : 1 + t.shape[1]] = contrasted(model, table["t"])
    inverse = np.linalg.pinv(design)
    line, w = inverse @ y, contrast @ inverse
    error = float(np.sqrt(np.sum((w * (y - design @ line)) ** 2)))
    at = float(contrast @ line)
    return at, at - NORMAL * error, at + NORMAL * error


def forests(model: Model, table: Table) -> Answer | None:
    """Doubly robust, with forests of five folds; not of numbers as causes."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    if table["t"].dtype.kind == "f" and len(np.unique(table["t"])) > 2:
        return None
    y, z = model.numbers(table), np.column_stack([coded(table[name]) for name in model.adjusted])
    part, said = np.random.default_rng(0).permutation(len(y)) % 5, np.zeros(len(y))
    for p, (end, sign) in product(range(5), zip(model.ends, (-1, 1), strict=True)):
        left, out, here = part != p, part == p, table["t"] == end
        of_y = RandomForestRegressor(50, min_samples_leaf=5, random_state=0).fit(z[left & here], y[left & here])
        of_t = RandomForestClassifier(50, min_samples_leaf=10, random_state=0).fit(z[left], here[left])
        expected, share = of_y.predict(z[out]), np.maximum(of_t.predict_proba(z[out])[:, 1], 0.02)
        said[out] += sign * (expected + here[out] / share * (y[out] - expected))
    at, error = float(said.mean()), float(said.std() / np.sqrt(len(y)))
    return at, at - NORMAL * error, at + NORMAL * error


METHODS: dict[str, Callable[..., Answer | None]] = {"effect": ours, "least squares": least_squares, "forests": forests}


def compared(model: Model, rows: int, tables: int, methods: Collection[str] = tuple(METHODS)) -> Found:
    """For each method: bias in standard errors, intervals that cover the truth, their number, and their width."""
    truth, found = model.truth(), {name: [] for name in METHODS}
    for k in range(tables):
        table = model.table(np.random.default_rng([SEED, rows, MODELS.index(model), k]), rows)
        for name in (name for name in METHODS if name in methods and (name == "effect" or model.identified)):
            try:
                answer = METHODS[name](model, table)
            except InputError as refusal:
                print(f"{model.name}, {rows} rows, table {k}: {refusal}", file=sys.stderr)
                continue
            found[name] += [] if answer is None else [answer]
    judged: Found = {name: _judged(each, truth) for name, each in found.items() if each}
    asked = {"tables": tables, "refused": tables - len(found["effect"])} if "effect" in methods else {}
    return {"truth": round(truth, 4), **asked, **judged}


def _judged(answers: list[Answer], truth: float) -> list[float]:
    at, low, high = np.array(answers).T
    error = float(np.mean(high - low)) / (2 * NORMAL)
    held = int(np.sum((low <= truth) & (truth <= high)))
    return [round(float(at.mean() - truth) / error, 3), held, len(answers), round(error, 4)]


def measure(rows: int, tables: int, methods: Collection[str] = tuple(METHODS)) -> Found:
    """All models; the key of each has its number of rows."""
    found: Found = {}
    for model in MODELS:
        found[f"{model.name}; {rows}"] = compared(model, rows, tables, methods)
        print(json.dumps({model.name: found[f"{model.name}; {rows}"]}), file=sys.stderr, flush=True)
    return found


def shown(held: int, of: int) -> str:
    """A coverage rate, bold if a true coverage of .9 would produce it less than once in a hundred times."""
    inside = binom.ppf(0.005, of, LEVEL) <= held <= binom.ppf(0.995, of, LEVEL)
    return f"{held / of:.2f}" if inside else f"**{held / of:.2f}**"


def page(found: Found) -> str:
    """All models of one number of rows in one line, then each: bias and coverage of each method."""
    sizes = sorted({int(key.rsplit("; ", 1)[1]) for key in found})
    summed = [line for rows in sizes for line in _summed(found, rows)]
    head = ["rows", "method", "models", "tables", "mean absolute bias, s.e.", "largest", "coverage", "width"]
    lines = list_table(head, summed, "All models with an answer: 90% intervals, widths relative to those of effect")
    each = []
    for key, one in found.items():
        name, rows = key.rsplit("; ", 1)
        cells = [f"{one[m][0]:+.2f}, {shown(*one[m][1:3])}" if m in one else "" for m in METHODS]
        each.append([name, rows, f"{one['truth']:.3f}", *cells, f"{one['refused']} of {one['tables']}"])
    head = ["model", "rows", "truth", *METHODS, "refused"]
    return "\n".join([*lines, "", *list_table(head, each, "Bias in standard errors, and coverage of the intervals")])


def _summed(found: Found, rows: int) -> list[list[str]]:
    of_size = [one for key, one in found.items() if key.endswith(f"; {rows}")]
    lines = []
    for name in METHODS:
        own = [one for one in of_size if name in one]
        if not own:
            continue
        bias, held, tables = np.array([one[name] for one in own])[:, :3].T
        width = np.exp(np.mean([np.log(one[name][3] / one["effect"][3]) for one in own if "effect" in one]))
        sizes = [f"{np.mean(np.abs(bias)):.2f}", f"{np.max(np.abs(bias)):.2f}"]
        held = shown(int(held.sum()), int(tables.sum()))
        lines.append([str(rows), name, str(len(own)), str(int(tables.sum())), *sizes, held, f"{width:.2f}"])
    return lines


def main() -> None:
    """Measure, and store or print."""
    rows, tables, *methods = (each for each in sys.argv[1:] if each != "--keep")
    found = measure(int(rows), int(tables), methods[0].split(";") if methods else tuple(METHODS))
    if "--keep" in sys.argv:
        stored = pages.stored()
        kept = stored.get("effects", {})
        pages.store({**stored, "effects": kept | {key: {**kept.get(key, {}), **one} for key, one in found.items()}})
    else:
        print(page(found))


if __name__ == "__main__":
    main()
