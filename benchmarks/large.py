"""A hundred million rows in Parquet files, beside Dask on the same files: python -m benchmarks.large [--keep].

Ten columns of normal numbers, in files of 250,000 rows as polars writes them, of which the longest table takes 7.7 GB.
Each measurement runs in a process of its own, and counts its processor seconds and the most memory that it held; those
of a cluster are wall seconds. Half an hour.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import pages
from benchmarks.table import list_table

__all__ = ["measure", "named", "page"]

STEP = 250_000
ROWS = (1_000_000, 10_000_000, 100_000_000)
COLUMNS = tuple("abcdefghij")
# Of linear algebra, for each side: threads that wait for each other on busy cores would count as work.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
Found = dict[str, Any]
Files = list[str]


def two_sample(files: Files) -> float:
    """The first half against the second."""
    import meanmap as mm

    return mm.two_sample_test(files[: len(files) // 2], files[len(files) // 2 :], rng=0).pvalue


def independence(files: Files) -> float:
    """The first five columns against the others."""
    import polars

    import meanmap as mm

    frame = polars.scan_parquet(files)
    return mm.independence_test(frame.select(COLUMNS[:5]), frame.select(COLUMNS[5:]), rng=0).pvalue


def covariances(files: Files) -> None:
    """What Dask takes to add up ten columns and their products."""
    import dask
    import dask.array
    import dask.dataframe

    x = dask.dataframe.read_parquet(files).to_dask_array(lengths=True)
    dask.compute(x.mean(axis=0), dask.array.cov(x, rowvar=False))


def reading(files: Files) -> None:
    """Batch by batch, as a test does."""
    from meanmap.core.pieces.files import ParquetFiles

    for _ in ParquetFiles.of(files).pieces(1 << 15):
        pass


def workers(files: Files) -> list[float]:
    """The two-sample test by two workers; what each of these held, in GiB."""
    import dask.dataframe
    from dask.distributed import Client, LocalCluster

    import meanmap as mm

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        x, y = (dask.dataframe.read_parquet(half) for half in (files[: len(files) // 2], files[len(files) // 2 :]))
        mm.two_sample_test(x, y, rng=0)
        return list(client.run(_held).values())


WORK: dict[str, tuple[Callable[[Files], Any], tuple[int, ...]]] = {
    "two-sample test": (two_sample, ROWS),
    "independence test, five columns each": (independence, ROWS),
    "dask.array: means and covariances": (covariances, ROWS),
    "reading": (reading, ROWS[2:]),
    "two-sample test by two workers of Dask": (workers, ROWS[2:]),
}


def _held() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)


def _written(folder: Path) -> None:
    import polars

    for i in range(ROWS[-1] // STEP):
        rows = np.random.default_rng([7, i]).standard_normal((STEP, len(COLUMNS)))
        polars.DataFrame(rows, schema=list(COLUMNS)).write_parquet(folder / f"part-{i:04}.parquet")


def measure() -> Found:
    """Seconds and GiB of each piece of work, by rows."""
    found: Found = {}
    settings = {key: value for key, value in os.environ.items() if not key.startswith(("XLA_", "JAX_"))} | ONE_THREAD
    with tempfile.TemporaryDirectory() as folder:
        _written(Path(folder))
        for name, (_, sizes) in WORK.items():
            found[name] = {}
            for n in sizes:
                command = [sys.executable, "-m", "benchmarks.large", name, folder, str(n)]
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=settings)
                found[name][str(n)] = json.loads(done.stdout.splitlines()[-1])
                print(name, n, found[name][str(n)], file=sys.stderr, flush=True)
    return found


def _once(name: str, folder: str, n: str) -> Found:
    files = sorted(map(str, Path(folder).glob("*.parquet")))[: int(n) // STEP]
    clock = time.perf_counter if name.endswith("Dask") else time.process_time
    begun = clock()
    value = WORK[name][0](files)
    held = {"workers": value} if isinstance(value, list) else {}
    return {"seconds": round(clock() - begun, 1), "gibibytes": _held(), **held}


def named(found: Found) -> dict[str, str]:
    """The numbers of sentences."""
    test, beside = found["two-sample test"], found["dask.array: means and covariances"]
    few, many, most = (str(n) for n in ROWS)

    def power(of: Found, less: str, more: str) -> str:
        # What the first million rows take holds the plan and compiling; the others cost what a row costs.
        first = of[few]["seconds"] - ROWS[0] * (of[more]["seconds"] - of[few]["seconds"]) / (int(more) - ROWS[0])
        ratio = (of[more]["seconds"] - first) / (of[less]["seconds"] - first)
        return f"{np.log(ratio) / np.log(int(more) / int(less)):.2f}"

    apart = found["independence test, five columns each"]
    return {
        "large-growth": power(test, many, most),
        "large-growth-independence": power(apart, many, most),
        "large-times": f"{test[many]['seconds'] / beside[many]['seconds']:.1f}",
        "large-times-most": f"{test[most]['seconds'] / beside[most]['seconds']:.1f}",
        "large-times-independence": f"{apart[most]['seconds'] / beside[most]['seconds']:.0f}",
        "large-reading": f"{100 * found['reading'][most]['seconds'] / test[most]['seconds']:.0f}%",
        "large-held": f"{max(each['gibibytes'] for each in (*test.values(), *apart.values())):.1f} GiB",
        "large-worker": f"{max(found['two-sample test by two workers of Dask'][most]['workers']):.1f} GiB",
    }


def page(found: Found) -> str:
    """The table."""

    def cell(each: Found | None) -> str:
        return f"{each['seconds']:g} s, {each['gibibytes']:.1f} GiB" if each else ""

    rows = [[name, *(cell(of.get(str(n))) for n in ROWS)] for name, of in found.items()]
    return "\n".join([*list_table(["work", *(f"{n // 1_000_000} million rows" for n in ROWS)], rows), ""])


def main() -> None:
    """Measure, and print the page or keep the results."""
    if len(sys.argv) == 4:
        print(json.dumps(_once(*sys.argv[1:])))
        return
    found = measure()
    if sys.argv[1:] == ["--keep"]:
        pages.store({**pages.stored(), "large": found})
    print(page(found), named(found))


if __name__ == "__main__":
    main()
