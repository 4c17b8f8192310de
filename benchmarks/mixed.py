"""Simulation-based calibration of `mm.fit`: ranks of true parameters among draws, which have to be uniform.

Parameters are drawn from the priors and data from these; the share of draws below the truth is then uniform (Talts et
al. 2018). Each parameter of each model is a cell, tested by Kolmogorov and Smirnov's statistic; p-values hold for all
cells together (Holm 1979). Beside these stands how often the report doubted its own intervals.

    python -m benchmarks.mixed 500 --keep           # all models, by night; the page is written from what is kept
    python -m benchmarks.mixed 50 slopes            # one
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.stats

import meanmap as mm
from benchmarks import pages
from benchmarks.table import list_table
from meanmap.stats.multiple import holm

__all__ = ["MODELS", "calibrate", "page"]

DRAWS = 200
# From a generator to the share of draws below the truth by parameter, and whether the report doubts nothing.
Run = Callable[[np.random.Generator], tuple[dict[str, float], bool]]
Found = dict[str, Any]


def _even(rng: np.random.Generator, n: int) -> np.ndarray:
    """A column with mean 0 and standard deviation 1, in which priors are what they are named."""
    x = rng.normal(size=n)
    return (x - x.mean()) / x.std()


def _half(rng: np.random.Generator, scale: float) -> float:
    """The prior of a standard deviation."""
    return scale * abs(rng.standard_t(3))


def _ranked(found: Any, truth: dict[str, float], rng: np.random.Generator) -> tuple[dict[str, float], bool]:
    drawn = found.draws(DRAWS, rng)
    shares = {name: float((drawn[name] < value).sum() + rng.random()) / (DRAWS + 1) for name, value in truth.items()}
    return shares, found.report.status == "converged"


def intercepts(rng):
    """Twelve groups of four rows, normal noise."""
    g, x = np.repeat(np.arange(12), 4), _even(rng, 48)
    truth = {"Intercept": rng.normal(), "x": rng.normal(), "sd(Intercept | g)": _half(rng, 1), "sigma": _half(rng, 1)}
    y = truth["Intercept"] + truth["x"] * x + truth["sd(Intercept | g)"] * rng.normal(size=12)[g]
    y += truth["sigma"] * rng.normal(size=48)
    priors = {"Intercept": (0.0, 1.0), "x": (0.0, 1.0), "sd(Intercept | g)": 1.0, "sigma": 1.0}
    return _ranked(mm.fit("y ~ x + (1 | g)", {"y": y, "x": x, "g": g}, priors=priors), truth, rng)


def slopes(rng):
    """Twelve groups of five rows with slopes of their own, normal noise."""
    g, x = np.repeat(np.arange(12), 5), _even(rng, 60)
    first, second, correlation = _half(rng, 1), _half(rng, 1), rng.uniform(-1, 1)
    effects = rng.normal(size=(12, 2))
    effects = np.stack(
        [first * effects[:, 0], second * (correlation * effects[:, 0] + np.sqrt(1 - correlation**2) * effects[:, 1])]
    )
    truth = {"Intercept": rng.normal(), "x": rng.normal(), "sd(Intercept | g)": first, "sd(x | g)": second}
    truth |= {"cor(Intercept, x | g)": correlation, "sigma": _half(rng, 1)}
    y = truth["Intercept"] + effects[0, g] + (truth["x"] + effects[1, g]) * x + truth["sigma"] * rng.normal(size=60)
    priors = {"Intercept": (0.0, 1.0), "x": (0.0, 1.0), "sd(Intercept | g)": 1.0, "sd(x | g)": 1.0, "sigma": 1.0}
    return _ranked(mm.fit("y ~ x + (1 + x | g)", {"y": y, "x": x, "g": g}, priors=priors), truth, rng)


def crossed(rng):
    """Counts by eight groups and six others that cross."""
    g, h = np.repeat(np.arange(8), 6), np.tile(np.arange(6), 8)
    x = _even(rng, 48)
    truth = {"Intercept": rng.normal(), "x": 0.5 * rng.normal()}
    truth |= {"sd(Intercept | g)": _half(rng, 0.3), "sd(Intercept | h)": _half(rng, 0.3)}
    eta = truth["Intercept"] + truth["x"] * x + truth["sd(Intercept | g)"] * rng.normal(size=8)[g]
    y = rng.poisson(np.exp(np.minimum(eta + truth["sd(Intercept | h)"] * rng.normal(size=6)[h], 15)))
    if not y.any():
        return crossed(rng)
    priors = {"Intercept": (0.0, 1.0), "x": (0.0, 0.5), "sd(Intercept | g)": 0.3, "sd(Intercept | h)": 0.3}
    data = {"y": y, "x": x, "g": g, "h": h}
    return _ranked(mm.fit("y ~ x + (1 | g) + (1 | h)", data, "poisson", priors=priors), truth, rng)


def ordinal(rng):
    """Three labels of sixty rows; data without one of them are drawn again."""
    while True:
        x, middle, gap = _even(rng, 60), 2.5 * rng.normal(), _half(rng, 2.5)
        truth = {"threshold[0|1]": middle - gap / 2, "threshold[1|2]": middle + gap / 2, "x": rng.normal()}
        latent = truth["x"] * x + rng.logistic(size=60)
        y = (latent > truth["threshold[0|1]"]).astype(int) + (latent > truth["threshold[1|2]"])
        if len(np.unique(y)) == 3:
            break
    found = mm.fit("y ~ x", {"y": y, "x": x}, "cumulative", priors={"x": (0.0, 1.0)})
    return _ranked(found, truth, rng)


def labels(rng):
    """Ten groups with two rows of each of three labels, whose effects in a group are correlated: seven components."""
    g, k = np.repeat(np.arange(10), 6), np.tile(np.repeat(np.arange(3), 2), 10)
    first, second, third = (2 * rng.beta(b, b) - 1 for b in (1.5, 1.5, 1.0))
    third = third * np.sqrt((1 - first**2) * (1 - second**2)) + first * second
    correlation = np.array([[1, first, second], [first, 1, third], [second, third, 1]])
    sds = np.array([_half(rng, 1) for _ in range(3)])
    effects = rng.normal(size=(10, 3)) @ np.linalg.cholesky(correlation).T * sds
    means, sigma = rng.normal(size=3), _half(rng, 1)
    # The intercept is the value at the means of all columns.
    y = means[0] + np.array([-1, 2, -1])[k] * means[1] / 3 + np.array([-1, -1, 2])[k] * means[2] / 3
    y = y + effects[g, k] + sigma * rng.normal(size=60)
    names = "abc"
    truth = {f"k[{one}]": means[at] for at, one in ((1, "b"), (2, "c"))}
    truth |= {f"sd(k[{one}] | g)": sds[at] for at, one in enumerate(names)}
    pairs = ((0, 1), (0, 2), (1, 2))
    truth |= {f"cor(k[{names[i]}], k[{names[j]}] | g)": correlation[i, j] for i, j in pairs}
    truth["sigma"] = sigma
    priors: dict[str, Any] = {"Intercept": (0.0, 1.0), "k[b]": (0.0, 1.0), "k[c]": (0.0, 1.0), "sigma": 1.0}
    priors |= {f"sd(k[{one}] | g)": 1.0 for one in names}
    data = {"y": y, "k": np.array(list(names))[k], "g": g}
    return _ranked(mm.fit("y ~ k + (0 + k | g)", data, priors=priors), truth, rng)


def censored(rng):
    """Twelve groups of five rows with normal noise, of which those above a limit are known to be above it."""
    g, x = np.repeat(np.arange(12), 5), _even(rng, 60)
    while True:
        truth = {"Intercept": rng.normal(), "x": rng.normal()}
        truth |= {"sd(Intercept | g)": _half(rng, 1), "sigma": _half(rng, 1)}
        y = truth["Intercept"] + truth["x"] * x + truth["sd(Intercept | g)"] * rng.normal(size=12)[g]
        y += truth["sigma"] * rng.normal(size=60)
        # Data in which no row has a value are drawn again.
        if (y <= 0.5).any():
            break
    data = {"y": np.minimum(y, 0.5), "status": np.where(y > 0.5, "right", "none"), "x": x, "g": g}
    priors = {"Intercept": (0.0, 1.0), "x": (0.0, 1.0), "sd(Intercept | g)": 1.0, "sigma": 1.0}
    return _ranked(mm.fit("censored(y, status) ~ x + (1 | g)", data, priors=priors), truth, rng)


MODELS: dict[str, Run] = {
    "intercepts": intercepts,
    "slopes": slopes,
    "labels": labels,
    "crossed": crossed,
    "ordinal": ordinal,
    "censored": censored,
}


def calibrate(name: str, repeats: int, seconds: float = np.inf) -> Found:
    """p-values of each parameter, and how many runs doubted themselves; stops after so many processor seconds."""
    runs, began = [], time.process_time()
    for seed in range(repeats):
        runs.append(MODELS[name](np.random.default_rng([len(name), seed])))
        if time.process_time() - began > seconds:
            break
    cells = {}
    for parameter in runs[0][0]:
        shares = np.array([shares[parameter] for shares, _ in runs])
        cells[parameter] = {
            "p": float(f"{scipy.stats.kstest(shares, 'uniform').pvalue:.3g}"),
            "inside": round(float(((shares > 0.05) & (shares < 0.95)).mean()), 3),
        }
    spent = (time.process_time() - began) / len(runs)
    doubted = sum(not sure for _, sure in runs)
    return {"repetitions": len(runs), "doubted": doubted, "seconds": float(f"{spent:.2g}"), "cells": cells}


def page(found: Found) -> str:
    """One line for each parameter of each model."""
    together = iter(holm(np.array([cell["p"] for of in found.values() for cell in of["cells"].values()])).tolist())
    head = ["model", "repetitions", "with a warning", "parameter", "in 90% intervals", "p-value", "corrected (Holm)"]
    rows = []
    for name, of in found.items():
        for at, (parameter, cell) in enumerate(of["cells"].items()):
            told = [name, of["repetitions"], of["doubted"]] if not at else [""] * 3
            corrected = next(together)
            mark = f"**{corrected:.2g}**" if corrected < 0.01 else f"{corrected:.2g}"
            rows.append([*told, parameter, f"{cell['inside']:.3f}", f"{cell['p']:.2g}", mark])
    return "\n".join(list_table(head, rows))


def main() -> None:
    """Measure, print, and keep if asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixed", description=__doc__)
    parser.add_argument("repetitions", nargs="?", type=int, default=500)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"all unless named: {', '.join(MODELS)}")
    parser.add_argument("--seconds", type=float, default=np.inf, help="of processor time for each model at the most")
    parser.add_argument("--keep", action="store_true", help="in benchmarks/results.json, and on the page")
    chosen = parser.parse_args()
    for model in chosen.models or MODELS:
        found = calibrate(model, chosen.repetitions, chosen.seconds)
        print(model, found, file=sys.stderr, flush=True)
        if chosen.keep:
            kept = pages.stored()
            pages.store({**kept, "mixed": {**kept.get("mixed", {}), model: found}})


if __name__ == "__main__":
    main()
