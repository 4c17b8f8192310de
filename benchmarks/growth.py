"""Processor seconds against the number of rows, for ten functions: python -m benchmarks.growth [NAME] [--keep].

Each function reads rows of independent normal numbers, each column but the first a little bent towards the one before.
One call compiles, and the quicker of two others counts, on one core with one thread of linear algebra. A function that
has taken `MOST` seconds is not asked for more rows. `--keep` stores what was measured, writes the page and draws the
picture; earlier seconds of functions that changed stay in the stored results, and are drawn dashed.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import meanmap as mm
from benchmarks import pages
from benchmarks.table import duration, list_table

__all__ = ["CALLS", "SIZES", "draw", "measure", "page"]

SIZES = (100, 300, 1000, 2000, 3000, 5000, 10_000, 30_000, 100_000, 1_000_000)
MOST = 5.0
PICTURE = pages.ROOT / "docs" / "_static" / "growth.png"
Found = dict[str, Any]


def table(n: int) -> np.ndarray:
    """n rows of three columns."""
    rows = np.random.default_rng(0).normal(size=(n, 3))
    for j in (1, 2):
        rows[:, j] += 0.2 * np.tanh(rows[:, j - 1])
    return rows


def named(x: np.ndarray) -> dict[str, np.ndarray]:
    """The columns by name."""
    return dict(zip("abc", x.T, strict=True))


CALLS: dict[str, Callable[[np.ndarray], Any]] = {
    "two_sample_test": lambda x: mm.two_sample_test(*np.array_split(x, 2), rng=0),
    "k_sample_test": lambda x: mm.k_sample_test(np.array_split(x, 3), rng=0),
    "independence_test": lambda x: mm.independence_test(x[:, 0], x[:, 1], rng=0),
    "joint_independence_test": lambda x: mm.joint_independence_test(x, rng=0),
    "conditional_independence_test": lambda x: mm.conditional_independence_test(x[:, 0], x[:, 2], x[:, 1], rng=0),
    "two_sample_effect": lambda x: mm.two_sample_effect(*np.array_split(x, 2), rng=0),
    "independence_effect": lambda x: mm.independence_effect(x[:, 0], x[:, 1], rng=0),
    "condition": lambda x: mm.condition(x[:, 0], x[:, 1]),
    "chow_liu": lambda x: mm.chow_liu(named(x), rng=0),
    "KernelGraph.fit": lambda x: mm.KernelGraph([("a", "b"), ("b", "c")]).fit(named(x)),
}


def measure(names: list[str]) -> Found:
    """Seconds by function and number of rows."""
    found: Found = {}
    for name in names:
        found[name] = {}
        for n in SIZES:
            x, taken = table(n), []
            for _ in range(3):
                started = time.process_time()
                CALLS[name](x)
                taken.append(time.process_time() - started)
                if len(taken) > 1 and taken[-1] > MOST:
                    break
            found[name][str(n)] = float(f"{min(taken[1:]):.2g}")
            print(name, n, found[name][str(n)], file=sys.stderr, flush=True)
            if found[name][str(n)] > MOST:
                break
    return found


def page(found: Found) -> str:
    """The picture and its numbers."""
    cells = []
    for name, seconds in found.items():
        title = f"``{name.removeprefix('before ')}``{', before' if name.startswith('before ') else ''}"
        cells.append([title, *(duration(seconds[str(n)]) if str(n) in seconds else "" for n in SIZES)])
    image = [f".. image:: /_static/{PICTURE.name}", "   :alt: seconds against rows, both on logarithmic scales", ""]
    return "\n".join([*image, *list_table(["call", *(f"{n:,}" for n in SIZES)], cells)])


def draw(found: Found) -> Any:
    """The picture: one panel a function, seconds against rows."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 5, figsize=(11, 4.4), sharex=True, sharey=True, layout="constrained")
    for axis, name in zip(axes.ravel(), CALLS, strict=True):
        for key, style in ((f"before {name}", "C7--"), (name, "C0.-")):
            if key in found:
                axis.loglog([int(n) for n in found[key]], list(found[key].values()), style)
        axis.set_title(name, fontsize="small")
        axis.grid(alpha=0.3)
    figure.supxlabel("rows")
    figure.supylabel("processor seconds")
    return figure


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="functions, all if none is named")
    parser.add_argument("--keep", action="store_true", help="store what was measured, write the page, draw the picture")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    found = measure(chosen.names or list(CALLS))
    if chosen.keep:
        known = pages.stored()
        kept = {**known.get("growth", {}), **found}
        pages.store({**known, "growth": kept})
        draw(kept).savefig(PICTURE, dpi=100)
    else:
        print(page(found))
