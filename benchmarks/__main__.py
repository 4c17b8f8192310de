"""Measure everything that the documentation states, and write it there: make bench, half an hour on two quiet cores.

Each part runs in a process of its own on one core, as many at a time as there are cores, and counts processor seconds.
The results are kept in benchmarks/results.json; `python -m benchmarks --pages` writes the pages from them again and
measures nothing. One part alone is `python -m benchmarks.power`, and prints its table.
"""

import argparse
import datetime
import json
import os
import queue
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module

from benchmarks import pages, peers, table

__all__ = ["main", "measured"]

# The longest first, so that all cores are done at about the same time.
ORDER = ("speed", "images", "dependences", "power", "rows", "conditional", "posteriors", "discovery", "first_calls")


def main(arguments: list[str] | None = None) -> int:
    """Measure everything, store the results and write the pages, or only write the pages."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--pages", action="store_true", help="measure nothing, write the pages from stored results")
    parser.add_argument("--part", choices=ORDER, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.part:
        print(json.dumps(import_module(f"benchmarks.{chosen.part}").measure()))
        return 0
    if not chosen.pages:
        missing = peers.missing()
        if missing:
            print("\n".join(["Some packages for comparison are not installed:", *missing]), file=sys.stderr)
            return 2
        kept = pages.stored()
        pages.store({**measured(), **{part: kept[part] for part in pages.BY_NIGHT}})
    for path, text in pages.written(pages.stored()).items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(pages.ROOT))
    return 0


def measured() -> dict:
    """The results of all parts, and a sentence on the run."""
    started, load, free = time.perf_counter(), table.others(), queue.SimpleQueue()
    for core in table.cores():
        free.put(core)

    def of_part(part: str) -> dict:
        core, begun = free.get(), time.perf_counter()
        found = _in_process(part, core)
        free.put(core)
        print(f"==> {part}: {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
        return found

    with ThreadPoolExecutor(len(table.cores())) as pool:
        found = dict(zip(ORDER, pool.map(of_part, ORDER), strict=True))
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    told = (
        f"All parts were measured in one run of {(time.perf_counter() - started) / 60:.0f} minutes on "
        f"{datetime.date.today().isoformat()}, with commit {commit.stdout.strip()}, on {table.machine()}. Before the "
        f"run, other processes kept {load:.1f} cores busy. {table.versions()}."
    )
    return {"run": {"told": told}, **found}


def _in_process(part: str, core: int) -> dict:
    """Run one part on one core. Linear algebra and JAX use as many threads as there are cores, so one each."""
    place = ["taskset", "-c", str(core)] if hasattr(os, "sched_getaffinity") else []
    command = [*place, sys.executable, "-m", "benchmarks", "--part", part]
    # Settings of tests, and programs kept from before, would change what is measured.
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("XLA_", "JAX_"))}
    environment["JAX_ENABLE_COMPILATION_CACHE"] = "false"
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    sys.exit(main())
