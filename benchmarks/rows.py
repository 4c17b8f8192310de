"""Processor seconds and memory of functions that take rows: python -m benchmarks.rows [NAME].

Three columns that depend on each other, the settings of a first call. Each function has a process of its own that has
made a smaller call before, so that little is compiled. The whole takes part in `python -m benchmarks`, which stores the
results and writes docs/benchmarks/rows.rst.
"""

import json
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import meanmap as mm
from benchmarks.memory import above
from benchmarks.table import duration, list_table
from meanmap.core import InputError

__all__ = ["CALLS", "alone", "measure", "measured", "page"]

SIZES = (10_000, 100_000, 1_000_000)
SMALL = 2_000
# After this many processor seconds, or gibibytes, a call is given up.
SECONDS, GIBIBYTES = 60, 12
Found = dict[str, Any]


def data(n: int, seed: int = 0) -> np.ndarray:
    """n rows of three columns; the second depends on the first, the third on the second."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = np.tanh(a) + 0.5 * rng.normal(size=n)
    return np.stack([a, b, np.abs(b) + 0.5 * rng.normal(size=n)], axis=1)


def named(x: np.ndarray) -> dict[str, np.ndarray]:
    """The columns by name."""
    return dict(zip("abc", x.T, strict=True))


def bags(x: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """Bags of a hundred rows, and a number for each."""
    each = np.array_split(x[:, :2], len(x) // 100)
    return each, np.array([np.mean(bag[:, 0] * bag[:, 1]) for bag in each])


def games(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Winners and losers among twenty players, as the first two columns decide."""
    players = np.argsort(np.random.default_rng(0).random((len(x), 20)), axis=1)[:, :2]
    first = x[:, 0] + players[:, 0] / 5 > x[:, 1] + players[:, 1] / 5
    return np.where(first, players[:, 0], players[:, 1]), np.where(first, players[:, 1], players[:, 0])


def chain(x: np.ndarray) -> mm.bp.results.FittedKernelGraph:
    """A graph that was learned from the first rows."""
    return mm.KernelGraph([("a", "b"), ("b", "c")]).fit(named(x[:SMALL]))


def gaps(x: np.ndarray) -> dict[str, np.ndarray]:
    """A third of the cells is missing."""
    return named(np.where(np.random.default_rng(2).random(x.shape) < 1 / 3, np.nan, x))


CALLS: dict[str, Callable[[np.ndarray], Any]] = {
    "two_sample_test": lambda x: mm.two_sample_test(x[::2], x[1::2], rng=0),
    "median_heuristic": lambda x: mm.median_heuristic(x),
    "default_kernel": lambda x: mm.default_kernel(x),
    "embed(x)(100 points)": lambda x: mm.embed(x)(x[:100]),
    "condition": lambda x: mm.condition(x[:, :2], x[:, 2]),
    "condition, 300 features": lambda x: mm.condition(
        x[:, :1],
        x[:, 1],
        kernel_x=mm.features.Fourier.draw(mm.kernels.RBF(1.0), like=x[:10, :1], n_features=300, rng=0),
    ),
    "condition, features of both": lambda x: mm.condition(
        x[:, :1],
        x[:, 1],
        kernel_x=mm.features.Fourier.draw(mm.kernels.RBF(1.0), like=x[:10, :1], n_features=300, rng=0),
        kernel_y=mm.features.Fourier.draw(mm.kernels.RBF(1.0), like=1, n_features=100, rng=1),
    ),
    "estimators.LowRankFeatures": lambda x: mm.estimators.LowRankFeatures().fit(x),
    "estimators.ConditionalMeanRegressor": lambda x: mm.estimators.ConditionalMeanRegressor().fit(x[:, :1], x[:, 1]),
    "DriftMonitor.of": lambda x: mm.DriftMonitor.of(x, rng=0),
    "embed(x).norm()": lambda x: mm.embed(x).norm(),
    "posterior_embedding": lambda x: mm.embeddings.posterior_embedding(x, mm.kernels.RBF(1.0)),
    "conditional_independence_test": lambda x: mm.conditional_independence_test(*x.T, rng=0),
    "joint_independence_test": lambda x: mm.joint_independence_test(list(x.T), rng=0),
    "independence_test": lambda x: mm.independence_test(x[:, 0], x[:, 1], rng=0),
    "chow_liu": lambda x: mm.chow_liu(named(x), rng=0),
    "pc": lambda x: mm.pc(named(x), rng=0),
    "ep.models.logistic_regression": lambda x: mm.ep.models.logistic_regression(x[:, :2], x[:, 2] > 1.0),
    "KernelGraph.fit": lambda x: mm.KernelGraph([("a", "b"), ("b", "c")]).fit(named(x)),
    "KernelGraph.fit(...).impute": lambda x: chain(x).impute(gaps(x)),
    "bp.DependencyNetwork.fit": lambda x: mm.bp.DependencyNetwork().fit(named(x)),
    "bp.BayesianNetwork.fit": lambda x: mm.bp.BayesianNetwork([("a", "b"), ("b", "c")]).fit(named(x)),
    "learn_kernel": lambda x: mm.learn_kernel(x, rng=0),
    "ep.models.poisson_regression": lambda x: mm.ep.models.poisson_regression(x[:, :2], np.abs(x[:, 2]).astype(int)),
    "two_sample_effect": lambda x: mm.two_sample_effect(x[::2], x[1::2], rng=0),
    "independence_effect": lambda x: mm.independence_effect(x[:, 0], x[:, 1], rng=0),
    "conditional_independence_effect": lambda x: mm.conditional_independence_effect(*x.T, rng=0),
    "closeness_test": lambda x: mm.closeness_test(x[::2], x[1::2], 0.1, rng=0),
    "k_sample_test": lambda x: mm.k_sample_test(np.array_split(x, 3), rng=0),
    "k_sample_effect": lambda x: mm.k_sample_effect(np.array_split(x, 3), rng=0),
    "test": lambda x: mm.test("a ~ b | c", named(x), rng=0),
    "stats.TwoSampleBet.of": lambda x: mm.stats.TwoSampleBet.of(x[::2], x[1::2], rng=0),
    "stats.IndependenceBet.of": lambda x: mm.stats.IndependenceBet.of(x[:, 0], x[:, 1], rng=0),
    "KernelField.fit": lambda x: mm.KernelField([(0, 1), (1, 2)], relations=["r", "s"], variables=["a", "b", "c"]).fit(
        {"r": (x[:, 0], x[:, 1]), "s": (x[:, 1], x[:, 2])}
    ),
    "posterior_witness": lambda x: mm.embeddings.posterior_witness(x[::2], x[1::2], mm.kernels.RBF(1.0)),
    "cross_covariance(x, y).norm()": lambda x: mm.embeddings.cross_covariance(
        x[:, 0], x[:, 1], mm.kernels.RBF(1.0), mm.kernels.RBF(1.0)
    ).norm(),
    "embeddings.likelihood": lambda x: mm.embeddings.likelihood(x[:, :1], x[:, 1]),
    "embeddings.bayes_rule": lambda x: mm.embeddings.bayes_rule(x[:, :1], x[:, 1], mm.embed(x[:9, 1])),
    "features.PivotedCholesky.fit": lambda x: mm.features.PivotedCholesky.fit(mm.kernels.RBF(1.0), x, max_rank=200),
    "Schema.of": lambda x: mm.Schema.of(named(x)),
    "sample_kernel, 40 draws": lambda x: mm.learning.sample_kernel(x, rng=0, chains=1, warmup=20, draws=20),
    "estimators.FourierFeatures": lambda x: mm.estimators.FourierFeatures(random_state=0).fit(x).transform(x),
    "estimators.LearnedFeatures": lambda x: mm.estimators.LearnedFeatures(random_state=0).fit(x),
    "estimators.ConditionalDensity": lambda x: mm.estimators.ConditionalDensity().fit(x[:, :1], x[:, 1]),
    "estimators.BagRegressor": lambda x: mm.estimators.BagRegressor().fit(*bags(x)),
    "estimators.TwoStageFeatures": lambda x: mm.estimators.TwoStageFeatures(random_state=0).fit(bags(x)[0]),
    "ep.models.probit_regression": lambda x: mm.ep.models.probit_regression(x[:, :2], x[:, 2] > 1.0),
    "ep.models.ordinal_regression": lambda x: mm.ep.models.ordinal_regression(
        x[:, :2], np.digitize(x[:, 2], [0.3, 0.8, 1.3])
    ),
    "ep.models.robust_regression": lambda x: mm.ep.models.robust_regression(x[:, :2], x[:, 2]),
    "ep.models.ranking": lambda x: mm.ep.models.ranking(*games(x)),
    "ep.models.gp_classification": lambda x: mm.ep.models.gp_classification(x[:, :2], x[:, 2] > 1.0),
    "ep.models.compound_gamma": lambda x: mm.ep.models.compound_gamma(np.abs(x[:, 0])),
}


