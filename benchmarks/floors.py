"""Processor seconds beside a floor, the arithmetic that nothing saves: python -m benchmarks.floors [NAME] [--keep].

Each line runs in a process of its own, on one core with one thread of linear algebra: once to compile, then ours and
the floor in turn, and medians are kept. A floor is what NumPy takes for the products, functions and factorisations that
the answer is made of, once, with nothing around them. The last lines leave linear algebra its own number of threads and
keep every core busy beside it; their floor is the same call with one thread, on the same busy cores.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

import meanmap as mm
from benchmarks import pages
from benchmarks.cases.belief_propagation import SWEEPS, grid, grid_by_hand, grid_ours
from benchmarks.cases.expectation_propagation import labels
from benchmarks.cases.structure import network
from benchmarks.table import cores, duration, list_table
from meanmap import bp, ep

__all__ = ["BUSY", "LINES", "beside_others", "measure", "page", "seconds"]

ROUNDS = 3
Found = dict[str, Any]


@dataclass(frozen=True)
class Line:
    """A call, the arithmetic of its lower bound, and the allowed multiple of it (None: seconds, in `most`)."""

    title: str
    made_of: str
    setup: Callable[[], Any]
    ours: Callable[[Any], Any]
    floor: Callable[[Any], Any]
    asked: float | None = None
    most: float | None = None


def waves(x: np.ndarray, n_features: int) -> np.ndarray:
    """Random features of the rows of x: one product, one cosine."""
    return np.cos(x @ np.random.default_rng(1).normal(size=(x.shape[1], n_features)))


def gram(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A Gaussian Gram matrix: one product, one exponential."""
    squares = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1) - 2.0 * (x @ y.T)
    return np.exp(-0.5 * squares)


