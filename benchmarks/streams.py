"""A stream of factors: rate, memory, asked share and posterior: python -m benchmarks.streams [--rows N] [--keep].

Labels of a logistic regression on five columns arrive in batches of a thousand, and every batch updates the posterior
of the last one. Messages of the labels come from one learned operator, or from quadrature. The answer beside them is
one run with all rows.
"""

import argparse
import resource
import sys
import time
from typing import Any

import numpy as np

from benchmarks import pages
from benchmarks.table import list_table
from meanmap import ep

__all__ = ["measure", "page"]

COLUMNS, BATCH = 5, 1000
Found = dict[str, Any]


def _rows(count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(21)
    X = rng.normal(size=(count, COLUMNS))
    truth = np.linspace(-1.0, 1.0, COLUMNS)
    return X, (rng.uniform(size=count) < 1 / (1 + np.exp(-X @ truth))).astype(int)


def _factors(w: ep.Variable, X: np.ndarray, y: np.ndarray) -> ep.FactorGraph:
    z = ep.Variable("z", ep.Normal, plate=len(y))
    return ep.FactorGraph(ep.Dot(X, w, z), ep.Logistic(z, observed=y, name="labels"))


def _memory() -> float:
    """The most that the process has had, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _streamed(X: np.ndarray, y: np.ndarray, oracle: Any) -> tuple[Any, Found]:
    w = ep.Variable("w", ep.MultivariateNormal.standard(COLUMNS))
    post, seconds, asked, memory = None, [], [], []
    for at in range(0, len(y), BATCH):
        start = time.perf_counter()
        batch = _factors(w, X[at : at + BATCH], y[at : at + BATCH])
        post = ep.infer(batch, oracle, rng=0) if post is None else post.update(batch, rng=0)
        seconds.append(time.perf_counter() - start)
        memory.append(_memory())
        print(at + BATCH, f"{seconds[-1]:.2g} s, {memory[-1]:.0f} MB", file=sys.stderr, flush=True)
        counts = post.report.counts
        if "labels: predicted" in counts:
            answered = counts["labels: asked of the oracle"]
            asked.append(answered / (answered + counts["labels: predicted"]))
    half = len(seconds) // 2
    return post, {
        "rate": BATCH / float(np.median(seconds[half:])),
        "first": seconds[0],
        "grown": memory[-1] - memory[half],
        "asked": [float(np.mean(each)) for each in np.array_split(asked, 4)] if asked else [1.0] * 4,
    }


def measure(rows: int) -> Found:
    """The stream by quadrature and by one learned operator, and how far each is from one run with all rows."""
    X, y = _rows(rows)
    found: Found = {"rows": rows}
    ways = {"quadrature": None, "learned": ep.Learned(ep.Quadrature())}
    answers = {}
    for way, oracle in ways.items():
        answers[way], found[way] = _streamed(X, y, oracle)
        print(way, found[way], file=sys.stderr, flush=True)
    start = time.perf_counter()
    w = ep.Variable("w", ep.MultivariateNormal.standard(COLUMNS))
    whole = ep.infer(_factors(w, X, y))
    found["whole"] = {"seconds": time.perf_counter() - start}
    sd = np.sqrt(np.diag(whole["w"].cov()))
    for way, post in answers.items():
        found[way]["off"] = float(np.abs((post["w"].mean() - whole["w"].mean()) / sd).max())
        found[way]["wide"] = float((np.sqrt(np.diag(post["w"].cov())) / sd).max())
        print(way, found[way]["off"], found[way]["wide"], found["whole"], file=sys.stderr, flush=True)
    return found


def page(found: Found) -> str:
    """The table."""
    head = ["messages", "rows per second", "memory growth", "computed exactly", "error of means", "ratio of sds"]
    table = []
    for way in ("quadrature", "learned"):
        each = found[way]
        asked = " ".join(f"{share:.1%}" for share in each["asked"])
        table.append(
            [
                way,
                f"{each['rate']:,.0f}",
                f"+{max(each['grown'], 0):.0f} MB",
                asked,
                f"{each['off']:.3f} sd",
                f"{each['wide']:.3f}",
            ]
        )
    return "\n".join(list_table(head, table))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--keep", action="store_true", help="store what was measured")
    chosen = parser.parse_args()
    found = measure(chosen.rows)
    if chosen.keep:
        pages.store({**pages.stored(), "streams": found})
    print(page(found))
