"""What a row costs where rows are many: python -m benchmarks.scales [--keep], a minute.

Ten columns of normal numbers, processor seconds. A row costs the difference between 30,000 rows and 330,000, so that
nothing of the plan or of compiling is in it. `--keep` stores the results for the page "How far it scales".
"""

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import meanmap as mm
from benchmarks import pages
from benchmarks.table import list_table
from meanmap.core.pieces.files import ParquetFiles

__all__ = ["FEW", "MANY", "measure", "named", "page"]

FEW, MANY = 30_000, 330_000
# Workers and rows of the sentences that follow by arithmetic.
CORES, BILLION = 64, 1e9
# Of five kernels at 64 landmarks in ten columns: distances, and the product that makes features of values.
OPERATIONS = 5 * (3 * 64 * 10 + 2 * 64**2)
Found = dict[str, Any]
Rows = np.ndarray


def _two_sample(x: Rows) -> Callable[[Any], Any]:
    return mm.stats.plan("two samples", x[::2], x[1::2], rng=0).state


def _independence(each: int) -> Callable[[Rows], Callable[[Rows], Any]]:
    def of(x: Rows) -> Callable[[Rows], Any]:
        plan = mm.stats.plan("independence", x[:, :each], x[:, each : 2 * each], rng=0)
        return lambda rows: plan.state(rows[:, :each], rows[:, each : 2 * each])

    return of


def _joint(x: Rows) -> Callable[[Rows], Any]:
    plan = mm.stats.plan("joint independence", x[:, :3], rng=0)
    return lambda rows: plan.state(rows[:, :3])


def _conditional(x: Rows) -> Callable[[Rows], Any]:
    """All three passes; what comes back is the state of the last."""
    first = mm.stats.plan("conditional independence", x[:, 0], x[:, 1], x[:, 2], rng=0)

    def passes(rows: Rows) -> Any:
        plan, sides = first, (rows[:, 0], rows[:, 1], rows[:, 2])
        while plan.passes > 1:
            plan = plan.after(plan.state(*sides))
        return plan.state(*sides)

    return passes


def _regression(x: Rows) -> Callable[[Rows], Any]:
    draw = mm.features.Fourier.draw
    phi, psi = (draw(mm.kernels.RBF(1.0), like=1, n_features=100, rng=seed) for seed in (0, 1))
    plan = mm.embeddings.RegressionPlan.of(x[:, 0], x[:, 1], phi, psi, rng=0)
    return lambda rows: plan.state(rows[:, 0], rows[:, 1])


CASES: dict[str, Callable[[Rows], Callable[[Any], Any]]] = {
    "two-sample test, default kernels, ten columns": _two_sample,
    "independence test, one column each": _independence(1),
    "independence test, five columns each": _independence(5),
    "joint independence test, three columns": _joint,
    "conditional test, one column each, three passes": _conditional,
    "regression, 100 features of each of two columns": _regression,
}


def measure() -> Found:
    """Microseconds a row and kilobytes of a state of each; how time grows with rows in files, and what is held."""
    x = np.random.default_rng(0).normal(size=(MANY, 10))
    found = {name: _cost(make(x), x[:FEW], x) for name, make in CASES.items()}
    with tempfile.TemporaryDirectory() as folder:
        few, many, more = (_written(Path(folder, name), x, times) for name, times in (("a", 0), ("b", 1), ("c", 10)))
        found["two-sample test, ten columns of Parquet files"] = _cost(
            mm.stats.plan("two samples", few, few, rng=0).state, few, many
        )
        found["reading ten columns of Parquet"] = _cost(_read, few, many)
        seconds = [_seconds(lambda each=each: mm.two_sample_test(each, each, rng=0)) for each in (many, more)]
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    lengths = {"rows": [2 * MANY, 20 * MANY], "seconds": seconds, "gibibytes": round(held, 2)}
    return {"cases": found, "lengths": lengths}


def _read(files: Path) -> None:
    for _ in ParquetFiles.of(files).pieces(1 << 15):
        pass


def _written(folder: Path, x: Rows, times: int) -> Path:
    """Files of all rows so many times, or once of the first few."""
    import polars

    folder.mkdir()
    for i in range(max(times, 1)):
        rows = x if times else x[:FEW]
        polars.DataFrame(dict(zip("abcdefghij", rows.T, strict=True))).write_parquet(folder / f"{i}.parquet")
    return folder


def _cost(step: Callable[[Any], Any], few: Any, many: Any) -> Found:
    state = step(few)
    size = 0
    if state is not None:
        with tempfile.TemporaryDirectory() as folder:
            size = Path(mm.save(state, Path(folder, "state"))).stat().st_size
    less, more = (_seconds(lambda rows=rows: step(rows)) for rows in (few, many))
    return {"microseconds": float(f"{(more - less) / (MANY - FEW) * 1e6:.3g}"), "kilobytes": round(size / 1e3, 1)}


def _seconds(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return round(time.process_time() - start, 2)


def named(found: Found) -> dict[str, str]:
    """The numbers of sentences."""
    rows, seconds = found["lengths"]["rows"], found["lengths"]["seconds"]
    numbers = {
        "scales-growth": f"{np.log(seconds[1] / seconds[0]) / np.log(rows[1] / rows[0]):.2f}",
        "scales-held": f"{found['lengths']['gibibytes']:.1f} GiB",
    }
    for name, short in (
        ("two-sample test, ten columns of Parquet files", "files"),
        ("independence test, one column each", "pair"),
    ):
        cost = found["cases"][name]["microseconds"]
        numbers |= {f"scales-{short}": _shown(cost), f"scales-{short}-billion": f"{cost * BILLION / 1e6 / CORES:.0f} s"}
    kilobytes = found["cases"]["two-sample test, ten columns of Parquet files"]["kilobytes"]
    numbers["scales-states"] = f"{float(f'{kilobytes * CORES:.1g}'):g} kB"
    seconds_of_all = (
        found["cases"]["two-sample test, ten columns of Parquet files"]["microseconds"] * BILLION / 1e6 / CORES
    )
    cost = found["cases"]["two-sample test, ten columns of Parquet files"]["microseconds"]
    numbers["scales-operations"] = f"{OPERATIONS / cost / 1e3:.0f}"
    return numbers | {"scales-read": f"{BILLION * 80 / 1e9 / seconds_of_all:.1f} GB"}


def page(found: Found) -> str:
    """The table."""
    rows = [
        [name, _shown(each["microseconds"]), f"{each['kilobytes']:.0f} kB" if each["kilobytes"] else ""]
        for name, each in found["cases"].items()
    ]
    return "\n".join([*list_table(["work", "time per row", "size of the state"], rows), ""])


def _shown(microseconds: float) -> str:
    return f"{float(f'{microseconds:.2g}'):g} µs"


def main() -> None:
    """Measure, and print the page or keep the results."""
    found = measure()
    if sys.argv[1:] == ["--keep"]:
        pages.store({**pages.stored(), "scales": found})
    print(page(found), named(found))


if __name__ == "__main__":
    main()