def ridge(features: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Residuals of a ridge regression of some columns on features."""
    normal = features.T @ features + np.eye(features.shape[1])
    return values - features @ np.linalg.solve(normal, features.T @ values)


def rows(n: int, d: int, seed: int = 0) -> np.ndarray:
    """n rows of d columns, each a bent function of the one before and noise."""
    table = np.random.default_rng(seed).normal(size=(n, d))
    for j in range(1, d):
        table[:, j] = np.tanh(table[:, j - 1]) + 0.5 * table[:, j]
    return table


def named(x: np.ndarray) -> dict[str, np.ndarray]:
    """The columns by name."""
    return {f"x{j}": x[:, j] for j in range(x.shape[1])}


CHAIN = [("x0", "x1"), ("x1", "x2"), ("x2", "x3")]
CAUSES = [("x0", "x1"), ("x0", "x2"), ("x1", "x2"), ("x2", "x3"), ("x2", "x4"), ("x3", "x4")]


def two_samples(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two samples of n rows in all, ten columns."""
    return np.random.default_rng(0).normal(size=(2, n // 2, 10))  # type: ignore[return-value]


def three_given_three(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x and y that depend on three columns of z."""
    z = np.random.default_rng(0).normal(size=(n, 3))
    noise = np.random.default_rng(1).normal(size=(2, n))
    return np.tanh(z[:, 0]) + noise[0], z[:, 1] * z[:, 2] + noise[1], z


def regressions(data: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    """Features of x, y, z, two ridge regressions, and the covariance of the products of what they leave."""
    x, y, z = data
    of_z, values = waves(z, 200), np.hstack([waves(x[:, None], 25), waves(y[:, None], 25)])
    left = ridge(of_z, values)
    products = (left[:, :25, None] * left[:, None, 25:]).reshape(len(z), -1)
    products.T @ products


def edges_by_ridge(x: np.ndarray) -> None:
    """For each of three edges, both ways: 100 features of all rows, and a ridge regression of 100 others."""
    for j in range(x.shape[1] - 1):
        one, other = waves(x[:, j : j + 1], 100), waves(x[:, j + 1 : j + 2], 100)
        ridge(one, other)
        ridge(other, one)


def families_by_ridge(x: np.ndarray) -> None:
    """Each variable with parents: 200 features of these, and a ridge regression."""
    for child in sorted({edge[1] for edge in CAUSES}):
        parents = [int(edge[0][1:]) for edge in CAUSES if edge[1] == child]
        ridge(waves(x[:, parents], 200), x[:, [int(child[1:])]])


def forests(x: np.ndarray) -> None:
    """One forest of 100 trees a column by scikit-learn."""
    from sklearn.ensemble import ExtraTreesRegressor

    for j in range(x.shape[1]):
        ExtraTreesRegressor(100, min_samples_leaf=5, random_state=0).fit(np.delete(x, j, axis=1), x[:, j])


def logistic_by_newton(data: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """The mode of a logistic regression with a standard normal prior, by eight steps of Newton's."""
    X, y = data
    w = np.zeros(X.shape[1])
    for _ in range(8):
        p = 1 / (1 + np.exp(-(X @ w)))
        w += np.linalg.solve(np.eye(len(w)) + (X * (p * (1 - p))[:, None]).T @ X, X.T @ (y - p) - w)
    return w


def logistic_by_ep(data: tuple[np.ndarray, np.ndarray]) -> Any:
    """Its posterior means by expectation propagation."""
    X, y = data
    w = ep.Variable("w", ep.MultivariateNormal.standard(X.shape[1]))
    z = ep.Variable("z", ep.Normal, plate=len(y))
    return ep.infer(ep.FactorGraph(ep.Dot(X, w, z), ep.Logistic(z, observed=y)), sweeps=100)["w"].mean()


def many_labels(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """n rows of d columns, and labels from a logistic model."""
    X, y = labels(n)
    more = np.random.default_rng(3).normal(size=(n, d - X.shape[1]))
    return np.hstack([X, more]), y


def counts(n: int) -> np.ndarray:
    """Counts whose logarithm of the rate is normal."""
    rng = np.random.default_rng(0)
    return rng.poisson(np.exp(0.5 * rng.normal(size=n)))


def black_boxes(y: np.ndarray) -> Any:
    """Posterior means of a plate of black boxes."""
    z = ep.Variable("z", ep.Normal(0.0, 1.0), plate=len(y))
    return ep.infer(ep.FactorGraph(ep.Density(lambda z, y: y * z - jnp.exp(z), z, y)))["z"].mean()


def thirty_two_nodes(y: np.ndarray) -> np.ndarray:
    """The same means by Gauss and Hermite's rule with 32 nodes."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(32)
    values = np.exp(y[:, None] * nodes - np.exp(nodes)) * weights
    return (values @ nodes) / values.sum(axis=1)


def picture(side: int) -> tuple[Any, np.ndarray]:
    """A restorer that was taught on one picture, and a noisy one."""
    clean = 255 * np.hypot(*np.mgrid[:side, :side]) / np.hypot(side, side)
    noisy = clean + 30 * np.random.default_rng(0).normal(size=clean.shape)
    return mm.KernelGrid().fit(clean[:128, :128], noisy[:128, :128], rng=0), noisy


def ten_sweeps(data: tuple[Any, np.ndarray]) -> None:
    """Products of four messages a pixel with one operator, ten times, in single precision."""
    messages, operator = np.ones((4 * data[1].size, 100), np.float32), np.ones((100, 100), np.float32)
    for _ in range(10):
        messages @ operator


def fit_and_do(x: np.ndarray) -> Any:
    """Learn a Bayesian network and set one of its variables."""
    return bp.BayesianNetwork(CAUSES).fit(named(x)).do({"x0": 1.0}, ["x4"], rng=0)["x4"].mean()


LINES: dict[str, Line] = {
    "two_sample_test": Line(
        "two samples of 10,000 rows, ten columns",
        "512 features of all rows for each of five kernels",
        lambda: two_samples(20_000),
        lambda data: mm.two_sample_test(*data, rng=0),
        lambda data: [waves(np.concatenate(data), 512).sum(axis=0) for _ in range(5)],
        most=1.0,
    ),
    "independence_test": Line(
        "5000 rows of two columns",
        "two Gram matrices, and the sum of their product",
        lambda: rows(5000, 2),
        lambda x: mm.independence_test(x[:, 0], x[:, 1], rng=0),
        lambda x: np.vdot(gram(x[:, :1], x[:, :1]), gram(x[:, 1:], x[:, 1:])),
        most=0.4,
    ),
    "conditional_independence_test, 1000": Line(
        "1000 rows, three columns of z",
        "two ridge regressions on 200 features of z, and the covariance of 625 products",
        lambda: three_given_three(1000),
        lambda data: mm.conditional_independence_test(*data, rng=0),
        regressions,
        asked=3,
    ),
    "conditional_independence_test, 10,000": Line(
        "10,000 rows, three columns of z",
        "the same",
        lambda: three_given_three(10_000),
        lambda data: mm.conditional_independence_test(*data, rng=0),
        regressions,
        asked=3,
    ),
    "pc": Line(
        "1000 rows of ten columns",
        "a Gram matrix for each column, and the sum of the product of each pair",
        lambda: network(1000),
        lambda x: mm.pc(x, rng=0),
        lambda x: (lambda grams: grams @ grams.T)(np.stack([gram(c[:, None], c[:, None]).ravel() for c in x.T])),
        most=2.0,
    ),
    "KernelGraph.fit": Line(
        "10,000 rows, three edges",
        "a ridge regression on 100 features for each edge and direction",
        lambda: rows(10_000, 4),
        lambda x: mm.KernelGraph(CHAIN).fit(named(x)),
        edges_by_ridge,
        asked=10,
    ),
    "DependencyNetwork.fit": Line(
        "2000 rows of 20 columns",
        "one forest of 100 trees per column by scikit-learn",
        lambda: rows(2000, 20),
        lambda x: bp.DependencyNetwork().fit(named(x)),
        forests,
        most=6.3,
    ),
    "BayesianNetwork.fit and do": Line(
        "2000 rows of five columns",
        "a ridge regression on 200 features for each node given its parents",
        lambda: rows(2000, 5),
        fit_and_do,
        families_by_ridge,
        asked=6,
    ),
    "KernelGrid.restore": Line(
        "256 × 256 pixels",
        "ten sweeps of products with one operator of rank 100, single precision",
        lambda: picture(256),
        lambda data: data[0].restore(data[1]),
        ten_sweeps,
        asked=1.5,
    ),
    "DiscreteGraph.query": Line(
        f"100 × 100 nodes, 30 states, {SWEEPS} sweeps",
        "the same messages as shifted images",
        lambda: grid(10_000),
        grid_ours,
        grid_by_hand,
        asked=2,
    ),
    "ep.infer, logistic regression": Line(
        "100,000 rows of 50 columns, ``ep.Dot`` and ``ep.Logistic``",
        "the mode by eight Newton steps",
        lambda: many_labels(100_000, 50),
        logistic_by_ep,
        logistic_by_newton,
        asked=4,
    ),
    "ep.infer, a plate of densities": Line(
        "10,000 counts with a black-box density",
        "32 quadrature nodes per row",
        lambda: counts(10_000),
        black_boxes,
        thirty_two_nodes,
        asked=8,
    ),
}
# Calls with many small products, whose threads would wait for each other where others keep all cores busy.
BUSY: dict[str, tuple[str, Callable[[], Any], Callable[[Any], Any]]] = {
    "KernelGraph.fit, busy cores": ("500 rows, three edges", lambda: rows(500, 4), LINES["KernelGraph.fit"].ours),
    "BayesianNetwork.fit and do, busy cores": ("2000 rows of five columns", lambda: rows(2000, 5), fit_and_do),
}
MOST_BESIDE_OTHERS = 1.1


def seconds(call: Callable[[Any], Any], data: Any) -> float:
    """Processor seconds of one call."""
    started = time.process_time()
    call(data)
    return time.process_time() - started


def alone(name: str) -> list[float]:
    """Medians of ours and of the floor, in this process."""
    line = LINES[name]
    data = line.setup()
    seconds(line.ours, data)
    seconds(line.floor, data)
    rounds = [(seconds(line.ours, data), seconds(line.floor, data)) for _ in range(ROUNDS)]
    return [statistics.median(side) for side in zip(*rounds, strict=True)]


def busy(name: str) -> list[float]:
    """The median of a call in this process, with as many threads as it was given."""
    _, setup, call = BUSY[name]
    data = setup()
    seconds(call, data)
    return [statistics.median(seconds(call, data) for _ in range(ROUNDS))]


def _in_process(name: str, threads: int | None, core: int | None) -> list[float]:
    """What a process of its own prints: on one core or all, with one thread of linear algebra or its own number."""
    place = ["taskset", "-c", str(core)] if core is not None and hasattr(os, "sched_getaffinity") else []
    hidden = ("XLA_", "JAX_", "OPENBLAS_NUM", "OMP_NUM", "MKL_NUM")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
    if threads:
        environment |= {"OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    command = [*place, sys.executable, "-m", "benchmarks.floors", "--alone", name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def beside_others(name: str) -> list[float]:
    """Seconds with as many threads as the library is left, and with one, while all cores are busy."""
    idle = "while True: pass"
    others = [subprocess.Popen([sys.executable, "-c", idle]) for _ in cores()]
    try:
        return [*_in_process(name, None, None), *_in_process(name, 1, None)]
    finally:
        for other in others:
            other.kill()
            other.wait()


def measure(names: list[str]) -> Found:
    """The lines by name."""
    found = {}
    for name in names:
        found[name] = beside_others(name) if name in BUSY else _in_process(name, 1, cores()[0])
        found[name] = [float(f"{value:.2g}") for value in found[name]]
        print(name, found[name], file=sys.stderr, flush=True)
    return found


def page(found: Found) -> str:
    """The table."""
    table = []
    for name, (ours, floor) in found.items():
        if name in BUSY:
            title, made_of, asked = BUSY[name][0], "the same with one thread", f"{MOST_BESIDE_OTHERS} times"
        else:
            line = LINES[name]
            title, made_of = line.title, line.made_of
            asked = f"{line.asked:g} times" if line.asked else duration(line.most or 0.0)
        ratio = f"{ours / floor:.1f}" if ours < 10 * floor else f"{ours / floor:.0f}"
        table.append([f"``{name.split(', ')[0]}``, {title}", made_of, duration(floor), duration(ours), ratio, asked])
    return "\n".join(list_table(["call", "unavoidable arithmetic", "its time", "ours", "ratio", "target"], table))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="lines, all if none is named")
    parser.add_argument("--keep", action="store_true", help="store what was measured and write the page")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.alone:
        print(json.dumps(busy(chosen.names[0]) if chosen.names[0] in BUSY else alone(chosen.names[0])))
    else:
        found = measure(chosen.names or [*LINES, *BUSY])
        if chosen.keep:
            known = pages.stored()
            pages.store({**known, "floors": {**known.get("floors", {}), **found}})
        else:
            print(page(found))
