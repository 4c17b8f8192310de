"""How much learned messages ask, problem by problem: python -m benchmarks.learned_share [--problems N] [--keep].

Three simulators: a queue with noise of its own, a drug in the blood with a time for each row, and an epidemic. Each
problem has 100 new rows with unknowns of their own, whose first has a mean that all rows share. Messages by sampling,
1000 points each, stand beside messages learned from the same sampling by one `ep.Learned` for all problems of a
simulator.
"""

import argparse
import sys
import time
from typing import Any

import numpy as np

from benchmarks import pages
from benchmarks.table import list_table
from meanmap import ep

__all__ = ["SIMULATORS", "measure", "page"]

ROWS, POINTS, NOISE, SPREAD = 100, 1000, 0.2, 0.5
Found = dict[str, Any]


def queue(rng: Any, a: Any, b: Any) -> Any:
    """Log of the mean waiting time of 30 customers who come at rate exp(a) and are served at rate exp(b + .5)."""
    count = len(a)
    gaps, served = rng.exponential(size=(30, count)) / np.exp(a), rng.exponential(size=(30, count)) / np.exp(b + 0.5)
    wait, total = np.zeros(count), np.zeros(count)
    for gap, service in zip(gaps, served, strict=True):
        wait = np.maximum(wait + service - gap, 0.0)
        total += wait
    return np.log(total / 30 + 0.05)


def drug(a: Any, b: Any, c: Any, t: Any) -> Any:
    """Log concentration at time t: absorbed at rate exp(.5 a + .7), cleared at exp(.5 b − 1), in a volume exp(.3 c)."""
    absorbed, cleared = np.exp(0.5 * a + 0.7), np.exp(0.5 * b - 1)
    apart = np.where(np.abs(absorbed - cleared) < 1e-6, 1e-6, absorbed - cleared)
    return np.log(np.maximum(absorbed / apart * (np.exp(-cleared * t) - np.exp(-absorbed * t)), 1e-12)) - 0.3 * c


def epidemic(a: Any, b: Any, c: Any) -> Any:
    """Logit of the share infected after 40 days, by rates of infection and recovery and how many begin."""
    infection, recovery = np.exp(0.4 * a - 0.9), np.exp(0.4 * b - 1.8)
    ill = 1 / (1 + np.exp(5 - c))
    well = 1 - ill
    for _ in range(80):
        new = 0.5 * infection * well * ill
        well, ill = well - new, ill + new - 0.5 * recovery * ill
    return np.log((1 - well) / np.maximum(well, 1e-12))


# The function, its unknowns, whether it is random, whether rows have times.
SIMULATORS = {"queue": (queue, 2, True, False), "drug": (drug, 3, False, True), "epidemic": (epidemic, 3, False, False)}


class Counted:
    """A simulator that counts its evaluations."""

    def __init__(self, function: Any) -> None:
        self.function, self.points = function, 0

    def __call__(self, *values: Any) -> Any:
        self.points += len(values[-1])
        return self.function(*values)


def problem(name: str, function: Any, seed: int) -> ep.FactorGraph:
    """A model of new rows."""
    simulate, unknowns, random, timed = SIMULATORS[name]
    rng = np.random.default_rng([seed, 77])
    z = [rng.normal() + SPREAD * rng.normal(size=ROWS), *rng.normal(size=(unknowns - 1, ROWS))]
    given = [rng.uniform(0.5, 6.0, ROWS)] if timed else []
    y = simulate(*([rng] if random else []), *z, *given) + NOISE * rng.normal(size=ROWS)
    mu, a = ep.Variable("mu", ep.Normal(0.0, 1.0)), ep.Variable("a", ep.Normal, plate=ROWS)
    rest = [ep.Variable(each, ep.Normal(0.0, 1.0), plate=ROWS) for each in "bc"[: unknowns - 1]]
    out = ep.Variable("out", ep.Normal, plate=ROWS)
    return ep.FactorGraph(
        ep.Gaussian(mu, a, precision=SPREAD**-2),
        ep.BlackBox(function, a, *rest, *given, out, random=random, vectorised=True, name="f"),
        ep.Gaussian(out, precision=NOISE**-2, observed=y),
    )


def measure(problems: int) -> Found:
    """By simulator and problem: the share asked, how far off the shared mean is in sds, whether it gave up."""
    found: Found = {}
    for name, (function, *_) in SIMULATORS.items():
        counted, learned = Counted(function), ep.Learned(ep.ImportanceSampling(POINTS))
        rows = []
        for seed in range(problems):
            model, points, means, start = problem(name, counted, seed), [], [], time.perf_counter()
            for oracle in (ep.ImportanceSampling(POINTS), learned):
                counted.points = 0
                post = ep.infer(model, oracle, rng=seed)
                points.append(counted.points)
                means.append(post["mu"])
            off = abs(means[1].mean() - means[0].mean()) / means[0].sd()
            gave_up = any("from then on the oracle answered all messages" in note for note in post.report.notes)
            rows.append([round(points[1] / points[0], 4), round(float(off), 2), int(gave_up)])
            print(name, seed, rows[-1], f"{time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
        found[name] = rows
    return found


def page(found: Found) -> str:
    """The table: the share asked, with a star where predictions were given up, and the mean's error."""
    most = max(map(len, found.values()))
    table = []
    for name, rows in found.items():
        table.append([f"{name}: evaluations", *(f"{share:.1%}{'*' if gave_up else ''}" for share, _, gave_up in rows)])
        table.append([f"{name}: difference of means, sd", *(f"{off:.2f}" for _, off, _ in rows)])
    return "\n".join(list_table(["problem", *(str(at + 1) for at in range(most))], table))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=8)
    parser.add_argument("--keep", action="store_true", help="store what was measured")
    chosen = parser.parse_args()
    found = measure(chosen.problems)
    if chosen.keep:
        pages.store({**pages.stored(), "learned_share": found})
    print(page(found))