def measured(name: str, seconds: int = SECONDS, gibibytes: int = GIBIBYTES, sizes: tuple = SIZES) -> list[Any]:
    """For each size: processor seconds and MiB of one call, or why there are none."""
    command = [sys.executable, "-m", "benchmarks.rows", name, str(seconds), str(gibibytes), *map(str, sizes)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode == -signal.SIGXCPU:
        found.append(f"more than {seconds} s")
    elif done.returncode and any(word in done.stderr for word in ("MemoryError", "RESOURCE_EXHAUSTED", "bad_alloc")):
        found.append(f"more than {gibibytes} GiB")
    elif done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stderr}")
    return found + found[-1:] * (len(sizes) - len(found))


def alone(name: str, seconds: int, gibibytes: int, *sizes: int) -> None:
    """Print the same, size by size, from this process, which is ended where it takes more."""
    call = CALLS[name]
    call(data(SMALL, 1))
    resource.setrlimit(resource.RLIMIT_DATA, (gibibytes * 2**30, resource.RLIM_INFINITY))
    for n in sizes:
        x, started = data(n), time.process_time()
        resource.setrlimit(resource.RLIMIT_CPU, (int(started) + seconds + 1, resource.RLIM_INFINITY))
        try:
            mib = above(lambda x=x: call(x))
        except InputError as refusal:
            print(json.dumps(f"refused: {str(refusal).split(': ')[0]}"), flush=True)
        else:
            print(json.dumps([float(f"{time.process_time() - started:.2g}"), round(mib)]), flush=True)


def measure() -> Found:
    """All functions at all sizes."""
    found = {}
    for name in CALLS:
        found[name] = measured(name)
        print(name, found[name], file=sys.stderr, flush=True)
    return found


def page(found: Found) -> str:
    """The table, and where calls were given up."""
    rows = []
    for name, cells in found.items():
        shown = [cell if isinstance(cell, str) else f"{duration(cell[0])}, {cell[1]} MiB" for cell in cells]
        rows.append([f"``{name}``", *shown])
    told = f"Calls that took more than {SECONDS} s or {GIBIBYTES} GiB were stopped."
    return "\n".join([*list_table(["function", *(f"{n:,} rows" for n in SIZES)], rows), told, ""])


if __name__ == "__main__":
    if len(sys.argv) > 2:
        alone(sys.argv[1], *map(int, sys.argv[2:]))
    else:
        for chosen in sys.argv[1:] or CALLS:
            print(chosen, measured(chosen), flush=True)
