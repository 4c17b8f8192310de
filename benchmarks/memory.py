"""Peak memory of one call, seen from a process of its own.

The process imports, makes the data, runs the smallest size once (which starts the backend), and only then is the peak
reset and the call made. What is reported is the peak above what was already held, so the data do not count and the
answer does.
"""

import contextlib
import gc
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from benchmarks.cases import all_cases

__all__ = ["above", "peak_memory"]

STATUS = Path("/proc/self/status")


def _kilobytes(entry: str) -> int | None:
    """An entry of Linux's account of this process, if there is one."""
    with contextlib.suppress(OSError):
        for line in STATUS.read_text().splitlines():
            if line.startswith(entry + ":"):
                return int(line.split()[1])
    return None


def _peak() -> int:
    peak = _kilobytes("VmHWM")
    if peak is not None:
        return peak
    value = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return value // 1024 if sys.platform == "darwin" else value


def peak_memory(case: str, side: str, n: int) -> float | None:
    """MiB that one call of `side` ("ours" or a peer) takes at its peak beyond its data; None where it failed."""
    command = [sys.executable, "-m", "benchmarks.memory", case, side, str(n)]
    done = subprocess.run(command, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def above(call: Callable[[], Any]) -> float:
    """MiB that a call, with its answer, takes at its peak beyond what this process holds before."""
    gc.collect()
    with contextlib.suppress(OSError):
        # Linux: 5 sets the peak back to what is held now. Elsewhere the peak of the warm-up is the floor.
        Path("/proc/self/clear_refs").write_text("5")
    before = _kilobytes("VmRSS") or _peak()
    answer = jax.block_until_ready(call())
    found = max(0, _peak() - before) / 1024
    del answer
    return found


def _main(name: str, side: str, n: int) -> None:
    case = all_cases()[name]
    call = case.side(side)
    jax.block_until_ready(call(case.setup(min(case.sizes))))
    data = case.setup(n)
    print(above(lambda: call(data)))


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
