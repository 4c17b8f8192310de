"""Do pooled intervals hold? nice python -m benchmarks.pooled --keep, half an hour.

A share of all cells is hidden at random, tables are drawn, least squares is pooled by Rubin's rules, and its intervals
of 95% are compared with the coefficients that data were made with.
"""

import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from functools import partial
from typing import Any

import numpy as np

import meanmap as mm
from benchmarks import pages
from benchmarks.peers import MICEFOREST, spent
from benchmarks.table import list_table
from meanmap.core.executors import worked

__all__ = ["MODELS", "data", "least_squares", "measure", "page"]

ROWS, HIDDEN, DRAWS, CONFIDENCE = 200, 0.15, 10, 0.95
# Data sets of these seeds were not looked at while methods were made.
SEED = 7_100_000
# Miceforest takes a few times as long, and answers for one data set of so many, of this model.
ONE_IN, ASKED = 5, "y ~ a + b"
# How many data sets, the names of coefficients, and what they are.
MODELS: dict[str, tuple[int, dict[str, float]]] = {
    "y ~ a + b": (500, {"1": 1.0, "a": 0.5, "b": 0.5}),
    "y ~ a + b + a:b": (200, {"1": 1.0, "a": 0.5, "b": 0.5, "a:b": 0.5}),
    "y ~ a + b + a²": (200, {"1": 1.0, "a": 0.5, "b": 0.5, "a²": 0.5}),
}
Found = dict[str, Any]
# Drawn tables of the data set with a number, (draws, n, d), from its rows with gaps.
Draw = Callable[[np.ndarray, int], list[np.ndarray]]


def design(model: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The columns of coefficients."""
    last = {"y ~ a + b": [], "y ~ a + b + a:b": [a * b], "y ~ a + b + a²": [a * a]}[model]
    return np.column_stack([np.ones(len(a)), a, b, *last])


def data(model: str, seed: int) -> np.ndarray:
    """Rows of a, b and y with gaps; a and b correlate by one half, and the noise of y has variance one."""
    random = np.random.default_rng(seed)
    a, other, noise = random.normal(size=(3, ROWS))
    b = 0.5 * a + np.sqrt(0.75) * other
    y = design(model, a, b) @ list(MODELS[model][1].values()) + noise
    rows = np.stack([a, b, y], axis=1)
    return np.where(random.random(rows.shape) < HIDDEN, np.nan, rows)


def least_squares(model: str, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and their variances."""
    x, y = design(model, rows[:, 0], rows[:, 1]), rows[:, 2]
    inverse = np.linalg.inv(x.T @ x)
    found = inverse @ x.T @ y
    return found, np.diag(inverse) * np.sum((y - x @ found) ** 2) / (len(y) - x.shape[1])


def network(rows: np.ndarray, number: int) -> list[np.ndarray]:
    """Tables drawn by a network."""
    return mm.bp.DependencyNetwork().fit(rows).impute(rows, draws=DRAWS, rng=number)


def answered(model: str, draw: Draw, number: int) -> list[list[float]]:
    """Of one data set: estimates, standard errors, whether intervals hold, and processor seconds."""
    rows, truth = data(model, SEED + number), np.array(list(MODELS[model][1].values()))
    start, peers = time.process_time(), spent()
    tables = draw(rows, number)
    seconds = time.process_time() - start + spent() - peers
    found = mm.bp.pooled(partial(least_squares, model), tables)
    low, high = found.interval(CONFIDENCE)
    held = (low <= truth) & (truth <= high)
    return [found.estimate.tolist(), found.sd().tolist(), held.astype(float).tolist(), [seconds]]


def methods(model: str) -> Iterator[tuple[str, Draw]]:
    """The library, and for one model miceforest, where a Python has it."""
    yield "DependencyNetwork", network
    if MICEFOREST.there and model == ASKED:
        rows = np.stack([data(model, SEED + number) for number in range(MODELS[model][0] // ONE_IN)])
        with MICEFOREST.start(rows=rows) as running:
            yield "miceforest", lambda _, number: list(running.ask(which=number, draws=DRAWS))


def summary(each: list[list[list[float]]]) -> Found:
    """Over data sets, of what was `answered` of each."""
    means, errors, held, seconds = (np.array(part) for part in zip(*each, strict=True))
    return {
        "sets": len(each),
        "mean": means.mean(axis=0).round(4).tolist(),
        "spread": means.std(axis=0, ddof=1).round(4).tolist(),
        "claimed": errors.mean(axis=0).round(4).tolist(),
        "held": held.mean(axis=0).round(4).tolist(),
        "seconds": round(float(seconds.mean()), 3),
    }


def measure(executor: Executor | None = None) -> Found:
    """All models and methods; miceforest has a process of its own."""
    found: Found = {model: {} for model in MODELS}
    for model, (sets, _) in MODELS.items():
        for name, draw in methods(model):
            numbers, own = (range(sets), executor) if draw is network else (range(sets // ONE_IN), None)
            each = list(worked(partial(answered, model, draw), numbers, own))
            found[model][name] = summary(each)
            print(model, name, found[model][name], file=sys.stderr, flush=True)
    return found


def page(found: Found) -> str:
    """A table of the documentation: shares of intervals that hold are bold where those of exact ones would lie."""
    rows = []
    for model, each in found.items():
        for name, one in each.items():
            reach = 2.576 * np.sqrt(CONFIDENCE * (1 - CONFIDENCE) / one["sets"])
            for k, (coefficient, truth) in enumerate(MODELS[model][1].items()):
                held = f"{one['held'][k]:.3f}"
                held = f"**{held}**" if abs(one["held"][k] - CONFIDENCE) <= reach else held
                numbers = [f"{one[key][k]:.3f}" for key in ("mean", "spread", "claimed")]
                rows.append([model, name, str(one["sets"]), coefficient, f"{truth:g}", *numbers, held])
    head = [
        "model",
        "method",
        "data sets",
        "coefficient",
        "truth",
        "mean",
        "sd over data sets",
        "mean standard error",
        "coverage",
    ]
    named = next(iter(found.values()))
    seconds = {name: np.mean([each[name]["seconds"] for each in found.values() if name in each]) for name in named}
    text = (
        f"Tables of {ROWS} rows, {HIDDEN:.0%} of all cells hidden at random, {DRAWS} draws. The mean of pooled "
        "estimates, their standard deviation over data sets, the mean of the reported standard errors, and "
        f"the coverage of {CONFIDENCE:.0%} intervals, bold where it is within the range of exact ones in 99 of "
        "100 tables. Processor seconds per data set: " + ", ".join(f"{n} {s:.1f}" for n, s in seconds.items()) + "."
    )
    return "\n".join([*list_table(head, rows, "Pooled least squares"), text, ""])


def main() -> None:
    """Measure, and print the page or keep the results."""
    found = measure()
    if sys.argv[1:] == ["--keep"]:
        pages.store({**pages.stored(), "pooled": found})
    print(page(found))


if __name__ == "__main__":
    main()
