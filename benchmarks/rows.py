"""Seconds and memory of functions that take rows, at 10^4, 10^5 and 10^6 of them: python -m benchmarks.rows [NAME ...].

Three columns that depend on each other, the settings of a first call. Each number comes from a process of its own that
has made a smaller call before, so that little is compiled. Writes docs/benchmarks/rows.rst.
"""

import argparse
import datetime
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import meanmap as mm
from benchmarks import table
from benchmarks.memory import above
from meanmap.core import InputError

__all__ = ["CALLS", "alone", "main", "page"]

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "rows.rst"
SIZES = (10_000, 100_000, 1_000_000)
SMALL = 2_000


def data(n: int, seed: int = 0) -> np.ndarray:
    """n rows of three columns; the second depends on the first, the third on the second."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = np.tanh(a) + 0.5 * rng.normal(size=n)
    return np.stack([a, b, np.abs(b) + 0.5 * rng.normal(size=n)], axis=1)


def named(x: np.ndarray) -> dict[str, np.ndarray]:
    """The columns by name."""
    return dict(zip("abc", x.T, strict=True))


# The quick ones first: the page grows while it is measured.
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
    "estimators.LowRankFeatures": lambda x: mm.estimators.LowRankFeatures().fit(x),
    "estimators.ConditionalMeanRegressor": lambda x: mm.estimators.ConditionalMeanRegressor().fit(x[:, :1], x[:, 1]),
    "DriftMonitor.of": lambda x: mm.DriftMonitor.of(x, rng=0),
    "embed(x).norm()": lambda x: mm.embed(x).norm(),
    "posterior_embedding": lambda x: mm.posterior_embedding(x, mm.kernels.RBF(1.0)),
    "conditional_independence_test": lambda x: mm.conditional_independence_test(*x.T, rng=0),
    "joint_independence_test": lambda x: mm.joint_independence_test(list(x.T), rng=0),
    "independence_test": lambda x: mm.independence_test(x[:, 0], x[:, 1], rng=0),
    "chow_liu": lambda x: mm.chow_liu(named(x), rng=0),
    "pc": lambda x: mm.pc(named(x), rng=0),
    "ep.models.logistic_regression": lambda x: mm.ep.models.logistic_regression(x[:, :2], x[:, 2] > 1.0),
    "KernelGraph.fit": lambda x: mm.KernelGraph([("a", "b"), ("b", "c")]).fit(named(x)),
    "learn_kernel": lambda x: mm.learn_kernel(x, rng=0),
    "ep.models.poisson_regression": lambda x: mm.ep.models.poisson_regression(x[:, :2], np.abs(x[:, 2]).astype(int)),
    "k_sample_test": lambda x: mm.k_sample_test(np.array_split(x, 3), rng=0),
}


def measured(name: str, n: int, seconds: int, gibibytes: int) -> str:
    """CPU seconds and MiB of one call in words, or what it was given up for."""
    command = [sys.executable, "-m", "benchmarks.rows", name, "--alone", str(n)]
    command += ["--seconds", str(seconds), "--gibibytes", str(gibibytes)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == -signal.SIGXCPU:
        return f"more than {seconds} s"
    if done.returncode:
        large = any(word in done.stderr for word in ("MemoryError", "RESOURCE_EXHAUSTED", "bad_alloc"))
        if not large:
            raise RuntimeError(f"{name} of {n} rows failed:\n{done.stderr}")
        return f"more than {gibibytes} GiB"
    return done.stdout.splitlines()[-1]


def alone(name: str, n: int, seconds: int, gibibytes: int) -> str:
    """The same in this process, which is ended where it takes more."""
    call, x = CALLS[name], data(n)
    call(data(SMALL, 1))
    started = time.process_time()
    resource.setrlimit(resource.RLIMIT_CPU, (int(started) + seconds + 1, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_DATA, (gibibytes * 2**30, resource.RLIM_INFINITY))
    try:
        mib = above(lambda: call(x))
    except InputError as refusal:
        return f"refused: {str(refusal).split(': ')[0]}"
    return f"{time.process_time() - started:.2g} s, {mib:.0f} MiB"


def page(rows: dict[str, list[str]], limits: tuple[int, int]) -> str:
    """The table, and on what it was measured."""
    lines = [".. list-table::", "   :header-rows: 1", "", "   * - function"]
    lines += [f"     - {n:,} rows" for n in SIZES]
    for name, cells in rows.items():
        lines += [f"   * - ``{name}``", *(f"     - {cell}" for cell in cells)]
    given_up = "What took more than {} s or {} GiB was given up.".format(*limits)
    return "\n".join([*lines, "", f"{given_up} {table.machine()}; {datetime.date.today():%d %B %Y}."]) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Measure, and write the page unless functions were named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rows", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all unless named: {', '.join(CALLS)}")
    parser.add_argument("--seconds", type=int, default=300, help="of processor time, after which a call is given up")
    parser.add_argument("--gibibytes", type=int, default=8, help="of memory, likewise")
    parser.add_argument("--alone", type=int, metavar="ROWS", help="one call, measured in this process")
    chosen = parser.parse_args(arguments)
    limits = chosen.seconds, chosen.gibibytes
    if chosen.alone:
        print(alone(chosen.names[0], chosen.alone, *limits))
        return 0
    rows: dict[str, list[str]] = {}
    for name in chosen.names or CALLS:
        rows[name] = []
        for n in SIZES:
            rows[name].append(measured(name, n, *limits))
            print(f"{name}, {n:,} rows: {rows[name][-1]}", flush=True)
        if not chosen.names:
            PAGE.write_text(page(rows, limits), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
